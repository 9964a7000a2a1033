"""Values that show the elements of others, standing elsewhere."""

from __future__ import annotations

from collections.abc import Container

from heterosis.ir.primitives.families import View
from heterosis.ir.primitives.rearranging import (
    BROADCAST,
    DIAGONAL,
    RESHAPE,
    SLICE,
    TRANSPOSE,
    WINDOWS,
    along_diagonal,
    repeated,
    reshaped,
    sliced,
    transposed,
    windowed,
)
from heterosis.ir.program import Node, Value, apply
from heterosis.ir.strided import Move
from heterosis.ir.types import TensorType

__all__ = [
    "BROADCAST", "DIAGONAL", "RESHAPE", "SLICE", "TRANSPOSE", "WINDOWS", "again", "are_equal",
    "broadcast", "diagonal", "reshape", "slice_", "transpose", "unviewed", "windows",
]  # fmt: skip


def unviewed(value: Value, known: Container[Value] = ()) -> tuple[Value, list[Move]]:
    """What `value` is a view of, no further than one of the `known`, and how it shows that."""
    moves: list[Move] = []
    while isinstance(value.node.primitive, View) and value not in known:
        moves.insert(0, value.node.primitive.move(value.node))
        value = value.node.inputs[0]
    return value, moves


def again(node: Node, x: Value) -> Value:
    """The same view, of `x` instead of what `node` shows."""
    type_ = TensorType(node.types[0].shape, x.dtype, x.type.weak)
    return apply(node.primitive, (x,), type_, **node.attributes)


def reshape(x: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in the same order."""
    type_ = reshaped(x.type, shape)
    return x if are_equal(shape, x.shape) else apply(RESHAPE, (x,), type_)


def broadcast(x: Value, shape: tuple[int, ...]) -> Value:
    """`x` repeated along extents of 1 and new leading dimensions."""
    type_ = repeated(x.type, shape)
    return x if are_equal(shape, x.shape) else apply(BROADCAST, (x,), type_)


def are_equal(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether shapes are equal: extents of as many dimensions alone are compared."""
    return len(shape) == len(other) and shape == other


def transpose(x: Value, axes: tuple[int, ...]) -> Value:
    """Dimension `i` of the result is dimension `axes[i]` of `x`."""
    if axes == tuple(range(x.ndim)):
        return x
    return apply(TRANSPOSE, (x,), transposed(x.type, axes), axes=axes)


def slice_(
    x: Value, starts: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...]
) -> Value:
    """`shape[d]` elements from `starts[d]` on, `steps[d]` apart, along every dimension."""
    return apply(SLICE, (x,), sliced(x.type, starts, steps, shape), starts=starts, steps=steps)


def diagonal(x: Value, axes: tuple[int, int], start: tuple[int, int], length: int) -> Value:
    """The diagonal through `start` of the two `axes`, as the last dimension."""
    type_ = along_diagonal(x.type, axes, start, length)
    return apply(DIAGONAL, (x,), type_, axes=axes, start=start)


def windows(x: Value, kernel: tuple[int, ...], steps: tuple[int, ...]) -> Value:
    """Every window of `kernel` elements over the last axes, `steps` apart: (..., counts,
    kernel)."""
    return apply(WINDOWS, (x,), windowed(x.type, kernel, steps), kernel=kernel, steps=steps)
