"""From a list of samples to one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from heterosis import _core, np
from heterosis.ir.types import dtype_name
from heterosis.np.convert import shared
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError
from heterosis.runtime.placing import in_main_memory

# Makes the array that a batch is written to: (shape, element type) -> (array, its memory).
Maker = Callable[[tuple[int, ...], str], tuple[Any, numpy.ndarray]]


def _new(shape: tuple[int, ...], dtype: str) -> tuple[Any, numpy.ndarray]:
    with in_main_memory():
        made = _core.empty(dtype, shape)
    return made, shared(made)


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """Arrays and numbers stacked along a new first dimension; of tuples, a list of such stacks."""
    return stacked(data, _new)


# MXNet has another for worker processes; here the worker puts any batch into shared memory.
default_mp_batchify_fn = default_batchify_fn


def stacked(data: Sequence[Any], make: Maker) -> Any:
    """What `default_batchify_fn` gives, in arrays that `make` makes."""
    if isinstance(data[0], tuple):
        return [stacked(part, make) for part in zip(*data, strict=True)]
    if isinstance(data[0], numpy.generic) or not hasattr(data[0], "__array__"):
        return _numbers(data, make)
    return _stack([_elements(item) for item in data], make)


def _numbers(data: Sequence[Any], make: Maker) -> Any:
    """Numbers, or lists of them, as one array."""
    try:
        found = numpy.asarray(data)
    except ValueError:  # lists of several lengths
        return _stack([_elements(item) for item in data], make)
    result, memory = make(found.shape, _supported(found.dtype))
    memory[...] = found
    return result


def _elements(item: Any) -> numpy.ndarray:
    return shared(item) if isinstance(item, np.ndarray) else numpy.asarray(item)


def _stack(parts: list[numpy.ndarray], make: Maker) -> Any:
    shape, dtype = _common_shape(parts), _common_dtype(parts)
    result, memory = make((len(parts), *shape), dtype)
    numpy.stack(parts, out=memory, casting="unsafe")
    return result


def _common_shape(parts: list[numpy.ndarray]) -> tuple[int, ...]:
    shape = parts[0].shape
    for i, part in enumerate(parts):
        if part.shape != shape:
            raise ShapeError(
                f"batchify: the first sample of the batch has shape {shape}, and number {i} has "
                f"{part.shape}. Resize them to one shape, or give the DataLoader a batchify_fn "
                "such as gluon.data.batchify.Pad()."
            )
    return shape


def _common_dtype(parts: list[numpy.ndarray]) -> str:
    found = parts[0].dtype
    if any(part.dtype != found for part in parts):
        found = numpy.result_type(*{part.dtype for part in parts})
    return _supported(found)


def _supported(found: numpy.dtype) -> str:
    try:
        return dtype_name(found)
    except DTypeError:
        raise DTypeError(
            f"batchify: samples of type {found} cannot become an array; make numbers of them in a "
            "transform, or give the DataLoader a batchify_fn such as gluon.data.batchify.AsList()."
        ) from None


class Stack:
    """Samples of one shape along a new first dimension."""

    def __call__(self, data: Sequence[Any]) -> Any:
        return _stack([_elements(item) for item in data], _new)


class Pad:
    """Samples filled up with `val` behind their ends to the largest of the batch, and stacked.

    With `round_to`, every filled-up extent is a multiple of it: fewer different shapes.
    """

    def __init__(self, val: float = 0, dtype: Any = None, round_to: int | None = None):
        self._value, self._dtype, self._round_to = val, dtype, round_to

    def __call__(self, data: Sequence[Any]) -> Any:
        parts = [_elements(item) for item in data]
        if len({part.ndim for part in parts}) > 1:
            raise ShapeError(
                f"Pad: samples of {sorted({part.ndim for part in parts})} dimensions; "
                "expected one number of dimensions for all."
            )
        dtype = dtype_name(self._dtype) if self._dtype is not None else _common_dtype(parts)
        result, memory = _new((len(parts), *self._extents(parts)), dtype)
        memory[...] = self._value
        for row, part in zip(memory, parts, strict=True):
            row[tuple(map(slice, part.shape))] = part
        return result

    def _extents(self, parts: list[numpy.ndarray]) -> list[int]:
        unit = self._round_to or 1
        return [
            -(-max(n) // unit) * unit for n in zip(*(part.shape for part in parts), strict=False)
        ]


class Group:
    """One function for each part of samples that are tuples: a list of what they give."""

    def __init__(self, *functions: Callable[[Sequence[Any]], Any]):
        if len(functions) == 1 and isinstance(functions[0], list | tuple):
            (functions,) = functions
        self._functions = functions

    def __call__(self, data: Sequence[tuple[Any, ...]]) -> list[Any]:
        if len(data[0]) != len(self._functions):
            raise ArgumentError(
                f"Group: samples of {len(data[0])} parts and {len(self._functions)} functions; "
                "give one function for each part."
            )
        parts = zip(*data, strict=True)
        return [function(part) for function, part in zip(self._functions, parts, strict=True)]


class AsList:
    """The samples as they are, in a list."""

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        return list(data)


_check_members(globals())

__all__ = ["AsList", "Group", "Pad", "Stack", "default_batchify_fn", "default_mp_batchify_fn"]
