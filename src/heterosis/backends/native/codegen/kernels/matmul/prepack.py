"""Packs a whole right operand: the weights of an inference graph once and for all, one of few
columns on its way into the product."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    known,
)
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    depth_blocks,
    pack_share,
    packing_shares,
    right_side,
    round_up,
)
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import emit_pack
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.target import Target

_SIZES = ("n", "k", "b_row", "b_column")


@dataclass(frozen=True)
class PackedLayout:
    """What a packed right operand is made of. It depends on the processor, so it is never kept
    in files: blocks of `depth` steps (the last may be shorter), each of panels of `columns`
    columns, each of one row of `columns` numbers a step."""

    element: Type
    depth: int
    columns: int
    numbers: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.numbers * self.element.bits // 8


def packed_b_layout(problem: Problem, target: Target) -> PackedLayout:
    """The layout for a problem whose `n` and `k` are known."""
    f = Function(Module(), "layout", [])
    kind = element(problem.dtype, target)
    kernel = Kernel(f.module, target, kind, tile(target, kind), "layout")
    n, k = known(problem.n), known(problem.k)
    numbers = known(packed_numbers(f, kernel, n, k))
    depth = known(_depth(f, kernel, problem, k))
    return PackedLayout(kind.compute, depth, kernel.tile.columns, numbers)


def _depth(f: Function, kernel: Kernel, problem: Problem, k: Size) -> Size:
    """The depth of one block."""
    return f.max_size(k, 1) if problem.one_block else depth_blocks(f, kernel, k)[0]


def packed_numbers(f: Function, kernel: Kernel, n: Size, k: Size) -> Size:
    """How many numbers a packed right operand has."""
    return f.mul_size(round_up(f, n, kernel.tile.columns), k)


def pack_parameters(problem: Problem) -> list[tuple[str, Type]]:
    """What the function of `emit_pack_b` takes behind the pointers."""
    return [(label, I64) for label in _SIZES if getattr(problem, label) is None]


def emit_pack_b(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `void @name(ptr call, ptr b, ptr packed, <pack_parameters>)`."""
    kind = element(problem.dtype, target)
    kernel = Kernel(module, target, kind, tile(target, kind), f"matmul.{problem.dtype}")
    emit_pack(module, target, kind, kernel.tile.columns)
    unknown = pack_parameters(problem)
    pointers = [("call", PTR), ("b", PTR), ("scratch", PTR)]
    f = module.function(name, pointers + unknown, attributes=target.function_attributes)
    memory = Frame.allocate(f)
    values: dict[str, Size] = {
        label: size for label in _SIZES if (size := getattr(problem, label)) is not None
    }
    labels = [label for label, _ in pointers + unknown]
    values |= dict(zip(labels, f.parameters, strict=True))
    v = SimpleNamespace(**values)
    depth = _depth(f, kernel, problem, v.k)
    frame = Frame(**values, depth=depth, deep=v.k, width=v.n, column0=0, step0=0)
    frame.save(f, memory)
    count, grain = packing_shares(f, v.n, kernel.tile.columns, v.k, depth)
    share(f, v.call, f"{name}.share", memory, count, grain, alone=problem.over_batches)
    f.ret()
    f, v, begin, end, _ = frame.body(module, target, f"{name}.share")
    with f.loop(begin, end) as index:
        pack_share(kernel, f, v, right_side(kernel, v), index.index)
    f.ret()
