"""Losses of classes."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.models.onnx.operators.table import operator
from heterosis.runtime.errors import FormatError


def _picked(log_probability: Any, target: Any, ignored: int | None) -> tuple[Any, Any, Any]:
    """What each target's class has, the classes themselves, and which count; None for all. The
    classes are axis 1."""
    counts = None
    if ignored is not None:
        counts = target != ignored
        target = np.where(counts, target, np.zeros_like(target))
    classes = np.expand_dims(target, 1)
    found = np.take_along_axis(log_probability, classes.astype("int64"), 1)
    return np.squeeze(found, 1), target, counts


def _loss(
    log_probability: Any, target: Any, weight: Any, ignored: int | None, reduction: str
) -> Any:
    found, classes, counts = _picked(log_probability, target, ignored)
    each = -found
    shares = None if weight is None else np.take(weight, classes, 0)
    if counts is not None:
        ones = np.ones_like(each) if shares is None else shares
        shares = np.where(counts, ones, np.zeros_like(ones))
    if shares is not None:
        each = each * shares
    if counts is not None:  # whatever stands there: infinite times zero is no number
        each = np.where(counts, each, np.zeros_like(each))
    match reduction:
        case "none":
            return each
        case "sum":
            return np.sum(each)
        case "mean":
            return np.mean(each) if shares is None else np.sum(each) / np.sum(shares)
    raise FormatError(f"reduction={reduction!r}; expected 'none', 'sum' or 'mean'.")


@operator("NegativeLogLikelihoodLoss", since=12)
def _negative_log_likelihood(
    x: Any, target: Any, weight: Any = None,
    *, ignore_index: int | None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    return _loss(x, target, weight, ignore_index, reduction)


@operator("SoftmaxCrossEntropyLoss", since=12)
def _softmax_cross_entropy(
    scores: Any, labels: Any, weights: Any = None,
    *, ignore_index: int | None = None, reduction: str = "mean", _outputs: int = 1,
) -> Any:  # fmt: skip
    log_probability = npx.log_softmax(scores, axis=1)
    loss = _loss(log_probability, labels, weights, ignore_index, reduction)
    return (loss, log_probability) if _outputs > 1 else loss
