"""NumPy's names over asynchronous arrays. What an operation does stands in its record in `ops`."""

import builtins as _builtins

import numpy as _numpy

from heterosis._core import ndarray
from heterosis.np.creation import *  # noqa: F403
from heterosis.np.members import install_members as _install_members
from heterosis.ops.record import public_names as _public_names

globals().update(_public_names("np"))
_install_members()

e, pi, inf, nan, newaxis = _numpy.e, _numpy.pi, _numpy.inf, _numpy.nan, None
NAN = NaN = nan
PINF, NINF, PZERO, NZERO = inf, -inf, 0.0, -0.0
bool, bool_ = _builtins.bool, _numpy.bool_
float16, float32, float64 = _numpy.float16, _numpy.float32, _numpy.float64
int8, uint8, int32, int64 = _numpy.int8, _numpy.uint8, _numpy.int32, _numpy.int64
finfo = _numpy.finfo

__all__ = ["ndarray"]  # noqa: PLE0604
