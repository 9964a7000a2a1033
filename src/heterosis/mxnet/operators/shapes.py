"""Operators that rearrange elements, join and split arrays, and pick elements out.

A number stands for a sequence of one, as in MXNet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from heterosis import np, npx
from heterosis.mxnet.operators.operator import as_sequence, one_or_list, operator
from heterosis.np.members import decoded_shape
from heterosis.runtime.errors import ArgumentError

Extents: TypeAlias = int | Sequence[int]


@operator("reshape", "Reshape")
def reshape(data: Any, shape: Extents = (), reverse: bool = False) -> Any:
    """Another shape, in codes: 0 keeps an extent, -1 is inferred, -2 keeps the rest, -3 multiplies
    two, -4 splits one. With `reverse` the codes are read from the right."""
    codes, old = as_sequence(shape), data.shape
    if reverse:
        return np.reshape(data, decoded_shape(old[::-1], codes[::-1])[::-1])
    return np.reshape(data, decoded_shape(old, codes))


@operator("flatten", "Flatten")
def flatten(data: Any) -> Any:
    """All dimensions but the first made one."""
    return npx.batch_flatten(data)


@operator()
def transpose(data: Any, axes: Extents = ()) -> Any:
    """The dimensions in another order, reversed by default."""
    return np.transpose(data, as_sequence(axes) or None)


@operator()
def expand_dims(data: Any, axis: int) -> Any:
    """A new dimension of extent 1."""
    return np.expand_dims(data, axis)


@operator()
def squeeze(data: Any, axis: Any = None) -> Any:
    """Without dimensions of extent 1."""
    return np.squeeze(data, axis)


@operator("swapaxes", "SwapAxis")
def swapaxes(data: Any, dim1: int = 0, dim2: int = 0) -> Any:
    """Two dimensions in each other's place."""
    return np.swapaxes(data, dim1, dim2)


@operator("slice", "crop")
def slice_(data: Any, begin: int | Sequence, end: int | Sequence, step: int | Sequence = ()) -> Any:
    """The elements from `begin` to `end`, `step` apart, along the leading dimensions."""
    return npx.slice(data, as_sequence(begin), as_sequence(end), as_sequence(step) or None)


@operator()
def slice_axis(data: Any, axis: int, begin: int, end: int | None) -> Any:
    """The elements from `begin` to `end` along one axis."""
    return npx.slice_axis(data, axis, begin, end)


@operator()
def slice_like(data: Any, shape_like: Any, axes: Any = ()) -> Any:
    """As many elements along `axes` as `shape_like` has."""
    return npx.slice_like(data, shape_like, axes)


@operator("concat", "Concat")
def concat(*data: Any, dim: int = 1, num_args: int | None = None) -> Any:
    """Arrays joined along `dim`."""
    return np.concatenate(data, axis=dim)


@operator()
def stack(*data: Any, axis: int = 0, num_args: int | None = None) -> Any:
    """Arrays joined along a new dimension."""
    return np.stack(data, axis=axis)


@operator("split", "SliceChannel")
def split(data: Any, num_outputs: int, axis: int = 1, squeeze_axis: bool = False) -> Any:
    """Equal parts along `axis`; without it if `squeeze_axis`."""
    parts = np.split(data, num_outputs, axis=axis)
    return one_or_list(np.squeeze(part, axis) if squeeze_axis else part for part in parts)


