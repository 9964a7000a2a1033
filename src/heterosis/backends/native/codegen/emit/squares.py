"""Loads whose neighbours lie along another loop than the vectors', as those of a transpose.

One by one, each element of a vector comes from a cache line of its own, which is gone before its
next element is asked for. So squares are read, as many rows as a vector has lanes, turned in
registers and put aside in the order of the vectors: each line is read once.
"""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.nest import Apply, Load, Nest, Number, Operand, Slot
from heterosis.ir.table_sizes import roughly
from heterosis.ir.traced_sizes import is_traced

# A body with much to compute waits little for what it loads, and is written once more.
_FEW_STEPS, _FEW_LOADS, _MOST = 8, 4, 16


@dataclass(frozen=True)
class Turned:
    """Operands, by the steps that load them, that are read along the loop `level`, which is not the
    vectors'."""

    level: int
    loads: dict[int, Operand]

    def falls(self, operand: Operand) -> bool:
        """Whether the elements of an operand go backwards through memory along that loop."""
        return is_known(-1, operand.strides[self.level])


def turned_loads(nest: Nest) -> Turned | None:
    """What to read in squares, if it is worth it and all else allows it. In code for any size it
    is worth it where strides of 1 are known."""
    across = len(nest.kept) - 1
    if nest.vector != "kept" or nest.reduced:
        return None
    if any(
        s.indices or s.running or not is_known(1, s.operand.strides[across]) for s in nest.stores
    ):
        return None
    if any(isinstance(s, Load) and s.indices for s in nest.steps):
        return None
    loads = {i: s.operand for i, s in enumerate(nest.steps) if isinstance(s, Load)}
    apart = {i: o for i, o in loads.items() if not is_along(o.strides[across])}
    applied = sum(isinstance(s, Apply) for s in nest.steps)
    if not apart or len(apart) > _FEW_LOADS or applied > _FEW_STEPS:
        return None
    written = {s.operand.buffer for s in nest.stores}
    if any(o.buffer in written for o in apart.values()):  # a square is read before it is written
        return None
    levels = {_run(o) for o in apart.values()}
    level = levels.pop()
    if levels or level is None or any(_is_short(nest.kept[at]) for at in (level, across)):
        return None
    return Turned(level, apart)


def side_of_squares(lanes: int) -> int:
    """How many vectors, of how many of the lanes that they may have, are turned in registers; 0 for
    none."""
    return min(lanes, _MOST) if lanes > 1 else 0


def is_known(number: int, stride: Number) -> bool:
    """Whether a stride is this number at all sizes."""
    return not is_traced(stride) and stride == number


def is_along(stride: Number) -> bool:
    """Whether vectors are loaded without gaps, or are one element in every lane."""
    return any(is_known(number, stride) for number in (-1, 0, 1))


def _run(operand: Operand) -> int | None:
    """The loop along which its elements are neighbours."""
    strides = enumerate(operand.strides)
    return next((at for at, stride in strides if is_known(1, stride) or is_known(-1, stride)), None)


def _is_short(extent: Number) -> bool:
    """Whether there is no square. Where others part the sizes, too: there are to be few ranges."""
    if isinstance(extent, Slot):
        return False
    return (roughly(extent) if is_traced(extent) else extent) < _MOST
