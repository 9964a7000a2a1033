"""The kernels that check values and stop the program where it must not go on."""

from __future__ import annotations

import math
from collections.abc import Callable

from heterosis.backends.native.codegen.emit.access import STORED, computed
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Function, Module, Size, Type
from heterosis.backends.native.codegen.emit.builder import Value as Emitted
from heterosis.backends.native.codegen.emit.builder import constant as code
from heterosis.backends.native.codegen.emit.conversion import convert
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.primitives.checks import (
    CHECK_INDICES,
    MOST_SHOWN,
    REQUIRE,
    failures_of_indices,
)
from heterosis.ir.program import Node
from heterosis.ir.types import is_integer
from heterosis.runtime import raising

# -- indices --------------------------------------------------------------------------------------

_DETAIL_BITS = 16  # of a status, below the number that its message shows
_OUTSIDE, _SHOWS_NOTHING = 1, 2  # details: which of a kernel's failures it is


def _check_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    (given,) = inputs
    count = node.attributes["count"]
    rank = len(given.strided.shape)
    size = math.prod(given.strided.shape)

    def emit(module: Module, target: Target, name: str) -> None:
        _emit_check(module, target, name, given.dtype, rank)

    return KernelCode(
        key=f"indices {given.dtype} {rank}",
        emit=emit,
        numbers=(*given.strided.shape, *given.strided.strides, count),
        nanoseconds=1.0 * size,
        failures=tuple(("IndexingError", message) for message in failures_of_indices(node)),
    )


def _emit_check(module: Module, target: Target, name: str, dtype: str, rank: int) -> None:
    """`name` writes every index counted from the front, and returns at the first one outside."""
    labels = [f"n{d}" for d in range(rank)] + [f"s{d}" for d in range(rank)]
    parameters = [(p, PTR) for p in ("call", "given", "checked", "scratch")]
    parameters += [(p, I64) for p in (*labels, "count")]
    f = module.function(name, parameters, I64, attributes=target.function_attributes)
    _, given, checked, _, *numbers = f.parameters
    extents, strides, count = numbers[:rank], numbers[rank:-1], numbers[-1]

    def nest(level: int, source: Emitted, place: Emitted) -> None:
        if level == rank:
            _check_one(f, dtype, f.offset(STORED[dtype], given, source), checked, place, count)
            return
        first: Size = 0
        if level == rank - 1 and is_integer(dtype):
            row = f.offset(STORED[dtype], given, source)
            to = f.offset(I64, checked, f.mul(place, extents[level]))
            found = _inside(f, target, dtype, row, to, extents[level], count)
            gapless = f.compare("eq", strides[level], code(I64, 1))
            (first,) = f.if_else(gapless, found, lambda: [code(I64, 0)])
        with f.loop(first, extents[level]) as loop:
            step = f.mul(loop.index, strides[level])
            row = f.mul(place, extents[level])
            nest(level + 1, f.add(source, step), f.add(row, loop.index))

    nest(0, code(I64, 0), code(I64, 0))
    f.ret(code(I64, 0))


def _inside(
    f: Function,
    target: Target,
    dtype: str,
    row: Emitted,
    checked: Emitted,
    length: Emitted,
    count: Emitted,
) -> Callable[[], list[Emitted]]:
    """Code that writes a row without gaps, a vector at a time, up to the first one that has an
    index outside or reaches behind the row, and tells where that begins."""
    lanes = target.lanes(8)
    wide, bits = Type("i64", lanes), Type(f"i{lanes}")
    counts = f.splat(count, lanes)

    def write() -> list[Emitted]:
        with f.repeat([code(I64, 0)]) as loop:
            (place,) = loop.carried
            element = Type(STORED[dtype].element, lanes)
            index = convert(f, dtype, "int64", f.load(element, f.offset(element, row, place)))
            behind = f.compare("slt", index, code(wide, 0))
            index = f.select(behind, f.add(index, counts), index)
            outside = f.convert("bitcast", f.compare("uge", index, counts), bits)
            f.store(index, f.offset(I64, checked, place))
            all_inside = f.compare("eq", outside, code(bits, 0))
            following = f.add(place, code(I64, lanes))
            loop.next = [f.select(all_inside, following, place)]
            fits = f.compare("sle", f.add(following, code(I64, lanes)), length)
            loop.more = f.binary("and", all_inside, fits)
        return loop.results

    def some() -> list[Emitted]:
        enough = f.compare("sge", length, code(I64, lanes))
        return f.if_else(enough, write, lambda: [code(I64, 0)])

    return some


def _check_one(
    f: Function, dtype: str, source: Emitted, checked: Emitted, place: Emitted, count: Emitted
) -> None:
    stored = f.load(STORED[dtype], source)
    number = computed(f, dtype, stored)
    if number.type.is_float:
        nothing = f.compare("uno", number, number)
        f.leave_if(nothing, lambda: f.ret(code(I64, _SHOWS_NOTHING)))
    index = convert(f, dtype, "int64", number)
    behind = f.compare("slt", index, code(I64, 0))
    index_from_front = f.select(behind, f.add(index, count), index)
    outside = f.compare("uge", index_from_front, count)
    shown = f.binary("shl", index, code(I64, _DETAIL_BITS))
    shifted = f.add(index, code(I64, MOST_SHOWN))
    huge = f.compare("uge", shifted, code(I64, 2 * MOST_SHOWN))
    f.leave_if(huge, lambda: f.ret(code(I64, _SHOWS_NOTHING)))
    f.leave_if(outside, lambda: f.ret(f.add(shown, code(I64, _OUTSIDE))))
    f.store(index_from_front, f.offset(I64, checked, place))


# -- numbers whose order or size matters ----------------------------------------------------------


def _require_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    holds, given = (place.strided for place in inputs)
    dtype = inputs[1].dtype
    failure = node.attributes["failure"]
    kind = "raised" if raising.is_told(failure) else "ArgumentError"

    def emit(module: Module, target: Target, name: str) -> None:
        _emit_require(module, name, dtype)

    return KernelCode(
        key=f"require {dtype}",
        emit=emit,
        numbers=(*holds.shape, *given.shape),
        nanoseconds=1.0 * (holds.shape[0] + given.shape[0]),
        failures=((kind, failure),),
    )


def _emit_require(module: Module, name: str, dtype: str) -> None:
    """`name` returns at the first condition that does not hold; if all do, copies the numbers."""
    parameters = [(p, PTR) for p in ("call", "holds", "given", "kept", "scratch")]
    f = module.function(name, [*parameters, ("conditions", I64), ("numbers", I64)], I64)
    _, holds, given, kept, _, conditions, numbers = f.parameters
    truth, element = STORED["bool"], STORED[dtype]
    with f.loop(0, conditions) as loop:
        one = f.load(truth, f.offset(truth, holds, loop.index))
        fails = f.compare("eq", one, code(truth, 0))
        f.leave_if(fails, lambda: f.ret(code(I64, 1)))
    with f.loop(0, numbers) as loop:
        one = f.load(element, f.offset(element, given, loop.index))
        f.store(one, f.offset(element, kept, loop.index))
    f.ret(code(I64, 0))


KERNELS[CHECK_INDICES] = KernelLowering(_check_kernel)
KERNELS[REQUIRE] = KernelLowering(_require_kernel, gapless=True)
