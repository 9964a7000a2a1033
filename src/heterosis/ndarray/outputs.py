"""Output layers of older models: predictions whose gradient is that of a loss they do not return.

The gradient that comes from behind is ignored: they are the last step of a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np, npx
from heterosis.autograd import Function
from heterosis.ndarray.operator import operator
from heterosis.npx.ctc import ctc_loss as _ctc_loss
from heterosis.runtime.errors import ArgumentError


class _Output(Function):
    """`predict(data)`, with the gradient `slope(prediction, label)` for the data."""

    def __init__(self, predict: Callable[[Any], Any], slope: Callable[[Any, Any], Any]):
        super().__init__()
        self._predict, self._slope = predict, slope

    def forward(self, data: Any, label: Any) -> Any:
        """The prediction."""
        prediction = self._predict(data)
        self.save_for_backward(prediction, label)
        return prediction

    def backward(self, output_grad: Any) -> Any:
        """The loss's gradient, whatever comes from behind."""
        prediction, label = self.saved_tensors
        return self._slope(prediction, label), np.zeros_like(label)


def _regression(predict: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[..., Any]:
    def output(data: Any, label: Any, grad_scale: float = 1.0) -> Any:
        def scaled(prediction: Any, label: Any) -> Any:
            outputs = max(label.size // label.shape[0], 1)
            return slope(prediction - label.reshape(prediction.shape)) * (grad_scale / outputs)

        return _Output(predict, scaled)(data, label)

    return output


operator("LinearRegressionOutput")(_regression(np.copy, lambda difference: difference))
operator("LogisticRegressionOutput")(_regression(npx.sigmoid, lambda difference: difference))
operator("MAERegressionOutput")(_regression(np.copy, np.sign))

_NORMALIZATIONS = ("null", "batch", "valid")


@operator("SoftmaxOutput")
def softmax_output(
    data: Any, label: Any, grad_scale: float = 1.0, ignore_label: float = -1.0,
    multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False,
    normalization: str = "null", smooth_alpha: float = 0.0,
) -> Any:  # fmt: skip
    """Probabilities of classes, along axis 1 if `multi_output`, with the gradient of their
    cross-entropy with `label`; labels equal to `ignore_label` do not count if `use_ignore`."""
    if normalization not in _NORMALIZATIONS:
        raise ArgumentError(
            f"SoftmaxOutput: normalization={normalization!r}; expected one of {_NORMALIZATIONS}."
        )
    axis = 1 if multi_output else -1

    def slope(prediction: Any, label: Any) -> Any:
        classes = prediction.shape[axis]
        target = np.moveaxis(npx.one_hot(label, classes), -1, axis).reshape(prediction.shape)
        if smooth_alpha:
            target = target * (1 - smooth_alpha) + (1 - target) * (smooth_alpha / (classes - 1))
        difference = prediction - target
        counted = (label != ignore_label).astype("float32") if use_ignore else np.ones_like(label)
        kept = np.expand_dims(counted, axis) if difference.ndim > label.ndim else counted
        scale = grad_scale / {
            "null": 1.0, "batch": label.shape[0], "valid": np.maximum(np.sum(counted), 1.0)
        }[normalization]  # fmt: skip
        return difference * kept * scale

    return _Output(lambda x: npx.softmax(x, axis=axis), slope)(data, label)


@operator("CTCLoss", "ctc_loss")
def ctc_loss(
    data: Any, label: Any, data_lengths: Any = None, label_lengths: Any = None,
    use_data_lengths: bool = False, use_label_lengths: bool = False, blank_label: str = "first",
) -> Any:  # fmt: skip
    """The loss of each sequence of scores (time, batch, classes) for its labels."""
    return _ctc_loss(
        data, label, data_lengths if use_data_lengths else None,
        label_lengths if use_label_lengths else None, blank_label,
    )  # fmt: skip
