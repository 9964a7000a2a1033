"""Handlers that every training run has: they stop, update, measure, validate and tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from heterosis.gluon.contrib.estimator.events import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    TrainBegin,
    TrainEnd,
)
from heterosis.gluon.contrib.estimator.metrics import listed_metrics
from heterosis.metric import EvalMetric, Loss
from heterosis.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from heterosis.gluon.contrib.estimator.estimator import Estimator

FIRST, EARLY, LAST = -2000, -1000, float("inf")


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Stops after as many epochs or batches as the estimator is asked for."""

    remembered = ("current_batch", "current_epoch")

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None):
        self.max_epoch, self.max_batch = max_epoch, max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        self.current_batch += 1
        self.stop_training |= self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        self.current_epoch += 1
        self.stop_training |= self.current_epoch == self.max_epoch
        return self.stop_training


class GradientUpdateHandler(BatchEnd):
    """Updates the parameters after each batch, the gradients divided by its size."""

    def __init__(self, priority: float = FIRST):
        self.priority = priority

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        losses = kwargs["loss"]
        losses = losses if isinstance(losses, list) else [losses]
        estimator.trainer.step(sum(loss.shape[0] for loss in losses))


class MetricHandler(EpochBegin, BatchEnd):
    """Resets metrics before each epoch and updates them after each batch."""

    def __init__(self, metrics: Any, priority: float = EARLY):
        self.metrics = listed_metrics(metrics)
        self.priority = priority

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            if isinstance(metric, Loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Calls `eval_fn` every `epoch_period` epochs and every `batch_period` batches.

    `eval_fn` is given `val_data`, `batch_axis` and `event_handlers`, as `Estimator.evaluate` is.
    """

    remembered = ("current_batch", "current_epoch")

    def __init__(
        self,
        val_data: Any,
        eval_fn: Callable[..., Any],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        priority: float = EARLY,
        event_handlers: Any = None,
    ):
        self.val_data, self.eval_fn = val_data, eval_fn
        self.epoch_period, self.batch_period = epoch_period, batch_period
        self.current_batch = self.current_epoch = 0
        self.priority = priority
        self.event_handlers = event_handlers

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        self._validate(estimator, self.current_batch, self.batch_period)

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_epoch += 1
        self._validate(estimator, self.current_epoch, self.epoch_period)

    def _validate(self, estimator: Estimator, count: int, period: int | None) -> None:
        if period and count % period == 0:
            self.eval_fn(
                val_data=self.val_data,
                batch_axis=estimator.batch_axis,
                event_handlers=self.event_handlers,
            )


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Writes to `estimator.logger` how training goes: every epoch, or every `log_interval` batches.

    It comes last at each event, so that what it tells is up to date.
    """

    remembered = ("current_epoch",)

    def __init__(
        self, log_interval: int | str = "epoch", metrics: Any = None, priority: float = LAST
    ):
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ArgumentError(
                f"log_interval={log_interval!r}; expected 'epoch', or a number of batches."
            )
        self.metrics = listed_metrics(metrics)
        self.priority = priority
        self.log_interval = log_interval
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = 0.0
        self.train_start = self.epoch_start = self.batch_start = 0.0

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = 0.0
        self.train_start = time.monotonic()
        optimizer = type(estimator.trainer.optimizer).__name__
        rate = estimator.trainer.learning_rate
        estimator.logger.info("Training begins: %s, learning rate %.4f", optimizer, rate)
        count, what = estimator.max_epoch, "epochs"
        if not count:
            count, what = estimator.max_batch, "batches"
        estimator.logger.info("Train for %d %s.", count, what)

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        seconds = time.monotonic() - self.train_start
        estimator.logger.info(
            "Training finished: %d epochs in %.1fs%s",
            self.current_epoch,
            seconds,
            values(self.metrics, ", "),
        )

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.epoch_start = time.monotonic()
        if any("training" in metric.name for metric in self.metrics):
            rate = estimator.trainer.learning_rate
            estimator.logger.info("[Epoch %d] Begins, learning rate %.4f", self.current_epoch, rate)
        else:
            estimator.logger.info("Validation begins")

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        seconds = time.monotonic() - self.epoch_start
        text = values(self.metrics, ", ")
        estimator.logger.info("[Epoch %d] Finished in %.3fs%s", self.current_epoch, seconds, text)
        self.current_epoch += 1
        self.batch_index = 0

    def batch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.batch_start = time.monotonic()

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if isinstance(self.log_interval, int):
            self.processed_samples += kwargs["batch"][0].shape[0]
            self.log_interval_time += time.monotonic() - self.batch_start
            if self.batch_index % self.log_interval == 0:
                self._tell_interval(estimator)
        self.batch_index += 1

    def _tell_interval(self, estimator: Estimator) -> None:
        estimator.logger.info(
            "[Epoch %d][Batch %d][Samples %d] time/interval: %.3fs%s",
            self.current_epoch,
            self.batch_index,
            self.processed_samples,
            self.log_interval_time,
            values(self.metrics, " "),
        )
        self.log_interval_time = 0.0


def values(metrics: Iterable[EvalMetric], lead: str) -> str:
    """Names and values of metrics in a line, `lead` in front of it."""
    pairs = (pair for metric in metrics for pair in metric.get_name_value())
    text = ", ".join(f"{name}: {value:.4f}" for name, value in pairs)
    return lead + text if text else ""
