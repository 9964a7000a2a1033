"""Filters of 3 x 3 taps transformed for the tiles of Winograd's convolutions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import STORED, load_vector
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Function,
    Module,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.convolution.forward import begun, product
from heterosis.backends.native.codegen.kernels.convolution.tiles import FILTERS, TAPS
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.target import Target

# Sizes, where the first tap is, and strides; all count elements.
FILTER_NUMBERS = ("rows", "channels", "first", "a_row", "a_channel", "a_h", "a_w")
_SHARE = 1 << 11  # filters and channels that are worth a thread


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
    element, lines = STORED[dtype], FILTERS[m]
    at = f.add_size(f.mul_size(row, v.a_row), f.mul_size(channel, v.a_channel))
    first = f.offset(element, v.a, f.add_size(v.first, at))

    def tap(h: int, w: int) -> Value:
        place = f.offset(element, first, f.add_size(f.mul_size(v.a_h, h), f.mul_size(v.a_w, w)))
        return load_vector(f, dtype, place, v.a_channel, lanes, None)

    columns = [[tap(h, w) for h in range(TAPS)] for w in range(TAPS)]
    place = f.offset(element, v.y, f.add_size(f.mul_size(row, v.channels), channel))
    apart = product(f, v.rows, v.channels)
    for down in lines:
        half = [weighted(f, down, column) for column in columns]
        for across in lines:
            f.store(weighted(f, across, half), place)
            place = f.offset(element, place, apart)


def weighted(f: Function, weights: Sequence[float], values: Sequence[Value]) -> Value:
    """The sum of `values`, each times its weight. Products are rounded: where parameters are packed
    for another processor, whether this one adds to a product in one instruction is not seen."""
    pairs = zip(weights, values, strict=True)
    terms = [_times(f, weight, value) for weight, value in pairs if weight]
    return functools.reduce(f.add, terms)


def _times(f: Function, weight: float, value: Value) -> Value:
    return value if weight == 1 else f.mul(value, constant(value.type, weight))
