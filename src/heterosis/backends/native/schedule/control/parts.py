"""The function of a program inside of another one, and the kernels that call such functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    VOID,
    Function,
    Module,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.function import return_if_failed
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.target import Target
from heterosis.backends.native.schedule.arena import rounded
from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.program import ProgramCode

Places = tuple[Place, ...]


@dataclass(frozen=True)
class Part:
    """The function of a program inside of another one."""

    code: ProgramCode
    workspace: int
    many: int  # operands and results
    updated: frozenset[int]  # the results that are written where the operands stand

    @property
    def failures(self) -> tuple[tuple[str, str], ...]:
        return self.code.failures


def part(program: Program, machine: Machine, carried: int = 0) -> Part:
    """A program, whose first `carried` operands it may write to in place."""
    from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
    from heterosis.backends.native.schedule.materialize import kept_values
    from heterosis.backends.native.schedule.schedule import schedule
    from heterosis.backends.native.schedule.updates import updates

    updated = updates(program, carried)
    planned = schedule(
        program,
        [Strided.contiguous(value.shape) for value in program.inputs],
        [None] * len(program.outputs),
        machine,
        views=False,
        kept=kept_values(program),
        side_by_side=True,
        updated=updated,
    )
    many = len(program.inputs) + len(program.outputs)
    code = function_for_known_sizes(planned)
    return Part(code, planned.workspace, many, frozenset(updated))


class Call:
    """The call of a part: room for the addresses of its operands and results, filled once for what
    stays and in every turn for what does not."""

    def __init__(self, f: Function, outer: Value, name: str, part: Part, workspace: Value):
        self.f, self.name, self.fails = f, name, bool(part.failures)
        self.buffers = f.allocate(PTR, max(part.many, 1))
        own = abi.with_workspace(f, outer, workspace)
        self.frame = abi.with_buffers(f, own, self.buffers)

    def give(self, first: int, addresses: Sequence[Value]) -> None:
        """Let the operands and results from number `first` on stand at these addresses."""
        for i, address in enumerate(addresses, first):
            self.f.store(address, self.f.offset(PTR, self.buffers, i))

    def run(self, failures: int = 0, leaving: Callable[[], object] = lambda: None) -> None:
        """Call the function; leave with its failure, behind so many that others have."""
        status = self.status()
        if self.fails:
            return_if_failed(self.f, status, failures, leaving)

    def status(self) -> Value:
        return self.f.call(self.name, [self.frame], I64)


def kernel(
    key: str, parts: dict[str, Part], scratch_bytes: int, turns: int, types: Sequence[TensorType],
    emit: Callable[[Function, list[Value], dict[str, Call]], None],
    further: tuple[tuple[str, str], ...] = (),
) -> KernelCode:  # fmt: skip
    """The kernel that runs `parts`, which are known by name; `emit` says when, given the addresses
    of all operands and results, and of the scratch memory behind `scratch_bytes` for the parts.
    It has `further` failures besides theirs."""
    workspace = max(part.workspace for part in parts.values())
    failures = tuple(failure for part in parts.values() for failure in part.failures) + further

    def whole(module: Module, target: Target, name: str) -> None:
        for label, part in parts.items():
            part.code.emit_inside(module, target, f"{name}.{label}")
        labels = ["call", *(f"a{i}" for i in range(len(types))), "scratch"]
        returns = I64 if failures else VOID
        f = module.function(name, [(label, PTR) for label in labels], returns)
        call, *addresses = f.parameters
        calls = {
            label: Call(f, call, f"{name}.{label}", part, addresses[-1])
            for label, part in parts.items()
        }
        addresses[-1] = f.offset(I8, addresses[-1], rounded(workspace))
        emit(f, addresses, calls)
        f.ret(constant(I64, 0) if failures else None)

    codes = " ".join(
        f"{label} {sorted(part.updated)} {part.code.key}" for label, part in parts.items()
    )
    return KernelCode(
        key=f"{key} {list(map(str, types))} {workspace} {codes}",
        emit=whole,
        scratch_bytes=rounded(workspace) + scratch_bytes,
        nanoseconds=turns * sum(part.code.nanoseconds for part in parts.values()),
        meetings=turns * max(len(part.code.calls) for part in parts.values()),
        failures=failures,
    )


def is_true(f: Function, address: Value) -> Value:
    return f.compare("ne", f.load(I8, address), constant(I8, 0))
