"""Making arrays where the host has a part: counting elements, reading files, leaving memory as is.

Everything else that makes arrays stands in `ops.array.creation`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.program import Value
from heterosis.ir.types import ITEMSIZE, is_float
from heterosis.np.convert import array, asarray, from_dlpack, operand
from heterosis.np.dtypes import dtype_name
from heterosis.ops.array import creation as _operations
from heterosis.ops.array.creation import check_layout, check_shape
from heterosis.ops.array.grids import grids as _grids
from heterosis.runtime.errors import DTypeError, ZeroStepError
from heterosis.runtime.placing import placed


@placed
def empty(shape: Any, dtype: Any = None, order: str = "C", ctx: Any = None) -> _core.ndarray:
    """A new array whose elements are whatever the memory held."""
    check_layout("empty", order, ctx)
    name = dtype_name(dtype)
    extents = tuple(shape.tolist()) if isinstance(shape, _core.ndarray) else shape
    return _core.empty(name, check_shape("empty", extents, ITEMSIZE[name]))


def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: str = "C",
    subok: bool = False,
    shape: Any = None,
    ctx: Any = None,
) -> _core.ndarray:
    """An array like `prototype` whose elements are whatever the memory held."""
    if isinstance(prototype, Value):
        return _operations.zeros_like(prototype, dtype, shape=shape)
    like = asarray(prototype)
    where = like.ctx if ctx is None else ctx
    return empty(like.shape if shape is None else shape, dtype or like.dtype, order, where)


@placed
def arange(
    start: Any = 0, stop: Any = None, step: Any = 1, dtype: Any = None, ctx: Any = None
) -> _core.ndarray:
    """Numbers from `start` (0 if only one bound is given) up to, without, `stop`."""
    check_layout("arange", "C", ctx)
    if stop is None:
        start, stop = 0, start
    start, stop, step = (_number("arange", n) for n in (start, stop, step))
    if step == 0:
        raise ZeroStepError("arange: the step is 0; expected another number.")
    count = max(_steps(start, stop, step), 0)
    name = dtype_name(dtype)
    if name == "bool" and count > 2:
        raise DTypeError(
            f"arange: {count} numbers of bool, which has two; expected up to 2 of them, or another "
            "dtype."
        )
    check_shape("arange", count, ITEMSIZE[name])
    if is_float(name):
        return _operations.progression(float(start), float(step), count, name)
    # Integers advance by whole steps, as far as one step takes the first of them.
    first = int(start)
    return _operations.progression(first, int(start + step) - first, count, name)


def _steps(start: float, stop: float, step: float) -> int:
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return -((start - stop) // step)
    return math.ceil((stop - start) / step)


def _number(name: str, given: Any) -> int | float:
    if isinstance(given, _core.ndarray | numpy.ndarray | numpy.generic):
        given = given.item()
    if not isinstance(given, int | float):
        raise DTypeError(f"{name}: expected numbers, and got {type(given).__name__}.")
    return int(given) if isinstance(given, bool) else given


@placed
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    ctx: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`; with `retstep`, their distance too."""
    check_layout("linspace", "C", ctx)
    points = _operations.spaced(start, stop, num, endpoint, dtype, axis)
    if not retstep:
        return points
    parts = num - 1 if endpoint else num
    difference = operand(stop) - operand(start)
    return points, difference / parts if parts > 0 else difference * math.nan


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list:
    """Coordinate grids, one for each one-dimensional array of coordinates."""
    if not xi:
        return []
    grids = _grids([operand(x) for x in xi], indexing, sparse)
    return list(grids) if isinstance(grids, tuple) else [grids]


def genfromtxt(*arguments: Any, **keywords: Any) -> _core.ndarray:
    """Numbers from a text file; the arguments are those of NumPy's function."""
    return array(numpy.genfromtxt(*arguments, **keywords))


__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "from_dlpack",
    "genfromtxt",
    "linspace",
    "meshgrid",
]
