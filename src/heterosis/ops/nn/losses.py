"""Losses: how far predictions are from labels, one number for each element of the batch.

Each is one operation, from predictions to the mean over all axes but the batch's. They compute in
float32 at least, and give elements of the predictions' type.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD
from heterosis.ir.program import Value
from heterosis.ops.array.indexing import scattered
from heterosis.ops.array.legacy import counter_along, pick
from heterosis.ops.math.elementwise import add, multiply, negative, subtract
from heterosis.ops.math.real import exp
from heterosis.ops.nn.softmax import log_softmax
from heterosis.ops.numpylike import Array, Term, as_indices, number_for, on_terms, places_along
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, floating
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError

_DTYPES = ("float16", "float32", "float64")


def _loss(
    *cases: Case, domain: Any = (-2, 2), indices: tuple[int, ...] = ()
) -> Callable[[Callable[..., Array]], _core.Operation[..., tuple[Value, ...]]]:
    """Register a loss written in NumPy's words; parameters at `indices` keep their type."""

    def register(function: Callable[..., Array]) -> _core.Operation[..., tuple[Value, ...]]:
        @functools.wraps(function)
        def program(*arguments: Any) -> tuple[Value, ...]:
            dtype = floating(arguments[0].dtype)
            wide = "float64" if dtype == "float64" else "float32"
            ready = [
                cast(a, wide) if isinstance(a, Value) and i not in indices else a
                for i, a in enumerate(arguments)
            ]
            loss, *more = on_terms(function, ready)
            return cast(loss, dtype), *more

        samples = Samples(
            cases, domain, dtypes=_DTYPES, ulps=64, absolute=64, integer_arrays=indices
        )
        return operation(numpy=function, public=(), samples=samples)(program)

    return register


def _weighted(loss: Any, sample_weight: Any, weight: Any) -> Any:
    if sample_weight is not None:
        loss = loss * sample_weight
    return loss if weight is None else loss * weight


def _others(loss: Any, batch_axis: int) -> tuple[int, ...]:
    """All axes but the batch's."""
    return tuple(a for a in range(loss.ndim) if a != batch_axis % loss.ndim)


def _mean(loss: Any, sample_weight: Any, weight: Any, batch_axis: int) -> Any:
    loss = _weighted(loss, sample_weight, weight)
    return numpy.mean(loss, axis=_others(loss, batch_axis))


def _like(x: Any, pred: Any) -> Any:
    """`x` in the shape of the predictions."""
    return _shaped(x, pred.shape)


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    if math.prod(x.shape) != math.prod(shape):
        raise ShapeError(
            f"a loss of predictions and labels of different sizes: {x.shape} does not fit the "
            f"shape {shape}; there must be one label for each prediction."
        )
    return x.reshape(shape)


def _softplus(x: Any) -> Any:
    """`log(1 + exp(x))` for `x` that is not positive."""
    return numpy.log1p(numpy.exp(x))


def _relu(x: Any) -> Any:
    return numpy.maximum(x, 0.0)


def _positive(x: Any) -> Any:
    """`_relu` whose slope at 0 is that of both sides' mean: a part of curves without a corner."""
    return 0.5 * (x + numpy.abs(x))


def _log_softmax(x: Any, axis: int) -> Any:
    if isinstance(x, Term):
        return Term(log_softmax(x.value, axis))
    x = x - numpy.max(x, axis=axis, keepdims=True)
    return x - numpy.log(numpy.sum(numpy.exp(x), axis=axis, keepdims=True))


_PAIR = Case(((3, 70), (3, 70)))
_WEIGHTED = Case(((3, 4), (3, 4), (3, 1), None))
_TURNED = Case(((3, 4), (4, 3), None, None), {"batch_axis": 1})

# -- numbers --------------------------------------------------------------------------------------


@_loss(_PAIR, Case(((5,), (5, 1))), _WEIGHTED, _TURNED)
def l2_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array = 1.0,
    batch_axis: int = 0,
) -> Array:
    """Half the squared difference."""
    loss = numpy.square(_like(label, pred) - pred)
    return _mean(loss, sample_weight, weight / 2, batch_axis)


@_loss(_PAIR, _WEIGHTED)
def l1_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    batch_axis: int = 0,
) -> Array:
    """The absolute difference."""
    return _mean(numpy.abs(_like(label, pred) - pred), sample_weight, weight, batch_axis)


@_loss(_PAIR, Case(((3, 4), (3, 4), (3, 1), None, None)), domain=(0.2, 2.5))
def huber_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    rho: Array = 1.0,
    batch_axis: int = 0,
) -> Array:
    """The absolute difference, rounded off by a parabola where it is below `rho`."""
    far = numpy.abs(_like(label, pred) - pred)
    near = numpy.where(far > rho, 0.0, far)  # a parabola through infinity has no slope
    loss = numpy.where(far > rho, far - 0.5 * rho, 0.5 / rho * near * near)
    return _mean(loss, sample_weight, weight, batch_axis)


