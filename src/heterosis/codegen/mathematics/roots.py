"""sqrt and its inverse."""

from __future__ import annotations

from heterosis.codegen.mathematics.number import Number


def sqrt(x: Number) -> Number:
    """Square root, rounded once."""
    return x.sqrt()


def rsqrt(x: Number) -> Number:
    """1 / sqrt(x)."""
    return 1.0 / x.sqrt()
