"""Arrays as offset and strides in all the elements of a memory, which are one array of JAX's."""

from __future__ import annotations

from math import prod
from typing import Any

import jax.numpy as jnp
from jax import lax

from heterosis.ir.strided import Strided, row_major
from heterosis.ir.types import numpy_dtype


def read(elements: Any, offset: Any, dtype: str, layout: Strided) -> Any:
    """The array of that element type that lies in `elements` as `layout` says, from `offset` on."""
    elements = _of_type(elements, dtype)
    shape = layout.shape
    if 0 in shape:
        return jnp.zeros(shape, elements.dtype)
    axes = _dense(layout)
    if axes is None:
        return elements.at[_places(offset, layout)].get(mode="promise_in_bounds")
    extents = [shape[axis] for axis in axes]
    found = lax.reshape(_part(elements, offset, prod(extents)), extents)
    inner_first = sorted(range(len(axes)), key=axes.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(found, inner_first), shape, sorted(axes))


def written(elements: Any, offset: Any, layout: Strided, array: Any) -> Any:
    """`elements` with those of `array` where `layout` says, from `offset` on."""
    if 0 in layout.shape:
        return elements
    array = _of_type(array, elements.dtype)
    if layout.is_contiguous:
        return lax.dynamic_update_slice(elements, lax.reshape(array, (array.size,)), (offset,))
    places = _places(offset, layout)
    return elements.at[places].set(array, mode="promise_in_bounds", unique_indices=True)


def _of_type(elements: Any, dtype: Any) -> Any:
    """The same bits, where memory is seen as elements of another type."""
    wanted = numpy_dtype(dtype) if isinstance(dtype, str) else dtype
    return elements if elements.dtype == wanted else elements.view(wanted)


def _part(elements: Any, offset: Any, size: int) -> Any:
    if elements.size == size:
        return elements
    return lax.dynamic_slice(elements, (offset,), (size,))


def _dense(layout: Strided) -> list[int] | None:
    """The axes that elements change along, the outermost in memory first, if these elements stand
    without gaps; else None."""
    pairs = list(zip(layout.shape, layout.strides, strict=True))
    axes = [axis for axis, (extent, stride) in enumerate(pairs) if extent > 1 and stride]
    axes.sort(key=lambda axis: -layout.strides[axis])
    strides = tuple(layout.strides[axis] for axis in axes)
    is_dense = strides == row_major(tuple(layout.shape[axis] for axis in axes))
    return axes if is_dense else None


def _places(offset: Any, layout: Strided) -> Any:
    """The number of each element, in `layout`'s shape."""
    found = jnp.asarray(offset, "int64")
    for axis, stride in enumerate(layout.strides):
        if stride:
            found = found + stride * lax.broadcasted_iota("int64", layout.shape, axis)
    return jnp.broadcast_to(found, layout.shape)
