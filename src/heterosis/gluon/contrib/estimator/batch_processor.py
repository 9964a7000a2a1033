"""What is done with one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heterosis import autograd
from heterosis.gluon.utils import split_and_load

if TYPE_CHECKING:
    from heterosis.gluon.contrib.estimator.estimator import Estimator

Result = tuple[Any, Any, Any, Any]


class BatchProcessor:
    """Runs the net on a batch, the pair of data and labels.

    Redefine `fit_batch` and `evaluate_batch` for batches, losses or gradients of another kind.
    """

    def _get_data_and_label(
        self, batch: Any, ctx: Any, batch_axis: int = 0
    ) -> tuple[list[Any], list[Any]]:
        data, label = batch[0], batch[1]
        return split_and_load(data, ctx, batch_axis), split_and_load(label, ctx, batch_axis)

    def evaluate_batch(self, estimator: Estimator, val_batch: Any, batch_axis: int = 0) -> Result:
        """Data, labels, predictions and losses of a batch, each a list with one for a context."""
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        return data, label, pred, _losses(estimator.val_loss, pred, label)

    def fit_batch(self, estimator: Estimator, train_batch: Any, batch_axis: int = 0) -> Result:
        """As `evaluate_batch`, in training mode; leaves gradients in the parameters."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = _losses(estimator.loss, pred, label)
        autograd.backward(loss)
        return data, label, pred, loss


def _losses(loss: Any, pred: list[Any], label: list[Any]) -> list[Any]:
    return [loss(y_hat, y) for y_hat, y in zip(pred, label, strict=True)]


__all__ = ["BatchProcessor"]
