"""Derivatives of choices and loops: choices and loops of the derivatives of their programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

from heterosis.autograd.conditional import Condition, Conditional, Received, in_any_case, value_of
from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir.calls import Call, collected, needed
from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP, WHILE_LOOP_BACK
from heterosis.ir.program import INPUT, Program, Value, apply, apply_many, constant, reached
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.math.elementwise import add, logical_or
from heterosis.ops.rules import numbers_like, zeros
from heterosis.runtime.settings import settings

Types = tuple[TensorType, ...]

_TRUTH = TensorType((), "bool")


def _floats(values: Sequence[Value]) -> list[int]:
    """The positions of what receives gradients."""
    return [i for i, value in enumerate(values) if is_float(value.dtype)]


def _types(values: Sequence[Value]) -> Types:
    return tuple(TensorType(value.shape, value.dtype) for value in values)


def _input(like: Value) -> Value:
    return apply(INPUT, (), TensorType(like.shape, like.dtype))


def _going_back(
    program: Program, given: Mapping[int, Received], wanted: Sequence[int]
) -> tuple[list[Received | None], list[Call]]:
    """What the inputs at the positions `wanted` receive for what the results at these positions
    do, and the calls on the way."""
    from heterosis.autograd.reverse import cotangents

    results = [program.outputs[i] for i in given]
    targets = [program.inputs[i] for i in wanted]
    with collected() as made:
        found = cotangents(results, list(given.values()), targets, program.calls or ())
    return found, made


class _Inputs:
    """Inputs of a program for what is received outside of it, one for each value."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}  # by what is outside
        self.truths: dict[Value, Value] = {}

    def take(self, received: Received, like: Value) -> Received:
        """What is received, as the program is given it: a value as `like`."""
        value = self.values.setdefault(value_of(received), _input(like))
        if not isinstance(received, Conditional):
            return value
        truth = self.truths.setdefault(received.condition.truth, _truth())
        return Conditional(value, Condition(truth, received.condition.holds))


def _truth() -> Value:
    return apply(INPUT, (), _TRUTH)


def _is_received(found: Received | None) -> Value:
    """Whether anything is received, as one element."""
    if isinstance(found, Conditional):
        truth: Value = found.condition.as_truth()
        return truth
    return constant(found is not None, "bool")


def _or_zeros(found: Received | None, like: Value) -> Value:
    """What is received where anything is; or zeros, which nobody looks at. Where settings ask for
    checks, NaN: who looks at it all the same is found out."""
    if found is None:
        return numbers_like(like, nan) if settings.check else zeros(like)
    value: Value = value_of(found)
    return value


def _backward(
    program: Program, inputs: Sequence[Value], outputs: Sequence[Value], made: Sequence[Call]
) -> Program:
    """The way back through a program, whose calls are its own and those in `made`."""
    calls = needed((*(program.calls or ()), *made), outputs)
    return Program(tuple(inputs), tuple(outputs), f"{program.name} (backward)", calls)


# -- one of two programs --------------------------------------------------------------------------

_BRANCHES = ("then", "otherwise")


@adjoint(COND)
def _cond(step: Step) -> Cotangents:
    """A choice of what goes back through the branches. It also says which operands receive anything
    in the branch that is taken, where that depends on a choice within it."""
    condition, *operands = step.inputs
    wanted = _floats(operands)
    ways = [_Way(step, step.attributes[name], wanted) for name in _BRANCHES]
    pairs = list(zip(*(way.found for way in ways), strict=True))
    asked = [n for n, pair in enumerate(pairs) if pair != (None, None)]
    doubtful = [n for n in asked if any(isinstance(g, Conditional) for g in pairs[n])]
    branches = {
        name: way.program(asked, doubtful) for name, way in zip(_BRANCHES, ways, strict=True)
    }
    types = [*_types([operands[wanted[n]] for n in asked]), *[_TRUTH] * len(doubtful)]
    given = (condition, *operands, *ways[0].given.values, *ways[0].given.truths)
    made = apply_many(COND, given, tuple(types), **branches)
    truths = dict(zip(doubtful, made[len(asked) :], strict=True))
    received: list[Received | None] = [None] * len(operands)
    for n, value in zip(asked, made, strict=False):
        then, otherwise = pairs[n]
        if n in truths:
            received[wanted[n]] = Conditional(value, Condition(truths[n]))
        elif then is None or otherwise is None:
            received[wanted[n]] = Conditional(value, Condition(condition, then is not None))
        else:
            received[wanted[n]] = value
    return [None, *received]