@_loss(_PAIR, Case(((3, 4), (3, 4), (3, 1), None, None)))
def hinge_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    margin: Array = 1.0,
    batch_axis: int = 0,
) -> Array:
    """How much `pred * label` falls short of `margin`, for labels of -1 and 1."""
    loss = _relu(margin - pred * _like(label, pred))
    return _mean(loss, sample_weight, weight, batch_axis)


@_loss(_PAIR, Case(((3, 4), (3, 4), (3, 1), None, None)))
def squared_hinge_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    margin: Array = 1.0,
    batch_axis: int = 0,
) -> Array:
    """The square of the hinge loss."""
    loss = numpy.square(_relu(margin - pred * _like(label, pred)))
    return _mean(loss, sample_weight, weight, batch_axis)


@_loss(
    Case(((3, 70), (3, 70))),
    Case(((3, 4), (3, 4), (3, 1), None, None), {"compute_full": True}),
    Case(((3, 4), (3, 4)), {"from_logits": False}),
    domain=(0.1, 3.0),
)
def poisson_nll_loss(
    pred: Array,
    target: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    epsilon: Array = 1e-8,
    from_logits: bool = True,
    compute_full: bool = False,
) -> Array:
    """The negative log-likelihood of counts with the rate `pred`, or its logarithm; one number."""
    target = _like(target, pred)
    if from_logits:
        loss = numpy.exp(pred) - target * pred
    else:
        loss = pred - target * numpy.log(pred + epsilon)
    if compute_full:
        many = numpy.maximum(target, 1.0)
        stirling = many * numpy.log(many) - many + 0.5 * numpy.log(2 * math.pi * many)
        loss = loss + numpy.where(target > 1, stirling, 0.0)
    return numpy.mean(_weighted(loss, sample_weight, weight))


# -- classes --------------------------------------------------------------------------------------


@_loss(
    Case(((3, 70), (3, 70))),
    Case(((3, 4), (3, 4), (3, 1), None, (4,))),
    Case(((3, 4), (3, 4), (3, 1), None), {"from_sigmoid": True}),
    Case(((3, 4), (3, 4), None, None, (4,)), {"from_sigmoid": True}),
    domain=(0.1, 0.9),
)
def sigmoid_cross_entropy_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    pos_weight: Array | None = None,
    from_sigmoid: bool = False,
    batch_axis: int = 0,
) -> Array:
    """Minus the logarithm of the probability of labels of 0 and 1; `pos_weight` is that of ones."""
    label = _like(label, pred)
    more = 1.0 if pos_weight is None else pos_weight
    if from_sigmoid:
        tiny = 1e-12
        positive = numpy.log(pred + tiny) * label * more
        loss = -(positive + numpy.log(1.0 - pred + tiny) * (1.0 - label))
    elif pos_weight is None:
        loss = _positive(pred) - pred * label + _softplus(-numpy.abs(pred))
    else:
        ones = 1.0 + (more - 1.0) * label
        loss = pred - pred * label + ones * (_softplus(-numpy.abs(pred)) + _positive(-pred))
    return _mean(loss, sample_weight, weight, batch_axis)


def _log_sigmoid(x: Any) -> Any:
    return -(_positive(-x) + _softplus(-numpy.abs(x)))


@_loss(
    _PAIR,
    Case(((3, 4), (3, 4), (3, 1), None, None, None)),
    Case(((2, 5, 3), (2, 5, 3), None, None, None, None)),
    domain=((-4, 4), (0, 1), (0, 2), (0.5, 2), (0, 1), (0.5, 3)),
)
def focal_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    alpha: Array | None = None,
    gamma: Array = 2.0,
    batch_axis: int = 0,
) -> Array:
    """The cross-entropy of labels of 0 and 1, times the probability of being wrong to the power
    `gamma`, and times `alpha` for ones and `1 - alpha` for zeros."""
    label = _like(label, pred)
    one, none = _log_sigmoid(pred), _log_sigmoid(-pred)
    surprise = -(one * label + none * (1.0 - label))
    wrong = numpy.exp(none) * label + numpy.exp(one) * (1.0 - label)
    # Where nothing is wrong the power has no slope: the bound keeps it finite for small `gamma`.
    loss = surprise * numpy.exp(gamma * numpy.log(numpy.maximum(wrong, 1e-30)))
    if alpha is not None:
        loss = loss * (alpha * label + (1.0 - alpha) * (1.0 - label))
    return _mean(loss, sample_weight, weight, batch_axis)


