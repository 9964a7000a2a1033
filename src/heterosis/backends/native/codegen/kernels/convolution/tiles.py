"""The arithmetic of Winograd's convolutions with three taps along each axis.

A tile of `m` x `m` results takes (m + 2) x (m + 2) elements of the input. Both the tile and the
filter are transformed, multiplied element by element, and the products transformed back:
`back ((filter g filter^T) * (input d input^T)) back^T`. The points are 0, 1, -1 and infinity for
m = 2. For m = 4 they are 0, infinity, and plus and minus the roots of 1/2 and 2: their powers stay
near each other, so that no more than two or three bits of accuracy are lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from heterosis.backends.native.codegen.emit.builder import Function, Type, Value, constant
from heterosis.backends.native.codegen.emit.transposition import interleaved, side_by_side

Line = Callable[[Function, Sequence[Value]], list[Value]]

TAPS = 3
_FEW = 4  # neighbours that are turned at a time
_NEAR, _FAR = math.sqrt(0.5), math.sqrt(2)  # points
# What filters are multiplied by, for each size of a tile.
FILTERS: dict[int, tuple[tuple[float, ...], ...]] = {
    2: ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    4: (
        (1, 0, 0),
        (-2 / 3, -2 / 3 * _NEAR, -1 / 3),
        (-2 / 3, 2 / 3 * _NEAR, -1 / 3),
        (1 / 6, 1 / 6 * _FAR, 1 / 3),
        (1 / 6, -1 / 6 * _FAR, 1 / 3),
        (0, 0, 1),
    ),
}


def span(m: int) -> int:
    """Elements along one side of the input of a tile."""
    return m + TAPS - 1


def _times(f: Function, number: float, x: Value, plus: Value) -> Value:
    return f.fma(constant(x.type, number), x, plus)


def _input_2(f: Function, d: Sequence[Value]) -> list[Value]:
    return [f.sub(d[0], d[2]), f.add(d[1], d[2]), f.sub(d[2], d[1]), f.sub(d[1], d[3])]


def _input_4(f: Function, d: Sequence[Value]) -> list[Value]:
    even, odd = _times(f, -2, d[2], d[4]), _times(f, -2, d[1], d[3])
    near, apart = _times(f, -0.5, d[2], d[4]), _times(f, -0.5, d[1], d[3])
    return [
        f.add(d[0], _times(f, -2.5, d[2], d[4])),
        _times(f, _NEAR, odd, even),
        _times(f, -_NEAR, odd, even),
        _times(f, _FAR, apart, near),
        _times(f, -_FAR, apart, near),
        f.add(d[1], _times(f, -2.5, d[3], d[5])),
    ]


def _back_2(f: Function, p: Sequence[Value]) -> list[Value]:
    both, apart = f.add(p[1], p[2]), f.sub(p[1], p[2])
    return [f.add(p[0], both), f.sub(apart, p[3])]


def _back_4(f: Function, p: Sequence[Value]) -> list[Value]:
    both, apart = f.add(p[1], p[2]), f.sub(p[1], p[2])
    far, wide = f.add(p[3], p[4]), f.sub(p[3], p[4])
    half, double = constant(both.type, 0.5), constant(both.type, 2)
    first, third = _times(f, 2, wide, apart), _times(f, 4, wide, f.mul(apart, half))
    return [
        f.add(p[0], f.add(both, far)),
        f.mul(first, constant(both.type, _NEAR)),
        _times(f, 0.5, both, f.mul(far, double)),
        _times(f, _NEAR, third, p[5]),
    ]


def _results_2(f: Function, y: Sequence[Value]) -> list[Value]:
    return [y[0], f.add(y[0], y[1]), f.sub(y[0], y[1]), f.neg(y[1])]


def _results_4(f: Function, y: Sequence[Value]) -> list[Value]:
    near, far = _times(f, 0.5, y[2], y[0]), _times(f, 2, y[2], y[0])
    odd, wide = _times(f, 0.5, y[3], y[1]), _times(f, 2, y[3], y[1])
    return [
        y[0],
        _times(f, _NEAR, odd, near),
        _times(f, -_NEAR, odd, near),
        _times(f, _FAR, wide, far),
        _times(f, -_FAR, wide, far),
        y[3],
    ]


INPUT: dict[int, Line] = {2: _input_2, 4: _input_4}
BACK: dict[int, Line] = {2: _back_2, 4: _back_4}
# The transpose of `BACK`: what the gradients of results are multiplied by.
RESULTS: dict[int, Line] = {2: _results_2, 4: _results_4}


# -- between neighbours in a row and one vector for each place in a tile --------------------------


def parted(f: Function, start: Value, m: int, lanes: int, kind: Type) -> list[Value]:
    """From `lanes` neighbouring tiles whose input begins at `start`: for each place along a side,
    its elements in all tiles."""
    further = _phases(f, f.offset(kind, start, m), m, lanes, kind)
    return [*_phases(f, start, m, lanes, kind), *further[: TAPS - 1]]


def _phases(f: Function, start: Value, m: int, lanes: int, kind: Type) -> list[Value]:
    """Elements j, j + m, j + 2 m, ... for each j below `m`."""
    if m == 2:
        wide = Type(kind.element, lanes)
        low, high = (f.load(wide, f.offset(kind, start, i * lanes)) for i in range(2))
        return [f.shuffle(low, high, range(j, 2 * lanes, 2)) for j in range(2)]
    return turned(f, [f.offset(kind, start, m * tile) for tile in range(lanes)], kind)


def turned(f: Function, starts: Sequence[Value], kind: Type) -> list[Value]:
    """Four vectors: of the four neighbours that begin at each of `starts`, the first ones, the
    second ones, and so on."""
    few, count = Type(kind.element, _FEW), len(starts)
    rows = [
        side_by_side(f, [f.load(few, starts[at]) for at in range(i, count, _FEW)])
        for i in range(_FEW)
    ]
    return interleaved(f, interleaved(f, rows, _FEW), _FEW)


def store_joined(f: Function, places: list[Value], start: Value) -> None:
    """The counterpart of `parted` for results: one vector for each place along a side of the
    tiles becomes a run of neighbours."""
    m, lanes, kind = len(places), places[0].type.lanes, places[0].type.scalar
    if m == 2:
        a, b = places
        halves = (range(first, first + lanes) for first in (0, lanes))
        both = [f.shuffle(a, b, [i // 2 + lanes * (i % 2) for i in half]) for half in halves]
        for i, run in enumerate(both):
            f.store(run, f.offset(kind, start, i * lanes))
        return
    turned = interleaved(f, interleaved(f, places, m), m)
    for i, row in enumerate(turned):
        for q in range(lanes // m):
            part = f.shuffle(row, row, range(q * m, (q + 1) * m))
            f.store(part, f.offset(kind, start, m * (i + m * q)))
