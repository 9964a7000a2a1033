"""Metrics of numbers: how far predictions are from labels, and how well they go together."""

from __future__ import annotations

from typing import Any

from heterosis import _core, np
from heterosis.metric.base import (
    EvalMetric,
    Names,
    Number,
    alias,
    check_label_shapes,
    pairs,
    register,
)
from heterosis.runtime.errors import ArgumentError


class _ErrorMetric(EvalMetric):
    """The mean over batches of a mean error."""

    _name: str

    def __init__(
        self, name: str | None = None, output_names: Names = None, label_names: Names = None
    ):
        super().__init__(name or self._name, output_names, label_names, has_global_stats=True)

    def _error(self, difference: _core.ndarray) -> _core.ndarray:
        raise NotImplementedError

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            label, pred = (x.reshape(-1, 1) if x.ndim == 1 else x for x in (label, pred))
            self._add(self._error(label - pred).astype("float64"))


@register
class MAE(_ErrorMetric):
    """The mean absolute error."""

    _name = "mae"

    def _error(self, difference: _core.ndarray) -> _core.ndarray:
        return np.mean(np.abs(difference))


@register
class MSE(_ErrorMetric):
    """The mean squared error."""

    _name = "mse"

    def _error(self, difference: _core.ndarray) -> _core.ndarray:
        return np.mean(np.square(difference))


@register
class RMSE(_ErrorMetric):
    """The root of the mean squared error, batch by batch."""

    _name = "rmse"

    def _error(self, difference: _core.ndarray) -> _core.ndarray:
        return np.sqrt(np.mean(np.square(difference)))


@register
class Loss(EvalMetric):
    """The mean of what is given as predictions: losses. Labels do not count."""

    def __init__(self, name: str = "loss", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _: Any, preds: Any) -> None:
        for pred in [preds] if isinstance(preds, _core.ndarray) else preds:
            self._add(np.sum(pred, dtype="float64"), np.asarray(pred).size)


class _Spread:
    """The number, mean and squared distance from it of values that come in parts."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Number = 0.0
        self.squares: Number = 0.0

    def add(self, values: _core.ndarray) -> None:
        self.count += len(values)
        before = values - self.mean
        self.mean = self.mean + np.sum(before) / self.count
        self.squares = self.squares + np.sum(before * (values - self.mean))


@register
@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation: the mean over batches ('macro'), or of all together ('micro')."""

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: Names = None,
        label_names: Names = None,
        average: str = "macro",
    ):
        if average not in ("macro", "micro"):
            raise ArgumentError(f"average={average!r}: expected 'macro' or 'micro'.")
        self.average = average
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def reset(self) -> None:
        self._labels, self._preds = _Spread(), _Spread()
        self._product: Number = 0.0
        super().reset()

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred, shape=True)
            label, pred = (x.reshape(-1).astype("float64") for x in (label, pred))
            if self.average == "macro":
                self._add(_correlation(label, pred))
            else:
                self._add_part(label, pred)

    def _add_part(self, label: _core.ndarray, pred: _core.ndarray) -> None:
        self._labels.add(label)
        # The new mean of one and the old mean of the other: the parts' products then add up.
        part = np.sum((label - self._labels.mean) * (pred - self._preds.mean))
        self._product = self._product + part
        self._preds.add(pred)
        self._add(0.0)

    def get(self) -> tuple[str, float]:
        if self.average == "macro" or not self.num_inst:
            return super().get()
        return self.name, self._of_all()

    def get_global(self) -> tuple[str, float]:
        if self.average == "macro" or not self.global_num_inst:
            return super().get_global()
        return self.name, self._of_all()

    def _of_all(self) -> float:
        return float(self._product / np.sqrt(self._labels.squares * self._preds.squares))


def _correlation(a: _core.ndarray, b: _core.ndarray) -> _core.ndarray:
    a, b = a - np.mean(a), b - np.mean(b)
    return np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))
