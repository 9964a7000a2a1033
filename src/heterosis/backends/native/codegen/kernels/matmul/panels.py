"""The product of rows as they lie with a packed right operand.

The numbers of a row must be neighbours. A tile reads as many rows at once as the micro-kernel has
of them, each a run of its own, so that packing would only move what is already in order. Rows that
would share lines of the cache are copied first, to where they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TypeAlias

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    LINE,
    PTR,
    SECOND_LEVEL,
    Function,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.epilogue import Position
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    SHARE_COPIES,
    ceil_div,
    core_function,
    depth_blocks,
    mode_of,
    round_up,
    share_count,
    share_grain,
    share_range,
)
from heterosis.backends.native.codegen.kernels.matmul.finish import store_run
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import (
    ACCUMULATE,
    FINAL,
    FRESH,
    PLACE,
    Fetching,
    Kernel,
    emit_edge_store,
    emit_finish,
    fetch_beside,
    has,
    multiply_add,
    row_of_panel,
    zeros,
)
from heterosis.backends.native.codegen.kernels.matmul.prepack import emit_pack_b, pack_parameters
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem

# Up to so many rows, these stay in the cache and the right operand passes by once.
SHARED_ROWS = 192
# How many tiles ahead the memory of results is fetched: a shallow tile is done before it is there.
_SOON = 2
_NEVER = 1 << 62  # the price of what cannot be
# Every row is read from an address of its own; for more of them general registers do not suffice.
TALLEST = 12


def emit_panels(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`.

    What is not as it has to be comes into the scratch memory first: a right operand that is not
    packed, or, beside a packed one, the rows of the left one.
    """
    assert problem.b_packed or problem.variant != "copied", "the scratch memory holds one of them"
    emit_panel_kernels(kernel, narrow=problem.narrow)
    f, v = core_function(kernel.module, kernel.target, problem, name)
    memory = Frame.allocate(f)
    if not problem.b_packed:
        emit_pack_b(kernel.module, kernel.target, f"{name}.pack", problem)
        sizes = [getattr(v, label) for label, _ in pack_parameters(problem)]
        f.call(f"{name}.pack", [v.call, v.b, v.scratch, *sizes])
        v.b = v.scratch
    if problem.variant == "copied":
        _copy_rows(kernel, f, v, f"{name}.copy", memory, alone=problem.over_batches)
        v.a, v.a_row = v.scratch, _pitch(f, kernel, v.k)
    depth, _ = depth_blocks(f, kernel, v.k)
    workers = f.i64(1) if problem.over_batches else abi.workers(f, v.call)
    row_shares, column_shares = shares_of(f, kernel, v, workers)
    frame = Frame(**vars(v), depth=depth, row_shares=row_shares, column_shares=column_shares)
    frame.save(f, memory)
    count = f.mul_size(row_shares, column_shares)
    grain = share_grain(f, f.mul_size(f.mul_size(v.m, v.n), v.k), count)
    share(f, v.call, f"{name}.share", memory, count, grain, alone=problem.over_batches)
    f.ret()
    _emit_share(kernel, f"{name}.share", frame, problem.narrow)


def copied_numbers(f: Function, kernel: Kernel, m: Size, k: Size) -> Size:
    """How many numbers the copies of rows take."""
    return f.mul_size(m, _pitch(f, kernel, k))


def _pitch(f: Function, kernel: Kernel, k: Size) -> Size:
    """How far apart copies of rows are: an odd number of lines, so that no two rows of a tile share
    one of the cache."""
    line = LINE // kernel.element.size
    lines = ceil_div(f, k, line)
    return f.mul_size(f.add_size(lines, f.sub_size(1, f.rem_size(lines, 2))), line)


