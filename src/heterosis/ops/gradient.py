"""Reverse-mode differentiation of programs, from results back to inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from heterosis.autograd.rules.table import Cotangents, Step, is_piecewise_constant, rule_of
from heterosis.ir.program import Call, Node, Value
from heterosis.ir.types import INTEGERS, is_float
from heterosis.ops.math.elementwise import add
from heterosis.runtime.errors import UnsupportedError

Unit = Node | Call  # what is differentiated as a whole


def cotangents(
    outputs: Sequence[Value],
    given: Sequence[Value | None],
    wanted: Sequence[Value],
    known: Mapping[Value, Value] | None = None,
) -> list[Value | None]:
    """What each value of `wanted` receives when `outputs` receive `given`.

    `known` maps values that need not be computed again to inputs that hold them.
    """
    return _Reverse(outputs, wanted, known or {}).run(outputs, given, wanted)


def reached(outputs: Sequence[Value], wanted: Sequence[Value]) -> set[Value]:
    """The values below `outputs` that gradients reach `wanted` from."""
    return _Reverse(outputs, wanted, {}).active


class _Reverse:
    def __init__(
        self, outputs: Sequence[Value], wanted: Sequence[Value], known: Mapping[Value, Value]
    ):
        self.known = known
        self.order = list(_units(outputs))
        self.active = set(wanted)  # values through which a gradient may reach `wanted`
        self.encoded: set[Value] = set()  # integers that hold what a gradient should reach
        for unit in self.order:
            self._follow(unit)
        self.received: dict[Value, Value] = {}

    def _follow(self, unit: Unit) -> None:
        known = [v for v in unit.inputs if v in self.active or v in self.encoded]
        if not known:
            return
        self.active.update(v for v in unit.outputs if is_float(v.dtype))
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
        received = tuple(self.received.get(value) for value in unit.outputs)
        if all(cotangent is None for cotangent in received):
            return
        if any(operand in self.encoded for operand in unit.inputs):
            raise _without_gradient(unit)
        operands = tuple(self.known.get(v, v) for v in unit.inputs)
        results = tuple(self.known.get(v, v) for v in unit.outputs)
        found = (
            unit.pull(operands, results, received)
            if isinstance(unit, Call)
            else _pull(unit, Step(operands, results, received, unit.attributes))
        )
        for operand, cotangent in zip(unit.inputs, found, strict=True):
            self._receive(operand, cotangent)


def _pull(node: Node, step: Step) -> Cotangents:
    rule = rule_of(node.primitive)
    if rule is None:
        raise _without_gradient(node)
    return rule(step)


def _without_gradient(node: Unit) -> UnsupportedError:
    name = node.primitive.name if isinstance(node, Node) else "an operation"
    return UnsupportedError(
        f"{name} has no gradient; keep it out of what is recorded, with autograd.pause() or "
        ".detach()."
    )


def _is_step(node: Node) -> bool:
    """Whether a gradient may end here, since the results change in steps only."""
    return is_piecewise_constant(node.primitive)


def _units(outputs: Sequence[Value]) -> Iterator[Unit]:
    """Calls with gradients of their own, and the nodes outside of them, operands before users."""
    seen: set[int] = set()
    stack: list[tuple[Unit, bool]] = [(_unit(v), False) for v in reversed(outputs)]
    while stack:
        unit, expanded = stack.pop()
        if expanded:
            yield unit
        elif id(unit) not in seen:
            seen.add(id(unit))
            stack.append((unit, True))
            stack.extend((_unit(operand), False) for operand in reversed(unit.inputs))


def _unit(value: Value) -> Unit:
    return value.node.call or value.node
