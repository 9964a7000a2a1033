"""Operations that MXNet's programs know and NumPy does not: members of arrays, and `npx`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy

from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, GATHER, Value, apply, constant, extent
from heterosis.ir.slices import taken
from heterosis.ir.types import TensorType
from heterosis.ops.array.creation import filled
from heterosis.ops.math import elementwise as e
from heterosis.ops.record import REGISTRY, default, operation
from heterosis.ops.rules import cast, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axis

_MEMBER = ("npx", "ndarray")
Axes: TypeAlias = "int | tuple[int, ...]"

# -- parts ----------------------------------------------------------------------------------------

_FEW = ("int32", "float32")


def _parts(*cases: tuple[tuple[Any, ...], dict[str, Any]]) -> Samples:
    return Samples([Case(shapes, attributes) for shapes, attributes in cases], dtypes=_FEW)


def _sliced(x: Value, slices: list[slice]) -> Value:
    """The elements that the slices take, one for each dimension."""
    starts, steps, counts = zip(*map(taken, slices, x.shape), strict=True) if slices else ((),) * 3
    return views.slice_(x, starts, steps, counts)


def _slices(
    x: Value, begin: tuple[Any, ...], end: tuple[Any, ...], step: tuple[Any, ...]
) -> list[slice]:
    given = [slice(*limits) for limits in zip(begin, end, step, strict=True)]
    return given + [slice(None)] * (x.ndim - len(given))


@operation(
    name="slice",
    numpy=lambda x, begin, end, step=None: x[
        tuple(map(slice, begin, end, step or (None,) * len(begin)))
    ],
    public=_MEMBER,
    names={"mxnet": "slice"},
    views=True,
    samples=_parts(
        (((5, 6),), {"begin": (1, None), "end": (4, 5)}),
        (((5, 6),), {"begin": (None,), "end": (None,), "step": (-1,)}),
    ),
)
def slice_(
    data: Value, begin: tuple[Any, ...], end: tuple[Any, ...], step: tuple[Any, ...] | None = None
) -> Value:
    """The elements from `begin` to `end`, `step` apart, along the leading dimensions."""
    step = step or (None,) * len(begin)
    if not len(begin) == len(end) == len(step) <= data.ndim:
        raise ShapeError(
            f"slice: begin={begin}, end={end}, step={step} for an array of shape {data.shape}; "
            "give one number, or None, for each of the leading dimensions in all three."
        )
    return _sliced(data, _slices(data, begin, end, step))


def _slice_axis(x: numpy.ndarray, axis: int, begin: int, end: int | None) -> numpy.ndarray:
    return numpy.moveaxis(numpy.moveaxis(x, axis, 0)[begin:end], 0, axis)


@operation(
    numpy=_slice_axis,
    public=_MEMBER,
    names={"mxnet": "slice_axis"},
    views=True,
    samples=_parts(
        (((5, 6),), {"axis": 1, "begin": 1, "end": -1}),
        (((5, 6),), {"axis": -2, "begin": 2, "end": None}),
    ),
)
def slice_axis(data: Value, axis: int, begin: int, end: int | None) -> Value:
    """The elements from `begin` to `end` along one axis."""
    axis = check_axis("slice_axis", axis, data.ndim)
    slices = [slice(None)] * data.ndim
    slices[axis] = slice(begin, end)
    return _sliced(data, slices)


def _slice_like(x: numpy.ndarray, y: numpy.ndarray, axes: tuple[Any, ...] = ()) -> numpy.ndarray:
    cut = [slice(n if not axes or a in axes else None) for a, n in enumerate(y.shape)]
    return x[tuple(cut)]


@operation(
    numpy=_slice_like,
    public=_MEMBER,
    names={"mxnet": "slice_like"},
    samples=_parts((((5, 6), (2, 3)), {}), (((5, 6), (2, 3)), {"axes": (1,)})),
)
def slice_like(data: Value, shape_like: Value, axes: Axes = ()) -> Value:
    """The first elements along `axes` (all of them by default), as many as `shape_like` has."""
    axes = axes if isinstance(axes, tuple) else (axes,)
    chosen = [check_axis("slice_like", a, data.ndim) for a in axes] or range(shape_like.ndim)
    slices = [slice(None)] * data.ndim
    for axis in chosen:
        slices[axis] = slice(shape_like.shape[axis])
    return _sliced(data, slices)


def _pick(x: numpy.ndarray, index: numpy.ndarray, axis: int = -1, keepdims: bool = False) -> Any:
    at = numpy.clip(numpy.expand_dims(index, axis), 0, x.shape[axis] - 1).astype("int64")
    found = numpy.take_along_axis(x, at, axis)
    return found if keepdims else found.squeeze(axis)


@operation(
    numpy=_pick,
    public=_MEMBER,
    names={"mxnet": "pick"},
    samples=Samples(
        [
            Case(((3, 4), (3,))),
            Case(((3, 4), (4,)), {"axis": 0}),
            Case(((2, 3, 4), (2, 4)), {"axis": 1, "keepdims": True}),
        ],
        domain=((-4, 4), (0, 4)),
        dtypes=_FEW,
        integer_arrays=(1,),
    ),
)
def pick(
    data: Value, index: Value, axis: int = -1, keepdims: bool = False, mode: str = "clip"
) -> Value:
    """One element for each position off `axis`: the one that `index` names along it."""
    axis = check_axis("pick", axis, data.ndim)
    shape = tuple(n for a, n in enumerate(data.shape) if a != axis)
    count = data.shape[axis]
    at = views.reshape(cast(index, "int64"), shape)
    places = [counter_along(shape, d) for d in range(len(shape))]
    places.insert(axis, _bounded("pick", at, count, mode))
    found = apply(GATHER, (data, *places), TensorType(shape, data.dtype))
    if not keepdims:
        return found
    return views.reshape(found, (*shape[:axis], 1, *shape[axis:]))


def counter_along(shape: tuple[int, ...], axis: int) -> Value:
    """Every element's position along `axis`."""
    column = (shape[axis],) + (1,) * (len(shape) - axis - 1)
    return views.broadcast(views.reshape(iota(shape[axis]), column), shape)


