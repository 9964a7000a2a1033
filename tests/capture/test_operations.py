"""Every operation gives the same eagerly and in a captured program, and so do its gradients."""

import pytest

import heterosis
from heterosis.ops import REGISTRY
from tests.capture.calls import CASES, Calls, differentiable, precise, sampled, variables_of
from tests.capture.comparison import same, with_gradients
from tests.choose import spread


@pytest.mark.parametrize("name, dtype", list(sampled()))
def test_results(name, dtype):
    record = REGISTRY[name]
    calls = Calls(record, dtype, spread(record.samples.cases, CASES))

    def all_of(operands, turned):
        return calls.single(operands), calls.amid(turned)

    compiled = heterosis.hybridize(all_of)
    given = calls.operands(), calls.turned(calls.operands())
    wanted = all_of(*given)
    for _ in range(2):
        same(compiled(*given), wanted)
    assert compiled.captures == 1


# -- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(differentiable()))
def test_gradients(name):
    record = REGISTRY[name]
    calls = Calls(record, precise(record), spread(record.samples.cases, CASES))
    operands = calls.turned(calls.operands())
    variables = list(variables_of(calls, operands))
    wanted = with_gradients(lambda: calls.amid(operands), variables)
    compiled = heterosis.hybridize(calls.amid)
    for _ in range(2):
        same(with_gradients(lambda: compiled(operands), variables), wanted, 16)
    assert compiled.captures == 1
