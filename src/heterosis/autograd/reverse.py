"""Reverse-mode differentiation of programs, from results back to inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from heterosis.autograd.conditional import Received, apart, in_any_case, total, under
from heterosis.autograd.rules.table import Cotangents, Step, is_piecewise_constant, rule_of
from heterosis.ir.calls import Call, moved, note
from heterosis.ir.primitives.families import Control
from heterosis.ir.program import Node, Program, Value
from heterosis.ir.types import INTEGERS, is_float
from heterosis.ops.record import REGISTRY
from heterosis.ops.rules import zeros
from heterosis.runtime.errors import UnsupportedError

Unit = Node | Call  # what is differentiated as a whole


def cotangents(
    outputs: Sequence[Value],
    given: Sequence[Received | None],
    wanted: Sequence[Value],
    calls: Sequence[Call],
    known: Mapping[Value, Value] | None = None,
) -> list[Received | None]:
    """What each value of `wanted` receives when `outputs`, made by `calls`, receive `given`.

    `known` maps values that need not be computed again to inputs that hold them.
    """
    return _Reverse(outputs, wanted, calls, known or {}).run(outputs, given, wanted)


def reached(outputs: Sequence[Value], wanted: Sequence[Value], calls: Sequence[Call]) -> set[Value]:
    """The values below `outputs` that gradients reach `wanted` from, be they zeros: what an
    operation on floats gives, whatever it is made of."""
    return _Reverse(outputs, wanted, calls, {}, by_calls=True).active


class _Reverse:
    def __init__(
        self,
        outputs: Sequence[Value],
        wanted: Sequence[Value],
        calls: Sequence[Call],
        known: Mapping[Value, Value],
        encoded: Iterable[Value] = (),
        *,
        by_calls: bool = False,
    ):
        self.known, self.by_calls = known, by_calls
        owners = _owners(calls, _as_one if by_calls else _with_own_gradients)
        self.order = list(_units(outputs, owners))
        self.active = set(wanted)  # values through which a gradient may reach `wanted`
        self.encoded = set(encoded)  # integers that hold what a gradient should reach
        for unit in self.order:
            self._follow(unit)
        self.received: dict[Value, Received] = {}

    def _follow(self, unit: Unit) -> None:
        known = [v for v in unit.inputs if v in self.active or v in self.encoded]
        if not known:
            return
        if isinstance(unit, Node) and _has_programs(unit):
            self._follow_within(unit)
            return
        if _ends_gradients(unit):
            return
        self.active.update(v for v in _results(unit) if is_float(v.dtype))
        if isinstance(unit, Node) and not _is_step(unit):
            self.encoded.update(v for v in unit.outputs if v.dtype in INTEGERS)

    def _follow_within(self, node: Node) -> None:
        """The same for a choice or a loop, whose programs say what reaches which result. What a
        loop carries on reaches as far in another turn."""
        of_results = node.attributes.keys() - {"condition"}
        attributes = (node.attributes[name] for name in of_results)
        programs = [value for value in attributes if isinstance(value, Program)]
        carried = node.attributes.get("carried", 0)
        operands = node.inputs[len(node.inputs) - len(programs[0].inputs) :]
        active = {i for i, value in enumerate(operands) if value in self.active}
        encoded = {i for i, value in enumerate(operands) if value in self.encoded}
        while True:
            found = [self._within(program, active, encoded) for program in programs]
            reached_, held = (set().union(*sets) for sets in zip(*found, strict=True))
            more = {i for i in reached_ if i < carried} - active
            others = {i for i in held if i < carried} - encoded
            if not more and not others:
                break
            active, encoded = active | more, encoded | others
        self.active.update(node.outputs[i] for i in reached_)
        self.encoded.update(node.outputs[i] for i in held)

    def _within(
        self, program: Program, active: Iterable[int], encoded: Iterable[int]
    ) -> tuple[set[int], set[int]]:
        """The results of a program that gradients reach its inputs at positions `active` from, and
        those that hold what they should reach."""
        inputs = program.inputs
        found = _Reverse(
            program.outputs,
            [inputs[i] for i in active],
            program.calls or (),
            {},
            [inputs[i] for i in encoded],
            by_calls=self.by_calls,
        )
        results = list(enumerate(program.outputs))
        return (
            {i for i, v in results if v in found.active},
            {i for i, v in results if v in found.encoded},
        )

    def run(
        self, outputs: Sequence[Value], given: Sequence[Received | None], wanted: Sequence[Value]
    ) -> list[Received | None]:
        for output, cotangent in zip(outputs, given, strict=True):
            self._receive(output, cotangent)
        for unit in reversed(self.order):
            if any(operand in self.active or operand in self.encoded for operand in unit.inputs):
                self._visit(unit)
        return [self.received.get(value) for value in wanted]

    def _receive(self, value: Value, cotangent: Received | None) -> None:
        if cotangent is None or value not in self.active:
            return
        before = self.received.get(value)
        self.received[value] = cotangent if before is None else total(before, cotangent)

    def _visit(self, unit: Unit) -> None:
        received = tuple(self.received.get(value) for value in _results(unit))
        if all(cotangent is None for cotangent in received):
            return
        if any(operand in self.encoded for operand in unit.inputs):
            raise _without_gradient(unit)
        each, condition = apart(received)
        if isinstance(unit, Call):
            found = self._pulled(unit, tuple(map(in_any_case, each)))
        else:
            operands, results = self._known(unit.inputs), self._known(unit.outputs)
            found = _pull(unit, Step(operands, results, each, unit.attributes))
        for operand, cotangent in zip(unit.inputs, found, strict=True):
            self._receive(operand, None if cotangent is None else under(condition, cotangent))

    def _pulled(self, call: Call, received: tuple[Value | None, ...]) -> Cotangents:
        results = self._known(call.results)
        if call.pullback is not None:
            return _pulled_back(call, self._known(call.pullback.saved), received)
        operands = [v if v is None else self.known.get(v, v) for v in call.operands]
        return REGISTRY[call.operation].pull(operands, call.attributes, results, received)

    def _known(self, values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(self.known.get(v, v) for v in values)


def _has_programs(node: Node) -> bool:
    """Whether it is a choice or a loop that gradients go through."""
    return isinstance(node.primitive, Control) and rule_of(node.primitive) is not None


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
    if rule is None:
        raise _without_gradient(node)
    return rule(step)


def _without_gradient(node: Unit) -> UnsupportedError:
    from heterosis.autograd.rules.absent import ABSENT

    absence = ABSENT.get(node.primitive) if isinstance(node, Node) else None
    name = node.primitive.name if isinstance(node, Node) else "an operation"
    why = f": {absence.reason}. Keep" if absence is not None else "; keep"
    return UnsupportedError(
        f"{name} has no gradient{why} it out of what is recorded, with autograd.pause() or "
        ".detach()."
    )


def _is_step(node: Node) -> bool:
    """Whether a gradient may end here, since the results change in steps only."""
    return is_piecewise_constant(node.primitive)


def _results(unit: Unit) -> tuple[Value, ...]:
    return unit.results if isinstance(unit, Call) else unit.outputs


def _ends_gradients(unit: Unit) -> bool:
    """Whether it is there to keep gradients from what it is given."""
    if not isinstance(unit, Call) or unit.pullback is not None:
        return False
    return REGISTRY[unit.operation].stops_gradients


def _owners(calls: Sequence[Call], parts: Callable[[Call], Iterable[Call]]) -> dict[int, Call]:
    """The `parts` of calls, each of which is taken as one, by the nodes of their results."""
    found: dict[int, Call] = {}
    for call in calls:
        for step in parts(call):
            nodes = {id(value.node) for value in step.results}
            # An argument may be handed back as it came: nothing was done to it.
            if nodes.isdisjoint(id(v.node) for v in step.inputs):
                found |= dict.fromkeys(nodes, step)
    return found


def _with_own_gradients(call: Call) -> Iterable[Call]:
    """Those steps of a call, or itself, that have gradients of their own."""
    return filter(_has_own_gradient, call.steps or (call,))


def _has_own_gradient(call: Call) -> bool:
    return call.pullback is not None or REGISTRY[call.operation].has_own_gradient


def _as_one(call: Call) -> Iterable[Call]:
    """A call itself, unless it is a choice or a loop, whose programs say more."""
    return () if any(_has_programs(value.node) for value in call.results) else (call,)


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
