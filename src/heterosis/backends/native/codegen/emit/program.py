"""The kernels of a whole program as one function of known sizes.

Kernels that differ in numbers and operands only share their code: a loop nest sees a call of its
own, with its buffers and its numbers in it, so that fifty layers compile like one. Numbers written
into a nest's code would not make it faster: its loops are vectors and a masked rest either way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.abi import ENTRY
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    VOID,
    Function,
    Module,
    Size,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.function import (
    PLAIN,
    OwnNumbers,
    grain_of,
    nest_nanoseconds,
    open_nest,
    return_if_failed,
)
from heterosis.backends.native.codegen.emit.nest import emit_nest
from heterosis.backends.native.codegen.kernel import Kernel, KernelCode, OpaqueCall, Schedule
from heterosis.backends.native.codegen.nest import Buffer, Load, Nest, Store, known
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import ITEMSIZE


@dataclass(frozen=True, slots=True)
class Address:
    """The beginning of an operand: `offset` elements of `dtype` into a buffer, its bytes if a
    temporary, being known."""

    buffer: Buffer
    dtype: str
    offset: int


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of kernel number `unit` of the program; `count` and `grain` are a nest's, which may
    only copy elements to places like those where they stand, and be given one address twice."""

    unit: int
    addresses: tuple[Address, ...]
    numbers: tuple[int, ...]
    count: int = 0
    grain: int = 0
    copies: bool = False


@dataclass(frozen=True)
class ProgramCode:
    """A function as data, like `function.FunctionCode`. `steps` run one after the other: each has
    the lengths of chains of calls, which run side by side if there are several.

    Its tables stand in its code, and it takes no integers; or it is `open` to any size, and takes
    those of its tables as integers in which sizes stand.
    """

    units: tuple[Nest | KernelCode, ...]
    calls: tuple[KernelCall, ...]
    nanoseconds: float
    failures: tuple[tuple[str, str], ...]
    steps: tuple[tuple[int, ...], ...]
    open: bool = False

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """What the function takes: the tables with sizes, one after the other."""
        tables = _tables_of(self).named.values() if self.open else ()
        return tuple(number for table in tables if _varies(table) for number in table)

    @property
    def key(self) -> str:
        """Equal keys, equal machine code."""
        units = [u.key if isinstance(u, KernelCode) else repr(u) for u in self.units]
        if self.open:
            calls = [(c.unit, len(c.addresses), len(c.numbers), c.copies) for c in self.calls]
            tables = _tables_of(self).named.values()
            known = [len(table) if _varies(table) else table for table in tables]
            return f"open program {units} {calls} {self.steps} {known}"
        return f"program {units} {self.calls} {self.steps}"

    @property
    def parts(self) -> tuple[Hashable, ...]:
        """What it is found by in memory; empty if there is nothing to run."""
        return (self.key,) if self.calls else ()

    def emit(self, target: Target, name: str = ENTRY, linkage: str = "") -> str:
        """The LLVM IR of the function `name` and all that it calls."""
        module = Module(target=target)
        _Emitter(module, target, self).emit(name, linkage=linkage)
        return module.text()

    def emit_inside(self, module: Module, target: Target, name: str) -> None:
        """Define `i64 @name(ptr call)` in the module of a program that this one is a part of."""
        _Emitter(module, target, self, f"{name}.").emit(name)


def function_for_known_sizes(schedule: Schedule) -> ProgramCode:
    """The function for these sizes alone."""
    return _function(schedule, is_open=False)


def function_for_sizes(schedule: Schedule) -> ProgramCode:
    """The function for any sizes that have such a schedule, up to its numbers."""
    return _function(schedule, is_open=True)


def _function(schedule: Schedule, *, is_open: bool) -> ProgramCode:
    collected = _Collected(schedule.starts, bool(schedule.over))
    for kernel in schedule.kernels:
        collected.add(kernel)
    return ProgramCode(
        tuple(collected.units),
        tuple(collected.calls),
        collected.nanoseconds,
        tuple(collected.failures),
        _steps(schedule),
        is_open,
    )


