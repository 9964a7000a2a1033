"""What a saved program takes and gives: arrays by the names of parameters, shapes, types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from heterosis import _core
from heterosis.capture import plain
from heterosis.ir.types import TensorType

_ANY_ARGUMENTS = inspect.signature(lambda *args, **kwargs: None)


@dataclass(frozen=True)
class Signature:
    """The arrays that one program takes and gives, by name.

    A name is the parameter's, and the place in it, as Python writes it: `x`, `states[0]`.
    """

    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]

    def __str__(self) -> str:
        return f"({_listed(self.inputs)}) -> ({_listed(self.outputs)})"


def _listed(types: Mapping[str, TensorType]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in types.items())


def parameters_of(function: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function, or any where Python cannot tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return _ANY_ARGUMENTS


def bound(parameters: inspect.Signature, arguments: tuple, keywords: dict) -> dict[str, Any]:
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


def leaves(tree: Any, name: str, kind: Any = _core.ndarray) -> Iterator[tuple[str, Any]]:
    """The arrays of a structure, or other leaves, with their names."""
    if isinstance(tree, kind):
        yield name, tree
    elif isinstance(tree, tuple | list | dict):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, item in items:
            yield from leaves(item, f"{name}[{key!r}]", kind)


def described(given: Mapping[str, Any]) -> str:
    """Arguments as messages show them."""
    shown = (
        f"{leaf}: {type_of(value)}" if isinstance(value, _core.ndarray) else f"{leaf}={value!r}"
        for name, tree in given.items()
        for leaf, value in leaves(tree, name, object if not _has_parts(tree) else _core.ndarray)
    )
    return ", ".join(shown)


def _has_parts(tree: Any) -> bool:
    return isinstance(tree, tuple | list | dict)
