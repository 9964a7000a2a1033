"""What `ndarray` does in Python: conversions, text, and the operations that are methods."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.types import DTYPES, numpy_dtype
from heterosis.np import convert
from heterosis.np.dtypes import dtype_name
from heterosis.ops import eager
from heterosis.ops.cast import astype as _astype
from heterosis.ops.record import public_names


def asnumpy(self) -> numpy.ndarray:
    """A NumPy array with a copy of the elements; waits until they are computed."""
    return convert.to_numpy(self)


def item(self, *index: int) -> Any:
    """One element as a Python number; waits until it is computed."""
    return convert.shared(self).item(*index)


def tolist(self) -> Any:
    """Nested lists of Python numbers; waits until they are computed."""
    return convert.shared(self).tolist()


def astype(self, dtype: Any, order="K", casting="unsafe", subok=True, copy=True) -> _core.ndarray:
    """The elements converted to `dtype`; the array itself if nothing changes and not `copy`."""
    name = dtype_name(dtype)
    if not copy and name == self._dtype_name:
        return self
    return _astype(self, name)


def _array(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
    found = convert.shared(self) if copy is False else convert.to_numpy(self)
    return found if dtype is None else found.astype(dtype)


def _text(self) -> str:
    return str(convert.shared(self))


def _representation(self) -> str:
    text = repr(convert.shared(self))
    if self._dtype_name == "float32":  # the default type goes without saying
        text = text.replace(", dtype=float32", "")
    return text


def install_members() -> None:
    """Complete the type that the core defines."""
    members = {"asnumpy": asnumpy, "item": item, "tolist": tolist, "astype": astype}
    members |= {"asscalar": item, "__array__": _array}
    for name, member in {**public_names("ndarray"), **members}.items():
        setattr(_core.ndarray, name, member)
    _core.set_hook("dtypes", tuple(numpy_dtype(name) for name in DTYPES))
    _core.set_hook("item", item)
    _core.set_hook("repr", _representation)
    _core.set_hook("str", _text)
    eager.set_converter(convert.operand)
