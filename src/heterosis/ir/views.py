"""The view primitives: results whose elements are those of the operand, standing elsewhere.

Each names the method of `ir.strided.Strided` that does the same to offset and strides.
"""

from __future__ import annotations

from heterosis.ir.program import Node, Value, View, apply
from heterosis.ir.types import TensorType


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


def _typed(x: Value, shape: tuple[int, ...]) -> TensorType:
    return TensorType(shape, x.dtype, x.type.weak)


def reshape(x: Value, shape: tuple[int, ...]) -> Value:
    """The same elements in the same order; the caller has checked that the sizes agree."""
    return x if shape == x.shape else apply(RESHAPE, (x,), _typed(x, shape))


def broadcast(x: Value, shape: tuple[int, ...]) -> Value:
    """`x` repeated along extents of 1 and new leading dimensions."""
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
    return apply(SLICE, (x,), _typed(x, shape), starts=starts, steps=steps)


def diagonal(x: Value, axes: tuple[int, int], start: tuple[int, int], length: int) -> Value:
    """The diagonal through `start` of the two `axes`, as the last dimension."""
    kept = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    return apply(DIAGONAL, (x,), _typed(x, (*kept, length)), axes=axes, start=start)