def _copy_rows(
    kernel: Kernel, f: Function, v: SimpleNamespace, name: str, memory: Value, *, alone: bool
) -> None:
    """Copy the rows of the left operand into the scratch memory."""
    frame = Frame(a=v.a, a_row=v.a_row, k=v.k, to=v.scratch)
    frame.save(f, memory)
    share(f, v.call, name, memory, v.m, abi.grain_of(f, v.k, SHARE_COPIES), alone=alone)
    storage = kernel.element.storage
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, name)
    pitch, vector = _pitch(f, kernel, v.k), Type(storage.element, kernel.tile.lanes)
    with f.loop(begin, end) as row:
        source = f.offset(storage, v.a, f.mul_size(row.index, v.a_row))
        to = f.offset(storage, v.to, f.mul_size(row.index, pitch))
        store_run(f, None, source, to, v.k, vector)
    f.ret()


def shares_of(
    f: Function, kernel: Kernel, v: SimpleNamespace, workers: Size
) -> tuple[Value, Value]:
    """Into how many parts the rows are cut, and the columns; one of the two stays whole."""
    tile = kernel.tile
    work = f.mul_size(f.mul_size(v.m, v.n), v.k)
    by_rows = share_count(f, v.m, tile_rows(kernel), tile.block_rows, work, workers)
    by_columns = share_count(f, v.n, tile.columns, tile.block_columns, work, workers)
    few = f.compare("sle", f.i64(v.m), f.i64(SHARED_ROWS))
    wide = f.compare("sge", f.i64(v.n), f.i64(f.mul_size(v.m, 2)))
    columns = f.binary("and", few, wide)
    one = f.i64(1)
    return f.select(columns, one, f.i64(by_rows)), f.select(columns, f.i64(by_columns), one)


def _emit_share(kernel: Kernel, name: str, frame: Frame, narrow: int) -> None:
    """Each share: some rows times some panels, a block of depth after the other."""
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, name)
    tile, scratch = kernel.tile, scratch_tile(kernel, f)
    padded = round_up(f, v.n, tile.columns)
    with f.loop(begin, end) as part:
        down = f.i64(f.div_size(part.index, v.column_shares))
        across = f.i64(f.rem_size(part.index, v.column_shares))
        row, rows = share_range(f, down, v.row_shares, v.m, tile_rows(kernel))
        column, columns = share_range(f, across, v.column_shares, v.n, tile.columns)
        with f.loop(0, f.max_size(v.k, 1), v.depth) as step:
            depth = f.min_size(v.depth, f.sub_size(v.k, step.index))
            before = f.add_size(f.mul_size(step.index, padded), f.mul_size(column, depth))
            multiply_block(
                kernel, f, v, scratch, (row, rows), (column, columns), (step.index, depth),
                f.offset(kernel.element.compute, v.b, before), narrow=narrow,
            )  # fmt: skip
    f.ret()


def multiply_block(
    kernel: Kernel, f: Function, v: SimpleNamespace, scratch: Value, down: tuple[Size, Size],
    across: tuple[Size, Size], along: tuple[Size, Size], panels: Value, *, narrow: int,
    again: bool = False,
) -> None:  # fmt: skip
    """Rows times columns, a block of depth: the first of each, and how many. `panels` holds the
    columns packed; with `again` the first one is wanted after the last."""
    (row, rows), (column, columns), (at, depth) = down, across, along
    tile, storage, compute = kernel.tile, kernel.element.storage, kernel.element.compute
    left = f.offset(storage, v.a, f.add_size(f.mul_size(row, v.a_row), at))
    mode = mode_of(f, at, depth, v.k)
    with f.loop(0, columns, tile.columns) as j:
        here = f.add_size(column, j.index)
        to = f.add_size(f.mul_size(row, v.c_row), here)
        first = f.compare("eq", j.index, f.i64(0))
        following = None
        if again:
            behind = f.add_size(j.index, tile.columns)
            last = f.compare("sge", f.i64(behind), f.i64(columns))
            behind = f.select(last, f.i64(0), f.i64(behind))
            following = f.offset(compute, panels, f.mul_size(behind, depth))
        PanelProduct(
            EvenRows(left, v.a_row), runs=1, a_run=0, depth=depth,
            panel=f.offset(compute, panels, f.mul_size(j.index, depth)),
            to=f.offset(storage, v.c, to), c_row=v.c_row,
            rows=rows, width=f.sub_size(v.n, here),
            mode=f.select(first, f.binary("or", mode, constant(I64, FRESH)), mode),
            place=[v.call, v.batch, row, here], following=following, narrow=narrow,
        ).emit(kernel, f, scratch)  # fmt: skip


