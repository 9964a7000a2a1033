"""Derivatives of choices and loops: choices and loops of the derivatives of their programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heterosis.autograd.conditional import Condition, Conditional, Received, in_any_case, value_of
from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir.calls import Call, collected, needed
from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP, WHILE_LOOP_BACK
from heterosis.ir.program import INPUT, Program, Value, apply, apply_many, constant, reached
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.math.elementwise import add
from heterosis.ops.rules import zeros

Types = tuple[TensorType, ...]


def _floats(values: Sequence[Value]) -> list[int]:
    """The positions of what receives gradients."""
    return [i for i, value in enumerate(values) if is_float(value.dtype)]


def _types(values: Sequence[Value]) -> Types:
    return tuple(TensorType(value.shape, value.dtype) for value in values)


def _received(step: Step) -> list[Value]:
    """What the results of floats receive; zeros, if nothing."""
    pairs = zip(step.cotangents, step.outputs, strict=True)
    return [zeros(y) if g is None else g for g, y in pairs if is_float(y.dtype)]


def _pulled(program: Program, wanted: Sequence[int]) -> Program:
    """What the inputs at the positions `wanted` receive: from the inputs, and from what the results
    of floats receive, which follow them."""
    given = {i: _input(program.outputs[i]) for i in _floats(program.outputs)}
    found, made = _going_back(program, given, wanted)
    pairs = zip(found, (program.inputs[i] for i in wanted), strict=True)
    with collected() as chosen:
        outputs = [zeros(target) if g is None else in_any_case(g) for g, target in pairs]
    return _backward(program, list(given.values()), outputs, (*made, *chosen))


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


def _backward(
    program: Program, given: Sequence[Value], outputs: Sequence[Value], made: Sequence[Call]
) -> Program:
    """The program of `outputs`, given what `program` is and what its results receive."""
    calls = needed((*(program.calls or ()), *made), outputs)
    name = f"{program.name} (backward)"
    return Program((*program.inputs, *given), tuple(outputs), name, calls)


def _spread(found: Sequence[Received | None], wanted: Sequence[int], many: int) -> Cotangents:
    """What each of `many` operands receives, those at the positions `wanted` something."""
    by_position = dict(zip(wanted, found, strict=True))
    return [by_position.get(i) for i in range(many)]


# -- one of two programs --------------------------------------------------------------------------

_BRANCHES = ("then", "otherwise")
_TRUTH = TensorType((), "bool")


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
    given = (condition, *operands, *ways[0].received)
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
    """What the operands of a choice receive through one of its branches, for what is `received`."""

    def __init__(self, step: Step, branch: Program, wanted: Sequence[int]):
        self.branch = branch
        self.targets = [branch.inputs[i] for i in wanted]
        self.received: list[Value] = []
        self.given: list[Value] = []
        of_results = {i: self._given(g) for i, g in enumerate(step.received) if g is not None}
        self.found, self.made = _going_back(branch, of_results, wanted)

    def _given(self, received: Received) -> Received:
        """An input for what is received outside, or two if that is conditional."""
        if not isinstance(received, Conditional):
            return self._add(received)
        truth = self._add(received.condition.truth)
        condition = Condition(truth, received.condition.holds)
        return Conditional(self._add(received.value), condition)

    def _add(self, value: Value) -> Value:
        """The input for a value, which is given once."""
        if value not in self.received:
            self.received.append(value)
            self.given.append(_input(value))
        return self.given[self.received.index(value)]

    def program(self, asked: Sequence[int], doubtful: Sequence[int]) -> Program:
        """What the targets `asked` receive, and whether those in `doubtful` do."""
        with collected() as made:
            values = [self._value(n) for n in asked]
            truths = [_is_received(self.found[n]) for n in doubtful]
        return _backward(self.branch, self.given, [*values, *truths], [*self.made, *made])

    def _value(self, n: int) -> Value:
        found = self.found[n]
        if found is None:
            return zeros(self.targets[n])
        value: Value = value_of(found)
        return value


def _is_received(found: Received | None) -> Value:
    if isinstance(found, Conditional):
        truth: Value = found.condition.as_truth()
        return truth
    return constant(found is not None, "bool")


# -- as long as a condition holds -----------------------------------------------------------------


@adjoint(WHILE_LOOP)
def _while_loop(step: Step) -> Cotangents:
    """The loop runs once more, and keeps what it carries into each turn; then it goes back. What
    the state receives goes from turn to turn, and sums of what the shared operands receive."""
    body, carried = _body(step), step.attributes["carried"]
    wanted = _floats(body.inputs)
    state = [i for i in wanted if i < carried]
    shared = [i for i in wanted if i >= carried]
    pulled = _pulled(body, wanted)
    sums, found, calls = _summed(pulled, body, len(state), shared)
    back = Program((*pulled.inputs, *sums), found, pulled.name, calls)
    begun = [*_received(step), *(zeros(step.inputs[i]) for i in shared)]
    made = apply_many(
        WHILE_LOOP_BACK,
        (*step.inputs, *begun),
        _types(begun),
        **step.attributes | {"back": back, "received": len(begun)},
    )
    return _spread(made, wanted, len(step.inputs))


def _summed(
    pulled: Program, body: Program, first: int, shared: Sequence[int]
) -> tuple[list[Value], tuple[Value, ...], tuple[Call, ...]]:
    """Inputs for sums, and the results of `pulled`, from number `first` on added to these: what the
    inputs `shared` of `body` receive; and their calls."""
    sums = [
        apply(INPUT, (), TensorType(body.inputs[i].shape, body.inputs[i].dtype)) for i in shared
    ]
    found = list(pulled.outputs)
    with collected() as made:
        for n, total in enumerate(sums, first):
            found[n] = add(total, found[n])
    return sums, tuple(found), needed((*(pulled.calls or ()), *made), found)


# -- over rows ------------------------------------------------------------------------------------


@adjoint(SCAN)
def _scan(step: Step) -> Cotangents:
    """A scan in the other order: it carries what the state receives and what the shared operands
    have received, and is given what was carried into each turn."""
    body, carried = _body(step), step.attributes["carried"]
    first = carried + step.attributes["shared"]
    wanted = _floats(body.inputs)
    states = _histories(step)
    results = _floats(step.outputs)
    received = dict(zip(results, _received(step), strict=True))
    state = [i for i in wanted if i < carried]
    shared = [i for i in wanted if carried <= i < first]
    rows = [i for i in wanted if i >= first]
    sums = [zeros(step.inputs[i]) for i in shared]
    begun = [received[i] for i in state]
    kept = step.inputs[carried:first]
    given = [*states, *step.inputs[first:], *(received[i] for i in results if i >= carried)]
    turn = _turn(step, body, (state, shared, rows))
    many = len(begun) + len(sums)
    asked = _asked(turn, many)
    shared_here = sum(i < many + len(kept) for i in asked) - many
    turn = Program(tuple(turn.inputs[i] for i in asked), turn.outputs, turn.name, turn.calls)
    operands = (*begun, *sums, *kept, *given)
    made = tuple(TensorType(step.inputs[i].shape, step.inputs[i].dtype) for i in rows)
    found = apply_many(
        SCAN,
        [operands[i] for i in asked],
        (*_types([*begun, *sums]), *made),
        body=turn,
        carried=many,
        shared=shared_here,
        length=step.attributes["length"],
        reverse=not step.attributes["reverse"],
    )
    return _spread(found, [*state, *shared, *rows], len(step.inputs))


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


def _turn(
    step: Step, body: Program, wanted: tuple[Sequence[int], Sequence[int], Sequence[int]]
) -> Program:
    """The program of a turn back: (what the state receives, sums of the shared, shared, states,
    rows, what made rows receive) to (what the state before receives, sums, what rows receive)."""
    carried = step.attributes["carried"]
    first = carried + step.attributes["shared"]
    state, shared, rows = wanted
    positions = [*state, *shared, *rows]
    pulled = _pulled(body, positions)
    many = len(body.inputs)
    states, kept = pulled.inputs[:carried], pulled.inputs[carried:first]
    given, cotangents_ = pulled.inputs[first:many], pulled.inputs[many:]
    results = _floats(body.outputs)
    of_state = [g for g, i in zip(cotangents_, results, strict=True) if i < carried]
    of_rows = [g for g, i in zip(cotangents_, results, strict=True) if i >= carried]
    sums, found, calls = _summed(pulled, body, len(state), shared)
    inputs = (*of_state, *sums, *kept, *states, *given, *of_rows)
    return Program(inputs, found, pulled.name, calls)


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
