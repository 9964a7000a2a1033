"""Convolution as a matrix product: packed filters times panels of windows, packed when needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernels.convolution.problem import AXES, Problem
from heterosis.backends.native.codegen.kernels.convolution.window import TABLE_BYTES, Windows
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    PACKED_PANELS,
    Side,
    call_pack,
    ceil_div,
    depth_blocks,
    mode_of,
    pack_share,
    packing_shares,
    round_up,
    share_count,
    share_range,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import (
    emit_macro_kernel,
    ending,
    product_kernel,
)
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import emit_pack
from heterosis.backends.native.codegen.target import Target

_LINE = 128  # bytes that threads never share
_PANEL_NUMBERS = 3 << 14  # of windows that are packed before they are multiplied
_MOST_SPOTS = 16  # panels whose windows are looked up once for all groups
_LARGEST_SHARE = 1 << 13  # positions
_SHARE_WORK = 1 << 17  # multiplications worth waking a thread for
_MOST_PACKED = 1 << 24  # numbers of the filters that are packed at a time


@dataclass(frozen=True)
class Layout:
    """Where in the scratch memory what is, in bytes, and how the work is cut up."""

    columns: Size
    taps: Size
    depth: Size  # of one block
    stretch: Size  # depth that is packed at a time
    padded: Size  # rows of one group, whole panels
    shares: Size  # of the columns
    spans: Size  # of the groups, for threads beyond one a share
    lookup: Size  # where the offsets of the filters' columns begin, if they are scattered
    packed: Size  # where the packed filters begin
    private: Size  # where the threads' own memory begins
    spot: Size  # bytes of what was looked up for a panel; 0 if no other group asks again
    room: Size  # bytes of all that
    own: Size  # bytes of one thread's


def kernel_of(
    module: Module, target: Target, problem: Problem, name: str, epilogue: Epilogue | None = None
) -> Kernel:
    return replace(product_kernel(module, target, problem.dtype), prefix=name, epilogue=epilogue)


def begun(
    module: Module, target: Target, name: str, labels: list[tuple[str, Type]]
) -> tuple[Function, SimpleNamespace, Value]:
    """The function that a kernel begins with, its parameters by their names, and room for a
    frame."""
    f = module.function(name, labels, attributes=target.function_attributes)
    values = zip((label for label, _ in labels), f.parameters, strict=True)
    return f, SimpleNamespace(**dict(values)), Frame.allocate(f)


def product(f: Function, *sizes: Size) -> Size:
    total: Size = 1
    for size in sizes:
        total = f.mul_size(total, size)
    return total


def layout(
    f: Function, kernel: Kernel, problem: Problem, v: SimpleNamespace, workers: Size
) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    taps = product(f, v.kernel_d, v.kernel_h, v.kernel_w)
    columns = product(f, v.images, v.out_d, v.out_h, v.out_w)
    k = f.mul_size(v.channels, taps)
    depth, _ = depth_blocks(f, kernel, k)
    padded = round_up(f, v.rows, kernel.tile.rows)
    blocks = f.div_size(_MOST_PACKED, f.max_size(1, product(f, v.groups, padded, depth)))
    stretch = f.mul_size(depth, f.max_size(1, blocks))
    stretch = f.min_size(stretch, round_up(f, f.max_size(k, 1), 8))
    stretch = f.max_size(k, 1) if problem.packed else f.max_size(depth, stretch)
    work = product(f, v.groups, v.rows, columns, k)
    shares = share_count(f, columns, kernel.tile.columns, _LARGEST_SHARE, work, workers)
    worth = f.min_size(workers, f.max_size(1, f.div_size(work, _SHARE_WORK)))
    spans = f.min_size(v.groups, ceil_div(f, worth, shares))
    table = f.mul_size(k, TABLE_BYTES)
    packed = round_up(f, f.add_size(table, f.mul_size(k, 8 * problem.scattered)), _LINE)
    numbers = 0 if problem.packed else product(f, v.groups, padded, stretch)
    private = f.add_size(packed, round_up(f, f.mul_size(numbers, kernel.element.size), _LINE))
    count = _panels(f, kernel, v, depth)
    panels = product(f, count, depth, kernel.tile.columns * kernel.element.size)
    looked_up = round_up(f, Windows(kernel, problem.step).own_bytes(f, taps), _LINE)
    spot = f.mul_size(looked_up, _is_grouped(f, v))
    room = f.max_size(looked_up, f.mul_size(spot, count))
    return Layout(
        columns, taps, depth, stretch, padded, shares, spans, table, packed, private, spot, room,
        round_up(f, f.add_size(room, panels), _LINE),
    )  # fmt: skip


def _is_grouped(f: Function, v: SimpleNamespace) -> Size:
    """1 if there are several groups, else 0."""
    return f.min_size(1, f.sub_size(v.groups, 1))


def _panels(f: Function, kernel: Kernel, v: SimpleNamespace, depth: Size) -> Size:
    """How many are packed at a time: of several groups not more than are kept in mind."""
    most = f.add_size(f.mul_size(_is_grouped(f, v), _MOST_SPOTS - _PANEL_NUMBERS), _PANEL_NUMBERS)
    count = f.div_size(_PANEL_NUMBERS, f.mul_size(depth, kernel.tile.columns))
    return f.max_size(1, f.min_size(most, count))


def scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = kernel_of(f.module, target, problem, "sizes")
    found = layout(f, kernel, problem, SimpleNamespace(**problem.known()), workers)
    return known(f.add_size(found.private, f.mul_size(found.own, workers)))


def packed_numbers(problem: Problem, target: Target) -> int:
    """How many numbers the filters are once packed."""
    f = Function(Module(), "sizes", [])
    kernel, v = kernel_of(f.module, target, problem, "sizes"), SimpleNamespace(**problem.known())
    found = layout(f, kernel, problem, v, 1)
    return known(product(f, v.groups, found.padded, found.stretch))


def known(size: Size) -> int:
    """A size that was computed from numbers."""
    assert isinstance(size, int)
    return size


def emit_forward(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, x, a, y, scratch, finish)`; `finish` is what ends the tiles
    of products."""
    kernel = kernel_of(module, target, problem, name)
    emit_macro_kernel(product_kernel(module, target, problem.dtype))
    if problem.scattered:
        emit_pack_scattered(kernel)
    emit_pack(module, target, kernel.element, kernel.tile.columns)
    emit_panel_product(product_kernel(module, target, problem.dtype))
    _Forward(kernel, Windows(kernel, problem.step), problem, name).emit()


