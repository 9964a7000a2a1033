"""Shapes, and what moves elements without changing them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.values import (
    by_numpy,
    count,
    hosted,
    is_host,
    is_small,
    listed,
    module,
    part,
    place,
    places,
    sizes,
)
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError

# -- shapes as values ------------------------------------------------------------------------------


def _shape_of(x: Any, *, start: int = 0, end: int | None = None) -> numpy.ndarray:
    return sizes(x.shape[start:end])


def _size_of(x: Any) -> numpy.ndarray:
    return hosted(count(x.shape))


operator("Shape", on_host=_shape_of)(_shape_of)
operator("Size", on_host=_size_of)(_size_of)


# -- other shapes for the same elements ------------------------------------------------------------


def _reshaped(x: Any, shape: Any, *, allowzero: int = 0) -> Any:
    wanted = [
        x.shape[i] if type(n) is int and n == 0 and not allowzero else n
        for i, n in enumerate(listed(shape))
    ]
    if 0 in x.shape and -1 in wanted:  # NumPy has no number for it; here it stands for the rest
        known = count([n for n in wanted if n != -1])
        wanted = [(count(x.shape) // known if known else 0) if n == -1 else n for n in wanted]
    return x.reshape(wanted) if is_host(x) else np.reshape(x, tuple(wanted))


@operator("Reshape")
def _reshape_by_attribute(x: Any, *, shape: list[int]) -> Any:
    return _reshaped(x, numpy.array(shape))


@operator("Reshape", since=5, on_host=by_numpy(_reshaped))
def _reshape(x: Any, shape: Host, *, allowzero: int = 0) -> Any:
    return _reshaped(x, shape, allowzero=allowzero)


def _flattened(x: Any, *, axis: int = 1) -> Any:
    rank = len(x.shape)
    axis = axis if axis == rank else place(axis, rank)
    shape = (count(x.shape[:axis]), count(x.shape[axis:]))
    return x.reshape(shape) if is_host(x) else np.reshape(x, shape)


operator("Flatten", on_host=by_numpy(_flattened))(_flattened)


def _squeezed(x: Any, axes: Sequence[int] | None) -> Any:
    rank = len(x.shape)
    chosen = [i for i in range(rank) if x.shape[i] == 1] if axes is None else places(axes, rank)
    for axis in chosen:
        if x.shape[axis] != 1:
            raise ShapeError(f"Squeeze of axis {axis}, where the shape is {tuple(x.shape)}.")
    shape = tuple(n for i, n in enumerate(x.shape) if i not in chosen)
    return x.reshape(shape) if is_host(x) else np.reshape(x, shape)


def _unsqueezed(x: Any, axes: Sequence[int]) -> Any:
    chosen = places(axes, len(x.shape) + len(axes))
    if len(set(chosen)) < len(chosen):
        raise ArgumentError(f"Unsqueeze at {list(axes)} names an axis twice.")
    rest = iter(x.shape)
    shape = tuple(1 if i in chosen else next(rest) for i in range(len(x.shape) + len(chosen)))
    return x.reshape(shape) if is_host(x) else np.reshape(x, shape)


def _squeezed_by_input(x: Any, axes: Any = None) -> Any:
    return _squeezed(x, None if axes is None else listed(axes))


def _unsqueezed_by_input(x: Any, axes: Any) -> Any:
    return _unsqueezed(x, listed(axes))


def _squeeze_by_attribute(x: Any, *, axes: list[int] | None = None) -> Any:
    return _squeezed(x, axes)


def _unsqueeze_by_attribute(x: Any, *, axes: list[int]) -> Any:
    return _unsqueezed(x, axes)


operator("Squeeze", on_host=by_numpy(_squeeze_by_attribute))(_squeeze_by_attribute)
operator("Unsqueeze", on_host=by_numpy(_unsqueeze_by_attribute))(_unsqueeze_by_attribute)


@operator("Squeeze", since=13, on_host=by_numpy(_squeezed_by_input))
def _squeeze(x: Any, axes: Host | None = None) -> Any:
    return _squeezed_by_input(x, axes)


@operator("Unsqueeze", since=13, on_host=by_numpy(_unsqueezed_by_input))
def _unsqueeze(x: Any, axes: Host) -> Any:
    return _unsqueezed_by_input(x, axes)


def _transposed(x: Any, *, perm: list[int] | None = None) -> Any:
    return module(x).transpose(x, perm)


operator("Transpose", on_host=by_numpy(_transposed))(_transposed)


# -- other sizes -----------------------------------------------------------------------------------


def _common(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """The shape that arrays of both shapes are broadcast to."""
    pairs = list(itertools.zip_longest(reversed(a), reversed(b), fillvalue=1))
    if any(m != 1 and n not in (1, m) for m, n in pairs):
        raise ShapeError(f"Expand of shape {tuple(a)} to {tuple(b)}, which do not fit.")
    return tuple(n if m == 1 else m for m, n in reversed(pairs))


def _expanded(x: Any, shape: Any) -> Any:
    wanted = _common(x.shape, listed(shape))
    if is_host(x):
        if is_small(wanted):
            return numpy.broadcast_to(x, wanted)
        x = np.array(x.tolist(), dtype="int64" if x.dtype == object else str(x.dtype))
    return np.broadcast_to(x, wanted)


@operator("Expand", since=8, on_host=by_numpy(_expanded))
def _expand(x: Any, shape: Host) -> Any:
    return _expanded(x, shape)


def _tiled(x: Any, repeats: Any) -> Any:
    times = listed(repeats)
    if len(times) != len(x.shape):
        raise ShapeError(f"Tile of {len(x.shape)} dimensions by {len(times)} numbers.")
    return module(x).tile(x, tuple(times))


@operator("Tile", since=6, on_host=by_numpy(_tiled))
def _tile(x: Any, repeats: Host) -> Any:
    return _tiled(x, repeats)


def _concatenated(*inputs: Any, axis: int) -> Any:
    return module(inputs[0]).concatenate(inputs, axis=axis)


operator("Concat", since=4, on_host=by_numpy(_concatenated))(_concatenated)


def _concatenated_at_1(*inputs: Any, axis: int = 1) -> Any:
    return _concatenated(*inputs, axis=axis)


operator("Concat", on_host=by_numpy(_concatenated_at_1))(_concatenated_at_1)


# -- parts -----------------------------------------------------------------------------------------


def _split(x: Any, parts: Sequence[Any] | None, axis: int, outputs: int, even: bool) -> Any:
    axis = place(axis, len(x.shape))
    extent = x.shape[axis]
    if parts is None:
        each = -(-extent // outputs)
        if even and each * outputs != extent:
            raise ShapeError(f"Split of {extent} into {outputs} parts of one size.")
        parts = [*[each] * (outputs - 1), extent - each * (outputs - 1)]
    ends = list(itertools.accumulate(parts))
    if ends and ends[-1] != extent:
        raise ShapeError(f"Split of {extent} into parts of {list(parts)}.")
    return tuple(part(x, axis, end - n, end) for n, end in zip(parts, ends, strict=True))


def _split_by_attribute(
    x: Any, *, axis: int = 0, split: list[int] | None = None, _outputs: int
) -> Any:
    return _split(x, split, axis, _outputs, even=True)


def _split_evenly(x: Any, split: Any = None, *, axis: int = 0, _outputs: int) -> Any:
    return _split(x, None if split is None else listed(split), axis, _outputs, even=True)


def _split_by_number(
    x: Any, split: Any = None, *, axis: int = 0, num_outputs: int | None = None, _outputs: int
) -> Any:
    parts = None if split is None else listed(split)
    return _split(x, parts, axis, num_outputs or _outputs, even=False)


operator("Split", since=2, on_host=by_numpy(_split_by_attribute))(_split_by_attribute)


@operator("Split", since=13, on_host=by_numpy(_split_evenly))
def _split_13(x: Any, split: Host | None = None, *, axis: int = 0, _outputs: int) -> Any:
    return _split_evenly(x, split, axis=axis, _outputs=_outputs)


@operator("Split", since=18, on_host=by_numpy(_split_by_number))
def _split_18(
    x: Any,
    split: Host | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    _outputs: int,
) -> Any:
    return _split_by_number(x, split, axis=axis, num_outputs=num_outputs, _outputs=_outputs)


def _sliced(
    x: Any,
    starts: Sequence[Any],
    ends: Sequence[Any],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Any:
    chosen = places(range(len(starts)) if axes is None else axes, len(x.shape))
    index = [slice(None)] * len(x.shape)
    for axis, start, end, step in zip(
        chosen, starts, ends, steps or [1] * len(starts), strict=True
    ):
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


@operator("Slice")
def _slice_by_attributes(
    x: Any, *, starts: list[int], ends: list[int], axes: list[int] | None = None
) -> Any:
    return _sliced(x, starts, ends, axes, None)


def _sliced_by_inputs(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    return _sliced(
        x,
        listed(starts),
        listed(ends),
        None if axes is None else listed(axes),
        None if steps is None else listed(steps),
    )


@operator("Slice", since=10, on_host=by_numpy(_sliced_by_inputs))
def _slice(
    x: Any, starts: Host, ends: Host, axes: Host | None = None, steps: Host | None = None
) -> Any:
    return _sliced_by_inputs(x, starts, ends, axes, steps)


# -- borders ---------------------------------------------------------------------------------------


def padded(x: Any, befores: Sequence[Any], afters: Sequence[Any], mode: str, value: Any) -> Any:
    """An array with so much more at both ends of each dimension; less, where it is below 0."""
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise ArgumentError(f"Pad by {mode!r}; there are constant, reflect, edge and wrap.")
    crops = [(max(-b, 0), max(-a, 0)) for b, a in zip(befores, afters, strict=True)]
    if any(b or a for b, a in crops):
        if mode != "constant" and any(
            n > 0 for b, a in zip(befores, afters, strict=True) for n in (b, a)
        ):
            raise UnsupportedError(f"Pad by {mode!r} both adds and takes away elements.")
        x = x[tuple(slice(b, n - a) for (b, a), n in zip(crops, x.shape, strict=True))]
    widths = tuple((max(b, 0), max(a, 0)) for b, a in zip(befores, afters, strict=True))
    if not any(b or a for b, a in widths):
        return x
    keywords = {"constant_values": value} if mode == "constant" else {}
    return np.pad(x, widths, mode=mode, **keywords)


@operator("Pad")
def _pad_by_paddings(
    x: Any, *, paddings: list[int], mode: str = "constant", value: float = 0.0
) -> Any:
    return _pad_by_attributes(x, pads=paddings, mode=mode, value=value)


@operator("Pad", since=2)
def _pad_by_attributes(
    x: Any, *, pads: list[int], mode: str = "constant", value: float = 0.0
) -> Any:
    rank = len(x.shape)
    return padded(x, pads[:rank], pads[rank:], mode, value)


@operator("Pad", since=11)
def _pad(
    x: Any,
    pads: Host,
    constant_value: Host | None = None,
    axes: Host | None = None,
    *,
    mode: str = "constant",
) -> Any:
    rank = len(x.shape)
    chosen = places(None if axes is None else listed(axes), rank)
    given = listed(pads)
    if len(given) != 2 * len(chosen):
        raise ShapeError(f"Pad of {len(chosen)} axes by {len(given)} numbers.")
    befores, afters = [0] * rank, [0] * rank
    for i, axis in enumerate(chosen):
        befores[axis], afters[axis] = given[i], given[i + len(chosen)]
    given_value = [] if constant_value is None else listed(constant_value)
    value = given_value[0] if given_value else 0
    return padded(x, befores, afters, mode, value)


@operator("CenterCropPad", since=18)
def _center_crop_pad(x: Any, shape: Host, *, axes: list[int] | None = None) -> Any:
    befores, afters = [0] * len(x.shape), [0] * len(x.shape)
    for axis, wanted in zip(places(axes, len(x.shape)), listed(shape), strict=True):
        more = wanted - x.shape[axis]
        befores[axis] = more // 2 if more > 0 else -(-more // 2)
        afters[axis] = more - befores[axis]
    return padded(x, befores, afters, "constant", 0)


# -- squares of depth ------------------------------------------------------------------------------


@operator("DepthToSpace")
def _depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        apart = np.reshape(x, (n, b, b, c // (b * b), h, w))
        apart = np.transpose(apart, (0, 3, 4, 1, 5, 2))
    elif mode == "CRD":
        apart = np.reshape(x, (n, c // (b * b), b, b, h, w))
        apart = np.transpose(apart, (0, 1, 4, 2, 5, 3))
    else:
        raise ArgumentError(f"DepthToSpace by {mode!r}; there are DCR and CRD.")
    return np.reshape(apart, (n, c // (b * b), h * b, w * b))


@operator("SpaceToDepth")
def _space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    if mode not in ("DCR", "CRD"):
        raise ArgumentError(f"SpaceToDepth by {mode!r}; there are DCR and CRD.")
    n, c, h, w = x.shape
    b = blocksize
    apart = np.reshape(x, (n, c, h // b, b, w // b, b))
    apart = np.transpose(apart, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return np.reshape(apart, (n, c * b * b, h // b, w // b))
