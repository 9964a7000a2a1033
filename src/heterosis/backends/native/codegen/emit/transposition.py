"""Squares of elements turned in registers: rows become columns."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.builder import Function, Value


def transpose(f: Function, rows: list[Value], chunk: int) -> list[Value]:
    """Turn up to `lanes` rows into `lanes` columns; missing rows give lanes nobody reads.

    First inside chunks of 16 bytes, where interleaving is one instruction, then whole chunks.
    """
    type_ = rows[0].type
    lanes = type_.lanes
    chunk = min(chunk, lanes)
    rows = rows + [Value(type_, "poison")] * (lanes - len(rows))
    inside = 1
    while inside < chunk:
        rows = interleaved(f, rows, chunk)
        inside *= 2
    stride = chunk
    while stride < lanes:
        rows = _exchange(f, rows, stride)
        stride *= 2
    return rows


def interleaved(f: Function, rows: list[Value], chunk: int) -> list[Value]:
    """Of each group of `chunk` rows, the first half with the second, inside chunks of lanes. With
    4, done twice, element j of row i of a group changes places with element i of row j."""
    return [
        row
        for first in range(0, len(rows), chunk)
        for i in range(first, first + chunk // 2)
        for row in _interleave(f, rows[i], rows[i + chunk // 2], chunk)
    ]


def _interleave(f: Function, x: Value, y: Value, chunk: int) -> tuple[Value, Value]:
    """Alternate the lanes of the chunks' lower halves, and those of their upper halves."""
    lanes = x.type.lanes
    low = [
        begin + i // 2 + lanes * (i % 2) for begin in range(0, lanes, chunk) for i in range(chunk)
    ]
    return f.shuffle(x, y, low), f.shuffle(x, y, [lane + chunk // 2 for lane in low])


def _exchange(f: Function, rows: list[Value], stride: int) -> list[Value]:
    """Rows `stride` apart swap: the first's odd groups of `stride` lanes, the second's even."""
    lanes = len(rows)
    low = [lane if not lane & stride else lanes + (lane ^ stride) for lane in range(lanes)]
    high = [lane | stride if not lane & stride else lanes + lane for lane in range(lanes)]
    turned = list(rows)
    for i in range(lanes):
        if not i & stride:
            x, y = rows[i], rows[i | stride]
            turned[i], turned[i | stride] = f.shuffle(x, y, low), f.shuffle(x, y, high)
    return turned