def emit_pack_filters(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(call, a, y, scratch, numbers...)`: all filters packed, for a problem that is
    `packed`; of the numbers only those of the filters matter."""
    kernel = kernel_of(module, target, problem, name)
    labels = [(label, PTR) for label in ("call", "a", "y", "scratch")] + problem.parameters()
    f, v, memory = begun(module, target, name, labels)
    blocks = layout(f, kernel, problem, v, 1)
    frame = Frame(**vars(v), **vars(blocks), filters=v.y, step0=0, deep=blocks.stretch)
    frame.save(f, memory)
    share_packing(kernel, f, v, blocks, memory, blocks.stretch)
    f.ret()
    emit_packing(kernel, problem, frame)


POINTERS = [(label, PTR) for label in ("call", "x", "a", "y", "scratch", "finish")]


class _Forward:
    def __init__(self, kernel: Kernel, windows: Windows, problem: Problem, name: str):
        self.kernel, self.windows, self.problem, self.name = kernel, windows, problem, name

    def emit(self) -> None:
        kernel, problem = self.kernel, self.problem
        f, v, memory = begun(
            kernel.module, kernel.target, self.name, problem.parameters() + POINTERS
        )
        blocks = layout(f, kernel, problem, v, abi.workers(f, v.call))
        self.windows.fill_table(f, v, v.scratch)
        if problem.scattered:
            fill_lookup(f, v, f.offset(I8, v.scratch, blocks.lookup))
        k = f.mul_size(v.channels, blocks.taps)
        positions = product(f, v.out_d, v.out_h, v.out_w)
        with f.loop(0, f.max_size(k, 1), blocks.stretch) as reach:
            deep = f.min_size(blocks.stretch, f.sub_size(k, reach.index))
            frame = Frame(
                **vars(v), **vars(blocks), k=k, positions=positions, step0=reach.index, deep=deep,
                filters=v.a if problem.packed else f.offset(I8, v.scratch, blocks.packed),
            )  # fmt: skip
            frame.save(f, memory)
            self._share(f, v, blocks, memory, deep)
        f.ret()
        self.windows.emit_look_up(v)
        self.windows.emit_pack()
        if not problem.packed:
            emit_packing(kernel, problem, frame)
        self._emit_multiplying(frame)

    def _share(
        self, f: Function, v: SimpleNamespace, blocks: Layout, memory: Value, deep: Size
    ) -> None:
        if not self.problem.packed:
            share_packing(self.kernel, f, v, blocks, memory, deep)
        tasks = f.mul_size(blocks.spans, blocks.shares)
        work = product(f, v.groups, v.rows, blocks.columns, deep)
        grain = abi.grain_of(f, f.div_size(work, tasks), _SHARE_WORK)
        abi.parallel_for(f, v.call, f"{self.name}.multiply", memory, tasks, grain)

    def _emit_multiplying(self, frame: Frame) -> None:
        """Each share: the filters of some groups times some columns, panel by panel."""
        kernel = self.kernel
        f, v, begin, end, worker = frame.body(kernel.module, kernel.target, kernel.name("multiply"))
        own = f.offset(I8, v.scratch, f.add_size(v.private, f.mul_size(worker, v.own)))
        v.mine, v.panel = own, f.offset(I8, own, v.room)
        some_columns = f.mul_size(_panels(f, self.kernel, v, v.depth), self.kernel.tile.columns)
        with f.loop(begin, end) as task:
            span, part = f.div_size(task.index, v.shares), f.i64(f.rem_size(task.index, v.shares))
            column, columns = share_range(f, part, v.shares, v.columns, self.kernel.tile.columns)
            last = f.add_size(column, columns)
            first, groups = share_range(f, f.i64(span), v.spans, v.groups, 1)
            with f.loop(0, f.max_size(v.deep, 1), v.depth) as step:
                depth = f.min_size(v.depth, f.sub_size(v.deep, step.index))
                with f.loop(column, last, some_columns) as some, f.loop(0, groups) as number:
                    group = f.add_size(first, number.index)
                    stop = f.min_size(last, f.add_size(some.index, some_columns))
                    here = (group, step.index, depth, some.index, stop)
                    self._pack_panels(f, v, number.index, *here)
                    self._multiply_panels(f, v, *here)
        f.ret()

    def _pack_panels(
        self, f: Function, v: SimpleNamespace, number: Value, group: Size, step: Value,
        depth: Size, column: Value, end: Size,
    ) -> None:  # fmt: skip
        """`number` tells how many groups were packed before: the first one looks windows up."""
        storage, panel = self.kernel.element.storage, self.kernel.tile.columns
        at = f.add_size(v.step0, step)
        x = f.offset(storage, v.x, f.mul_size(group, v.x_group))
        with f.loop(column, end, panel) as here:
            width = f.min_size(panel, f.sub_size(end, here.index))
            image, place = f.div_size(here.index, v.positions), f.rem_size(here.index, v.positions)
            before = f.sub_size(here.index, column)
            into = self._panel(f, v, before, depth)
            spot = f.offset(I8, v.mine, f.mul_size(f.div_size(before, panel), v.spot))

            def copied() -> None:
                start = f.add_size(f.mul_size(image, v.x_image), f.mul_size(at, v.x_channel))
                source = f.offset(storage, x, f.add_size(start, place))
                call_pack(self.kernel, f, panel, source, 1, v.x_channel, into, width, depth)

            def looked_up() -> None:
                where = [here.index, f.i64(width), spot]
                f.call(self.windows.name("look_up"), [f.parameters[0], *where])

            def gathered() -> None:
                f.if_else(f.compare("eq", number, f.i64(0)), looked_up)
                table = f.offset(I64, v.scratch, f.mul_size(at, 2))
                f.call(self.windows.name("window"), [x, table, spot, f.i64(depth), into])

            inside = f.compare("sle", f.i64(f.add_size(place, width)), f.i64(v.positions))
            f.if_else(f.binary("and", inside, is_plain(f, v)), copied, gathered)

    def _panel(self, f: Function, v: SimpleNamespace, columns: Size, depth: Size) -> Value:
        """Where the panel begins that comes behind so many columns."""
        return f.offset(self.kernel.element.compute, v.panel, f.mul_size(columns, depth))

    def _multiply_panels(
        self, f: Function, v: SimpleNamespace, group: Size, step: Value, depth: Size,
        column: Value, end: Size,
    ) -> None:  # fmt: skip
        """A block of filters at a time, that it is in the cache for all panels but the first."""
        storage, compute, tile_ = (
            self.kernel.element.storage,
            self.kernel.element.compute,
            self.kernel.tile,
        )
        left = f.offset(compute, _packed(self.kernel, f, v, group), f.mul_size(step, v.padded))
        before = f.mul_size(group, v.rows)
        between = product(f, v.groups, v.rows, v.positions)
        mode = mode_of(f, f.add_size(v.step0, step), depth, v.k)
        with (
            f.loop(0, v.rows, tile_.block_rows) as block,
            f.loop(column, end, tile_.columns) as here,
        ):
            rows = f.min_size(tile_.block_rows, f.sub_size(v.rows, block.index))
            width = f.min_size(tile_.columns, f.sub_size(end, here.index))
            row = f.add_size(before, block.index)
            filters = f.offset(compute, left, f.mul_size(block.index, depth))
            right = self._panel(f, v, f.sub_size(here.index, column), depth)
            to = f.offset(storage, v.y, f.mul_size(row, v.positions))
            sizes = [f.i64(n) for n in (v.positions, between, here.index, rows, width, depth)]
            shared = product_kernel(self.kernel.module, self.kernel.target, self.problem.dtype)
            f.call(
                shared.name("panel"),
                [filters, right, to, *sizes, mode, v.finish, v.call, f.i64(row)],
            )


def is_plain(f: Function, v: SimpleNamespace) -> Value:
    """Whether every position reads the one element at its own place, all of them neighbours."""
    dense = {"w": 1, "h": v.in_w, "d": f.mul_size(v.in_h, v.in_w)}
    found = f.compare("eq", f.i64(v.x_w), f.i64(1))
    for axis in AXES:
        for label, wanted in (
            ("kernel", 1), ("stride", 1), ("origin", 0), ("out", getattr(v, f"in_{axis}")),
        ):  # fmt: skip
            same = f.compare("eq", f.i64(getattr(v, f"{label}_{axis}")), f.i64(wanted))
            found = f.binary("and", found, same)
        apart = f.compare("eq", f.i64(getattr(v, f"x_{axis}")), f.i64(dense[axis]))
        alone = f.compare("eq", f.i64(getattr(v, f"in_{axis}")), f.i64(1))
        found = f.binary("and", found, f.binary("or", apart, alone))
    return found


# -- packing the filters --------------------------------------------------------------------------


def share_packing(
    kernel: Kernel, f: Function, v: SimpleNamespace, blocks: Layout, memory: Value, deep: Size
) -> None:
    count, grain = packing_shares(f, v.rows, kernel.tile.rows, deep, blocks.depth)
    count = f.mul_size(count, v.groups)
    abi.parallel_for(f, v.call, kernel.name("pack"), memory, count, grain)


def _packed(kernel: Kernel, f: Function, v: SimpleNamespace, group: Size) -> Value:
    """Where the packed filters of a group begin."""
    numbers = product(f, group, v.padded, v.stretch)
    return f.offset(kernel.element.compute, v.filters, numbers)


def emit_packing(kernel: Kernel, problem: Problem, frame: Frame) -> None:
    """One share of the packing of the steps of depth that the frame tells of."""
    if not problem.scattered:
        emit_pack(kernel.module, kernel.target, kernel.element, kernel.tile.rows)
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, kernel.name("pack"))
    count, _ = packing_shares(f, v.rows, kernel.tile.rows, v.deep, v.depth)
    with f.loop(begin, end) as index:
        group, part = f.div_size(index.index, count), f.i64(f.rem_size(index.index, count))
        source = f.offset(kernel.element.storage, v.a, f.mul_size(group, v.a_group))
        into = _packed(kernel, f, v, group)
        if problem.scattered:
            _pack_scattered(kernel, f, v, source, into, part)
        else:
            own = SimpleNamespace(depth=v.depth, deep=v.deep, step0=v.step0, scratch=into)
            side = Side(source, v.a_row, v.a_column, 0, v.rows, kernel.tile.rows)
            pack_share(kernel, f, own, side, part)
    f.ret()


def _pack_scattered(
    kernel: Kernel, f: Function, v: SimpleNamespace, source: Value, into: Value, part: Size
) -> None:
    """As `pack_share`: some panels, in one block of depth."""
    group = PACKED_PANELS * kernel.tile.rows
    groups = ceil_div(f, v.rows, group)
    step = f.mul_size(f.div_size(part, groups), v.depth)
    row = f.mul_size(f.rem_size(part, groups), group)
    depth = f.min_size(v.depth, f.sub_size(v.deep, step))
    count = f.min_size(group, f.sub_size(v.rows, row))
    lookup = f.offset(I64, f.offset(I8, v.scratch, v.lookup), f.add_size(v.step0, step))
    begin = f.offset(kernel.element.storage, source, f.mul_size(row, v.a_row))
    at = f.add_size(f.mul_size(step, v.padded), f.mul_size(row, depth))
    to = f.offset(kernel.element.compute, into, at)
    sizes = [f.i64(size) for size in (v.a_row, count, depth)]
    f.call(kernel.name("filters"), [begin, lookup, to, *sizes])


def fill_lookup(f: Function, v: SimpleNamespace, lookup: Value) -> None:
    """The offset of every (channel, tap) from the beginning of a filter."""
    with f.loop(0, v.channels) as c, f.loop(0, v.kernel_d) as d, f.loop(0, v.kernel_h) as h:
        at = f.mul_size(c.index, v.a_channel)
        at = f.add_size(at, f.mul_size(d.index, v.a_d))
        at = f.add_size(at, f.mul_size(h.index, v.a_h))
        column = f.add_size(f.mul_size(c.index, v.kernel_d), d.index)
        column = f.add_size(f.mul_size(column, v.kernel_h), h.index)
        with f.loop(0, v.kernel_w) as w:
            entry = f.add_size(f.mul_size(column, v.kernel_w), w.index)
            here = f.add_size(at, f.mul_size(w.index, v.a_w))
            f.store(f.i64(here), f.offset(I64, lookup, entry))


def emit_pack_scattered(kernel: Kernel) -> None:
    """`filters(a, lookup, panels, a_row, count, depth)`: `count` rows into panels."""
    f = kernel.function(
        "filters",
        [("a", PTR), ("lookup", PTR), ("panels", PTR), ("a_row", I64), ("count", I64)]
        + [("depth", I64)],
    )
    a, lookup, panels, a_row, count, depth = f.parameters
    storage, width = kernel.element.storage, kernel.tile.rows
    last = f.sub_size(count, 1)
    with f.loop(0, count, width) as panel:
        rows = [f.min_size(f.add_size(panel.index, i), last) for i in range(width)]
        starts = [f.offset(storage, a, f.mul_size(row, a_row)) for row in rows]
        into = f.offset(storage, panels, f.mul_size(panel.index, depth))
        with f.loop(0, depth) as step:
            offset = f.load(I64, f.offset(I64, lookup, step.index))
            to = f.offset(storage, into, f.mul_size(step.index, width))
            for i, start in enumerate(starts):
                value = f.load(storage, f.offset(storage, start, offset))
                f.store(value, f.offset(storage, to, i))
    f.ret()


# -- one panel, which may hold the end of one image and the beginning of the next -----------------


def emit_panel_product(kernel: Kernel) -> None:
    """`panel(a, b, y, positions, between, column, rows, width, depth, mode, finish, call,
    first_row)`, once a module."""
    if kernel.module.defines(kernel.name("panel")):
        return
    f = kernel.function(
        "panel",
        [("a", PTR), ("b", PTR), ("y", PTR), ("positions", I64), ("between", I64)]
        + [("column", I64), ("rows", I64), ("width", I64), ("depth", I64), ("mode", I64)]
        + [("finish", PTR), ("call", PTR), ("first_row", I64)],
    )
    a, b, y, positions, between, column, rows, width, depth, *final, call, first_row = f.parameters
    scratch = f.allocate(kernel.element.compute, kernel.tile.rows * kernel.tile.columns)
    image, place = f.div_size(column, positions), f.i64(f.rem_size(column, positions))
    ends = f.add(place, width)
    to = f.offset(kernel.element.storage, y, f.add_size(f.mul_size(image, between), place))

    def inside() -> None:
        where = [call, f.i64(image), first_row, place]
        f.call(kernel.name("macro"), [a, b, to, positions, rows, width, depth, *final, *where])

    def spread() -> None:
        store = ending(kernel, f, *final).edge
        with f.loop(0, rows, kernel.tile.rows) as i:
            left = f.offset(kernel.element.compute, a, f.mul_size(i.index, depth))
            height = f.i64(f.min_size(kernel.tile.rows, f.sub_size(rows, i.index)))
            plain = [constant(I64, kernel.tile.columns), depth, constant(I64, 0)]
            nowhere = [call, *[constant(I64, 0)] * 3]
            micro = kernel.name(f"micro.{kernel.tile.rows}")
            f.call(micro, [left, b, scratch, *plain, b, *nowhere])
            _store_segments(kernel, f, store, scratch, i.index, height)

    f.if_else(f.compare("sle", ends, positions), inside, spread)
    f.ret()


def _store_segments(
    kernel: Kernel, f: Function, store: Value, scratch: Value, row: Value, height: Value
) -> None:
    """Store what belongs to each image."""
    _, _, y, positions, between, column, _, width, _, mode, _, call, first_row = f.parameters
    with f.repeat([constant(I64, 0)]) as segment:
        (at,) = segment.carried
        here = f.add(column, at)
        image, place = f.div_size(here, positions), f.i64(f.rem_size(here, positions))
        count = f.i64(f.min_size(f.sub_size(width, at), f.sub_size(positions, place)))
        offset = f.add_size(f.mul_size(image, between), f.mul_size(row, positions))
        to = f.offset(kernel.element.storage, y, f.add_size(offset, place))
        source = f.offset(kernel.element.compute, scratch, at)
        where = [mode, call, f.i64(image), f.add(first_row, row), place]
        f.call_pointer(store, [source, to, positions, height, count, *where])
        following = f.i64(f.add_size(at, count))
        segment.next = [following]
        segment.more = f.compare("slt", following, width)
