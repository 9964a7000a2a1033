"""Recurrent layers: all steps of one as two products, and a kernel for what must wait in between.

Back, the activations are computed again, for all steps at once: a product costs less than keeping
them would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from heterosis.codegen import recurrent as code
from heterosis.codegen.builder import Module
from heterosis.codegen.kernel import KernelCode, Machine, Place
from heterosis.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.program import Node, Opaque, Value, apply_many, constant
from heterosis.ir.types import TensorType
from heterosis.ops import elementwise as e
from heterosis.ops import real as r
from heterosis.ops import reductions as rd
from heterosis.ops.adjoint import Cotangents, Step, adjoint
from heterosis.ops.join import joined
from heterosis.ops.linear import product
from heterosis.ops.rules import without_gaps
from heterosis.ops.split import part

_FLOPS_A_NANOSECOND = 30.0
_NANOSECONDS = 2.0  # a number of the pass

GATES = {name: cell.gates for name, cell in code.CELLS.items()}


def _kernel(mode: str, back: bool) -> Callable[..., KernelCode]:
    cell = code.CELLS[mode]

    def kernel(
        node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
    ) -> KernelCode:
        steps, rows, wide = node.inputs[1].shape
        units = outputs[-1].strided.shape[-1]
        loop, actual, layout = code.plan(
            cell, inputs[0].dtype, back, rows, units, inputs[0].strided.strides,
            machine.target, machine.workers,
        )  # fmt: skip

        def emit(module: Module, target: Target, name: str) -> None:
            code.emit_recurrence(module, target, name, loop)

        work = 2.0 * actual.m * actual.n * actual.k / _FLOPS_A_NANOSECOND
        return KernelCode(
            key=loop.key,
            emit=emit,
            numbers=code.numbers(loop, actual, layout, steps, node.attributes["reverse"], units),
            scratch_bytes=layout.total,
            nanoseconds=steps * (work + rows * wide * _NANOSECONDS),
        )

    return kernel


_FORWARD = {mode: Opaque(mode, _kernel(mode, False)) for mode in code.CELLS}


@cache
def _back(mode: str) -> Opaque:
    return Opaque(f"{mode}_back", _kernel(mode, True))


def recurrence(
    mode: str, weights: Value, given: Value, first: Sequence[Value], bias: Value | None,
    reverse: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """The outputs of every step (steps, batch, units), and for an LSTM the memories.

    `weights` (gates * units, units) multiply the last output, `given` (steps, batch, gates * units)
    is added; `first` are the states before the first step, which is the last one if `reverse`.
    """
    operands = [weights, *map(without_gaps, (given, *first))]
    operands += [] if bias is None else [without_gaps(bias)]
    steps, rows, wide = given.shape
    type_ = TensorType((steps, rows, wide // GATES[mode]), given.dtype)
    return apply_many(_FORWARD[mode], operands, [type_] * len(first), reverse=reverse)


def _shifted(states: Value, first: Value, reverse: bool) -> Value:
    """The states before each step."""
    steps = states.shape[0]
    first = views.reshape(first, (1, *first.shape))
    if reverse:
        return joined("rnn", [part(states, 0, 1, steps), first], 0)
    return joined("rnn", [first, part(states, 0, 0, steps - 1)], 0)


def _rows(x: Value) -> Value:
    return views.reshape(x, (x.shape[0] * x.shape[1], x.shape[2]))


def _turned(x: Value) -> Value:
    return views.transpose(x, (1, 0))


def _split(x: Value, count: int) -> list[Value]:
    units = x.shape[-1] // count
    return [part(x, x.ndim - 1, i * units, (i + 1) * units) for i in range(count)]


def _again(mode: str, weights: Value, given: Value, before: Value, bias: Value | None) -> Value:
    """The activations that the kernel had, side by side, for all steps at once."""
    again = views.reshape(product("rnn", _rows(before), _turned(weights)), given.shape)
    if mode == "gru":
        (*own, inner), (*ours, fresh) = _split(again, 3), _split(given, 3)
        reset, keep = (r.sigmoid(e.add(a, b)) for a, b in zip(own, ours, strict=True))
        inner = e.add(inner, bias)
        return joined(
            "rnn", [reset, keep, r.tanh(e.add(fresh, e.multiply(reset, inner))), inner], 2
        )
    functions = (r.sigmoid, r.sigmoid, r.tanh, r.sigmoid)
    parts = _split(e.add(given, again), 4)
    return joined("rnn", [f(x) for f, x in zip(functions, parts, strict=True)], 2)


def _zeros(like: Value) -> Value:
    return views.broadcast(constant(0.0, like.dtype), like.shape)


def _adjoint(mode: str) -> Callable[[Step], Cotangents]:
    """What the operands of `recurrence` receive."""

    def rule(step: Step) -> Cotangents:
        weights, given, first, *more = step.inputs
        reverse = step.attributes["reverse"]
        received = [
            _zeros(y) if g is None else g
            for g, y in zip(step.cotangents, step.outputs, strict=True)
        ]
        before = _shifted(step.outputs[0], first, reverse)
        bias = more[0] if mode == "gru" else None
        if mode in ("lstm", "gru"):
            known = [_again(mode, weights, given, before, bias)]
        else:
            known = [step.outputs[0]]
        if mode == "lstm":
            known += [step.outputs[1], _shifted(step.outputs[1], more[0], reverse)]
        if mode == "gru":
            known += [before]
        shapes = {"lstm": [first.shape], "gru": [step.outputs[0].shape, first.shape]}.get(mode, [])
        shapes = [given.shape, *shapes, first.shape]
        types = [TensorType(shape, given.dtype) for shape in shapes]
        operands = [weights, *map(without_gaps, (*known, *received))]
        gates, *rest, last = apply_many(_back(mode), operands, types, reverse=reverse)
        of_weights = product("rnn", _turned(_rows(gates)), _rows(before))
        if mode == "lstm":
            return of_weights, gates, last, rest[0]
        if mode == "gru":
            fresh, direct = rest
            of_bias = rd.sum(_split(gates, 3)[2], (0, 1))
            of_given = joined("rnn", [*_split(gates, 3)[:2], fresh], 2)
            return of_weights, of_given, e.add(last, direct), of_bias
        return of_weights, gates, last

    return rule


for _mode, _primitive in _FORWARD.items():
    adjoint(_primitive)(_adjoint(_mode))
