"""Operations that combine elements along axes."""

from __future__ import annotations

import numpy

from heterosis.codegen import reducers
from heterosis.ir import views
from heterosis.ir.program import Reduction, Value, apply, extent
from heterosis.ir.types import TensorType
from heterosis.ops.elementwise import true_divide
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, floating
from heterosis.ops.samples import Samples, reduction_cases
from heterosis.runtime.errors import check_axes

Axes = "int | tuple[int, ...] | None"

_SUM = Reduction("sum", reducers.SUM)
_MAX = Reduction("max", reducers.MAX)


def reduce(primitive: Reduction, x: Value, axis: Axes, keepdims: bool) -> Value:
    """`x` reduced along `axis`, which stays as an extent of 1 if `keepdims`."""
    axes = check_axes(primitive.name, axis, x.ndim)
    if not axes:
        return x
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    result = apply(primitive, (x,), TensorType(shape, x.dtype), axes=axes)
    if not keepdims:
        return result
    return views.reshape(result, tuple(1 if a in axes else n for a, n in enumerate(x.shape)))


@operation(
    numpy=numpy.sum,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_sum"},
    samples=Samples(reduction_cases(dtype=("float64", "int64")), absolute=400),
)
def sum(a, axis: Axes = None, dtype: str | None = None, keepdims: bool = False):
    """The sum of elements along `axis`; of all, without one."""
    dtype = dtype or ("int64" if a.dtype == "bool" else a.dtype)
    return reduce(_SUM, cast(a, dtype), axis, keepdims)


@operation(
    numpy=numpy.max,
    public=("np", "ndarray"),
    aliases=("amax",),
    names={"mxnet": "_npi_max"},
    samples=Samples(reduction_cases()),
)
def max(a, axis: Axes = None, keepdims: bool = False):
    """The largest element along `axis`; NaN if any is."""
    return reduce(_MAX, a, axis, keepdims)


@operation(
    numpy=numpy.mean,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_mean"},
    samples=Samples(reduction_cases(), absolute=20),
)
def mean(a, axis: Axes = None, dtype: str | None = None, keepdims: bool = False):
    """The arithmetic mean along `axis`."""
    dtype = dtype or floating(a.dtype)
    total = reduce(_SUM, cast(a, dtype), axis, keepdims)
    axes = check_axes("mean", axis, a.ndim)
    count = 1
    for i in axes:
        count *= a.shape[i]
    return true_divide(total, extent(count))
