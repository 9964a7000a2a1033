"""Operators that MXNet kept under `contrib`: resizing, attention, boxes, gradients of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.autograd import Function
from heterosis.mxnet.operators.outputs import ctc_loss
from heterosis.mxnet.operators.table import Run, as_sequence, stored
from heterosis.runtime.arguments import checked
from heterosis.runtime.errors import ArgumentError, ShapeError
from heterosis.runtime.kinds import Positive

CONTRIB: dict[str, Run] = {"CTCLoss": ctc_loss, "ctc_loss": ctc_loss}


def _contrib(name: str = "") -> Callable[[Run], Run]:
    """Let a function run the operator `name` in `contrib`, by default that of its own name."""

    def register(function: Run) -> Run:
        title = name or function.__name__
        function.__name__ = function.__qualname__ = title  # as messages call it
        made = CONTRIB[title] = checked(function)
        return stored(f"_contrib_{title}")(made)

    return register


# -- elements -------------------------------------------------------------------------------------


@_contrib()
def isnan(data: Any) -> Any:
    """1 where an element is NaN, 0 elsewhere, in its type."""
    return np.isnan(data).astype(data.dtype)


@_contrib()
def isinf(data: Any) -> Any:
    """1 where an element is infinite, 0 elsewhere, in its type."""
    return np.isinf(data).astype(data.dtype)


@_contrib()
def isfinite(data: Any) -> Any:
    """1 where an element is finite, 0 elsewhere, in its type."""
    return np.isfinite(data).astype(data.dtype)


@_contrib()
def quadratic(data: Any, a: float = 0.0, b: float = 0.0, c: float = 0.0) -> Any:
    """`a * data ** 2 + b * data + c`."""
    return (a * data + b) * data + c


class _Straight(Function):
    """A function whose gradient is that behind it, times a number."""

    def __init__(self, compute: Callable[[Any], Any], factor: float = 1.0):
        super().__init__()
        self._compute, self._factor = compute, factor

    def forward(self, data: Any) -> Any:
        """The function of `data`."""
        return self._compute(data)

    def backward(self, output_grad: Any) -> Any:
        """The gradient, times the number."""
        return output_grad * self._factor


@_contrib()
def gradientmultiplier(data: Any, scalar: float = 1.0) -> Any:
    """The same elements; their gradient is multiplied by `scalar`."""
    return _Straight(np.copy, scalar)(data)


@_contrib()
def round_ste(data: Any) -> Any:
    """Elements rounded, halves away from 0; the gradient is that of no rounding."""
    return _Straight(lambda x: np.trunc(x + np.copysign(0.5, x)))(data)


@_contrib()
def sign_ste(data: Any) -> Any:
    """Signs; the gradient is that of the elements."""
    return _Straight(np.sign)(data)


# -- positions ------------------------------------------------------------------------------------


@_contrib()
def index_array(data: Any, axes: Any = None) -> Any:
    """The position of every element, int64, along the last axis; along `axes` alone if given."""
    positions = np.stack(np.indices(data.shape, dtype="int64"), axis=-1)
    return positions if axes is None else positions[..., [a % data.ndim for a in as_sequence(axes)]]


@_contrib()
def index_copy(old_tensor: Any, index_vector: Any, new_tensor: Any) -> Any:
    """`old_tensor` with the rows of `new_tensor` at `index_vector`."""
    expected = (*index_vector.shape, *old_tensor.shape[1:])
    if new_tensor.shape != expected:
        raise ShapeError(
            f"index_copy: new rows of shape {new_tensor.shape}; expected {expected}, a row for "
            "each index."
        )
    result = old_tensor.copy()
    result[index_vector.astype("int64")] = new_tensor
    return result


@_contrib()
def boolean_mask(data: Any, index: Any, axis: int = 0) -> Any:
    """The rows of `data` where `index` is not 0."""
    if axis != 0 or index.shape != data.shape[:1]:
        raise ShapeError(
            f"boolean_mask: axis={axis}, data of shape {data.shape} and index of shape "
            f"{index.shape}; expected axis 0, and a number for each row."
        )
    return data[index != 0]


# -- attention ------------------------------------------------------------------------------------


@_contrib()
def div_sqrt_dim(data: Any) -> Any:
    """`data` divided by the root of its last extent."""
    return data / math.sqrt(data.shape[-1])


def _parts(projected: Any, heads: int, count: int) -> list[Any]:
    """What is interleaved in (length, batch, heads * count * size): for each of `count`, an array
    (batch * heads, length, size)."""
    length, batch, width = projected.shape
    size = width // (heads * count)
    if size * heads * count != width:
        raise ShapeError(
            f"attention with heads={heads}: an extent of {width} is no multiple of {heads * count}."
        )
    turned = projected.reshape(length, batch, heads, count, size).transpose(3, 1, 2, 0, 4)
    return [turned[i].reshape(batch * heads, length, size) for i in range(count)]


def _scores(queries: Any, keys: Any) -> Any:
    return npx.batch_dot(queries / math.sqrt(queries.shape[-1]), keys, transpose_b=True)


def _weighted(attention: Any, values: Any, heads: int) -> Any:
    """Weighted sums of values as (length, batch, heads * size)."""
    sums = npx.batch_dot(attention, values)
    joined, length, size = sums.shape
    sums = sums.reshape(joined // heads, heads, length, size)
    return sums.transpose(2, 0, 1, 3).reshape(length, joined // heads, heads * size)


@_contrib()
def interleaved_matmul_selfatt_qk(queries_keys_values: Any, heads: Positive) -> Any:
    """Scores of queries and keys, by the root of their size, of what a layer projects: for each
    head a query, a key and a value."""
    queries, keys, _ = _parts(queries_keys_values, heads, 3)
    return _scores(queries, keys)


@_contrib()
def interleaved_matmul_selfatt_valatt(
    queries_keys_values: Any, attention: Any, heads: Positive
) -> Any:
    """The values of what `interleaved_matmul_selfatt_qk` takes, weighted by `attention`."""
    return _weighted(attention, _parts(queries_keys_values, heads, 3)[2], heads)


@_contrib()
def interleaved_matmul_encdec_qk(queries: Any, keys_values: Any, heads: Positive) -> Any:
    """Scores of queries and keys, by the root of their size; keys have their values beside them."""
    return _scores(_parts(queries, heads, 1)[0], _parts(keys_values, heads, 2)[0])


@_contrib()
def interleaved_matmul_encdec_valatt(keys_values: Any, attention: Any, heads: Positive) -> Any:
    """The values of what `interleaved_matmul_encdec_qk` takes, weighted by `attention`."""
    return _weighted(attention, _parts(keys_values, heads, 2)[1], heads)


# -- images: each axis is resized by a matrix -----------------------------------------------------


def _resized(data: Any, rows: numpy.ndarray[Any, Any], columns: numpy.ndarray[Any, Any]) -> Any:
    """Images (..., height, width), with matrices that have a row for each new row or column."""
    over_columns = np.matmul(data, np.array(columns.T, data.dtype))
    return np.matmul(np.array(rows, data.dtype), over_columns)


def _check_images(name: str, data: Any) -> None:
    if data.ndim != 4:
        raise ShapeError(
            f"{name}: data of shape {data.shape}; expected (batch, channels, height, width)."
        )


def _means(old: int, new: int) -> numpy.ndarray[Any, Any]:
    """Means of as many parts of an axis, which overlap where they do not fit."""
    matrix = numpy.zeros((new, old), "float32")
    for i in range(new):
        first, end = i * old // new, -(-(i + 1) * old // new)
        matrix[i, first:end] = 1 / (end - first)
    return matrix


@_contrib("AdaptiveAvgPooling2D")
def adaptive_average_pooling(data: Any, output_size: Any = 1) -> Any:
    """Means over parts of images, of which there are as many as `output_size` says."""
    _check_images("AdaptiveAvgPooling2D", data)
    height, width = (as_sequence(output_size or 1) * 2)[:2]
    return _resized(data, _means(data.shape[2], height), _means(data.shape[3], width))


def _between(old: int, new: int, align_corners: bool) -> numpy.ndarray[Any, Any]:
    """Places of an axis between two old ones; the first and last are old ones if corners are."""
    if align_corners:
        places = numpy.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    else:
        places = numpy.maximum((numpy.arange(new) + 0.5) * (old / new) - 0.5, 0)
    before = numpy.minimum(places.astype(int), old - 1)
    weight = places - before
    matrix = numpy.zeros((new, old), "float32")
    numpy.add.at(matrix, (numpy.arange(new), before), 1 - weight)
    numpy.add.at(matrix, (numpy.arange(new), numpy.minimum(before + 1, old - 1)), weight)
    return matrix


# New extents by `mode`, of the old one and the scale.
_MODES: dict[str, Callable[[int, float], int]] = {
    "odd_scale": lambda n, scale: int(n * scale) if n % 2 == 0 else int((n - 1) * scale) + 1,
    "to_even_down": lambda n, scale: n - n % 2,
    "to_even_up": lambda n, scale: n + n % 2,
    "to_odd_down": lambda n, scale: n - 1 + n % 2,
    "to_odd_up": lambda n, scale: n + 1 - n % 2,
}


@_contrib("BilinearResize2D")
def bilinear_resize(
    data: Any, like: Any = None, height: int = 1, width: int = 1,
    scale_height: float | None = None, scale_width: float | None = None, mode: str = "size",
    align_corners: bool = True,
) -> Any:  # fmt: skip
    """Images in another size, interpolated: `height` and `width`, or the old ones times
    `scale_height` and `scale_width`, or those of the images `like`."""
    _check_images("BilinearResize2D", data)
    old, scales = data.shape[2:], (scale_height, scale_width)
    if mode == "like" and like is not None:
        new = like.shape[2:]
    elif mode == "size":
        pairs = zip(old, scales, (height, width), strict=True)
        new = tuple(size if scale is None else int(n * scale) for n, scale, size in pairs)
    elif mode in _MODES and (mode != "odd_scale" or None not in scales):
        new = tuple(_MODES[mode](n, scale or 1) for n, scale in zip(old, scales, strict=True))
    else:
        raise ArgumentError(
            f"BilinearResize2D: mode={mode!r}; expected 'size', 'like' with an array, 'odd_scale' "
            f"with scale_height and scale_width, or one of {', '.join([*_MODES][1:])}."
        )
    matrices = [_between(n, m, align_corners) for n, m in zip(old, new, strict=True)]
    return _resized(data, *matrices)


# -- boxes ----------------------------------------------------------------------------------------


@_contrib()
def box_iou(lhs: Any, rhs: Any, format: str = "corner") -> Any:
    """For every box of `lhs` and every one of `rhs`, their intersection over their union."""
    if format not in ("corner", "center"):
        raise ArgumentError(f"box_iou: format={format!r}; expected 'corner' or 'center'.")
    shape = (*lhs.shape[:-1], *rhs.shape[:-1])
    a, b = _corners(lhs.reshape(-1, 1, 4), format)
    c, d = _corners(rhs.reshape(1, -1, 4), format)
    common = np.maximum(np.minimum(b, d) - np.maximum(a, c), 0).prod(axis=-1)
    whole = (b - a).prod(axis=-1) + (d - c).prod(axis=-1) - common
    return np.where(whole > 0, common / np.where(whole > 0, whole, 1), 0).reshape(shape)


def _corners(boxes: Any, format: str) -> tuple[Any, Any]:
    """The corners of boxes (left, top, right, bottom), or (x, y, width, height) around x, y."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if format == "corner":
        return first, second
    return first - second / 2, first + second / 2
