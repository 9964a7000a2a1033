"""Shapes and element types in a symbol: its graph is captured, and nothing is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heterosis import _core, capture
from heterosis.io.params import NUMBERS
from heterosis.ir.types import dtype_name, numpy_dtype
from heterosis.mxnet.attributes import decoded
from heterosis.mxnet.graph import reached
from heterosis.mxnet.symbols.evaluation import Plan
from heterosis.ops.unsized import UNKNOWN, Unsized
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, DeferredInitializationError

if TYPE_CHECKING:
    from heterosis.mxnet.symbols.symbol import Symbol

_DTYPES = {number: name for name, number in NUMBERS.items()}


def number_of(dtype: Any) -> int:
    """An element type's number in symbol files."""
    return NUMBERS[dtype_name(dtype)]


def known_facts(symbol: Symbol) -> dict[str, tuple[tuple[int, ...] | None, str | None]]:
    """Shape and element type of each variable, as far as its attributes tell."""
    found = {}
    for node in reached(symbol.entries):
        if node.is_variable:
            shape = node.attributes.get("__shape__")
            extents = decoded(shape) if shape else None
            dtype = _DTYPES.get(decoded(node.attributes.get("__dtype__", "")))
            found[node.name] = extents if isinstance(extents, tuple) else None, dtype
    return found


def shapes_of(
    symbol: Symbol, shapes: Mapping[str, tuple[int, ...]], partial: bool = False
) -> tuple[Any, Any, Any]:
    """Shapes of arguments, results and states."""
    try:
        arrays, results = _traced(symbol, shapes, {})
    except DeferredInitializationError as error:
        if not partial:
            raise ArgumentError(
                f"infer_shape: the shapes of {sorted(shapes)} do not tell enough; give those of "
                f"more of the arguments, {symbol.list_inputs()}."
            ) from error
        return None, None, None
    return _columns(symbol, {n: a.shape for n, a in arrays.items()}, [r.shape for r in results])


def types_of(symbol: Symbol, dtypes: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Element types of variables: those given, else their own, else the first given one. Those of
    results follow where the shapes of the variables are known, and are None where not."""
    names = {name: dtype_name(given) for name, given in dtypes.items()}
    common = next(iter(names.values()), None)
    facts = known_facts(symbol)
    types = {name: names.get(name, dtype or common) for name, (_, dtype) in facts.items()}
    if None in types.values():
        return None, None, None
    made = {name: numpy_dtype(dtype).type for name, dtype in types.items()}
    try:
        _, results = _traced(symbol, {}, types)
    except (ArgumentError, DeferredInitializationError):
        results = []
    found = [result.dtype.type for result in results] or [None] * len(symbol)
    return _columns(symbol, made, found)


def _columns(symbol: Symbol, of: Mapping[str, Any], results: list[Any]) -> tuple[Any, Any, Any]:
    arguments, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    return [of[name] for name in arguments], results, [of[name] for name in states]


def _traced(
    symbol: Symbol, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]
) -> tuple[dict[str, Any], list[Any]]:
    """Arrays without elements for all variables, and the results'."""
    plan = Plan(symbol.entries)
    arrays: dict[str, Any] = {}
    for name, (extents, dtype) in known_facts(symbol).items():
        extents = shapes.get(name, extents)
        arrays[name] = _stand_in(name, extents, dtypes.get(name, dtype) or "float32")
    found: list[Any] = []

    def run() -> None:
        found.extend(plan.run(arrays))

    with modes.switched(recording=False, training=False):
        capture.capture(run, (), {})
    made = {name: a.made if isinstance(a, Unsized) else a for name, a in arrays.items()}
    lacking = [name for name, array in made.items() if array is None]
    if lacking:
        raise ArgumentError(f"the shapes of {lacking} do not follow from the given ones.")
    return made, found


def _stand_in(name: str, shape: tuple[int, ...] | None, dtype: str) -> Any:
    def array(extents: tuple[int, ...]) -> Any:
        return _core.unreadable(dtype, extents, f"{name!r} has a shape and no elements yet")

    if shape is None or UNKNOWN in shape:
        return Unsized(f"the variable {name!r}", shape, array)
    return array(tuple(shape))
