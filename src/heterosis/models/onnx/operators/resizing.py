"""Resize and Upsample: along each axis, every new place is a weighted sum of a few old ones.

Which ones, and with what weights, is worked out on the host from the extents alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.runtime.errors import FormatError, UnsupportedError

Weights = Callable[[numpy.ndarray, float], numpy.ndarray]  # of a new place's parts of a step, scale

_FEW_TAPS = 4  # more are a product with a matrix


@dataclass(frozen=True)
class _How:
    """The attributes that all axes share."""

    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False


# -- where new places are among the old ones ------------------------------------------------------


def _origins(how: _How, old: int, new: int, scale: float, roi: Sequence[float]) -> numpy.ndarray:
    place, length = numpy.arange(new, dtype="float64"), scale * old
    start, end = roi
    match how.coordinates:
        case "half_pixel":
            return (place + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return numpy.full(new, -0.5) if length == 1 else (place + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return old / 2 * (1 - new / length) + (place + 0.5) / scale - 0.5
        case "asymmetric":
            return place / scale
        case "align_corners":
            return place * 0 if length == 1 else place * (old - 1) / (length - 1)
        case "tf_crop_and_resize":
            # In the precision that regions come in: halves are rounded as the standard rounds them.
            part, first = (numpy.float32(end) - numpy.float32(start)), numpy.float32(start)
            step = place * part * (old - 1) / (length - 1 if length != 1 else 1)
            middle = numpy.full(new, float(part * (old - 1) / 2))
            found: numpy.ndarray = (middle if length == 1 else step) + first * (old - 1)
            return found
    raise FormatError(f"Resize: coordinate_transformation_mode={how.coordinates!r}.")


_NEAREST: dict[str, Callable[[numpy.ndarray, float], Any]] = {
    "round_prefer_floor": lambda origin, _: numpy.ceil(origin - 0.5),
    "round_prefer_ceil": lambda origin, _: numpy.floor(origin + 0.5),
    "floor": lambda origin, _: numpy.floor(origin),
    "ceil": lambda origin, _: numpy.ceil(origin),
    "as before version 11": lambda origin, scale: (
        numpy.ceil(origin) if scale < 1 else numpy.floor(origin)
    ),
}


def _triangle(distance: numpy.ndarray, _: float) -> numpy.ndarray:
    found: numpy.ndarray = numpy.clip(1 - numpy.abs(distance), 0, 1)
    return found


def _cubic(distance: numpy.ndarray, a: float) -> numpy.ndarray:
    x = numpy.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return numpy.where(x <= 1, near, numpy.where(x < 2, far, 0))


_KERNELS = {"linear": (1, _triangle), "cubic": (2, _cubic)}


def _taps(
    how: _How, origin: numpy.ndarray, old: int, scale: float
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Old places, and their weights: both (new, taps)."""
    reach, kernel = _KERNELS[how.mode]
    narrow = min(scale, 1.0) if how.antialias else 1.0
    first = math.floor(-reach / narrow) + 1
    offsets = numpy.arange(first, first + 2 * (1 - first))
    # As the standard counts, a place on an old one lies a whole step behind the one before.
    below = numpy.ceil(origin) - 1
    places = below[:, None] + offsets
    weights = kernel((places - origin[:, None]) * narrow, how.cubic)
    if how.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    if how.exclude_outside:
        weights = numpy.where((places < 0) | (places >= old), 0, weights)
        total = weights.sum(1, keepdims=True)
        weights = weights / numpy.where(total == 0, 1, total)
    return numpy.clip(places, 0, old - 1).astype("int64"), weights


# -- one axis -------------------------------------------------------------------------------------


def _resized(
    x: Any, axis: int, new: int, scale: float, roi: Sequence[float], how: _How
) -> Any:  # fmt: skip
    old = int(x.shape[axis])
    origin = _origins(how, old, new, scale, roi)
    if how.mode == "nearest":
        if how.nearest not in _NEAREST:
            raise FormatError(f"Resize: nearest_mode={how.nearest!r}.")
        place = numpy.clip(_NEAREST[how.nearest](origin, scale), 0, old - 1).astype("int64")
        y = _taken(x, place, axis)
    else:
        y = _weighed(x, *_taps(how, origin, old, scale), axis)
    outside = (origin < 0) | (origin > old - 1)
    if how.coordinates != "tf_crop_and_resize" or not outside.any():
        return y
    shape = [1] * y.ndim
    shape[axis] = new
    beyond = np.array(outside.reshape(shape), dtype="bool")
    return np.where(beyond, np.full_like(y, how.extrapolation), y)


