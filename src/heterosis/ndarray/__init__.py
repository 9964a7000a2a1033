"""`F` in `hybrid_forward`: `F.np`, `F.npx`, and the operators by their names in symbol files.

The operators are thin names over the operations of `np` and `npx`; where their meaning differs
from NumPy's (reshape's codes, 0 and 1 from comparisons, indices as floats), it is kept.
"""

from types import SimpleNamespace as _SimpleNamespace

from heterosis import np as np
from heterosis import npx as npx
from heterosis.ndarray import (
    creation as _creation,  # importing a module names its operators
)
from heterosis.ndarray import elementwise as _elementwise
from heterosis.ndarray import layers as _layers
from heterosis.ndarray import reductions as _reductions
from heterosis.ndarray import shapes as _shapes
from heterosis.ndarray.operator import OPERATORS as _OPERATORS
from heterosis.npx import waitall

globals().update(_OPERATORS)

NDArray = ndarray = np.ndarray


def _family(prefix: str) -> _SimpleNamespace:
    """Operators whose names start alike, without that start."""
    return _SimpleNamespace(
        **{
            name.removeprefix(prefix): run
            for name, run in _OPERATORS.items()
            if name.startswith(prefix)
        }
    )


random = _family("random_")
linalg = _family("linalg_")

__all__ = [*sorted(_OPERATORS), "NDArray", "linalg", "np", "npx", "random", "waitall"]
