"""The product of large matrices: both operands packed, blocks sized for the caches.

One operand is packed once and shared by all threads, the other is packed by every thread, one
block at a time, into memory of its own. With many rows the right operand is the shared one and
the shares of the work are blocks of rows; with few rows it is the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Function, Module, Size, Value
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import (
    emit_macro_kernel,
    finish,
    product_kernel,
)
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import ACCUMULATE, FINAL, Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import emit_pack, pack_name
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem
from heterosis.backends.native.codegen.target import Target

# Multiplications below which a share is not worth waking a thread for, and copies likewise.
_SHARE_WORK = 1 << 18
SHARE_COPIES = 1 << 14
# Shares a thread should find, so that one that is held up does not hold up the rest.
_SHARES_PER_WORKER = 4
# Blocks of depth that are packed before the multiplication begins.
_DEPTH_BLOCKS = 16


@dataclass(frozen=True)
class Blocking:
    """The sizes of all blocks; numbers, or values of the function that computes them."""

    depth: Size  # of one block
    stretch: Size  # depth that is packed at a time, whole blocks
    shares: Size  # that the rows are cut into (or the columns, if they are shared out)
    columns: Size  # of the right operand that are packed at a time
    shared: Size  # numbers in the packed operand that all threads read
    private: Size  # numbers in one thread's block of the other


def round_up(f: Function, size: Size, step: int) -> Size:
    return f.mul_size(ceil_div(f, size, step), step)


def ceil_div(f: Function, size: Size, step: Size) -> Size:
    return f.div_size(f.sub_size(f.add_size(size, step), 1), step)


def evenly(f: Function, size: Size, largest: Size, step: int) -> Size:
    """The size of the equal parts, multiples of `step`, that `size` is cut into."""
    parts = f.max_size(1, ceil_div(f, size, largest))
    return f.max_size(step, round_up(f, ceil_div(f, size, parts), step))


def depth_blocks(f: Function, kernel: Kernel, k: Size) -> tuple[Size, Size]:
    """The depth of one block, and the depth of all blocks that are packed at a time."""
    if not kernel.element.splits_depth:
        whole = f.max_size(k, 1)
        return whole, whole
    depth = evenly(f, k, kernel.tile.depth, 8)
    blocks = f.max_size(1, ceil_div(f, k, depth))
    return depth, f.mul_size(depth, f.min_size(_DEPTH_BLOCKS, blocks))


def share_count(
    f: Function, extent: Size, panel: int, largest: Size, work: Size, workers: Size
) -> Size:
    """How many shares to cut `extent` into: a multiple of the workers, none above `largest`.

    Equal shares matter more than many: one share too many is a turn with one thread at work.
    """
    panels = f.max_size(1, ceil_div(f, extent, panel))
    least = ceil_div(f, panels, f.div_size(largest, panel))
    worth = f.max_size(1, f.div_size(work, _SHARE_WORK))
    number = f.max_size(least, f.min_size(worth, f.mul_size(workers, _SHARES_PER_WORKER)))
    several = f.min_size(1, f.sub_size(number, 1))
    even = f.mul_size(f.mul_size(ceil_div(f, number, workers), workers), several)
    return f.min_size(panels, f.max_size(1, even))


def share_grain(f: Function, work: Size, shares: Size) -> Size:
    """How many of the `shares` of so many multiplications to do at a time."""
    return abi.grain_of(f, f.div_size(work, shares), _SHARE_WORK // 2)


def share_range(
    f: Function, index: Value, shares: Size, extent: Size, panel: int
) -> tuple[Size, Size]:
    """Where share `index` begins and how long it is; shares differ by one panel at most."""
    panels = ceil_div(f, extent, panel)
    begin = f.mul_size(f.div_size(f.mul_size(index, panels), shares), panel)
    following = f.add_size(index, 1)
    end = f.mul_size(f.div_size(f.mul_size(following, panels), shares), panel)
    return begin, f.sub_size(f.min_size(end, extent), begin)


def blocking(
    f: Function, kernel: Kernel, problem: Problem, v: SimpleNamespace, workers: Size
) -> Blocking:
    """Cut the problem up. `v` holds its sizes; the same formulas serve numbers and values."""
    tile = kernel.tile
    depth, stretch = depth_blocks(f, kernel, v.k)
    work = f.mul_size(f.mul_size(v.m, v.n), v.k)
    if problem.variant == "columns":
        columns = v.n
        shares = share_count(f, v.n, tile.columns, tile.block_columns, work, workers)
        shared = f.mul_size(round_up(f, v.m, tile.rows), stretch)
        private = f.mul_size(tile.block_columns, depth)
    else:
        largest = f.max_size(f.div_size(tile.shared, stretch), 4 * tile.columns)
        columns = round_up(f, v.n, tile.columns)
        if not problem.b_packed:
            columns = evenly(f, v.n, largest, tile.columns)
        shares = share_count(f, v.m, tile.rows, tile.block_rows, work, workers)
        shared = 0 if problem.b_packed else f.mul_size(columns, stretch)
        private = f.mul_size(tile.block_rows, depth)
    line = 128 // kernel.element.size
    return Blocking(
        depth, stretch, shares, columns, round_up(f, shared, line), round_up(f, private, line)
    )


def mode_of(f: Function, at: Size, depth: Size, k: Size) -> Value:
    """What a block of `depth` steps that begins at step `at` has to do with the result."""
    first = f.compare("eq", f.i64(at), f.i64(0))
    last = f.compare("sge", f.i64(f.add_size(at, depth)), f.i64(k))
    return f.binary(
        "or",
        f.select(first, f.i64(0), f.i64(ACCUMULATE)),
        f.select(last, f.i64(FINAL), f.i64(0)),
    )


def scratch_numbers(f: Function, blocks: Blocking, workers: Size) -> Size:
    return f.add_size(blocks.shared, f.mul_size(blocks.private, workers))


@dataclass(frozen=True)
class Side:
    """One operand as packing sees it: how many panels of what width, and how to walk it."""

    source: Value
    across: Size
    along: Size
    first: Size
    extent: Size
    width: int


def right_side(kernel: Kernel, v: SimpleNamespace) -> Side:
    return Side(v.b, v.b_column, v.b_row, v.column0, v.width, kernel.tile.columns)


def left_side(kernel: Kernel, v: SimpleNamespace) -> Side:
    return Side(v.a, v.a_row, v.a_column, 0, v.m, kernel.tile.rows)


# Panels packed in one go: enough neighbours to read memory in runs.
PACKED_PANELS = 4


def packing_shares(
    f: Function, extent: Size, panel: int, deep: Size, depth: Size
) -> tuple[Size, Size]:
    """How many pieces `pack_share` does, and how many of them make a thread's share."""
    groups = ceil_div(f, extent, PACKED_PANELS * panel)
    count = f.mul_size(groups, f.max_size(1, ceil_div(f, deep, depth)))
    copies = f.mul_size(depth, PACKED_PANELS * panel)
    return count, abi.grain_of(f, copies, SHARE_COPIES)


