"""`F` in `hybrid_forward`: `F.np`, `F.npx`, and the operators by their names in symbol files.

The operators are thin names over the operations of `np` and `npx`; where their meaning differs
from NumPy's (reshape's codes, 0 and 1 from comparisons, indices as floats), it is kept.
"""

from types import SimpleNamespace as _SimpleNamespace

from heterosis import np as np
from heterosis import npx as npx
from heterosis.ndarray import (
    contrib,
    creation,
    elementwise,
    layers,
    outputs,
    random,
    reductions,
    shapes,
)
from heterosis.ndarray import linalg as _linalg  # noqa: F401 - the name is that of its operators
from heterosis.ndarray import ndarray as ndarray
from heterosis.ndarray.ndarray import *
from heterosis.ndarray.operator import OPERATORS as _OPERATORS
from heterosis.runtime.arguments import check_members as _check_members

globals().update(_OPERATORS)


def _family(prefix: str) -> _SimpleNamespace:
    """Operators whose names start alike, without that start."""
    return _SimpleNamespace(
        **{
            name.removeprefix(prefix): run
            for name, run in _OPERATORS.items()
            if name.startswith(prefix)
        }
    )


linalg = _family("linalg_")

_check_members(globals())

__all__ = [
    "contrib",
    "creation",
    "elementwise",
    "layers",
    "linalg",
    "ndarray",
    "np",
    "npx",
    "outputs",
    "random",
    "reductions",
    "shapes",
]
__all__ += ndarray.__all__
