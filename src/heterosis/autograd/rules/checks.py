"""Derivatives of what a program checks as it runs."""

from __future__ import annotations

from heterosis.autograd.rules.table import Cotangents, Step, adjoint, piecewise_constant
from heterosis.ir.primitives.checks import CHECK_INDICES, REQUIRE


@adjoint(REQUIRE)
def _require(step: Step) -> Cotangents:
    return None, step.cotangent


# Indices may be floats, of which fractions are cut off.
piecewise_constant(CHECK_INDICES)
