"""One step of each optimiser for one parameter: from the old weight and state to the new.

A rule is written in NumPy's words and computes in float32, in float64 for weights of that type.
Its results are the new weight and the new states, in the order of the parameters. What changes
from step to step is an operand, so that a new learning rate compiles nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir.program import Value
from heterosis.ir.types import FLOATS
from heterosis.ops.numpylike import on_terms
from heterosis.ops.random.draws import standard_normal
from heterosis.ops.record import Key, default, operation
from heterosis.ops.rules import cast
from heterosis.ops.samples import Case, Samples

_DOMAINS = {
    "lr": (0.01, 0.5),
    "wd": (0.0, 0.5),
    "bound": (0.5, 2.0),
    "variance": (0.0, 1.0),
    "accumulated": (0.1, 1.0),
    "share": (0.1, 0.9),
}
_DOMAIN_OF = {
    "lr": "lr",
    "wd": "wd",
    "wd_lh": "wd",
    "clip_gradient": "bound",
    "clip_weights": "bound",
    "rescale_grad": "bound",
    "lower_bound": "wd",
    "upper_bound": "bound",
    "variance": "variance",
    "history": "variance",
    "squares": "accumulated",
    "steps": "variance",
    "distance": "accumulated",
    "largest": "accumulated",
}
_NOT_IN_FIRST_CASE = ("clip_gradient", "clip_weights", "lower_bound", "upper_bound")


def _domain(parameter: str) -> tuple[float, float]:
    arrays = ("weight", "grad", "momentum", "mean", "average", "delta", "z", "previous")
    if parameter in arrays:
        return (-1.0, 1.0)
    return _DOMAINS[_DOMAIN_OF.get(parameter, "share")]


def _samples(names: list[str], states: int) -> Samples:
    """Steps of a few shapes, first without what bounds gradients and weights."""

    def case(shape: tuple[int, ...], numbers: int) -> Case:
        return Case((shape,) * (2 + states) + (None,) * numbers)

    numbers = len(names) - 2 - states
    optional = sum(name in _NOT_IN_FIRST_CASE for name in names)
    cases = [case((3, 70), numbers), case((), numbers), case((37,), numbers - optional)]
    domains = tuple(_domain(name) for name in names)
    return Samples(cases, domains, dtypes=FLOATS, ulps=64, absolute=64)


def _rule(states: int = 0) -> Callable[[Callable[..., Any]], Any]:
    """Register an update whose parameters are weight, gradient, `states` arrays, and numbers."""

    def register(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def update(*operands: Value | None) -> tuple[Value, ...]:
            return _computed(function, operands, states)

        return operation(
            name=function.__name__,
            numpy=function,
            public=(),
            samples=_samples(list(inspect.signature(function).parameters), states),
        )(update)

    return register


def _computed(
    function: Callable[..., Any], operands: tuple[Value | None, ...], states: int
) -> tuple[Value, ...]:
    """The rule in a type that is wide enough; each result in the type of what it replaces."""
    weight = operands[0]
    assert weight is not None
    wide = "float64" if weight.dtype == "float64" else "float32"
    results = on_terms(function, [None if v is None else cast(v, wide) for v in operands])
    replaced = (weight, *operands[2 : 2 + states])
    dtypes = [old.dtype for old in replaced if old is not None]
    return tuple(cast(r, dtype) for r, dtype in zip(results, dtypes, strict=True))


def _clipped(x: Any, bound: Any) -> Any:
    return x if bound is None else numpy.minimum(numpy.maximum(x, -bound), bound)


def _norm(x: Any) -> Any:
    return numpy.sqrt(numpy.sum(numpy.square(x)))


# -- gradient descent -----------------------------------------------------------------------------


@_rule()
def sgd_update(weight, grad, lr, wd, rescale_grad=1.0, clip_gradient=None):
    """A step down the gradient."""
    return weight - lr * (_clipped(rescale_grad * grad, clip_gradient) + wd * weight)


@_rule(states=1)
def sgd_mom_update(weight, grad, momentum, lr, wd, decay, rescale_grad=1.0, clip_gradient=None):
    """A step down the gradient that keeps part of the steps before."""
    slope = _clipped(rescale_grad * grad, clip_gradient) + wd * weight
    step = decay * momentum - lr * slope
    return weight + step, step


@_rule(states=1)
def nag_mom_update(weight, grad, momentum, lr, wd, decay, rescale_grad=1.0, clip_gradient=None):
    """Nesterov's momentum: the gradient counts as if the step had been taken."""
    slope = _clipped(rescale_grad * grad, clip_gradient) + wd * weight
    step = decay * momentum - lr * slope
    ahead = weight + decay * step - lr * slope
    # As in MXNet, the momentum has the decay of the new weight in it.
    return ahead, step - lr * wd * (ahead - weight)


