"""NumPy's linear algebra over asynchronous arrays; errors are raised where a result is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heterosis import _core
from heterosis.ops.linalg.matrix_functions import least_squares
from heterosis.ops.record import public_names
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import LinearAlgebraError

if TYPE_CHECKING:  # what the tables below hold
    from heterosis._stubs.linalg import *
    from heterosis._stubs.linalg_numpy import *

LinAlgError = LinearAlgebraError
globals().update(public_names("linalg"))


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, int, Any]:
    """x that makes `a @ x` closest to `b`; squared distances; the rank of `a`; singular values.

    Singular values up to `rcond` times the largest count as zero. As in NumPy the rank is a Python
    number, so this waits, and the distances are empty where the rank leaves x undetermined.
    """
    if isinstance(rcond, int | float) and rcond < 0:  # NumPy's older way to ask for no more than
        rcond = None  # what rounding makes uncertain
    x, distances, rank, values = least_squares(a, b, rcond)
    found = rank.item()
    rows, columns = a.shape
    if rows <= columns or found < columns:
        distances = _core.empty(distances._dtype_name, (0,))
    return x, distances, found, values


_check_members(globals())
