"""Losses as blocks. Each gives one number for each element of the batch, unless it says so.

`weight` scales the whole loss; `sample_weight`, which must broadcast to the loss before it is
averaged, scales its elements. `batch_axis` is the axis that is not averaged over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.npx.ctc import ctc_loss
from heterosis.ops.nn import losses
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.elsewhere import lookup as _lookup
from heterosis.runtime.errors import ArgumentError

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "FocalLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None):
    """`loss` times the weights that are given: what losses of one's own call."""
    if sample_weight is not None:
        loss = loss * sample_weight
    return loss if weight is None else loss * _number("weight", weight)


def _number(name: str, given: Any) -> float:
    """A number as a float, so that 1 and 1.0 share code."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ArgumentError(f"{name} is {given!r}; expected a number.")
    return float(given)


def _share(name: str, given: Any) -> float:
    """A number from 0 to 1."""
    number = _number(name, given)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{name} is {given}; expected a number from 0 to 1.")
    return number


class Loss(HybridBlock):
    """The base of all losses. A subclass defines `hybrid_forward` or `forward`."""

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._weight = None if weight is None else _number("weight", weight)
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"


class L2Loss(Loss):
    """Half the squared difference of prediction and label."""

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any):
        super().__init__(1.0 if weight is None else weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.l2_loss(pred, label, sample_weight, self._weight, batch_axis=self._batch_axis)


class L1Loss(Loss):
    """The absolute difference of prediction and label."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.l1_loss(pred, label, sample_weight, self._weight, batch_axis=self._batch_axis)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The cross-entropy of labels of 0 and 1 and the sigmoid of predictions.

    With `from_sigmoid`, predictions are probabilities. `pos_weight` is the weight of ones.
    """

    def __init__(
        self,
        from_sigmoid: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(
        self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None
    ) -> Any:
        return losses.sigmoid_cross_entropy_loss(
            pred,
            label,
            sample_weight,
            self._weight,
            pos_weight,
            from_sigmoid=self._from_sigmoid,
            batch_axis=self._batch_axis,
        )


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """The cross-entropy of labels and the softmax of predictions along `axis`.

    Labels are numbers of classes, or, without `sparse_label`, probabilities in the shape of the
    predictions. With `from_logits`, predictions are logarithms of probabilities.
    `label_smoothing` is the part of each label that all classes share.
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        label_smoothing: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._axis, self._from_logits = axis, from_logits
        self._sparse_label = sparse_label
        self._smoothing = _share("label_smoothing", label_smoothing) or None

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        how = {
            "axis": self._axis,
            "from_logits": self._from_logits,
            "batch_axis": self._batch_axis,
        }
        given = (pred, label, sample_weight, self._weight, self._smoothing)
        if self._sparse_label:
            return losses.softmax_cross_entropy_loss(*given, **how)[0]
        return losses.softmax_cross_entropy_dense_loss(*given, **how)


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class FocalLoss(Loss):
    """The cross-entropy of labels of 0 and 1 and the sigmoid of predictions, in which what is
    predicted well counts little: times the probability of being wrong to the power `gamma`.

    Ones are weighted by `alpha` and zeros by `1 - alpha`; with None, all count the same.
    """

    def __init__(
        self,
        alpha: float | None = 0.25,
        gamma: float = 2.0,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._alpha = None if alpha is None else _share("alpha", alpha)
        self._gamma = _number("gamma", gamma)
        if self._gamma < 0:
            raise ArgumentError(f"gamma is {gamma}; expected a number of at least 0.")

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.focal_loss(
            pred, label, sample_weight, self._weight, self._alpha, self._gamma,
            batch_axis=self._batch_axis,
        )  # fmt: skip


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence of label distributions, summed over all other axes.

    Predictions are logarithms of probabilities; without `from_logits`, their log-softmax is taken.
    """

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._axis = from_logits, axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.kl_divergence_loss(
            pred,
            label,
            sample_weight,
            self._weight,
            axis=self._axis,
            from_logits=self._from_logits,
            batch_axis=self._batch_axis,
        )


class CTCLoss(Loss):
    """Connectionist temporal classification: sequences with labels of unknown places.

    Predictions are scores of shape (batch, time, classes) in layout 'NTC'; the last class is the
    blank. Labels are (batch, length) in layout 'NT', padded with -1 unless lengths are given. A
    label that does not fit into its sequence costs infinitely much and teaches nothing (MXNet gives
    0 for it).
    """

    def __init__(
        self,
        layout: str = "NTC",
        label_layout: str = "NT",
        weight: float | None = None,
        **kwargs: Any,
    ):
        if layout not in ("NTC", "TNC") or label_layout not in ("NT", "TN"):
            raise ArgumentError(
                f"CTCLoss: layout={layout!r}, label_layout={label_layout!r}; expected 'NTC' or "
                "'TNC', and 'NT' or 'TN'."
            )
        self._layout, self._label_layout = layout, label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(
        self,
        F: Any,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        pred = pred.swapaxes(0, 1) if self._layout == "NTC" else pred
        label = label.swapaxes(0, 1) if self._label_layout == "TN" else label
        loss = ctc_loss(pred, label, pred_lengths, label_lengths, blank_label="last")
        return _apply_weighting(F, loss, self._weight, sample_weight)


class HuberLoss(Loss):
    """The absolute difference, rounded off by a parabola below `rho`."""

    def __init__(
        self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = _number("rho", rho)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.huber_loss(
            pred, label, sample_weight, self._weight, self._rho, batch_axis=self._batch_axis
        )


class HingeLoss(Loss):
    """How much `pred * label` falls short of `margin`, for labels of -1 and 1."""

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = _number("margin", margin)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.hinge_loss(
            pred, label, sample_weight, self._weight, self._margin, batch_axis=self._batch_axis
        )


class SquaredHingeLoss(HingeLoss):
    """The square of the hinge loss."""

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.squared_hinge_loss(
            pred, label, sample_weight, self._weight, self._margin, batch_axis=self._batch_axis
        )


class LogisticLoss(Loss):
    """The logistic loss of labels of -1 and 1 ('signed'), or of 0 and 1 ('binary')."""

    def __init__(
        self,
        weight: float | None = None,
        batch_axis: int = 0,
        label_format: str = "signed",
        **kwargs: Any,
    ):
        if label_format not in ("signed", "binary"):
            raise ArgumentError(f"label_format={label_format!r}: expected 'signed' or 'binary'.")
        super().__init__(weight, batch_axis, **kwargs)
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return losses.logistic_loss(
            pred,
            label,
            sample_weight,
            self._weight,
            label_format=self._label_format,
            batch_axis=self._batch_axis,
        )


class TripletLoss(Loss):
    """How much nearer to `positive` than to `negative` predictions should be, for `margin`."""

    def __init__(
        self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = _number("margin", margin)

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        return losses.triplet_loss(
            pred, positive, negative, self._weight, self._margin, batch_axis=self._batch_axis
        )


class PoissonNLLLoss(Loss):
    """The negative log-likelihood of Poisson counts: one number for the whole batch.

    Predictions are rates, or their logarithms with `from_logits`; `compute_full` adds Stirling's
    approximation of what does not depend on them.
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full = from_logits, compute_full

    def hybrid_forward(
        self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08
    ) -> Any:
        return losses.poisson_nll_loss(
            pred,
            target,
            sample_weight,
            self._weight,
            epsilon,
            from_logits=self._from_logits,
            compute_full=self._compute_full,
        )


class CosineEmbeddingLoss(Loss):
    """1 minus the cosine of two vectors with the label 1; the cosine above `margin` with -1."""

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = _number("margin", margin)

    def hybrid_forward(
        self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None
    ) -> Any:
        return losses.cosine_embedding_loss(
            input1, input2, label, sample_weight, self._weight, self._margin
        )


class SDMLLoss(Loss):
    """Smoothed deep metric learning: rows of two inputs belong together, and to no other row."""

    def __init__(
        self,
        smoothing_parameter: float = 0.3,
        weight: float | None = 1.0,
        batch_axis: int = 0,
        **kwargs: Any,
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self.smoothing_parameter = _number("smoothing_parameter", smoothing_parameter)

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        return losses.sdml_loss(x1, x2, self._weight, self.smoothing_parameter)


_check_members(globals())

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)
