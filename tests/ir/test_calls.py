"""Calls of operations as a part of programs: collected, written, checked, kept by what moves."""

from dataclasses import replace

import pytest

from heterosis import autograd, np
from heterosis.autograd.derivative import Differentiable
from heterosis.capture import capture
from heterosis.gluon import nn
from heterosis.ir import check, parse
from heterosis.ir.calls import collected, moved, needed
from heterosis.ir.program import INPUT, Program, apply
from heterosis.ir.text import printed
from heterosis.ir.types import TensorType
from heterosis.ops.math import elementwise
from heterosis.ops.math.real import relu
from heterosis.passes.pipeline import optimized
from heterosis.runtime.errors import ProgramError


class Thrice(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x, np.exp(x))
        return x * 3

    def backward(self, dy):
        x, power = self.saved_tensors
        return dy * 3 + (x - x) * power


def _sorted_layers():
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(4, activation="relu", prefix="first_"))
    net.initialize()
    net(np.ones((3, 5)))
    return lambda x: np.sort(net(x), axis=0)


def _captured(function, *shape):
    with autograd.record():
        return capture(function, (np.ones(shape),), {}).program


def test_a_program_knows_the_calls_that_made_it():
    calls = _captured(_sorted_layers(), 3, 5).calls
    assert [call.operation for call in calls] == ["fully_connected", "activation", "sort"]
    assert [call.scope for call in calls] == ["first_", "first_relu_", ""]
    assert calls[0].attributes == (None, None, None, 4, False, True)
    assert [step.operation for call in calls for step in call.steps] == ["relu", "sorted_rows"]
    file, _, number = calls[2].line.rpartition(":")
    assert file == __file__
    with open(file) as source:
        assert "np.sort(net(x)" in source.readlines()[int(number) - 1]


@pytest.mark.parametrize(
    "function",
    [
        _sorted_layers(),
        lambda x: Thrice()(x) * 2,
        lambda x: np.zeros_like(np.exp(x)),  # the operand is not needed
        lambda x: np.split(x, 3)[1],  # nor are other results
    ],
    ids=["layers", "a function", "an operand", "results"],
)
def test_calls_are_written_and_read(function):
    program = _captured(function, 3, 5)
    again = parse(str(program))
    check(again)
    assert str(again) == str(program)
    assert [c.operation for c in again.calls] == [c.operation for c in program.calls]
    assert "call" not in printed(program, calls=False).text


def _relu():
    x, y = (apply(INPUT, (), TensorType((3,), "float32")) for _ in range(2))
    with collected() as calls:
        results = (elementwise.add(relu(x), y),)
    return x, y, results, calls


def test_calls_follow_what_replaces_their_operands():
    x, y, results, calls = _relu()
    z = apply(INPUT, (), x.type)
    found, (call,) = moved(results, calls, {x: z})
    assert call.operands == (z,) and call.results == (found[0].node.inputs[0],)
    check(replace(_program((z, y), found), calls=(call,)))


def test_calls_whose_results_are_replaced_or_not_needed_are_dropped():
    x, y, results, calls = _relu()
    (call,) = calls
    z = apply(INPUT, (), x.type)
    assert moved(results, calls, {call.results[0]: z})[1] == ()
    assert needed(calls, (y,)) == ()


def test_a_step_stays_where_its_call_is_not_needed():
    """Second derivatives start from results of steps, such as an inverse before it is reshaped."""
    program = _captured(lambda x: np.sort(x, axis=0), 3, 5)
    (call,) = program.calls
    (step,) = call.steps
    assert step.results != call.results
    assert needed(program.calls, step.results) == (step,)
    check(replace(program, outputs=step.results, calls=(step,)))


def _program(inputs, outputs, calls=()):
    return Program(tuple(inputs), tuple(outputs), "f", tuple(calls))


def test_a_call_is_made_of_its_operands_alone():
    x, y, results, (call,) = _relu()
    check(_program((x, y), results, [call]))
    with pytest.raises(ProgramError, match=r"the call of relu: .*an input of the program"):
        check(_program((x, y), results, [replace(call, operands=(y,))]))
    with pytest.raises(ProgramError, match="needs none of its results"):
        check(_program((x, y), (y,), [call]))
    with pytest.raises(ProgramError, match="takes other values than it saves"):
        program = _captured(lambda x: Thrice()(x), 3)
        (thrice,) = (c for c in program.calls if c.pullback)
        damaged = replace(thrice, pullback=replace(thrice.pullback, saved=()))
        check(replace(program, calls=(damaged,)))


def test_a_program_that_was_rewritten_has_no_gradient_any_more():
    program = optimized(_captured(_sorted_layers(), 3, 5))
    assert program.calls is None
    with pytest.raises(AssertionError, match="lost its gradients"):
        Differentiable(program, program.inputs, (), ())


@pytest.mark.parametrize(
    "line, error",
    [
        ("call relu(%0)", "expected 'gives'"),
        ("call relu(%7) gives %1", "there is no %7"),
        ("call relu(%0) gives", "expected an operand"),
        ("call relu(%0) gives %1 in net", "expected a scope"),
        ("call relu(%0) gives %1 %1", "expected the end of the line"),
        ("step relu(%0) gives %1", "expected 'return'"),
    ],
)
def test_calls_that_cannot_be_read(line, error):
    text = f"f(%0: float32[2]):\n  %1: float32[2] = negative(%0)\n  {line}\n  return %1"
    with pytest.raises(ProgramError, match=error):
        parse(text)
