"""The operations: importing a family's module registers its records."""

from heterosis import _core
from heterosis.ops import (
    cast,
    creation,
    diagonals,
    einsum,
    elementwise,
    grids,
    image,
    indexing,
    join,
    legacy,
    linalg,
    linear,
    norms,
    pad,
    products,
    random,
    random_choice,
    real,
    reductions,
    resize,
    shape,
    softmax,
    sorting,
    split,
    statistics,
)
from heterosis.ops.record import REGISTRY
from heterosis.runtime import errors

_ERRORS = (
    "ArgumentError",
    "HeterosisError",
    "IndexingError",
    "LinearAlgebraError",
    "OutOfMemoryError",
    "ShapeError",
)
for _name in _ERRORS:
    _core.set_error_class(_name, getattr(errors, _name))

# The operators of arrays, by the names that the core gives them.
_OPERATORS = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "mod",
    "power",
    "matmul",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "negative",
    "positive",
    "absolute",
    "invert",
    "less",
    "less_equal",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "assign",
]
for _name in _OPERATORS:
    if _name in REGISTRY:
        _core.set_operator(_name, REGISTRY[_name].operation)

__all__ = [
    "REGISTRY",
    "cast",
    "creation",
    "diagonals",
    "einsum",
    "elementwise",
    "grids",
    "image",
    "indexing",
    "join",
    "legacy",
    "linalg",
    "linear",
    "norms",
    "pad",
    "products",
    "random",
    "random_choice",
    "real",
    "reductions",
    "resize",
    "shape",
    "softmax",
    "sorting",
    "split",
    "statistics",
]
