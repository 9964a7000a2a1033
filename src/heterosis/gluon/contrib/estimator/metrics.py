"""Metrics of a training run: which are given, which fit a loss, and when a value is better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import gt, lt
from typing import Any

from heterosis.gluon.contrib.estimator.events import EventHandler
from heterosis.gluon.loss import Loss, SoftmaxCrossEntropyLoss
from heterosis.metric import Accuracy, CompositeEvalMetric, EvalMetric
from heterosis.runtime.errors import ArgumentError

GROWING = ("acc", "f1", "mcc", "pcc", "pearson")  # in the names of metrics of which more is better
MODES = ("auto", "min", "max")


def listed_metrics(metrics: Any) -> list[EvalMetric]:
    """One metric, several or none as a new list; composites are taken apart."""
    if isinstance(metrics, CompositeEvalMetric):
        return [part for metric in metrics.metrics for part in listed_metrics(metric)]
    found = [metrics] if isinstance(metrics, EvalMetric) else list(metrics or ())
    strangers = [m for m in found if not isinstance(m, EvalMetric)]
    if strangers:
        raise ArgumentError(
            f"metrics: {strangers[0]!r} is none; expected an object of heterosis.metric, or a list."
        )
    return found


def fitting_metrics(loss: Loss) -> list[EvalMetric]:
    """What is measured if nothing else is asked for, beside the loss."""
    return [Accuracy()] if isinstance(loss, SoftmaxCrossEntropyLoss) else []


def check_known(handlers: Iterable[EventHandler], known: Iterable[EvalMetric]) -> None:
    """Refuse handlers whose attributes named like metrics hold some that nobody updates."""
    ids = set(map(id, known))
    for handler in handlers:
        for name, value in vars(handler).items():
            held = value if isinstance(value, list | tuple) else [value]
            strangers = [m for m in held if isinstance(m, EvalMetric) and id(m) not in ids]
            if "metric" in name and strangers:
                raise ArgumentError(
                    f"{type(handler).__name__}.{name} holds {strangers[0]}, which is no metric of "
                    "this estimator; take those in estimator.train_metrics or val_metrics."
                )


def check_monitor(monitor: Any, name: str) -> EvalMetric:
    """A metric with one value, or an error that says where to take one from."""
    if isinstance(monitor, EvalMetric) and not isinstance(monitor, CompositeEvalMetric):
        return monitor
    raise ArgumentError(
        f"{name}: the monitor is {monitor!r}; expected one metric of estimator.train_metrics or "
        "estimator.val_metrics."
    )


def better(monitor: EvalMetric, mode: str) -> Callable[[float, float], bool]:
    """Whether a value is better than another: 'max', 'min', or 'auto' by the metric's name."""
    if mode not in MODES:
        raise ArgumentError(f"mode={mode!r}; expected one of {', '.join(map(repr, MODES))}.")
    if mode == "auto":
        name = monitor.name.lower()
        mode = "max" if any(part in name for part in GROWING) else "min"
    return gt if mode == "max" else lt


def worst(comparison: Callable[[float, float], bool]) -> float:
    """What every value is better than."""
    return float("-inf") if comparison is gt else float("inf")
