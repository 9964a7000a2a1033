"""Convolutions and what turns them round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.models.onnx.operators.activations import MICROSOFT
from heterosis.models.onnx.operators.fused import activated
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.operators.windows import (
    in_space,
    numbers,
    padded,
    pairs,
    spans,
    windows,
)
from heterosis.runtime.errors import FormatError, UnsupportedError

Numbers = list[int] | None
_MOST_EXACT = 1 << 53  # up to here, float64 has every integer


def _kernel(w: Any, kernel_shape: Numbers) -> tuple[int, ...]:
    kernel = tuple(w.shape[2:])
    if kernel_shape and tuple(kernel_shape) != kernel:
        raise FormatError(f"kernel_shape={kernel_shape} for a weight of shape {w.shape}.")
    return kernel


def convolved(
    x: Any, w: Any, b: Any, auto_pad: str, dilations: Numbers, group: int, kernel_shape: Numbers,
    pads: Numbers, strides: Numbers,
) -> Any:  # fmt: skip
    """One convolution; behind padding of its own where that is not the same on both sides."""
    at = windows(x.shape[2:], _kernel(w, kernel_shape), strides, dilations, pads, auto_pad)
    pad = at.symmetric
    if pad is None:
        x = padded(x, at.pads)
    return npx.convolution(
        x, w, b, kernel=at.kernel, stride=at.strides, dilate=at.dilations,
        pad=(0,) * len(at.kernel) if pad is None else pad,
        num_filter=w.shape[0], num_group=group, no_bias=b is None,
    )  # fmt: skip


@operator("Conv")
def _conv(
    x: Any, w: Any, b: Any = None,
    *, auto_pad: str = "NOTSET", dilations: Numbers = None, group: int = 1,
    kernel_shape: Numbers = None, pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    return convolved(x, w, b, auto_pad, dilations, group, kernel_shape, pads, strides)


@operator("FusedConv", domain=MICROSOFT)
def _fused_conv(
    x: Any, w: Any, b: Any = None, z: Any = None,
    *, auto_pad: str = "NOTSET", dilations: Numbers = None, group: int = 1,
    kernel_shape: Numbers = None, pads: Numbers = None, strides: Numbers = None,
    activation: str = "", activation_params: list[float] | None = None,
) -> Any:  # fmt: skip
    y = convolved(x, w, b, auto_pad, dilations, group, kernel_shape, pads, strides)
    return activated(y if z is None else y + z, activation, activation_params or [])


def convolved_integers(
    x: Any, w: Any, x_zero: Any, w_zero: Any, auto_pad: str, dilations: Numbers, group: int,
    kernel_shape: Numbers, pads: Numbers, strides: Numbers,
) -> Any:  # fmt: skip
    """The convolution of bytes less their zero points, as int32. Doubles hold all sums exactly."""
    x, w = x.astype("float64"), w.astype("float64")
    if x_zero is not None:
        x = x - x_zero.astype("float64")
    if w_zero is not None:
        zero = w_zero.astype("float64")
        w = w - (np.reshape(zero, (-1,) + (1,) * (w.ndim - 1)) if zero.size > 1 else zero)
    y = convolved(x, w, None, auto_pad, dilations, group, kernel_shape, pads, strides)
    return y.astype("int32")


@operator("ConvInteger", since=10)
def _conv_integer(
    x: Any, w: Any, x_zero_point: Any = None, w_zero_point: Any = None,
    *, auto_pad: str = "NOTSET", dilations: Numbers = None, group: int = 1,
    kernel_shape: Numbers = None, pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    return convolved_integers(
        x, w, x_zero_point, w_zero_point, auto_pad, dilations, group, kernel_shape, pads, strides
    )


@operator("ConvTranspose")
def _conv_transpose(
    x: Any, w: Any, b: Any = None,
    *, auto_pad: str = "NOTSET", dilations: Numbers = None, group: int = 1,
    kernel_shape: Numbers = None, output_padding: Numbers = None, output_shape: Numbers = None,
    pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    kernel, axes = _kernel(w, kernel_shape), x.ndim - 2
    step, apart = numbers("strides", strides, axes, 1), numbers("dilations", dilations, axes, 1)
    more = numbers("output_padding", output_padding, axes, 0)
    span = spans(kernel, apart)
    full = [(n - 1) * s + d for n, s, d in zip(x.shape[2:], step, span, strict=True)]
    if output_shape:
        wanted: Sequence[int] = numbers("output_shape", output_shape[-axes:], axes, 0)
        around = _pads_for(full, more, wanted, auto_pad, given=True)
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(x.shape[2:], step, strict=True)]
        around = _pads_for(full, more, wanted, auto_pad, given=False)
    else:
        around = pairs(None if auto_pad == "VALID" else pads, axes)
        before_and_behind = zip(full, around, more, strict=True)
        wanted = [n - low - high + m for n, (low, high), m in before_and_behind]
    return _spread(x, w, b, kernel, step, apart, full, around, wanted, more, group)


def _pads_for(
    full: Sequence[int], more: Sequence[int], wanted: Sequence[int], auto_pad: str, *, given: bool
) -> tuple[tuple[int, int], ...]:
    """The padding that leaves the wanted extents; what is odd comes behind for SAME_UPPER. Those
    that are `given` may be larger than what is reached."""
    found = []
    for n, m, target in zip(full, more, wanted, strict=True):
        total = n + m - target
        if total < 0 and not given:
            raise UnsupportedError(
                f"ConvTranspose: auto_pad={auto_pad!r} wants {target} elements, and {n + m} are "
                "reached: programs differ in what they make of it. Give pads and output_padding."
            )
        total = max(total, 0)
        small, large = total // 2, total - total // 2
        found.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return tuple(found)


def _spread(
    x: Any, w: Any, b: Any, kernel: Sequence[int], step: Sequence[int], apart: Sequence[int],
    full: Sequence[int], around: Sequence[tuple[int, int]], wanted: Sequence[int],
    more: Sequence[int], group: int,
) -> Any:  # fmt: skip
    """One deconvolution, and where its own padding cannot say which part is wanted, that part."""
    alike = all(low == high for low, high in around)
    fits = all(
        n - 2 * low + m == t for n, (low, _), m, t in zip(full, around, more, wanted, strict=True)
    )
    direct = alike and fits and all(m < s for m, s in zip(more, step, strict=True))
    y = npx.deconvolution(
        x, w, b, kernel=tuple(kernel), stride=tuple(step), dilate=tuple(apart),
        pad=tuple(low for low, _ in around) if direct else (0,) * len(kernel),
        adj=tuple(more) if direct else (0,) * len(kernel),
        num_filter=w.shape[1] * group, num_group=group, no_bias=b is None,
    )  # fmt: skip
    if direct:
        return y
    missing = [max(low + t - n, 0) for n, (low, _), t in zip(full, around, wanted, strict=True)]
    if any(missing):  # elements behind, which nothing reaches
        y = _lengthened(y, b, missing)
    cut = tuple(slice(low, low + t) for (low, _), t in zip(around, wanted, strict=True))
    return y[in_space(cut)]


def _lengthened(y: Any, b: Any, missing: Sequence[int]) -> Any:
    behind = tuple((0, n) for n in missing)
    if b is None:
        return padded(y, behind)
    column = np.reshape(b, (1, -1) + (1,) * (y.ndim - 2))
    return padded(y - column, behind) + column


@operator("Col2Im", since=18)
def _col2im(
    x: Any, image_shape: Host, block_shape: Host,
    *, dilations: Numbers = None, pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    image, kernel = image_shape.tolist(), block_shape.tolist()
    axes, taps = len(image), math.prod(kernel)
    at = windows(image, kernel, strides, dilations, pads, "NOTSET")
    images, channels = x.shape[0], x.shape[1] // taps
    # Each channel alone, its taps as channels of a deconvolution whose filters each have one 1.
    rows = np.reshape(x, (images * channels, taps, *at.out))
    ones = numpy.eye(taps, dtype=str(x.dtype)).reshape(taps, 1, *kernel)
    full = [(n - 1) * s + d for n, s, d in
            zip(at.out, at.strides, spans(at.kernel, at.dilations), strict=True)]  # fmt: skip
    y = _spread(rows, np.array(ones, dtype=str(x.dtype)), None, kernel, at.strides, at.dilations,
                full, at.pads, image, (0,) * axes, 1)  # fmt: skip
    return np.reshape(y, (images, channels, *image))


# -- with windows that move -----------------------------------------------------------------------


@operator("DeformConv", since=19)
def _deform_conv(
    x: Any, w: Any, offset: Any, b: Any = None, mask: Any = None,
    *, dilations: Numbers = None, group: int = 1, kernel_shape: Numbers = None,
    offset_group: int = 1, pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    if x.ndim != 4:
        raise UnsupportedError(f"DeformConv: data of shape {x.shape}; images alone are done here.")
    at = windows(x.shape[2:], _kernel(w, kernel_shape), strides, dilations, pads, "NOTSET")
    images, channels, *_ = x.shape
    taps, places = math.prod(at.kernel), math.prod(at.out)
    moved = np.reshape(offset, (images, offset_group, *at.kernel, 2, *at.out))
    rows, columns = (_starts(at, axis, str(x.dtype)) + moved[:, :, :, :, axis] for axis in (0, 1))
    part = channels // offset_group
    found = _bilinear(np.reshape(x, (images, offset_group, part, *x.shape[2:])), rows, columns)
    if mask is not None:
        found = found * np.reshape(mask, (images, offset_group, 1, taps * places))
    columns_of = np.reshape(found, (images, group, channels // group * taps, places))
    filters = np.reshape(w, (1, group, w.shape[0] // group, channels // group * taps))
    y = np.reshape(np.matmul(filters, columns_of), (images, w.shape[0], *at.out))
    return y if b is None else y + np.reshape(b, (1, -1, 1, 1))


def _starts(at: Any, axis: int, dtype: str) -> Any:
    """Where each tap of each window is along an axis: (kh, kw, oh, ow) with 1 for the others."""
    taps = numpy.arange(at.kernel[axis]) * at.dilations[axis]
    first = numpy.arange(at.out[axis]) * at.strides[axis] - at.pads[axis][0]
    shape = [1, 1, 1, 1]
    shape[axis], shape[2 + axis] = at.kernel[axis], at.out[axis]
    table = (taps[:, None] + first).reshape(shape)
    return np.array(table, dtype=dtype)


def _bilinear(x: Any, rows: Any, columns: Any) -> Any:
    """(images, groups, channels, taps * places): each read between four elements, 0 outside."""
    images, groups, channels, height, width = x.shape
    flat = np.reshape(x, (images, groups, channels, height * width))
    top, left = np.floor(rows), np.floor(columns)
    total = None
    for down in (0, 1):
        for right in (0, 1):
            row, column = top + down, left + right
            weight = (1 - np.abs(rows - row)) * (1 - np.abs(columns - column))
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            weight = np.where(inside, weight, np.zeros_like(weight))
            place = np.clip(row, 0, height - 1) * width + np.clip(column, 0, width - 1)
            index = np.reshape(place, (images, groups, 1, -1)).astype("int64")
            found = np.take_along_axis(flat, np.broadcast_to(
                index, (images, groups, channels, index.shape[-1])), 3)  # fmt: skip
            term = found * np.reshape(weight, (images, groups, 1, -1))
            total = term if total is None else total + term
    return total
