"""The sums of what each element of an input gives to a window around it.

A convolution whose taps go against the input, with stride 1, reads much padding where the input is
small beside the taps. Its products can be computed without any, for each element and tap; what is
left is to add them up where they belong.
"""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import STORED, lane_numbers
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
from heterosis.backends.native.codegen.kernels.convolution.forward import begun, product
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.target import Target

FOLD_NUMBERS = ("planes", "taps_h", "taps_w", "in_h", "in_w")
_SHARE = 1 << 14  # numbers that are worth a thread


def emit_fold(module: Module, target: Target, name: str, dtype: str) -> None:
    """Define `@name(call, x, y, scratch, numbers...)`: element (h, w) of the plane that `x` has for
    tap (i, j) is added to element (h + i, w + j) of a plane of `y`."""
    pointers = [(label, PTR) for label in ("call", "x", "y", "scratch")]
    f, v, memory = begun(module, target, name, pointers + [(n, I64) for n in FOLD_NUMBERS])
    frame = Frame(**vars(v))
    frame.save(f, memory)
    one = product(f, v.taps_h, v.taps_w, v.in_h, v.in_w)
    grain = abi.grain_of(f, one, _SHARE)
    abi.parallel_for(f, v.call, f"{name}.planes", memory, v.planes, grain)
    f.ret()

    f, v, begin, end, _ = frame.body(module, target, f"{name}.planes")
    out_h, out_w = (
        f.sub_size(f.add_size(getattr(v, f"in_{a}"), getattr(v, f"taps_{a}")), 1) for a in "hw"
    )
    vector = Type(STORED[dtype].element, target.lanes(STORED[dtype].bits // 8))
    with f.loop(begin, end) as plane, f.loop(0, out_h) as row:
        x = f.offset(
            vector.scalar, v.x, product(f, plane.index, v.taps_h, v.taps_w, v.in_h, v.in_w)
        )
        line = f.add_size(f.mul_size(plane.index, out_h), row.index)
        y = f.offset(vector.scalar, v.y, f.mul_size(line, out_w))
        with f.loop(0, out_w, vector.lanes) as first:
            total = _sum(f, v, vector, x, row.index, first.index)
            there = _below(f, vector, f.sub_size(out_w, first.index))
            f.masked_store(total, f.offset(vector.scalar, y, first.index), there)
    f.ret()


def _sum(
    f: Function, v: SimpleNamespace, vector: Type, x: Value, row: Value, first: Value
) -> Value:
    """What a vector of a row of the result adds up to."""
    least = f.max_size(0, f.add_size(f.sub_size(row, v.in_h), 1))
    most = f.min_size(v.taps_h, f.add_size(row, 1))
    with f.loop(least, most, 1, [constant(vector, 0.0)]) as i:
        h = f.sub_size(row, i.index)
        with f.loop(0, v.taps_w, 1, i.carried) as j:
            tap = f.add_size(f.mul_size(i.index, v.taps_w), j.index)
            line = f.mul_size(f.add_size(f.mul_size(tap, v.in_h), h), v.in_w)
            w = f.sub_size(first, j.index)
            inside = _inside(f, vector, w, v.in_w)
            at = f.offset(vector.scalar, x, f.add_size(line, w))
            (total,) = j.carried
            j.next = [f.add(total, f.masked_load(vector, at, inside))]
        i.next = j.results
    (total,) = i.results
    return total


def _inside(f: Function, vector: Type, first: Size, extent: Size) -> Value:
    """Which lanes of a vector that begins at `first` lie between 0 and `extent`."""
    places = f.add(f.splat(f.i64(first), vector.lanes), lane_numbers(f, vector.lanes, I64))
    return f.compare("ult", places, f.splat(f.i64(extent), vector.lanes))


def _below(f: Function, vector: Type, count: Size) -> Value:
    """The first lanes, as many as there are."""
    return _inside(f, vector, f.i64(0), count)