@_loss(_PAIR, _WEIGHTED, Case(((3, 4), (3, 4)), {"label_format": "binary"}))
def logistic_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    label_format: str = "signed",
    batch_axis: int = 0,
) -> Array:
    """The logistic loss of labels of -1 and 1 ('signed'), or 0 and 1 ('binary')."""
    label = _like(label, pred)
    if label_format == "signed":
        label = (label + 1.0) / 2.0
    loss = _positive(pred) - pred * label + _softplus(-numpy.abs(pred))
    return _mean(loss, sample_weight, weight, batch_axis)


def _surprise(x: Any, label: Any, axis: Any) -> Any:
    top = numpy.max(x, axis=axis, keepdims=True)
    spread = numpy.log(numpy.sum(numpy.exp(x - top), axis=axis, keepdims=True))
    return spread + (top - _picked(x, label, axis))


def _picked(x: Any, label: Any, axis: int) -> Any:
    if isinstance(x, Term):
        return Term(pick(x.value, label.value, axis, True))
    return numpy.take_along_axis(x, numpy.expand_dims(label, axis), axis)


def _pull_surprise(g: Value, y: Value, x: Value, label: Value, axis: int) -> tuple[Value, None]:
    """The softmax, and 1 less where the label is: one pass, since `y` knows the sum."""
    weighted = multiply(exp(subtract(x, add(y, pick(x, label, axis, True)))), g)
    shape = label.shape
    places = [counter_along(shape, d) for d in range(len(shape))]
    places.insert(axis, label)
    hits = views.reshape(negative(g), shape)
    return scattered(weighted, places, hits, combine=ADD), None


@operation(
    numpy=_surprise,
    gradient=_pull_surprise,
    public=(),
    samples=Samples(
        (Case(((3, 70), (3,)), {"axis": 1}), Case(((2, 5, 3), (2, 3)), {"axis": 1})),
        ((-2, 2), (0, 4)),
        dtypes=("float32", "float64"),
        integer_arrays=(1,),
        ulps=16,
        absolute=16,
    ),
)
def softmax_surprise(x: Value, label: Value, axis: int) -> Value:
    """Minus the logarithm of the softmax of `x` at the label, which is one of its places."""
    return on_terms(lambda x, label: _surprise(x, label, axis), (x, label))[0]


@_loss(
    Case(((3, 70), (3,))),
    Case(((3, 4), (3, 1), (3, 1), None)),
    Case(((2, 5, 3), (2, 3)), {"axis": 1}),
    Case(((3, 4), (3,)), {"from_logits": True}),
    Case(((2, 5, 3), (2, 3), None, None, None), {"axis": 1}),
    Case(((3, 4), (3,), None, None, None), {"from_logits": True}),
    domain=((-2, 2), (-1, 6), (0, 2), (0, 2), (0, 1)),
    indices=(1,),
)
def softmax_cross_entropy_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    smoothing: Array | None = None,
    axis: int = -1,
    from_logits: bool = False,
    batch_axis: int = 0,
) -> tuple[Array, Array]:
    """Minus the logarithm of the softmax of `pred` at the label, a number of a class.

    Labels beyond the classes count as the nearest one. `smoothing` is the part of each label that
    all classes share. A second result is the loss before it is
    weighted and averaged: the gradient wants it.
    """
    axis = axis % pred.ndim
    label = _classes(label, pred, axis)
    if from_logits:
        loss = -_picked(pred, label, axis)
    elif isinstance(pred, Term):
        loss = Term(softmax_surprise(pred.value, label.value, axis))
    else:
        loss = _surprise(pred, label, axis)
    if smoothing is not None:
        shared = numpy.mean(pred, axis=axis, keepdims=True)
        loss = loss + smoothing * (_picked(pred, label, axis) - shared)
    return _mean(loss, sample_weight, weight, batch_axis), loss


def _classes(label: Any, pred: Any, axis: int) -> Any:
    """Numbers of classes, one for each prediction, within bounds."""
    outer = tuple(n for a, n in enumerate(pred.shape) if a != axis)
    if label.shape not in (outer, (*outer[:axis], 1, *outer[axis:])):
        raise ShapeError(
            f"SoftmaxCrossEntropyLoss: labels of shape {label.shape} for predictions of shape "
            f"{pred.shape} with classes along axis {axis}; expected one class for each prediction, "
            "or sparse_label=False for a probability for each class."
        )
    last = number_for(pred, pred.shape[axis] - 1)
    return numpy.maximum(numpy.minimum(as_indices(label.reshape(outer)), last), 0)


