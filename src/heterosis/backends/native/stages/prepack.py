"""Operands that seldom change are packed once, as their kernels read them."""

from __future__ import annotations

from collections.abc import Collection

from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.tables import kernel
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.program import Node, Program, Value, with_inputs
from heterosis.passes.preparation import Fixed


def packed(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    """`program`, with operands that depend on `fixed` alone packed as their kernels read them."""
    known = Fixed(fixed)
    made: dict[Value, Value] = {}
    for node in program.nodes():
        here = with_inputs(node, tuple(made[value] for value in node.inputs))
        found = _packed(here, known, machine)
        made.update(zip(node.outputs, found or here.outputs, strict=True))
    outputs = tuple(made[v] for v in program.outputs)
    return program if outputs == program.outputs else Program(program.inputs, outputs, program.name)


def _packed(node: Node, known: Fixed, machine: Machine) -> tuple[Value, ...] | None:
    packs = kernel(node.primitive).packs if isinstance(node.primitive, Opaque) else None
    found = None if packs is None else packs(node, known, machine)
    return None if found is None else found.node.outputs
