"""What a saved program takes and gives: arrays by the names of parameters, shapes, types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MethodType
from typing import Any

from heterosis import _core
from heterosis.capture import plain
from heterosis.ir.types import TensorType

_ANY_ARGUMENTS = inspect.signature(lambda *args, **kwargs: None)


@dataclass(frozen=True)
class Signature:
    """The arrays that one program takes and gives, and the other arguments that it is made for.

    A name is the parameter's, and the place in it, as Python writes it: `x`, `states[0]`.
    """

    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    values: Mapping[str, Any]
    bounds: tuple[str, ...] = ()  # what has to hold of the sizes in `inputs`, if there are some

    @property
    def taken(self) -> str:
        """The arguments, as text."""
        taken = [_listed(self.inputs), *(f"{name}={v!r}" for name, v in self.values.items())]
        return f"({', '.join(filter(None, taken))})"

    def __str__(self) -> str:
        bounds = f" where {', '.join(self.bounds)}" if self.bounds else ""
        return f"{self.taken} -> ({_listed(self.outputs)}){bounds}"


def _listed(types: Mapping[str, TensorType]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in types.items())


def signature_of(given: Mapping[str, Any], returned: Any) -> Signature:
    """What arguments and a result look like."""
    taken = [leaf for name, tree in given.items() for leaf in leaves(tree, name)]
    return Signature(
        {name: type_of(leaf) for name, leaf in taken if _is_array(leaf)},
        {name: type_of(leaf) for name, leaf in leaves(returned, "output") if _is_array(leaf)},
        {name: leaf for name, leaf in taken if not _is_array(leaf)},
    )


def parameters_of(function: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function, or any where Python cannot tell; those of a wrapper with
    parameters of its own, and not of what it wraps, which it may hand others."""
    try:
        return inspect.signature(_named(function), follow_wrapped=False)
    except (TypeError, ValueError):
        return _ANY_ARGUMENTS


def _named(function: Any) -> Any:
    """What a function wraps, or what that wraps, until one names parameters or tells them."""
    if isinstance(function, MethodType):
        return MethodType(_named(function.__func__), function.__self__)
    code = getattr(function, "__code__", None)
    has_names = code is not None and code.co_argcount + code.co_kwonlyargcount > 0
    if has_names or hasattr(function, "__signature__") or not hasattr(function, "__wrapped__"):
        return function
    return _named(function.__wrapped__)


def by_name(
    parameters: inspect.Signature, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by the names of parameters, as far as they are what these say: a wrapper may
    take others, and a wrong call is refused where Python makes it."""
    try:
        return parameters.bind(*arguments, **keywords).arguments
    except TypeError:
        return _ANY_ARGUMENTS.bind(*arguments, **keywords).arguments


def bound(
    parameters: inspect.Signature, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by the names of parameters, with defaults that are plain values."""
    given = parameters.bind(*arguments, **keywords).arguments
    found = {}
    for name, parameter in parameters.parameters.items():
        if name in given:
            found[name] = given[name]
        elif parameter.default is not parameter.empty and plain.is_plain(parameter.default):
            found[name] = parameter.default
    return found


def type_of(array: _core.ndarray) -> TensorType:
    return TensorType(array.shape, array._dtype_name)


def leaves(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The arrays and other values of a structure, with their names."""
    if not isinstance(tree, tuple | list | dict):
        yield name, tree
        return
    for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from leaves(item, f"{name}[{key!r}]")


def arrays_of(given: Mapping[str, Any]) -> list[_core.ndarray]:
    """The arrays among bound arguments, in order."""
    return [leaf for name in given for _, leaf in array_leaves(given[name], name)]


def array_leaves(tree: Any, name: str) -> Iterator[tuple[str, _core.ndarray]]:
    """The arrays of a structure, with their names."""
    return (pair for pair in leaves(tree, name) if _is_array(pair[1]))


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, _core.ndarray)
