"""The kernels that count numbers, and find what is true."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import counting
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.primitives.counting import OCCURRENCES, TRUE_PLACES
from heterosis.ir.program import Node
from heterosis.ir.table_sizes import largest, smallest

_COUNTED, _CLEARED, _LOOKED_AT, _PLACED = 0.4, 0.5, 0.02, 0.2  # nanoseconds


def _occurrences(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    (length,), (count,) = inputs[0].strided.shape, outputs[0].strided.shape
    bits = int(inputs[0].dtype.removeprefix("int"))
    several = counting.TABLES * (smallest(count, counting.LONGEST) + 1)

    def emit(module: Module, target: Target, name: str) -> None:
        counting.emit_occurrences(module, name, bits)

    return KernelCode(
        key=f"occurrences of i{bits}",
        emit=emit,
        numbers=(length, count),
        scratch_bytes=8 * largest(several, count + 1),
        nanoseconds=_COUNTED * length + _CLEARED * count,
    )


def _true_places(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    (length,), (count,) = inputs[0].strided.shape, outputs[0].strided.shape

    def emit(module: Module, target: Target, name: str) -> None:
        counting.emit_true_places(module, name)

    return KernelCode(
        key="true_places",
        emit=emit,
        numbers=(length, count),
        nanoseconds=_LOOKED_AT * length + _PLACED * count,
    )


KERNELS[OCCURRENCES] = KernelLowering(_occurrences, gapless=True)
KERNELS[TRUE_PLACES] = KernelLowering(_true_places, gapless=True)
