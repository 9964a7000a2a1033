"""What convolution and pooling share: their attributes checked, layouts, and output extents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heterosis.ir import views
from heterosis.ir.program import Value
from heterosis.ir.types import is_float
from heterosis.ops.rules import cast, result_type
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

Extents = tuple[int, ...]

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


@dataclass(frozen=True)
class Geometry:
    """How windows of `kernel` taps lie in an input of `extents`, axis by axis."""

    extents: Extents
    kernel: Extents
    stride: Extents
    dilate: Extents
    pad: Extents
    out: Extents
    groups: int = 1


def per_axis(name: str, label: str, given: Any, axes: int, missing: int, least: int) -> Extents:
    """An attribute as one whole number for each axis; `missing` where there is none."""
    if given is None or given == ():
        return (missing,) * axes
    numbers = (given,) * axes if isinstance(given, int) else tuple(given)
    if len(numbers) != axes:
        raise ShapeError(
            f"{name}: {label}={given} for data with {axes} axes of space; give {axes} numbers."
        )
    if not all(isinstance(n, int) and n >= least for n in numbers):
        raise ArgumentError(f"{name}: {label}={given}; expected whole numbers of at least {least}.")
    return numbers


def axes_of_space(name: str, data: Value) -> int:
    """How many axes there are besides the batch's and the channels'."""
    if not 3 <= data.ndim <= 5:
        raise ShapeError(
            f"{name}: data of shape {data.shape}; expected 3, 4 or 5 dimensions: batch, channels "
            "and one to three of space. See np.expand_dims for a single image."
        )
    return data.ndim - 2


def required_kernel(name: str, kernel: Any, axes: int) -> Extents:
    if kernel is None or kernel == ():
        raise ArgumentError(f"{name}: no kernel; give its extents, such as kernel=(3, 3).")
    return per_axis(name, "kernel", kernel, axes, 1, 1)


def geometry(
    name: str, extents: Extents, kernel: Extents, stride: Any, dilate: Any, pad: Any, groups: int
) -> Geometry:
    """Windows that lie wholly inside the padded input."""
    axes = len(extents)
    strides = per_axis(name, "stride", stride, axes, 1, 1)
    dilates = per_axis(name, "dilate", dilate, axes, 1, 1)
    pads = per_axis(name, "pad", pad, axes, 0, 0)
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilates, strict=True)]
    out = tuple(
        (n + 2 * p - span) // s + 1
        for n, p, span, s in zip(extents, pads, spans, strides, strict=True)
    )
    if any(extent < 1 for extent in out):
        raise ShapeError(
            f"{name}: the kernel spans {tuple(spans)} elements, and the data has {extents} with "
            f"padding {pads}; use a smaller kernel or larger data or padding."
        )
    return Geometry(extents, kernel, strides, dilates, pads, out, groups)


def deconvolution_geometry(
    name: str, given: Extents, kernel: Extents, stride: Any, dilate: Any, pad: Any,
    adj: Any, target_shape: Any, groups: int,
) -> Geometry:  # fmt: skip
    """Of the convolution whose data gradient this is: `given` is what that one puts out."""
    axes = len(given)
    strides = per_axis(name, "stride", stride, axes, 1, 1)
    dilates = per_axis(name, "dilate", dilate, axes, 1, 1)
    pads = per_axis(name, "pad", pad, axes, 0, 0)
    more = per_axis(name, "adj", adj, axes, 0, 0)
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilates, strict=True)]
    full = [(n - 1) * s + span for n, s, span in zip(given, strides, spans, strict=True)]
    if target_shape is not None and target_shape != ():
        target = per_axis(name, "target_shape", target_shape, axes, 0, 0)
        if any(target):
            pads, more = _pads_for(name, full, target)
    elif any(m >= s for m, s in zip(more, strides, strict=True)):
        raise ArgumentError(f"{name}: adj={more} must be below stride={strides} on every axis.")
    extents = tuple(n - 2 * p + m for n, p, m in zip(full, pads, more, strict=True))
    if any(n < 1 for n in extents):
        raise ShapeError(
            f"{name}: data of {given} with padding {pads} leaves a result of {extents}; use less "
            "padding."
        )
    return Geometry(extents, kernel, strides, dilates, pads, given, groups)


def _pads_for(name: str, full: Sequence[int], target: Extents) -> tuple[Extents, Extents]:
    """The padding, and what is then missing behind, that leave `target` of `full` elements."""
    surplus = [n - t for n, t in zip(full, target, strict=True)]
    if any(n < 0 for n in surplus):
        raise ShapeError(
            f"{name}: target_shape={target} is larger than the {tuple(full)} that there are "
            "without padding."
        )
    return tuple((s + 1) // 2 for s in surplus), tuple(s % 2 for s in surplus)


# -- layouts --------------------------------------------------------------------------------------


def channels_last(name: str, layout: str | None, axes: int) -> bool:
    """Whether the layout has the channels behind the axes of space."""
    if layout is None:
        return False
    if layout not in _LAYOUTS[axes]:
        raise ArgumentError(
            f"{name}: layout={layout!r} for data with {axes} axes of space; expected one of "
            f"{', '.join(_LAYOUTS[axes])}."
        )
    return layout == _LAYOUTS[axes][1]


def with_channels_first(x: Value, last: bool) -> Value:
    """`x` with its channels second, if they are `last`."""
    return views.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1))) if last else x


def with_layout(x: Value, last: bool) -> Value:
    """The way back from `with_channels_first`."""
    return views.transpose(x, (0, *range(2, x.ndim), 1)) if last else x


# -- element types --------------------------------------------------------------------------------


def in_one_float(name: str, *values: Value | None) -> tuple[str, list[Any]]:
    """The operands' common float type, and the operands, None among them, as they are computed
    with."""
    dtype = result_type(*(v for v in values if v is not None))
    if not is_float(dtype):
        raise DTypeError(
            f"{name}: elements of {dtype}; expected floats. Convert with .astype('float32')."
        )
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    return dtype, [v if v is None else cast(v, wide) for v in values]
