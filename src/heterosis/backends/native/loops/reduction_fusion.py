"""Which reductions run as a pass of a nest that uses their results, instead of in a nest before it.

A nest goes over its kept dimensions and, within each of their points, over the reduced ones. Where
a reduction's result is repeated along the dimensions that it was reduced over, as in a softmax,
both do that over the same points.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import prod

from heterosis.backends.native.loops.split_reductions import PIECE
from heterosis.ir.primitives.families import Elementwise, Reduction, Scan, View
from heterosis.ir.program import Node, Value
from heterosis.ir.strided import Move, Strided, moved


def reductions(
    value: Value, moves: tuple[Move, ...], places: Container[Value]
) -> Iterator[tuple[Value, tuple[Move, ...]]]:
    """Reductions that could run inside a nest for `value`, with the moves between them and it."""
    seen: set[Value] = set()
    stack = [(value, moves)]
    while stack:
        value, moves = stack.pop()
        primitive = value.node.primitive
        if value in seen or value in places:
            continue
        seen.add(value)
        if isinstance(primitive, Elementwise):
            stack.extend((v, moves) for v in value.node.inputs)
        elif isinstance(primitive, View):
            stack.append((value.node.inputs[0], (primitive.move(value.node), *moves)))
        elif isinstance(primitive, Reduction) and not isinstance(primitive, Scan):
            yield value, moves


def reduced_shape(node: Node) -> tuple[int, ...]:
    """The extents that a reduction goes over."""
    return tuple(node.inputs[0].shape[a] for a in node.attributes["axes"])


def repeated_along(
    value: Value, moves: tuple[Move, ...], shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The dimensions of loops over `shape` that a reduction's result is repeated along, if the
    reduction fits the nest.

    It fits where those dimensions are exactly the reduced ones, or where there are none.
    """
    reduced = reduced_shape(value.node)
    strided = moved(Strided.contiguous(value.shape), moves)
    if strided is None:
        return None
    along = tuple(a for a, n in enumerate(shape) if n > 1 and strided.strides[a] == 0)
    kept = tuple(n for a, n in enumerate(shape) if a not in along)
    there = tuple(strided.strides[a] for a in range(len(shape)) if a not in along)
    exact = Strided(kept, there, strided.offset)
    fits = not along or tuple(shape[a] for a in along) == reduced
    whole = prod(kept) == value.size and not strided.offset and exact.is_contiguous
    if not fits or not whole:
        return None
    if prod(kept) < 8 and prod(reduced) > 2 * PIECE:
        # Too few points to share out: cut the reduction into pieces instead, in a nest of
        # its own, unless this is that nest already.
        return None if along or prod(kept) == 1 else along
    return along


def is_aligned(
    value: Value, moves: tuple[Move, ...], kept: tuple[int, ...], reduced: tuple[int, ...]
) -> bool:
    """Whether a reduction can run over the reduced dimensions of a nest with these loops."""
    if not reduced or reduced_shape(value.node) != reduced:
        return False
    strided = moved(Strided.contiguous(value.shape), moves)
    if strided is None or strided.offset or prod(kept) != value.size:
        return False
    split = len(kept)
    if any(s and n > 1 for n, s in zip(reduced, strided.strides[split:], strict=True)):
        return False
    return Strided(kept, strided.strides[:split]).is_contiguous
