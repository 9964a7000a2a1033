"""The kernel that puts numbers in random order."""

from __future__ import annotations

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


def _emit(module: Module, target: Target, name: str) -> None:
    pointers = [(label, PTR) for label in ("call", "key", "places", "scratch")]
    f = module.function(name, [*pointers, ("count", I64), ("wanted", I64)])
    _, key_at, places, _, count, wanted = f.parameters
    key = Number(f, f.load(I64, key_at))
    with f.loop(0, count) as loop:
        f.store(loop.index, f.offset(I64, places, loop.index))
    with f.loop(0, wanted) as loop:
        left = f.sub(count, loop.index)
        bits = block(Number(f, loop.index), key)
        other = f.add(loop.index, below(bits, Number(f, left)).value)
        _swap(f, places, loop.index, other)
    f.ret()


def _swap(f: Function, places: Value, a: Value, b: Value) -> None:
    first, second = f.offset(I64, places, a), f.offset(I64, places, b)
    x, y = f.load(I64, first), f.load(I64, second)
    f.store(y, first)
    f.store(x, second)