def _bounded(name: str, index: Value, count: int, mode: str) -> Value:
    if mode == "wrap":
        return e.mod(index, extent(count))
    if mode != "clip":
        raise ArgumentError(f"{name}: mode={mode!r}; expected 'clip' or 'wrap'.")
    return e.minimum(e.maximum(index, 0), extent(count - 1))


def _one_hot(indices: numpy.ndarray, depth: int, **more: Any) -> Any:
    return (indices[..., None] == numpy.arange(depth)).astype("float32")


@operation(
    numpy=_one_hot,
    public=_MEMBER,
    names={"mxnet": "one_hot"},
    samples=Samples(
        [Case(((3,),), {"depth": 4}), Case(((2, 3),), {"depth": 3}), Case(((),), {"depth": 2})],
        domain=(-1, 4),
        dtypes=("int32",),
    ),
)
def one_hot(
    indices: Value,
    depth: int,
    on_value: Value = default(1.0),
    off_value: Value = default(0.0),
    dtype: str = "float32",
) -> Value:
    """A new last dimension of `depth`: `on_value` at each index, `off_value` elsewhere."""
    shape = (*indices.shape, depth)
    at = views.broadcast(views.reshape(indices, (*indices.shape, 1)), shape)
    here = e.equal(cast(at, "int64"), views.broadcast(iota(depth), shape))
    return e.select(here, cast(on_value, dtype), cast(off_value, dtype))


# -- shapes ---------------------------------------------------------------------------------------


def _reshaped_like(
    x: Any,
    y: Any,
    lhs_begin: Any = None,
    lhs_end: Any = None,
    rhs_begin: Any = None,
    rhs_end: Any = None,
) -> Any:
    before = x.shape[: lhs_begin or 0]
    after = () if lhs_end is None else x.shape[lhs_end:]
    return x.reshape((*before, *y.shape[slice(rhs_begin, rhs_end)], *after))


