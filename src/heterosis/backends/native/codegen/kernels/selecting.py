"""The places of the first few keys of each row, in their order: what sorting the row begins with.

The few are kept sorted while the row goes by. Most keys are no smaller than the last of them, which
a vector of keys tells with one comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit import abi
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

_BLOCK_BYTES = 64  # of keys that are compared at once


@dataclass(frozen=True)
class RowSelection:
    """What is compiled: the width of the keys, and how many are wanted."""

    bits: int
    count: int

    @property
    def key(self) -> Type:
        return Type(f"i{self.bits}")


def emit_selection(module: Module, name: str, selection: RowSelection) -> None:
    """Define `@name(call, keys, places, scratch, rows, length, grain)`, for rows without gaps of at
    least as many keys as are wanted."""
    from heterosis.backends.native.codegen.kernels.matmul.frame import (
        Frame,  # with its package: not by `import heterosis`
    )

    pointers, numbers = ("call", "keys", "places", "scratch"), ("rows", "length", "grain")
    f = module.function(name, [*((p, PTR) for p in pointers), *((n, I64) for n in numbers)])
    call, keys, places, _, rows, length, grain = f.parameters
    frame, memory = Frame(keys=keys, places=places, length=length), Frame.allocate(f)
    frame.save(f, memory)
    abi.parallel_for(f, call, f"{name}.rows", memory, rows, grain)
    f.ret()
    f = module.function(f"{name}.rows", abi.LOOP_BODY_PARAMETERS)
    context, begin, end, _ = f.parameters
    kept = f.allocate(selection.key, selection.count)
    v = frame.load(f, context)
    with f.loop(begin, end) as loop:
        keys = f.offset(selection.key, v.keys, f.mul(loop.index, v.length))
        places = f.offset(I64, v.places, f.mul_size(loop.index, selection.count))
        _Row(f, selection, v.length, keys, kept, places).select()
    f.ret()


@dataclass
class _Row:
    """One row: its length, its keys, those kept so far in order, and their places."""

    f: Function
    selection: RowSelection
    length: Value
    keys: Value
    kept: Value
    places: Value

    def select(self) -> None:
        f, count = self.f, self.selection.count
        with f.loop(0, count) as loop:
            self._put(loop.index, loop.index)
        block = _BLOCK_BYTES * 8 // self.selection.bits
        blocks_end = f.add_size(f.round_down(f.sub_size(self.length, count), block), count)
        with f.loop(count, blocks_end, block) as loop:
            keys = Type(self.selection.key.element, block)
            found = f.load(keys, self._key_at(loop.index), align=self.selection.bits // 8)
            small = f.compare("ult", found, f.splat(self._last(), block))
            mask = f.convert("bitcast", small, Type(f"i{block}"))

            def look(first: Value = loop.index) -> None:
                self._look_through(first, f.add_size(first, block))

            f.if_else(f.compare("ne", mask, constant(mask.type, 0)), look)
        self._look_through(blocks_end, self.length)

    def _look_through(self, first: Size, last: Size) -> None:
        """Keep what is small among these keys, one after the other."""
        f = self.f
        with f.loop(first, last) as loop:
            small = f.compare("ult", self._load(self._key_at(loop.index)), self._last())

            def put(place: Value = loop.index) -> None:
                self._put(place, f.i64(self.selection.count))

            f.if_else(small, put)

    def _put(self, place: Value, filled: Value) -> None:
        """Keep a key behind those of the `filled` first that are no larger; the others move on."""
        f, count = self.f, self.selection.count
        key = self._load(self._key_at(place))
        with f.loop(0, filled, carried=[f.i64(0)]) as loop:
            before = f.compare("ule", self._load(self._kept_at(loop.index)), key)
            loop.next = [f.add(loop.carried[0], f.convert("zext", before, I64))]
        (rank,) = loop.results
        with f.loop(rank, f.min_size(f.add_size(filled, 1), count), carried=[key, place]) as loop:
            kept, at = self._kept_at(loop.index), f.offset(I64, self.places, loop.index)
            loop.next = [self._load(kept), f.load(I64, at)]
            f.store(loop.carried[0], kept)
            f.store(loop.carried[1], at)

    def _last(self) -> Value:
        return self._load(self._kept_at(self.selection.count - 1))

    def _key_at(self, place: Size) -> Value:
        return self.f.offset(self.selection.key, self.keys, place)

    def _kept_at(self, place: Size) -> Value:
        return self.f.offset(self.selection.key, self.kept, place)

    def _load(self, pointer: Value) -> Value:
        return self.f.load(self.selection.key, pointer)
