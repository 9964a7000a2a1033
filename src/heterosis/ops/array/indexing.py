"""Reading and writing elements at computed places.

Indices that may be out of range are checked by a kernel before anything is read or written: an
index that is ready at once raises at the call, one that is still being computed raises where its
result is read, as every error in queued work does. Nothing outside an array is ever touched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD, MAXIMUM, MINIMUM, MULTIPLY
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import ASSEMBLE, GATHER, SCATTER, Value, apply, constant, extent
from heterosis.ir.types import TensorType
from heterosis.ops.array.shape import MOVED, as_tuple, move_axes, samples
from heterosis.ops.bounds import bounded, checked
from heterosis.ops.math import elementwise as e
from heterosis.ops.record import Operands, operation
from heterosis.ops.rules import broadcast_shapes, cast, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axis


def gathered(x: Value, places: Sequence[Value]) -> Value:
    """Rows of `x` at `places`, one value of one shape for each of its leading axes."""
    shape = (*places[0].shape, *x.shape[len(places) :])
    return apply(GATHER, (x, *places), TensorType(shape, x.dtype))


def scattered(
    x: Value, places: Sequence[Value], update: Value, *, combine: Elementwise | None = None
) -> Value:
    """`x` with rows written at `places`, or combined with what stands there; of equal places the
    last counts, or all."""
    type_ = TensorType(x.shape, x.dtype)
    return apply(SCATTER, (x, *places, cast(update, x.dtype)), type_, combine=combine)


# -- advanced indexing ----------------------------------------------------------------------------


# The shape that a user indexes, and its axes that are the leading ones here: for messages.
Subject = tuple[tuple[int, ...], tuple[int, ...]]


def _places(
    name: str, x: Value, indices: Sequence[Value], subject: Subject | None = None
) -> list[Value]:
    """Indices of the leading axes of `x`, checked and repeated to their common shape."""
    shape = broadcast_shapes(name, [i.shape for i in indices])
    whole, axes = subject or (x.shape, tuple(range(len(indices))))
    return [
        views.broadcast(checked(name, index, n, axis, whole), shape)
        for index, n, axis in zip(indices, x.shape, axes, strict=False)
    ]


@operation(
    public=(),
    numpy=lambda a, indices, position: numpy.moveaxis(
        a[tuple(indices)], range(indices[0].ndim), range(position, position + indices[0].ndim)
    ),
    samples=Samples(
        [
            Case(((5, 4), [(3,)]), {"position": 0}),
            Case(((5, 4), [(3, 2), (3, 2)]), {"position": 0}),
            Case(((5, 4, 2), [(3,)]), {"position": 1}),
        ],
        domain=((-4, 4), (-4, 4)),
        dtypes=(*MOVED, "bfloat16"),
        integer_arrays=(1,),
    ),
)
def gather(a: Value, indices: Operands, position: int, subject: Subject | None = None) -> Value:
    """Rows of `a` at places along its leading axes; the new dimensions stand at `position`."""
    places = _places("index", a, indices, subject)
    rank = places[0].ndim
    found = gathered(a, places)
    return move_axes("index", found, tuple(range(rank)), tuple(range(position, position + rank)))


_COMBINED = {"add": ADD, "multiply": MULTIPLY, "maximum": MAXIMUM, "minimum": MINIMUM}


def _scatter_reference(a: Any, value: Any, indices: Any, position: Any, combine: Any = None) -> Any:
    result = a.copy()
    rank = indices[0].ndim
    value = numpy.moveaxis(value, range(position, position + rank), range(rank))
    if combine is not None:
        getattr(numpy, combine).at(result, tuple(indices), value)
    else:
        result[tuple(indices)] = value
    return result


@operation(
    public=(),
    numpy=_scatter_reference,
    in_place=True,
    samples=Samples(
        [
            Case(((5, 4), (3, 4), [(3,)]), {"position": 0}),
            Case(((5, 4), (3, 2), [(3, 2), (3, 2)]), {"position": 0}),
            Case(((5, 4, 2), (4, 3, 2), [(3,)]), {"position": 1}),
            *(
                Case(((5, 4), (9, 4), [(9,)]), {"position": 0, "combine": combine})
                for combine in ("add", "maximum", "minimum")
            ),
        ],
        domain=((-4, 4), (-4, 4), (-4, 4)),
        dtypes=(*MOVED, "bfloat16"),
        integer_arrays=(2,),
        absolute=64,
    ),
)
def scatter(
    a: Value,
    value: Value,
    indices: Operands,
    position: int,
    subject: Subject | None = None,
    combine: str | None = None,
) -> Value:
    """`a` with `value` written at places along its leading axes, or combined by an operation with
    what stands there; `value` has the shape that `gather` gives, or broadcasts to it. With
    `out=a`, nothing else is copied."""
    places = _places("index", a, indices, subject)
    lead, rest = places[0].shape, a.shape[len(places) :]
    shape = (*rest[:position], *lead, *rest[position:])
    value = cast(_fitting(value, shape), a.dtype)
    front = tuple(range(position, position + len(lead)))
    update = move_axes("index", value, front, tuple(range(len(lead))))
    return scattered(a, places, update, combine=None if combine is None else _COMBINED[combine])


def _fitting(value: Value, shape: tuple[int, ...]) -> Value:
    """A value to be written, repeated to `shape`; surplus dimensions of extent 1 in front go."""
    surplus = max(value.ndim - len(shape), 0)
    if all(n == 1 for n in value.shape[:surplus]):
        value = views.reshape(value, value.shape[surplus:])
    pairs = zip(reversed(value.shape), reversed(shape), strict=False)
    if value.ndim > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(
            f"index: values of shape {value.shape} do not broadcast to the selected elements, "
            f"which have shape {shape}."
        )
    return views.broadcast(value, shape)


def _slices(starts: Any, steps: Any, counts: Any) -> tuple[slice, ...]:
    """The index of a part, for NumPy; ends before the first element are written as none."""
    return tuple(
        slice(first, end if (end := first + step * n) >= 0 else None, step)
        for first, step, n in zip(starts, steps, counts, strict=True)
    )


def _assign_reference(a: Any, value: Any, starts: Any, steps: Any, counts: Any, shape: Any) -> Any:
    result = a.copy()
    result[_slices(starts, steps, counts)] = numpy.broadcast_to(value, shape).reshape(counts)
    return result


_PARTS = (
    {"starts": (1, 0), "steps": (2, 1), "counts": (2, 4), "shape": (2, 4)},
    {"starts": (4, 2), "steps": (-1, 1), "counts": (5, 1), "shape": (5,)},
)


@operation(
    public=(),
    views=True,
    numpy=lambda a, starts, steps, counts, shape: a[_slices(starts, steps, counts)].reshape(shape),
    samples=samples(*(((5, 4), part) for part in _PARTS)),
)
def select_part(a: Value, starts: Any, steps: Any, counts: Any, shape: Any) -> Value:
    """`counts[d]` elements from `starts[d]` on, `steps[d]` apart, under another shape: what an
    index of integers and slices selects."""
    return views.reshape(views.slice_(a, starts, steps, counts), shape)


@operation(
    public=(),
    in_place=True,
    numpy=_assign_reference,
    samples=samples(*((((5, 4), part["shape"]), part) for part in _PARTS)),
)
def assign_part(a: Value, value: Value, starts: Any, steps: Any, counts: Any, shape: Any) -> Value:
    """`a` with `value` written where `select_part` reads."""
    fitting = views.reshape(cast(_fitting(value, shape), a.dtype), counts)
    views.slice_(a, starts, steps, counts)  # raises for places outside
    whole = ((0,) * a.ndim, (1,) * a.ndim)
    type_ = TensorType(a.shape, a.dtype)
    return apply(ASSEMBLE, (a, fitting), type_, places=(whole, (starts, steps)), filled=False)


# -- by name --------------------------------------------------------------------------------------


@operation(
    numpy=numpy.take,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_take", "onnx": "Gather"},
    samples=samples(
        (((5, 4), (3,)), {}),
        (((5, 4), (2, 3)), {"axis": 0}),
        (((5, 4), ()), {"axis": 1}),
        (((2, 5, 4), (3,)), {"axis": -2, "mode": "wrap"}),
        (((5, 4), (3,)), {"axis": 0, "mode": "clip"}),
        domain=((-4, 4), (-4, 4)),
        integer_arrays=(1,),
    ),
)
def take(a: Value, indices: Value, axis: int | None = None, mode: str = "raise") -> Value:
    """The elements, or the rows along `axis`, at `indices`. `mode` says what becomes of an index
    outside: 'raise', 'clip' to the nearest end, or 'wrap' around."""
    if axis is None:
        a, axis = views.reshape(a, (a.size,)), 0
    axis = check_axis("take", axis, a.ndim)
    place = bounded("take", indices, a.shape[axis], mode, axis, a.shape)
    rows = gathered(move_axes("take", a, (axis,), (0,)), (place,))
    new = tuple(range(indices.ndim))
    return move_axes("take", rows, new, tuple(axis + i for i in new))


def _along(n: int, axis: int, shape: tuple[int, ...]) -> Value:
    """0, 1, ..., along one axis, the same for all others."""
    column = (n,) + (1,) * (len(shape) - axis - 1)
    return views.broadcast(views.reshape(iota(n), column), shape)


def _places_along(name: str, a: Value, indices: Value, axis: int) -> list[Value]:
    """For every element of `indices`, its own place but for `axis`, which it names itself."""
    shapes = [x.shape[:axis] + (1,) + x.shape[axis + 1 :] for x in (a, indices)]
    if a.ndim != indices.ndim:
        raise ShapeError(
            f"{name}: indices of shape {indices.shape} for an array of shape {a.shape}; both must "
            "have as many dimensions."
        )
    common = broadcast_shapes(name, shapes)
    shape = (*common[:axis], indices.shape[axis], *common[axis + 1 :])
    places = [
        _along(n, d, shape) if a.shape[d] == n else views.broadcast(constant(0, "int64"), shape)
        for d, n in enumerate(shape)
    ]
    own = checked(name, indices, a.shape[axis], axis, a.shape)
    places[axis] = views.broadcast(own, shape)
    return places


@operation(
    numpy=numpy.take_along_axis,
    samples=samples(
        (((5, 4), (2, 4)), {"axis": 0}),
        (((4, 5), (4, 2)), {"axis": -1}),
        (((5, 4), (1, 2)), {"axis": 1}),
        domain=((-4, 4), (-4, 4)),
        integer_arrays=(1,),
    ),
)
def take_along_axis(arr: Value, indices: Value, axis: int | None = -1) -> Value:
    """For each position off `axis`, the elements that `indices` names along it."""
    if axis is None:
        arr, axis = views.reshape(arr, (arr.size,)), 0
    axis = check_axis("take_along_axis", axis, arr.ndim)
    return gathered(arr, _places_along("take_along_axis", arr, indices, axis))


def _check_rows(name: str, indices: Value, ndim: int) -> list[Value]:
    """The rows of `indices`: one for each of the leading axes."""
    if not indices.ndim or indices.shape[0] > ndim or not indices.shape[0]:
        raise ShapeError(
            f"{name}: indices of shape {indices.shape} for an array of {ndim} dimensions; the "
            "first extent is the number of axes that are indexed."
        )
    rest = indices.shape[1:]
    return [
        views.reshape(
            views.slice_(indices, (i,) + (0,) * len(rest), (1,) * indices.ndim, (1, *rest)), rest
        )
        for i in range(indices.shape[0])
    ]


@operation(
    numpy=lambda data, indices: data[tuple(indices)],
    public=("npx",),
    names={"mxnet": "gather_nd"},
    samples=samples(
        (((5, 4), (2, 3)), {}),
        (((5, 4), (1, 3)), {}),
        (((4, 4, 2), (2, 3, 2)), {}),
        domain=((-4, 4), (-4, 4)),
        integer_arrays=(1,),
    ),
)
def gather_nd(data: Value, indices: Value) -> Value:
    """Rows of `data` at the places whose coordinates stand along the first axis of `indices`."""
    return gathered(data, _places("gather_nd", data, _check_rows("gather_nd", indices, data.ndim)))


def placed_rows(name: str, a: Value, coordinates: Value, value: Value) -> tuple[list[Value], Value]:
    """Places in `a` whose coordinates stand along the first axis, and `value` as their rows."""
    places = _places(name, a, _check_rows(name, coordinates, a.ndim))
    return places, _fitting(value, (*places[0].shape, *a.shape[len(places) :]))


def _scatter_nd_reference(data: Any, indices: Any, shape: Any) -> Any:
    result = numpy.zeros(shape, data.dtype)
    result[tuple(indices)] = data
    return result


@operation(
    numpy=_scatter_nd_reference,
    public=("npx",),
    names={"mxnet": "scatter_nd"},
    samples=samples(
        (((3,), (2, 3)), {"shape": (5, 4)}),
        (((3, 4), (1, 3)), {"shape": (5, 4)}),
        domain=((-4, 4), (-4, 4)),
        integer_arrays=(1,),
    ),
)
def scatter_nd(data: Value, indices: Value, shape: Any) -> Value:
    """Zeros of `shape` with the rows of `data` at the places that `indices` names as `gather_nd`
    does; of equal places the last counts."""
    shape = as_tuple(shape)
    base = views.broadcast(cast(constant(0, "int64"), data.dtype), shape)
    places, update = placed_rows("scatter_nd", base, indices, data)
    return scattered(base, places, update)


# -- between flat and separate indices ------------------------------------------------------------


def _check_order(name: str, order: str) -> None:
    if order != "C":
        raise ArgumentError(f"{name}: order={order!r}; only 'C' is supported.")


@operation(
    public=(),
    numpy=numpy.unravel_index,
    samples=samples(
        ((3,), {"shape": (3, 4)}),
        ((2, 2), {"shape": (2, 3, 2)}),
        domain=((0, 12),),
        integer_arrays=(0,),
    ),
)
def unravel_index(indices: Value, shape: Any, order: str = "C") -> tuple[Value, ...]:
    """Indices of the flattened array as one index for each dimension of `shape`."""
    _check_order("unravel_index", order)
    shape = as_tuple(shape)
    rest = checked("unravel_index", indices, math.prod(shape), 0, (math.prod(shape),))
    found: list[Value] = []
    for n in reversed(shape):
        found.insert(0, e.mod(rest, extent(n)))
        rest = e.floor_divide(rest, extent(n))
    dtype = indices.dtype if indices.dtype in ("int32", "int64") else "int64"
    return tuple(cast(i, dtype) for i in found)


@operation(
    numpy=lambda multi_index, dims: numpy.ravel_multi_index(tuple(multi_index), dims),
    samples=Samples(
        [Case(([(3,), (3,)],), {"dims": (4, 5)}), Case(([(), (2,)],), {"dims": (5, 4)})],
        domain=((0, 4),),
        dtypes=("int64",),
        integer_arrays=(0,),
    ),
)
def ravel_multi_index(multi_index: Operands, dims: Any, mode: str = "raise") -> Value:
    """One index for each dimension of `dims` as an index of the flattened array."""
    dims = as_tuple(dims)
    if len(multi_index) != len(dims):
        raise ShapeError(
            f"ravel_multi_index: {len(multi_index)} indices for {len(dims)} dimensions."
        )
    if not dims:
        raise ShapeError("ravel_multi_index: no dimensions to index; give at least one.")
    total: Value | None = None
    for axis, (index, n) in enumerate(zip(multi_index, dims, strict=True)):
        own = bounded("ravel_multi_index", index, n, mode, axis, dims)
        total = own if total is None else e.add(e.multiply(total, extent(n)), own)
    assert total is not None
    return total
