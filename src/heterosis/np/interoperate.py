"""NumPy's functions called with our arrays: ours run instead, and NumPy on the host otherwise."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from heterosis import _core
from heterosis.np import convert
from heterosis.np.fallback import call_on_host
from heterosis.ops.math.cast import copy
from heterosis.ops.record import as_users_call
from heterosis.runtime.errors import ArgumentError

# Where ufunc.reduce has a name of its own. NumPy's reduces along axis 0 unless told otherwise.
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_MODULES = {
    "numpy": "heterosis.np",
    "numpy.linalg": "heterosis.np.linalg",
    "numpy.random": "heterosis.np.random",
}


def array_ufunc(self: Any, ufunc: numpy.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
    """`numpy.add(x, y)` and `numpy_array + x`."""
    out = keywords.pop("out", (None,))
    result = _ufunc(ufunc, method, inputs, keywords)
    if len(out) == 1:
        return _into(out[0], result)
    return tuple(_into(o, r) for o, r in zip(out, result, strict=True))


def _ufunc(ufunc: numpy.ufunc, method: str, inputs: tuple, keywords: dict[str, Any]) -> Any:
    ours = _own("numpy", ufunc.__name__) if method == "__call__" else None
    if method == "reduce" and ufunc.__name__ in _REDUCTIONS:
        ours = _own("numpy", _REDUCTIONS[ufunc.__name__])
        keywords = {"axis": 0, **keywords}
    if ours is not None and _takes(ours, inputs, keywords):
        return ours(*map(convert.operand, inputs), **keywords)
    return call_on_host(ufunc.__name__, getattr(ufunc, method), inputs, keywords)


def _into(out: Any, result: Any) -> Any:
    if out is None:
        return result
    if isinstance(out, _core.ndarray):
        as_users_call(copy)(result, out=out)
    else:
        numpy.copyto(out, convert.to_numpy(result), casting="same_kind")
    return out


def array_function(
    self: Any, function: Callable, types: Sequence[type], arguments: tuple, keywords: dict
) -> Any:
    """`numpy.mean(x)`: the function of that name here, if it takes these arguments."""
    ours = _own(function.__module__, function.__name__)
    if ours is not None and _takes(ours, arguments, keywords):
        return ours(*arguments, **keywords)
    return call_on_host(function.__name__, function, arguments, keywords)


def _own(numpy_module: str, name: str) -> Callable | None:
    """The function that stands here for one of NumPy's; those that fall back do not count."""
    module = sys.modules.get(_MODULES.get(numpy_module, ""))
    found = vars(module).get(name) if module else None
    return found if callable(found) else None


def _takes(function: Callable, arguments: tuple, keywords: dict[str, Any]) -> bool:
    extras = {"out", "where"} if isinstance(function, _core.Operation) else set()
    try:
        inspect.signature(function).bind(
            *arguments, **{k: v for k, v in keywords.items() if k not in extras}
        )
    except TypeError:
        return False
    return True


def as_numpy(self: Any, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
    """`numpy.asarray(x)`: shares the memory unless `dtype` or `copy` asks for another."""
    if copy is False and self._device >= _core.first_remote:
        raise ArgumentError(
            f"numpy.asarray: copy=False, and the array is on {self.ctx}, whose memory NumPy cannot "
            "use. Let it be copied."
        )
    return numpy.array(convert.shared(self), dtype=dtype, copy=copy)


def dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over the memory of the array, or over a copy of it."""
    if dl_device not in (None, dlpack_device(self)):
        raise BufferError(f"the array is on {self.ctx}, and {dl_device} was asked for.")
    return _export(self.copy() if copy else self)


def dlpack_device(self: Any) -> tuple[int, int]:
    """DLPack's numbers for the device of the array."""
    return self._dlpack_device  # type: ignore[no-any-return]


_export = _core.ndarray.__dlpack__

MEMBERS = {
    "__array__": as_numpy,
    "__array_ufunc__": array_ufunc,
    "__array_function__": array_function,
    "__dlpack__": dlpack,
    "__dlpack_device__": dlpack_device,
}
