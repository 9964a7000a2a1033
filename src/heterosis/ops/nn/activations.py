"""Activations: functions of each element, and those that learn or draw a slope below zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant
from heterosis.ir.types import FLOATS
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.record import default, operation
from heterosis.ops.rules import broadcast_all, cast, floating
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError

_NETWORK = ("npx",)
_PRECISE = ("float32", "float64")


# -- functions of one element ---------------------------------------------------------------------


def _zero() -> Value:
    return constant(0, "int64", weak=True)


def softrelu(x: Value) -> Value:
    """`log(1 + exp(x))` without overflow; written so that its derivative at 0 is 1/2."""
    positive = e.greater_equal(x, _zero())
    size = e.select(positive, e.negative(x), x)
    return e.add(e.select(positive, x, _zero()), r.log1p(r.exp(size)))


def softsign(x: Value) -> Value:
    """`x / (1 + |x|)`."""
    return e.true_divide(x, e.add(e.absolute(x), constant(1, "int64", weak=True)))


def _activation(
    reference: Callable[..., Any],
    *attributes: dict[str, Any],
    names: dict[str, str] | None = None,
    gradient: Callable[..., Value] | None = None,
) -> Callable[[Callable[..., Value]], Any]:
    """Register a function of each element that users find in `npx`."""
    shapes = [Case((shape,)) for shape in ((), (0,), (37,), (3, 70))]
    more = [Case(((3, 37),), given) for given in attributes]
    samples = Samples((*shapes, *more), (-9, 9), ("int32", *FLOATS), ulps=8, absolute=8)
    return operation(
        numpy=reference, public=_NETWORK, samples=samples, names=names or {}, gradient=gradient
    )


def _real(x: Value) -> Value:
    return cast(x, floating(x.dtype))


def _gelu_reference(data: Any, approximation: Any = "erf") -> Any:
    if approximation == "tanh":
        inner = math.sqrt(2 / math.pi) * (data + 0.044715 * data**3)
        return 0.5 * data * (1 + numpy.tanh(inner))
    from scipy import special  # tests alone have it

    return data * special.ndtr(data)


def _pull_gelu(g: Value, y: Value, data: Value, approximation: str) -> Value:
    """The cotangent times the slope, which a program can compute, and keep, with the result."""
    x, one = _real(data), constant(1, "int64", weak=True)
    part = r.sigmoid(_twice_inner(x)) if approximation == "tanh" else _twice_below(x)
    # What it is multiplied by below is 0 long before: of infinity, there would be no product.
    bound = constant(64.0, x.dtype)
    x = e.minimum(e.maximum(x, e.negative(bound)), bound)
    if approximation == "tanh":
        cubed = e.multiply(e.square(x), constant(3 * 0.044715 * _INNER_SCALE, x.dtype))
        inner = e.add(cubed, constant(_INNER_SCALE, x.dtype))
        above = e.subtract(one, part)
        slope = e.add(part, e.multiply(e.multiply(x, inner), e.multiply(part, above)))
    else:
        half = constant(0.5, x.dtype)
        exponent = e.multiply(e.square(x), constant(-0.5, x.dtype))
        density = e.multiply(r.exp(exponent), constant(math.sqrt(0.5 / math.pi), x.dtype))
        slope = e.add(e.multiply(part, half), e.multiply(x, density))
    return cast(e.multiply(g, slope), data.dtype)


@_activation(
    _gelu_reference, {"approximation": "tanh"}, names={"onnx": "Gelu"}, gradient=_pull_gelu
)
def gelu(data: Value, approximation: str = "erf") -> Value:
    """`data` times the probability that a normal number is below it.

    `approximation` is how that is computed: 'erf' by the error function, 'tanh' by a formula that
    comes close to it, as many published networks have it."""
    x = _real(data)
    if approximation == "tanh":
        return e.multiply(x, r.sigmoid(_twice_inner(x)))
    if approximation != "erf":
        raise ArgumentError(f"gelu: approximation={approximation!r}; expected 'erf' or 'tanh'.")
    return e.multiply(e.multiply(x, constant(0.5, x.dtype)), _twice_below(x))


def _twice_below(x: Value) -> Value:
    """Twice the probability that a normal number is below `x`."""
    below = r.erf(e.multiply(x, constant(math.sqrt(0.5), x.dtype)))
    return e.add(below, constant(1, "int64", weak=True))


_INNER_SCALE = 2 * math.sqrt(2 / math.pi)


def _twice_inner(x: Value) -> Value:
    """Twice the argument of the hyperbolic tangent: `(1 + tanh(u)) / 2` is `sigmoid(2 * u)`."""
    cubed = e.multiply(e.multiply(e.square(x), x), constant(0.044715 * _INNER_SCALE, x.dtype))
    return e.add(e.multiply(x, constant(_INNER_SCALE, x.dtype)), cubed)


def _finite(x: Value) -> Value:
    """0 for infinity: beside a slope that is 0 there, with which it would have no product."""
    return e.select(e.isinf(x), _zero(), x)


def _pull_swish(g: Value, y: Value, x: Value, beta: Value) -> tuple[Value, Value]:
    part = r.sigmoid(e.multiply(x, beta))
    finite = _finite(x)
    slope = e.multiply(finite, e.multiply(part, e.subtract(constant(1, "int64", weak=True), part)))
    along = e.add(part, e.multiply(slope, beta))
    return e.multiply(g, along), e.multiply(g, e.multiply(slope, finite))


@operation(
    numpy=lambda x, beta: x / (1 + numpy.exp(-beta * x)),
    public=(),
    samples=Samples(
        [Case((shape, shape)) for shape in ((), (0,), (37,), (3, 70))], (-4, 4), FLOATS, ulps=8,
        absolute=8,
    ),
    gradient=_pull_swish,
)  # fmt: skip
def swish(x: Value, beta: Value) -> Value:
    """`x * sigmoid(beta * x)` of two arrays of one shape and type."""
    return e.multiply(x, r.sigmoid(e.multiply(x, beta)))


@_activation(lambda data, beta=1.0: data / (1 + numpy.exp(-beta * data)), {"beta": 1.5})
def silu(data: Value, beta: Value = default(1.0)) -> Value:
    """`data * sigmoid(beta * data)`, also known as swish."""
    x = _real(data)
    made: Value = swish(*broadcast_all("silu", (x, cast(beta, x.dtype))))
    return made


@_activation(
    lambda data, beta=1.0: numpy.logaddexp(beta * data, 0) / beta,
    {"beta": 2.0},
    names={"onnx": "Softplus"},
)
def softplus(data: Value, beta: Value = default(1.0)) -> Value:
    """`log(1 + exp(beta * data)) / beta`, a smooth `relu`, without overflow."""
    x = _real(data)
    beta = cast(beta, x.dtype)
    return e.true_divide(softrelu(e.multiply(x, beta)), beta)


def _pull_mish(g: Value, y: Value, data: Value) -> Value:
    x, one = _real(data), constant(1, "int64", weak=True)
    part = r.tanh(softrelu(x))
    rising = e.multiply(e.subtract(one, e.square(part)), r.sigmoid(x))
    slope = e.add(part, e.multiply(_finite(x), rising))
    return cast(e.multiply(g, slope), data.dtype)


@_activation(
    lambda data: data * numpy.tanh(numpy.logaddexp(data, 0)),
    names={"onnx": "Mish"},
    gradient=_pull_mish,
)
def mish(data: Value) -> Value:
    """`data * tanh(log(1 + exp(data)))`."""
    x = _real(data)
    return e.multiply(x, r.tanh(softrelu(x)))


@_activation(
    lambda data, alpha=0.2, beta=0.5: numpy.clip(alpha * data + beta, 0, 1),
    {"alpha": 1 / 6},
    names={"mxnet": "hard_sigmoid", "onnx": "HardSigmoid"},
)
def hard_sigmoid(data: Value, alpha: Value = default(0.2), beta: Value = default(0.5)) -> Value:
    """The line `alpha * data + beta` within 0 and 1: a cheap `sigmoid`. Its slope where the line
    meets them counts as 0."""
    x = _real(data)
    line = e.add(e.multiply(x, cast(alpha, x.dtype)), cast(beta, x.dtype))
    zero, one = (constant(n, x.dtype) for n in (0.0, 1.0))
    above = e.select(e.less_equal(line, zero), zero, line)
    return e.select(e.greater_equal(line, one), one, above)


@_activation(lambda data: data * numpy.clip(data + 3, 0, 6) / 6, names={"onnx": "HardSwish"})
def hardswish(data: Value) -> Value:
    """`data` times the line from 0 at -3 to 1 at 3: a cheap `silu`."""
    x = _real(data)
    return e.multiply(x, hard_sigmoid(x, constant(1 / 6, x.dtype), constant(0.5, x.dtype)))


@_activation(lambda data: -numpy.logaddexp(-data, 0))
def log_sigmoid(data: Value) -> Value:
    """The logarithm of `sigmoid`, without overflow."""
    return e.negative(softrelu(e.negative(_real(data))))


# -- by name --------------------------------------------------------------------------------------

_ACTIVATIONS: dict[str, Callable[[Value], Value]] = {
    "relu": r.relu,
    "sigmoid": r.sigmoid,
    "softrelu": softrelu,
    "softsign": softsign,
    "tanh": r.tanh,
    "gelu": gelu,
    "gelu_tanh": lambda x: gelu(x, "tanh"),
    "hard_sigmoid": hard_sigmoid,
    "hardswish": hardswish,
    "log_sigmoid": log_sigmoid,
    "mish": mish,
    "silu": silu,
}
_ACTIVATION_REFERENCES: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: numpy.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + numpy.exp(-x)),
    "softrelu": lambda x: numpy.logaddexp(x, 0),
    "softsign": lambda x: x / (1 + abs(x)),
    "tanh": numpy.tanh,
    "gelu": _gelu_reference,
    "gelu_tanh": lambda x: _gelu_reference(x, "tanh"),
    "hard_sigmoid": hard_sigmoid.record.numpy,
    "hardswish": hardswish.record.numpy,
    "log_sigmoid": log_sigmoid.record.numpy,
    "mish": mish.record.numpy,
    "silu": silu.record.numpy,
}


@operation(
    numpy=lambda data, act_type: _ACTIVATION_REFERENCES[act_type](data),
    public=_NETWORK,
    names={"mxnet": "Activation"},
    samples=Samples(
        [Case(((3, 37),), {"act_type": kind}) for kind in _ACTIVATIONS],
        (-9, 9),
        dtypes=("int32", "float16", *_PRECISE),
        ulps=8,
        absolute=8,
    ),
)
def activation(data: Value, act_type: str) -> Value:
    """'relu', 'sigmoid', 'tanh', 'softrelu' (`log(1 + exp(x))`), 'softsign' (`x / (1 + |x|)`), or a
    function of `npx` by its name: 'gelu', 'hard_sigmoid', 'hardswish', 'log_sigmoid', 'mish' or
    'silu'; 'gelu_tanh' is `gelu` with that approximation."""
    if act_type not in _ACTIVATIONS:
        raise ArgumentError(
            f"activation: act_type={act_type!r}; expected one of {', '.join(_ACTIVATIONS)}."
        )
    return _ACTIVATIONS[act_type](cast(data, floating(data.dtype)))


# -- with a slope below zero ----------------------------------------------------------------------

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def leak(x: Value, slope: Value) -> Value:
    """`x` where it is positive, else `slope * x`."""
    return e.select(e.greater(x, _zero()), x, e.multiply(x, cast(slope, x.dtype)))


def _exponential_leak(x: Value, slope: Value) -> Value:
    # The exponential sees no positive numbers: it would overflow there, and its derivative too.
    positive = e.greater(x, _zero())
    below = r.expm1(e.select(positive, _zero(), x))
    return e.select(positive, x, e.multiply(below, cast(slope, x.dtype)))


def _selu(x: Value) -> Value:
    return e.multiply(
        _exponential_leak(x, constant(_SELU_ALPHA, x.dtype)), constant(_SELU_SCALE, x.dtype)
    )


def _learnt_leak(x: Value, gamma: Value | None) -> Value:
    if gamma is None:
        raise ArgumentError("leaky_relu: act_type='prelu' needs gamma, the slopes to be learnt.")
    return leak(x, _along_channels("leaky_relu: gamma", gamma, x))


def _along_channels(what: str, given: Value, x: Value) -> Value:
    """One number for all, for each channel (axis 1), or for each element."""
    channels = x.shape[1] if x.ndim > 1 else x.size
    if given.shape == x.shape or given.size == 1:
        return given if given.shape == x.shape else views.reshape(given, ())
    if given.shape != (channels,):
        raise ShapeError(
            f"{what} has shape {given.shape} for data of shape {x.shape}; expected (1,), "
            f"({channels},) or the shape of the data."
        )
    return views.reshape(given, (channels,) + (1,) * max(x.ndim - 2, 0))


def _leaky_reference(
    data: Any, gamma: Any = None, act_type: Any = "leaky", slope: Any = 0.25
) -> Any:
    negative = numpy.minimum(data, 0)
    if act_type == "gelu":
        return _gelu_reference(data)
    if act_type == "selu":
        return _SELU_SCALE * numpy.where(data > 0, data, _SELU_ALPHA * numpy.expm1(negative))
    if act_type == "elu":
        return numpy.where(data > 0, data, slope * numpy.expm1(negative))
    slopes = {"leaky": slope, "rrelu": (0.125 + 0.334) / 2}
    if act_type == "prelu":
        slopes["prelu"] = gamma.reshape((-1,) + (1,) * max(data.ndim - 2, 0))
    return numpy.where(data > 0, data, slopes[act_type] * data)


@operation(
    numpy=_leaky_reference,
    public=(),
    names={"mxnet": "LeakyReLU"},
    samples=Samples(
        (
            *(Case(((3, 37),), {"act_type": k}) for k in ("leaky", "elu", "selu", "gelu", "rrelu")),
            Case(((3, 5),), {"act_type": "elu", "slope": 0.5}),
            Case(((2, 3, 5), (3,)), {"act_type": "prelu"}),
            Case(((7,), (1,)), {"act_type": "prelu"}),
        ),
        dtypes=("float16", *_PRECISE),
        ulps=8,
    ),
)
def leaky_relu(
    data: Value,
    gamma: Value | None = None,
    act_type: str = "leaky",
    slope: Value = default(0.25),
    lower_bound: Value = default(0.125),
    upper_bound: Value = default(0.334),
) -> Value:
    """`data` where it is positive; below, what `act_type` says: 'leaky' and 'prelu' a line of
    `slope` or of slopes `gamma`, 'elu' and 'selu' an exponential curve, 'rrelu' the line halfway
    between the bounds. 'gelu' is smooth: `data` times the normal distribution's `P(X < data)`."""
    x = cast(data, floating(data.dtype))
    if act_type == "prelu":
        return _learnt_leak(x, gamma)
    if gamma is not None:
        raise ArgumentError(f"leaky_relu: gamma is for act_type='prelu', and this is {act_type!r}.")
    if act_type == "rrelu":
        bounds = e.add(cast(lower_bound, x.dtype), cast(upper_bound, x.dtype))
        return leak(x, e.multiply(bounds, constant(0.5, x.dtype)))
    kinds = {"leaky": leak, "elu": _exponential_leak}
    if act_type in kinds:
        return kinds[act_type](x, slope)
    if act_type not in ("selu", "gelu"):
        raise ArgumentError(
            f"leaky_relu: act_type={act_type!r}; expected leaky, prelu, elu, selu, gelu or rrelu."
        )
    return _selu(x) if act_type == "selu" else gelu(x)
