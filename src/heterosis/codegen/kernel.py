"""What code generation is given: kernels in order, and what those say that are no loop nests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from heterosis.codegen.builder import Module
from heterosis.codegen.target import Target
from heterosis.ir.strided import Strided

if TYPE_CHECKING:
    from heterosis.codegen.epilogue import Epilogue
    from heterosis.codegen.nest import Buffer, Nest


@dataclass(frozen=True)
class Machine:
    """What code is generated for: the instructions, and how many threads may share a kernel."""

    target: Target
    workers: int


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

    `behind(own, other)` gives the code for both, where the result of the `other` kernel is this
    one's first input and nothing else needs it; or None. `rows` says what products are asked then.
    """

    key: str
    emit: Callable[[Module, Target, str], None]
    numbers: tuple[int, ...] = ()
    scratch_bytes: int = 0
    nanoseconds: float = 1e4
    failures: tuple[tuple[str, str], ...] = field(default=())  # (error class, message)
    behind: Callable[[KernelCode, KernelCode], KernelCode | None] | None = None
    rows: PackedRows | None = None


@dataclass(frozen=True)
class PackedRows:
    """A single product of rows as they lie with packed panels: what ends its results, and what its
    numbers are, before those of the epilogue."""

    dtype: str
    epilogue: Epilogue
    labels: tuple[str, ...]


@dataclass(frozen=True)
class OpaqueCall:
    """A kernel that is no loop nest: what `kernel` emits, over whole operands."""

    code: KernelCode
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    scratch: Buffer | None = None


Kernel: TypeAlias = "Nest | OpaqueCall"


@dataclass
class Schedule:
    """Kernels in order, the temporaries between them, and which results are views of inputs.

    Temporary number `i` has `temporaries[i]` bytes, and begins `starts[i]` bytes into the workspace.
    """

    kernels: list[Kernel] = field(default_factory=list)
    temporaries: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    workspace: int = 0
    views: dict[int, tuple[int, Strided]] = field(default_factory=dict)
