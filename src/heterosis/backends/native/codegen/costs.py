"""How fast kernels are, roughly, for the decision of what is worth sharing among threads:
floating-point operations a nanosecond, on one thread of a processor of today."""

from __future__ import annotations

PRODUCT_FLOPS = 50.0  # whose operands are packed, or stand in the cache
RECURRENT_FLOPS = 30.0  # products of a few rows at a time
LAPACK_FLOPS = 8.0  # factorisations of small matrices
