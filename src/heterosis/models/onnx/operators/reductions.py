"""Sums and the like along axes, whole or running, and where the greatest element is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx import tensors
from heterosis.models.onnx.operators.elementwise import divided
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.values import (
    count,
    hosted,
    is_host,
    kind,
    listed,
    module,
    number,
    part,
    place,
    places,
)
from heterosis.runtime.errors import ArgumentError, UnsupportedError

Axes = tuple[int, ...]
Reduce = Callable[[Any, Axes, bool], Any]


# -- of arrays, along axes -------------------------------------------------------------------------


def _sum(x: Any, axes: Axes, keepdims: bool) -> Any:
    if is_host(x):
        return hosted(numpy.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype))
    # Along no axes, adding up would turn -0.0 into 0.0.
    return np.sum(x, axis=axes, keepdims=keepdims) if axes else x


def _product(x: Any, axes: Axes, keepdims: bool) -> Any:
    if is_host(x):
        return hosted(numpy.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype))
    return np.prod(x, axis=axes, keepdims=keepdims) if axes else x


def _extreme(name: str, worst: float) -> Reduce:
    def reduce(x: Any, axes: Axes, keepdims: bool) -> Any:
        of = module(x)
        if kind(x) == "b":
            return reduce(x.astype("uint8"), axes, keepdims).astype("bool")
        if any(x.shape[axis] == 0 for axis in axes):  # of none: what is no better than any
            shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
            rest = [n for i, n in enumerate(x.shape) if i not in axes]
            least = worst
            if kind(x) != "f":
                limits = numpy.iinfo(str(x.dtype))
                least = int(limits.min) if worst < 0 else int(limits.max)
            filling = numpy.array(least, tensors.numpy_dtype(str(x.dtype)))
            of_none = filling if is_host(x) else np.array(filling, dtype=str(x.dtype))
            return of.broadcast_to(of_none, tuple(shape if keepdims else rest))
        return getattr(of, name)(x, axis=axes, keepdims=keepdims)

    return reduce


def _mean(x: Any, axes: Axes, keepdims: bool) -> Any:
    if not axes:
        return x
    if kind(x) == "f":
        return module(x).mean(x, axis=axes, keepdims=keepdims)
    n = count([x.shape[axis] for axis in axes])
    if n == 0:
        raise ArgumentError(f"the mean of no elements of {x.dtype} is not defined.")
    total = _sum(x, axes, keepdims)
    if not is_host(x):
        return divided(total, np.full((), n, dtype=str(x.dtype)))
    exact = x.dtype == object or type(n) is not int
    return divided(total, hosted(n) if exact else numpy.array(n, x.dtype))


def _in_floats(compute: Reduce) -> Reduce:
    """The same for integers: computed in wide floats, and rounded towards zero."""

    def reduce(x: Any, axes: Axes, keepdims: bool) -> Any:
        if kind(x) == "f":
            return compute(x, axes, keepdims)
        return compute(x.astype("float64"), axes, keepdims).astype(str(x.dtype))

    return reduce


def _log_sum_exp(x: Any, axes: Axes, keepdims: bool) -> Any:
    if any(x.shape[axis] == 0 for axis in axes):
        return np.log(_sum(np.exp(x), axes, keepdims))
    most = np.max(x, axis=axes, keepdims=True)
    most = np.where(np.isinf(most), np.zeros_like(most), most)  # inf - inf would be NaN
    logs = np.log(_sum(np.exp(x - most), axes, True)) + most
    rest = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return logs if keepdims else np.reshape(logs, rest)


_maximum, _minimum = _extreme("max", -numpy.inf), _extreme("min", numpy.inf)
_ROWS: tuple[tuple[str, Reduce, int], ...] = (  # since when axes are an input
    ("ReduceSum", _sum, 13),
    ("ReduceProd", _product, 18),
    ("ReduceMax", _maximum, 18),
    ("ReduceMin", _minimum, 18),
    ("ReduceMean", _mean, 18),
    ("ReduceL1", lambda x, axes, keep: _sum(np.abs(x), axes, keep), 18),
    ("ReduceL2", _in_floats(lambda x, axes, keep: np.sqrt(_sum(x * x, axes, keep))), 18),
    ("ReduceSumSquare", lambda x, axes, keep: _sum(x * x, axes, keep), 18),
    ("ReduceLogSum", _in_floats(lambda x, axes, keep: np.log(_sum(x, axes, keep))), 18),
    ("ReduceLogSumExp", _in_floats(_log_sum_exp), 18),
)
_ON_HOST = ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean")


def _enter(name: str, reduce: Reduce, since: int) -> None:
    def of_all(x: Any, axes: list[int] | None, keepdims: int) -> Any:
        found = reduce(x, tuple(places(axes, len(x.shape))), bool(keepdims))
        return hosted(found) if is_host(x) else found

    def by_attribute(x: Any, *, axes: list[int] | None = None, keepdims: int = 1) -> Any:
        return of_all(x, axes, keepdims)

    def by_input(
        x: Any, axes: Host | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Any:
        chosen = [] if axes is None else listed(axes)
        if chosen:
            return of_all(x, chosen, keepdims)
        return of_all(x, [] if noop_with_empty_axes else None, keepdims)

    on_host = name in _ON_HOST
    operator(name, on_host=by_attribute if on_host else None)(by_attribute)
    operator(name, since=since, on_host=by_input if on_host else None)(by_input)


for _name, _reduce, _since in _ROWS:
    _enter(_name, _reduce, _since)


# -- where the greatest is -------------------------------------------------------------------------


def _enter_place(name: str, function: Callable[..., Any]) -> None:
    @operator(name)
    def compute(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        axis = place(axis, len(x.shape))
        if not select_last_index:
            return function(x, axis=axis, keepdims=bool(keepdims)).astype("int64")
        found = function(np.flip(x, axis), axis=axis, keepdims=bool(keepdims)).astype("int64")
        return x.shape[axis] - 1 - found


_enter_place("ArgMax", np.argmax)
_enter_place("ArgMin", np.argmin)


# -- running sums ----------------------------------------------------------------------------------


def _enter_running(name: str, since: int, function: Callable[..., Any], first: int) -> None:
    @operator(name, since=since)
    def compute(x: Any, axis: Host, *, exclusive: int = 0, reverse: int = 0) -> Any:
        at = place(int(number(axis)), len(x.shape))
        if kind(x) == "b":
            raise UnsupportedError(f"{name} of bool.")
        if reverse:
            x = np.flip(x, at)
        if exclusive:  # without the last, behind what a sum of none is
            shape = [1 if i == at else n for i, n in enumerate(x.shape)]
            before = np.full(tuple(shape), first, dtype=str(x.dtype))
            x = np.concatenate([before, part(x, at, 0, x.shape[at] - 1)], axis=at)
        x = function(x, axis=at, dtype=str(x.dtype))
        return np.flip(x, at) if reverse else x


_enter_running("CumSum", 11, np.cumsum, 0)
_enter_running("CumProd", 26, np.cumprod, 1)
