"""SoftmaxOutput and its gradient: what MXNet 1.9.1 gives, stored."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

import heterosis
from heterosis import autograd, ndarray, np, symbol
from heterosis.runtime.errors import ShapeError
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


@pytest.mark.parametrize("name", ["LinearRegressionOutput", "MAERegressionOutput"])
@pytest.mark.parametrize("shape", [(12,), (3, 4), (4,)])
def test_labels_have_as_many_in_each_row(name, shape):
    with pytest.raises(ShapeError, match=f"{name}: a label of shape"):
        getattr(ndarray, name)(np.ones((4, 3)), np.ones(shape))


@pytest.mark.parametrize("label, options", [((4, 1), {}), ((12,), {}), ((2,), {})])
def test_labels_of_other_shapes(label, options):
    with pytest.raises(ShapeError, match=r"expected \(4,\) or \(4, 3\)"):
        ndarray.SoftmaxOutput(np.ones((4, 3)), np.ones(label), **options)


def test_a_prediction_that_is_right_goes_down():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = ndarray.MAERegressionOutput(x, np.array([1.0, 3.0, 2.0]))
    y.backward()
    assert x.grad.asnumpy().tolist() == [-1, -1, 1]
