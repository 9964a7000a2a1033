"""Sequences of arrays, which are Python's lists, and values that may be missing, which are None."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx.format import Graph
from heterosis.models.onnx.operators.table import Host, Run, operator
from heterosis.models.onnx.values import array
from heterosis.runtime.errors import FormatError


@operator("SequenceEmpty")
def _empty(*, dtype: int = 1) -> list[Any]:
    return []


@operator("SequenceConstruct")
def _construct(*items: Any) -> list[Any]:
    return list(items)


@operator("SequenceLength")
def _length(items: Any) -> numpy.ndarray:
    return numpy.array(len(items))


@operator("SequenceAt")
def _at(items: Any, position: Host) -> Any:
    return items[_place(items, position, len(items) - 1)]


@operator("SequenceInsert")
def _insert(items: Any, item: Any, position: Host | None = None) -> list[Any]:
    at = len(items) if position is None else _place(items, position, len(items))
    return [*items[:at], item, *items[at:]]


@operator("SequenceErase")
def _erase(items: Any, position: Host | None = None) -> list[Any]:
    at = len(items) - 1 if position is None else _place(items, position, len(items) - 1)
    return [*items[:at], *items[at + 1 :]]


def _place(items: list[Any], position: numpy.ndarray, last: int) -> int:
    at = int(position.item())
    if not -len(items) <= at <= last:
        raise FormatError(f"position {at} in a sequence of {len(items)}.")
    return at if at >= 0 else at + len(items)


@operator("ConcatFromSequence")
def _concatenated(items: Any, *, axis: int, new_axis: int = 0) -> Any:
    return np.stack(items, axis) if new_axis else np.concatenate(items, axis)


@operator("SplitToSequence")
def _split(x: Any, parts: Host | None = None, *, axis: int = 0, keepdims: int = 1) -> list[Any]:
    extent = x.shape[axis]
    if parts is None:
        rows = np.split(x, extent, axis)
        return list(rows) if keepdims else [np.squeeze(row, axis) for row in rows]
    if parts.ndim == 0:
        return list(np.split(x, [*range(int(parts), extent, int(parts))], axis))
    ends = numpy.cumsum(parts)
    if int(ends[-1]) != extent:
        raise FormatError(f"parts of {parts.tolist()} do not make up {extent}.")
    return list(np.split(x, ends[:-1].tolist(), axis))


@operator("SequenceMap", since=17)
def _mapped(items: Any, *further: Any, body: Graph, _run: Run) -> tuple[Any, ...]:
    turns = [
        _run(body, item, *(f[i] if isinstance(f, list) else f for f in further))
        for i, item in enumerate(items)
    ]
    return tuple([array(turn[i]) for turn in turns] for i in range(len(body.outputs)))


@operator("Optional")
def _optional(value: Any = None, *, type: bytes = b"") -> Any:
    return value


@operator("OptionalGetElement")
def _element(value: Any) -> Any:
    if value is None:
        raise FormatError("the value that is asked for is missing.")
    return value


@operator("OptionalHasElement")
def _has_element(value: Any = None) -> numpy.ndarray:
    return numpy.array(value is not None)