def pack_share(kernel: Kernel, f: Function, v: SimpleNamespace, side: Side, index: Value) -> None:
    """Pack group `index % groups` of panels, in block `index // groups` of depth."""
    group = PACKED_PANELS * side.width
    groups = ceil_div(f, side.extent, group)
    step = f.mul_size(f.div_size(index, groups), v.depth)
    item = f.mul_size(f.rem_size(index, groups), group)
    depth = f.min_size(v.depth, f.sub_size(v.deep, step))
    count = f.min_size(group, f.sub_size(side.extent, item))
    at = f.add_size(
        f.mul_size(f.add_size(side.first, item), side.across),
        f.mul_size(f.add_size(v.step0, step), side.along),
    )
    padded = round_up(f, side.extent, side.width)
    into = f.add_size(f.mul_size(step, padded), f.mul_size(item, depth))
    call_pack(
        kernel, f, side.width, f.offset(kernel.element.storage, side.source, at), side.across,
        side.along, f.offset(kernel.element.compute, v.scratch, into), count, depth,
    )  # fmt: skip


def call_pack(
    kernel: Kernel, f: Function, width: int, source: Value, across: Size, along: Size,
    into: Value, count: Size, depth: Size,
) -> None:  # fmt: skip
    sizes = [f.i64(across), f.i64(along), into, f.i64(count), f.i64(depth)]
    f.call(pack_name(kernel.element, width), [source, *sizes])


