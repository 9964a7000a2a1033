"""Quantized arrays: small integers, each standing for `(q - zero_point) * scale`."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx.operators.convolution import convolved_integers
from heterosis.models.onnx.operators.table import operator
from heterosis.models.onnx.tensors import dtype_of
from heterosis.runtime.errors import FormatError, UnsupportedError

Numbers = list[int] | None
_QUANTIZED = ("uint8", "int8", "uint16", "int16")


def _standing(v: Any, x: Any, axis: int, block_size: int) -> Any:
    """Scales or zero points where their elements are: one for all, one for each place along an
    axis, or one for each block there."""
    if v.ndim == 0 or (v.size == 1 and not block_size):
        return np.reshape(v, ())
    axis %= x.ndim
    if not block_size:
        if v.ndim != 1 or v.shape[0] != x.shape[axis]:
            raise FormatError(
                f"scales or zero points of shape {v.shape} for data of {x.shape}, axis {axis}."
            )
        shape = [1] * x.ndim
        shape[axis] = v.shape[0]
        return np.reshape(v, tuple(shape))
    if v.ndim != x.ndim:
        raise FormatError(f"blocks of shape {v.shape} for data of shape {x.shape}.")
    every = np.repeat(v, block_size, axis)
    cut = [slice(None)] * x.ndim
    cut[axis] = slice(0, x.shape[axis])
    return every[tuple(cut)]


def _saturated(rounded: Any, zero: Any, dtype: str) -> Any:
    """Whole numbers of floats, moved and brought within the range of small integers."""
    if dtype not in _QUANTIZED:
        raise UnsupportedError(f"quantized elements of {dtype}; expected one of {_QUANTIZED}.")
    limits = numpy.iinfo(dtype)
    moved = rounded if zero is None else rounded + zero.astype(str(rounded.dtype))
    return np.clip(moved, float(limits.min), float(limits.max)).astype(dtype)


def _wide(x: Any) -> Any:
    """Floats that hold all small integers exactly."""
    return x.astype("float32") if str(x.dtype) in ("float16", "bfloat16") else x


@operator("QuantizeLinear", since=10)
def _quantize_linear(
    x: Any, y_scale: Any, y_zero_point: Any = None,
    *, axis: int = 1, block_size: int = 0, output_dtype: int = 0, precision: int = 0,
    saturate: int = 1,
) -> Any:  # fmt: skip
    dtype = dtype_of(output_dtype) if output_dtype else "uint8"
    zero = None
    if y_zero_point is not None:
        if output_dtype and dtype != str(y_zero_point.dtype):
            raise FormatError(f"QuantizeLinear: {dtype} with a zero point of {y_zero_point.dtype}.")
        dtype = str(y_zero_point.dtype)
        zero = _standing(y_zero_point, x, axis, block_size)
    scale = _standing(y_scale, x, axis, block_size)
    if precision:
        x, scale = (v.astype(dtype_of(precision)) for v in (x, scale))
    elif str(x.dtype) == "int32":
        x = x.astype(str(scale.dtype))
    return _saturated(_wide(np.rint(x / scale)), zero, dtype)


@operator("DequantizeLinear", since=10)
def _dequantize_linear(
    x: Any, x_scale: Any, x_zero_point: Any = None,
    *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
) -> Any:  # fmt: skip
    whole = x.astype("float32")
    if x_zero_point is not None:
        whole = whole - _standing(x_zero_point, x, axis, block_size).astype("float32")
    dtype = dtype_of(output_dtype) if output_dtype else str(x_scale.dtype)
    return (whole * _standing(_wide(x_scale), x, axis, block_size)).astype(dtype)


@operator("DynamicQuantizeLinear", since=11)
def _dynamic_quantize_linear(x: Any) -> Any:
    largest, least = np.maximum(np.max(x), 0), np.minimum(np.min(x), 0)
    width = largest - least
    scale = np.where(width == 0, np.ones_like(width), width) / 255
    zero = np.rint(np.clip(0 - least / scale, 0, 255))
    return _saturated(np.rint(x / scale), zero, "uint8"), scale, zero.astype("uint8")


def _requantized(total: Any, scale: Any, zero: Any, dtype: str) -> Any:
    found = total.astype("float64") * scale.astype("float64")
    if zero is not None:
        dtype, found = str(zero.dtype), found + zero.astype("float64")
    return _saturated(np.rint(found), None, dtype)


@operator("QLinearMatMul", since=10)
def _qlinear_matmul(
    a: Any, a_scale: Any, a_zero_point: Any, b: Any, b_scale: Any, b_zero_point: Any,
    y_scale: Any, y_zero_point: Any,
) -> Any:  # fmt: skip
    def rows(v: Any) -> Any:
        return np.expand_dims(v, -1) if v.ndim == 1 and v.size > 1 else v

    # Doubles hold all sums exactly.
    left = a.astype("float64") - rows(a_zero_point).astype("float64")
    right = b.astype("float64") - b_zero_point.astype("float64")
    scale = rows(a_scale) * b_scale / y_scale
    return _requantized(np.matmul(left, right), scale, y_zero_point, str(a.dtype))


@operator("QLinearConv", since=10)
def _qlinear_conv(
    x: Any, x_scale: Any, x_zero_point: Any, w: Any, w_scale: Any, w_zero_point: Any,
    y_scale: Any, y_zero_point: Any, b: Any = None,
    *, auto_pad: str = "NOTSET", dilations: Numbers = None, group: int = 1,
    kernel_shape: Numbers = None, pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    total = convolved_integers(
        x, w, x_zero_point, w_zero_point, auto_pad, dilations, group, kernel_shape, pads, strides
    )
    column = (-1,) + (1,) * (x.ndim - 2)
    if b is not None:
        total = total + np.reshape(b, column)
    scale = x_scale * w_scale / y_scale
    scale = np.reshape(scale, column) if scale.size > 1 else np.reshape(scale, ())
    return _requantized(total, scale, y_zero_point, str(x.dtype))
