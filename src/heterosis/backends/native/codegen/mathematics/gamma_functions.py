"""The gamma family, each in the way that suits its precision."""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.gamma_double import gamma_double, gammaln_double
from heterosis.backends.native.codegen.mathematics.gamma_single import (
    digamma_double,
    gamma_single,
    gammaln_single,
)
from heterosis.backends.native.codegen.mathematics.number import Number


def gamma(x: Number) -> Number:
    """The gamma function; NaN at negative integers."""
    return gamma_double(x) if x.double else gamma_single(x.to_double()).to_single()


def gammaln(x: Number) -> Number:
    """The logarithm of the gamma function's magnitude."""
    return gammaln_double(x) if x.double else gammaln_single(x.to_double()).to_single()


def digamma(x: Number) -> Number:
    """The slope of `gammaln`; NaN at negative integers."""
    return digamma_double(x) if x.double else digamma_double(x.to_double()).to_single()