class _Way:
    """What the operands of a choice receive through one of its branches."""

    def __init__(self, step: Step, branch: Program, wanted: Sequence[int]):
        self.branch = branch
        self.targets = [branch.inputs[i] for i in wanted]
        self.given = _Inputs()
        there = ((i, g) for i, g in enumerate(step.received) if g is not None)
        given = {i: self.given.take(g, branch.outputs[i]) for i, g in there}
        self.found, self.made = _going_back(branch, given, wanted)

    def program(self, asked: Sequence[int], doubtful: Sequence[int]) -> Program:
        """What the targets `asked` receive, and whether those in `doubtful` do."""
        with collected() as made:
            values = [_or_zeros(self.found[n], self.targets[n]) for n in asked]
            truths = [_is_received(self.found[n]) for n in doubtful]
        given = (*self.given.values.values(), *self.given.truths.values())
        inputs = (*self.branch.inputs, *given)
        return _backward(self.branch, inputs, [*values, *truths], [*self.made, *made])


# -- loops ----------------------------------------------------------------------------------------


class _Turn:
    """A turn on the way back through a loop. It carries what the state receives, and sums of what
    the shared operands do; and whether these, and what rows are made of, have received anything,
    where that is not known before.

    `given` is what those results of a turn receive that are no state, as a turn is given it.
    """

    def __init__(self, step: Step, given: Mapping[int, Received], shared: int, *, certain: bool):
        self.step, self.body = step, _body(step)
        self.certain = certain  # that there is a turn
        carried = step.attributes["carried"]
        wanted = _floats(self.body.inputs)
        self.state = [i for i in wanted if i < carried]
        self.others = [i for i in wanted if i >= carried]
        self.start = {i: step.received[i] for i in self.state}
        self.found, self.made = self._going_back(given)
        reached_ = [i for i in self.others if self.found[i] is not None]
        self.rows = [i for i in reached_ if i >= shared]
        self.sums = {i: _input(self.body.inputs[i]) for i in reached_ if i < shared}
        self.seen = {i: _truth() for i in reached_ if not self._is_certain(i)}

    def _is_certain(self, i: int) -> bool:
        """Whether an operand receives something in any case."""
        return self.certain and _is_sure(self.found[i])

    def _going_back(
        self, given: Mapping[int, Received]
    ) -> tuple[dict[int, Received | None], list[Call]]:
        """What the wanted inputs of the body receive in a turn. What one turn may not give to the
        state, it may not be given in another one."""
        positions = [*self.state, *self.others]
        doubtful = {i for i in self.state if not _is_sure(self.start[i])}
        while True:
            self.values = {i: _input(self.body.outputs[i]) for i in self.state}
            self.truths = {i: _truth() for i in self.state if i in doubtful}
            of_state = {
                i: Conditional(value, Condition(self.truths[i])) if i in doubtful else value
                for i, value in self.values.items()
            }
            found, made = _going_back(self.body, {**of_state, **given}, positions)
            by_position = dict(zip(positions, found, strict=True))
            more = {i for i in self.state if not _is_sure(by_position[i])} - doubtful
            if not more:
                return by_position, made
            doubtful |= more

    @property
    def inputs(self) -> list[Value]:
        """What is carried into a turn."""
        carried = (self.values, self.truths, self.sums, self.seen)
        return [value for values in carried for value in values.values()]

    def begun(self) -> list[Value]:
        """What is carried into the first one."""
        values = [_or_zeros(found, self.step.outputs[i]) for i, found in self.start.items()]
        truths = [_is_received(self.start[i]) for i in self.truths]
        sums = [zeros(self.step.inputs[i]) for i in self.sums]
        return [*values, *truths, *sums, *(constant(False, "bool") for _ in self.seen)]

    def program(self, inputs: Sequence[Value]) -> Program:
        """What is carried on, and what the rows receive."""
        found = self.found
        with collected() as made:
            values = [_or_zeros(found[i], self.body.inputs[i]) for i in self.state]
            truths = [_is_received(found[i]) for i in self.truths]
            sums = [add(value, in_any_case(found[i])) for i, value in self.sums.items()]
            seen = [
                constant(True, "bool")
                if _is_sure(found[i])
                else logical_or(value, _is_received(found[i]))
                for i, value in self.seen.items()
            ]
            rows = [in_any_case(found[i]) for i in self.rows]
        outputs = (*values, *truths, *sums, *seen, *rows)
        return _backward(self.body, inputs, outputs, [*self.made, *made])

    def received(self, made: Sequence[Value]) -> list[Received | None]:
        """What each operand of the loop receives, of the results of the way back."""
        left = iter(made)
        kinds = (self.state, self.truths, self.sums, self.seen, self.rows)
        values, truths, sums, seen, rows = ({i: next(left) for i in kind} for kind in kinds)
        received: list[Received | None] = [None] * len(self.step.inputs)
        for i, value in (values | sums | rows).items():
            if self.found[i] is None and self.start.get(i) is None:
                continue
            truth = None if self._is_certain(i) else (truths | seen).get(i)
            received[i] = value if truth is None else Conditional(value, Condition(truth))
        return received


