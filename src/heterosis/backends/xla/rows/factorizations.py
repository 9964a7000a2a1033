"""Factorisations of matrices: LAPACK's work, which XLA has on some machines only."""

from __future__ import annotations

from heterosis.backends.xla.tables import REFUSED
from heterosis.ir.primitives import factorizations as f

_LAPACK = (
    "Matrices are factored by LAPACK, which this back end does not call. Leave what factors, "
    "solves or inverts matrices out of what you hybridize with backend='xla', or hybridize it for "
    "'native'."
)

for _primitive in (
    f.CHOLESKY, f.LU, f.INVERSE, f.SOLVE, *f.SYMMETRIC.values(), *f.SYMMETRIC_VALUES.values(),
    f.GENERAL, f.GENERAL_VALUES, f.SINGULAR_VALUES, f.SINGULAR, f.SINGULAR_FULL, f.ORTHOGONAL,
    f.REFLECTORS,
):  # fmt: skip
    REFUSED[_primitive] = _LAPACK
