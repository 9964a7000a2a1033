"""The kernel that puts numbers in random order."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Function, Module, Value
from heterosis.backends.native.codegen.kernel import KernelCode
from heterosis.backends.native.codegen.kernels.random_bits import below, block
from heterosis.backends.native.codegen.mathematics.number import Number
from heterosis.backends.native.codegen.target import Target


def shuffled_places(count: int, wanted: int) -> KernelCode:
    """The first `wanted` of the numbers 0 ... count - 1 in random order: `(key) -> places`.

    The result has room for all: those behind `wanted` are what the shuffle left there.
    """
    return KernelCode(
        key="shuffled_places",
        emit=_emit,
        numbers=(count, wanted),
        nanoseconds=2.0 * count + 10.0 * wanted,
    )


_AT_ONCE = 64  # numbers that are drawn in vectors, and then used one by one


def _emit(module: Module, target: Target, name: str) -> None:
    pointers = [(label, PTR) for label in ("call", "key", "places", "scratch")]
    parameters = [*pointers, ("count", I64), ("wanted", I64)]
    f = module.function(name, parameters, attributes=target.function_attributes)
    drawn = f.allocate(I64, _AT_ONCE)
    _, key_at, places, _, count, wanted = f.parameters
    key = f.load(I64, key_at)
    lanes = target.lanes(8)
    _number(f, places, count, lanes)
    whole = f.round_down(wanted, _AT_ONCE)
    with f.loop(0, whole, _AT_ONCE) as loop:
        with f.loop(0, _AT_ONCE, lanes) as draws:
            turns = f.add(
                f.splat(f.add(loop.index, draws.index), lanes), lane_numbers(f, lanes, I64)
            )
            f.store(_others(f, turns, count, key), f.offset(I64, drawn, draws.index))
        with f.loop(0, _AT_ONCE) as swaps:
            other = f.load(I64, f.offset(I64, drawn, swaps.index))
            _swap(f, places, f.add(loop.index, swaps.index), other)
    with f.loop(whole, wanted) as loop:
        _swap(f, places, loop.index, _others(f, loop.index, count, key))
    f.ret()


def _number(f: Function, places: Value, count: Value, lanes: int) -> None:
    """Every place's own number."""
    whole = f.round_down(count, lanes)
    with f.loop(0, whole, lanes) as loop:
        numbers = f.add(f.splat(loop.index, lanes), lane_numbers(f, lanes, I64))
        f.store(numbers, f.offset(I64, places, loop.index))
    with f.loop(whole, count) as loop:
        f.store(loop.index, f.offset(I64, places, loop.index))


def _others(f: Function, turns: Value, count: Value, key: Value) -> Value:
    """With which place each of these turns, one or a vector of them, swaps its own."""
    lanes = turns.type.lanes
    left = f.sub(f.splat(count, lanes), turns)
    bits = block(Number(f, turns), Number(f, f.splat(key, lanes)))
    return f.add(turns, below(bits, Number(f, left)).value)


def _swap(f: Function, places: Value, a: Value, b: Value) -> None:
    first, second = f.offset(I64, places, a), f.offset(I64, places, b)
    x, y = f.load(I64, first), f.load(I64, second)
    f.store(y, first)
    f.store(x, second)
