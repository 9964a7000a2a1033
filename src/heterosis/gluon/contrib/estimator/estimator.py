"""The Estimator: a net, a loss, a trainer and metrics, and the loop that joins them."""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from heterosis.gluon.block import Block
from heterosis.gluon.contrib.estimator.batch_processor import BatchProcessor
from heterosis.gluon.contrib.estimator.event_handler import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)
from heterosis.gluon.contrib.estimator.events import in_order, listed_handlers
from heterosis.gluon.contrib.estimator.metrics import (
    check_known,
    fitting_metrics,
    listed_metrics,
)
from heterosis.gluon.data import DataLoader
from heterosis.gluon.loss import Loss
from heterosis.gluon.parameter import Contexts, listed_contexts
from heterosis.gluon.trainer import Trainer
from heterosis.metric import EvalMetric
from heterosis.metric import Loss as LossMetric
from heterosis.runtime.errors import ArgumentError, UninitializedError

TRAINING, VALIDATION = "training ", "validation "


class Estimator:
    """Trains and validates `net`: `Estimator(net, loss, trainer=trainer).fit(data, epochs=3)`.

    Without metrics, accuracy is measured where it fits the loss, and the loss itself. `val_net`
    and `val_loss` take the places of net and loss in validation. `logger` is told how it goes;
    it writes to standard output.
    """

    def __init__(
        self,
        net: Block,
        loss: Loss,
        train_metrics: Any = None,
        val_metrics: Any = None,
        initializer: Any = None,
        trainer: Trainer | None = None,
        context: Contexts = None,
        val_net: Block | None = None,
        val_loss: Loss | None = None,
        batch_processor: BatchProcessor | None = None,
    ):
        self.net, self.loss = net, _checked_loss(loss)
        self.val_net = net if val_net is None else val_net
        self.val_loss = self.loss if val_loss is None else _checked_loss(val_loss)
        self._train_metrics = _train_metrics(train_metrics, self.loss)
        self._val_metrics = _val_metrics(val_metrics, self._train_metrics)
        self.logger = _logger()
        self.context = listed_contexts(context or None)
        _initialize(net, initializer, self.context)
        self.trainer = _checked_trainer(trainer, net)
        self.batch_processor = _checked_processor(batch_processor)
        self.event_handlers: list[EventHandler] = []  # those of the run that is going on
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self.batch_axis = 0

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """What is measured in training; the names begin with 'training'."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """What is measured in validation; the names begin with 'validation'."""
        return self._val_metrics

    def evaluate(
        self, val_data: DataLoader, batch_axis: int = 0, event_handlers: Any = None
    ) -> None:
        """Measure `val_metrics` on data, without training."""
        check_loader(val_data)
        for metric in self.val_metrics:
            metric.reset()
        handlers = self._validation_handlers(event_handlers)
        self._call(handlers, EpochBegin, "epoch_begin")
        for batch in val_data:
            self._call(handlers, BatchBegin, "batch_begin", batch=batch)
            result = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            self._batch_end(handlers, batch, result)
        self._call(handlers, EpochEnd, "epoch_end")

    def fit(
        self,
        train_data: DataLoader,
        val_data: DataLoader | None = None,
        epochs: int | None = None,
        event_handlers: Any = None,
        batches: int | None = None,
        batch_axis: int = 0,
    ) -> None:
        """Train for a number of epochs, or of batches; validate after each epoch."""
        check_loader(train_data)
        if (not epochs) == (not batches):
            raise ArgumentError(
                f"fit: epochs={epochs} and batches={batches}; expected one of the two, above 0."
            )
        self.max_epoch, self.max_batch, self.batch_axis = epochs, batches, batch_axis
        self.event_handlers = handlers = self._training_handlers(val_data, event_handlers)
        self._call(handlers, TrainBegin, "train_begin")
        while not self._epoch(train_data, handlers, batch_axis):
            pass
        self._call(handlers, TrainEnd, "train_end")

    def _epoch(self, data: DataLoader, handlers: list[EventHandler], batch_axis: int) -> bool:
        """One epoch; whether a handler wants it to be the last."""
        self._call(handlers, EpochBegin, "epoch_begin")
        batch = None
        for batch in data:
            self._call(handlers, BatchBegin, "batch_begin", batch=batch)
            result = self.batch_processor.fit_batch(self, batch, batch_axis)
            if self._batch_end(handlers, batch, result):
                break
        if batch is None:
            raise ArgumentError("fit: the data has no batches; expected at least one in an epoch.")
        return self._call(handlers, EpochEnd, "epoch_end")

    def _batch_end(self, handlers: list[EventHandler], batch: Any, result: Sequence[Any]) -> bool:
        _, label, pred, loss = result
        return self._call(
            handlers, BatchEnd, "batch_end", batch=batch, pred=pred, label=label, loss=loss
        )

    def _call(self, handlers: list[EventHandler], kind: type, name: str, **facts: Any) -> bool:
        """Tell all handlers of a kind; whether one of them answers with true."""
        answers = [getattr(h, name)(self, **facts) for h in handlers if isinstance(h, kind)]
        return any(answers)

    # -- handlers ---------------------------------------------------------------------------------

    def _training_handlers(self, val_data: Any, event_handlers: Any) -> list[EventHandler]:
        added: list[EventHandler] = [
            StoppingHandler(self.max_epoch, self.max_batch),
            GradientUpdateHandler(),
            MetricHandler(self.train_metrics),
            LoggingHandler(metrics=self.train_metrics),
        ]
        if val_data is not None:
            added.insert(3, ValidationHandler(val_data, self.evaluate))
        known = [*self.train_metrics, *self.val_metrics]
        return _completed(listed_handlers(event_handlers), added, known)

    def _validation_handlers(self, event_handlers: Any) -> list[EventHandler]:
        added = [MetricHandler(self.val_metrics), LoggingHandler(metrics=self.val_metrics)]
        return _completed(listed_handlers(event_handlers), added, self.val_metrics)


def _completed(
    given: list[EventHandler], standard: Sequence[EventHandler], known: list[EvalMetric]
) -> list[EventHandler]:
    """The handlers given, and the standard ones whose kind is not among them."""
    added = [
        handler
        for handler in standard
        if isinstance(handler, StoppingHandler)
        or not any(isinstance(one, type(handler)) for one in given)
    ]
    if given and added:
        check_known(given, known)
    return in_order([*given, *added])


# -- what an estimator is made of -----------------------------------------------------------------


def _train_metrics(metrics: Any, loss: Loss) -> list[EvalMetric]:
    found = listed_metrics(metrics)
    if not found:
        found = [*fitting_metrics(loss), LossMetric(loss.name.rstrip("0123456789"))]
    for metric in found:
        metric.name = TRAINING + metric.name.removeprefix(TRAINING)
    return found


def _val_metrics(metrics: Any, train_metrics: list[EvalMetric]) -> list[EvalMetric]:
    found = listed_metrics(metrics) or [copy.deepcopy(metric) for metric in train_metrics]
    for metric in found:
        name = metric.name.removeprefix(TRAINING).removeprefix(VALIDATION)
        metric.name = VALIDATION + name
    return found


def _logger() -> logging.Logger:
    logger = logging.Logger("Estimator", logging.INFO)  # noqa: LOG001 - each has its own handlers
    logger.addHandler(logging.StreamHandler(sys.stdout))
    return logger


def initialize_waiting(net: Block, initializer: Any = None, contexts: Contexts = None) -> bool:
    """Initialise the parameters without values; whether there were any."""
    if all(_is_initialized(p) for p in net.collect_params().values()):
        return False
    with warnings.catch_warnings():  # parameters with values keep them, as they should
        warnings.filterwarnings("ignore", ".*already initialized, ignoring")
        net.initialize(initializer, contexts)
    return True


def _initialize(net: Block, initializer: Any, contexts: Contexts) -> None:
    if not initialize_waiting(net, initializer, contexts) and initializer is not None:
        warnings.warn(
            "Estimator: the net is initialized already, and the initializer is not used; "
            "net.initialize(init, force_reinit=True) would replace its values.",
            stacklevel=3,
        )


def _is_initialized(parameter: Any) -> bool:
    try:
        parameter.list_ctx()
    except UninitializedError:
        return False
    return True


def _checked_loss(loss: Any) -> Loss:
    if isinstance(loss, Loss):
        return loss
    raise ArgumentError(f"the loss is {loss!r}; expected an object of a class of gluon.loss.")


def _checked_trainer(trainer: Any, net: Block) -> Trainer:
    if trainer is None:
        warnings.warn(
            "Estimator: no trainer is given; plain SGD with learning rate 0.001 is used.",
            stacklevel=3,
        )
        return Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001})
    if isinstance(trainer, Trainer):
        return trainer
    raise ArgumentError(f"the trainer is {trainer!r}; expected a gluon.Trainer.")


def _checked_processor(processor: BatchProcessor | None) -> BatchProcessor:
    if processor is None:
        return BatchProcessor()
    for name in ("fit_batch", "evaluate_batch"):
        if not callable(getattr(processor, name, None)):
            raise ArgumentError(
                f"the batch processor, a {type(processor).__name__}, has no method {name}; derive "
                "it from BatchProcessor."
            )
    return processor


def check_loader(data: Any) -> None:
    """Refuse data of another kind than a DataLoader."""
    if not isinstance(data, DataLoader):
        raise ArgumentError(
            f"the data is a {type(data).__name__}; expected a gluon.data.DataLoader, such as "
            "DataLoader(ArrayDataset(x, y), batch_size=32)."
        )


__all__ = ["Estimator"]
