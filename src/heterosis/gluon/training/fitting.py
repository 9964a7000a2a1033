"""`fit`: a net is trained in one call."""

from __future__ import annotations

import copy
import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from heterosis import metric as metrics_module
from heterosis.gluon.block import Block
from heterosis.gluon.contrib.estimator import (
    BatchProcessor,
    EarlyStoppingHandler,
    EpochBegin,
    EpochEnd,
    Estimator,
    LoggingHandler,
)
from heterosis.gluon.contrib.estimator.estimator import TRAINING, check_loader, initialize_waiting
from heterosis.gluon.contrib.estimator.events import EventHandler, listed_handlers
from heterosis.gluon.contrib.estimator.metrics import better, fitting_metrics, listed_metrics
from heterosis.gluon.data import DataLoader
from heterosis.gluon.loss import Loss
from heterosis.gluon.trainer import Trainer
from heterosis.gluon.training.history import History
from heterosis.gluon.training.keeper import CheckpointKeeper
from heterosis.gluon.training.progress import Display, ProgressHandler, display
from heterosis.metric import CustomMetric, EvalMetric
from heterosis.optimizer import Optimizer
from heterosis.runtime.errors import ArgumentError

_AFTER_METRICS = -500  # the priority of what reads metrics that other handlers may ask for


