"""Operations that put arrays side by side, and that repeat or shift one."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, GATHER, Value, apply, extent
from heterosis.ir.types import TensorType, promote
from heterosis.ops.array.shape import (
    MOVED,
    Axis,
    as_tuple,
    atleast_nd,
    expand_dims,
    inferred_shape,
    ravel,
    reshape,
    samples,
)
from heterosis.ops.array.split import part
from heterosis.ops.math import elementwise as e
from heterosis.ops.record import Operands, operation
from heterosis.ops.rules import cast, iota, result_type
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axis


def joined(name: str, arrays: Sequence[Value], axis: int) -> Value:
    """Arrays one behind the other along `axis`, converted to a common type."""
    first = _check_alike(name, arrays, axis)
    dtype = result_type(*arrays)
    starts = [0]
    for x in arrays:
        starts.append(starts[-1] + x.shape[axis])
    places = tuple((_at(s, axis, first.ndim), (1,) * first.ndim) for s in starts[:-1])
    shape = (*first.shape[:axis], starts[-1], *first.shape[axis + 1 :])
    parts = [cast(x, dtype) for x in arrays]
    return apply(ASSEMBLE, parts, TensorType(shape, dtype), places=places, filled=False)


def joined_in_turn(
    name: str, arrays: Sequence[Any], axis: int, out: _core.ndarray | None = None
) -> _core.ndarray:
    """`joined` for any number of arrays that are there: copied one by one into their places."""
    first = _check_alike(name, arrays, axis)
    ends = list(itertools.accumulate(x.shape[axis] for x in arrays))
    if out is None:
        dtype = functools.reduce(promote, (x._dtype_name for x in arrays))
        shape = (*first.shape[:axis], ends[-1], *first.shape[axis + 1 :])
        out = _core.empty(dtype, shape)
    before = (slice(None),) * axis
    for x, end in zip(arrays, ends, strict=True):
        place = (*before, slice(end - x.shape[axis], end))
        out[place] = x
    return out


def _in_turn(prepare: Callable[..., tuple[Sequence[Any], int]]) -> Callable[..., _core.ndarray]:
    name = prepare.__name__.strip("_")
    return lambda arrays, *axis, out=None: joined_in_turn(name, *prepare(arrays, *axis), out)


def _at(start: int, axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(start if a == axis else 0 for a in range(ndim))


def _check_alike(name: str, arrays: Sequence[Value], axis: int) -> Value:
    """The first array, all others being shaped as it is but for `axis`."""
    first = arrays[0]
    for i, x in enumerate(arrays):
        alike = x.ndim == first.ndim and all(
            a == axis or n == m for a, (n, m) in enumerate(zip(x.shape, first.shape, strict=True))
        )
        if not alike:
            raise ShapeError(
                f"{name}: array {i} has shape {x.shape} and array 0 has {first.shape}; all "
                f"extents but that of axis {axis} must be equal."
            )
    return first


def _check_some(name: str, arrays: Sequence[Value]) -> None:
    if not arrays:
        raise ArgumentError(f"{name}: no arrays; need at least one array to put together.")


def _joins(*cases: tuple[list[tuple[int, ...]], dict[str, Any]]) -> Samples:
    return Samples([Case((shapes,), attributes) for shapes, attributes in cases], dtypes=MOVED)


# What is to be done to arrays before they are joined, and along which axis: for values of a program
# as well as for arrays.


def _concatenate(seq: Sequence[Any], axis: int | None = 0) -> tuple[Sequence[Any], int]:
    _check_some("concatenate", seq)
    if axis is None:
        return [ravel(x) for x in seq], 0
    if not seq[0].ndim:
        raise ShapeError("concatenate: single numbers have no axis to join along; see np.stack.")
    return seq, check_axis("concatenate", axis, seq[0].ndim)


def _stack(arrays: Sequence[Any], axis: int = 0) -> tuple[Sequence[Any], int]:
    _check_some("stack", arrays)
    shapes = {getattr(x, "shape", ()) for x in arrays}
    if len(shapes) > 1:
        raise ShapeError(
            f"stack: all arrays must have one shape, and have {', '.join(map(str, shapes))}."
        )
    axis = check_axis("stack", axis, len(shapes.pop()) + 1)
    return [expand_dims(x, axis) for x in arrays], axis


def _vstack(arrays: Sequence[Any]) -> tuple[Sequence[Any], int]:
    _check_some("vstack", arrays)
    return [atleast_nd(x, 2) for x in arrays], 0


def _hstack(arrays: Sequence[Any]) -> tuple[Sequence[Any], int]:
    _check_some("hstack", arrays)
    wide = [atleast_nd(x, 1) for x in arrays]
    return wide, int(wide[0].ndim > 1)


def _dstack(arrays: Sequence[Any]) -> tuple[Sequence[Any], int]:
    _check_some("dstack", arrays)
    return [atleast_nd(x, 3) for x in arrays], 2


def _column_stack(arrays: Sequence[Any]) -> tuple[Sequence[Any], int]:
    _check_some("column_stack", arrays)
    return [reshape(x, (-1, 1)) if getattr(x, "ndim", 0) < 2 else x for x in arrays], 1


@operation(
    numpy=numpy.concatenate,
    many=_in_turn(_concatenate),
    aliases=("concat",),
    names={"mxnet": "_npi_concatenate", "onnx": "Concat"},
    samples=_joins(
        ([(2, 3), (1, 3)], {}),
        ([(2, 3), (2, 1), (2, 2)], {"axis": -1}),
        ([(2, 3), (4,)], {"axis": None}),
        ([(0,), (3,)], {}),
        ([(5,)], {}),
    ),
)
def concatenate(seq: Operands, axis: int | None = 0) -> Value:
    """Arrays one behind the other along `axis`; without one, all their elements."""
    return joined("concatenate", *_concatenate(seq, axis))


@operation(
    numpy=numpy.stack,
    many=_in_turn(_stack),
    names={"mxnet": "_npi_stack"},
    samples=_joins(([(2, 3), (2, 3)], {}), ([(2, 3), (2, 3)], {"axis": -1}), ([(), (), ()], {})),
)
def stack(arrays: Operands, axis: int = 0) -> Value:
    """Arrays of one shape along a new dimension at `axis`."""
    return joined("stack", *_stack(arrays, axis))


@operation(
    numpy=numpy.vstack,
    many=_in_turn(_vstack),
    aliases=("row_stack",),
    names={"mxnet": "_npi_vstack"},
    samples=_joins(([(3,), (2, 3)], {}), ([(), ()], {})),
)
def vstack(arrays: Operands) -> Value:
    """Arrays one below the other."""
    return joined("vstack", *_vstack(arrays))


@operation(
    numpy=numpy.hstack,
    many=_in_turn(_hstack),
    names={"mxnet": "_npi_hstack"},
    samples=_joins(([(3,), (2,)], {}), ([(2, 1), (2, 3)], {}), ([(), ()], {})),
)
def hstack(arrays: Operands) -> Value:
    """Arrays beside each other."""
    return joined("hstack", *_hstack(arrays))


@operation(
    numpy=numpy.dstack,
    many=_in_turn(_dstack),
    names={"mxnet": "_npi_dstack"},
    samples=_joins(([(3,), (3,)], {}), ([(2, 3), (2, 3, 2)], {})),
)
def dstack(arrays: Operands) -> Value:
    """Arrays behind each other, along the third dimension."""
    return joined("dstack", *_dstack(arrays))


@operation(
    numpy=numpy.column_stack,
    many=_in_turn(_column_stack),
    names={"mxnet": "_npi_column_stack"},
    samples=_joins(([(3,), (3, 2)], {}), ([(2,), (2,)], {})),
)
def column_stack(arrays: Operands) -> Value:
    """One-dimensional arrays as columns of a matrix, matrices as they are."""
    return joined("column_stack", *_column_stack(arrays))


@operation(
    numpy=numpy.append,
    samples=samples((((2, 3), (4,)), {}), (((2, 3), (1, 3)), {"axis": 0})),
)
def append(arr: Value, values: Value, axis: int | None = None) -> Value:
    """`values` behind `arr` along `axis`; without one, all elements in one dimension."""
    return concatenate((arr, values), axis)


# -- repeated -------------------------------------------------------------------------------------


@operation(
    name="repeat_each",
    public=(),
    numpy=numpy.repeat,
    names={"mxnet": "repeat"},
    samples=samples(
        ((2, 3), {"repeats": 2}),
        ((2, 3), {"repeats": 3, "axis": 1}),
        ((2, 3), {"repeats": 0, "axis": 0}),
        ((), {"repeats": 2}),
    ),
)
def repeat_each(a: Value, repeats: int, axis: int | None = None) -> Value:
    """Each element `repeats` times in a row along `axis`."""
    if repeats < 0:
        raise ArgumentError(f"repeat: repeats={repeats}; expected none or more.")
    if axis is None:
        a, axis = views.reshape(a, (a.size,)), 0
    axis = check_axis("repeat", axis, a.ndim)
    before, n, after = a.shape[:axis], a.shape[axis], a.shape[axis + 1 :]
    apart = views.reshape(a, (*before, n, 1, *after))
    wide = views.broadcast(apart, (*before, n, repeats, *after))
    return views.reshape(wide, (*before, n * repeats, *after))


@operation(
    numpy=numpy.tile,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_tile", "onnx": "Tile"},
    samples=samples(
        ((2, 3), {"reps": 2}),
        ((2, 3), {"reps": (2, 1, 2)}),
        ((3,), {"reps": (2, 2)}),
        ((), {"reps": (2,)}),
        ((2,), {"reps": 0}),
    ),
)
def tile(A: Value, reps: Any) -> Value:
    """The whole array, repeated `reps` times along each dimension."""
    reps = as_tuple(reps)
    if min(reps, default=1) < 0:
        raise ArgumentError(f"tile: reps={reps}; expected none or more along each dimension.")
    rank = max(len(reps), A.ndim)
    reps = (1,) * (rank - len(reps)) + reps
    shape = (1,) * (rank - A.ndim) + A.shape
    apart = views.reshape(A, tuple(k for n in shape for k in (1, n)))
    pairs = zip(reps, shape, strict=True)
    wide = views.broadcast(apart, tuple(k for pair in pairs for k in pair))
    return views.reshape(wide, tuple(r * n for r, n in zip(reps, shape, strict=True)))


@operation(
    numpy=numpy.resize,
    samples=samples(
        ((4,), {"new_shape": (2, 3)}), ((2, 3), {"new_shape": 4}), ((0,), {"new_shape": (2,)})
    ),
)
def resize(a: Value, new_shape: Any) -> Value:
    """The elements in their order, over and over again, under another shape."""
    shape = as_tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ShapeError(f"resize: a shape has no negative extents; got {shape}.")
    if not a.size:
        return cast(views.broadcast(extent(0), shape), a.dtype)
    count = math.prod(shape)
    at = e.mod(iota(count), extent(a.size))
    flat = views.reshape(a, (a.size,))
    found = apply(GATHER, (flat, at), TensorType((count,), a.dtype))
    return views.reshape(found, inferred_shape("resize", (count,), shape))


# -- shifted --------------------------------------------------------------------------------------


def _rolled(x: Value, shift: int, axis: int) -> Value:
    n = x.shape[axis]
    cut = n - shift % n if n else 0
    return joined("roll", (part(x, axis, cut, n), part(x, axis, 0, cut)), axis)


@operation(
    numpy=numpy.roll,
    names={"mxnet": "_np_roll"},
    samples=samples(
        ((5,), {"shift": 2}),
        ((2, 3), {"shift": -1}),
        ((2, 3), {"shift": 7, "axis": 1}),
        ((2, 3), {"shift": (1, 2), "axis": (0, 1)}),
        ((2, 3), {"shift": 1, "axis": (0, 1)}),
        ((0,), {"shift": 1}),
        ((2, 3), {"shift": (1, 3)}),
        ((2, 3), {"shift": ()}),
    ),
)
def roll(a: Value, shift: Any, axis: Axis = None) -> Value:
    """Elements moved by `shift` places along `axis`; those that leave come in again behind."""
    if axis is None:
        flat = sum(as_tuple(shift))
        return views.reshape(_rolled(views.reshape(a, (a.size,)), flat, 0), a.shape)
    shifts, axes = numpy.broadcast_arrays(as_tuple(shift), as_tuple(axis))
    for one, at in zip(shifts.tolist(), axes.tolist(), strict=True):
        a = _rolled(a, one, check_axis("roll", at, a.ndim))
    return a


# -- differences ----------------------------------------------------------------------------------


def _difference(x: Value, axis: int) -> Value:
    n = x.shape[axis]
    later, earlier = part(x, axis, 1, n), part(x, axis, 0, max(n - 1, 0))
    return e.not_equal(later, earlier) if x.dtype == "bool" else e.subtract(later, earlier)


def _ends(given: Value | None, x: Value, axis: int) -> list[Value]:
    """What `diff` puts before or behind: a number counts as one element along `axis`."""
    if given is None:
        return []
    if given.ndim == 0:
        given = views.broadcast(given, tuple(1 if a == axis else n for a, n in enumerate(x.shape)))
    return [given]


@operation(
    numpy=numpy.diff,
    names={"mxnet": "_npi_diff"},
    samples=samples(
        ((5,), {}),
        ((3, 4), {"n": 2}),
        ((3, 4), {"axis": 0}),
        ((3, 4), {"n": 9}),
        dtypes=("bool", "int32", "float32"),
    ),
)
def diff(
    a: Value, n: int = 1, axis: int = -1, prepend: Value | None = None, append: Value | None = None
) -> Value:
    """Each element less the one before it along `axis`, `n` times over."""
    if n < 0:
        raise ArgumentError(f"diff: n={n}; expected none or more.")
    axis = check_axis("diff", axis, a.ndim)
    if not n:  # as in NumPy, without the ends
        return a
    parts = [*_ends(prepend, a, axis), a, *_ends(append, a, axis)]
    a = joined("diff", parts, axis) if len(parts) > 1 else a
    for _ in range(n):
        a = _difference(a, axis)
    return a


@operation(
    numpy=numpy.ediff1d,
    names={"mxnet": "_npi_ediff1d"},
    samples=samples(((5,), {}), ((2, 3), {}), ((0,), {}), dtypes=("int32", "float32")),
)
def ediff1d(ary: Value, to_end: Value | None = None, to_begin: Value | None = None) -> Value:
    """Each element less the one before it, in one dimension, with more elements at the ends."""
    flat = _difference(views.reshape(ary, (ary.size,)), 0)
    ends = [
        None if x is None else cast(views.reshape(x, (x.size,)), flat.dtype)
        for x in (to_begin, to_end)
    ]
    parts = [x for x in (ends[0], flat, ends[1]) if x is not None]
    return joined("ediff1d", parts, 0)
