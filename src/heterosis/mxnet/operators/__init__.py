"""MXNet's operators: thin names over the operations of `np` and `npx`, a row each, by family.

Where their meaning differs from NumPy's (reshape's codes, 0 and 1 from comparisons, indices as
floats), it is kept. `table` says what a row has, `lookup` finds operators by the names in files,
`writing` is how the calls of a captured program are written as operators.
"""

from heterosis.mxnet.operators import (
    arithmetic,
    contrib,
    control,
    conversions,
    creation,
    elementwise,
    indexing,
    layers,
    linalg,
    outputs,
    random,
    reductions,
    shapes,
    subgraphs,
    vision,
)
from heterosis.mxnet.operators.table import OPERATORS

__all__ = [
    "OPERATORS",
    "arithmetic",
    "contrib",
    "control",
    "conversions",
    "creation",
    "elementwise",
    "indexing",
    "layers",
    "linalg",
    "outputs",
    "random",
    "reductions",
    "shapes",
    "subgraphs",
    "vision",
]