@_rule()
def signsgd_update(weight, grad, lr, wd):
    """A step of equal length for every element, down the gradient's sign."""
    return (1 - lr * wd) * weight - lr * numpy.sign(grad)


@_rule(states=1)
def signum_update(
    weight, grad, momentum, lr, wd, decay, wd_lh=0.0, rescale_grad=1.0, clip_gradient=None
):
    """A step of equal length along the sign of the momentum; `wd_lh` decays weights by itself."""
    slope = _clipped(rescale_grad * grad, clip_gradient) + wd * weight
    momentum = decay * momentum - (1 - decay) * slope
    return (1 - lr * wd_lh) * weight + lr * numpy.sign(momentum), momentum


@_rule(states=2)
def dcasgd_update(
    weight, grad, momentum, previous, lr, wd, decay, lamda, rescale_grad=1.0, clip_gradient=None
):
    """Descent that makes up for the delay since the gradient's weight, `previous`."""
    slope = _clipped(rescale_grad * grad, clip_gradient)
    late = lamda * slope * slope * (weight - previous)
    step = decay * momentum - lr * (slope + wd * weight + late)
    return weight + step, step, weight


@operation(public=())
def sgld_update(
    weight: Value, grad: Value, lr: Value, wd: Value, rescale_grad: Value = default(1.0),
    clip_gradient: Value | None = None, key: Key = None,
) -> tuple[Value, ...]:  # fmt: skip
    """Langevin dynamics: half a step down the gradient, and noise of variance `lr`."""
    noise = standard_normal(key, weight.shape, weight.dtype)

    def step(weight, grad, lr, wd, rescale_grad, clip_gradient, noise):
        slope = _clipped(rescale_grad * grad, clip_gradient) + wd * weight
        return weight - lr / 2 * slope + numpy.sqrt(lr) * noise

    operands = (weight, grad, lr, wd, rescale_grad, clip_gradient, noise)
    return _computed(step, operands, 0)


@_rule(states=1)
def accumulate_update(weight, grad, history, rescale_grad=1.0):
    """Adds the gradient to the weight and keeps a copy: an optimiser to test with."""
    weight = weight + rescale_grad * grad
    return weight, weight


# -- steps scaled by what gradients have been -----------------------------------------------------


@_rule(states=2)
def adam_update(
    weight, grad, mean, variance, lr, wd, beta1, beta2, epsilon,
    rescale_grad=1.0, clip_gradient=None,
):  # fmt: skip
    """Adam; `lr` has the correction of the averages' start in it."""
    slope = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    mean = beta1 * mean + (1 - beta1) * slope
    variance = beta2 * variance + (1 - beta2) * slope * slope
    return weight - lr * mean / (numpy.sqrt(variance) + epsilon), mean, variance


@_rule(states=2)
def adamw_update(
    weight, grad, mean, variance, lr, wd, beta1, beta2, epsilon, start1, start2,
    rescale_grad=1.0, clip_gradient=None,
):  # fmt: skip
    """Adam with weights that decay by themselves; `start1` and `start2` are `1 - beta ** t`."""
    slope = _clipped(rescale_grad * grad, clip_gradient)
    mean = beta1 * mean + (1 - beta1) * slope
    variance = beta2 * variance + (1 - beta2) * slope * slope
    ahead = mean / start1 / (numpy.sqrt(variance / start2) + epsilon)
    return weight - lr * (ahead + wd * weight), mean, variance


