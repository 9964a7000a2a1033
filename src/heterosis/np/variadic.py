"""Functions whose arguments differ from those of the operations they call: any number of arrays,
lists of results, or indices that decide how large the result is."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.program import Value
from heterosis.np import convert
from heterosis.ops.array import indexing, join, shape
from heterosis.ops.array import split as _split
from heterosis.ops.linalg import einsum as _einsum
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, IndexingError

ndarray = _core.ndarray

# -- any number of arrays -------------------------------------------------------------------------


def _each(arrays: tuple[Any, ...], ndim: int) -> Any:
    found = [shape.atleast_nd(_operand(x), ndim) for x in arrays]
    return found[0] if len(found) == 1 else tuple(found)


def _operand(given: Any) -> Any:
    return given if isinstance(given, ndarray | Value) else convert.array(given)


def atleast_1d(*arys: Any) -> Any:
    """Arrays of at least one dimension."""
    return _each(arys, 1)


def atleast_2d(*arys: Any) -> Any:
    """Arrays of at least two dimensions."""
    return _each(arys, 2)


def atleast_3d(*arys: Any) -> Any:
    """Arrays of at least three dimensions."""
    return _each(arys, 3)


def broadcast_arrays(*args: Any) -> list[Any]:
    """All arrays repeated to their common shape."""
    return _several(shape.broadcast_arrays(args))


def einsum(subscripts: str, *operands: Any, out: Any = None, optimize: Any = False) -> Any:
    """Products of the operands, summed over the labels that the result does not have:
    `einsum('ij,jk->ik', a, b)` is the matrix product. It goes from left to right; `optimize` is
    accepted and changes nothing."""
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(
            f"einsum: subscripts are text such as 'ij,jk->ik'; got {type(subscripts).__name__}."
        )
    into = {} if out is None else {"out": out}
    return _einsum.summation(operands, subscripts, **into)


# -- lists of parts -------------------------------------------------------------------------------


def _several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Equal parts, or the parts between the given places, along `axis`: views."""
    return _several(_split.split(ary, indices_or_sections, axis))


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts as `split` makes them; the first ones are longer where they cannot be equal."""
    return _several(_split.array_split(ary, indices_or_sections, axis))


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the second dimension, or the only one."""
    return _several(_split.hsplit(ary, indices_or_sections))


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the first of at least two dimensions."""
    return _several(_split.vsplit(ary, indices_or_sections))


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the third dimension."""
    return _several(_split.dsplit(ary, indices_or_sections))


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Indices of the flattened array as one index for each dimension of `shape`."""
    return tuple(_several(indexing.unravel_index(indices, shape, order)))


# -- rows chosen on the host ----------------------------------------------------------------------


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis that rows are chosen along."""
    a = _operand(a)
    return (shape.ravel(a), 0) if axis is None else (a, axis)


def _chosen(a: Any, rows: numpy.ndarray, axis: int) -> Any:
    return indexing.take(a, convert.from_numpy(rows.astype("int64")), axis)


def _on_host(name: str, given: Any) -> Any:
    """Indices as NumPy takes them; arrays of floats hold indices too, which are the default."""
    if isinstance(given, ndarray):
        given = convert.shared(given)
    if isinstance(given, slice | int):
        return given
    found = numpy.asarray(given)
    if found.dtype == bool:
        return found
    with numpy.errstate(invalid="ignore"):
        whole = found.astype("int64")
    if not numpy.array_equal(whole, found):
        raise IndexingError(f"{name}: got {found.tolist()}; expected whole numbers.")
    return whole


def _is_one(given: Any) -> bool:
    """Whether it is a number, or an array without dimensions, not one for each."""
    return not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element `repeats` times in a row; `repeats` may be one number for each."""
    if not _is_one(repeats) and len(repeats) == 1:
        (repeats,) = repeats
    if _is_one(repeats):
        number = _on_host("repeat", repeats) if isinstance(repeats, ndarray) else repeats
        return join.repeat_each(a, operator.index(number), axis)
    a, axis = _along("repeat", a, axis)
    rows = numpy.repeat(numpy.arange(a.shape[axis]), _on_host("repeat", repeats))
    return _chosen(a, rows, axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """The array without the rows that `obj` names along `axis`: a number, a slice or indices."""
    arr, axis = _along("delete", arr, axis)
    return _chosen(arr, numpy.delete(numpy.arange(arr.shape[axis]), _on_host("delete", obj)), axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """The array with `values` put in before the rows that `obj` names along `axis`."""
    arr, axis = _along("insert", arr, axis)
    axis = axis + arr.ndim if axis < 0 else axis
    place, count = _on_host("insert", obj), arr.shape[axis]
    values = _new_rows(arr, convert.array(values, arr._dtype_name), place, axis)
    new = count + numpy.arange(values.shape[axis])
    rows = numpy.insert(numpy.arange(count), place, new)
    return _chosen(join.concatenate((arr, values), axis), rows, axis)


def _new_rows(arr: ndarray, values: ndarray, place: Any, axis: int) -> ndarray:
    """`values` with the shape of the rows to put in."""
    places = numpy.arange(arr.shape[axis])[place] if isinstance(place, slice) else place
    if isinstance(place, int) and values.ndim:  # as NumPy: the first axis is the one to put in
        values = shape.atleast_nd(values, 1)
        lead = (1,) * (arr.ndim - values.ndim)
        values = shape.moveaxis(shape.reshape(values, lead + values.shape), 0, axis)
    alone = numpy.ndim(places) == 0
    count = numpy.size(places)
    if alone or count == 1:
        count = values.shape[axis] if values.ndim == arr.ndim else 1
    wanted = tuple(count if a == axis else n for a, n in enumerate(arr.shape))
    return shape.broadcast_to(values, wanted)


# -- indices of triangles and diagonals -----------------------------------------------------------


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """The indices of the main diagonal of an array whose extents are all equal."""
    if arr.ndim < 2 or len(set(arr.shape)) != 1:
        raise ArgumentError(
            f"diag_indices_from: shape {arr.shape}; needs two or more dimensions of equal extents."
        )
    line = convert.from_numpy(numpy.arange(arr.shape[0], dtype="int64"))
    return (line,) * arr.ndim


__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "delete",
    "diag_indices_from",
    "dsplit",
    "einsum",
    "hsplit",
    "insert",
    "repeat",
    "split",
    "unravel_index",
    "vsplit",
]
