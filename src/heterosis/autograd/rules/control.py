"""Derivatives of choices and loops: choices and loops of the derivatives of their programs."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir.calls import Call, collected, needed
from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP, WHILE_LOOP_BACK
from heterosis.ir.program import INPUT, Program, Value, apply, apply_many, reached
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
    from heterosis.autograd.reverse import cotangents

    results = _floats(program.outputs)
    given = [
        apply(INPUT, (), TensorType(program.outputs[i].shape, program.outputs[i].dtype))
        for i in results
    ]
    targets = [program.inputs[i] for i in wanted]
    calls = program.calls or ()
    with collected() as made:
        found = cotangents([program.outputs[i] for i in results], given, targets, calls)
        outputs = tuple(
            zeros(target) if g is None else g for g, target in zip(found, targets, strict=True)
        )
    name = f"{program.name} (backward)"
    return Program((*program.inputs, *given), outputs, name, needed((*calls, *made), outputs))


def _spread(found: Sequence[Value], wanted: Sequence[int], many: int) -> Cotangents:
    """What each of `many` operands receives, those at the positions `wanted` something."""
    by_position = dict(zip(wanted, found, strict=True))
    return [by_position.get(i) for i in range(many)]


# -- one of two programs --------------------------------------------------------------------------


@adjoint(COND)
def _cond(step: Step) -> Cotangents:
    condition, *operands = step.inputs
    wanted = _floats(operands)
    branches = {name: _pulled(step.attributes[name], wanted) for name in ("then", "otherwise")}
    given = (condition, *operands, *_received(step))
    found = apply_many(COND, given, _types([operands[i] for i in wanted]), **branches)
    return [None, *_spread(found, wanted, len(operands))]


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
