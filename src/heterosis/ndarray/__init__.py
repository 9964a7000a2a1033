"""`F` in `hybrid_forward`: `F.np`, `F.npx`, and the operators by their names in symbol files.

The operators are thin names over the operations of `np` and `npx`; where their meaning differs
from NumPy's (reshape's codes, 0 and 1 from comparisons, indices as floats), it is kept.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from heterosis import np as np
from heterosis import npx as npx
from heterosis.mxnet.operators import OPERATORS as _OPERATORS
from heterosis.ndarray import contrib, linalg, random
from heterosis.ndarray import ndarray as ndarray
from heterosis.ndarray.ndarray import *
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.public import listing as _listing

if _TYPE_CHECKING:  # what the table below holds
    from heterosis._stubs.nd import *

globals().update(_OPERATORS)

_check_members(globals())
__dir__ = _listing(globals(), ("contrib", "linalg", "ndarray", "np", "npx", "random"))

__all__ = ["contrib", "linalg", "ndarray", "np", "npx", "random"]
__all__ += ndarray.__all__