@_rule(states=1)
def lion_update(
    weight, grad, mean, lr, wd, beta1, beta2, rescale_grad=1.0, clip_gradient=None
):  # fmt: skip
    """A step of equal length for every element, along the sign of gradient and mean together."""
    slope = _clipped(rescale_grad * grad, clip_gradient)
    ahead = numpy.sign(beta1 * mean + (1 - beta1) * slope)
    return weight - lr * (ahead + wd * weight), beta2 * mean + (1 - beta2) * slope


@_rule(states=2)
def adamax_update(
    weight, grad, mean, largest, lr, wd, beta1, beta2, rescale_grad=1.0, clip_gradient=None
):
    """Adam with the largest gradient, slowly forgotten, in place of the variance."""
    slope = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    mean = beta1 * mean + (1 - beta1) * slope
    largest = numpy.maximum(beta2 * largest, numpy.abs(slope))
    return weight - lr * mean / largest, mean, largest


@_rule(states=2)
def nadam_update(
    weight, grad, mean, variance, lr, wd, beta1, beta2, epsilon, grad_share, mean_share,
    variance_scale, rescale_grad=1.0, clip_gradient=None,
):  # fmt: skip
    """Adam with Nesterov's momentum, whose schedule gives the shares of gradient and mean."""
    slope = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    mean = beta1 * mean + (1 - beta1) * slope
    variance = beta2 * variance + (1 - beta2) * slope * slope
    ahead = grad_share * slope + mean_share * mean
    return weight - lr * ahead / (numpy.sqrt(variance * variance_scale) + epsilon), mean, variance


@_rule(states=1)
def adagrad_update(
    weight, grad, history, lr, wd, epsilon, rescale_grad=1.0, clip_gradient=None
):  # fmt: skip
    """Steps that shrink with the sum of all squared gradients."""
    slope = _clipped(rescale_grad * grad, clip_gradient)
    history = history + slope * slope
    return weight - lr * (slope / numpy.sqrt(history + epsilon) + wd * weight), history


@_rule(states=2)
def adadelta_update(
    weight, grad, history, steps, wd, rho, epsilon, rescale_grad=1.0, clip_gradient=None
):
    """Steps as long as earlier ones, compared with earlier gradients: no learning rate."""
    slope = _clipped(rescale_grad * grad, clip_gradient)
    history = rho * history + (1 - rho) * slope * slope
    step = numpy.sqrt(steps + epsilon) / numpy.sqrt(history + epsilon) * slope
    steps = rho * steps + (1 - rho) * step * step
    return weight - step - wd * weight, history, steps


@_rule(states=1)
def rmsprop_update(
    weight, grad, squares, lr, wd, gamma1, epsilon,
    rescale_grad=1.0, clip_gradient=None, clip_weights=None,
):  # fmt: skip
    """Steps scaled by a running mean of squared gradients."""
    slope = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    squares = gamma1 * squares + (1 - gamma1) * slope * slope
    return _clipped(weight - lr * slope / numpy.sqrt(squares + epsilon), clip_weights), squares


@_rule(states=3)
def rmspropalex_update(
    weight, grad, squares, average, delta, lr, wd, gamma1, gamma2, epsilon,
    rescale_grad=1.0, clip_gradient=None, clip_weights=None,
):  # fmt: skip
    """RMSProp with the squares centred on the running mean, and with momentum."""
    slope = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    squares = gamma1 * squares + (1 - gamma1) * slope * slope
    average = gamma1 * average + (1 - gamma1) * slope
    spread = numpy.sqrt(squares - average * average + epsilon)
    delta = gamma2 * delta - lr * slope / spread
    return _clipped(weight + delta, clip_weights), squares, average, delta


