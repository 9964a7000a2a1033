"""The view primitives: results whose elements are those of the operand, standing elsewhere.

Each names the method of `ir.strided.Strided` that does the same to offset and strides.
"""

from __future__ import annotations

from math import prod

from heterosis.ir.primitives.families import View
from heterosis.ir.program import Node, Value, apply
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ShapeError


def _result_shape(node: Node) -> tuple[int, ...]:
    return node.types[0].shape


RESHAPE = View("reshape", lambda node: ("reshape", (_result_shape(node),)))
BROADCAST = View("broadcast", lambda node: ("broadcast", (_result_shape(node),)))
TRANSPOSE = View("transpose", lambda node: ("transpose", (node.attributes["axes"],)))
SLICE = View(
    "slice",
    lambda node: (
        "slice",
        (node.attributes["starts"], node.attributes["steps"], _result_shape(node)),
    ),
)
DIAGONAL = View(
    "diagonal",
    lambda node: (
        "diagonal",
        (*node.attributes["axes"], _result_shape(node)[-1], node.attributes["start"]),
    ),
)
WINDOWS = View(
    "windows", lambda node: ("windows", (node.attributes["kernel"], node.attributes["steps"]))
)


def _check_inside(x: Value, extent: int, first: int, last: int) -> None:
    """Operations check their arguments; what slips through must not read other memory."""
    if not (0 <= first < extent and 0 <= last < extent):
        raise ShapeError(
            f"elements {first} to {last} of an extent of {extent}, in an array of shape {x.shape}; "
            "expected places inside of it."
        )


def _typed(x: Value, shape: tuple[int, ...]) -> TensorType:
    return TensorType(shape, x.dtype, x.type.weak)


def again(node: Node, x: Value) -> Value:
    """The same view, of `x` instead of what `node` shows."""
    return apply(node.primitive, (x,), _typed(x, node.types[0].shape), **node.attributes)


def reshape(x: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in the same order."""
    if prod(shape) != x.size:
        raise ShapeError(f"cannot give {x.size} elements of shape {x.shape} the shape {shape}.")
    return x if shape == x.shape else apply(RESHAPE, (x,), _typed(x, shape))


def broadcast(x: Value, shape: tuple[int, ...]) -> Value:
    """`x` repeated along extents of 1 and new leading dimensions."""
    pairs = zip(reversed(x.shape), reversed(shape), strict=False)
    if x.ndim > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(f"an array of shape {x.shape} does not broadcast to shape {shape}.")
    return x if shape == x.shape else apply(BROADCAST, (x,), _typed(x, shape))


def transpose(x: Value, axes: tuple[int, ...]) -> Value:
    """Dimension `i` of the result is dimension `axes[i]` of `x`."""
    if axes == tuple(range(x.ndim)):
        return x
    return apply(TRANSPOSE, (x,), _typed(x, tuple(x.shape[a] for a in axes)), axes=axes)


def slice_(
    x: Value, starts: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...]
) -> Value:
    """`shape[d]` elements from `starts[d]` on, `steps[d]` apart, along every dimension."""
    if all(shape):
        for extent, start, step, count in zip(x.shape, starts, steps, shape, strict=True):
            _check_inside(x, extent, start, start + step * (count - 1))
    return apply(SLICE, (x,), _typed(x, shape), starts=starts, steps=steps)


def check_assembled(node: Node) -> None:
    """Raise if a part of what ASSEMBLE makes would stand outside of it."""
    (whole,) = node.outputs
    parts = node.inputs[1:] if node.attributes["filled"] else node.inputs
    for part, (starts, steps) in zip(parts, node.attributes["places"], strict=True):
        slice_(whole, starts, steps, part.shape)


def diagonal(x: Value, axes: tuple[int, int], start: tuple[int, int], length: int) -> Value:
    """The diagonal through `start` of the two `axes`, as the last dimension."""
    if length:
        for axis, first in zip(axes, start, strict=True):
            _check_inside(x, x.shape[axis], first, first + length - 1)
    kept = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    return apply(DIAGONAL, (x,), _typed(x, (*kept, length)), axes=axes, start=start)


def windows(x: Value, kernel: tuple[int, ...], steps: tuple[int, ...]) -> Value:
    """Every window of `kernel` elements over the last axes, `steps` apart: (..., counts,
    kernel)."""
    lead = x.ndim - len(kernel)
    counts = tuple(
        (n - k) // step + 1 for n, k, step in zip(x.shape[lead:], kernel, steps, strict=True)
    )
    return apply(
        WINDOWS, (x,), _typed(x, (*x.shape[:lead], *counts, *kernel)), kernel=kernel, steps=steps
    )
