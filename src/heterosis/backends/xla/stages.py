"""What XLA's programs are made of beyond the passes for all back ends."""

from __future__ import annotations

from heterosis.ir import views
from heterosis.ir.primitives.reductions import SUM
from heterosis.ir.primitives.windows import CORRELATE
from heterosis.ir.program import Node, Program, Value, apply, with_programs
from heterosis.ir.types import TensorType
from heterosis.passes.pipeline import staged
from heterosis.passes.rewrite import Rule, rewritten


def _is_sum_of_chunks(node: Node) -> bool:
    return tuple(node.attributes["axes"]) == (0,) and node.inputs[0].shape[0] > 1


def _whole(node: Node) -> Value:
    parts = node.inputs[0].node
    type_ = TensorType((1, *parts.types[0].shape[1:]), parts.types[0].dtype)
    whole = apply(CORRELATE, parts.inputs, type_, **parts.attributes)
    return views.reshape(whole, type_.shape[1:])


RULES = (
    # Chunks are for threads that share the sum. XLA has its own; and where images are divided among
    # processes, chunks of them would be sent from one to the other.
    Rule(
        "sum of chunks",
        (SUM, CORRELATE),
        _whole,
        "sum(correlate(a, x) in 16 chunks, axes=(0,)) -> correlate(a, x)",
        _is_sum_of_chunks,
    ),
)


def _simpler(program: Program) -> Program:
    program = with_programs(program, _simpler)
    return rewritten(program, RULES) if _has_sums(program) else program


def _has_sums(program: Program) -> bool:
    return any(node.primitive is CORRELATE for node in program.nodes())


def prepared(program: Program) -> Program:
    """`program` as XLA is to have it."""
    return staged(program, (_simpler,))
