"""Metrics of classes: labels are numbers of classes, predictions scores or probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis import _core, np, npx
from heterosis.metric.base import EvalMetric, Names, Number, alias, pairs, register
from heterosis.runtime.errors import ArgumentError, ShapeError
from heterosis.runtime.kinds import Positive


@register
@alias("acc")
class Accuracy(EvalMetric):
    """The share of labels that the highest score along `axis`, or the prediction itself, hits."""

    def __init__(
        self,
        axis: int = 1,
        name: str = "accuracy",
        output_names: Names = None,
        label_names: Names = None,
    ):
        super().__init__(name, output_names, label_names, axis=axis, has_global_stats=True)
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            if pred.shape != label.shape:
                pred = np.argmax(pred, axis=self.axis)
            pred, label = (x.astype("int32").reshape(-1) for x in (pred, label))
            _check_counts(label, pred)
            self._add(_count(pred == label), pred.size)


def _check_counts(label: _core.ndarray, pred: _core.ndarray) -> None:
    if len(label) != len(pred):
        raise ShapeError(
            f"{len(label)} labels and predictions for {len(pred)}; there must be one for each."
        )


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of labels that are among the `top_k` highest scores."""

    def __init__(
        self,
        top_k: Positive = 1,
        name: str = "top_k_accuracy",
        output_names: Names = None,
        label_names: Names = None,
    ):
        if top_k <= 1:
            raise ArgumentError(f"TopKAccuracy: top_k={top_k}; for one score, use Accuracy.")
        super().__init__(
            f"{name}_{top_k}", output_names, label_names, top_k=top_k, has_global_stats=True
        )
        self.top_k = top_k

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"name": self.name.removesuffix(f"_{self.top_k}")}

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            if pred.ndim != 2:
                raise ShapeError(
                    f"TopKAccuracy: predictions of shape {pred.shape}; expected scores (batch, "
                    "classes)."
                )
            label = label.astype("int32").reshape(-1, 1)
            _check_counts(label, pred)
            best = np.argsort(pred, axis=1)[:, -self.top_k :]
            self._add(_count(best == label), len(pred))


class _Counts:
    """How often labels and predictions of two classes met: true or false, positive or negative."""

    def __init__(self) -> None:
        self.hits: Number = 0  # true positives
        self.positives: Number = 0  # predicted
        self.actual: Number = 0  # positive labels
        self.total = 0

    def add(self, other: _Counts) -> None:
        self.hits += other.hits
        self.positives += other.positives
        self.actual += other.actual
        self.total += other.total

    @staticmethod
    def of(label: _core.ndarray, pred: _core.ndarray) -> _Counts:
        """The counts of one batch."""
        positive, actual = np.argmax(pred, axis=1) == 1, label == 1
        found = _Counts()
        found.hits = _count(positive & actual)
        found.positives, found.actual = _count(positive), _count(actual)
        found.total = len(label)
        return found


def _count(true: _core.ndarray) -> _core.ndarray:
    return np.sum(true, dtype="float64")


class _BinaryMetric(EvalMetric):
    """A score of the counts: the mean over batches ('macro'), or of all together ('micro')."""

    def __init__(self, name: str, output_names: Names, label_names: Names, average: str):
        if average not in ("macro", "micro"):
            raise ArgumentError(f"average={average!r}: expected 'macro' or 'micro'.")
        self.average = average
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _score(self, counts: _Counts) -> Number:
        raise NotImplementedError

    def reset(self) -> None:
        self._global_counts = _Counts()
        super().reset()

    def reset_local(self) -> None:
        self._counts = _Counts()
        self._third: Any = False  # whether a label was neither of two
        super().reset_local()

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            label = label.astype("int32").reshape(-1)
            if pred.ndim != 2:
                raise ShapeError(
                    f"{type(self).__name__}: predictions of shape {pred.shape}; expected scores "
                    "(batch, classes)."
                )
            _check_counts(label, pred)
            if len(label):
                self._take(label, pred)

    def _take(self, label: _core.ndarray, pred: _core.ndarray) -> None:
        self._third |= np.any((label != np.min(label)) & (label != np.max(label)))
        counts = _Counts.of(label, pred)
        if self.average == "macro":
            self._add(self._score(counts))
            return
        self._counts.add(counts)
        self._global_counts.add(counts)
        self.num_inst, self.global_num_inst = self._counts.total, self._global_counts.total
        self.sum_metric = self._score(self._counts) * self.num_inst
        self.global_sum_metric = self._score(self._global_counts) * self.global_num_inst

    def _result(self, total: Number, count: Number) -> float:
        if bool(self._third):
            raise ArgumentError(
                f"{type(self).__name__}: it is for two classes, and a batch has labels of more."
            )
        return super()._result(total, count)


