"""MXNet's operators: thin names over the operations of `np` and `npx`, in files by family.

Where their meaning differs from NumPy's (reshape's codes, 0 and 1 from comparisons, indices as
floats), it is kept.
"""

from heterosis.mxnet.operators import (
    creation,
    elementwise,
    layers,
    linalg,
    outputs,
    reductions,
    shapes,
)
from heterosis.mxnet.operators.operator import OPERATORS

__all__ = [
    "OPERATORS",
    "creation",
    "elementwise",
    "layers",
    "linalg",
    "outputs",
    "reductions",
    "shapes",
]
