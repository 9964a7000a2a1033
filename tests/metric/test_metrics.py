"""Metrics against MXNet's numbers, and how they are put together."""

import math

import numpy
import pytest

import heterosis
from heterosis import autograd, metric, np
from heterosis.runtime.errors import ArgumentError, HeterosisError, ShapeError
from tests.train.cases import METRICS, measured
from tests.train.stored import answers


@pytest.mark.parametrize("name", METRICS)
def test_values_as_in_mxnet(name):
    found = measured(heterosis, np.array, name)
    expected = answers("metrics")[name]
    if name == "pearson micro":
        expected = [*expected[:-1], expected[-2]]  # MXNet's global value is 0 there
    numpy.testing.assert_allclose(found, expected, 2e-5)


LABEL, PRED = np.array([0, 1]), np.array([[0.9, 0.1], [0.8, 0.2]])


def test_nothing_yet_is_not_a_number():
    for name in ("acc", "f1", "mse", "pcc", "perplexity", "pearsonr", "loss"):
        made = metric.create(name, **({"ignore_label": None} if name == "perplexity" else {}))
        assert math.isnan(made.get()[1]) and math.isnan(made.get_global()[1])


def test_reset_forgets_all_and_reset_local_the_local_part():
    made = metric.Accuracy()
    made.update(LABEL, PRED)
    made.reset_local()
    assert math.isnan(made.get()[1]) and made.get_global()[1] == 0.5
    made.reset()
    assert math.isnan(made.get_global()[1])


def test_single_arrays_lists_numpy_and_dictionaries():
    made = metric.Accuracy(output_names=["out"], label_names=["label"])
    made.update(LABEL, PRED)
    made.update([LABEL, LABEL], [PRED, PRED])
    made.update([LABEL.asnumpy()], [PRED.asnumpy()])
    made.update_dict({"label": LABEL, "more": LABEL}, {"out": PRED, "aside": LABEL})
    assert made.get() == ("accuracy", 0.5) and made.num_inst == 10


def test_sums_wait_for_nothing():
    made = metric.create(["acc", "f1", "mae", "ce", "loss"])
    made.update(LABEL, PRED)
    assert all(isinstance(m.sum_metric, np.ndarray) for m in made.metrics)


def test_sums_keep_no_recording_alive():
    made, pred = metric.Loss(), PRED.copy()
    pred.attach_grad()
    with autograd.record():
        made.update(None, [pred * 2])
        left = made.sum_metric * 1
    with pytest.raises(HeterosisError):
        left.backward()


def test_composite():
    made = metric.create(["acc", metric.MSE(), lambda label, pred: 3.0])
    made.add("mae")
    made.update([LABEL], [np.array([0.0, 0.5])])
    names, values = made.get()
    assert names == ["accuracy", "mse", "custom(<lambda>)", "mae"]
    assert values == [0.5, 0.125, 3.0, 0.25]
    assert dict(made.get_name_value())["mae"] == 0.25
    assert made.get_metric(1).name == "mse" and "'mse': 0.125" in str(made)
    with pytest.raises(ArgumentError, match="4 metrics"):
        made.get_metric(4)
    made.reset()
    assert all(map(math.isnan, made.get()[1]))


def test_functions_get_numpy_arrays_and_may_count():
    def errors(label, pred):
        assert isinstance(label, numpy.ndarray) and isinstance(pred, numpy.ndarray)
        return float((label != pred.argmax(1)).sum()), len(label)

    made = metric.np(errors)
    made.update([LABEL], [PRED])
    made.update([LABEL], [PRED])
    assert made.get() == ("errors", 0.5)
    loose = metric.CustomMetric(lambda label, pred: 1.0, "one", allow_extra_outputs=True)
    loose.update([LABEL], [PRED, PRED])
    assert loose.get() == ("one", 1.0)


def test_a_configuration_makes_the_same_metric():
    for made in (metric.TopKAccuracy(3), metric.Accuracy(axis=2), metric.Perplexity(4)):
        again = metric.create(made.get_config())
        assert again.get_config() == made.get_config() and again.name == made.name


def test_large_counts_stay_exact():
    made = metric.Loss()
    for _ in range(3):
        made.update(None, np.full((1 << 12, 1 << 12), 1.0))
    made.update(None, np.ones(1))
    assert float(made.sum_metric) == 3 * (1 << 24) + 1


@metric.register
class Always(metric.EvalMetric):
    """One of the user's own."""

    def __init__(self, name="always"):
        super().__init__(name)

    def update(self, labels, preds):
        self.sum_metric += 2.0
        self.num_inst += 1


@pytest.mark.parametrize("name", ["acc", "top_k_acc"])
def test_examples_are_counted_beyond_the_whole_numbers_of_float32(name):
    made = metric.create(name, **({"top_k": 2} if name == "top_k_acc" else {}))
    made.sum_metric = made.num_inst = 2**24
    for _ in range(3):
        made.update([np.array([0])], [np.array([[0.9, 0.1]])])
    assert float(made.sum_metric) == made.num_inst == 2**24 + 3


def test_metrics_of_ones_own():
    made = metric.create("always")
    made.update(None, None)
    assert made.get() == made.get_global() == ("always", 2.0)


THREE = np.array([0, 1, 2])
SCORES = np.ones((3, 2))


def third_class():
    made = metric.F1()
    made.update(THREE, SCORES)
    return made.get()


BAD = {
    "unknown": (lambda: metric.create("accuracy2"), ArgumentError, "known are"),
    "lists": (lambda: metric.MAE().update([LABEL], [PRED, PRED]), ShapeError, "length"),
    "count": (lambda: metric.Accuracy().update([THREE], [PRED]), ShapeError, "3 labels"),
    "one score": (lambda: metric.TopKAccuracy(1), ArgumentError, "use Accuracy"),
    "no scores": (lambda: metric.TopKAccuracy(2).update(LABEL, LABEL), ShapeError, "classes"),
    "third": (third_class, ArgumentError, "two classes"),
    "average": (lambda: metric.F1(average="all"), ArgumentError, "'macro' or 'micro'"),
    "shapes": (
        lambda: metric.PearsonCorrelation().update([LABEL], [PRED]),
        ShapeError,
        "must be equal",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        make()
