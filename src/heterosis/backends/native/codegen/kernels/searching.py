"""Where numbers belong in a row in ascending order: binary search, a vector of numbers at a time.

Every number takes the same steps, as many as halve the row to one element: nothing branches on a
comparison. Two vectors take turns, for one's steps wait for what they have loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    I32,
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.target import Target

_TOGETHER = 2  # vectors
_FEW = 1 << 31  # vectors hold places of 32 bits: in longer rows, numbers are looked for one by one


@dataclass(frozen=True)
class Search:
    """What is compiled: the type of elements, and whether equal ones are passed."""

    element: str
    right: bool

    @property
    def type(self) -> Type:
        return Type(self.element)

    @property
    def nanoseconds(self) -> float:
        """A step's, a number."""
        return self.type.bits / 64


def emit_search(module: Module, target: Target, name: str, search: Search) -> None:
    """Define `@name(call, row, numbers, places, scratch, length, count, grain)`, for a row of at
    least one element."""
    from heterosis.backends.native.codegen.kernels.matmul.frame import (
        Frame,  # with its package: not by `import heterosis`
    )

    pointers, sizes = ("call", "row", "numbers", "places", "scratch"), ("length", "count", "grain")
    f = module.function(name, [*((p, PTR) for p in pointers), *((n, I64) for n in sizes)])
    call, row, numbers, places, _, length, count, grain = f.parameters
    frame, memory = Frame(row=row, numbers=numbers, places=places, length=length), Frame.allocate(f)
    frame.save(f, memory)
    abi.parallel_for(f, call, f"{name}.part", memory, count, grain)
    f.ret()
    f, v, begin, end, _ = frame.body(module, target, f"{name}.part")
    found = _Searched(f, search, v.length, v.row, v.numbers, v.places)
    lanes = target.lanes(search.type.bits // 8)
    done: Size = begin
    for together, width in ((_TOGETHER, lanes), (1, 0)):
        step = together * max(width, 1)
        until = f.add_size(done, f.round_down(f.sub_size(end, done), step)) if step > 1 else end
        if width:
            until = f.select(f.compare("slt", v.length, f.i64(_FEW)), f.i64(until), f.i64(done))
        with f.loop(done, until, step) as loop:
            found.look_for(loop.index, together, width)
        done = until
    f.ret()


@dataclass
class _Searched:
    """A row of so many elements, numbers to look for, and where to say what was found."""

    f: Function
    what: Search
    length: Value
    row: Value
    numbers: Value
    places: Value

    def look_for(self, first: Value, together: int, lanes: int) -> None:
        """Look for so many vectors of numbers, or for one number without lanes."""
        f, type_ = self.f, Type(self.what.element, lanes)
        starts = [f.add_size(first, i * max(lanes, 1)) for i in range(together)]
        numbers = [f.load(type_, f.offset(type_, self.numbers, start)) for start in starts]
        zero = constant(Type("i32", lanes) if lanes else I64, 0)
        length = f.convert("trunc", self.length, I32) if lanes else self.length
        with f.loop(0, self._steps(), carried=[length, *([zero] * together)]) as loop:
            left, *bases = loop.carried
            one = constant(left.type, 1)
            half = f.binary("lshr", left, one)
            further = f.splat(half, lanes)
            before = f.splat(f.sub(half, one), lanes)
            loop.next = [f.sub(left, half)]
            for base, number in zip(bases, numbers, strict=True):
                behind = self._is_behind(number, f.add(base, before))
                loop.next.append(f.select(behind, f.add(base, further), base))
        for base, number, start in zip(loop.results[1:], numbers, starts, strict=True):
            last = f.convert("zext", self._is_behind(number, base), base.type)
            place = f.add(base, last)
            place = f.convert("zext", place, Type("i64", lanes)) if lanes else place
            f.store(place, f.offset(I64, self.places, start))

    def _steps(self) -> Value:
        """How many leave one element of the row, of which half is set aside in each, rounded
        down."""
        f = self.f
        ones = f.sub(self.length, f.i64(1))
        zeros = f.call("llvm.ctlz.i64", [ones, constant(Type("i1"), 0)], I64)
        return f.sub(f.i64(64), zeros)

    def _is_behind(self, number: Value, place: Value) -> Value:
        """Whether the number belongs behind the row's element at a place; NaN is the largest."""
        f, right = self.f, self.what.right
        there = self._at(place, number.type)
        if not number.type.is_float:
            return f.compare("sle" if right else "slt", there, number)
        below = f.compare("ole" if right else "olt", there, number)
        none = f.compare("uno", number, number)
        if not right:
            none = f.binary("and", none, f.compare("ord", there, there))
        return f.binary("or", below, none)

    def _at(self, place: Value, type_: Type) -> Value:
        f = self.f
        if not type_.lanes:
            return f.load(type_, f.offset(type_, self.row, place))
        return f.masked_gather(type_, f.offsets(type_, self.row, place), None)
