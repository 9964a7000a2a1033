"""Output layers of older models: predictions whose gradient is that of a loss they do not return.

The gradient that comes from behind is ignored: they are the last step of a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from heterosis import np, npx
from heterosis.autograd import Function
from heterosis.mxnet.operators.table import operator
from heterosis.npx.ctc import ctc_loss as _ctc_loss
from heterosis.ops.unsized import Unsized
from heterosis.runtime.errors import ArgumentError, ShapeError


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


def _label(name: str, data: Any, label: Any, shapes: Sequence[tuple[int, ...]]) -> Any:
    """The label, which has one of the shapes; a variable of a symbol gets the first of them."""
    if isinstance(label, Unsized):
        return label.settle(name, shapes[0])
    if label.shape not in shapes:
        expected = " or ".join(map(str, dict.fromkeys(shapes)))
        raise ShapeError(
            f"{name}: a label of shape {label.shape} for data of shape {data.shape}; "
            f"expected {expected}."
        )
    return label


def _regression(
    name: str, predict: Callable[[Any], Any], slope: Callable[[Any], Any]
) -> Callable[..., Any]:
    def output(data: Any, label: Any, grad_scale: float = 1.0) -> Any:
        def scaled(prediction: Any, label: Any) -> Any:
            outputs = max(label.size // label.shape[0], 1)
            return slope(prediction - label.reshape(prediction.shape)) * (grad_scale / outputs)

        shapes = [data.shape]
        if not isinstance(label, Unsized) and _as_many_in_each_row(data, label):
            shapes.append(label.shape)
        if len(data.shape) == 2 and data.shape[1] == 1:
            shapes.insert(0, data.shape[:1])
        return _Output(predict, scaled)(data, _label(name, data, label, shapes))

    return operator(name, is_layer=True)(output)


def _as_many_in_each_row(data: Any, label: Any) -> bool:
    return bool(label.size == data.size and label.shape[:1] == data.shape[:1])


def _away(difference: Any) -> Any:
    """The direction of a difference; that of none is down, as in MXNet."""
    return np.where(difference == 0, -1, np.sign(difference)).astype(difference.dtype)


_regression("LinearRegressionOutput", np.copy, lambda difference: difference)
_regression("LogisticRegressionOutput", npx.sigmoid, lambda difference: difference)
_regression("MAERegressionOutput", np.copy, _away)


class _Loss(Function):
    """The elements themselves, each of which gets the gradient that `slope` says."""

    def __init__(self, slope: Callable[[Any], Any]):
        super().__init__()
        self._slope = slope

    def forward(self, data: Any) -> Any:
        """A copy."""
        self.save_for_backward(data)
        return np.copy(data)

    def backward(self, output_grad: Any) -> Any:
        """The slope, whatever comes from behind."""
        (data,) = self.saved_tensors
        return np.ones_like(data) * self._slope(data)


@operator("make_loss")
def make_loss(data: Any) -> Any:
    """The same elements, as a loss: the gradient of each is 1."""
    return _Loss(lambda data: 1.0)(data)


@operator("MakeLoss")
def scaled_loss(
    data: Any, grad_scale: float = 1.0, valid_thresh: float = 0.0, normalization: str = "null"
) -> Any:
    """The same elements, as a loss: the gradient of each is `grad_scale`, divided by the size of
    the batch or by the number of elements above `valid_thresh` if `normalization` says so."""
    _check_normalization("MakeLoss", normalization)

    def slope(data: Any) -> Any:
        if normalization == "valid":
            return grad_scale / np.maximum(np.sum(data > valid_thresh), 1).astype(data.dtype)
        return grad_scale / (data.shape[0] if normalization == "batch" else 1)

    return _Loss(slope)(data)


_NORMALIZATIONS = ("null", "batch", "valid")


def _check_normalization(name: str, given: str) -> None:
    if given not in _NORMALIZATIONS:
        raise ArgumentError(f"{name}: normalization={given!r}; expected one of {_NORMALIZATIONS}.")


@operator("SoftmaxOutput", "Softmax", is_layer=True)  # the second is its older name
def softmax_output(
    data: Any, label: Any, grad_scale: float = 1.0, ignore_label: float = -1.0,
    multi_output: bool = False, use_ignore: bool = False, preserve_shape: bool = False,
    normalization: str = "null", smooth_alpha: float = 0.0,
) -> Any:  # fmt: skip
    """Probabilities of classes, along axis 1 if `multi_output`, along the last one if
    `preserve_shape`, else along all but the first; with the gradient of their cross-entropy with
    `label`.

    Labels are numbers of classes, or, if they have the shape of the data, probabilities, for which
    nothing but `grad_scale` counts. Those equal to `ignore_label` do not count if `use_ignore`.
    """
    _check_normalization("SoftmaxOutput", normalization)
    rows = _Rows(data.shape, multi_output, preserve_shape)
    label = _label("SoftmaxOutput", data, label, [*rows.of_classes, data.shape])

    def of_probabilities(prediction: Any, label: Any) -> Any:
        return (prediction - label) * grad_scale

    def of_classes(prediction: Any, label: Any) -> Any:
        label = label.reshape(rows.labels)
        target = np.moveaxis(npx.one_hot(label, rows.classes), -1, 1)
        if smooth_alpha and not multi_output:
            other = smooth_alpha / (rows.classes - 1)
            target = target * (1 - smooth_alpha) + (1 - target) * other
        difference = prediction.reshape(rows.shape) - target
        counted = (label != ignore_label).astype(difference.dtype)
        if use_ignore:
            difference = difference * np.expand_dims(counted, 1)
        valid = np.maximum(np.sum(counted), 1.0)
        divisor = {
            "null": rows.places, "batch": rows.places * label.shape[0], "valid": valid,
        }[normalization]  # fmt: skip
        return (difference * (grad_scale / divisor)).reshape(prediction.shape)

    slope = of_probabilities if data.shape == label.shape else of_classes
    return _Output(rows.softmax, slope)(data, label)


class _Rows:
    """What SoftmaxOutput takes data for: (rows, classes, places), and labels (rows, places).

    Labels that are numbers of classes have one of the shapes `of_classes`.
    """

    def __init__(self, shape: tuple[int, ...], multi_output: bool, preserve_shape: bool):
        first = shape[0]
        if multi_output:
            self.classes, self.places = shape[1], math.prod(shape[2:])
        else:
            first = math.prod(shape[:-1]) if preserve_shape else first
            self.classes, self.places = math.prod(shape) // max(first, 1), 1
        self.shape = first, self.classes, self.places
        self.labels = first, self.places
        if multi_output:
            others = shape[2:]
            self.of_classes = [self.labels, (first, *others), (first, 1, *others)]
        else:
            self.of_classes = [shape[:-1] if preserve_shape else (first,)]

    def softmax(self, data: Any) -> Any:
        """Probabilities, in the shape of `data`."""
        return npx.softmax(data.reshape(self.shape), axis=1).reshape(data.shape)


@operator("CTCLoss", "ctc_loss", counted=2)
def ctc_loss(
    data: Any, label: Any, data_lengths: Any = None, label_lengths: Any = None,
    use_data_lengths: bool = False, use_label_lengths: bool = False, blank_label: str = "first",
) -> Any:  # fmt: skip
    """The loss of each sequence of scores (time, batch, classes) for its labels."""
    return _ctc_loss(
        data, label, data_lengths if use_data_lengths else None,
        label_lengths if use_label_lengths else None, blank_label,
    )  # fmt: skip
