"""Derivatives of reductions, and of scans."""

from __future__ import annotations

import math

from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir import views
from heterosis.ir.primitives.families import Reduction
from heterosis.ir.primitives.reductions import CUMPROD, CUMSUM, MAX, MIN, PROD, SUM
from heterosis.ir.program import ASSEMBLE, INPUT, Value, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops.math.elementwise import add, equal, multiply, select, true_divide
from heterosis.ops.math.reductions import count_along, reduce, with_axes_back
from heterosis.ops.rules import cast, weak, wide


def _repeated(x: Value, step: Step) -> Value:
    """A value of the reduction's result, repeated over what was reduced."""
    shape, axes = step.inputs[0].shape, step.attributes["axes"]
    return views.broadcast(with_axes_back(x, shape, axes), shape)


@adjoint(SUM)
def _sum(step: Step) -> Cotangents:
    return (_repeated(step.cotangent, step),)


@adjoint(PROD)
def _prod(step: Step) -> Cotangents:
    (x,), axes = step.inputs, step.attributes["axes"]
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    order = (*kept, *axes)
    turned = views.transpose(x, order)
    rows = views.reshape(
        turned, (math.prod(x.shape[a] for a in kept), count_along("prod", x, axes))
    )
    others = views.reshape(_others(rows), turned.shape)
    others = views.transpose(others, tuple(order.index(a) for a in range(x.ndim)))
    return (multiply(_repeated(step.cotangent, step), others),)


def _others(rows: Value) -> Value:
    """For each element, the product of all others in its row.

    By halves, multiplying only: what divides by elements is wrong where they are zero, and what
    looks for zeros has no second derivative there.
    """
    length = rows.shape[1]
    if length <= 1:
        return views.broadcast(constant(1.0, rows.dtype), rows.shape)
    half = (length + 1) // 2
    first = _columns(rows, 0, half)
    second = _shifted(rows, 1, half, half, 1.0)
    rest = _others(multiply(first, second))
    of_second = _columns(multiply(rest, first), 0, length - half)
    places = tuple(((0, at), (1, 1)) for at in (0, half))
    parts = (multiply(rest, second), of_second)
    return apply(ASSEMBLE, parts, rows.type, places=places, filled=False)


def _columns(rows: Value, begin: int, end: int) -> Value:
    return views.slice_(rows, (0, begin), (1, 1), (rows.shape[0], end - begin))


def _shifted(x: Value, axis: int, by: int, length: int, fill: float) -> Value:
    """The elements along `axis` from the place `by` on, which may be negative, `length` of them;
    where there are none, `fill`."""
    begin, end = max(by, 0), min(by + length, x.shape[axis])
    at = tuple(begin if a == axis else 0 for a in range(x.ndim))
    ones = (1,) * x.ndim
    kept = views.slice_(x, at, ones, _with_extent(x.shape, axis, end - begin))
    if end - begin == length:
        return kept
    place = tuple(begin - by if a == axis else 0 for a in range(x.ndim))
    type_ = TensorType(_with_extent(x.shape, axis, length), x.dtype)
    operands = (constant(fill, x.dtype), kept)
    return apply(ASSEMBLE, operands, type_, places=((place, ones),), filled=True)


def _with_extent(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])


@adjoint(MAX)
def _max(step: Step) -> Cotangents:
    return _extreme(step, MAX)


@adjoint(MIN)
def _min(step: Step) -> Cotangents:
    return _extreme(step, MIN)


def _extreme(step: Step, primitive: Reduction) -> Cotangents:
    """Elements that share the extreme value share its cotangent.

    Where they are computed again, so is the extreme, of these very numbers: of sums that are
    rounded in another order, none would equal the one that was found before.
    """
    (x,), (y,), g = step.inputs, step.outputs, step.cotangent
    if x.node.primitive is not INPUT:
        y = reduce(primitive, x, step.attributes["axes"], False)
    reached = equal(x, _repeated(y, step))
    count = reduce(SUM, cast(reached, wide(g.dtype)), step.attributes["axes"], False)
    share = cast(true_divide(cast(g, count.dtype), count), g.dtype)
    return (select(reached, _repeated(share, step), weak(0.0)),)


@adjoint(CUMSUM)
def _cumsum(step: Step) -> Cotangents:
    (axis,) = step.attributes["axes"]
    return (_from_behind(step.cotangent, axis),)


@adjoint(CUMPROD)
def _cumprod(step: Step) -> Cotangents:
    (x,), (y,), (axis,) = step.inputs, step.outputs, step.attributes["axes"]
    length = x.shape[axis]
    if length == 0:
        return (step.cotangent,)
    before = _shifted(y, axis, -1, length, 1.0)
    # What an element's successors pass back: total[i] = g[i] + x[i + 1] * total[i + 1], for all i
    # at once in steps of 1, 2, 4, ... No division, as elements may be zero.
    total, factor, step_ = step.cotangent, _shifted(x, axis, 1, length, 0.0), 1
    while step_ < length:
        total = add(total, multiply(factor, _shifted(total, axis, step_, length, 0.0)))
        factor = multiply(factor, _shifted(factor, axis, step_, length, 0.0))
        step_ *= 2
    return (multiply(before, total),)


def _from_behind(x: Value, axis: int) -> Value:
    """For each element, the sum of itself and all that follow along `axis`."""
    turned = _reversed(x, axis)
    return _reversed(apply(CUMSUM, (turned,), TensorType(x.shape, x.dtype), axes=(axis,)), axis)


def _reversed(x: Value, axis: int) -> Value:
    starts = tuple(max(n - 1, 0) if a == axis else 0 for a, n in enumerate(x.shape))
    steps = tuple(-1 if a == axis else 1 for a in range(x.ndim))
    return views.slice_(x, starts, steps, x.shape)
