"""Convolution, its gradients, and deconvolution, in one, two and three dimensions.

The gradients are operations of their own. With `y = convolution(x, w, ...)` and the gradient `dy`:
`convolution_data_gradient(dy, w, x.shape, ...)` and `convolution_weight_gradient(dy, x, ...)`; the
bias's is the sum of `dy` over all axes but the channels'. Deconvolution is the data gradient of a
convolution with the same weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from heterosis.ir import views
from heterosis.ir.primitives.windows import Windows
from heterosis.ir.program import Value
from heterosis.ops.nn import window_references as references
from heterosis.ops.nn.window_shapes import (
    Extents,
    Geometry,
    axes_of_space,
    channels_last,
    deconvolution_geometry,
    geometry,
    in_one_float,
    required_kernel,
    with_channels_first,
    with_layout,
)
from heterosis.ops.nn.windowed import convolve, correlate, transposed
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, warn_of_wider_data
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError

_FLOATS = ("float16", "float32", "float64")


# -- tensors with channels second, as the primitives take them ------------------------------------


def _three(of_axes: Sequence[int], missing: int) -> Extents:
    return (missing,) * (3 - len(of_axes)) + tuple(of_axes)


def _six(x: Value, groups: int) -> Value:
    """(images, groups, channels, depth, height, width), missing axes being of one element."""
    images, channels, *extents = x.shape
    return views.reshape(x, (images, groups, channels // groups, *_three(extents, 1)))


def _windows(g: Geometry) -> Windows:
    return Windows(
        _three(g.kernel, 1), _three(g.stride, 1), _three(g.dilate, 1),
        _three([-p for p in g.pad], 0),
    )  # fmt: skip


def _filters(w: Value, groups: int) -> Value:
    """As (groups, filters, channels, *taps)."""
    kernel = _three(w.shape[2:], 1)
    return views.reshape(w, (groups, w.shape[0] // groups, w.shape[1], *kernel))


def _forward(x: Value, w: Value, bias: Value | None, g: Geometry) -> Value:
    y = convolve(_six(x, g.groups), _filters(w, g.groups), bias, _three(g.out, 1), _windows(g))
    return views.reshape(y, (x.shape[0], w.shape[0], *g.out))


def _backward(dy: Value, w: Value, bias: Value | None, g: Geometry) -> Value:
    """From what a convolution puts out to what it is given."""
    extents = _three(g.extents, 1)
    dx = transposed(_six(dy, g.groups), _filters(w, g.groups), bias, extents, _windows(g))
    return views.reshape(dx, (dy.shape[0], g.groups * w.shape[1], *g.extents))


# -- checks ---------------------------------------------------------------------------------------


def _check_groups(name: str, groups: Any, **counts: int) -> None:
    if not isinstance(groups, int) or groups < 1:
        raise ArgumentError(f"{name}: num_group={groups}; expected a number of at least 1.")
    for label, count in counts.items():
        if count % groups:
            raise ShapeError(f"{name}: {count} {label} do not divide into num_group={groups}.")


def _check_weight(name: str, data: Value, weight: Value, expected: Extents) -> None:
    if weight.shape != expected:
        raise ShapeError(
            f"{name}: weight of shape {weight.shape} for data of shape {data.shape} (channels "
            f"second); expected a weight of shape {expected}."
        )


def _check_result(name: str, y: Value, shape: tuple[int, ...]) -> None:
    if y.shape != shape:
        raise ShapeError(
            f"{name}: got {y.shape} for what the convolution gives; expected {shape}, as its data "
            "and filters make it."
        )


def _check_bias(name: str, bias: Value | None, no_bias: bool, filters: int) -> None:
    if no_bias and bias is not None:
        raise ArgumentError(f"{name}: no_bias=True and a bias; leave one of them out.")
    if not no_bias and bias is None:
        raise ArgumentError(f"{name}: no bias; give one, or no_bias=True.")
    if bias is not None and bias.shape != (filters,):
        raise ShapeError(
            f"{name}: bias of shape {bias.shape} for {filters} filters; expected {(filters,)}."
        )


def _cases(*cases: Any) -> Samples:
    made = [Case(shapes, attributes) for shapes, attributes in cases]
    return Samples(made, domain=(-1, 1), dtypes=_FLOATS, ulps=16, absolute=64)


_NO_BIAS = {"no_bias": True}

# -- what users call ------------------------------------------------------------------------------


@operation(
    numpy=references.convolution,
    public=("npx",),
    names={"mxnet": "Convolution", "onnx": "Conv"},
    samples=_cases(
        (((2, 3, 7, 8), (5, 3, 3, 3), (5,)), {"kernel": (3, 3), "pad": (1, 1)}),
        (((1, 4, 9, 20), (6, 2, 3, 2)), {"kernel": (3, 2), "stride": (2, 3), "dilate": (1, 2),
                                         "pad": (2, 0), "num_group": 2, **_NO_BIAS}),
        (((2, 3, 5, 40), (4, 3, 1, 1), (4,)), {"kernel": (1, 1), "stride": (2, 2)}),
        (((2, 3, 30), (4, 3, 4), (4,)), {"kernel": (4,), "stride": (2,), "pad": (3,)}),
        (((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), (3,)), {"kernel": (2, 3, 2), "pad": (1, 0, 1)}),
        (((2, 7, 8, 3), (5, 3, 3, 3), (5,)), {"kernel": (3, 3), "layout": "NHWC"}),
        (((2, 4, 6, 9), (8, 1, 3, 3), (8,)), {"kernel": (3, 3), "pad": (1, 1), "num_group": 4}),
        (((0, 3, 5, 5), (4, 3, 2, 2), (4,)), {"kernel": (2, 2)}),
    ),
)  # fmt: skip
def convolution(
    data: Value,
    weight: Value,
    bias: Value | None = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_filter: int | None = None,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
) -> Value:
    """Filters slid over the axes of space: `weight` is (num_filter, channels / num_group, *kernel).

    With channels last (NWC, NHWC, NDHWC), (num_filter, *kernel, channels / num_group). What is
    left of `workspace` and the `cudnn` arguments is that they are accepted.
    """
    axes = axes_of_space("convolution", data)
    last = channels_last("convolution", layout, axes)
    kernel = required_kernel("convolution", kernel, axes)
    warn_of_wider_data("convolution", data, weight)
    dtype, (x, w, b) = in_one_float("convolution", data, weight, bias)
    x, w = with_channels_first(x, last), with_channels_first(w, last)
    filters = w.shape[0] if num_filter is None else num_filter
    _check_groups("convolution", num_group, channels=x.shape[1], filters=filters)
    _check_weight("convolution", x, w, (filters, x.shape[1] // num_group, *kernel))
    _check_bias("convolution", b, no_bias, filters)
    g = geometry("convolution", x.shape[2:], kernel, stride, dilate, pad, num_group)
    return cast(with_layout(_forward(x, w, b, g), last), dtype)


@operation(
    numpy=references.convolution_data_gradient,
    public=(),
    samples=_cases(
        (((2, 5, 7, 8), (5, 3, 3, 3)), {"shape": (2, 3, 7, 8), "pad": (1, 1)}),
        (((1, 6, 6, 6), (6, 2, 3, 2)), {"shape": (1, 4, 9, 20), "stride": (2, 3),
                                        "dilate": (1, 2), "pad": (2, 0), "num_group": 2}),
        (((2, 4, 16), (4, 3, 4)), {"shape": (2, 3, 30), "stride": (2,), "pad": (2,)}),
        (((2, 4, 3, 3), (4, 3, 1, 1)), {"shape": (2, 3, 5, 6), "stride": (2, 2)}),
    ),
)  # fmt: skip
def convolution_data_gradient(
    dy: Value,
    weight: Value,
    shape: Any,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_group: int = 1,
) -> Value:
    """The gradient of a convolution's data of `shape`, given its result's."""
    name = "convolution_data_gradient"
    dtype, (y, w) = in_one_float(name, dy, weight)
    g = geometry(name, tuple(shape[2:]), w.shape[2:], stride, dilate, pad, num_group)
    _check_result(name, y, (shape[0], w.shape[0], *g.out))
    return cast(_backward(y, w, None, g), dtype)


@operation(
    numpy=references.convolution_weight_gradient,
    public=(),
    samples=_cases(
        (((2, 5, 7, 8), (2, 3, 7, 8)), {"kernel": (3, 3), "pad": (1, 1)}),
        (((1, 6, 6, 6), (1, 4, 9, 20)), {"kernel": (3, 2), "stride": (2, 3), "dilate": (1, 2),
                                         "pad": (2, 0), "num_group": 2}),
        (((11, 4, 16), (11, 3, 30)), {"kernel": (4,), "stride": (2,), "pad": (2,)}),
        (((1, 4, 3, 3), (1, 60, 5, 5)), {"kernel": (3, 3)}),
        (((3, 4, 2, 2), (3, 60, 4, 4)), {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
    ),
)  # fmt: skip
def convolution_weight_gradient(
    dy: Value,
    data: Value,
    kernel: Any,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    num_group: int = 1,
) -> Value:
    """The gradient of a convolution's weight, given its result's."""
    name = "convolution_weight_gradient"
    dtype, (y, x) = in_one_float(name, dy, data)
    kernel = required_kernel(name, kernel, x.ndim - 2)
    g = geometry(name, x.shape[2:], kernel, stride, dilate, pad, num_group)
    images, filters = x.shape[0], y.shape[1]
    _check_result(name, y, (images, filters, *g.out))
    left = views.reshape(y, (images, num_group, filters // num_group, prod(g.out)))
    dw = correlate(left, _six(x, num_group), _three(g.out, 1), _windows(g))
    return cast(views.reshape(dw, (filters, x.shape[1] // num_group, *kernel)), dtype)


@operation(
    numpy=references.deconvolution,
    public=("npx",),
    names={"mxnet": "Deconvolution", "onnx": "ConvTranspose"},
    samples=_cases(
        (((2, 3, 5, 6), (3, 4, 3, 3)), {"kernel": (3, 3)}),
        (((1, 4, 5, 6), (4, 3, 3, 2), (6,)), {"kernel": (3, 2), "stride": (2, 3), "pad": (1, 0),
                                              "adj": (1, 2), "num_group": 2, "no_bias": False}),
        (((2, 3, 9), (3, 4, 4)), {"kernel": (4,), "stride": (2,), "target_shape": (19,)}),
        (((1, 2, 3, 3, 3), (2, 3, 3, 3, 3)), {"kernel": (3, 3, 3), "stride": (2, 2, 2)}),
        (((1, 5, 6, 3), (3, 2, 2, 4)), {"kernel": (2, 2), "dilate": (2, 2), "layout": "NHWC"}),
    ),
)  # fmt: skip
def deconvolution(
    data: Value,
    weight: Value,
    bias: Value | None = None,
    kernel: Any = None,
    stride: Any = None,
    dilate: Any = None,
    pad: Any = None,
    adj: Any = None,
    target_shape: Any = None,
    num_filter: int | None = None,
    num_group: int = 1,
    workspace: int = 512,
    no_bias: bool = True,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
) -> Value:
    """A convolution turned round: `weight` is (channels, num_filter / num_group, *kernel).

    Each element of `data` is spread by its filters over the result, which `adj` lengthens, or
    `target_shape` fixes by choosing the padding. With channels last, so is the weight's second
    axis.
    """
    axes = axes_of_space("deconvolution", data)
    last = channels_last("deconvolution", layout, axes)
    kernel = required_kernel("deconvolution", kernel, axes)
    dtype, (x, w, b) = in_one_float("deconvolution", data, weight, bias)
    x, w = with_channels_first(x, last), with_channels_first(w, last)
    filters = w.shape[1] * num_group if num_filter is None else num_filter
    _check_groups("deconvolution", num_group, channels=x.shape[1], filters=filters)
    _check_weight("deconvolution", x, w, (x.shape[1], filters // num_group, *kernel))
    _check_bias("deconvolution", b, no_bias, filters)
    g = deconvolution_geometry(
        "deconvolution", x.shape[2:], kernel, stride, dilate, pad, adj, target_shape, num_group
    )
    return cast(with_layout(_backward(x, w, b, g), last), dtype)
