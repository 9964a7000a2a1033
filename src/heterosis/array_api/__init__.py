"""The array API standard, 2024.12, over the same arrays as `np`.

`np` keeps MXNet's habits: Python's numbers become float32 there, `bool` is Python's class, and
arguments have NumPy's names. The standard asks for others, so it has a namespace of its own, which
is what `x.__array_namespace__()` gives. Its functions call those of `np`: they hybridize, and
gradients flow through them, as these do.
"""

from heterosis import np as _np
from heterosis.array_api import linalg as linalg
from heterosis.array_api.creation import *
from heterosis.array_api.data_types import *
from heterosis.array_api.elementwise import *
from heterosis.array_api.inspection import __array_namespace_info__ as __array_namespace_info__
from heterosis.array_api.manipulation import *
from heterosis.array_api.products import *
from heterosis.array_api.searching import *
from heterosis.array_api.statistics import *
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.public import listing as _listing

__array_api_version__ = "2024.12"

e, pi, inf, nan, newaxis = _np.e, _np.pi, _np.inf, _np.nan, None

_check_members(globals())
__dir__ = _listing(globals(), ("linalg",))
