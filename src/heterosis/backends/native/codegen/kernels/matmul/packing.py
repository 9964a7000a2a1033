"""Copies an operand into panels: `width` neighbours for each step of depth, back to back.

Packing makes the micro-kernel's reads consecutive whatever the strides are, so that transposed
and strided operands cost a different copy and nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from heterosis.backends.native.codegen.emit.access import first_lanes
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Branch,
    Function,
    Module,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.kernels.matmul.element import Element
from heterosis.backends.native.codegen.target import Target

_ROWS = 8


def pack_name(element: Element, width: int) -> str:
    return f"matmul.pack.{element.dtype}.{width}"


def emit_pack(module: Module, target: Target, element: Element, width: int) -> str:
    """Define `pack(source, across, along, panels, count, depth)` and return its name.

    It packs `count` rows of the operand (columns, for the right one), `across` elements apart,
    each `depth` long with elements `along` apart. In the last panel, the last row stands for those
    that are missing, too. They only reach results that nobody stores, but they are multiplied: what
    happened to lie there may be subnormal, which takes a hundred times as long.
    """
    name = pack_name(element, width)
    if module.defines(name):
        return name
    one = _emit_panel(module, target, element, width)
    f = module.function(
        name,
        [("source", PTR), ("across", I64), ("along", I64), ("panels", PTR)]
        + [("count", I64), ("depth", I64)],
        attributes=target.function_attributes,
    )
    source, across, along, panels, count, depth = f.parameters
    # Neighbouring panels lie in the same rows of memory: a few rows at a time keeps to few pages.
    beside = f.compare("eq", across, constant(I64, 1))
    stretch = f.select(beside, constant(I64, _ROWS), f.i64(f.max_size(depth, 1)))
    with f.loop(0, depth, stretch) as step, f.loop(0, count, width) as panel:
        at = f.add_size(f.mul_size(panel.index, across), f.mul_size(step.index, along))
        begin = f.offset(element.storage, source, at)
        before = f.add_size(f.mul_size(panel.index, depth), f.mul_size(step.index, width))
        into = f.offset(element.compute, panels, before)
        rest = f.min_size(width, f.sub_size(count, panel.index))
        steps = f.min_size(stretch, f.sub_size(depth, step.index))
        f.call(one, [begin, across, along, into, f.i64(rest), f.i64(steps)])
    f.ret()
    return name


def _emit_panel(module: Module, target: Target, element: Element, width: int) -> str:
    """One panel: the reading order follows the stride that is 1."""
    name = pack_name(element, width) + ".panel"
    f = module.function(
        name,
        [("source", PTR), ("across", I64), ("along", I64), ("panel", PTR)]
        + [("count", I64), ("depth", I64)],
        attributes=target.function_attributes,
    )
    source, across, along, panel, count, depth = f.parameters
    lanes = target.lanes(element.size)
    given, sizes = (f, element, source), (panel, width, lanes)
    neighbours = partial(_copy, *given, along, *sizes, depth)
    some_neighbours = partial(_copy_first, *given, along, *sizes, count, depth)
    transposed = partial(_transpose, *given, across, *sizes, count, depth)
    transposed_once = partial(_transpose_few, *given, across, *sizes, count, depth)
    one_by_one = partial(_gather, *given, across, along, panel, width, count, depth)
    full = f.compare("eq", count, constant(I64, width))
    beside = f.compare("eq", across, constant(I64, 1))
    deep = f.compare("sge", depth, constant(I64, lanes))
    rows = f.compare("eq", along, constant(I64, 1))
    ways: list[tuple[Value, Branch]]
    ways = [(f.binary("and", full, beside), neighbours), (f.binary("and", rows, deep), transposed)]
    if target.has_masks(element.storage.bits):
        ways += [(beside, some_neighbours), (rows, transposed_once)]
    f.first_of(ways, one_by_one)
    f.ret()
    return name


def pieces(width: int, lanes: int) -> list[tuple[int, int]]:
    """`width` cut into vectors of at most `lanes`, powers of two: (first element, lanes)."""
    found, at = [], 0
    while at < width:
        piece = min(lanes, 1 << (width - at).bit_length() - 1)
        found.append((at, piece))
        at += piece
    return found


def store_first(f: Function, value: Value, count: int, to: Value) -> None:
    """Store the first `count` lanes of a vector, and nothing behind them."""
    for begin, piece in pieces(count, value.type.lanes):
        lanes = range(begin, begin + piece)
        part = value if piece == value.type.lanes else f.shuffle(value, value, lanes)
        f.store(part, f.offset(value.type.scalar, to, begin))


def _copy(
    f: Function, element: Element, source: Value, along: Value, panel: Value,
    width: int, lanes: int, depth: Value,
) -> None:  # fmt: skip
    with f.loop(0, depth) as step:
        begin = f.offset(element.storage, source, f.mul_size(step.index, along))
        into = f.offset(element.compute, panel, f.mul_size(step.index, width))
        f.prefetch(f.offset(element.storage, begin, f.mul_size(along, _ROWS)))
        for at, piece in pieces(width, lanes):
            value = element.load(f, f.offset(element.storage, begin, at), piece)
            f.store(value, f.offset(element.compute, into, at))


def _copy_first(
    f: Function, element: Element, source: Value, along: Value, panel: Value,
    width: int, lanes: int, count: Value, depth: Value,
) -> None:  # fmt: skip
    """The same of the `count` first neighbours, the last of which stands behind them, too."""
    masks = [
        first_lanes(f, f.max_size(f.sub_size(count, at), 0), lanes) for at in range(0, width, lanes)
    ]
    with f.loop(0, depth) as step:
        begin = f.offset(element.storage, source, f.mul_size(step.index, along))
        into = f.offset(element.compute, panel, f.mul_size(step.index, width))
        last = element.load(f, f.offset(element.storage, begin, f.sub_size(count, 1)))
        for at, mask in zip(range(0, width, lanes), masks, strict=True):
            read = element.load(f, f.offset(element.storage, begin, at), lanes, mask)
            value = f.select(mask, read, f.splat(last, lanes))
            store_first(f, value, min(lanes, width - at), f.offset(element.compute, into, at))


def _gather(
    f: Function, element: Element, source: Value, across: Value, along: Value, panel: Value,
    width: int, count: Value, depth: Value,
) -> None:  # fmt: skip
    """One number after the other."""
    last = f.sub_size(count, 1)
    with f.loop(0, width) as row:
        there = f.mul_size(f.min_size(row.index, last), across)
        begin = f.offset(element.storage, source, there)
        into = f.offset(element.compute, panel, row.index)
        with f.loop(0, depth) as step:
            value = element.load(f, f.offset(element.storage, begin, f.mul_size(step.index, along)))
            f.store(value, f.offset(element.compute, into, f.mul_size(step.index, width)))


def _transpose(
    f: Function, element: Element, source: Value, across: Value, panel: Value,
    width: int, lanes: int, count: Value, depth: Value,
) -> None:  # fmt: skip
    """Blocks of `lanes` steps. The last begins early enough to end with the panel."""
    last_row = f.sub_size(count, 1)
    rows = [
        f.offset(element.storage, source, f.mul_size(f.min_size(row, last_row), across))
        for row in range(width)
    ]
    with f.loop(0, depth, lanes) as step:
        at = f.min_size(step.index, f.sub_size(depth, lanes))
        into = f.offset(element.compute, panel, f.mul_size(at, width))
        turned = [
            transpose(
                f,
                [element.load(f, f.offset(element.storage, row, at), lanes) for row in group],
                16 // element.size,
            )
            for group in (rows[first : first + lanes] for first in range(0, width, lanes))
        ]
        for position, columns in enumerate(zip(*turned, strict=True)):
            store_step(f, element, columns, into, position, width)


def _transpose_few(
    f: Function, element: Element, source: Value, across: Value, panel: Value,
    width: int, lanes: int, count: Value, depth: Value,
) -> None:  # fmt: skip
    """Fewer steps than a vector has lanes."""
    mask = first_lanes(f, depth, lanes)
    rows = [
        element.load(f, f.offset(element.storage, source, f.mul_size(row, across)), lanes, mask)
        for row in (f.min_size(number, f.sub_size(count, 1)) for number in range(width))
    ]
    groups = [rows[first : first + lanes] for first in range(0, width, lanes)]
    turned = [transpose(f, group, 16 // element.size) for group in groups]

    def store(columns: Sequence[Value], step: int) -> None:
        for group, column in enumerate(columns):
            at = f.offset(element.compute, panel, step * width + group * lanes)
            store_first(f, column, len(groups[group]), at)

    for step, columns in enumerate(zip(*turned, strict=True)):
        there = f.compare("slt", constant(I64, step), depth)
        f.if_else(there, partial(store, columns, step))


def store_step(
    f: Function, element: Element, columns: Sequence[Value], into: Value, step: int, width: int
) -> None:
    """Store one step of depth. A full store may run into the next step, written after it."""
    lanes = columns[0].type.lanes
    for group, column in enumerate(columns):
        at = step * width + group * lanes
        valid = min(lanes, width - group * lanes)
        if valid == lanes or at + lanes <= lanes * width:
            f.store(column, f.offset(element.compute, into, at))
            continue
        store_first(f, column, valid, f.offset(element.compute, into, at))
