"""Arrays in other shapes, and made of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis import np
from heterosis.array_api.data_types import result_type
from heterosis.runtime.errors import ArgumentError

ndarray = np.ndarray
Axes = int | tuple[int, ...] | None


def broadcast_arrays(*arrays: ndarray) -> list[ndarray]:
    """All arrays repeated to their common shape."""
    return np.broadcast_arrays(*arrays)


def broadcast_to(x: ndarray, /, shape: Any) -> ndarray:
    """The array repeated to `shape`."""
    return np.broadcast_to(x, shape)


def concat(arrays: Sequence[ndarray], /, *, axis: int | None = 0) -> ndarray:
    """The arrays one behind the other along `axis`; flattened first, if it is None."""
    return np.concatenate(_of_one_type(arrays), axis)


def _of_one_type(arrays: Sequence[ndarray]) -> list[ndarray]:
    if not len(arrays):
        return []
    dtype = result_type(*arrays)
    return [x.astype(dtype, copy=False) for x in arrays]


def expand_dims(x: ndarray, /, axis: int | tuple[int, ...] = 0) -> ndarray:
    """The array with a dimension of extent 1 at `axis`."""
    return np.expand_dims(x, axis)


def flip(x: ndarray, /, *, axis: Axes = None) -> ndarray:
    """The elements in reverse order along the axes, or along all of them."""
    return np.flip(x, axis)


def moveaxis(x: ndarray, source: Any, destination: Any, /) -> ndarray:
    """The dimensions in another order: `source` goes to `destination`, the others stay."""
    return np.moveaxis(x, source, destination)


def permute_dims(x: ndarray, /, axes: tuple[int, ...]) -> ndarray:
    """The dimensions in another order."""
    return np.transpose(x, axes)


def repeat(x: ndarray, repeats: Any, /, *, axis: int | None = None) -> ndarray:
    """Each element `repeats` times in a row; `repeats` may be one number for each."""
    return np.repeat(x, repeats, axis)


def reshape(x: ndarray, /, shape: tuple[int, ...], *, copy: bool | None = None) -> ndarray:
    """The same elements under another shape; `copy` as for `asarray`."""
    made = np.reshape(x, shape)
    if copy and np.may_share_memory(made, x):
        return made.copy()
    if copy is False and x.size and not np.may_share_memory(made, x):
        raise ArgumentError(
            f"reshape: copy=False, but an array of shape {x.shape} and strides {x.strides} gets "
            f"the shape {shape} only in a copy; leave copy away."
        )
    return made


def roll(x: ndarray, /, shift: Any, *, axis: Axes = None) -> ndarray:
    """The elements moved along the axes; what leaves at one end comes in at the other."""
    return np.roll(x, shift, axis)


def squeeze(x: ndarray, /, axis: int | tuple[int, ...]) -> ndarray:
    """The array without dimensions of extent 1."""
    return np.squeeze(x, axis)


def stack(arrays: Sequence[ndarray], /, *, axis: int = 0) -> ndarray:
    """The arrays side by side along a new axis."""
    return np.stack(_of_one_type(arrays), axis)


def tile(x: ndarray, repetitions: tuple[int, ...], /) -> ndarray:
    """Copies of the array next to each other, so many along each dimension."""
    return np.tile(x, repetitions)


def unstack(x: ndarray, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The parts along `axis`, without it."""
    rows = np.moveaxis(x, axis, 0)
    return tuple(rows[i] for i in range(rows.shape[0]))


__all__ = [
    "broadcast_arrays",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]
