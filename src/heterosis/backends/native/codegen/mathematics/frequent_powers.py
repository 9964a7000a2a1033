"""power, by a few multiplications or a root for the exponents that people write.

An element's power has the same bits whatever stands in the other lanes of its vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from heterosis.backends.native.codegen.emit.builder import I1, Value, constant
from heterosis.backends.native.codegen.mathematics import powers
from heterosis.backends.native.codegen.mathematics.compensated import exact_product, residual
from heterosis.backends.native.codegen.mathematics.number import Number, fma, where

INFINITY = float("inf")


def _square(x: Number) -> Number:
    return x * x


def _cube(x: Number) -> Number:
    least, most = x.by_dtype(2.0**-33, 2.0**-300), x.by_dtype(2.0**42, 2.0**340)
    size = abs(x)
    rare = ~((size > least) & (size < most))
    (value,) = x.f.if_else(
        rare.any().value,
        lambda: [_any_cube(x, size < least).value],
        lambda: [_moderate_cube(x).value],
        rarely=True,
    )
    return x.made(value)


def _moderate_cube(x: Number) -> Number:
    """The cube where nothing on the way is infinite, or too small to be exact."""
    square, square_lost = exact_product(x, x)
    cube, lost = exact_product(square, x)
    return cube + fma(square_lost, x, lost)


def _any_cube(x: Number, is_small: Number) -> Number:
    """The same with small numbers scaled up, and what is zero or infinite left."""
    near = where(is_small, x * x.by_dtype(2.0**40, 2.0**340), x)
    cube = near * near * near
    plain = (cube == 0.0) | (abs(cube) == INFINITY)
    cube = where(plain, cube, _moderate_cube(near))
    return where(is_small, cube * x.by_dtype(2.0**-120, 2.0**-1020), cube)


def _root(x: Number) -> Number:
    """As a power, that of negative infinity is positive, and so is that of -0."""
    return where(x == -INFINITY, INFINITY, (x + 0.0).sqrt())


def _inverse_root(x: Number) -> Number:
    # Far above the least numbers, below which residuals would be lost.
    is_small, up = x < x.by_dtype(2.0**-60, 2.0**-900), x.by_dtype(2.0**64, 2.0**128)
    near = where(is_small, x * up, x) + 0.0
    root = near.sqrt()
    inverse = 1.0 / root
    # What the root lacks of `x`, and the inverse of 1, to the first order.
    lacking = residual(x.constant(1.0), root, inverse)
    of_root = residual(near, root, root) * inverse * inverse
    better = fma(inverse, fma(of_root, -0.5, lacking), inverse)
    inverse = where((inverse > 0.0) & (inverse < INFINITY), better, inverse)
    inverse = where(is_small, inverse * x.by_dtype(2.0**32, 2.0**64), inverse)
    return where(x == -INFINITY, 0.0, inverse)


def _inverse(x: Number) -> Number:
    return 1.0 / x


FREQUENT: dict[float, Callable[[Number], Number]] = {
    2.0: _square,
    3.0: _cube,
    0.5: _root,
    -1.0: _inverse,
    -0.5: _inverse_root,
}


def power(x: Number, y: Number) -> Number:
    """x to the power y, with every special case of IEEE 754's pow."""
    f, lanes = x.f, x.type.lanes
    first = y.lane(0) if lanes else y
    if not lanes or f.is_uniform(y.value):
        alike, mixed = _is_frequent(first).value, None
    else:
        alike, mixed = f.if_else(
            _may_be_frequent(y).any().value,
            lambda: _kinds(y, first),
            lambda: [constant(I1, 0)] * 2,
            rarely=True,
        )

    def any_exponents() -> list[Value]:
        found = powers.power(x, y)
        if mixed is None:
            return [found.value]
        return f.if_else(mixed, lambda: [_mixed(x, y, found)], lambda: [found.value], rarely=True)

    (value,) = f.if_else(alike, lambda: _of_one(x, first, tuple(FREQUENT)), any_exponents)
    return x.made(value)


def _is_frequent(y: Number) -> Number:
    return reduce(or_, (y == exponent for exponent in FREQUENT))


def _may_be_frequent(y: Number) -> Number:
    """One test, before those for each of them: they all have few bits."""
    fraction = (1 << 51) - 1 if y.double else (1 << 22) - 1
    return (y.bits & fraction) == 0


def _kinds(y: Number, first: Number) -> list[Value]:
    """Whether all lanes have one frequent exponent, the `first` one, and whether any has one."""
    each = _is_frequent(y)
    one = y == y.made(y.f.splat(first.value, y.type.lanes))
    return [(each & one).all().value, each.any().value]


def _of_one(x: Number, y: Number, among: Sequence[float]) -> list[Value]:
    """x to the power of one number, which is `among` these."""
    exponent, *others = among
    found = FREQUENT[exponent]
    if not others:
        return [found(x).value]
    return x.f.if_else(
        (y == exponent).value, lambda: [found(x).value], lambda: _of_one(x, y, others)
    )


def _mixed(x: Number, y: Number, found: Number) -> Value:
    """What has been `found`, but for the lanes with a frequent exponent."""
    for exponent, of_exponent in FREQUENT.items():
        found = where(y == exponent, of_exponent(x), found)
    return found.value
