"""Filters of 3 x 3 taps transformed for the tiles of Winograd's convolutions: as they are, or into
the packed panels of the products."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import STORED, load_vector
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.convolution.forward import begun, known, product
from heterosis.backends.native.codegen.kernels.convolution.tiles import FILTERS, TAPS, span
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    ceil_div,
    depth_blocks,
    round_up,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import (
    emit_pack,
    pack_name,
    store_first,
)
from heterosis.backends.native.codegen.target import Target

# Sizes, where the first tap is, and strides; all count elements.
FILTER_NUMBERS = ("rows", "channels", "first", "a_row", "a_channel", "a_h", "a_w")
_SHARE = 1 << 11  # filters and channels that are worth a thread
_LINE = 32  # numbers that threads never share
_FEW = 32  # channels whose taps stay in the nearest cache


def emit_transform_filters(module: Module, target: Target, name: str, dtype: str, m: int) -> None:
    """Define `@name(call, a, y, scratch, numbers...)`: for each place in a tile of `m` x `m`
    results, the matrix of rows and channels that its elements are multiplied by."""
    pointers = [(label, PTR) for label in ("call", "a", "y", "scratch")]
    numbers = [(label, I64) for label in FILTER_NUMBERS]
    f, v, memory = begun(module, target, name, pointers + numbers)
    frame = Frame(**vars(v))
    frame.save(f, memory)
    grain = abi.grain_of(f, v.channels, _SHARE)
    abi.parallel_for(f, v.call, f"{name}.rows", memory, v.rows, grain)
    f.ret()

    f, v, begin, end, _ = frame.body(module, target, f"{name}.rows")
    lanes = target.lanes(STORED[dtype].bits // 8)
    whole = f.round_down(v.channels, lanes)
    with f.loop(begin, end) as row:
        with f.loop(0, whole, lanes) as channel:
            _transform(f, v, dtype, m, row.index, channel.index, lanes)
        with f.loop(whole, v.channels) as channel:
            _transform(f, v, dtype, m, row.index, channel.index, 1)
    f.ret()


def _transform(
    f: Function, v: SimpleNamespace, dtype: str, m: int, row: Value, channel: Value, lanes: int
) -> None:
    """For some channels of one row, from one of them on."""
    element = STORED[dtype]
    at = f.add_size(f.mul_size(row, v.a_row), f.mul_size(channel, v.a_channel))
    first = f.offset(element, v.a, f.add_size(v.first, at))

    def tap(h: int, w: int) -> Value:
        place = f.offset(element, first, f.add_size(f.mul_size(v.a_h, h), f.mul_size(v.a_w, w)))
        return load_vector(f, dtype, place, v.a_channel, lanes, None)

    place = f.offset(element, v.y, f.add_size(f.mul_size(row, v.channels), channel))
    apart = product(f, v.rows, v.channels)
    for value in _at_all_places(f, m, tap):
        f.store(value, place)
        place = f.offset(element, place, apart)


# -- into panels ----------------------------------------------------------------------------------


def packed_transformed_numbers(rows: int, channels: int, m: int, target: Target) -> int:
    """How many numbers filters are once transformed and packed."""
    f = Function(Module(), "sizes", [])
    kernel = product_kernel(f.module, target, "float32")
    return known(product(f, span(m) ** 2, round_up(f, rows, kernel.tile.rows), channels))


def pack_transformed_scratch_bytes(target: Target, workers: int) -> int:
    kernel = product_kernel(Module(), target, "float32")
    return workers * _own(kernel) * kernel.element.size


def _own(kernel: Kernel) -> int:
    """Numbers that a thread needs for taps. Vectors reach behind the last ones."""
    taps = _FEW * TAPS * TAPS * kernel.tile.rows + kernel.tile.lanes
    return -(-taps // _LINE) * _LINE


def emit_pack_transformed(module: Module, target: Target, name: str, m: int) -> None:
    """Define `@name(call, a, y, scratch, numbers...)`: the matrices that `emit_transform_filters`
    makes of float32, one after another, each packed as the left operand of a product."""
    kernel = product_kernel(module, target, "float32")
    rows = kernel.tile.rows
    emit_pack(module, target, kernel.element, rows)
    pointers = [(label, PTR) for label in ("call", "a", "y", "scratch")]
    numbers = [(label, I64) for label in FILTER_NUMBERS]
    f, v, memory = begun(module, target, name, pointers + numbers)
    depth, padded = depth_blocks(f, kernel, v.channels)[0], round_up(f, v.rows, rows)
    frame = Frame(**vars(v), depth=depth, padded=padded)
    frame.save(f, memory)
    grain = abi.grain_of(f, f.mul_size(v.channels, rows), _SHARE)
    abi.parallel_for(f, v.call, f"{name}.panels", memory, ceil_div(f, v.rows, rows), grain)
    f.ret()
    _Panels(kernel, m, name, frame).emit()


class _Panels:
    """Emits the loop over panels: the taps of a few channels at a time are packed as those of any
    matrix are, then transformed, a lane for each row of the panel."""

    def __init__(self, kernel: Kernel, m: int, name: str, frame: Frame):
        self.kernel, self.m, self.name, self.frame = kernel, m, name, frame
        self.tile, self.kind = kernel.tile, kernel.element.compute

    def emit(self) -> None:
        module, target = self.kernel.module, self.kernel.target
        f, v, begin, end, worker = self.frame.body(module, target, f"{self.name}.panels")
        v.mine = f.offset(self.kind, v.scratch, f.mul_size(worker, _own(self.kernel)))
        with f.loop(begin, end) as panel, f.loop(0, v.channels, v.depth) as step:
            row = f.mul_size(panel.index, self.tile.rows)
            depth = f.min_size(v.depth, f.sub_size(v.channels, step.index))
            at = f.add_size(f.mul_size(step.index, v.padded), f.mul_size(row, depth))
            to = f.offset(self.kind, v.y, at)
            with f.loop(0, depth, _FEW) as channel:
                few = f.min_size(_FEW, f.sub_size(depth, channel.index))
                self._taps(f, v, row, f.add_size(step.index, channel.index), few)
                # Full vectors reach into the next channel, written later; the last one's must not.
                within = f.min_size(few, f.sub_size(f.sub_size(depth, channel.index), 1))
                into = f.offset(self.kind, to, f.mul_size(channel.index, self.tile.rows))
                with f.loop(0, within) as one:
                    self._transform(f, v, one.index, into, reaches=True)
                with f.loop(within, few) as one:
                    self._transform(f, v, one.index, into, reaches=False)
        f.ret()

    def _taps(self, f: Function, v: SimpleNamespace, row: Size, first: Size, few: Size) -> None:
        """Those of a few channels from `first` on, a panel's rows side by side for each, and zeros
        where the vectors of the last one end."""
        behind = f.mul_size(few, TAPS * TAPS * self.tile.rows)
        zeros = constant(Type(self.kind.element, self.tile.lanes), 0)
        f.store(zeros, f.offset(self.kind, v.mine, behind), align=self.kind.bits // 8)
        at = f.add_size(f.mul_size(row, v.a_row), f.mul_size(first, v.a_channel))
        start = f.offset(self.kind, v.a, f.add_size(v.first, at))
        count = f.i64(f.min_size(self.tile.rows, f.sub_size(v.rows, row)))
        name, taps = pack_name(self.kernel.element, self.tile.rows), TAPS * TAPS

        def one_after_another() -> None:
            sizes = [f.i64(v.a_row), f.i64(1)], [count, f.i64(f.mul_size(few, taps))]
            f.call(name, [start, *sizes[0], v.mine, *sizes[1]])

        def row_by_row() -> None:
            with f.loop(0, few) as channel, f.loop(0, TAPS) as h:
                at = f.add_size(f.mul_size(channel.index, v.a_channel), f.mul_size(h.index, v.a_h))
                before = f.add_size(f.mul_size(channel.index, taps), f.mul_size(h.index, TAPS))
                into = f.offset(self.kind, v.mine, f.mul_size(before, self.tile.rows))
                strides = [f.i64(v.a_row), f.i64(v.a_w)]
                source = f.offset(self.kind, start, at)
                f.call(name, [source, *strides, into, count, constant(I64, TAPS)])

        gapless = functools.reduce(
            lambda a, b: f.binary("and", a, b),
            [
                f.compare("eq", f.i64(stride), constant(I64, number))
                for stride, number in ((v.a_channel, taps), (v.a_h, TAPS), (v.a_w, 1))
            ],
        )
        f.if_else(gapless, one_after_another, row_by_row)

    def _transform(
        self, f: Function, v: SimpleNamespace, channel: Value, into: Value, *, reaches: bool
    ) -> None:
        """One channel's taps for all places, whose matrices lie so far apart."""
        rows, lanes = self.tile.rows, self.tile.lanes
        apart = product(f, v.padded, v.channels)
        source = f.offset(self.kind, v.mine, f.mul_size(channel, TAPS * TAPS * rows))
        for first in range(0, rows, lanes):
            place = f.offset(self.kind, into, f.add_size(f.mul_size(channel, rows), first))
            valid = min(lanes, rows - first)

            def tap(h: int, w: int, first: int = first) -> Value:
                at = f.offset(self.kind, source, (h * TAPS + w) * rows + first)
                return f.load(Type(self.kind.element, lanes), at)

            for value in _at_all_places(f, self.m, tap):
                store_first(f, value, lanes if reaches else valid, place)
                place = f.offset(self.kind, place, apart)


# -- the arithmetic -------------------------------------------------------------------------------


def _at_all_places(f: Function, m: int, tap: Callable[[int, int], Value]) -> Iterator[Value]:
    """A filter's factor at each place in a tile, from its taps."""
    lines = FILTERS[m]
    columns = [[tap(h, w) for h in range(TAPS)] for w in range(TAPS)]
    for down in lines:
        half = [weighted(f, down, column) for column in columns]
        for across in lines:
            yield weighted(f, across, half)


def weighted(f: Function, weights: Sequence[float], values: Sequence[Value]) -> Value:
    """The sum of `values`, each times its weight. Products are rounded: where parameters are packed
    for another processor, whether this one adds to a product in one instruction is not seen."""
    pairs = zip(weights, values, strict=True)
    terms = [_times(f, weight, value) for weight, value in pairs if weight]
    return functools.reduce(f.add, terms)


def _times(f: Function, weight: float, value: Value) -> Value:
    return value if weight == 1 else f.mul(value, constant(value.type, weight))
