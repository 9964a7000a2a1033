"""The kernel that puts numbers in random order."""

from __future__ import annotations

from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import random_order
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.ir.primitives.shuffling import SHUFFLED_PLACES
from heterosis.ir.program import Node


def _kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    return random_order.shuffled_places(node.types[0].size, node.attributes["wanted"])


KERNELS[SHUFFLED_PLACES] = KernelLowering(_kernel)
