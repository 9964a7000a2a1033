"""The proof finds what is wrong with a schedule, whatever it is."""

from dataclasses import replace

import pytest

from heterosis.backends.native.codegen.kernel import Machine, OpaqueCall
from heterosis.backends.native.codegen.nest import Load, Nest
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.schedule import proof
from heterosis.backends.native.schedule.materialize import kept_values
from heterosis.backends.native.schedule.proof import prove
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, INPUT, SCATTER, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY
from heterosis.runtime.errors import ArgumentError, ScheduleError
from heterosis.runtime.settings import Settings, settings

MACHINE = Machine(AVX2, 2)
add, exp, tanh, softmax, matmul, relu, cumsum, take, sort = (
    REGISTRY[n].operation
    for n in ("add", "exp", "tanh", "softmax", "matmul", "relu", "cumsum", "take", "sort")
)


def array(*shape, dtype="float32"):
    return apply(INPUT, (), TensorType(shape, dtype))


def over(below, value, starts):
    places = (((0,) * below.ndim, (1,) * below.ndim), (starts, (1,) * below.ndim))
    return apply(ASSEMBLE, (below, value), below.type, places=places, filled=False)


def _layers():
    x, w, b, v = inputs = array(4, 6), array(6, 5), array(5), array(5, 6)
    hidden = relu(add(matmul(x, w), b))
    deeper = softmax(matmul(hidden, v), -1)
    return inputs, (cumsum(add(deeper, x), 0), exp(views.transpose(hidden, (1, 0))))


def _writes():
    x, y = inputs = array(4, 6), array(2, 6)
    v = exp(x)
    whole = over(v, tanh(y), (1, 0))
    return inputs, (sort(whole, 1), cumsum(whole, 0), add(v, v))


def _rows():
    x, i = inputs = array(4, 6), array(3, dtype="int32")
    found = take(exp(x), i, 0)
    changed = apply(SCATTER, (tanh(x), i, found), x.type, combine=None)
    return inputs, (changed, found)


PROGRAMS = [_layers, _writes, _rows]


def planned(make):
    inputs, outputs = make()
    program = Program(tuple(inputs), outputs, make.__name__)
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    rooms = [None] * len(outputs)
    kept = kept_values(program)
    found = schedule(program, layouts, rooms, MACHINE, views=True, kept=kept)
    return (program, layouts, rooms), found


@pytest.mark.parametrize("make", PROGRAMS)
def test_right_schedules_are_right(make):
    given, found = planned(make)
    assert prove(*given, found)


def _each(change):
    """Schedules in which one kernel is changed, for each that `change` gives something for."""

    def damaged(found):
        for i, kernel in enumerate(found.kernels):
            for other in change(kernel):
                yield replace(found, kernels=found.kernels[:i] + other + found.kernels[i + 1 :])

    return damaged


def _too_early(found):
    """Schedules in which a kernel runs before the first one that it needs."""
    for i in range(1, len(found.kernels)):
        if _needs(found.kernels[i], found.kernels[i - 1]):
            kernels = list(found.kernels)
            kernels[i - 1 : i + 1] = reversed(kernels[i - 1 : i + 1])
            yield replace(found, kernels=kernels)


def _side_by_side(found):
    for i in range(1, len(found.kernels)):
        if _needs(found.kernels[i], found.kernels[i - 1]):
            yield replace(found, branches={i - 1: (1, 1)})


def _needs(kernel, before):
    return not _read(kernel).isdisjoint(_written(before))


def _read(kernel):
    if isinstance(kernel, OpaqueCall):
        return {place.buffer for place in kernel.inputs}
    return {step.operand.buffer for step in kernel.steps if isinstance(step, Load)}


def _written(kernel):
    if isinstance(kernel, OpaqueCall):
        return {place.buffer for place in kernel.outputs}
    return {store.operand.buffer for store in kernel.stores}


def _in_one_place(found):
    """All temporaries that are alive at a time where the first one stands."""
    if len([n for n in found.temporaries if n]) > 1:
        yield replace(found, starts=[0] * len(found.starts))


def _other_loads(kernel):
    """The same nest, one load of which begins one element later, or goes the other way."""
    for i, step in enumerate(kernel.steps if isinstance(kernel, Nest) else ()):
        if isinstance(step, Load):
            backwards = tuple(-s for s in step.operand.strides)
            for change in {"offset": step.operand.offset + 1}, {"strides": backwards}:
                if step.operand != (operand := replace(step.operand, **change)):
                    steps = list(kernel.steps)
                    steps[i] = replace(step, operand=operand)
                    yield [replace(kernel, steps=tuple(steps))]


def _other_stores(kernel):
    for store in kernel.stores[:1] if isinstance(kernel, Nest) else ():
        moved = replace(store, operand=replace(store.operand, offset=store.operand.offset + 1))
        yield [replace(kernel, stores=(moved, *kernel.stores[1:]))]


def _other_inputs(kernel):
    """A kernel's own result, or its first operand, in place of each operand."""
    inputs = kernel.inputs if isinstance(kernel, OpaqueCall) else ()
    for i, place in enumerate(inputs):
        for other in (*kernel.outputs, inputs[0]):
            if other.buffer != place.buffer:
                wrong = replace(place, buffer=other.buffer)
                yield [replace(kernel, inputs=(*inputs[:i], wrong, *inputs[i + 1 :]))]


DAMAGES = {
    "left out": _each(lambda kernel: [[]]),
    "too early": _too_early,
    "side by side": _side_by_side,
    "in one place": _in_one_place,
    "other loads": _each(_other_loads),
    "other stores": _each(_other_stores),
    "other inputs": _each(_other_inputs),
}


@pytest.mark.each("damage")
@pytest.mark.parametrize("make", PROGRAMS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(make, damage):
    given, found = planned(make)
    many = list(DAMAGES[damage](found))
    assert many or damage == "other inputs"
    for damaged in many:
        with pytest.raises(ScheduleError):
            prove(*given, damaged)


def test_inputs_stay_as_they_are():
    """A result is right, and an input is not any more."""
    (program, layouts, rooms), found = planned(_writes)
    (first, *others) = found.kernels
    too_much = replace(first.stores[0], operand=replace(first.stores[0].operand))
    too_much = replace(too_much, operand=replace(too_much.operand, buffer=_first_input(first)))
    kernels = [first, *others, replace(first, stores=(too_much,))]
    with pytest.raises(ScheduleError, match="input 0"):
        prove(program, layouts, rooms, replace(found, kernels=kernels))


def _first_input(nest):
    return next(step.operand.buffer for step in nest.steps if isinstance(step, Load))


def test_what_is_too_large_is_passed_over(monkeypatch):
    given, found = planned(_layers)
    monkeypatch.setattr(proof, "MOST", 10)
    assert not prove(*given, replace(found, kernels=[]))


def test_schedules_are_proved_where_that_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(proof, "prove", lambda *given, **options: asked.append(given))
    planned(_rows)
    monkeypatch.setattr(settings, "check", False)
    planned(_rows)
    assert len(asked) == 1


@pytest.mark.parametrize("text, expected", [("1", True), ("0", False), ("", False)])
def test_the_environment_asks_for_it(text, expected, monkeypatch):
    monkeypatch.setenv("HETEROSIS_CHECK", text)
    found = Settings()
    found.read_environment()
    assert found.check is expected


def test_another_answer_is_refused(monkeypatch):
    monkeypatch.setenv("HETEROSIS_CHECK", "yes")
    with pytest.raises(ArgumentError, match="HETEROSIS_CHECK='yes': expected 1 or 0"):
        Settings().read_environment()
