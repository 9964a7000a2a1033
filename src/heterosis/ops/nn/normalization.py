"""Normalisation by mean and variance: of batches, layers, groups and single images.

Half-precision data are normalised in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant, extent
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.math import reductions as rd
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, floating, wide
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ShapeError, check_axis

_DTYPES = ("float16", "float32", "float64")

# -- shared steps ---------------------------------------------------------------------------------


def _moments(x: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """Mean and variance over `axes`, which stay as extents of 1."""
    mean = rd.mean(x, axes, None, True)
    return mean, rd.mean(e.square(e.subtract(x, mean)), axes, None, True)


def _inverse_deviation(variance: Value, eps: float) -> Value:
    return r.rsqrt(e.add(variance, constant(eps, variance.dtype)))


def _along(name: str, what: str, given: Value, x: Value, axis: int) -> Value:
    """One number for each place along `axis`, standing there."""
    if given.shape != (x.shape[axis],):
        raise ShapeError(
            f"{name}: {what} of shape {given.shape} for data of shape {x.shape} and axis {axis}; "
            f"expected ({x.shape[axis]},)."
        )
    return cast(
        views.reshape(given, tuple(n if a == axis else 1 for a, n in enumerate(x.shape))),
        wide(x.dtype),
    )


def _scaled(x: Value, mean: Value, inverse: Value, gamma: Value | None, beta: Value) -> Value:
    """`(x - mean) * inverse * gamma + beta`; gamma None is 1."""
    scale = inverse if gamma is None else e.multiply(inverse, gamma)
    return e.add(e.multiply(e.subtract(x, mean), scale), beta)


def _pull_normalized(
    g: Value, y: Value, x: Value, mean: Value, variance: Value, beta: Value, gamma: Value | None,
    axes: tuple[int, ...], repeated: tuple[int, ...], eps: float,
) -> Any:  # fmt: skip
    # Neither a number added to x nor a factor changes the result: of what x receives, the mean and
    # the part along the result are taken away. In batches, beta and gamma receive just these.
    inverse = _inverse_deviation(variance, eps)
    normal = e.multiply(e.subtract(x, mean), inverse)
    to_beta, to_gamma = (rd.sum(v, repeated, None, True) for v in (g, e.multiply(g, normal)))
    count = extent(rd.count_along("normalized", x, axes))
    if repeated == axes:
        scale = inverse if gamma is None else e.multiply(inverse, gamma)
        shift, slope = (e.true_divide(v, count) for v in (to_beta, to_gamma))
    else:
        scale, g = inverse, g if gamma is None else e.multiply(g, gamma)
        products = (g, e.multiply(g, normal))
        shift, slope = (e.true_divide(rd.sum(v, axes, None, True), count) for v in products)
    to_x = e.multiply(e.subtract(g, e.add(shift, e.multiply(normal, slope))), scale)
    return to_x, None, None, to_beta, *([] if gamma is None else [to_gamma])


@operation(public=(), gradient=_pull_normalized)
def normalized(
    x: Value,
    mean: Value,
    variance: Value,
    beta: Value,
    gamma: Value | None = None,
    axes: tuple[int, ...] = (),
    repeated: tuple[int, ...] = (),
    eps: float = 0.0,
) -> Value:
    """`x` with its own `mean` and `variance` along `axes` made 0 and 1, times `gamma` plus `beta`,
    which are the same along `repeated`.

    What the mean and the variance receive goes to `x` at once.
    """
    for given in (beta,) if gamma is None else (beta, gamma):
        alike = tuple(1 if a in repeated else n for a, n in enumerate(x.shape))
        assert views.are_equal(given.shape, alike), "the gradient relies on that"
    return _scaled(x, mean, _inverse_deviation(variance, eps), gamma, beta)


# -- batches --------------------------------------------------------------------------------------


def _batch_reference(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    eps: Any = 1e-3,
    fix_gamma: Any = True,
    axis: Any = 1,
    training: Any = False,
    use_global_stats: Any = False,
) -> Any:
    others = tuple(a for a in range(data.ndim) if a != axis % data.ndim)

    def stand(v: Any) -> Any:
        return numpy.expand_dims(v, others)

    mean, variance = moving_mean, moving_var
    if training and not use_global_stats:
        mean, variance = data.mean(others), data.var(others)
    scale = (1 if fix_gamma else stand(gamma)) / numpy.sqrt(stand(variance) + eps)
    out = (data - stand(mean)) * scale + stand(beta)
    return (mean, variance, out) if training and not use_global_stats else out


def _batch_cases() -> list[Case]:
    vectors = [(3,)] * 4
    return [
        Case(((4, 3, 5), *vectors)),
        Case(((4, 3), *vectors), {"fix_gamma": False, "training": True}),
        Case(((4, 3, 5), *vectors), {"fix_gamma": False, "training": True, "eps": 0.1}),
        Case(((4, 5, 3), *vectors), {"axis": -1, "fix_gamma": False, "training": True}),
        Case(((4, 3, 5), *vectors), {"use_global_stats": True, "training": True}),
    ]


@operation(
    numpy=_batch_reference,
    public=(),
    names={"mxnet": "BatchNorm"},
    samples=Samples(
        _batch_cases(),
        ((-4, 4), (0.5, 2), (-1, 1), (-1, 1), (0.5, 2)),
        dtypes=_DTYPES,
        ulps=16,
        absolute=16,
    ),
)
def batch_norm(
    data: Value,
    gamma: Value,
    beta: Value,
    moving_mean: Value,
    moving_var: Value,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    training: bool = False,
) -> Value | tuple[Value, Value, Value]:
    """`data` with mean 0 and variance 1 for each place along `axis`, times `gamma` (1 if
    `fix_gamma`) plus `beta`.

    In `training`, unless `use_global_stats`: the batch's mean, its variance, and the result; what
    `momentum` then does to the moving ones is the caller's part. Else the result, by the moving
    ones. With `output_mean_var`, the result is followed by the mean and `1 / sqrt(var + eps)`.
    """
    axis = check_axis("batch_norm", axis, data.ndim)
    given = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    stand = {what: _along("batch_norm", what, v, data, axis) for what, v in given.items()}
    x = cast(data, wide(data.dtype))
    mean, variance = stand["moving_mean"], stand["moving_var"]
    by_batch = training and not use_global_stats
    if by_batch:
        others = tuple(a for a in range(x.ndim) if a != axis)
        mean, variance = _moments(x, others)
    inverse = _inverse_deviation(variance, eps)
    beta, scale = stand["beta"], None if fix_gamma else stand["gamma"]
    if by_batch:
        out = normalized(x, mean, variance, beta, scale, others, others, eps)
    else:
        out = _scaled(x, mean, inverse, scale, beta)
    out = cast(out, floating(data.dtype))
    flat_mean, flat_variance, flat_inverse = (
        views.reshape(v, (data.shape[axis],)) for v in (mean, variance, inverse)
    )
    statistics = (flat_mean, flat_variance) if by_batch else ()
    more = (flat_mean, flat_inverse) if output_mean_var else ()
    return (*statistics, out, *more) if statistics or more else out


@operation(
    numpy=lambda moving, latest, momentum: moving * momentum + latest * (1 - momentum),
    public=(),
    samples=Samples([Case(((5,), (5,)), {"momentum": 0.9})], dtypes=_DTYPES),
)
def moving_average(moving: Value, latest: Value, momentum: Value) -> Value:
    """`moving` brought nearer to `latest`, by one part in `1 / (1 - momentum)`."""
    kept = cast(momentum, latest.dtype)
    fresh = e.subtract(constant(1.0, latest.dtype), kept)
    found = e.add(e.multiply(cast(moving, latest.dtype), kept), e.multiply(latest, fresh))
    return cast(found, moving.dtype)


# -- single examples ------------------------------------------------------------------------------


def _layer_reference(
    data: Any, gamma: Any, beta: Any, axis: Any = -1, eps: Any = 1e-5, output_mean_var: Any = False
) -> Any:
    mean = data.mean(axis, keepdims=True)
    deviation = numpy.sqrt(data.var(axis, keepdims=True) + eps)
    shape = [1] * data.ndim
    shape[axis] = -1
    out = (data - mean) / deviation * gamma.reshape(shape) + beta.reshape(shape)
    return (out, mean, deviation) if output_mean_var else out


_SCALED: dict[str, Any] = {
    "domain": ((-4, 4), (0.5, 2), (-1, 1)),
    "dtypes": _DTYPES,
    "ulps": 16,
    "absolute": 16,
}


@operation(
    numpy=_layer_reference,
    public=("npx",),
    names={"mxnet": "LayerNorm", "onnx": "LayerNormalization"},
    samples=Samples(
        (
            Case(((3, 70), (70,), (70,))),
            Case(((2, 3, 4), (3,), (3,)), {"axis": 1, "output_mean_var": True}),
            Case(((2, 3, 4), (4,), (4,)), {"eps": 0.1}),
        ),
        **_SCALED,
    ),
)
def layer_norm(
    data: Value,
    gamma: Value,
    beta: Value,
    axis: int = -1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Value | tuple[Value, Value, Value]:
    """`data` with mean 0 and variance 1 along `axis`, times `gamma` plus `beta`; with
    `output_mean_var`, also the mean and `sqrt(var + eps)`."""
    axis = check_axis("layer_norm", axis, data.ndim)
    gamma, beta = (
        _along("layer_norm", what, v, data, axis) for what, v in (("gamma", gamma), ("beta", beta))
    )
    x = cast(data, wide(data.dtype))
    mean, variance = _moments(x, (axis,))
    dtype = floating(data.dtype)
    others = tuple(a for a in range(x.ndim) if a != axis)
    out = cast(normalized(x, mean, variance, beta, gamma, (axis,), others, eps), dtype)
    if not output_mean_var:
        return out
    deviation = r.sqrt(e.add(variance, constant(eps, x.dtype)))
    return out, cast(mean, dtype), cast(deviation, dtype)


def _root_mean_square_reference(
    data: Any, gamma: Any = None, axis: Any = -1, eps: Any = 1e-6
) -> Any:
    scaled = data / numpy.sqrt(numpy.mean(numpy.square(data), axis, keepdims=True) + eps)
    shape = [1] * data.ndim
    shape[axis] = -1
    return scaled if gamma is None else scaled * gamma.reshape(shape)


@operation(
    numpy=_root_mean_square_reference,
    public=("npx",),
    names={"onnx": "RMSNormalization"},
    samples=Samples(
        (
            Case(((3, 70), (70,))),
            Case(((3, 70),)),
            Case(((2, 3, 4), (3,)), {"axis": 1}),
            Case(((2, 3, 4), (4,)), {"eps": 0.1}),
        ),
        **_SCALED | {"domain": ((-4, 4), (0.5, 2))},
    ),
)
def rms_norm(data: Value, gamma: Value | None = None, axis: int = -1, eps: float = 1e-6) -> Value:
    """`data` with a mean square of 1 along `axis`, times `gamma`."""
    axis = check_axis("rms_norm", axis, data.ndim)
    x = cast(data, wide(data.dtype))
    square = rd.mean(e.square(x), (axis,), None, True)
    found = e.multiply(x, _inverse_deviation(square, eps))
    if gamma is not None:
        found = e.multiply(found, _along("rms_norm", "gamma", gamma, data, axis))
    return cast(found, floating(data.dtype))


def _group_reference(data: Any, gamma: Any, beta: Any, num_groups: Any = 1, eps: Any = 1e-5) -> Any:
    n, c = data.shape[:2]
    apart = data.reshape(n, num_groups, -1)
    normal = (apart - apart.mean(-1, keepdims=True)) / numpy.sqrt(
        apart.var(-1, keepdims=True) + eps
    )
    shape = (c, *(1 for _ in data.shape[2:]))
    gamma, beta = (numpy.repeat(v, c // len(v)).reshape(shape) for v in (gamma, beta))
    return normal.reshape(data.shape) * gamma + beta


@operation(
    numpy=_group_reference,
    public=(),
    names={"mxnet": "GroupNorm"},
    samples=Samples(
        (
            Case(((2, 6, 5), (2,), (2,)), {"num_groups": 2}),
            Case(((2, 6, 5), (6,), (6,)), {"num_groups": 3}),
            Case(((2, 3, 2, 2), (1,), (1,))),
        ),
        **_SCALED,
    ),
)
def group_norm(
    data: Value,
    gamma: Value,
    beta: Value,
    num_groups: int = 1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Value | tuple[Value, ...]:
    """`data` (batch, channels, ...) with mean 0 and variance 1 in each of `num_groups` groups of
    channels, times `gamma` plus `beta`, which have a number for each group or for each channel;
    with `output_mean_var`, also the mean and `sqrt(var + eps)` of the groups."""
    channels = data.shape[1] if data.ndim > 1 else 0
    if num_groups < 1 or not channels or channels % num_groups:
        raise ShapeError(
            f"group_norm: {num_groups} groups for data of shape {data.shape}; expected "
            "(batch, channels, ...) with a number of channels that they divide."
        )
    batch, members = data.shape[0], channels // num_groups
    apart = (batch, num_groups, members, math.prod(data.shape[2:]))
    x = views.reshape(cast(data, wide(data.dtype)), apart)
    gamma, beta = (
        _of_channels(what, v, num_groups, members, x.dtype)
        for what, v in (("gamma", gamma), ("beta", beta))
    )
    mean, variance = _moments(x, (2, 3))
    out = normalized(x, mean, variance, beta, gamma, (2, 3), (0, 3), eps)
    dtype = floating(data.dtype)
    out = views.reshape(cast(out, dtype), data.shape)
    if not output_mean_var:
        return out
    deviation = r.sqrt(e.add(variance, constant(eps, x.dtype)))
    return (out, *(views.reshape(cast(v, dtype), apart[:2]) for v in (mean, deviation)))


def _of_channels(what: str, given: Value, groups: int, members: int, dtype: str) -> Value:
    """One number for each channel, standing there."""
    if given.shape not in ((groups,), (groups * members,)):
        raise ShapeError(
            f"group_norm: {what} of shape {given.shape}; expected ({groups},), one number for each "
            f"group, or ({groups * members},), one for each channel."
        )
    apart = views.reshape(given, (1, groups, given.size // groups, 1))
    return cast(views.broadcast(apart, (1, groups, members, 1)), dtype)


def _instance_reference(data: Any, gamma: Any, beta: Any, eps: Any = 1e-3) -> Any:
    axes = tuple(range(2, data.ndim))
    normal = (data - data.mean(axes, keepdims=True)) / numpy.sqrt(
        data.var(axes, keepdims=True) + eps
    )
    shape = (-1, *(1 for _ in axes))
    return normal * gamma.reshape(shape) + beta.reshape(shape)


@operation(
    numpy=_instance_reference,
    public=(),
    names={"mxnet": "InstanceNorm", "onnx": "InstanceNormalization"},
    samples=Samples(
        (Case(((2, 3, 37), (3,), (3,))), Case(((2, 3, 4, 5), (3,), (3,)), {"eps": 0.1})), **_SCALED
    ),
)
def instance_norm(data: Value, gamma: Value, beta: Value, eps: float = 1e-3) -> Value:
    """`data` (batch, channels, ...) with mean 0 and variance 1 in each channel of each example,
    times `gamma` plus `beta`."""
    if data.ndim < 3:
        raise ShapeError(
            f"instance_norm: data of shape {data.shape}; expected (batch, channels, ...)."
        )
    gamma, beta = (
        _along("instance_norm", what, v, data, 1) for what, v in (("gamma", gamma), ("beta", beta))
    )
    x = cast(data, wide(data.dtype))
    axes = tuple(range(2, x.ndim))
    mean, variance = _moments(x, axes)
    out = normalized(x, mean, variance, beta, gamma, axes, (0, *axes), eps)
    return cast(out, floating(data.dtype))
