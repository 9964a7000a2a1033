"""SoftmaxOutput and its gradient: what MXNet 1.9.1 gives, stored."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

import heterosis
from heterosis import autograd, ndarray, np, symbol
from tests.choose import spread
from tests.mxnet.operators.output_cases import CASES, bound, operands

STORED = json.loads((Path(__file__).parent / "mxnet_outputs.json").read_text())
NUMBERED = list(enumerate(CASES))


def _agree(found, number):
    for array, expected in zip(found, STORED[number], strict=True):
        numpy.testing.assert_allclose(array.ravel(), expected, rtol=3e-5, atol=2e-6)


@pytest.mark.parametrize("number, case", NUMBERED)
def test_recorded(number, case):
    data, label, options = case
    scores, labels = (np.array(a, "float32") for a in operands(data, label))
    scores.attach_grad()
    with autograd.record():
        result = ndarray.SoftmaxOutput(scores, labels, **options)
    result.backward()
    _agree((result.asnumpy(), scores.grad.asnumpy()), number)


@pytest.mark.parametrize("number, case", spread(NUMBERED, 12))
def test_bound(number, case):
    ours = SimpleNamespace(nd=ndarray, sym=symbol, cpu=heterosis.cpu)
    _agree(bound(ours, *case), number)