def emit_blocked(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`."""
    shared = product_kernel(kernel.module, kernel.target, problem.dtype)
    emit_macro_kernel(shared)
    for width in (kernel.tile.rows, kernel.tile.columns):
        emit_pack(kernel.module, kernel.target, kernel.element, width)
    _Driver(shared, problem, name, finish(shared, kernel.epilogue)).emit()


class _Driver:
    """Emits the function that cuts the product up and the bodies of its parallel loops."""

    def __init__(self, kernel: Kernel, problem: Problem, name: str, finish: Value):
        self.kernel, self.problem, self.name, self.finish = kernel, problem, name, finish
        self.by_rows = problem.variant != "columns"

    def emit(self) -> None:
        kernel, problem = self.kernel, self.problem
        f, v = core_function(kernel.module, kernel.target, problem, self.name)
        memory = Frame.allocate(f)
        workers = f.i64(1) if problem.over_batches else abi.workers(f, v.call)
        blocks = blocking(f, kernel, problem, v, workers)
        private = f.offset(kernel.element.compute, v.scratch, blocks.shared)
        with (
            f.loop(0, v.n if self.by_rows else 1, blocks.columns if self.by_rows else 1) as strip,
            f.loop(0, f.max_size(v.k, 1), blocks.stretch) as reach,
        ):
            width = v.n
            if self.by_rows:
                width = f.min_size(blocks.columns, f.sub_size(v.n, strip.index))
            deep = f.min_size(blocks.stretch, f.sub_size(v.k, reach.index))
            frame = Frame(
                **vars(v), **vars(blocks), column0=strip.index, step0=reach.index,
                width=width, deep=deep, own=private, finish=self.finish,
            )  # fmt: skip
            frame.save(f, memory)
            self._share_packing(f, v, blocks, memory, width, deep)
            self._share_multiplying(f, v, blocks, memory, width, deep)
        f.ret()
        if not problem.b_packed or not self.by_rows:
            self._emit_packing_body(frame)
        (self._emit_rows_body if self.by_rows else self._emit_columns_body)(frame)

    # -- the operand that all threads read ------------------------------------------------------

    def _share_packing(
        self, f: Function, v: SimpleNamespace, blocks: Blocking, memory: Value,
        width: Size, deep: Size,
    ) -> None:  # fmt: skip
        if self.by_rows and self.problem.b_packed:
            return
        extent, panel = (width, self.kernel.tile.columns) if self.by_rows else (
            v.m, self.kernel.tile.rows
        )  # fmt: skip
        count, grain = packing_shares(f, extent, panel, deep, blocks.depth)
        self._share(f, v, "pack", memory, count, grain)

    def _emit_packing_body(self, frame: Frame) -> None:
        f, v, begin, end, _ = self._body("pack", frame)
        side = right_side(self.kernel, v) if self.by_rows else left_side(self.kernel, v)
        with f.loop(begin, end) as index:
            pack_share(self.kernel, f, v, side, index.index)
        f.ret()

    # -- the multiplication ---------------------------------------------------------------------

    def _share_multiplying(
        self, f: Function, v: SimpleNamespace, blocks: Blocking, memory: Value,
        width: Size, deep: Size,
    ) -> None:  # fmt: skip
        work = f.mul_size(f.mul_size(v.m, width), deep)
        grain = share_grain(f, work, blocks.shares)
        self._share(f, v, "multiply", memory, blocks.shares, grain)

    def _emit_rows_body(self, frame: Frame) -> None:
        """Each share: blocks of rows, through all the packed depth, times the shared panels."""
        f, v, begin, end, worker = self._body("multiply", frame)
        element, tile = self.kernel.element, self.kernel.tile
        own = f.offset(element.compute, v.own, f.mul_size(worker, v.private))
        panels, row_of_panels = (v.b, v.n) if self.problem.b_packed else (v.scratch, v.width)
        padded = round_up(f, row_of_panels, tile.columns)
        with f.loop(begin, end) as share_:
            row, rows = share_range(f, share_.index, v.shares, v.m, tile.rows)
            with f.loop(0, f.max_size(v.deep, 1), v.depth) as step:
                depth = f.min_size(v.depth, f.sub_size(v.deep, step.index))
                at = f.add_size(v.step0, step.index)
                source = f.add_size(f.mul_size(row, v.a_row), f.mul_size(at, v.a_column))
                call_pack(
                    self.kernel, f, tile.rows, f.offset(element.storage, v.a, source), v.a_row,
                    v.a_column, own, rows, depth,
                )  # fmt: skip
                before = at if self.problem.b_packed else step.index
                right = f.offset(element.compute, panels, f.mul_size(before, padded))
                self._multiply(f, v, own, right, row, v.column0, rows, v.width, depth, at)
        f.ret()

    def _emit_columns_body(self, frame: Frame) -> None:
        """Each share: blocks of columns, packed here unless they came packed."""
        f, v, begin, end, worker = self._body("multiply", frame)
        element, tile = self.kernel.element, self.kernel.tile
        own = f.offset(element.compute, v.own, f.mul_size(worker, v.private))
        padded_rows, padded = round_up(f, v.m, tile.rows), round_up(f, v.n, tile.columns)
        with f.loop(begin, end) as share_:
            column, columns = share_range(f, share_.index, v.shares, v.n, tile.columns)
            with f.loop(0, f.max_size(v.deep, 1), v.depth) as step:
                depth = f.min_size(v.depth, f.sub_size(v.deep, step.index))
                at = f.add_size(v.step0, step.index)
                right = own
                if self.problem.b_packed:
                    before = f.add_size(f.mul_size(at, padded), f.mul_size(column, depth))
                    right = f.offset(element.compute, v.b, before)
                else:
                    source = f.add_size(f.mul_size(at, v.b_row), f.mul_size(column, v.b_column))
                    call_pack(
                        self.kernel, f, tile.columns, f.offset(element.storage, v.b, source),
                        v.b_column, v.b_row, own, columns, depth,
                    )  # fmt: skip
                left = f.offset(element.compute, v.scratch, f.mul_size(step.index, padded_rows))
                self._multiply(f, v, left, right, 0, column, v.m, columns, depth, at)
        f.ret()

    def _multiply(
        self, f: Function, v: SimpleNamespace, left: Value, right: Value,
        row: Size, column: Size, rows: Size, columns: Size, depth: Size, at: Size,
    ) -> None:  # fmt: skip
        """Call the macro-kernel; `at` is the step of depth that the block begins with."""
        mode = mode_of(f, at, depth, v.k)
        to = f.offset(
            self.kernel.element.storage, v.c, f.add_size(f.mul_size(row, v.c_row), column)
        )
        sizes = [f.i64(size) for size in (v.c_row, rows, columns, depth)]
        place = [v.call, v.batch, f.i64(row), f.i64(column)]
        f.call(self.kernel.name("macro"), [left, right, to, *sizes, mode, v.finish, *place])

    # -- parallel loops -------------------------------------------------------------------------

    def _share(
        self, f: Function, v: SimpleNamespace, part: str, memory: Value, count: Size, grain: Size
    ) -> None:
        body, alone = f"{self.name}.{part}", self.problem.over_batches
        share(f, v.call, body, memory, count, grain, alone=alone)

    def _body(
        self, part: str, frame: Frame
    ) -> tuple[Function, SimpleNamespace, Value, Value, Value]:
        return frame.body(self.kernel.module, self.kernel.target, f"{self.name}.{part}")


def core_function(
    module: Module, target: Target, problem: Problem, name: str
) -> tuple[Function, SimpleNamespace]:
    """A function for one product and its values by name, the known sizes as numbers."""
    pointers = [("call", PTR), ("scratch", PTR), ("batch", I64), ("a", PTR), ("b", PTR), ("c", PTR)]
    unknown = [(label, I64) for label, size in problem.sizes().items() if size is None]
    f = module.function(name, pointers + unknown, attributes=target.function_attributes)
    labels = [label for label, _ in pointers + unknown]
    values: dict[str, Size] = dict(zip(labels, f.parameters, strict=True))
    known = {label: size for label, size in problem.sizes().items() if size is not None}
    return f, SimpleNamespace(**known, **values)
