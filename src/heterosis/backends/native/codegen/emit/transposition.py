"""Elements that change places in registers: vectors laid end to end, squares that are turned."""

from __future__ import annotations

from collections.abc import Sequence

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


def side_by_side(f: Function, parts: list[Value]) -> Value:
    """Vectors of equal length laid end to end; their number is a power of two."""
    while len(parts) > 1:
        length = 2 * parts[0].type.lanes
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [f.shuffle(a, b, range(length)) for a, b in pairs]
    return parts[0]


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


def taken_apart(f: Function, rows: list[Value]) -> list[Value]:
    """The columns of a matrix with as many rows as a vector has lanes, all of it in a row in as
    many vectors as it has columns.

    By one factor of that number after the other: to take six apart at once would be thirty shuffles
    and not eighteen.
    """
    count = len(rows)
    if count == 1:
        return rows
    factor, lanes = _factor(count), rows[0].type.lanes
    columns = list(rows)
    groups = [
        [
            _picked(f, rows[i : i + factor], range(first, lanes * factor, factor))
            for first in range(factor)
        ]
        for i in range(0, count, factor)
    ]
    for first in range(factor):
        columns[first::factor] = taken_apart(f, [group[first] for group in groups])
    return columns


def put_together(f: Function, columns: list[Value]) -> list[Value]:
    """The way back: the matrix that has these columns, in a row."""
    count = len(columns)
    if count == 1:
        return columns
    factor, lanes = _factor(count), columns[0].type.lanes
    parts = [put_together(f, columns[first::factor]) for first in range(factor)]
    turned = [place % factor * lanes + place // factor for place in range(lanes * factor)]
    return [
        _picked(f, group, turned[first : first + lanes])
        for group in map(list, zip(*parts, strict=True))
        for first in range(0, lanes * factor, lanes)
    ]


def _factor(count: int) -> int:
    return next(i for i in range(2, count + 1) if count % i == 0)


def _picked(f: Function, vectors: Sequence[Value], places: Sequence[int]) -> Value:
    """The lanes at these places of some vectors, counted through."""
    lanes = vectors[0].type.lanes
    found = vectors[0]
    for number, vector in enumerate(vectors[1:], 1):
        chosen = [
            lanes + place % lanes if place // lanes == number
            else place if number == 1 and place < lanes
            else i
            for i, place in enumerate(places)
        ]  # fmt: skip
        found = f.shuffle(found, vector, chosen)
    return found
