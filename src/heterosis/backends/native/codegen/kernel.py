"""What code generation is given: kernels in order, and what those say that are no loop nests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.strided import Strided

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.epilogue import Epilogue
    from heterosis.backends.native.codegen.kernels.matmul import Problem
    from heterosis.backends.native.codegen.nest import Buffer, Nest
    from heterosis.ir.program import Node


@dataclass(frozen=True)
class Machine:
    """What code is generated for: the instructions, how many threads may share a kernel, and the
    bytes of the second-level cache that each has."""

    target: Target
    workers: int
    near: int = 1 << 20


@dataclass(frozen=True)
class Place:
    """A value in memory."""

    buffer: Buffer
    dtype: str
    strided: Strided


@dataclass(frozen=True)
class KernelCode:
    """A kernel over whole operands.

    `emit(module, target, name)` defines `@name(ptr call, ptr inputs..., ptr outputs...,
    ptr scratch, i64 numbers...)`. It returns `i64` if there are `failures`: zero, or one plus
    the position of the failure that happened. `key` and the target determine the code.

    It takes about `nanoseconds` on one thread; several meet so many times.

    `chained(own, other)` gives the code for both, where the result of the `other` kernel is this
    one's first input and nothing else needs it; or None. `product` tells other kernels which
    products this one computes.
    """

    key: str
    emit: Callable[[Module, Target, str], None]
    numbers: tuple[int, ...] = ()
    scratch_bytes: int = 0
    nanoseconds: float = 1e4
    meetings: int = 1
    failures: tuple[tuple[str, str], ...] = field(default=())  # (error class, message)
    chained: Callable[[KernelCode, KernelCode], KernelCode | None] | None = None
    product: Multiplied | None = None


@dataclass(frozen=True)
class Multiplied:
    """Matrix products whose numbers are all known, and what ends their results."""

    problem: Problem
    epilogue: Epilogue

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """How many products there are; rows, columns and depth of each."""
        p = self.problem
        assert p.m is not None and p.n is not None and p.k is not None
        return p.batches, p.m, p.n, p.k

    @property
    def labels(self) -> list[str]:
        """What the kernel's numbers are, before those of the epilogue."""
        return [label for label, _ in self.problem.generic().parameters()]


@dataclass(frozen=True)
class OpaqueCall:
    """A kernel that is no loop nest: what `kernel` emits, over whole operands.

    It computes `node`, and what its epilogue says; or what the kernels do that it was `made_of`.
    """

    code: KernelCode
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    scratch: Buffer | None = None
    node: Node | None = None
    epilogue: Epilogue | None = None
    made_of: tuple[Kernel, ...] = ()


Kernel: TypeAlias = "Nest | OpaqueCall"


@dataclass
class Schedule:
    """Kernels in order, the temporaries between them, and which results are views of inputs.

    Temporary number `i` has `temporaries[i]` bytes, `starts[i]` bytes into the workspace.
    `branches` tells which kernels run side by side: at the position of the first, how long the
    chains are that follow each other there. `over` has results that may be written where an array
    stands that the program is given, and which.
    """

    kernels: list[Kernel] = field(default_factory=list)
    temporaries: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    workspace: int = 0
    views: dict[int, tuple[int, Strided]] = field(default_factory=dict)
    branches: dict[int, tuple[int, ...]] = field(default_factory=dict)
    over: dict[int, int] = field(default_factory=dict)

    def steps(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """What runs one after the other: the position of a first kernel, the lengths of chains."""
        position = 0
        while position < len(self.kernels):
            lengths = self.branches.get(position, (1,))
            yield position, lengths
            position += sum(lengths)
