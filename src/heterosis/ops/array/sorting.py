"""Sorting along an axis, and what begins with it.

Elements become unsigned integers in the same order, so one kernel sorts every element type.
"""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD
from heterosis.ir.primitives.sort_keys import (
    FROM_SORT_KEY_FLOAT32,
    FROM_SORT_KEY_FLOAT64,
    SORT_KEY_FLOAT32,
    SORT_KEY_FLOAT64,
)
from heterosis.ir.primitives.sorting import FIRST_PLACES, SEARCH, SORT, SORT_PLACES
from heterosis.ir.program import Value, apply, apply_many, constant
from heterosis.ir.types import FLOATS, TensorType, is_float
from heterosis.ops.array.indexing import gathered, scattered
from heterosis.ops.math import elementwise as e
from heterosis.ops.math.elementwise import METHOD
from heterosis.ops.math.real import NETWORK
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, iota, wide
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axis

# -- keys -----------------------------------------------------------------------------------------


_ENCODED = {"float32": SORT_KEY_FLOAT32, "float64": SORT_KEY_FLOAT64}
_DECODED = {"float32": FROM_SORT_KEY_FLOAT32, "float64": FROM_SORT_KEY_FLOAT64}
_KEYS = {"float32": "int32", "float64": "int64"}


def _sorted_as(dtype: str) -> str:
    """The type of 32 or 64 bits that holds all elements of `dtype` in their order."""
    if is_float(dtype):
        return wide(dtype)
    return "int64" if dtype in ("int64", "uint32", "uint64") else "int32"


def _moved(key: Value) -> Value:
    """From signed integers to unsigned ones in the same order, and back."""
    lowest = constant(-(2**63) if key.dtype == "int64" else -(2**31), key.dtype)
    return e.bitwise_xor(key, lowest)


def _encoded(x: Value) -> Value:
    """Unsigned integers that stand in the order of elements."""
    if x.dtype == "uint64":
        return cast(x, "int64")  # the same bits
    x = cast(x, _sorted_as(x.dtype))
    if not is_float(x.dtype):
        return _moved(x)
    return apply(_ENCODED[x.dtype], (x,), TensorType(x.shape, _KEYS[x.dtype]))


def _decoded(key: Value, dtype: str) -> Value:
    """The elements of `dtype` that keys were made from."""
    if not is_float(dtype):
        return cast(key if dtype == "uint64" else _moved(key), dtype)
    found = wide(dtype)
    return cast(apply(_DECODED[found], (key,), TensorType(key.shape, found)), dtype)


def _rows(x: Value, axis: int) -> Value:
    """`x` with `axis` last and all others merged."""
    order = (*(a for a in range(x.ndim) if a != axis), axis)
    length = x.shape[axis]
    rows = x.size // length if length else 0
    return views.reshape(views.transpose(x, order), (rows, length))


def _keys(rows: Value, descending: bool) -> Value:
    keys = _encoded(rows)
    return e.invert(keys) if descending else keys


def _back(x: Value, shape: tuple[int, ...], axis: int) -> Value:
    """Rows in their places again; `shape` is that of the result."""
    outer = tuple(n for a, n in enumerate(shape) if a != axis)
    order = (*range(axis), len(outer), *range(axis, len(outer)))
    return views.transpose(views.reshape(x, (*outer, shape[axis])), order)


def sorted_along(x: Value, axis: int) -> Value:
    """`x` in ascending order along `axis`, counted from the front."""
    return _back(sorted_rows(_rows(x, axis)), x.shape, axis)


def _gradient_of_sorted(g: Value, y: Value, x: Value) -> Value:
    # Keys are integers, which no gradient flows through: it goes from place to place instead.
    places = _places(_last_axis(x), False)
    zeros = views.broadcast(constant(0.0, g.dtype), places.shape)
    found = scattered(zeros, [_numbers(places), places], _last_axis(g), combine=ADD)
    return views.reshape(found, x.shape)


@operation(
    numpy=lambda x: numpy.sort(x, axis=-1),
    samples=Samples(
        [Case((shape,)) for shape in ((3, 4), (1, 70), (2, 1), (0, 3), (5,))], (-90, 90)
    ),
    gradient=_gradient_of_sorted,
    public=(),
)
def sorted_rows(x: Value) -> Value:
    """Ascending order along the last axis."""
    if x.ndim == 0:
        raise ShapeError("sorted_rows: an array without dimensions; expected rows to sort.")
    keys = _keys(_last_axis(x), False)
    return views.reshape(_decoded(apply(SORT, (keys,), keys.type), x.dtype), x.shape)