# -- one panel ------------------------------------------------------------------------------------

# Emits tiles: (kernel, function, its values, first row, last row, height, rows that there are).
EmitTiles: TypeAlias = Callable[[Kernel, Function, SimpleNamespace, Value, Value, int, Size], None]


@dataclass(frozen=True)
class EvenRows:
    """Rows that begin `step` elements apart."""

    first: Value
    step: Size

    code, label = "rows", ("a_row", I64)

    @property
    def where(self) -> Size:
        """What tells `code` where they begin, besides `first`: its parameter `label`."""
        return self.step

    def behind(self, f: Function, storage: Type, count: Size) -> EvenRows:
        """All but the first rows."""
        return EvenRows(f.offset(storage, self.first, f.mul_size(count, self.step)), self.step)

    def tiles(
        self, kernel: Kernel, f: Function, down: Sequence[Size]
    ) -> Callable[[Value], _Pairs | _Singles]:
        """From a row, the rows `down` behind it, of which each second one follows on the one
        before."""
        storage = kernel.element.storage
        pairs = kernel.target.adds_in_addresses and len(down) > 1
        behind = [f.mul_size(i, self.step) for i in (down[::2] if pairs else down)]
        apart = f.mul_size(f.sub_size(down[1], down[0]), self.step) if pairs else 0

        def at(row: Value) -> _Pairs | _Singles:
            first = f.offset(storage, self.first, f.mul_size(row, self.step))
            bases = [f.offset(storage, first, count) for count in behind]
            return _Pairs(bases, apart) if pairs else _Singles(bases)

        return at


@dataclass(frozen=True)
class ListedRows:
    """Rows that begin wherever it says in a list: `places` holds a number of elements for each."""

    first: Value
    places: Value

    code, label = "listed_rows", ("places", PTR)

    @property
    def where(self) -> Value:
        return self.places

    def behind(self, f: Function, storage: Type, count: Size) -> ListedRows:
        return ListedRows(self.first, f.offset(I64, self.places, count))

    def tiles(
        self, kernel: Kernel, f: Function, down: Sequence[Size]
    ) -> Callable[[Value], _Singles]:
        """From a row, the rows `down` behind it."""
        storage = kernel.element.storage

        def at(row: Value) -> _Singles:
            here = f.offset(I64, self.places, row)
            places = [f.load(I64, f.offset(I64, here, i), align=8) for i in down]
            return _Singles([f.offset(storage, self.first, place) for place in places])

        return at