def _is_sure(received: Received | None) -> bool:
    return received is not None and not isinstance(received, Conditional)


# -- as long as a condition holds -----------------------------------------------------------------


@adjoint(WHILE_LOOP)
def _while_loop(step: Step) -> Cotangents:
    """The loop runs once more, and keeps what it carries into each turn; then it goes back."""
    turn = _Turn(step, {}, len(step.inputs), certain=False)
    begun = turn.begun()
    made = apply_many(
        WHILE_LOOP_BACK,
        (*step.inputs, *begun),
        _types(begun),
        **step.attributes
        | {"back": turn.program([*turn.body.inputs, *turn.inputs]), "received": len(begun)},
    )
    return turn.received(made)


# -- over rows ------------------------------------------------------------------------------------


@adjoint(SCAN)
def _scan(step: Step) -> Cotangents:
    """A scan in the other order: it carries what a turn back does, and is given what was carried
    into each turn."""
    body, carried = _body(step), step.attributes["carried"]
    first = carried + step.attributes["shared"]
    rows = _Inputs()
    there = ((i, g) for i, g in enumerate(step.received) if g is not None and i >= carried)
    of_rows = {i: rows.take(g, body.outputs[i]) for i, g in there}
    turn = _Turn(step, of_rows, first, certain=step.attributes["length"] > 0)
    begun = turn.begun()
    many = len(begun)
    if not many + len(turn.rows):
        return [None] * len(step.inputs)
    shared = [*step.inputs[carried:first], *rows.truths]
    around = [*body.inputs[carried:first], *rows.truths.values()]
    given = [*_histories(step), *step.inputs[first:], *rows.values]
    taken = [*body.inputs[:carried], *body.inputs[first:], *rows.values.values()]
    back = turn.program([*turn.inputs, *around, *taken])
    asked = _asked(back, many)
    shared_here = sum(i < many + len(shared) for i in asked) - many
    back = Program(tuple(back.inputs[i] for i in asked), back.outputs, back.name, back.calls)
    operands = (*begun, *shared, *given)
    found = apply_many(
        SCAN,
        [operands[i] for i in asked],
        _types([*begun, *(step.inputs[i] for i in turn.rows)]),
        body=back,
        carried=many,
        shared=shared_here,
        length=step.attributes["length"],
        reverse=not step.attributes["reverse"],
    )
    return turn.received(found)


def _asked(turn: Program, carried: int) -> list[int]:
    """The positions of what a turn is given and asks for, besides what it carries: what was carried
    into the turns of the loop itself is kept for that alone."""
    mentioned = (value for call in turn.calls or () for value in call.values)
    nodes = {*reached(turn.outputs), *(value.node for value in mentioned)}
    inputs = enumerate(turn.inputs)
    return [i for i, value in inputs if i < carried or value.node in nodes]


def _body(step: Step) -> Program:
    body: Program = step.attributes["body"]
    return body


def _histories(step: Step) -> list[Value]:
    """What was carried into each turn, as rows: results of the loop, where it gives them; else it
    runs once more."""
    body, carried = _body(step), step.attributes["carried"]
    known = {body.outputs[i]: step.outputs[i] for i in range(carried, len(body.outputs))}
    states = body.inputs[:carried]
    if all(value in known for value in states):
        return [known[value] for value in states]
    whole = Program(body.inputs, (*body.outputs, *states), body.name, body.calls)
    length = step.attributes["length"]
    types = [TensorType((length, *v.shape), v.dtype) for v in states]
    made = apply_many(
        SCAN, step.inputs, (*_types(step.outputs), *types), **step.attributes | {"body": whole}
    )
    return list(made[len(step.outputs) :])
