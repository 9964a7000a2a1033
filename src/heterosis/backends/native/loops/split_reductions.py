"""A reduction to one element, cut into pieces of equal length that threads can share."""

from __future__ import annotations

from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, Node, Value, apply, apply_many
from heterosis.ir.types import TensorType

# A reduction longer than twice this, with no other dimension to share out, is cut into pieces.
# The length does not depend on the number of threads, so neither does the result.
PIECE = 1 << 15


def split_reduction(node: Node, length: int) -> tuple[Value, ...]:
    """What `node` computes, as reductions of pieces and a reduction of their results."""
    flat = tuple(views.reshape(x, (x.size,)) for x in node.inputs)
    count, rest = divmod(flat[0].size, length)
    parts = [_reduce(node, tuple(_piece(x, 0, (count, length)) for x in flat), axis=1)]
    if rest:
        last = tuple(_piece(x, count * length, (1, rest)) for x in flat)
        parts.append(_reduce(node, last, axis=1))
    joined = tuple(_side_by_side(results) for results in zip(*parts, strict=True))
    return _reduce(node, joined, axis=0)


def _piece(x: Value, start: int, shape: tuple[int, int]) -> Value:
    return views.reshape(views.slice_(x, (start,), (1,), (shape[0] * shape[1],)), shape)


def _reduce(node: Node, operands: tuple[Value, ...], axis: int) -> tuple[Value, ...]:
    shape = tuple(n for a, n in enumerate(operands[0].shape) if a != axis)
    types = tuple(TensorType(shape, t.dtype) for t in node.types)
    return apply_many(node.primitive, operands, types, axes=(axis,))


def _side_by_side(parts: tuple[Value, ...]) -> Value:
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + part.size)
    places = tuple(((start,), (1,)) for start in starts[:-1])
    type_ = TensorType((starts[-1],), parts[0].dtype)
    return apply(ASSEMBLE, parts, type_, places=places, filled=False)
