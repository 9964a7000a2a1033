"""Where the first largest or smallest element of each row stands; the first NaN, if there is one.

Rows are taken in blocks: first the extreme of each, a vector at a time, then the place where it is
first met in the first block that has it, which alone is read again. Blocks of long rows are shared
between threads. The last one of a row begins earlier than it would have to, so that none is short:
what it has twice comes first where it is met first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import COMPUTED, STORED, computed, load_vector
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
from heterosis.backends.native.codegen.emit.reducers import above
from heterosis.backends.native.codegen.emit.transposition import side_by_side
from heterosis.backends.native.codegen.target import Target

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.kernels.matmul.frame import Frame

BLOCK = 4096
_TOGETHER = 4  # vectors, none of which waits for another
_ASKED = 128  # bytes that are searched at a time (measured with 64 to 512)
# How many bytes ahead to fetch: while a place is looked for, the next rows arrive. Of elements
# of fewer bits there is less to wait for.
_AHEAD, _WIDE = 4096, 32


@dataclass(frozen=True)
class RowExtremes:
    """What is compiled: the type of elements, and which of them is looked for."""

    dtype: str
    smallest: bool


def emit_extremes(module: Module, target: Target, name: str, what: RowExtremes) -> None:
    """Define `@name(call, elements, places, scratch, rows, length, grain)`, for rows of one or more
    elements without gaps. Of rows longer than a block, the scratch memory has room for the extremes
    of blocks, and `grain` is in blocks."""
    from heterosis.backends.native.codegen.kernels.matmul.frame import (
        Frame,  # with its package: not by `import heterosis`
    )

    # The bytes of truth values are compared as numbers.
    dtype = "uint8" if what.dtype == "bool" else what.dtype
    given = _Elements(module, target, f"{name}.given", dtype, what.smallest)
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    kept = _Elements(module, target, f"{name}.kept", wide, what.smallest)
    pointers, numbers = ("call", "elements", "places", "scratch"), ("rows", "length", "grain")
    f = module.function(name, [*((p, PTR) for p in pointers), *((n, I64) for n in numbers)])
    values = dict(zip((*pointers, *numbers), f.parameters, strict=True))
    call, grain = values.pop("call"), values.pop("grain")
    blocks = f.div_size(f.add_size(values["length"], BLOCK - 1), BLOCK)
    frame, memory = Frame(**values, blocks=f.i64(blocks)), Frame.allocate(f)
    frame.save(f, memory)
    count = f.mul(values["rows"], f.i64(blocks))
    abi.parallel_for(f, call, f"{name}.blocks", memory, count, grain)

    def of_several() -> None:
        row = _Row(f, given, values["elements"], values["length"])
        with f.loop(0, values["rows"]) as loop:
            extremes = f.offset(kept.stored, values["scratch"], f.mul_size(loop.index, blocks))
            best = kept.extreme(f, extremes, f.i64(blocks))
            block = kept.place(f, extremes, f.i64(blocks), best)
            elements, size, start = row.block(loop.index, block)
            place = f.add(start, given.place(f, elements, size, best))
            f.store(place, f.offset(I64, values["places"], loop.index))

    f.if_else(f.compare("sgt", f.i64(blocks), f.i64(1)), of_several)
    f.ret()
    _emit_blocks(module, target, f"{name}.blocks", frame, given, kept)


def _emit_blocks(
    module: Module, target: Target, name: str, frame: Frame, given: _Elements, kept: _Elements
) -> None:
    f, v, begin, end, _ = frame.body(module, target, name)
    row = _Row(f, given, v.elements, v.length)
    with f.loop(begin, end) as loop:
        number = f.div_size(loop.index, v.blocks)
        elements, size, _ = row.block(number, f.rem_size(loop.index, v.blocks))
        best = given.extreme(f, elements, size)

        def alone(elements: Value = elements, size: Value = size) -> None:
            place = given.place(f, elements, size, best)
            f.store(place, f.offset(I64, v.places, number))

        def one_of_several(at: Value = loop.index) -> None:
            f.store(best, f.offset(kept.stored, v.scratch, at))

        f.if_else(f.compare("eq", v.blocks, f.i64(1)), alone, one_of_several)
    f.ret()


@dataclass
class _Row:
    """Rows of so many elements, by their numbers."""

    f: Function
    kind: _Elements
    elements: Value
    length: Value

    def block(self, row: Size, block: Size) -> tuple[Value, Value, Value]:
        """Where a block of a row is, how many elements it has, and how many stand before it."""
        f = self.f
        size = f.i64(f.min_size(self.length, BLOCK))
        start = f.i64(f.min_size(f.mul_size(block, BLOCK), f.sub(self.length, size)))
        first = f.add_size(f.mul_size(row, self.length), start)
        return f.offset(self.kind.stored, self.elements, first), size, start


class _Elements:
    """Functions of the module for elements of one type: their extreme, and where it is."""

    def __init__(
        self, module: Module, target: Target, name: str, dtype: str, smallest: bool
    ) -> None:
        self.dtype, self.name = dtype, name
        self.stored, self.computed = STORED[dtype], COMPUTED[dtype]
        self.smallest = smallest
        self.lanes = target.lanes(self.computed.bits // 8)
        parameters = [("elements", PTR), ("count", I64)]
        options = {"attributes": target.function_attributes}
        f = module.function(f"{name}.extreme", parameters, self.computed, **options)
        elements, count = f.parameters
        many = f.compare("sge", count, f.i64(self.lanes))
        found = f.if_else(
            many,
            lambda: [self._of_vectors(f, elements, count)],
            lambda: [self._one_by_one(f, elements, count)[0]],
        )
        f.ret(found[0])
        parameters.append(("extreme", self.computed))
        f = module.function(f"{name}.place", parameters, I64, **options)
        elements, count, extreme = f.parameters
        many = f.compare("sge", count, f.i64(self.lanes))
        found = f.if_else(
            many,
            lambda: [self._first_met(f, elements, count, extreme)],
            lambda: [self._one_by_one(f, elements, count)[1]],
        )
        f.ret(found[0])

    def extreme(self, f: Function, elements: Value, count: Value) -> Value:
        return f.call(f"{self.name}.extreme", [elements, count], self.computed)

    def place(self, f: Function, elements: Value, count: Value, extreme: Value) -> Value:
        return f.call(f"{self.name}.place", [elements, count, extreme], I64)

    def _load(self, f: Function, elements: Value, index: Size) -> Value:
        return load_vector(
            f, self.dtype, f.offset(self.stored, elements, index), 1, self.lanes, None
        )

    def _of_vectors(self, f: Function, elements: Value, count: Value) -> Value:
        """Of as many elements as a vector has, or more."""
        last = f.sub(count, f.i64(self.lanes))
        step = _TOGETHER * self.lanes
        nothing = constant(Type(f"i{self.computed.bits}", self.lanes), 0)
        seen = [nothing] * (_TOGETHER // 2 if self.computed.is_float else 0)
        state = [self._load(f, elements, 0)] * _TOGETHER
        with f.loop(0, f.round_down(count, step), step, carried=[*state, *seen]) as loop:
            if self.stored.bits >= _WIDE:
                ahead = f.offset(I8, f.offset(self.stored, elements, loop.index), _AHEAD)
                f.prefetch(ahead, step * self.stored.bits // 8)
            starts = [f.add_size(loop.index, i * self.lanes) for i in range(_TOGETHER)]
            given = [self._load(f, elements, start) for start in starts]
            best, seen = loop.carried[:_TOGETHER], loop.carried[_TOGETHER:]
            pairs = zip(given[::2], given[1::2], seen, strict=False)
            loop.next = [self._better(f, x, own) for x, own in zip(given, best, strict=True)]
            loop.next += [self._without_order(f, *pair) for pair in pairs]
        best, seen = loop.results[:_TOGETHER], loop.results[_TOGETHER:]
        carried = [best[0], *seen[:1]]
        with f.loop(f.round_down(count, step), count, self.lanes, carried=carried) as rest:
            x = self._load(f, elements, f.min_size(rest.index, last))
            own, *noted = rest.carried
            rest.next = [self._better(f, x, own)]
            rest.next += [self._without_order(f, x, x, before) for before in noted]
        found = self._of_lanes(f, reduce(partial(self._better, f), [*best[1:], rest.results[0]]))
        if not seen:
            return found
        any_seen = reduce(partial(f.binary, "or"), [*seen[1:], rest.results[1]])
        some = self._bits(f, f.compare("ne", any_seen, nothing))
        is_number = f.compare("eq", some, constant(some.type, 0))
        return f.select(is_number, found, constant(self.computed, math.nan))

    def _better(self, f: Function, a: Value, b: Value) -> Value:
        """The better of two, lane by lane; any of both if one is no number."""
        pair = (b, a) if self.smallest else (a, b)
        return f.select(above(f, self.dtype, *pair), a, b)

    def _without_order(self, f: Function, a: Value, b: Value, before: Value) -> Value:
        """Lanes in which one of two is no number, or that were noted `before`: all bits are set.

        To ask about two numbers takes no longer than about one, and half as long as to let each
        decide which of two is the better.
        """
        return f.binary("or", before, f.convert("sext", f.compare("uno", a, b), before.type))

    def _of_lanes(self, f: Function, best: Value) -> Value:
        """The best of a vector's numbers."""
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            halves = (f.shuffle(best, best, range(i, i + lanes)) for i in (0, lanes))
            best = self._better(f, *halves)
        return f.extract(best, 0)

    def _first_met(self, f: Function, elements: Value, count: Value, extreme: Value) -> Value:
        """The first place of an extreme that is there, in as many elements as a vector has, or
        more."""
        wanted = f.splat(extreme, self.lanes)

        def first(is_met: Callable[[Value], Value]) -> list[Value]:
            return [self._first(f, elements, count, is_met)]

        if not extreme.type.is_float:
            return first(lambda x: f.compare("eq", x, wanted))[0]
        # It is no number only if there is one such, and equals nothing then.
        return f.if_else(
            f.compare("ord", extreme, extreme),
            lambda: first(lambda x: f.compare("oeq", x, wanted)),
            lambda: first(lambda x: f.compare("uno", x, x)),
        )[0]

    def _first(
        self, f: Function, elements: Value, count: Value, is_met: Callable[[Value], Value]
    ) -> Value:
        """The first place that is met, in as many elements as a vector has, or more."""
        several = min(8 * _ASKED // self.computed.bits, 64) // self.lanes  # one bit for each
        if several == 1:
            return self._first_of(f, elements, count, is_met, 1)
        many = f.compare("sge", count, f.i64(several * self.lanes))
        found = f.if_else(
            many,
            lambda: [self._first_of(f, elements, count, is_met, several)],
            lambda: [self._first_of(f, elements, count, is_met, 1)],
        )
        return found[0]

    def _first_of(
        self, f: Function, elements: Value, count: Value, is_met: Callable[[Value], Value],
        vectors: int,
    ) -> Value:  # fmt: skip
        """The same in as many elements as so many vectors have, or more. These are asked at a time;
        the last ones begin earlier, so that they are whole."""
        together = vectors * self.lanes

        def met(first: Value) -> list[Value]:
            starts = [f.add_size(first, i * self.lanes) for i in range(vectors)]
            return [is_met(self._load(f, elements, start)) for start in starts]

        last = f.sub(count, f.i64(together))
        with f.repeat([f.i64(0), f.i64(0)]) as loop:
            at, _ = loop.carried
            first = f.i64(f.min_size(at, last))
            some = self._bits(f, reduce(partial(f.binary, "or"), met(first)))
            following = f.add(at, f.i64(together))
            nowhere = f.compare("eq", some, constant(some.type, 0))
            loop.next = [following, first]
            loop.more = f.binary("and", nowhere, f.compare("slt", following, count))
        _, first = loop.results
        bits = self._bits(f, side_by_side(f, met(first)))
        number = f.call(f"llvm.cttz.{bits.type}", [bits, constant(Type("i1"), 0)], bits.type)
        return f.add(first, number if bits.type == I64 else f.convert("zext", number, I64))

    def _bits(self, f: Function, truths: Value) -> Value:
        return f.convert("bitcast", truths, Type(f"i{truths.type.lanes}"))

    def _one_by_one(self, f: Function, elements: Value, count: Value) -> list[Value]:
        """The extreme of few elements, and its place."""
        first = computed(f, self.dtype, f.load(self.stored, elements))
        with f.loop(1, count, carried=[first, f.i64(0)]) as loop:
            best, place = loop.carried
            at = f.offset(self.stored, elements, loop.index)
            x = computed(f, self.dtype, f.load(self.stored, at))
            pair = (best, x) if self.smallest else (x, best)
            takes = above(f, self.dtype, *pair)
            if x.type.is_float:
                none = f.binary("and", f.compare("uno", x, x), f.compare("ord", best, best))
                takes = f.binary("and", f.compare("ord", best, best), takes)
                takes = f.binary("or", takes, none)
            loop.next = [f.select(takes, x, best), f.select(takes, loop.index, place)]
        return loop.results
