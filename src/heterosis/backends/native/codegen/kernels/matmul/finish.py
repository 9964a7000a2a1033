"""Runs of finished numbers, through the epilogue into the result."""

from __future__ import annotations

from dataclasses import replace

from heterosis.backends.native.codegen.emit.builder import I64, PTR, Function, Size, Type, Value
from heterosis.backends.native.codegen.epilogue import Epilogue, Position
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import PLACE, Kernel

_FEW = 4  # lanes of the shorter vectors that come before single numbers


def finish_runs(kernel: Kernel, epilogue: Epilogue | None) -> Value:
    """The address of `runs(source, to, count, call, batch, row, column)`, once a module."""
    own = kernel.ended_by(epilogue)
    if not kernel.module.defines(own.name("runs")):
        labels = [("source", PTR), ("to", PTR), ("count", I64), *PLACE]
        f = own.function("runs", labels)
        source, to, count, *place = f.parameters
        if epilogue:
            epilogue.read_words(f, place[0])
        vector = Type(kernel.element.storage.element, kernel.tile.lanes)
        store_run(f, epilogue, source, to, count, vector, Position(*place))
        f.ret()
    return Value(PTR, f"@{own.name('runs')}")


def store_run(
    f: Function, epilogue: Epilogue | None, source: Value, to: Value, count: Size, vector: Type,
    first: Position | None = None,
) -> None:  # fmt: skip
    """`count` numbers from `source` to `to`: through an epilogue, to where in the result the place
    `first` is."""
    kind = vector.scalar

    def some(index: Value, own: Type) -> None:
        value = f.load(own, f.offset(kind, source, index))
        if epilogue:
            assert first is not None, "an epilogue has to know"
            here = replace(first, column=f.add_size(first.column, index))
            value = epilogue(f, value, here)
        f.store(value, f.offset(kind, to, index))

    begin: Size = 0
    for lanes in sorted({vector.lanes, _FEW}, reverse=True):
        end = f.round_down(count, lanes)
        with f.loop(begin, end, lanes) as index:
            some(index.index, Type(kind.element, lanes))
        begin = end
    with f.loop(begin, count) as index:
        some(index.index, kind)