@register
class F1(_BinaryMetric):
    """The harmonic mean of precision and recall of class 1."""

    def __init__(
        self,
        name: str = "f1",
        output_names: Names = None,
        label_names: Names = None,
        average: str = "macro",
    ):
        super().__init__(name, output_names, label_names, average)

    def _score(self, counts: _Counts) -> Number:
        # 2 p r / (p + r), with all that can be zero in one place.
        return 2.0 * counts.hits / np.maximum(counts.positives + counts.actual, 1.0)


@register
class MCC(_BinaryMetric):
    """Matthews' correlation of labels and predictions of two classes."""

    def __init__(
        self,
        name: str = "mcc",
        output_names: Names = None,
        label_names: Names = None,
        average: str = "macro",
    ):
        super().__init__(name, output_names, label_names, average)

    def _score(self, counts: _Counts) -> Number:
        positives, actual, total = counts.positives, counts.actual, counts.total
        above = counts.hits * total - positives * actual
        sides = (positives, actual, total - positives, total - actual)
        below = 1.0
        for side in sides:
            below = below * np.sqrt(np.where(side == 0, 1.0, side))
        return above / below


@register
class PCC(EvalMetric):
    """The correlation of labels and predictions of any number of classes.

    The table of classes grows with the labels, so every batch is waited for.
    """

    def __init__(
        self,
        name: str = "pcc",
        output_names: Names = None,
        label_names: Names = None,
        has_global_stats: bool = True,
    ):
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    def reset(self) -> None:
        self._global_table = numpy.zeros((2, 2))
        super().reset()

    def reset_local(self) -> None:
        self._table = numpy.zeros((2, 2))
        super().reset_local()

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            if pred.shape != label.shape:
                pred = np.argmax(pred, axis=1)
            label, pred = (x.astype("int32").asnumpy().reshape(-1) for x in (label, pred))
            if len(label):
                self._table = _tabled(self._table, pred, label)
                self._global_table = _tabled(self._global_table, pred, label)
        self.num_inst += 1
        self.global_num_inst += 1
        self.sum_metric = _correlation(self._table) * self.num_inst
        self.global_sum_metric = _correlation(self._global_table) * self.global_num_inst


def _tabled(table: numpy.ndarray, pred: numpy.ndarray, label: numpy.ndarray) -> numpy.ndarray:
    """The table of how often classes met, grown as needed, with more of them."""
    more = max(0, 1 + int(max(pred.max(), label.max())) - len(table))
    table = numpy.pad(table, (0, more))
    numpy.add.at(table, (pred, label), 1)
    return table


def _correlation(table: numpy.ndarray) -> float:
    total = table.sum()
    predicted, actual = table.sum(1), table.sum(0)
    spread = numpy.sum(predicted * (total - predicted)) * numpy.sum(actual * (total - actual))
    if spread == 0:
        return float("nan")
    return float(numpy.sum(table.diagonal() * total - predicted * actual) / spread**0.5)


# -- probabilities --------------------------------------------------------------------------------


@register
@alias("ce")
class CrossEntropy(EvalMetric):
    """The mean of -log of the probabilities that predictions give to the labels, plus `eps`."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "cross-entropy",
        output_names: Names = None,
        label_names: Names = None,
    ):
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            label = label.reshape(-1)
            _check_counts(label, pred)
            rows = np.arange(len(label), dtype="int64", ctx=pred.ctx)
            chosen = pred[rows, label.astype("int64")]
            self._add(-np.sum(np.log(chosen + self.eps), dtype="float64"), len(label))


@register
@alias("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """`CrossEntropy` under the name that goes with likelihoods."""

    def __init__(
        self,
        eps: float = 1e-12,
        name: str = "nll-loss",
        output_names: Names = None,
        label_names: Names = None,
    ):
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """e to the power of the mean of -log of the labels' probabilities along `axis`.

    Labels equal to `ignore_label` do not count.
    """

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: str = "perplexity",
        output_names: Names = None,
        label_names: Names = None,
    ):
        super().__init__(
            name,
            output_names,
            label_names,
            ignore_label=ignore_label,
            axis=axis,
            has_global_stats=True,
        )
        self.ignore_label, self.axis = ignore_label, axis

    def update(self, labels: Any, preds: Any) -> None:
        for label, pred in pairs(labels, preds):
            scores = np.moveaxis(pred, self.axis, -1)
            label, scores = label.reshape(-1), scores.reshape(-1, scores.shape[-1])
            _check_counts(label, scores)
            chosen = npx.pick(scores, label.astype("int32"))
            count: Number = len(label)
            if self.ignore_label is not None:
                ignored = label == self.ignore_label
                count = count - np.sum(ignored)
                chosen = np.where(ignored, 1.0, chosen)
            self._add(-np.sum(np.log(np.maximum(chosen, 1e-10)), dtype="float64"), count)

    def _result(self, total: Number, count: Number) -> float:
        return math.exp(super()._result(total, count))
