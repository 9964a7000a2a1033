"""Elements at places that are computed: read, written, and added up there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.values import (
    by_numpy,
    count,
    is_host,
    kind,
    number,
    place,
)
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError

# -- reading ---------------------------------------------------------------------------------------


def _gathered(x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis = place(axis, len(x.shape))
    if is_host(x):
        return numpy.take(x, indices.astype("int64"), axis=axis)
    return np.take(x, indices, axis=axis)


def _gathered_along(x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis = place(axis, len(x.shape))
    if is_host(x):
        corner = tuple(slice(n) if i != axis else slice(None) for i, n in enumerate(indices.shape))
        return numpy.take_along_axis(x[corner], indices.astype("int64"), axis=axis)
    return npx.gather_nd(x, _along(x, indices, axis))


def _along(x: Any, indices: Any, axis: int) -> Any:
    """Coordinates of the elements that indices along one axis name: along the others, each is where
    its index is."""
    if len(indices.shape) != len(x.shape):
        raise ShapeError(
            f"indices of {len(indices.shape)} dimensions for an array of {len(x.shape)}; there "
            "must be as many."
        )
    indices = indices.astype("int64")
    shape = tuple(indices.shape)
    coordinates = []
    for i in range(len(shape)):
        own = tuple(n if i == j else 1 for j, n in enumerate(shape))
        line = np.reshape(np.arange(shape[i], dtype="int64"), own)
        coordinates.append(indices if i == axis else np.broadcast_to(line, shape))
    return np.stack(coordinates)


operator("Gather", on_host=by_numpy(_gathered))(_gathered)
operator("GatherElements", since=11, on_host=by_numpy(_gathered_along))(_gathered_along)


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _features(x: Any, indices: Any) -> Any:
    found = np.take(x, np.reshape(indices, (-1,)), axis=-1)
    return np.expand_dims(found, 0) if len(found.shape) == 1 else found


@operator("GatherND", since=11)
def _gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    coordinates = np.moveaxis(indices.astype("int64"), -1, 0)
    shape = tuple(coordinates.shape[1:])
    before = []
    for i in range(batch_dims):  # what is in one batch names places in this batch
        own = tuple(n if i == j else 1 for j, n in enumerate(shape))
        line = np.reshape(np.arange(shape[i], dtype="int64"), own)
        before.append(np.expand_dims(np.broadcast_to(line, shape), 0))
    return npx.gather_nd(x, np.concatenate([*before, coordinates]) if before else coordinates)


@operator("OneHot", since=9)
def _one_hot(indices: Any, depth: Host, values: Any, *, axis: int = -1) -> Any:
    rank = len(indices.shape) + 1
    axis, extent = place(axis, rank), number(depth)
    extent = int(extent) if isinstance(extent, float) else extent
    indices = np.expand_dims(indices.astype("int64"), axis)
    indices = np.where(indices < 0, indices + extent, indices)
    shape = tuple(extent if i == axis else 1 for i in range(rank))
    here = np.equal(indices, np.reshape(np.arange(extent, dtype="int64"), shape))
    return np.where(here, values[1], values[0])


def _triangle(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    offset = 0 if k is None else number(k)
    rows, columns = x.shape[-2:]
    row = np.reshape(np.arange(rows, dtype="int64"), (rows, 1))
    above = np.reshape(np.arange(columns, dtype="int64"), (1, columns)) - row
    inside = above >= offset if upper else above <= offset
    return np.where(inside, x, np.zeros_like(x))


@operator("Trilu", since=14)
def _trilu(x: Any, k: Host | None = None, *, upper: int = 1) -> Any:
    return _triangle(x, k, upper=upper)


@operator("ReverseSequence", since=10)
def _reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    rank = len(x.shape)
    batch, time = place(batch_axis, rank), place(time_axis, rank)

    def alone(line: Any, axis: int) -> Any:
        return np.reshape(line, tuple(line.shape[0] if i == axis else 1 for i in range(rank)))

    ends = alone(lengths.astype("int64"), batch)
    step = alone(np.arange(x.shape[time], dtype="int64"), time)
    places = np.where(step < ends, ends - 1 - step, step)
    return npx.gather_nd(x, _along(x, np.broadcast_to(places, tuple(x.shape)), time))


# -- writing ---------------------------------------------------------------------------------------


def _written(x: Any, coordinates: Any, updates: Any, reduction: str) -> Any:
    """An array with updates in it at coordinates, which stand along the first axis."""
    wanted = (*coordinates.shape[1:], *x.shape[coordinates.shape[0] :])
    if tuple(updates.shape) != wanted:
        raise ShapeError(f"updates of shape {tuple(updates.shape)}; expected {wanted}.")
    if reduction == "none":
        return npx.index_update(x, coordinates, updates)
    if reduction == "add":
        if kind(x) == "b":
            raise UnsupportedError("adding up of bool where it is written.")
        return npx.index_add(x, coordinates, updates)
    if reduction not in ("mul", "max", "min"):
        raise ArgumentError(f"reduction {reduction!r}; there are none, add, mul, max and min.")
    depth = coordinates.shape[0]
    extents, rest = tuple(x.shape[:depth]), tuple(x.shape[depth:])
    rows = count(extents)
    # The row that each update goes to; reading it refuses coordinates that are outside.
    numbers = np.reshape(np.arange(rows, dtype="int64"), extents)
    ids = np.reshape(npx.gather_nd(numbers, coordinates), (-1,))
    found = _combined(ids, np.reshape(updates, (ids.shape[0], *rest)), rows, reduction)
    of_two = {"mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    return of_two(x, np.reshape(found, tuple(x.shape)))


def _combined(ids: Any, updates: Any, rows: Any, reduction: str) -> Any:
    """For each row, the product, maximum or minimum of its updates; what changes nothing if it has
    none."""
    if kind(updates) == "b":
        raise UnsupportedError(f"{reduction!r} of bool where it is written.")
    if reduction != "mul":
        segment = npx.segment_max if reduction == "max" else npx.segment_min
        return segment(updates, ids, rows)
    # Products of runs of equal rows, twice as long each time: the last of a run has all of it.
    order = np.argsort(ids).astype("int64")
    ids, updates = np.take(ids, order, axis=0), np.take(updates, order, axis=0)
    total, step = int(ids.shape[0]), 1
    own = (total, *[1] * (len(updates.shape) - 1))
    ones = np.ones_like(updates)
    while step < total:
        same = np.equal(ids[step:], ids[:-step])
        same = np.concatenate([np.zeros((step,), dtype="bool"), same])
        shifted = np.concatenate([ones[:step], updates[:-step]])
        updates = updates * np.where(np.reshape(same, own), shifted, ones)
        step *= 2
    neutral = np.ones((rows, *updates.shape[1:]), dtype=str(updates.dtype))
    return npx.index_update(neutral, np.reshape(ids, (1, total)), updates)


def _scattered_along(
    x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none"
) -> Any:
    return _written(x, _along(x, indices, place(axis, len(x.shape))), updates, reduction)


@operator("Scatter", "ScatterElements", since=9)
def _scatter(x: Any, indices: Any, updates: Any, *, axis: int = 0) -> Any:
    return _scattered_along(x, indices, updates, axis=axis)


operator("ScatterElements", since=16)(_scattered_along)


def _scattered_nd_on_host(
    x: Any, indices: Any, updates: Any, *, reduction: str = "none"
) -> numpy.ndarray:
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "none": lambda _, new: new,
        "add": numpy.add,
        "mul": numpy.multiply,
        "max": numpy.maximum,
        "min": numpy.minimum,
    }
    if reduction not in functions:
        raise ArgumentError(f"reduction {reduction!r}; there are {', '.join(functions)}.")
    found: numpy.ndarray = x.astype(object) if updates.dtype == object else x.copy()
    for where in numpy.ndindex(indices.shape[:-1]):
        at = tuple(indices[where].tolist())
        found[at] = functions[reduction](found[at], updates[where])
    return found


@operator("ScatterND", since=11, on_host=by_numpy(_scattered_nd_on_host))
def _scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    coordinates = np.moveaxis(indices.astype("int64"), -1, 0)
    return _written(x, coordinates, updates, reduction)


# -- places that hold something --------------------------------------------------------------------


def _nonzero_on_host(x: Any) -> numpy.ndarray:
    return numpy.stack(numpy.nonzero(x)) if x.ndim else numpy.zeros((0, int(bool(x))), "int64")


@operator("NonZero", since=9, on_host=by_numpy(_nonzero_on_host))
def _nonzero(x: Any) -> Any:
    return np.transpose(npx.nonzero(x)).astype("int64")


@operator("Compress", since=9)
def _compress(x: Any, condition: Host, *, axis: int | None = None) -> Any:
    chosen = np.array(numpy.flatnonzero(condition), dtype="int64")
    if axis is None:
        return np.take(np.reshape(x, (-1,)), chosen, axis=0)
    return np.take(x, chosen, axis=place(axis, len(x.shape)))