@_rule(states=2)
def ftrl_update(
    weight, grad, z, squares, lr, wd, lamda1, beta, rescale_grad=1.0, clip_gradient=None
):
    """Follow the regularised leader: weights that hardly matter become exactly zero."""
    slope = _clipped(rescale_grad * grad, clip_gradient)
    total = squares + slope * slope
    z = z + slope - (numpy.sqrt(total) - numpy.sqrt(squares)) * weight / lr
    shrunk = numpy.sign(z) * numpy.maximum(numpy.abs(z) - lamda1, 0.0)
    return -shrunk / ((beta + numpy.sqrt(total)) / lr + wd), z, total


@_rule(states=3)
def ftml_update(
    weight, grad, distance, variance, z, lr, wd, beta1, beta2, epsilon, start1, start2,
    rescale_grad=1.0, clip_gradient=None,
):  # fmt: skip
    """Follow the moving leader; `start1` and `start2` are `1 - beta ** t`."""
    slope = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    variance = beta2 * variance + (1 - beta2) * slope * slope
    now = start1 / lr * (numpy.sqrt(variance / start2) + epsilon)
    z = beta1 * z + (1 - beta1) * slope - (now - beta1 * distance) * weight
    return -z / now, now, variance, z


# -- steps scaled by the norm of the weight -------------------------------------------------------


@_rule(states=2)
def lamb_update(
    weight, grad, mean, variance, lr, wd, beta1, beta2, epsilon, start1, start2,
    rescale_grad=1.0, clip_gradient=None, lower_bound=None, upper_bound=None,
):  # fmt: skip
    """Adam's direction, and a length in proportion to the weight's, within bounds."""
    slope = _clipped(rescale_grad * grad, clip_gradient)
    mean = beta1 * mean + (1 - beta1) * slope
    variance = beta2 * variance + (1 - beta2) * slope * slope
    ahead = mean / start1 / (numpy.sqrt(variance / start2) + epsilon) + wd * weight
    size, length = _norm(weight), _norm(ahead)
    size = size if lower_bound is None else numpy.maximum(size, lower_bound)
    size = size if upper_bound is None else numpy.minimum(size, upper_bound)
    ratio = numpy.where((size == 0) | (length == 0), 1.0, size / length)
    return weight - lr * ratio * ahead, mean, variance


def _lars_rate(weight, grad, lr, wd, eta, epsilon, rescale_grad=1.0):
    size, slope = _norm(weight), _norm(rescale_grad * grad)
    rate = lr * eta * size / (slope + wd * size + epsilon)
    return numpy.where((size > 0) & (slope > 0), rate, lr)


def _lbsgd_rate(weight, grad, lr, wd):
    size, slope = numpy.sum(numpy.square(weight)), numpy.sum(numpy.square(grad))
    trust = numpy.sqrt(size / (slope + wd * size + 1e-18))
    return lr * numpy.minimum(numpy.maximum(trust, 0.01), 100.0)


def _rate(function: Callable[..., Any], numbers: int, documentation: str) -> Any:
    """Register a learning rate that follows from weight and gradient."""

    @functools.wraps(function)
    def rate(*operands: Value) -> Value:
        return on_terms(function, [cast(v, "float32") for v in operands])[0]

    rate.__doc__ = documentation
    names = list(inspect.signature(function).parameters)
    cases = [Case((shape, shape) + (None,) * numbers) for shape in ((3, 70), (37,), ())]
    samples = Samples(cases, tuple(map(_domain, names)), ("float32",), ulps=64, absolute=64)
    return operation(
        name=function.__name__.lstrip("_"),
        numpy=lambda *operands: numpy.float32(function(*operands)),
        public=(),
        samples=samples,
    )(rate)


lars_rate = _rate(
    _lars_rate, 5, "Layer-wise adaptive rate: in proportion to the weight's norm over the slope's."
)
lbsgd_rate = _rate(_lbsgd_rate, 2, "The rate of large-batch descent, from squared norms.")
