"""Derivatives of copies and conversions."""

from __future__ import annotations

from heterosis.autograd.rules.table import (
    Cotangents,
    Step,
    adjoint,
    elementwise_adjoints,
    piecewise_constant,
)
from heterosis.ir.primitives.conversions import COPY, NEAREST, conversion
from heterosis.ir.types import DTYPES, FLOATS, is_float
from heterosis.ops.rules import cast
from heterosis.passes.halves import nearest

elementwise_adjoints({COPY: lambda g, y, x: g, NEAREST: lambda g, y, x: nearest(g)})


@adjoint(*map(conversion, FLOATS))
def _to_float(step: Step) -> Cotangents:
    (x,) = step.inputs
    return (cast(step.cotangent, x.dtype) if is_float(x.dtype) else None,)


piecewise_constant(*(conversion(dtype) for dtype in DTYPES if not is_float(dtype)))
