"""Derivatives of what a program checks as it runs."""

from __future__ import annotations

from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir.primitives.checks import REQUIRE


@adjoint(REQUIRE)
def _require(step: Step) -> Cotangents:
    return None, step.cotangent