def _steps(schedule: Schedule) -> tuple[tuple[int, ...], ...]:
    """What runs one after the other; kernels that do so are one chain."""
    found: list[tuple[int, ...]] = []
    for _, lengths in schedule.steps():
        if found and len(lengths) == len(found[-1]) == 1:
            found[-1] = (found[-1][0] + 1,)
        else:
            found.append(lengths)
    return tuple(found)


@dataclass
class _Collected:
    """Kernels so far: each distinct one once, and every call."""

    starts: Sequence[int]
    overwrites: bool  # whether results may be given the addresses of inputs
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
        local = OwnNumbers()
        opened = open_nest(nest, local)
        addresses = tuple(Address(_placed(b, self.starts), d, o) for b, d, o in local.places)
        numbers = tuple(local.passed)
        grain = grain_of(nest, nanoseconds)
        unit = self._unit(opened, opened)
        copies = self.overwrites and _copies(nest)
        self.calls.append(KernelCall(unit, addresses, numbers, known(nest.kept[0]), grain, copies))

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


def _copies(nest: Nest) -> bool:
    """Whether it is given two addresses, and copies elements to where they would stand if these
    were one."""
    match nest.steps, nest.stores:
        case (Load(read, ()),), (Store(written, 0, (), None),):
            alike = (read.dtype, read.strides) == (written.dtype, written.strides)
            return alike and read.buffer != written.buffer
    return False


def _placed(buffer: Buffer, starts: Sequence[int]) -> Buffer:
    return buffer if buffer.kind == "call" else Buffer(buffer.kind, starts[known(buffer.index)])


# -- tables ---------------------------------------------------------------------------------------

_FIELDS = 6  # of a row


@dataclass
class _TableRows:
    """The tables that a function goes through.

    A row is for each call: its first address and their number, where its integers begin, the points
    and the grain of its loop, and the failures of all kernels before. An address is the number of a
    buffer or -1 for the workspace, and bytes.
    """

    addresses: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)  # where numbers begin

    def add(self, call: KernelCall, failures: int) -> None:
        """Append the row of a call, with what it needs."""
        first, numbers = len(self.addresses) // 2, self._first(call.numbers)
        for address in call.addresses:
            self.addresses += _place(address)
        self.rows += first, len(call.addresses), numbers, call.count, call.grain, failures

    def _first(self, numbers: tuple[int, ...]) -> int:
        """Where these numbers begin in the table of all."""
        if numbers not in self._known:
            self._known[numbers] = len(self.numbers)
            self.numbers += numbers
        return self._known[numbers]

    @property
    def named(self) -> dict[str, list[int]]:
        """The tables by their names in code."""
        return {"addresses": self.addresses, "numbers": self.numbers, "rows": self.rows}


def _varies(table: Sequence[int]) -> bool:
    """Whether sizes stand in it."""
    return any(map(is_traced, table))


def _tables_of(code: ProgramCode) -> _TableRows:
    tables, failures = _TableRows(), 0
    for call in code.calls:
        tables.add(call, failures)
        unit = code.units[call.unit]
        failures += len(unit.failures) if isinstance(unit, KernelCode) else 0
    return tables


def _place(address: Address) -> tuple[int, int]:
    buffer, at = address.buffer, address.offset * ITEMSIZE[address.dtype]
    index = known(buffer.index)
    return (index, at) if buffer.kind == "call" else (-1, index + at)


# -- emission -------------------------------------------------------------------------------------

_LAUNCHER = (("call", PTR), ("body", PTR), ("count", I64), ("grain", I64))