def fit(
    net: Block,
    train_data: DataLoader,
    *,
    loss: Loss,
    epochs: int = 1,
    optimizer: str | Optimizer | None = None,
    optimizer_params: Mapping[str, Any] | None = None,
    trainer: Trainer | None = None,
    validation: DataLoader | None = None,
    metrics: Any = None,
    handlers: EventHandler | Sequence[EventHandler] | None = None,
    monitor: str | None = None,
    mode: str = "auto",
    early_stopping: int | Mapping[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = True,
    progress: bool = True,
    batch_processor: BatchProcessor | None = None,
) -> History:
    """Train `net` for `epochs` epochs in all; returns the metrics of each.

    Parameters without values are initialised. The optimizer is Adam unless `optimizer`, or a
    `trainer`, says otherwise. `metrics` are names or objects of `heterosis.metric`; accuracy is
    measured without being asked where it fits the loss. `early_stopping` is how many epochs in a
    row `monitor` (the validation loss, or the loss) may be no better than before, or the settings
    of an `EarlyStoppingHandler`; `mode` is 'min', 'max' or 'auto'.

    `checkpoint` is a folder. After each epoch `last.checkpoint` in it holds everything, random
    numbers included, and `best.params` the parameters of the best epoch. The same call goes on
    from there, with the same results as without interruption; `resume=False` starts anew.
    """
    check_loader(train_data)
    estimator = _estimator(net, loss, metrics, trainer, optimizer, optimizer_params,
                           batch_processor)  # fmt: skip
    watched = _watched(estimator, monitor, mode, validated=validation is not None)
    history = History(_public(watched.name), better(watched, mode)(1, 0))
    given = listed_handlers(handlers)
    stopping = _early_stopping(early_stopping, watched, mode)
    shown = display(progress)
    own = [
        _Recorder(history, validated=validation is not None),
        *([] if stopping is None else [stopping]),
        ProgressHandler(shown, history, len(train_data)),
    ]
    if checkpoint is not None:
        keeper = CheckpointKeeper(checkpoint, train_data, history)
        own.append(keeper)
        if resume and keeper.resume(estimator, [*given, *own]):
            shown.note(f"going on after epoch {history.epochs}, from {keeper.path}")
            if history.epochs >= epochs or _has_stopped(stopping, keeper):
                return history
    if not any(isinstance(handler, LoggingHandler) for handler in given):
        estimator.logger.setLevel(logging.WARNING)
    try:
        estimator.fit(train_data, validation, epochs, [*given, *own])
    finally:
        shown.close()
    _tell_end(shown, history, stopping)
    return history


class _Recorder(EpochBegin, EpochEnd):
    """Writes the values of metrics into the history."""

    priority = _AFTER_METRICS

    def __init__(self, history: History, *, validated: bool):
        self._history, self._validated = history, validated
        self._start = 0.0

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self._start = time.monotonic()

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        measured = [*estimator.train_metrics, *(estimator.val_metrics if self._validated else ())]
        values = dict(pair for metric in measured for pair in metric.get_name_value())
        named = {_public(name): value for name, value in values.items()}
        self._history.add(named, time.monotonic() - self._start)


def _public(name: str) -> str:
    """A metric's name in the history: only those of validation say so."""
    return name.removeprefix(TRAINING)


# -- what is given ----------------------------------------------------------------------------


def _estimator(
    net: Block,
    loss: Loss,
    metrics: Any,
    trainer: Trainer | None,
    optimizer: str | Optimizer | None,
    optimizer_params: Mapping[str, Any] | None,
    batch_processor: BatchProcessor | None,
) -> Estimator:
    if trainer is not None and (optimizer is not None or optimizer_params is not None):
        raise ArgumentError(
            "fit: a trainer has its optimizer; leave optimizer and optimizer_params out beside it."
        )
    measured = _metrics(metrics, loss)
    if trainer is None:
        initialize_waiting(net)
        trainer = Trainer(net.collect_params(), optimizer or "adam", optimizer_params)
    return Estimator(net, loss, measured, trainer=trainer, batch_processor=batch_processor)


def _metrics(metrics: Any, loss: Loss) -> list[EvalMetric]:
    """The loss and what is asked for; copies, since an estimator renames its metrics."""
    given = [metrics] if isinstance(metrics, str | EvalMetric) else list(metrics or ())
    made = [metrics_module.create(m) if isinstance(m, str) else m for m in given]
    found = [part for metric in made for part in listed_metrics(metric)]
    names = [metric.name for metric in found]
    if len(set(names)) < len(names) or "loss" in names:
        raise ArgumentError(
            f"fit: the metrics are called {names}; expected different names, and none 'loss', "
            "which is there already. Metrics take a name=... when they are made."
        )
    return [metrics_module.Loss(), *map(copy.deepcopy, found or fitting_metrics(loss))]


def _watched(
    estimator: Estimator, monitor: str | None, mode: str, *, validated: bool
) -> EvalMetric:
    """The metric called `monitor`."""
    known = [*estimator.train_metrics, *(estimator.val_metrics if validated else ())]
    by_name: dict[str, EvalMetric] = {_public(metric.name): metric for metric in known}
    name = monitor or ("validation loss" if validated else "loss")
    if name not in by_name:
        raise ArgumentError(
            f"fit: monitor={name!r}; expected one of {', '.join(map(repr, by_name))}."
        )
    if mode == "auto" and isinstance(by_name[name], CustomMetric):
        raise ArgumentError(f"fit: is more or less of {name!r} better? Give mode='max' or 'min'.")
    return by_name[name]


def _early_stopping(
    given: int | Mapping[str, Any] | None, watched: EvalMetric, mode: str
) -> EarlyStoppingHandler | None:
    if given is None:
        return None
    settings = given if isinstance(given, Mapping) else {"patience": given}
    patience = settings.get("patience", 1)
    if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
        raise ArgumentError(
            f"fit: early_stopping={given!r}; expected how many epochs to wait, at least 1, or "
            "settings such as {'patience': 3, 'min_delta': 0.01}."
        )
    return EarlyStoppingHandler(watched, **{"patience": patience, "mode": mode, **settings})


def _has_stopped(stopping: EarlyStoppingHandler | None, keeper: CheckpointKeeper) -> bool:
    """Whether the training that the checkpoint is of has waited long enough already."""
    if stopping is None:
        return False
    waited = keeper.known_of(EarlyStoppingHandler).get("wait", 0)
    return isinstance(waited, int) and waited >= stopping.patience


def _tell_end(shown: Display, history: History, stopping: EarlyStoppingHandler | None) -> None:
    if stopping is None or not stopping.stop_training or math.isnan(history.best):
        return
    shown.note(
        f"stopped: {history.monitor} was no better for {stopping.wait} epochs; the best is "
        f"{history.best:.4f}, of epoch {history.best_epoch}"
    )
