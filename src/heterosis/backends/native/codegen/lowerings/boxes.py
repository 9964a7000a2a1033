"""The kernels on boxes."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import boxes as code
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.primitives.boxes import MATCH_BOXES, SUPPRESS_BOXES
from heterosis.ir.program import Node


def _match_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    batch, labels, anchors = node.inputs[0].shape

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_match(module, name, target.function_attributes)

    return KernelCode(
        key="match boxes",
        emit=emit,
        numbers=(batch, labels, anchors),
        scratch_bytes=max(16 * labels, 16),
        nanoseconds=4.0 * batch * labels * anchors,
    )


def _suppress_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    batch, count = node.inputs[0].shape
    any_class = node.attributes["any_class"]

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_suppress(module, name, target.function_attributes, any_class)

    return KernelCode(
        key=f"suppress boxes {any_class}",
        emit=emit,
        numbers=(batch, count),
        nanoseconds=1.0 * batch * count * max(count, 1),
    )


KERNELS[MATCH_BOXES] = KernelLowering(_match_kernel, gapless=True)
KERNELS[SUPPRESS_BOXES] = KernelLowering(_suppress_kernel, gapless=True)
