"""The kernels of a whole program as one function of known sizes.

Kernels that differ in numbers and operands only share their code: a loop nest sees a call of its
own, with its buffers and its numbers in it, so that fifty layers compile like one. Numbers written
into a nest's code would not make it faster: its loops are vectors and a masked rest either way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from heterosis.codegen import abi
from heterosis.codegen.abi import ENTRY
from heterosis.codegen.builder import I64, PTR, Module, Type, Value, constant
from heterosis.codegen.emit_nest import emit_nest
from heterosis.codegen.function import (
    PLAIN,
    Numbers,
    grain_of,
    nest_nanoseconds,
    open_nest,
    return_if_failed,
)
from heterosis.codegen.kernel import Kernel, KernelCode, OpaqueCall, Schedule
from heterosis.codegen.memory import STORED
from heterosis.codegen.nest import Buffer, Nest, Number, known
from heterosis.codegen.target import Target


@dataclass(frozen=True, slots=True)
class Address:
    """The beginning of an operand: `offset` elements of `dtype` into a buffer, its bytes if a
    temporary, being known."""

    buffer: Buffer
    dtype: str
    offset: int


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of kernel number `unit` of the program; `count` and `grain` are a nest's."""

    unit: int
    addresses: tuple[Address, ...]
    numbers: tuple[int, ...]
    count: int = 0
    grain: int = 0


@dataclass(frozen=True)
class ProgramCode:
    """A function as data, like `function.FunctionCode`; it takes no integers."""

    units: tuple[Nest | KernelCode, ...]
    calls: tuple[KernelCall, ...]
    nanoseconds: float
    failures: tuple[tuple[str, str], ...]
    integers: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Equal keys, equal machine code."""
        units = [u.key if isinstance(u, KernelCode) else repr(u) for u in self.units]
        return f"program {units} {self.calls}"

    @property
    def parts(self) -> tuple[Hashable, ...]:
        """What it is found by in memory; empty if there is nothing to run."""
        return (self.key,) if self.calls else ()

    def emit(self, target: Target) -> str:
        """The LLVM IR of the function and all that it calls."""
        return _Emitter(target, self).text()


def function_for_known_sizes(schedule: Schedule) -> ProgramCode:
    """The function for these sizes alone."""
    collected = _Collected(schedule.starts)
    for kernel in schedule.kernels:
        collected.add(kernel)
    return ProgramCode(
        tuple(collected.units),
        tuple(collected.calls),
        collected.nanoseconds,
        tuple(collected.failures),
    )


@dataclass
class _Collected:
    """Kernels so far: each distinct one once, and every call."""

    starts: Sequence[int]
    units: list[Nest | KernelCode] = field(default_factory=list)
    calls: list[KernelCall] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    nanoseconds: float = 0.0
    _numbers: dict[Hashable, int] = field(default_factory=dict)  # of the units

    def add(self, kernel: Kernel) -> None:
        if isinstance(kernel, OpaqueCall):
            self._add_call(kernel)
        else:
            self._add_nest(kernel)

    def _unit(self, key: Hashable, unit: Nest | KernelCode) -> int:
        """The number of `unit`, the same for all with this `key`."""
        if key not in self._numbers:
            self._numbers[key] = len(self.units)
            self.units.append(unit)
        return self._numbers[key]

    def _add_nest(self, nest: Nest) -> None:
        nanoseconds = nest_nanoseconds(nest)
        self.nanoseconds += nanoseconds
        local = _Local(self.starts)
        opened = open_nest(nest, local)
        addresses, numbers = local.addresses(), tuple(local.passed)
        grain = grain_of(nest, nanoseconds)
        unit = self._unit(opened, opened)
        self.calls.append(KernelCall(unit, addresses, numbers, known(nest.kept[0]), grain))

    def _add_call(self, call: OpaqueCall) -> None:
        code = call.code
        self.nanoseconds += code.nanoseconds
        self.failures += code.failures
        addresses = [
            Address(_placed(p.buffer, self.starts), p.dtype, p.strided.offset)
            for p in call.inputs + call.outputs
        ]
        scratch = _placed(call.scratch, self.starts) if call.scratch else Buffer("temporary", 0)
        addresses.append(Address(scratch, "int8", 0))
        unit = self._unit((code.key, len(code.failures)), code)
        self.calls.append(KernelCall(unit, tuple(addresses), code.numbers))


def _placed(buffer: Buffer, starts: Sequence[int]) -> Buffer:
    return buffer if buffer.kind == "call" else Buffer(buffer.kind, starts[known(buffer.index)])


class _Local(Numbers):
    """The numbers of one nest, whose buffers are counted from zero."""

    def __init__(self, starts: Sequence[int]):
        super().__init__(starts)
        self._places: dict[tuple[Buffer, str, int], int] = {}

    def address(self, buffer: Buffer, dtype: str, offset: int) -> tuple[Buffer, Number]:
        # Not by where it is placed: a nest that works in place is to share the others' code.
        place = (buffer, dtype, offset)
        return Buffer("call", self._places.setdefault(place, len(self._places))), 0

    def addresses(self) -> tuple[Address, ...]:
        """What the nest's buffers are, in its order."""
        return tuple(Address(_placed(b, self.starts), d, o) for b, d, o in self._places)


