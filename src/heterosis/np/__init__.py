"""NumPy's names over asynchronous arrays. What an operation does stands in its record in `ops`."""

import builtins as _builtins
import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

import numpy as _numpy

from heterosis._core import ndarray as ndarray
from heterosis.ir.types import numpy_dtype as _numpy_dtype
from heterosis.np.creation import *
from heterosis.np.fallback import use_numpy as _use_numpy
from heterosis.np.indexing import *
from heterosis.np.inquiry import *
from heterosis.np.members import install_members as _install_members
from heterosis.np.statistics import *
from heterosis.np.text import *
from heterosis.np.variadic import *
from heterosis.ops.record import public_names as _public_names
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.public import listing as _listing
from heterosis.runtime.settings import settings as _settings

if _TYPE_CHECKING:  # what the tables below hold
    from heterosis._stubs.np import *
    from heterosis._stubs.np_numpy import *
    from heterosis.np import linalg as linalg
    from heterosis.np import random as random

_settings.read_environment()
globals().update(_public_names("np"))
_install_members(globals())

e, pi, euler_gamma = _numpy.e, _numpy.pi, _numpy.euler_gamma
inf, nan, newaxis = _numpy.inf, _numpy.nan, None
NAN = NaN = nan
PINF, NINF, PZERO, NZERO = inf, -inf, 0.0, -0.0
bool, bool_ = _builtins.bool, _numpy.bool_
float16, float32, float64 = _numpy.float16, _numpy.float32, _numpy.float64
bfloat16 = _numpy_dtype("bfloat16").type
int8, int16, int32, int64 = _numpy.int8, _numpy.int16, _numpy.int32, _numpy.int64
uint8, uint16, uint32, uint64 = _numpy.uint8, _numpy.uint16, _numpy.uint32, _numpy.uint64
finfo = _numpy.finfo


for _name in ("linalg", "random"):
    _use_numpy(_importlib.import_module(f"{__name__}.{_name}"), f"numpy.{_name}")
_use_numpy(_sys.modules[__name__], "numpy")


_check_members(globals())
__dir__ = _listing(globals(), ("linalg", "random"))