def _taken(x: Any, place: numpy.ndarray, axis: int) -> Any:
    times, rest = divmod(len(place), int(x.shape[axis]))
    if times and not rest and (place == numpy.arange(len(place)) // times).all():
        return np.repeat(x, times, axis)
    return np.take(x, np.array(place, dtype="int64"), axis, mode="clip")


def _weighed(x: Any, places: numpy.ndarray, weights: numpy.ndarray, axis: int) -> Any:
    dtype = str(x.dtype)
    new, count = places.shape
    if count > _FEW_TAPS:
        matrix = numpy.zeros((int(x.shape[axis]), new))
        numpy.add.at(matrix, (places.T, numpy.arange(new)), weights.T)
        turned = np.matmul(np.moveaxis(x, axis, -1), np.array(matrix, dtype=dtype))
        return np.moveaxis(turned, -1, axis)
    shape = [1] * x.ndim
    shape[axis] = new
    total = None
    for k in range(count):
        term = _taken(x, places[:, k], axis) * np.array(weights[:, k].reshape(shape), dtype=dtype)
        total = term if total is None else total + term
    return total


# -- all axes -------------------------------------------------------------------------------------


def _over_axes(
    x: Any, axes: Sequence[int], scales: Sequence[float], sizes: Sequence[int],
    rois: Sequence[Sequence[float]], how: _How,
) -> Any:  # fmt: skip
    dtype = str(x.dtype)
    if how.mode not in ("nearest", *_KERNELS):
        raise FormatError(f"Resize: mode={how.mode!r}; expected nearest, linear or cubic.")
    if how.mode != "nearest" and "float" not in dtype:
        raise UnsupportedError(
            f"Resize: mode={how.mode!r} for {dtype} is not done here; cast to float32 before."
        )
    wide = how.mode != "nearest" and dtype in ("float16", "bfloat16")
    y = x.astype("float32") if wide else x
    for axis, scale, new, roi in zip(axes, scales, sizes, rois, strict=True):
        same = math.isclose(scale, 1.0) and new == x.shape[axis]
        if not same or (how.coordinates == "tf_crop_and_resize" and tuple(roi) != (0, 1)):
            y = _resized(y, axis, int(new), scale, roi, how)
    return y.astype(dtype) if wide else y


def _by_scales(x: Any, axes: Sequence[int], scales: Sequence[float]) -> list[int]:
    """The new extents; one that stays need not be known."""
    pairs = zip(axes, scales, strict=True)
    return [x.shape[a] if s == 1 else int(int(x.shape[a]) * s) for a, s in pairs]


def _by_sizes(
    x: Any, axes: Sequence[int], sizes: Sequence[int], policy: str
) -> tuple[list[float], list[int]]:
    old = [x.shape[a] for a in axes]
    pairs = list(zip(old, sizes, strict=True))
    # An extent that stays as it is need not be known.
    stays = [type(new) is not int and new == n for n, new in pairs]
    scales = [1.0 if s else int(new) / int(n) for s, (n, new) in zip(stays, pairs, strict=True)]
    if policy == "stretch":
        return scales, [n if s else int(new) for s, (n, new) in zip(stays, pairs, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        raise FormatError(f"Resize: keep_aspect_ratio_policy={policy!r}.")
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [scale] * len(old), [int(scale * int(n) + 0.5) for n in old]


def _given(array: Host | None) -> list[Any] | None:
    return None if array is None or array.size == 0 else array.tolist()


@operator("Resize", since=11)
def _resize(
    x: Any, roi: Host | None = None, scales: Host | None = None, sizes: Host | None = None,
    *, antialias: int = 0, axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:  # fmt: skip
    along = [a % x.ndim for a in axes] if axes else list(range(x.ndim))
    factors, wanted, crop = _given(scales), _given(sizes), _given(roi)
    if (factors is None) == (wanted is None):
        raise FormatError("Resize: expected either scales or sizes.")
    if factors is not None:
        extents = _by_scales(x, along, factors)
    else:
        assert wanted is not None
        factors, extents = _by_sizes(x, along, wanted, keep_aspect_ratio_policy)
    rois: list[Sequence[float]] = [(0.0, 1.0)] * len(along)
    if coordinate_transformation_mode == "tf_crop_and_resize":
        if crop is None or len(crop) != 2 * len(along):
            raise FormatError(f"Resize: roi={crop} for {len(along)} axes.")
        rois = list(zip(crop[: len(along)], crop[len(along) :], strict=True))
    if antialias and mode == "nearest":
        raise FormatError("Resize: antialias is for linear and cubic.")
    how = _How(mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a,
               bool(exclude_outside), extrapolation_value, bool(antialias))  # fmt: skip
    return _over_axes(x, along, factors, extents, rois, how)


@operator("Resize", since=10)
@operator("Upsample", since=9)
def _upsample(x: Any, scales: Host, *, mode: str = "nearest") -> Any:
    return _scaled(x, scales.tolist(), mode)


@operator("Upsample", since=7)
def _upsample_by_attribute(x: Any, *, scales: list[float], mode: str = "nearest") -> Any:
    return _scaled(x, scales, mode)


def _scaled(x: Any, scales: list[float], mode: str) -> Any:
    axes = list(range(x.ndim))
    how = _How(mode, "asymmetric", "as before version 11")
    rois = [(0.0, 1.0)] * x.ndim
    return _over_axes(x, axes, scales, _by_scales(x, axes, scales), rois, how)