# -- emission -------------------------------------------------------------------------------------


class _Emitter:
    def __init__(self, target: Target, code: ProgramCode):
        self.code, self.target = code, target
        self.module = Module(target=target)
        self.f = self.module.function(ENTRY, [("call", PTR)], I64, linkage="", attributes=PLAIN)
        (self.call,) = self.f.parameters

    def text(self) -> str:
        f, failures = self.f, 0
        nests = [c for c in self.code.calls if isinstance(self.code.units[c.unit], Nest)]
        if nests:
            self._own_call(max(len(c.addresses) for c in nests))
        for number, call in enumerate(self.code.calls):
            unit = self.code.units[call.unit]
            if isinstance(unit, Nest):
                self._emit_nest(unit, call, number)
            else:
                self._emit_call(unit, call, failures)
                failures += len(unit.failures)
        f.ret(constant(I64, 0))
        return self.module.text()

    def _own_call(self, buffers: int) -> None:
        """The call that nests see: copied once, then given their buffers and numbers."""
        self.buffers = self.f.allocate(PTR, buffers)
        self.frame = abi.with_buffers(self.f, self.call, self.buffers)

    def _emit_nest(self, nest: Nest, call: KernelCall, number: int) -> None:
        f, name = self.f, f"nest{call.unit}"
        if not self.module.defines(name):
            emit_nest(self.module, self.target, name, nest)
        for i, address in enumerate(call.addresses):
            f.store(self._address(address), f.offset(PTR, self.buffers, i))
        if call.numbers:
            table = self.module.table(f"numbers{number}", I64, call.numbers)
            abi.set_integers(f, self.frame, table)
        abi.parallel_for(f, self.call, name, self.frame, call.count, call.grain)

    def _emit_call(self, code: KernelCode, call: KernelCall, failures: int) -> None:
        f, name = self.f, f"kernel{call.unit}"
        if not self.module.defines(name):
            code.emit(self.module, self.target, name)
        arguments = [self.call, *map(self._address, call.addresses)]
        arguments += [f.int(n) for n in call.numbers]
        if not code.failures:
            f.call(name, arguments)
            return
        return_if_failed(f, f.call(name, arguments, I64), failures)

    def _address(self, address: Address) -> Value:
        f, index = self.f, known(address.buffer.index)
        if address.buffer.kind == "call":
            base = abi.buffer(f, self.call, index)
        else:
            base = f.offset(Type("i8"), abi.workspace(f, self.call), index)
        return f.offset(STORED[address.dtype], base, address.offset)