@operation(
    numpy=_reshaped_like,
    public=_MEMBER,
    names={"mxnet": "reshape_like"},
    samples=_parts(
        (((2, 6), (3, 4)), {}),
        (((6, 5), (2, 3, 4)), {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2}),
        (((2, 6), (5, 2, 3)), {"lhs_begin": -1, "rhs_begin": 1}),
    ),
)
def reshape_like(
    lhs: Value,
    rhs: Value,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> Value:
    """`lhs` in the shape of `rhs`; with bounds, its dimensions from `lhs_begin` up to `lhs_end`
    replaced by those of `rhs` from `rhs_begin` up to `rhs_end`."""
    dimensions = range(lhs.ndim)[slice(lhs_begin, lhs_end)]
    inner = rhs.shape[slice(rhs_begin, rhs_end)]
    shape = (*lhs.shape[: dimensions.start], *inner, *lhs.shape[dimensions.stop :])
    if lhs.size != math.prod(shape):
        raise ShapeError(
            f"reshape_like: shapes {lhs.shape} and {shape} hold different numbers of elements."
        )
    return views.reshape(lhs, shape)


@operation(
    numpy=lambda x, y: numpy.broadcast_to(x, y.shape),
    public=_MEMBER,
    names={"mxnet": "broadcast_like"},
    samples=_parts((((1, 3), (2, 3)), {})),
)
def broadcast_like(
    lhs: Value, rhs: Value, lhs_axes: Axes | None = None, rhs_axes: Axes | None = None
) -> Value:
    """`lhs` repeated to the shape of `rhs`, along all axes or along those that are named."""
    if lhs_axes is None and rhs_axes is None:
        return _repeated("broadcast_like", lhs, rhs.shape)
    shape = list(lhs.shape)
    for mine, theirs in zip(_tuple(lhs_axes), _tuple(rhs_axes), strict=True):
        mine = check_axis("broadcast_like", mine, lhs.ndim)
        shape[mine] = rhs.shape[check_axis("broadcast_like", theirs, rhs.ndim)]
    return _repeated("broadcast_like", lhs, tuple(shape))


@operation(
    numpy=lambda x, axis, size: numpy.repeat(x, size, axis),
    public=_MEMBER,
    names={"mxnet": "broadcast_axis"},
    samples=_parts((((2, 1, 3),), {"axis": 1, "size": 4})),
)
def broadcast_axes(data: Value, axis: Axes = (), size: Axes = ()) -> Value:
    """`data` repeated `size` times along axes of extent 1."""
    shape = list(data.shape)
    for at, count in zip(_tuple(axis), _tuple(size), strict=True):
        shape[check_axis("broadcast_axes", at, data.ndim)] = count
    return _repeated("broadcast_axes", data, tuple(shape))


def _tuple(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


def _repeated(name: str, x: Value, shape: tuple[int, ...]) -> Value:
    if x.ndim > len(shape) or any(
        n not in (1, m) for n, m in zip(reversed(x.shape), reversed(shape), strict=False)
    ):
        raise ShapeError(f"{name}: an array of shape {x.shape} cannot be repeated to {shape}.")
    return views.broadcast(x, shape)


@operation(
    numpy=lambda x: numpy.array(x.shape, "int64"),
    public=_MEMBER,
    names={"mxnet": "shape_array"},
    samples=_parts((((2, 6),), {}), (((3,),), {}), (((),), {})),
)
def shape_array(data: Value) -> Value:
    """The shape, as an array of int64."""
    if not data.ndim:
        return filled("shape_array", constant(0, "int64"), (0,), "int64")
    parts = [views.reshape(cast(extent(n), "int64"), (1,)) for n in data.shape]
    places = tuple(((i,), (1,)) for i in range(data.ndim))
    return apply(ASSEMBLE, parts, TensorType((data.ndim,), "int64"), places=places, filled=False)


@operation(
    numpy=lambda x: numpy.array([x.size], "int64"),
    public=_MEMBER,
    names={"mxnet": "size_array"},
    samples=_parts((((2, 6),), {}), (((),), {})),
)
def size_array(data: Value) -> Value:
    """The number of elements, as an array of one int64."""
    return views.reshape(cast(extent(data.size), "int64"), (1,))


def _check_blocks(name: str, x: Value, block: int, divides: tuple[int, ...]) -> None:
    if x.ndim != 4 or block < 1 or any(n % block for n in divides):
        raise ShapeError(
            f"{name}: blocks of {block} do not fit an array of shape {x.shape}; expected (batch, "
            "channels, height, width) that they divide."
        )


@operation(
    numpy=lambda x, block_size: _rearranged(numpy.reshape, numpy.transpose, x, block_size),
    public=_MEMBER,
    names={"mxnet": "depth_to_space"},
    samples=_parts((((2, 8, 2, 3),), {"block_size": 2})),
)
def depth_to_space(data: Value, block_size: int) -> Value:
    """Channels moved into blocks of pixels."""
    _check_blocks("depth_to_space", data, block_size, (data.shape[1] // block_size,))
    result: Value = _rearranged(views.reshape, views.transpose, data, block_size)
    return result


def _rearranged(
    reshape: Callable[..., Any], transpose: Callable[..., Any], x: Any, block: int
) -> Any:
    n, c, h, w = x.shape
    x = reshape(x, (n, block, block, c // block**2, h, w))
    return reshape(transpose(x, (0, 3, 4, 1, 5, 2)), (n, c // block**2, h * block, w * block))


@operation(
    numpy=lambda x, block_size: _gathered(numpy.reshape, numpy.transpose, x, block_size),
    public=_MEMBER,
    names={"mxnet": "space_to_depth"},
    samples=_parts((((2, 3, 4, 6),), {"block_size": 2})),
)
def space_to_depth(data: Value, block_size: int) -> Value:
    """Blocks of pixels moved into channels."""
    _check_blocks("space_to_depth", data, block_size, data.shape[2:])
    result: Value = _gathered(views.reshape, views.transpose, data, block_size)
    return result


def _gathered(
    reshape: Callable[..., Any], transpose: Callable[..., Any], x: Any, block: int
) -> Any:
    n, c, h, w = x.shape
    x = reshape(x, (n, c, h // block, block, w // block, block))
    return reshape(transpose(x, (0, 3, 5, 1, 2, 4)), (n, c * block**2, h // block, w // block))


# -- reductions -----------------------------------------------------------------------------------


@operation(
    numpy=lambda x: x.argmax(1).astype("float32"),
    public=("ndarray",),
    names={"mxnet": "argmax_channel"},
    piecewise_constant="numbers of places",
    samples=Samples([Case(((3, 4),)), Case(((2, 3, 4),))], dtypes=("float32",)),
)
def argmax_channel(data: Value) -> Value:
    """The index of the largest element along axis 1, as float32."""
    return cast(REGISTRY["argmax"].operation(data, axis=1), "float32")
