"""The operations: importing a family's module registers its records."""

from heterosis import _core
from heterosis.ops.array import (
    counting,
    creation,
    diagonals,
    grids,
    indexing,
    join,
    legacy,
    pad,
    segments,
    shape,
    sorting,
    split,
    statistics,
)
from heterosis.ops.control import flow
from heterosis.ops.linalg import (
    einsum,
    factorizations,
    gradients,
    matmul,
    matrix_functions,
    products,
)
from heterosis.ops.math import cast, elementwise, real, reductions
from heterosis.ops.nn import (
    activations,
    attention,
    convolution,
    ctc,
    dropout,
    layers,
    losses,
    normalization,
    pooling,
    rnn,
    softmax,
)
from heterosis.ops.random import choice, draws
from heterosis.ops.record import REGISTRY
from heterosis.ops.training import optimizers
from heterosis.ops.vision import image, multibox, regions, resize
from heterosis.runtime import errors, raising

_ERRORS = (
    "ArgumentError",
    "CaptureError",
    "CommunicationError",
    "HeterosisError",
    "IndexingError",
    "LinearAlgebraError",
    "OutOfMemoryError",
    "ShapeError",
)
for _name in _ERRORS:
    _core.set_error_class(_name, getattr(errors, _name))
_core.set_hook("raised", raising.exception)

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
    "activations",
    "attention",
    "cast",
    "choice",
    "convolution",
    "counting",
    "creation",
    "ctc",
    "diagonals",
    "draws",
    "dropout",
    "einsum",
    "elementwise",
    "factorizations",
    "flow",
    "gradients",
    "grids",
    "image",
    "indexing",
    "join",
    "layers",
    "legacy",
    "losses",
    "matmul",
    "matrix_functions",
    "multibox",
    "normalization",
    "optimizers",
    "pad",
    "pooling",
    "products",
    "real",
    "reductions",
    "regions",
    "resize",
    "rnn",
    "segments",
    "shape",
    "softmax",
    "sorting",
    "split",
    "statistics",
]
