"""The estimator beside MXNet's: the order of events, what is measured, which files there are."""

import json
import logging
import warnings
from pathlib import Path

import numpy
import pytest

import heterosis
from heterosis import gluon, metric, np
from heterosis.gluon import nn
from heterosis.gluon.contrib import estimator as estimators
from heterosis.runtime.errors import ArgumentError
from tests.gluon.contrib import estimator_cases as cases

STORED = json.loads(Path(__file__).with_name("mxnet_estimator.json").read_text())


def check(found, expected):
    for key in ("metrics", "files", "raised"):
        assert found[key] == expected[key], key
    numpy.testing.assert_allclose(found["weights"], expected["weights"], atol=2e-4)
    assert [row[:3] for row in found["seen"]] == [row[:3] for row in expected["seen"]]
    for mine, theirs in zip(found["seen"], expected["seen"], strict=True):
        values = [[numpy.nan if v is None else v for v in row[3]] for row in (mine, theirs)]
        numpy.testing.assert_allclose(*values, atol=2e-5, err_msg=str(mine[:2]))


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.__name__)
def test_as_in_mxnet(case):
    check(cases.facts(case, heterosis, np.array), STORED[case.__name__])


@pytest.fixture
def problem():
    return cases.Problem(heterosis, np.array)


def told(problem, *handlers, **given):
    """What the logger is told in training."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    problem.estimator.logger.handlers = [handler]
    problem.estimator.logger.setLevel(logging.INFO)
    problem.fit(*handlers, **given)
    return lines


def test_what_is_logged(problem):
    lines = told(problem, epochs=1, val_data=problem.validation)
    starts = ["Training begins: SGD, learning rate 0.5000", "Train for 1 epochs.",
              "[Epoch 0] Begins, learning rate 0.5000", "Validation begins",
              "[Epoch 0] Finished in ", "[Epoch 0] Finished in ",
              "Training finished: 1 epochs in "]  # fmt: skip
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts
    assert "validation accuracy: 0." in lines[4] and "training accuracy: 0." in lines[5]


def test_what_is_logged_every_two_batches(problem):
    metrics = problem.estimator.train_metrics
    lines = told(problem, estimators.LoggingHandler(2, metrics=metrics), batches=3)
    told_ = [line for line in lines if "[Batch" in line]
    assert [line[:31] for line in told_] == [
        "[Epoch 0][Batch 0][Samples 4] t", "[Epoch 0][Batch 2][Samples 10] ",
    ]  # fmt: skip
    assert "training softmaxcrossentropyloss: " in told_[1]


def test_checkpoints_are_told(problem):
    lines = told(problem, problem.checkpoints(save_best=True, mode="min", verbose=1), epochs=1)
    assert "[Epoch 0] CheckpointHandler: saved as model-epoch0batch3" in lines
    assert any("improved from inf to" in line for line in lines)
    lines = told(problem, problem.checkpoints(resume_from_checkpoint=True), epochs=2)
    assert lines[0].endswith("model-epoch0batch3")


def test_nothing_but_the_oldest_pair_is_removed(problem):
    """MXNet removes whatever starts with its name: epoch1batch1 takes epoch1batch10 along."""
    folder = Path(problem.folder.name)
    kept = ["model-epoch0batch30.params", "model-epoch0batch3.txt", "other.params"]
    for name in kept:
        (folder / name).write_bytes(b"")
    problem.fit(problem.checkpoints(max_checkpoints=1), epochs=3)
    left = sorted(p.name for p in folder.iterdir())
    assert left == sorted([*kept, "model-epoch2batch9.params", "model-epoch2batch9.states"])


def test_auto_follows_the_metric(problem):
    """MXNet's takes more to be better whatever the metric."""
    accuracy, loss = problem.estimator.train_metrics
    for monitor, more in ((accuracy, True), (loss, False)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            handler = estimators.EarlyStoppingHandler(monitor)
        assert handler.monitor_op(2, 1) is more


def test_a_metric_that_nobody_updates(problem):
    monitor = problem.estimator.val_metrics[0]
    handlers = [
        estimators.EarlyStoppingHandler(monitor),
        estimators.CheckpointHandler(problem.folder.name, monitor=monitor, save_best=True),
    ]
    for handler in handlers:
        with pytest.warns(RuntimeWarning, match="validation accuracy is NaN.*Does nobody"):
            problem.fit(handler, epochs=1)


def test_a_processor_of_ones_own(problem):
    class Twice(estimators.BatchProcessor):
        def fit_batch(self, estimator, train_batch, batch_axis=0):
            data, label = train_batch
            return super().fit_batch(estimator, (2 * data, label), batch_axis)

    other = cases.Problem(heterosis, np.array)
    other.estimator.batch_processor = Twice()
    for one in (problem, other):
        one.fit(epochs=1)
    sums = [float(one.net[0].weight.data().sum()) for one in (problem, other)]
    assert sums[0] != sums[1]


@pytest.mark.lengthy
def test_hybridized_networks_leave_their_symbol(problem, tmp_path):
    handler = estimators.CheckpointHandler(str(tmp_path))
    problem.net.hybridize()
    problem.fit(handler, epochs=1)
    read = gluon.SymbolBlock.imports(tmp_path / "model-symbol.json", "data")
    assert list(read.collect_params()) == list(problem.net.collect_params())


def test_nets_are_initialized_where_they_are_not():
    half = nn.HybridSequential()
    half.add(nn.Dense(2, in_units=2), nn.Dense(1, in_units=2))
    half[0].initialize(heterosis.init.One())
    with pytest.warns(UserWarning, match="plain SGD"):
        made = estimators.Estimator(half, gluon.loss.L2Loss(), initializer=heterosis.init.Zero())
    assert [float(p.data().sum()) for p in half.collect_params().values()] == [4, 0, 0, 0]
    assert [m.name for m in made.train_metrics] == ["training l2loss"]
    trainer = made.trainer
    with pytest.warns(UserWarning, match="force_reinit"):
        estimators.Estimator(half, gluon.loss.L2Loss(), trainer=trainer, initializer="zeros")


def test_metrics_are_named_once():
    accuracy = metric.Accuracy()
    net = nn.Dense(2, in_units=2)
    for _ in range(2):
        with pytest.warns(UserWarning, match="plain SGD"):
            made = estimators.Estimator(net, gluon.loss.L2Loss(), train_metrics=accuracy)
    assert made.train_metrics == [accuracy] and accuracy.name == "training accuracy"
    assert [m.name for m in made.val_metrics] == ["validation accuracy"]
    composite = metric.CompositeEvalMetric(["mae", metric.CompositeEvalMetric(["mse"])])
    with pytest.warns(UserWarning, match="plain SGD"):
        made = estimators.Estimator(net, gluon.loss.L2Loss(), train_metrics=composite)
    assert [m.name for m in made.train_metrics] == ["training mae", "training mse"]


def test_validation_with_another_net_and_loss(problem):
    constant = nn.HybridLambda(lambda F, x: x[:, :3] * 0)
    made = estimators.Estimator(
        problem.net, gluon.loss.SoftmaxCrossEntropyLoss(), trainer=problem.estimator.trainer,
        val_net=constant, val_loss=gluon.loss.SoftmaxCrossEntropyLoss(weight=2.0),
    )  # fmt: skip
    made.logger.setLevel(logging.ERROR)
    made.evaluate(problem.validation)
    assert made.val_metrics[1].get()[1] == pytest.approx(2 * numpy.log(3), 1e-6)


def of_another_kind(problem, **given):
    net, loss = problem.net, gluon.loss.L2Loss()
    return estimators.Estimator(
        net, **({"loss": loss, "trainer": problem.estimator.trainer} | given)
    )


BAD = {
    "loss": (lambda p: of_another_kind(p, loss=3), "gluon.loss"),
    "trainer": (lambda p: of_another_kind(p, trainer="sgd"), "gluon.trainer.Trainer"),
    "metric": (lambda p: of_another_kind(p, train_metrics=[3]), "heterosis.metric"),
    "processor": (
        lambda p: of_another_kind(p, batch_processor=3),
        "expected an object of .*BatchProcessor",
    ),
    "evaluate": (lambda p: p.estimator.evaluate([1]), "DataLoader"),
    "monitor": (lambda p: estimators.EarlyStoppingHandler("x"), "monitor is 'x'; expected"),
    "composite": (
        lambda p: estimators.EarlyStoppingHandler(metric.CompositeEvalMetric()),
        "expected one metric",
    ),
    "save best": (
        lambda p: estimators.CheckpointHandler(p.folder.name, save_best=True),
        "the monitor is None",
    ),
    "mode": (lambda p: p.early(mode="up"), "'auto', 'min', 'max'"),
    "interval": (lambda p: estimators.LoggingHandler("hour"), "expected 'epoch'"),
    "periods": (
        lambda p: p.fit(p.checkpoints(resume_from_checkpoint=True), batches=3),
        "counts as fit does",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(problem, name):
    make, message = BAD[name]
    with pytest.raises(ArgumentError, match=message):
        make(problem)