def _last_axis(x: Value) -> Value:
    """`x` as a matrix of what stands along its last axis."""
    return _rows(x, x.ndim - 1)


def _places(rows: Value, descending: bool) -> Value:
    """Where the elements of each row stand, in the order of their values."""
    keys = _keys(rows, descending)
    types = (keys.type, TensorType(rows.shape, "int64"))
    _, places = apply_many(SORT_PLACES, (keys,), types)
    return places


def _numbers(places: Value) -> Value:
    """Every element's row."""
    column = views.reshape(iota(places.shape[0]), (places.shape[0], 1))
    return views.broadcast(column, places.shape)


def _flattened(name: str, x: Value, axis: int | None) -> tuple[Value, int]:
    """The array and the axis to sort along: all elements in one row, if the axis is None."""
    if axis is None or x.ndim == 0:
        check_axis(name, axis or 0, max(x.ndim, 1))
        return views.reshape(x, (x.size,)), 0
    return x, check_axis(name, axis, x.ndim)


# -- operations -----------------------------------------------------------------------------------

_CASES = (
    Case(((37,),)),
    Case(((3, 70),), {"axis": 1}),
    Case(((40, 3),), {"axis": 0}),
    Case(((2, 3, 4),), {"axis": None}),
    Case(((3, 0),)),
)


def _check_kind(name: str, kind: str | None, order: str | None) -> None:
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable") or order is not None:
        raise ArgumentError(
            f"{name}: kind={kind!r}, order={order!r}; expected one of NumPy's kinds, all of which "
            "are stable here, and no order, which is for structured arrays."
        )


@operation(
    numpy=numpy.sort,
    names={"mxnet": "_npi_sort"},
    samples=Samples(_CASES, (-90, 90)),
)
def sort(
    a: Value, axis: int | None = -1, kind: str | None = None, order: str | None = None
) -> Value:
    """Elements in ascending order along `axis`, NaN last; all in one row if it is None."""
    _check_kind("sort", kind, order)
    if axis is not None:
        check_axis("sort", axis, a.ndim)
    x, axis = _flattened("sort", a, axis)
    return sorted_along(x, axis)


@operation(
    numpy=lambda a, axis=-1: numpy.argsort(a, axis, kind="stable"),
    public=METHOD,
    names={"mxnet": "_npi_argsort"},
    samples=Samples(_CASES, (-9, 9)),
)
def argsort(
    a: Value, axis: int | None = -1, kind: str | None = None, order: str | None = None
) -> Value:
    """The places of elements in ascending order along `axis`; equal ones keep their order."""
    _check_kind("argsort", kind, order)
    x, axis = _flattened("argsort", a, axis)
    return _back(_places(_rows(x, axis), False), x.shape, axis)


def _topk_reference(
    a: Any,
    axis: Any = -1,
    k: Any = 1,
    ret_typ: Any = "indices",
    is_ascend: Any = False,
    dtype: Any = "float32",
) -> Any:
    if axis is None:
        a, axis = a.reshape(-1), 0
    key = a.astype("float64")
    ranks = (key, numpy.isnan(key)) if is_ascend else (-key, ~numpy.isnan(key))  # no number is last
    order = numpy.lexsort(ranks, axis).take(range(k), axis)
    values = numpy.take_along_axis(a, order, axis)
    if ret_typ == "mask":
        mask = numpy.zeros(a.shape)
        numpy.put_along_axis(mask, order, 1, axis)
        return mask
    chosen = {"value": values, "indices": order.astype(dtype), "both": (values, order)}
    return chosen[ret_typ]


_TOPK_CASES = (
    Case(((37,),)),
    Case(((3, 70),), {"k": 3, "ret_typ": "both"}),
    Case(((5, 4),), {"axis": 0, "k": 2, "ret_typ": "value", "is_ascend": True}),
    Case(((5, 4),), {"axis": 0, "k": 2, "ret_typ": "mask"}),
    Case(((5, 4),), {"axis": None, "k": 7, "dtype": "int32"}),
    Case(((3, 70),), {"k": 20, "ret_typ": "both"}),
)