@dataclass(frozen=True)
class _Pairs:
    """Rows of a tile, two and two `apart`: half as many addresses, which fit into registers and
    move on with the depth."""

    bases: list[Value]
    apart: Size

    @property
    def moving(self) -> list[Value]:
        """What a loop over the depth carries, to be passed to `number`."""
        return self.bases

    def number(
        self, f: Function, storage: Type, now: Sequence[Value], row: int, at: Value, step: int
    ) -> Value:
        """Where the number of `row` is for step `step` of the turn that begins at depth `at`."""
        here = f.offset(storage, now[row // 2], step)
        return f.offset(storage, here, self.apart) if row % 2 else here

    def behind(self, f: Function, storage: Type, count: Size) -> _Pairs:
        """The same, `count` numbers on."""
        return _Pairs([f.offset(storage, base, count) for base in self.bases], self.apart)


@dataclass(frozen=True)
class _Singles:
    """Rows of a tile that are anywhere: too many addresses to move, which stay as they are."""

    bases: list[Value]

    @property
    def moving(self) -> list[Value]:
        return []

    def number(
        self, f: Function, storage: Type, now: Sequence[Value], row: int, at: Value, step: int
    ) -> Value:
        return f.offset(storage, f.offset(storage, self.bases[row], at), step)

    def behind(self, f: Function, storage: Type, count: Size) -> _Singles:
        return _Singles([f.offset(storage, base, count) for base in self.bases])


def emit_panel_kernels(
    kernel: Kernel, rows: type[EvenRows | ListedRows] = EvenRows, *, narrow: int = 0
) -> None:
    """What `PanelProduct` calls for such rows, once a module; also for a last panel of `narrow`
    columns."""
    for each in (kernel, kernel.narrowed(narrow)) if narrow else (kernel,):
        if not kernel.module.defines(each.name(rows.code)):
            emit_rows(each, rows, rows.code, _emit_tiles)
    for each in (_plain(kernel), kernel):
        if not kernel.module.defines(each.name("edge")):
            emit_edge_store(each)


def tile_rows(kernel: Kernel) -> int:
    """How many rows a tile has here."""
    return min(kernel.tile.rows, TALLEST)


def rows_computed(tall: int, rows: int) -> int:
    """How many rows tiles of up to `tall` compute for so many: see `_whole_and_short`."""
    short = _short(tall)
    others = [rows - count * short for count in range(3 if short else 1)]
    return min(rows - n + max(n, -(-n // tall) * (tall - 1)) for n in others if n >= 0)


def scratch_tile(kernel: Kernel, f: Function) -> Value:
    """Room for a tile that reaches beyond the last column; call it at the start of a function."""
    return f.allocate(kernel.element.compute, tile_rows(kernel) * kernel.tile.columns)


def _plain(kernel: Kernel) -> Kernel:
    """The kernel without its epilogue."""
    return product_kernel(kernel.module, kernel.target, kernel.element.dtype)


@dataclass(frozen=True)
class PanelProduct:
    """Rows times one panel.

    A row is `runs` runs of `depth` neighbours, `a_run` apart, and may well overlap the next one.
    `width` columns of the panel exist, or more: if fewer than the panel has, then `narrow` at most,
    unless that is 0. The panel that is wanted next lies behind this one, unless it is `following`,
    which may be the same again.
    """

    left: EvenRows | ListedRows
    runs: Size
    a_run: Size
    depth: Size
    panel: Value
    to: Value
    c_row: Size
    rows: Size
    width: Size
    mode: Value
    place: list[Size | Value]
    following: Value | None = None
    narrow: int = 0

    def emit(self, kernel: Kernel, f: Function, scratch: Value) -> None:
        whole = f.compare("sge", f.i64(self.width), f.i64(kernel.tile.columns))
        f.if_else(
            whole,
            lambda: self.whole(kernel, f),
            lambda: self._last(kernel, f, scratch),
        )

    def _last(self, kernel: Kernel, f: Function, scratch: Value) -> None:
        """The same where fewer columns exist than a panel has."""
        if not self.narrow:
            self._in_part(kernel, kernel, f, scratch)
            return
        narrowed = kernel.narrowed(self.narrow)
        f.if_else(
            f.compare("eq", f.i64(self.width), f.i64(self.narrow)),
            lambda: self.whole(narrowed, f),
            lambda: self._in_part(kernel, narrowed, f, scratch),
        )

    def whole(self, kernel: Kernel, f: Function) -> None:
        """The same where all columns exist that the kernel computes."""
        into = [self.to, f.i64(self.c_row), f.i64(self.rows), self.mode]
        operands = self._operands(kernel, f, self.left)
        f.call(kernel.name(self.left.code), [*operands, *into, *map(f.i64, self.place)])

    def _operands(self, kernel: Kernel, f: Function, left: EvenRows | ListedRows) -> list[Value]:
        sizes = map(f.i64, (left.where, self.runs, self.a_run, self.depth))
        numbers = f.mul_size(f.mul_size(self.runs, self.depth), kernel.tile.columns)
        behind = f.offset(kernel.element.compute, self.panel, numbers)
        return [left.first, *sizes, self.panel, self.following or behind]

    def _in_part(self, kernel: Kernel, computing: Kernel, f: Function, scratch: Value) -> None:
        """Tile by tile, by way of a tile of scratch memory, to which sums come as they are. What is
        `computing` may leave out columns that do not exist."""
        tile, storage = kernel.tile, kernel.element.storage
        tallest = tile_rows(kernel)
        call, batch, row, column = map(f.i64, self.place)
        ends, ways = has(f, self.mode, FINAL), (kernel, _plain(kernel))
        edge = f.select(ends, *(Value(PTR, f"@{each.name('edge')}") for each in ways))
        with f.loop(0, self.rows, tallest) as i:
            height = f.i64(f.min_size(tallest, f.sub_size(self.rows, i.index)))
            left = self.left.behind(f, storage, i.index)
            place = [call, batch, f.i64(f.add_size(row, i.index)), column]
            into = [scratch, f.i64(tile.columns), height, f.i64(0)]
            f.call(computing.name(left.code), [*self._operands(kernel, f, left), *into, *place])
            to = f.offset(storage, self.to, f.mul_size(i.index, self.c_row))
            sizes = [f.i64(self.c_row), height, f.i64(self.width), self.mode]
            f.call_pointer(edge, [scratch, to, *sizes, *place])


def emit_rows(
    kernel: Kernel, kind: type[EvenRows | ListedRows], name: str, emit_tiles: EmitTiles
) -> None:
    """`<name>(a, where, runs, a_run, depth, b, following, c, c_row, rows, mode, call, batch, row,
    column)`.

    All rows times one panel, in tiles of two heights that differ by one, and up to two of two
    thirds of the height: together they fit nearly every number of rows. Where they do not, the last
    of the others is given more rows than there are.
    """
    tall = tile_rows(kernel)
    f = kernel.function(
        name,
        [("a", PTR), kind.label, ("runs", I64), ("a_run", I64), ("depth", I64), ("b", PTR)]
        + [("following", PTR), ("c", PTR), ("c_row", I64), ("rows", I64), ("mode", I64), *PLACE],
    )
    labels = ["a", "where", "runs", "a_run", "depth", "b", "following", "c", "c_row", "rows"]
    labels += ["mode", "call", "batch", "row", "column"]
    v = SimpleNamespace(**dict(zip(labels, f.parameters, strict=True)))
    if kernel.epilogue:
        kernel.epilogue.read_words(f, v.call)
    v.left = kind(v.a, v.where)
    v.accumulate, v.final = has(f, v.mode, ACCUMULATE), has(f, v.mode, FINAL)
    v.fresh = has(f, v.mode, FRESH)
    v.fetching = Fetching.shared_by(kernel, f, ceil_div(f, v.rows, tall))
    another = f.compare("ne", v.following, v.b)  # what comes again is there
    v.fetchers = f.select(another, v.fetching.tiles, constant(I64, 0))
    low = tall - 1
    reached, shortened = _whole_and_short(f, v.rows, tall)
    before = f.i64(f.sub_size(v.rows, shortened))
    emit_tiles(kernel, f, v, f.i64(0), reached, tall, v.rows)
    fitting = f.mul_size(f.div_size(f.sub_size(before, reached), low), low)
    whole = f.i64(f.add_size(reached, fitting))
    with f.loop(0, 2) as part:
        rest = f.compare("ne", part.index, f.i64(0))
        begin, end = f.select(rest, whole, reached), f.select(rest, before, whole)
        emit_tiles(kernel, f, v, begin, end, low, f.sub_size(end, begin))
    if _short(tall):
        emit_tiles(kernel, f, v, before, v.rows, _short(tall), v.rows)
    f.ret()


def _short(tall: int) -> int:
    """The height of tiles that is two thirds of the whole one; 0 where that is none."""
    return 0 if tall % 3 else tall // 3 * 2


def _whole_and_short(f: Function, rows: Value, tall: int) -> tuple[Value, Value]:
    """How many rows, the first, go into tiles of the whole height, and how many, the last, into
    short ones: whichever way computes the fewest. Tiles lower by one share the others."""
    short, low = _short(tall), tall - 1
    ways = []
    for count in range(3 if short else 1):
        others = f.i64(f.sub_size(rows, count * short))
        tiles = ceil_div(f, others, tall)
        high = f.max_size(0, f.sub_size(others, f.mul_size(tiles, low)))
        computed = f.max_size(others, f.mul_size(tiles, low))
        fits = f.compare("sge", others, f.i64(0))
        cost = f.select(fits, f.i64(f.add_size(computed, count * short)), f.i64(_NEVER))
        ways.append((cost, f.i64(f.mul_size(high, tall)), f.i64(count * short)))
    least, *best = ways[0]
    for cost, *way in ways[1:]:
        better = f.compare("slt", cost, least)
        least = f.select(better, cost, least)
        best = [f.select(better, new, old) for new, old in zip(way, best, strict=True)]
    return best[0], best[1]


def _emit_tiles(
    kernel: Kernel, f: Function, v: SimpleNamespace, begin: Value, end: Value, height: int,
    there: Size,
) -> None:  # fmt: skip
    """Tiles one below the other, of `height` rows, the last of them again if fewer are `there`: to
    compute one several times over costs less than code of its own."""
    element = kernel.element
    down = _rows_down(f, height, f.sub_size(f.min_size(height, there), 1))
    below = [f.mul_size(i, v.c_row) for i in down]
    left = v.left.tiles(kernel, f, down)
    with f.loop(begin, end, height) as i:
        to = f.offset(element.storage, v.c, f.mul_size(i.index, v.c_row))
        soon = f.offset(element.storage, to, f.mul_size(v.c_row, _SOON * height))
        for offset in below:
            pointer = f.offset(element.storage, soon, offset)
            f.prefetch(pointer, kernel.columns * element.size, write=True)
        later = f.add_size(v.row, f.add_size(i.index, _SOON * height))
        fetch_beside(kernel, f, Position(v.call, v.batch, later, v.column), down)
        after = f.add_size(i.index, height)
        sums = panel_sums(kernel, f, v, left(i.index), height, after)
        targets = [f.offset(element.storage, to, offset) for offset in below]
        at = [v.call, v.batch, f.add_size(v.row, i.index), v.column]
        emit_finish(
            kernel, f, targets, v.c_row, sums, len(kernel.vectors), v.accumulate, at, v.final, down
        )


def _rows_down(f: Function, height: int, lowest: Size) -> list[Size]:
    """Which rows a tile computes, down to the `lowest`: two and two neighbours, one of them again
    where there are too few."""
    second = f.min_size(1, lowest)
    highest = f.sub_size(lowest, second)
    firsts = [f.min_size(i, highest) for i in range(0, height - 1, 2)]
    rows = [row for first in firsts for row in (first, f.add_size(first, second))]
    return [*rows, f.min_size(height - 1, lowest)] if height % 2 else rows


def panel_sums(
    kernel: Kernel, f: Function, v: SimpleNamespace, left: _Pairs | _Singles, rows: int,
    after: Size,
) -> list[Value]:  # fmt: skip
    """A tile in registers: the `rows` of `left`, which end before row `after`, times the panel."""
    tile, storage = kernel.tile, kernel.element.storage
    ahead, fetches = _ahead(f, v, f.sub_size(after, rows))
    unrolled = f.round_down(v.depth, tile.unroll)
    with f.loop(0, v.runs, 1, [v.b, ahead, *zeros(kernel, rows)]) as run:
        here = left.behind(f, storage, f.mul_size(run.index, v.a_run))
        b, ahead, *sums = run.carried
        state = [ahead, b, *here.moving, *sums]
        with f.loop(0, unrolled, tile.unroll, state) as step:
            ahead, *state = step.carried
            fetch = partial(_fetch, kernel, f, v, rows, after, step.index, ahead)
            (ahead,) = f.if_else(fetches, fetch, lambda: [ahead])
            step.next = [ahead, *_steps(kernel, f, here, step.index, state, tile.unroll)]
        ahead, *state = step.results
        with f.loop(unrolled, v.depth, 1, state) as step:
            step.next = _steps(kernel, f, here, step.index, step.carried, 1)
        b, *rest = step.results
        run.next = [b, ahead, *rest[len(here.moving) :]]
    return run.results[2:]


def _fetch_rows(
    kernel: Kernel, f: Function, left: EvenRows, row: Size, height: int, at: Size
) -> None:
    """Fetch a few lines of one of the `height` rows from `row` on, in the turn that begins at depth
    `at`: all turns together fetch them all. Large operands come from memory, and the processor does
    not guess that a run of neighbours goes on in another row."""
    unroll, size, storage = kernel.tile.unroll, kernel.element.size, kernel.element.storage
    bits = (height - 1).bit_length()
    lines = max(1, (unroll * size << bits) // LINE)
    turn = f.i64(f.div_size(at, unroll))
    number = f.binary("and", turn, constant(I64, (1 << bits) - 1))
    start = f.mul_size(f.add_size(row, number), left.step)
    along = f.mul_size(f.binary("lshr", turn, constant(I64, bits)), lines * LINE // size)
    begin = f.offset(storage, left.first, f.add_size(start, along))
    f.prefetch(begin, lines * LINE, locality=SECOND_LEVEL)


def _ahead(f: Function, v: SimpleNamespace, row: Size) -> tuple[Value, Value]:
    """What of the next panel to fetch with the tile that begins at `row`, and whether it fetches
    anything: the first tiles fetch the panel, and those of fresh rows the next rows."""
    kernel, fetching = v.fetching.kernel, v.fetching
    part = fetching.fetched(f.mul_size(v.runs, f.round_down(v.depth, kernel.tile.unroll)))
    number = f.i64(ceil_div(f, row, tile_rows(kernel)))
    place = f.min_size(number, f.sub_size(fetching.tiles, 1))
    ahead = f.offset(kernel.element.compute, v.following, f.mul_size(place, part))
    return ahead, f.binary("or", v.fresh, f.compare("slt", number, v.fetchers))


def _fetch(
    kernel: Kernel, f: Function, v: SimpleNamespace, rows: int, after: Size, at: Value, ahead: Value
) -> Sequence[Value]:
    """Fetch what a tile of `rows` fetches in the turn that begins at depth `at`; gives what comes
    next of what lies `ahead`."""
    if isinstance(v.left, EvenRows):  # listed ones overlap: most of the next are here
        f.if_else(v.fresh, partial(_fetch_rows, kernel, f, v.left, after, rows, at))
    return [v.fetching.fetch(ahead)]


def _steps(
    kernel: Kernel, f: Function, left: _Pairs | _Singles, at: Value, state: Sequence[Value],
    count: int,
) -> list[Value]:  # fmt: skip
    """`count` steps of depth: a column of the rows times a row of the panel.

    Each second step goes through the rows from the last to the first. With five rows, whose sums
    are hardly enough to keep the multipliers busy, that takes 4% less (Zen 4).
    """
    element, tile = kernel.element, kernel.tile
    b, *rest = state
    moving, sums = rest[: len(left.moving)], rest[len(left.moving) :]
    for step in range(count):
        right = row_of_panel(kernel, f, b, step)
        vectors = len(kernel.vectors)
        rows = range(len(sums) // vectors)
        for row in reversed(rows) if step % 2 else rows:
            here = left.number(f, element.storage, moving, row, at, step)
            scale = f.load(element.compute, here)
            for j, vector in enumerate(right):
                place = row * vectors + j
                many = f.splat(scale, vector.type.lanes)
                sums[place] = multiply_add(f, element, many, vector, sums[place])
    onward = [f.offset(element.storage, pointer, count) for pointer in moving]
    return [f.offset(element.compute, b, count * tile.columns), *onward, *sums]