class _Emitter:
    """A function that goes through tables of what to run on which operands.

    As code of their own, a thousand calls in a row would take LLVM longer than all kernels.
    """

    def __init__(self, module: Module, target: Target, code: ProgramCode, prefix: str = ""):
        self.code, self.target, self.module = code, target, module
        self.prefix = prefix  # of the names of all that it defines
        self.codes: list[str] = []  # for each call: what runs the kernel, and the nest that it runs

    def emit(self, name: str, **options: str) -> None:
        for call in self.code.calls:
            unit = self.code.units[call.unit]
            self.codes += (
                self._nest(unit, call) if isinstance(unit, Nest) else self._kernel(unit, call)
            )
        self._emit_entry(name, **options)

    # -- what runs a kernel, in one form for all ----------------------------------------------

    def _nest(self, nest: Nest, call: KernelCall) -> tuple[str, str]:
        name = f"{self.prefix}nest{call.unit}"
        launcher = "launch_copy" if call.copies else "launch"
        if not self.module.defines(name):
            emit_nest(self.module, self.target, name, nest)
        if not self.module.defines(launcher):
            f = self.module.function(launcher, _LAUNCHER, I64, attributes=PLAIN)
            frame, body, count, grain = f.parameters
            if call.copies:
                there = f.compare("eq", abi.buffer(f, frame, 0), abi.buffer(f, frame, 1))
                f.leave_if(there, lambda: f.ret(constant(I64, 0)))
            abi.parallel_for(f, frame, body, frame, count, grain)
            f.ret(constant(I64, 0))
        return f"@{launcher}", f"@{name}"

    def _kernel(self, code: KernelCode, call: KernelCall) -> tuple[str, str]:
        name = f"{self.prefix}kernel{call.unit}"
        launcher = f"{name}.launch"
        if not self.module.defines(name):
            code.emit(self.module, self.target, name)
            f = self.module.function(launcher, _LAUNCHER, I64, attributes=PLAIN)
            frame, *_ = f.parameters
            arguments = [abi.buffer(f, frame, i) for i in range(len(call.addresses))]
            arguments += [abi.integer(f, frame, i) for i in range(len(call.numbers))]
            status = f.call(name, [frame, *arguments], I64 if code.failures else VOID)
            f.ret(status if code.failures else constant(I64, 0))
        return f"@{launcher}", "null"

    # -- the function itself ------------------------------------------------------------------

    def _emit_entry(self, name: str, **options: str) -> None:
        tables = self._tables()
        f = self.module.function(name, [("call", PTR)], I64, **options)
        (call,) = f.parameters
        if not self.code.calls:
            pass
        elif len(self.code.steps) == 1 == len(self.code.steps[0]):
            self._run(f, call, 0, len(self.code.calls), tables)
        else:
            self._emit_run(tables)
            self._emit_steps(f, call)
        f.ret(constant(I64, 0))

    def _tables(self) -> Callable[[Function, Value], _Tables]:
        """What finds the tables in a function that is given a call: those with sizes are passed."""
        own: dict[str, Value] = {}
        passed: dict[str, int] = {}
        count = 0
        for name, table in _tables_of(self.code).named.items():
            if self.code.open and _varies(table):
                passed[name], count = count, count + len(table)
            else:
                own[name] = self.module.table(f"{self.prefix}{name}", I64, table or [0])
        own["codes"] = self.module.pointers(f"{self.prefix}codes", self.codes)

        def found(f: Function, call: Value) -> _Tables:
            given = {name: f.offset(I64, abi.integers(f, call), n) for name, n in passed.items()}
            return _Tables(**own, **given)

        return found

    def _run(
        self, f: Function, call: Value, first: Size, last: Size,
        found: Callable[[Function, Value], _Tables],
    ) -> None:  # fmt: skip
        """Go through the rows from `first` to `last`, or return with a failure."""
        tables = found(f, call)
        buffers = f.allocate(PTR, max(len(call.addresses) for call in self.code.calls))
        frame = abi.with_buffers(f, call, buffers)
        bases = abi.buffers(f, call), abi.workspace(f, call)
        with f.loop(first, last) as step:
            row = f.offset(I64, tables.rows, f.mul_size(step.index, _FIELDS))
            begins, many, number, *shares, failures = (
                f.load(I64, f.offset(I64, row, i)) for i in range(_FIELDS)
            )
            begin = f.offset(I64, tables.addresses, f.mul_size(begins, 2))
            with f.loop(0, many) as each:
                pair = f.offset(I64, begin, f.mul_size(each.index, 2))
                f.store(_address(f, pair, *bases), f.offset(PTR, buffers, each.index))
            abi.set_integers(f, frame, f.offset(I64, tables.numbers, number))
            code = f.offset(PTR, tables.codes, f.mul_size(step.index, 2))
            launcher, body = f.load(PTR, code), f.load(PTR, f.offset(PTR, code, 1))
            status = f.call_pointer(launcher, [frame, body, *shares], I64)
            return_if_failed(f, status, failures)

    # -- calls side by side -------------------------------------------------------------------

    def _emit_run(self, tables: Callable[[Function, Value], _Tables]) -> None:
        """Define `i64 @run(call, first, last)`, and `@chains`, the body of a loop over chains,
        whose context is the call and where the chains' bounds begin."""
        parameters = [("call", PTR), ("first", I64), ("last", I64)]
        f = self.module.function(f"{self.prefix}run", parameters, I64)
        call, first, last = f.parameters
        self._run(f, call, first, last, tables)
        f.ret(constant(I64, 0))
        f = self.module.function(f"{self.prefix}chains", abi.LOOP_BODY_PARAMETERS)
        context, begin, end, _ = f.parameters
        call, bounds = f.load(PTR, context), f.load(PTR, f.offset(PTR, context, 1))
        with f.loop(begin, end) as chain:
            self._chain(f, call, f.offset(I64, bounds, chain.index))
        f.ret()

    def _emit_steps(self, f: Function, call: Value) -> None:
        """Run chain by chain, or several chains at a time."""
        lengths = [length for step in self.code.steps for length in step]
        widths = [len(step) for step in self.code.steps]
        bounds = self.module.table(f"{self.prefix}bounds", I64, [0, *accumulate(lengths)])
        counts = self.module.table(f"{self.prefix}counts", I64, widths)
        context = f.allocate(PTR, 2)
        f.store(call, context)
        with f.loop(0, len(self.code.steps), 1, [bounds]) as step:
            (here,) = step.carried
            count = f.load(I64, f.offset(I64, counts, step.index))

            def alone() -> list[Value]:
                return [self._chain(f, call, here)]

            def together() -> list[Value]:
                f.store(here, f.offset(PTR, context, 1))
                abi.parallel_for(f, call, f"{self.prefix}chains", context, count, 1)
                return [constant(I64, 0)]

            one = f.compare("eq", count, constant(I64, 1))
            (status,) = f.if_else(one, alone, together)
            return_if_failed(f, status, 0)
            step.next = [f.offset(I64, here, count)]

    def _chain(self, f: Function, call: Value, bounds: Value) -> Value:
        """Run the calls between two neighbouring bounds."""
        first, last = f.load(I64, bounds), f.load(I64, f.offset(I64, bounds, 1))
        return f.call(f"{self.prefix}run", [call, first, last], I64)


@dataclass(frozen=True)
class _Tables:
    """Where the tables of a function begin."""

    addresses: Value
    numbers: Value
    rows: Value
    codes: Value


def _address(f: Function, pair: Value, buffers: Value, workspace: Value) -> Value:
    """Where an operand begins that the table describes in `pair`."""
    index = f.load(I64, pair)
    (base,) = f.if_else(
        f.compare("slt", index, constant(I64, 0)),
        lambda: [workspace],
        lambda: [f.load(PTR, f.offset(PTR, buffers, index))],
    )
    return f.offset(I8, base, f.load(I64, f.offset(I64, pair, 1)))
