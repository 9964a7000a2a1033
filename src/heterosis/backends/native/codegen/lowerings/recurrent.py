"""The kernels of recurrent layers, and their weights packed."""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.costs import RECURRENT_FLOPS
from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import recurrent as code
from heterosis.backends.native.codegen.lowerings.native import RECURRENT_PACKED
from heterosis.backends.native.codegen.lowerings.products import packed_right
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.primitives.recurrent import BACK, FORWARD
from heterosis.ir.program import Node, Value, apply_many

_NANOSECONDS = 2.0  # a number of the pass


def _kernel(mode: str, *, back: bool, packed: bool = False) -> Callable[..., KernelCode]:
    cell = code.CELLS[mode]

    def kernel(
        node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
    ) -> KernelCode:
        steps, rows = node.inputs[1].shape[:2]
        units = node.types[-1 if back else 0].shape[-1]
        wide = cell.gates * units
        keep = not back and node.attributes["keep"]
        loop, actual, layout = code.plan(
            cell, inputs[0].dtype, back, keep, rows, units, machine.target, machine.workers,
            packed=packed,
        )  # fmt: skip

        def emit(module: Module, target: Target, name: str) -> None:
            code.emit_recurrence(module, target, name, loop)

        n, k = (units, wide) if back else (wide, units)
        work = 2.0 * rows * n * k / RECURRENT_FLOPS
        return KernelCode(
            key=loop.key,
            emit=emit,
            numbers=code.numbers(
                loop, actual, layout, steps, rows, units, node.attributes["reverse"]
            ),
            scratch_bytes=layout.total,
            nanoseconds=steps * (work + rows * wide * _NANOSECONDS),
            meetings=2 * steps,
        )

    return kernel


def _packs(mode: str) -> Callable[..., Value | None]:
    def packs(node: Node, fixed: Callable[[Value], bool], machine: Machine) -> Value | None:
        weights, given, *states = node.inputs
        few = given.shape[1] <= code.FEW_ROWS or not weights.size
        if few or not fixed(weights):
            return None
        operands = (packed_right(views.transpose(weights, (1, 0)), machine), given, *states)
        found, *_ = apply_many(RECURRENT_PACKED[mode], operands, node.types, **node.attributes)
        return found

    return packs


for _mode in code.CELLS:
    KERNELS[FORWARD[_mode]] = KernelLowering(
        _kernel(_mode, back=False), gapless=True, packs=_packs(_mode)
    )
    KERNELS[RECURRENT_PACKED[_mode]] = KernelLowering(
        _kernel(_mode, back=False, packed=True), gapless=True
    )
    KERNELS[BACK[_mode]] = KernelLowering(_kernel(_mode, back=True), gapless=True)