@operation(
    numpy=_topk_reference,
    public=NETWORK,
    names={"mxnet": "topk", "onnx": "TopK"},
    samples=Samples(_TOPK_CASES, (-99, 99), dtypes=("int32", *FLOATS)),
)
def topk(
    data: Value,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: str = "indices",
    is_ascend: bool = False,
    dtype: str = "float32",
) -> Value | tuple[Value, Value]:
    """The `k` largest (or smallest) elements along `axis`, in order; all of them if `k` is 0.

    `ret_typ` says what is returned: their "indices", as `dtype`; their "value"; "both", values
    first; or a "mask", 1 where they stand and 0 elsewhere.
    """
    x, axis = _flattened("topk", data, axis)
    count = _check_topk(k, x.shape[axis], ret_typ)
    shape = tuple(count if a == axis else n for a, n in enumerate(x.shape))
    rows = _rows(x, axis)
    places = _first_places(rows, not is_ascend, count)
    if ret_typ == "mask":
        return views.reshape(_back(_marked(rows, places), x.shape, axis), data.shape)
    indices = _back(cast(places, dtype), shape, axis)
    values = _back(gathered(rows, [_numbers(places), places]), shape, axis)
    if ret_typ == "both":
        return values, indices
    return values if ret_typ == "value" else indices


def _check_topk(k: int, length: int, ret_typ: str) -> int:
    if ret_typ not in ("indices", "value", "both", "mask"):
        raise ArgumentError(
            f'topk: ret_typ={ret_typ!r}; expected "indices", "value", "both" or "mask".'
        )
    if not 0 <= k <= length:
        raise ArgumentError(f"topk: k={k} of {length} elements; expected 0 <= k <= {length}.")
    return k or length


# So many places are found without sorting: 4 of 256 in 0.2 us instead of 4. In a row that gets
# better towards its end each element moves all that are kept: for 16, it takes as long as sorting.
_FEW = 16


def _first_places(rows: Value, descending: bool, count: int) -> Value:
    """The first `count` of the places of each row."""
    if type(count) is int and count <= _FEW:  # no open size
        shape = (rows.shape[0], count)
        return apply(
            FIRST_PLACES, (_keys(rows, descending),), TensorType(shape, "int64"), count=count
        )
    places = _places(rows, descending)
    return views.slice_(places, (0, 0), (1, 1), (rows.shape[0], count))


def _marked(rows: Value, places: Value) -> Value:
    """Zeros in place of `rows`, with ones at `places`."""
    zeros = views.broadcast(constant(0, rows.dtype), rows.shape)
    ones = views.broadcast(constant(1, rows.dtype), places.shape)
    return scattered(zeros, [_numbers(places), places], ones)


# -- searching ------------------------------------------------------------------------------------


def _ordered(x: Value, dtype: str) -> Value:
    """`x` in the order of `dtype`, as elements of a type that is searched."""
    return _moved(cast(x, "int64")) if dtype == "uint64" else cast(x, _sorted_as(dtype))


@operation(
    numpy=lambda a, v, right=False: numpy.searchsorted(a, v, "right" if right else "left"),
    public=(),
    samples=Samples(
        (
            Case(((9,), (37,))),
            Case(((70,), (3, 5)), {"right": True}),
            Case(((1,), ())),
            Case(((0,), (3,))),
        ),
        rising_arrays=(0,),
    ),
)
def places_in_order(a: Value, v: Value, right: bool = False) -> Value:
    """Where to insert elements into the row `a`, whose elements do not decrease, before those that
    are equal or behind them."""
    if a.ndim != 1:
        raise ShapeError(f"searchsorted: in an array of shape {a.shape}; expected one dimension.")
    if a.shape[0] == 0:
        return views.broadcast(constant(0, "int64"), v.shape)
    dtype = _common(a.dtype, v.dtype)
    type_ = TensorType(v.shape, "int64")
    return apply(SEARCH, (_ordered(a, dtype), _ordered(v, dtype)), type_, right=right)


def _common(first: str, second: str) -> str:
    """The element type that NumPy compares two in, which all elements of both fit as far as any
    does: not the one that arithmetic gives."""
    if first == second:
        return first
    both = ("float32" if dtype == "bfloat16" else dtype for dtype in (first, second))
    return str(numpy.promote_types(*both).name)
