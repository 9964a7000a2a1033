"""Losses and their gradients against MXNet's numbers."""

import numpy
import pytest

from heterosis import autograd, np
from heterosis.gluon import loss
from heterosis.runtime.errors import ArgumentError, ShapeError
from tests.train.cases import ARRAYS, LOSSES, series
from tests.train.stored import answers


def asked(name):
    kind, arguments, names = LOSSES[name]
    return getattr(loss, kind)(**arguments), [np.array(ARRAYS[n]) for n in names]


@pytest.mark.parametrize("name", LOSSES)
def test_values_as_in_mxnet(name):
    block, arrays = asked(name)
    expected = answers("losses")[name]["loss"]
    numpy.testing.assert_allclose(block(*arrays).asnumpy().ravel(), expected, 2e-5, 2e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_as_in_mxnet(name):
    block, arrays = asked(name)
    arrays[0].attach_grad()
    with autograd.record():
        result = block(*arrays)
    result.backward()
    expected = answers("losses")[name]["gradient"]
    numpy.testing.assert_allclose(arrays[0].grad.asnumpy().ravel(), expected, 5e-5, 5e-6)


def test_labels_of_other_types_leave_the_loss_in_the_type_of_predictions():
    pred = np.array(ARRAYS["pred"])
    for dtype in ("int32", "int64", "float64", "uint8"):
        assert loss.SoftmaxCELoss()(pred, np.array([1, 4, 0, 2], dtype=dtype)).dtype == "float32"
        assert loss.L2Loss()(pred, np.ones((4, 5), dtype=dtype)).dtype == "float32"


def test_labels_beyond_the_classes_count_as_the_nearest():
    pred = np.array(ARRAYS["pred"])
    found = loss.SoftmaxCELoss()(pred, np.array([-1, 9, 0, 4]))
    expected = loss.SoftmaxCELoss()(pred, np.array([0, 4, 0, 4]))
    numpy.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


def test_one_dimension_and_empty_batches():
    assert loss.L2Loss()(np.ones(3), np.zeros(3)).tolist() == [0.5] * 3
    assert loss.SoftmaxCELoss()(np.ones((0, 3)), np.ones(0)).shape == (0,)


def test_a_label_that_does_not_fit_the_time_is_impossible():
    found = loss.CTCLoss()(np.zeros((1, 2, 4)), np.array([[0, 1, 2]]))
    assert found.tolist() == [float("inf")]


def test_long_sequences_have_gradients():
    pred = np.array(series((2, 40, 4), 3))
    pred.attach_grad()
    with autograd.record():
        found = loss.CTCLoss()(pred, np.array([[0, 1, 2], [1, 1, -1]]))
    found.backward()
    # Scores that grow together change no probability.
    numpy.testing.assert_allclose(pred.grad.sum(axis=2).asnumpy(), 0, atol=1e-5)
    assert numpy.abs(pred.grad.asnumpy()).max() > 0.1


def test_losses_of_ones_own():
    class Doubled(loss.SoftmaxCELoss):
        def hybrid_forward(self, F, pred, label, sample_weight=None):
            return 2 * super().hybrid_forward(F, pred, label, sample_weight)

    class Masked(loss.SoftmaxCELoss):
        def forward(self, pred, label, mask):
            return super().forward(pred, label, np.expand_dims(mask, 1))

    pred, label = np.array(ARRAYS["pred"]), np.array(ARRAYS["classes"])
    plain = loss.SoftmaxCELoss()(pred, label).asnumpy()
    numpy.testing.assert_allclose(Doubled()(pred, label).asnumpy(), 2 * plain)
    mask = np.array([1, 0, 1, 0])
    numpy.testing.assert_allclose(Masked()(pred, label, mask).asnumpy(), plain * mask.asnumpy())


def test_what_a_loss_says_of_itself():
    assert repr(loss.L2Loss()) == "L2Loss(batch_axis=0, w=1.0)"


PRED = np.zeros((4, 5))
BAD = {
    "sizes": (lambda: loss.L2Loss()(PRED, np.ones(4)), ShapeError, "sizes"),
    "classes": (lambda: loss.SoftmaxCELoss()(PRED, np.ones(5)), ShapeError, "sparse_label"),
    "ctc": (lambda: loss.CTCLoss()(PRED, np.ones((4, 2))), ShapeError, "time, batch"),
    "layout": (lambda: loss.CTCLoss("CTN"), ArgumentError, "'NTC' or 'TNC'"),
    "format": (lambda: loss.LogisticLoss(label_format="x"), ArgumentError, "'signed' or"),
    "weight": (lambda: loss.L1Loss(weight="1"), ArgumentError, "expected a number"),
    "sdml": (lambda: loss.SDMLLoss()(np.ones((1, 3)), np.ones((1, 3))), ArgumentError, "two rows"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        make()
