"""Reverse-mode differentiation of programs, from results back to inputs.

Also the rules of the primitives that no single operation owns: views, gathers, assemblies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heterosis.ir import views
from heterosis.ir.calls import Call, moved, note
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.program import ASSEMBLE, GATHER, SCATTER, Node, Value, apply, constant
from heterosis.ir.types import INTEGERS, TensorType, is_float
from heterosis.ops.adjoint import (
    Cotangents,
    Step,
    adjoint,
    is_piecewise_constant,
    rule_of,
)
from heterosis.ops.math.elementwise import add, equal, select
from heterosis.ops.math.reductions import sum as total
from heterosis.ops.record import REGISTRY
from heterosis.ops.rules import cast
from heterosis.runtime.errors import UnsupportedError

Unit = Node | Call  # what is differentiated as a whole


def cotangents(
    outputs: Sequence[Value],
    given: Sequence[Value | None],
    wanted: Sequence[Value],
    calls: Sequence[Call],
    known: Mapping[Value, Value] | None = None,
) -> list[Value | None]:
    """What each value of `wanted` receives when `outputs`, made by `calls`, receive `given`.

    `known` maps values that need not be computed again to inputs that hold them.
    """
    return _Reverse(outputs, wanted, calls, known or {}).run(outputs, given, wanted)


def reached(outputs: Sequence[Value], wanted: Sequence[Value], calls: Sequence[Call]) -> set[Value]:
    """The values below `outputs` that gradients reach `wanted` from."""
    return _Reverse(outputs, wanted, calls, {}).active


class _Reverse:
    def __init__(
        self,
        outputs: Sequence[Value],
        wanted: Sequence[Value],
        calls: Sequence[Call],
        known: Mapping[Value, Value],
    ):
        self.known = known
        self.order = list(_units(outputs, _owners(calls)))
        self.active = set(wanted)  # values through which a gradient may reach `wanted`
        self.encoded: set[Value] = set()  # integers that hold what a gradient should reach
        for unit in self.order:
            self._follow(unit)
        self.received: dict[Value, Value] = {}

    def _follow(self, unit: Unit) -> None:
        known = [v for v in unit.inputs if v in self.active or v in self.encoded]
        if not known:
            return
        self.active.update(v for v in _results(unit) if is_float(v.dtype))
        if isinstance(unit, Node) and not _is_step(unit):
            self.encoded.update(v for v in unit.outputs if v.dtype in INTEGERS)

    def run(
        self, outputs: Sequence[Value], given: Sequence[Value | None], wanted: Sequence[Value]
    ) -> list[Value | None]:
        for output, cotangent in zip(outputs, given, strict=True):
            self._receive(output, cotangent)
        for unit in reversed(self.order):
            if any(operand in self.active or operand in self.encoded for operand in unit.inputs):
                self._visit(unit)
        return [self.received.get(value) for value in wanted]

    def _receive(self, value: Value, cotangent: Value | None) -> None:
        if cotangent is None or value not in self.active:
            return
        before = self.received.get(value)
        self.received[value] = cotangent if before is None else add(before, cotangent)

    def _visit(self, unit: Unit) -> None:
        received = tuple(self.received.get(value) for value in _results(unit))
        if all(cotangent is None for cotangent in received):
            return
        if any(operand in self.encoded for operand in unit.inputs):
            raise _without_gradient(unit)
        if isinstance(unit, Call):
            found = self._pulled(unit, received)
        else:
            operands, results = self._known(unit.inputs), self._known(unit.outputs)
            found = _pull(unit, Step(operands, results, received, unit.attributes))
        for operand, cotangent in zip(unit.inputs, found, strict=True):
            self._receive(operand, cotangent)

    def _pulled(self, call: Call, received: tuple[Value | None, ...]) -> Cotangents:
        results = self._known(call.results)
        if call.pullback is not None:
            return _pulled_back(call, self._known(call.pullback.saved), received)
        operands = [v if v is None else self.known.get(v, v) for v in call.operands]
        return REGISTRY[call.operation].pull(operands, call.attributes, results, received)

    def _known(self, values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(self.known.get(v, v) for v in values)


def _pulled_back(
    call: Call, saved: Sequence[Value], received: Sequence[Value | None]
) -> Cotangents:
    """What operands receive by a gradient that is a program."""
    pullback = call.pullback
    assert pullback is not None, "asked for of such calls only"
    given = [zeros(y) if g is None else g for g, y in zip(received, call.results, strict=True)]
    program = pullback.program
    mapping = dict(zip(program.inputs, (*saved, *given), strict=True))
    outputs, calls = moved(program.outputs, program.calls or (), mapping)
    for inner in calls:
        note(inner)
    found = dict(zip(pullback.to, outputs, strict=True))
    return [found.get(i) for i in range(len(call.inputs))]


def _pull(node: Node, step: Step) -> Cotangents:
    rule = rule_of(node.primitive)
    if rule is not None:
        return rule(step)
    if node.primitive is conversion(node.types[0].dtype):
        return (cast(step.cotangent, node.inputs[0].dtype),)
    raise _without_gradient(node)


def _without_gradient(node: Unit) -> UnsupportedError:
    name = node.primitive.name if isinstance(node, Node) else "an operation"
    return UnsupportedError(
        f"{name} has no gradient; keep it out of what is recorded, with autograd.pause() or "
        ".detach()."
    )


def _is_step(node: Node) -> bool:
    """Whether a gradient may end here, since the results change in steps only."""
    primitive = node.primitive
    return is_piecewise_constant(primitive) or primitive is conversion(node.types[0].dtype)


def _results(unit: Unit) -> tuple[Value, ...]:
    return unit.results if isinstance(unit, Call) else unit.outputs


def _owners(calls: Sequence[Call]) -> dict[int, Call]:
    """The calls with gradients of their own, by the nodes of their results."""
    found: dict[int, Call] = {}
    for call in calls:
        for step in call.steps or (call,):
            nodes = {id(value.node) for value in step.results}
            # An argument may be handed back as it came: nothing was done to it.
            if _has_own_gradient(step) and nodes.isdisjoint(id(v.node) for v in step.inputs):
                found |= dict.fromkeys(nodes, step)
    return found


def _has_own_gradient(call: Call) -> bool:
    return call.pullback is not None or REGISTRY[call.operation].has_own_gradient


def _units(outputs: Sequence[Value], owners: Mapping[int, Call]) -> Iterator[Unit]:
    """Calls with gradients of their own, and the nodes outside of them, operands before users."""

    def unit_of(value: Value) -> Unit:
        return owners.get(id(value.node)) or value.node

    seen: set[int] = set()
    stack: list[tuple[Unit, bool]] = [(unit_of(v), False) for v in reversed(outputs)]
    while stack:
        unit, expanded = stack.pop()
        if expanded:
            yield unit
        elif id(unit) not in seen:
            seen.add(id(unit))
            stack.append((unit, True))
            stack.extend((unit_of(operand), False) for operand in reversed(unit.inputs))


def zeros(like: Value, shape: tuple[int, ...] | None = None) -> Value:
    """Zeros of the element type of `like`."""
    return views.broadcast(
        cast(constant(0.0, "float64", weak=True), like.dtype),
        like.shape if shape is None else shape,
    )


# -- views ----------------------------------------------------------------------------------------


@adjoint(views.RESHAPE)
def _reshape(step: Step) -> Cotangents:
    return (views.reshape(step.cotangent, step.inputs[0].shape),)


@adjoint(views.TRANSPOSE)
def _transpose(step: Step) -> Cotangents:
    axes = step.attributes["axes"]
    return (views.transpose(step.cotangent, tuple(axes.index(a) for a in range(len(axes)))),)


@adjoint(views.BROADCAST)
def _broadcast(step: Step) -> Cotangents:
    return (summed_to(step.cotangent, step.inputs[0].shape),)


def summed_to(x: Value, shape: tuple[int, ...]) -> Value:
    """The sum over everything that repeating a value of `shape` to that of `x` has added."""
    new = x.ndim - len(shape)
    axes = [a for a in range(x.ndim) if a < new or (shape[a - new] == 1 and x.shape[a] != 1)]
    return views.reshape(total(x, tuple(axes)) if axes else x, shape)


@adjoint(views.SLICE)
def _slice(step: Step) -> Cotangents:
    (x,), g = step.inputs, step.cotangent
    place = (step.attributes["starts"], step.attributes["steps"])
    return (_placed(g, place, x.shape),)


def _placed(x: Value, place: tuple, shape: tuple[int, ...]) -> Value:
    """`x` standing at `place` among zeros."""
    type_ = TensorType(shape, x.dtype)
    zero = cast(constant(0.0, "float64", weak=True), x.dtype)
    return apply(ASSEMBLE, (zero, x), type_, places=(place,), filled=True)


@adjoint(views.DIAGONAL)
def _diagonal(step: Step) -> Cotangents:
    from heterosis.ops.array.creation import iota

    (x,), g = step.inputs, step.cotangent
    axes, start = step.attributes["axes"], step.attributes["start"]
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    along = iota(g.shape[-1])
    places = [add(along, constant(first, "int64")) for first in start]
    order = (*axes, *rest)
    base = zeros(g, tuple(x.shape[a] for a in order))
    update = views.transpose(g, (g.ndim - 1, *range(g.ndim - 1)))
    type_ = TensorType(base.shape, g.dtype)
    found = apply(SCATTER, (base, *places, update), type_, combine=None)
    return (views.transpose(found, tuple(order.index(a) for a in range(x.ndim))),)


# -- elements at computed places ------------------------------------------------------------------


@adjoint(GATHER)
def _gather(step: Step) -> Cotangents:
    from heterosis.ops.array.indexing import scattered

    data, *indices = step.inputs
    found = scattered(zeros(data), indices, step.cotangent, add=True)
    return (found, *(None for _ in indices))


@adjoint(SCATTER)
def _scatter(step: Step) -> Cotangents:
    from heterosis.ops.array.indexing import gathered, scattered

    _, *indices, update = step.inputs
    g = step.cotangent
    found = gathered(g, indices)
    if step.attributes["combine"] is not None:
        return (g, *(None for _ in indices), found)
    kept = scattered(g, indices, zeros(update))
    return (kept, *(None for _ in indices), _if_last(found, step.inputs[0], indices))


def _if_last(x: Value, base: Value, indices: Sequence[Value]) -> Value:
    """`x`, with zeros for the rows that were written over: of equal places the last counts."""
    from heterosis.ops.array.creation import iota
    from heterosis.ops.array.indexing import gathered, scattered

    lead = indices[0].shape
    numbers = views.reshape(iota(math.prod(lead)), lead)
    none = views.broadcast(constant(-1, "int64"), base.shape[: len(indices)])
    last = gathered(scattered(none, indices, numbers), indices)
    remains = views.reshape(equal(last, numbers), lead + (1,) * (x.ndim - len(lead)))
    return select(remains, x, constant(0.0, "float64", weak=True))


@adjoint(ASSEMBLE)
def _assemble(step: Step) -> Cotangents:
    g = step.cotangent
    parts, places = list(step.inputs), step.attributes["places"]
    found: list[Value | None] = [None] if step.attributes["filled"] else []
    parts = parts[len(found) :]
    for i, (part, place) in enumerate(zip(parts, places, strict=True)):
        covered = math.prod(part.shape) == g.size and len(parts) > i + 1
        own = _without(g, parts[i + 1 :], places[i + 1 :]) if covered else g
        found.append(views.slice_(own, *place, part.shape))
    return tuple(found)


def _without(g: Value, parts: Sequence[Value], places: Sequence[Any]) -> Value:
    """`g` with zeros where later parts stand over the first."""
    whole = ((0,) * g.ndim, (1,) * g.ndim)
    blanks = [zeros(g, part.shape) for part in parts]
    type_ = TensorType(g.shape, g.dtype)
    return apply(ASSEMBLE, (g, *blanks), type_, places=(whole, *places), filled=False)
