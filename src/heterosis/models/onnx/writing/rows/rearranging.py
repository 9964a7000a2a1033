"""Views: reshapes, transposes, slices, diagonals and windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from heterosis.ir.primitives.rearranging import (
    BROADCAST,
    DIAGONAL,
    RESHAPE,
    SLICE,
    TRANSPOSE,
    WINDOWS,
)
from heterosis.ir.program import Node
from heterosis.ir.sizes import Size
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.broadcasting import operands_of
from heterosis.models.onnx.writing.sizes import Extent
from heterosis.models.onnx.writing.tables import row

_BEFORE_ALL = -(2**62)  # where a slice ends that goes backwards, to the first element


@row(RESHAPE)
def _reshape(writer: ProgramWriter, node: Node) -> str:
    (value,), (name,) = operands_of(node), writer.operands(node)
    return reshaped(writer, name, value.shape, node.types[0].shape)


def reshaped(
    writer: ProgramWriter, name: str, old: Sequence[Extent], shape: Sequence[Extent]
) -> str:
    """The same elements under another shape."""
    if tuple(old) == tuple(shape):
        return name
    sized = [axis for axis, extent in enumerate(shape) if isinstance(extent, Size)]
    if len(sized) == 1 and 0 not in shape:  # open extents are never 0
        numbers = [extent if isinstance(extent, int) else -1 for extent in shape]
        return writer.node("Reshape", name, writer.graph.whole(*numbers))
    return writer.node("Reshape", name, writer.sizes.shape(shape), allowzero=1)


@row(BROADCAST)
def _broadcast(writer: ProgramWriter, node: Node) -> str:
    (name,) = writer.operands(node)
    if node.inputs[0].shape == node.types[0].shape:
        return name
    return writer.node("Expand", name, writer.sizes.shape(node.types[0].shape))


@row(TRANSPOSE)
def _transpose(writer: ProgramWriter, node: Node) -> str:
    (name,) = writer.operands(node)
    return transposed(writer, name, node.attributes["axes"])


def transposed(writer: ProgramWriter, name: str, axes: Sequence[int]) -> str:
    """Dimensions in another order."""
    if list(axes) == list(range(len(axes))):
        return name
    return writer.node("Transpose", name, perm=list(axes))


@row(SLICE)
def _slice(writer: ProgramWriter, node: Node) -> str:
    (name,) = writer.operands(node)
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    return sliced(writer, name, node.inputs[0].shape, starts, steps, node.types[0].shape)


def sliced(
    writer: ProgramWriter,
    name: str,
    old: Sequence[Extent],
    starts: Sequence[Extent],
    steps: Sequence[int],
    shape: Sequence[Extent],
) -> str:
    """`shape[d]` elements from `starts[d]` on, `steps[d]` apart."""
    firsts: list[Extent] = []
    ends: list[Extent] = []
    strides: list[int] = []
    axes: list[int] = []
    for axis, (extent, start, step, count) in enumerate(
        zip(old, starts, steps, shape, strict=True)
    ):
        if count == extent and start == 0 and (step == 1 or count == 1):
            continue
        start, end, step = _range(start, step, count)
        firsts.append(start)
        ends.append(end)
        strides.append(step)
        axes.append(axis)
    if not axes:
        return name
    row, shape_of = writer.graph.whole, writer.sizes.shape
    return writer.node("Slice", name, shape_of(firsts), shape_of(ends), row(*axes), row(*strides))


def _range(start: Extent, step: int, count: Extent) -> tuple[Extent, Extent, int]:
    """Where a slice begins and ends, and its step."""
    if count == 0:
        return 0, 0, 1
    if count == 1:
        return start, start + 1, 1
    last = start + step * (count - 1)
    if step > 0:
        return start, last + 1, step
    # What is below 0 would count from the end.
    return start, last - 1 if isinstance(last, int) and last > 0 else _BEFORE_ALL, step


@row(DIAGONAL)
def _diagonal(writer: ProgramWriter, node: Node) -> str:
    """Of rows that stand one after another, every so-many-th element."""
    (name,), shape = writer.operands(node), node.inputs[0].shape
    axes, (first, second) = node.attributes["axes"], node.attributes["start"]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    name = transposed(writer, name, [*kept, *axes])
    lead, (rows, columns) = [shape[axis] for axis in kept], (shape[axis] for axis in axes)
    name = reshaped(writer, name, [*lead, rows, columns], [*lead, rows * columns])
    zeros, ones = [0] * len(lead), [1] * len(lead)
    start, result = first * columns + second, node.types[0].shape
    if isinstance(columns, Size):  # a step is a number
        return _places_along(writer, name, start, columns + 1, result)
    return sliced(
        writer, name, [*lead, rows * columns], [*zeros, start], [*ones, columns + 1], result
    )


def _places_along(
    writer: ProgramWriter, name: str, start: Extent, step: Extent, shape: Sequence[Extent]
) -> str:
    """Of the last axis, elements from `start` on, `step` apart."""
    sizes = writer.sizes
    places = writer.node("Mul", writer.places(shape[-1]), sizes.row(step))
    places = writer.node("Add", places, sizes.row(start))
    return writer.node("Gather", name, places, axis=len(shape) - 1)


@row(WINDOWS)
def _windows(writer: ProgramWriter, node: Node) -> str:
    (name,), ndim = writer.operands(node), node.inputs[0].ndim
    kernel, steps = node.attributes["kernel"], node.attributes["steps"]
    rank = len(kernel)
    lead = ndim - rank
    counts = node.types[0].shape[lead : lead + rank]
    for i in reversed(range(rank)):  # each axis becomes two: the windows, and places in them
        begins = _multiples(writer, counts[i], steps[i])
        within = writer.array(numpy.arange(kernel[i]), "int64")
        name = writer.node("Gather", name, writer.node("Add", begins, within), axis=lead + i)
    windows = [lead + 2 * i for i in range(rank)]
    return transposed(writer, name, [*range(lead), *windows, *(axis + 1 for axis in windows)])


def _multiples(writer: ProgramWriter, count: Extent, step: int) -> str:
    """A column of 0, step, 2 step, ..."""
    if not isinstance(count, Size):
        return writer.array(step * numpy.arange(count)[:, None], "int64")
    places = writer.node("Unsqueeze", writer.places(count), writer.graph.whole(1))
    return writer.node("Mul", places, writer.graph.whole(step))


__all__ = ["reshaped", "sliced", "transposed"]
