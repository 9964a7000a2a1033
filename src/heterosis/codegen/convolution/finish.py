"""Runs of finished numbers, through the epilogue into the result."""

from __future__ import annotations

from dataclasses import replace

from heterosis.codegen.builder import Function, Size, Type, Value
from heterosis.codegen.epilogue import Epilogue, Position

_FEW = 4  # lanes of the shorter vectors that come before single numbers


def store_run(
    f: Function, epilogue: Epilogue | None, source: Value, to: Value, count: Size, vector: Type,
    first: Position,
) -> None:  # fmt: skip
    """`count` numbers from `source` to `to`, where in the result the place `first` is."""
    kind = vector.scalar

    def some(index: Value, own: Type) -> None:
        value = f.load(own, f.offset(kind, source, index))
        if epilogue:
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
