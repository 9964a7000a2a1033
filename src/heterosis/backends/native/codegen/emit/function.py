"""Kernels in order become one function: its description, its numbers, and its LLVM IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from heterosis.backends.native.codegen import tables
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.abi import ENTRY
from heterosis.backends.native.codegen.emit.access import SPREAD, STORED
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Function,
    Module,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.interleaving import interleaved
from heterosis.backends.native.codegen.emit.nest import emit_nest
from heterosis.backends.native.codegen.emit.short_rows import turned_operands
from heterosis.backends.native.codegen.emit.squares import turned_loads
from heterosis.backends.native.codegen.kernel import KernelCode, OpaqueCall, Place, Schedule
from heterosis.backends.native.codegen.nest import (
    Apply,
    Argument,
    Buffer,
    Counter,
    Extent,
    Indices,
    Load,
    Nest,
    Number,
    Operand,
    Slot,
    Step,
    Store,
    known,
)
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.table_sizes import largest
from heterosis.ir.traced_sizes import is_traced

# A handful of loads and calls: LLVM's quick path does them in a tenth of the time.
PLAIN = "noinline optnone"

SHARE_NANOSECONDS = 20_000.0  # work that is worth handing to another thread
_POINT_NANOSECONDS = 0.05  # one addition, load or store of a vectorised loop, an element
_SHARE_MULTIPLE = 256  # shares of a vectorised dimension end where lines of memory do


@dataclass(frozen=True)
class NestPart:
    """A loop nest and the number of points of its first dimension in one share."""

    nest: Nest
    grain: Number


@dataclass(frozen=True)
class CallPart:
    """Another kernel: where its operands are, and the numbers it takes."""

    code: KernelCode
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    scratch: Buffer | None
    numbers: tuple[Number, ...]

    def __repr__(self) -> str:
        places = (self.inputs, self.outputs, self.scratch, self.numbers)
        return f"CallPart({self.code.key}, {places})"


@dataclass(frozen=True)
class FunctionCode:
    """One function as data. Equal `key`s, equal machine code; `integers` go into the call."""

    parts: tuple[NestPart | CallPart, ...]
    integers: tuple[int, ...]
    nanoseconds: float
    failures: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        return repr(self.parts)

    def emit(self, target: Target) -> str:
        """The LLVM IR of the function and all that it calls."""
        module = Module(target=target)
        f = module.function(ENTRY, [("call", PTR)], I64, linkage="", attributes=PLAIN)
        failures = 0
        for i, part in enumerate(self.parts):
            if isinstance(part, NestPart):
                _emit_nest_part(f, target, part, f"nest{i}")
            else:
                _emit_call_part(f, target, part, f"kernel{i}", failures)
                failures += len(part.code.failures)
        f.ret(constant(I64, 0))
        return module.text()


def function_for_any_size(schedule: Schedule) -> FunctionCode:
    """The function whose sizes and strides are passed: a new shape needs no new code."""
    return _function(schedule, Numbers(schedule.starts))


class Numbers:
    """Turns numbers into slots and remembers what to pass in them."""

    def __init__(self, starts: Sequence[int]) -> None:
        self.starts = starts  # of the temporaries
        self.passed: list[int] = []

    def slot(self, number: Number) -> Number:
        self.passed.append(known(number))
        return Slot(len(self.passed) - 1)

    def unless(self, literals: tuple[int, ...], number: Number) -> Number:
        """A slot, except for the numbers that the shape of the code depends on."""
        return number if number in literals else self.slot(number)

    def argument(self, index: Number) -> Number:
        """Which number argument a step takes: part of the code."""
        return index

    def address(self, buffer: Buffer, dtype: str, offset: Number) -> tuple[Buffer, Number]:
        """Where an operand begins: a buffer, and the elements before it."""
        return self.buffer(buffer), self.unless((0,), offset)

    def buffer(self, buffer: Buffer) -> Buffer:
        """A buffer as the code finds it."""
        if buffer.kind == "call":
            return buffer
        # Of several, which one is the first depends on sizes, and on how many threads have scratch.
        literals = (0,) if len(self.starts) == 1 else ()
        return replace(buffer, index=self.unless(literals, self.starts[known(buffer.index)]))


class OwnNumbers(Numbers):
    """The numbers of one nest alone: its buffers are counted from zero, and `places` says what they
    are, with the type and the offset of their elements."""

    def __init__(self) -> None:
        super().__init__(())
        self._numbers: dict[tuple[Buffer, str, int], int] = {}

    @property
    def places(self) -> tuple[tuple[Buffer, str, int], ...]:
        return tuple(self._numbers)

    def argument(self, index: Number) -> Number:
        return self.slot(index)  # each update of a parameter takes numbers of its own

    def address(self, buffer: Buffer, dtype: str, offset: Number) -> tuple[Buffer, Number]:
        # Not by where it is placed: a nest that works in place is to share the others' code.
        place = (buffer, dtype, known(offset))
        return Buffer("call", self._numbers.setdefault(place, len(self._numbers))), 0


def _function(schedule: Schedule, numbers: Numbers) -> FunctionCode:
    parts: list[NestPart | CallPart] = []
    failures: list[tuple[str, str]] = []
    total = 0.0
    for kernel in schedule.kernels:
        if isinstance(kernel, OpaqueCall):
            parts.append(_call_part(kernel, numbers))
            failures += kernel.code.failures
            total += kernel.code.nanoseconds
        else:
            nanoseconds = nest_nanoseconds(kernel)
            total += nanoseconds
            grain = numbers.slot(grain_of(kernel, nanoseconds))
            parts.append(NestPart(open_nest(kernel, numbers), grain))
    return FunctionCode(tuple(parts), tuple(numbers.passed), total, tuple(failures))


def nest_nanoseconds(nest: Nest) -> float:
    """A rough price, good enough to choose between running at once and handing out."""
    applied = [s.primitive for s in nest.steps if isinstance(s, Apply)]
    work = tables.cost(applied) + len(nest.steps) - len(applied)
    points = prod(map(known, nest.kept + nest.reduced))
    dear = 8.0 if nest.vector == "none" else 1.0
    return points * (work + len(nest.stores)) * _POINT_NANOSECONDS * dear


def grain_of_turns(count: int, nanoseconds: float) -> int:
    """How many of `count` turns that take so long together are worth handing to another thread."""
    if is_traced(nanoseconds):
        return largest(1, math.floor(count * SHARE_NANOSECONDS / nanoseconds))
    return max(1, int(count * SHARE_NANOSECONDS / max(nanoseconds, 1.0)))


def grain_of(nest: Nest, nanoseconds: float) -> int:
    """How many points of the first dimension are worth handing to another thread."""
    count = known(nest.kept[0])
    if nest.scatters:
        return largest(count, 1)
    grain = grain_of_turns(count, nanoseconds)
    if len(nest.kept) == 1 and nest.vector in ("kept", "rows"):
        grain = -(-grain // _SHARE_MULTIPLE) * _SHARE_MULTIPLE
    return grain


# -- any size: numbers become slots ---------------------------------------------------------------


def open_nest(nest: Nest, numbers: Numbers) -> Nest:
    """`nest` with what `numbers` makes of its own."""
    nest = interleaved(nest)
    level = nest.vector_level
    turned, last = turned_loads(nest), len(nest.kept) + len(nest.reduced) - 1
    runs = dict.fromkeys(turned.loads.values(), turned.level) if turned else {}
    columns = turned_operands(nest)
    runs |= dict.fromkeys(columns, last)

    def strides(own: tuple[Number, ...], along: int = level) -> tuple[Number, ...]:
        literals = dict.fromkeys((level, along), (-1, 0, 1, *SPREAD))
        return tuple(numbers.unless(literals.get(d, (0,)), s) for d, s in enumerate(own))

    aside: dict[Operand, Operand] = {}  # which of several are one has to show in the code

    def operand(own: Operand) -> Operand:
        if own not in columns:
            return opened(own)
        return aside.get(own) or aside.setdefault(own, opened(own))

    def opened(own: Operand) -> Operand:
        buffer, offset = numbers.address(own.buffer, own.dtype, own.offset)
        return Operand(buffer, own.dtype, offset, strides(own.strides, runs.get(own, level)))

    def indices(own: Indices) -> Indices:
        return tuple((step, numbers.slot(stride)) for step, stride in own)

    def step(own: Step) -> Step:
        match own:
            case Load():
                return Load(operand(own.operand), indices(own.indices))
            case Extent():
                return replace(own, value=numbers.slot(own.value))
            case Argument():
                return replace(own, index=numbers.argument(own.index))
            case Counter():
                offset = numbers.unless((0,), own.offset)
                return replace(own, offset=offset, strides=strides(own.strides))
        return own

    def store(own: Store) -> Store:
        return replace(own, operand=operand(own.operand), indices=indices(own.indices))

    return replace(
        nest,
        kept=tuple(numbers.slot(n) for n in nest.kept),
        reduced=tuple(numbers.slot(n) for n in nest.reduced),
        steps=tuple(step(s) for s in nest.steps),
        stores=tuple(store(s) for s in nest.stores),
    )


def _call_part(call: OpaqueCall, numbers: Numbers) -> CallPart:
    def operand(place: Place) -> Operand:
        buffer, offset = numbers.address(place.buffer, place.dtype, place.strided.offset)
        return Operand(buffer, place.dtype, offset, ())

    return CallPart(
        call.code,
        tuple(operand(p) for p in call.inputs),
        tuple(operand(p) for p in call.outputs),
        numbers.buffer(call.scratch) if call.scratch else None,
        tuple(numbers.slot(n) for n in call.code.numbers),
    )


# -- emission -------------------------------------------------------------------------------------


def _emit_nest_part(f: Function, target: Target, part: NestPart, name: str) -> None:
    emit_nest(f.module, target, name, part.nest)
    (call,) = f.parameters
    count = _number(f, call, part.nest.kept[0])
    abi.parallel_for(f, call, name, call, count, _number(f, call, part.grain))


def _emit_call_part(f: Function, target: Target, part: CallPart, name: str, failures: int) -> None:
    part.code.emit(f.module, target, name)
    (call,) = f.parameters
    arguments = [call, *(_address(f, call, o) for o in part.inputs + part.outputs)]
    arguments.append(_scratch(f, call, part.scratch))
    arguments += [f.i64(_number(f, call, n)) for n in part.numbers]
    if not part.code.failures:
        f.call(name, arguments)
        return
    status = f.call(name, arguments, I64)
    return_if_failed(f, status, failures)


def return_if_failed(
    f: Function,
    status: Value,
    failures: int | Value,
    leaving: Callable[[], object] = lambda: None,
) -> None:
    """Leave with a kernel's failure, once `leaving` is done; `failures` is how many the kernels
    before have."""

    def leave() -> None:
        leaving()
        f.ret(f.add(status, f.i64(failures)))

    f.leave_if(f.compare("ne", status, constant(I64, 0)), leave)


def _number(f: Function, call: Value, number: Number) -> Value | int:
    return abi.integer(f, call, number.index) if isinstance(number, Slot) else number


def _address(f: Function, call: Value, operand: Operand) -> Value:
    if operand.buffer.kind == "call":
        base = abi.buffer(f, call, known(operand.buffer.index))
    else:
        base = _scratch(f, call, operand.buffer)
    return f.offset(STORED[operand.dtype], base, _number(f, call, operand.offset))


def _scratch(f: Function, call: Value, buffer: Buffer | None) -> Value:
    start = abi.workspace(f, call)
    if buffer is None:
        return start
    return f.offset(Type("i8"), start, _number(f, call, buffer.index))
