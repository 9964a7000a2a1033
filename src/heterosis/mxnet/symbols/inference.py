"""Shapes and element types in a symbol: its graph is captured, and nothing is computed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heterosis import _core, capture
from heterosis.io.params import NUMBERS
from heterosis.ir.types import dtype_name, is_float, numpy_dtype
from heterosis.mxnet.attributes import decoded
from heterosis.mxnet.graph import reached
from heterosis.mxnet.operators.table import row_of
from heterosis.mxnet.symbols.evaluation import Plan
from heterosis.ops.unsized import UNKNOWN, Unsized
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, DeferredInitializationError, HeterosisError

if TYPE_CHECKING:
    from heterosis.mxnet.symbols.symbol import Symbol

# Extents that most sizes divide, and numbers of axes that data may have, the likeliest first.
_EXTENTS, _RANKS = (240, 224, 1), (2, 4, 3, 1, 5, 0)
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
    arrays = _stand_ins(symbol, shapes, {})
    try:
        results = _traced(symbol, arrays)
    except DeferredInitializationError as error:
        if not partial:
            raise ArgumentError(
                f"infer_shape: the shapes of {sorted(shapes)} do not tell enough; give those of "
                f"more of the arguments, {symbol.list_inputs()}."
            ) from error
        return None, None, None
    made = {name: a.made if isinstance(a, Unsized) else a for name, a in arrays.items()}
    lacking = [name for name, array in made.items() if array is None]
    if lacking:
        raise ArgumentError(f"the shapes of {lacking} do not follow from the given ones.")
    return _columns(symbol, {n: a.shape for n, a in made.items()}, [r.shape for r in results])


def types_of(symbol: Symbol, dtypes: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Element types of variables: those given, else their own, else the first given one, or what
    goes with it in a layer. Those of results follow, and are None where no shapes can be found."""
    names = {name: dtype_name(given) for name, given in dtypes.items()}
    common = next(iter(names.values()), None)
    facts = known_facts(symbol)
    beside = _parameters(symbol, common) if common else {}
    types = {
        name: names.get(name, dtype or beside.get(name, common))
        for name, (_, dtype) in facts.items()
    }
    if None in types.values():
        return None, None, None
    made = {name: numpy_dtype(dtype).type for name, dtype in types.items()}
    found = [result.dtype.type for result in _results(symbol, types)] or [None] * len(symbol)
    return _columns(symbol, made, found)


def _parameters(symbol: Symbol, common: str) -> dict[str, str]:
    """Element types of layers' parameters beside data of a type: floats beside whole numbers, and
    for batch normalisation, which sums up, no half ones."""
    found = {}
    for node in reached(symbol.entries):
        row = row_of(node.operator)
        if row.is_layer:
            halves = ("float16", "bfloat16") if row.states else ()
            dtype = common if is_float(common) and common not in halves else "float32"
            found |= {e.node.name: dtype for e in node.inputs[1:] if e.node.is_variable}
    return found


def _waits(array: Any) -> bool:
    return isinstance(array, Unsized) and array.made is None


def _results(symbol: Symbol, dtypes: Mapping[str, str]) -> list[Any]:
    """The results' arrays without elements, of any shapes with which the symbol can be run."""
    data = [name for name in symbol.list_inputs() if name not in _parameters(symbol, "float32")]
    for extent, rank in itertools.product(_EXTENTS, _RANKS):
        shapes: dict[str, tuple[int, ...]] = {}
        while True:
            arrays = _stand_ins(symbol, shapes, dtypes)
            try:
                return _traced(symbol, arrays)
            except DeferredInitializationError as error:
                unknown = [name for name, array in arrays.items() if array is error.array]
                if not unknown:
                    return []
                shapes[unknown[0]] = (extent,) * rank
            except HeterosisError:  # does not fit, or asks for the shape without more ado
                unknown = [name for name in data if name not in shapes and _waits(arrays[name])]
                if not unknown:
                    break
                shapes[unknown[0]] = (extent,) * rank
        if not shapes:
            break
    return []


def _columns(symbol: Symbol, of: Mapping[str, Any], results: list[Any]) -> tuple[Any, Any, Any]:
    arguments, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    return [of[name] for name in arguments], results, [of[name] for name in states]


def _stand_ins(
    symbol: Symbol, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]
) -> dict[str, Any]:
    """Arrays without elements for all variables."""
    return {
        name: _stand_in(name, shapes.get(name, extents), dtypes.get(name, dtype) or "float32")
        for name, (extents, dtype) in known_facts(symbol).items()
    }


def _traced(symbol: Symbol, arrays: Mapping[str, Any]) -> list[Any]:
    """The results' arrays without elements."""
    plan = Plan(symbol.entries)
    found: list[Any] = []

    def run() -> None:
        found.extend(plan.run(arrays))

    with modes.switched(recording=False, training=False):
        capture.capture(run, (), {})
    return found


def _stand_in(name: str, shape: tuple[int, ...] | None, dtype: str) -> Any:
    def array(extents: tuple[int, ...]) -> Any:
        return _core.unreadable(dtype, extents, f"{name!r} has a shape and no elements yet")

    if shape is None or UNKNOWN in shape:
        return Unsized(f"the variable {name!r}", shape, array)
    return array(tuple(shape))