@_loss(
    _PAIR,
    _WEIGHTED,
    Case(((2, 5, 3), (2, 5, 3)), {"axis": 1}),
    Case(((3, 4), (3, 4)), {"from_logits": True}),
    Case(((2, 5, 3), (2, 5, 3), None, None, None), {"axis": 1}),
)
def softmax_cross_entropy_dense_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    smoothing: Array | None = None,
    axis: int = -1,
    from_logits: bool = False,
    batch_axis: int = 0,
) -> Array:
    """Minus the logarithm of the softmax of `pred`, weighted by the labels' probabilities, of
    which all classes share the part `smoothing`."""
    if not from_logits:
        pred = _log_softmax(pred, axis)
    label = _like(label, pred)
    if smoothing is not None:
        share = smoothing / number_for(pred, pred.shape[axis])
        label = (1.0 - smoothing) * label + share
    loss = -numpy.sum(pred * label, axis=axis, keepdims=True)
    return _mean(loss, sample_weight, weight, batch_axis)


@_loss(
    Case(((3, 70), (3, 70))),
    _WEIGHTED,
    Case(((2, 5, 3), (2, 5, 3)), {"axis": 1, "from_logits": False}),
    domain=(0.1, 0.9),
)
def kl_divergence_loss(
    pred: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    axis: int = -1,
    from_logits: bool = True,
    batch_axis: int = 0,
) -> Array:
    """The divergence of the distribution `label` from the logarithms `pred` of another, summed."""
    if not from_logits:
        pred = _log_softmax(pred, axis)
    loss = _weighted(label * (numpy.log(label + 1e-12) - pred), sample_weight, weight)
    return numpy.sum(loss, axis=_others(loss, batch_axis))


# -- distances ------------------------------------------------------------------------------------


@_loss(Case(((3, 70), (3, 70), (3, 70))), Case(((3, 4), (3, 4), (3, 4), None, None)))
def triplet_loss(
    pred: Array,
    positive: Array,
    negative: Array,
    weight: Array | None = None,
    margin: Array = 1.0,
    batch_axis: int = 0,
) -> Array:
    """How much nearer to `positive` than to `negative` `pred` should be, to be so by `margin`."""
    positive, negative = _like(positive, pred), _like(negative, pred)
    nearer = numpy.square(positive - pred) - numpy.square(negative - pred)
    loss = numpy.sum(nearer, axis=_others(nearer, batch_axis))
    return _weighted(_relu(loss + margin), None, weight)


@_loss(
    Case(((3, 70), (3, 70), (3,))),
    Case(((3, 4), (3, 4), (3,), (3, 1), None, None)),
    domain=((-2, 2), (-2, 2), (-1, 1), (0, 1), (0, 1), (0, 1)),
    indices=(2,),
)
def cosine_embedding_loss(
    input1: Array,
    input2: Array,
    label: Array,
    sample_weight: Array | None = None,
    weight: Array | None = None,
    margin: Array = 0.0,
) -> Array:
    """1 minus the cosine of two vectors with the label 1; the cosine above `margin` for -1."""
    input1 = _like(input1, input2)
    column = (math.prod(input2.shape[:-1]), 1)
    label = _shaped(label, column)
    product = numpy.sum(input1 * input2, axis=-1)
    squares = numpy.sum(input1 * input1, axis=-1) * numpy.sum(input2 * input2, axis=-1)
    # The bound on lengths stands inside the root: its slope at zero is infinite.
    cosine = (product / numpy.sqrt(numpy.maximum(squares, 1e-24))).reshape(column)
    alike = numpy.where(label == 1, 1.0 - cosine, 0.0)
    loss = alike + numpy.where(label == -1, _relu(cosine - margin), 0.0)
    return _weighted(loss, sample_weight, weight)


@_loss(Case(((5, 3), (5, 3))), Case(((2, 3), (2, 3), None, None)), domain=(0.1, 0.9))
def sdml_loss(x1: Array, x2: Array, weight: Array | None = None, smoothing: Array = 0.3) -> Array:
    """Smoothed deep metric learning: row `i` of `x1` should be nearest to row `i` of `x2`."""
    if x1.shape != x2.shape or x1.ndim != 2 or x1.shape[0] < 2:
        raise ArgumentError(
            f"SDMLLoss: inputs of shapes {x1.shape} and {x2.shape}; expected two of one shape "
            "(batch, features) and at least two rows."
        )
    count, width = x1.shape
    apart = x1.reshape((count, 1, width)) - x2.reshape((1, count, width))
    distances = numpy.sum(numpy.square(apart), axis=2)
    same = places_along(distances, 0) == places_along(distances, 1)
    label = numpy.where(same, 1.0 - smoothing, smoothing / number_for(x1, count - 1))
    loss = label * (numpy.log(label + 1e-12) - _log_softmax(-distances, 1))
    return _weighted(numpy.sum(loss, axis=1), None, weight)
