"""Derivatives of the steps of recurrent layers: a kernel goes back through all of them."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.autograd.rules.table import Cotangents, Rule, Step, adjoint
from heterosis.ir import views
from heterosis.ir.primitives.recurrent import BACK, FORWARD, GATES
from heterosis.ir.program import Value, apply_many, constant
from heterosis.ir.types import TensorType
from heterosis.ops.array.join import joined
from heterosis.ops.array.split import part
from heterosis.ops.linalg.matmul import product
from heterosis.ops.math.elementwise import add
from heterosis.ops.math.reductions import sum as total
from heterosis.ops.nn.recurrence import recurrence


def _shifted(states: Value, first: Value, reverse: bool) -> Value:
    """The states before each step."""
    steps = states.shape[0]
    first = views.reshape(first, (1, *first.shape))
    if reverse:
        return joined("rnn", [part(states, 0, 1, steps), first], 0)
    return joined("rnn", [first, part(states, 0, 0, steps - 1)], 0)


def _of_weights(gates: Value, before: Value) -> Value:
    """The product over all steps and rows."""
    rows = gates.shape[0] * gates.shape[1]
    left, right = (views.reshape(v, (rows, v.shape[2])) for v in (gates, before))
    return product("rnn", views.transpose(left, (1, 0)), right)


def _received(step: Step, i: int) -> Value:
    """What a result received; zeros, if nothing."""
    found, y = step.cotangents[i], step.outputs[i]
    return views.broadcast(constant(0.0, y.dtype), y.shape) if found is None else found


def _kept(mode: str, step: Step) -> tuple[Value, ...]:
    """All that the kernel can give: given already, or computed again."""
    if step.attributes["keep"]:
        return step.outputs
    weights, given, *states = step.inputs
    return recurrence(mode, weights, given, states, step.attributes["reverse"], True)


def _back(
    mode: str, step: Step, known: Sequence[Value], shapes: Sequence[tuple[int, ...]]
) -> Sequence[Value]:
    """The kernel's results, of these shapes; the last is what the first output receives."""
    weights, given, first, *_ = step.inputs
    types = [TensorType(shape, given.dtype) for shape in (given.shape, *shapes, first.shape)]
    return apply_many(BACK[mode], (weights, *known), types, reverse=step.attributes["reverse"])


def _lstm(step: Step) -> Cotangents:
    _, _, first, first_memory = step.inputs
    reverse = step.attributes["reverse"]
    hidden, memory, activations = _kept("lstm", step)
    known = [activations, memory, _shifted(memory, first_memory, reverse)]
    known += [_received(step, 0), _received(step, 1)]
    gates, of_memory, of_first = _back("lstm", step, known, [first.shape])
    return _of_weights(gates, _shifted(hidden, first, reverse)), gates, of_first, of_memory


def _gru(step: Step) -> Cotangents:
    _, given, first, bias = step.inputs
    hidden, activations = _kept("gru", step)
    before = _shifted(hidden, first, step.attributes["reverse"])
    known = [activations, before, _received(step, 0)]
    gates, of_given, direct, of_first = _back("gru", step, known, [given.shape, first.shape])
    inner = part(gates, 2, 2 * bias.size, 3 * bias.size)
    return _of_weights(gates, before), of_given, add(of_first, direct), total(inner, (0, 1))


def _simple(mode: str) -> Rule:
    def rule(step: Step) -> Cotangents:
        (hidden,), first = step.outputs, step.inputs[2]
        gates, of_first = _back(mode, step, [hidden, _received(step, 0)], [])
        before = _shifted(hidden, first, step.attributes["reverse"])
        return _of_weights(gates, before), gates, of_first

    return rule


for mode in GATES:
    adjoint(FORWARD[mode])({"lstm": _lstm, "gru": _gru}.get(mode) or _simple(mode))