@operator()
def split_v2(ary: Any, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """The parts between indices, or equal parts, along `axis`."""
    return one_or_list(ary.split_v2(indices_or_sections, axis, squeeze_axis))


@operator()
def tile(data: Any, reps: Any) -> Any:
    """`data` repeated as a whole, `reps` times along each axis."""
    return np.tile(data, reps)


@operator()
def repeat(data: Any, repeats: int, axis: int | None = None) -> Any:
    """Each element repeated."""
    return np.repeat(data, repeats, axis)


@operator("reverse", "flip")
def reverse(data: Any, axis: Any) -> Any:
    """Elements in reverse order along `axis`."""
    return np.flip(data, axis)


@operator("pad", "Pad")
def pad(data: Any, mode: str, pad_width: Sequence[int], constant_value: float = 0.0) -> Any:
    """A border around the data; `pad_width` has two numbers for each axis."""
    if mode not in ("constant", "edge", "reflect") or len(pad_width) != 2 * data.ndim:
        raise ArgumentError(
            f"pad: mode={mode!r}, pad_width={tuple(pad_width)} for {data.ndim} dimensions; expected "
            "'constant', 'edge' or 'reflect', and two numbers for each dimension."
        )
    pairs = tuple(zip(pad_width[::2], pad_width[1::2], strict=True))
    values = {"constant_values": constant_value} if mode == "constant" else {}
    return np.pad(data, pairs, mode=mode, **values)


@operator()
def broadcast_to(data: Any, shape: Extents) -> Any:
    """Repeated to `shape`, where 0 keeps an extent."""
    return np.broadcast_to(
        data, tuple(n or own for n, own in zip(as_sequence(shape), data.shape, strict=True))
    )


@operator("broadcast_axis", "broadcast_axes")
def broadcast_axis(data: Any, axis: Any = (), size: Any = ()) -> Any:
    """Repeated `size` times along axes of extent 1."""
    return data.broadcast_axes(axis, size)


@operator()
def broadcast_like(lhs: Any, rhs: Any, lhs_axes: Any = None, rhs_axes: Any = None) -> Any:
    """`lhs` repeated to the shape of `rhs`."""
    return lhs.broadcast_like(rhs, lhs_axes, rhs_axes)


@operator()
def reshape_like(lhs: Any, rhs: Any) -> Any:
    """`lhs` in the shape of `rhs`."""
    return npx.reshape_like(lhs, rhs)


@operator()
def shape_array(data: Any) -> Any:
    """The shape, as an array of int64."""
    return npx.shape_array(data)


@operator()
def size_array(data: Any) -> Any:
    """The number of elements, as an array of one int64."""
    return data.size_array()


@operator()
def depth_to_space(data: Any, block_size: int) -> Any:
    """Channels moved into blocks of pixels."""
    return data.depth_to_space(block_size)


@operator()
def space_to_depth(data: Any, block_size: int) -> Any:
    """Blocks of pixels moved into channels."""
    return data.space_to_depth(block_size)


@operator()
def diag(data: Any, k: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal, or a matrix with the elements on its diagonal."""
    return np.diag(data, k) if data.ndim == 1 else np.diagonal(data, k, axis1, axis2)


# -- elements by index ----------------------------------------------------------------------------


@operator()
def take(a: Any, indices: Any, axis: int = 0, mode: str = "clip") -> Any:
    """The rows of `a` that `indices` name along `axis`."""
    return np.take(a, indices.astype("int64"), axis=axis, mode=mode)


@operator()
def batch_take(a: Any, indices: Any) -> Any:
    """One element of each row."""
    return npx.pick(a, indices)


@operator("pick", "choose_element_0index")
def pick(data: Any, index: Any, axis: int = -1, keepdims: bool = False, mode: str = "clip") -> Any:
    """One element for each position off `axis`."""
    return npx.pick(data, index, axis, keepdims, mode)


@operator()
def fill_element_0index(lhs: Any, mhs: Any, rhs: Any) -> Any:
    """`lhs` with, in each row, the element that `rhs` names replaced by that of `mhs`."""
    places = np.arange(lhs.shape[1])
    here = np.expand_dims(rhs, 1) == places
    return np.where(here, np.expand_dims(mhs, 1), lhs)


@operator()
def reset_arrays(*data: Any, num_arrays: int = 1) -> None:
    """Set all elements of all arrays to 0, in place."""
    for array in data:
        array[...] = 0


@operator()
def one_hot(
    indices: Any, depth: int, on_value: float = 1.0, off_value: float = 0.0,
    dtype: Any = "float32",
) -> Any:  # fmt: skip
    """A new last dimension with `on_value` at each index."""
    return npx.one_hot(indices, depth, on_value, off_value, dtype)


@operator()
def gather_nd(data: Any, indices: Any) -> Any:
    """The elements at places given by the first dimension of `indices`."""
    return data[tuple(indices.astype("int64"))]


@operator()
def scatter_nd(data: Any, indices: Any, shape: Extents) -> Any:
    """Zeros of `shape` with `data` at places given by the first dimension of `indices`."""
    made = np.zeros(as_sequence(shape), data.dtype)
    made[tuple(indices.astype("int64"))] = data
    return made


@operator()
def unravel_index(data: Any, shape: Extents) -> Any:
    """The index along each axis, for places counted through the whole array."""
    found = np.unravel_index(data.astype("int64"), as_sequence(shape))
    return np.stack(found).astype(data.dtype)


@operator()
def ravel_multi_index(data: Any, shape: Extents) -> Any:
    """Places counted through the whole array, for indices along each axis."""
    place = data[0]
    for axis, extent in enumerate(as_sequence(shape)[1:], 1):
        place = place * extent + data[axis]
    return place


@operator()
def shuffle(data: Any) -> Any:
    """The rows in random order."""
    return np.random.permutation(data)


# -- sequences: steps along the first axis, examples along the second -----------------------------


@operator("SequenceMask")
def sequence_mask(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False,
    value: float = 0.0, axis: int = 0,
) -> Any:  # fmt: skip
    """`value` behind the end of each sequence."""
    return npx.sequence_mask(data, sequence_length, use_sequence_length, value, axis)


@operator("SequenceLast")
def sequence_last(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0
) -> Any:
    """The last step of each sequence."""
    steps = np.moveaxis(data, axis, 0)
    if not use_sequence_length:
        return steps[-1]
    return steps[sequence_length.astype("int64") - 1, np.arange(steps.shape[1], dtype="int64")]


@operator("SequenceReverse")
def sequence_reverse(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0
) -> Any:
    """The steps of each sequence in reverse; those behind its end stay."""
    if axis != 0:
        raise ArgumentError(f"SequenceReverse: axis={axis}; steps are along axis 0.")
    if not use_sequence_length:
        return np.flip(data, 0)
    step = np.arange(data.shape[0], dtype="int64").reshape(-1, 1)
    length = sequence_length.astype("int64").reshape(1, -1)
    place = np.where(step < length, length - 1 - step, step)
    return data[place, np.arange(data.shape[1], dtype="int64").reshape(1, -1)]
