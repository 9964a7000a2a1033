"""Reading, resizing, cropping and rotating images: arrays (height, width, channels).

Where and whether something happens is drawn with Python's `random`.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy

from heterosis import np
from heterosis.image import codec
from heterosis.ir.program import Value
from heterosis.np.convert import from_numpy, shared
from heterosis.ops.vision import resize as resizing
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from heterosis.runtime.modes import refuse_python_numbers

Size = "tuple[int, int]"  # width, height
Box = "tuple[int, int, int, int]"  # x, y, width, height

AUTOMATIC, ANY = 9, 10  # ways to interpolate that are chosen by size, and at random

# -- reading --------------------------------------------------------------------------------------


def imdecode(buf: Any, flag: int = 1, to_rgb: bool = True) -> np.ndarray:
    """The image in the bytes `buf`, uint8 (height, width, channels).

    `flag` is 1 for colour and 0 for grey; with `to_rgb` false, blue comes first.
    """
    if isinstance(buf, str):
        raise ArgumentTypeError("imdecode: expected bytes, and got a string; see imread for files.")
    encoded = buf if isinstance(buf, bytes) else numpy.asarray(buf, numpy.uint8).tobytes()
    return _ordered(codec.decode(encoded, flag), to_rgb)


def imread(filename: str | os.PathLike[str], flag: int = 1, to_rgb: bool = True) -> np.ndarray:
    """The image in a file; see `imdecode`."""
    encoded = codec.read(filename)
    return _ordered(codec.decode(encoded, flag, f"imread of {os.fspath(filename)!r}"), to_rgb)


def _ordered(pixels: numpy.ndarray, to_rgb: bool) -> np.ndarray:
    return from_numpy(pixels if to_rgb else pixels[..., ::-1])


# -- another size ---------------------------------------------------------------------------------


def imresize(src: Any, w: int, h: int, interp: int = 1) -> np.ndarray:
    """The image `w` wide and `h` high.

    `interp` is 0 for the nearest pixel, 1 linear, 2 cubic, 3 the mean of an area, 4 Lanczos;
    9 chooses by size (2 to enlarge, 3 to shrink, 1 for both), 10 any of them.
    """
    if w < 1 or h < 1:
        raise ArgumentError(f"resize: {w} x {h} pixels; expected at least 1 each.")
    if src.ndim not in (3, 4) or 0 in src.shape[-3:]:
        raise ShapeError(
            f"resize: an array of shape {src.shape}; expected an image (height, width, channels) "
            "that is not empty, or a batch of them."
        )
    interp = interpolation(interp, (*src.shape[-3:-1], h, w))
    rows, columns = resizing.image_taps(src.shape, numpy.dtype(src.dtype).name, h, w, interp)
    if isinstance(src, Value):
        return resizing.resample(src, *map(np.array, (*rows, *columns)))
    # Images come in ever new sizes, and planning an operation for each would take longer than this.
    return from_numpy(resizing.resampled(shared(np.asarray(src)), *rows, *columns))


def interpolation(interp: int, sizes: tuple[int, ...] = ()) -> int:
    """`interp`, or what 9 and 10 stand for; `sizes` are height and width before and after."""
    if interp == AUTOMATIC:
        return _automatic(*sizes) if sizes else resizing.CUBIC
    if interp == ANY:
        return random.randint(0, 4)
    if interp not in range(5):
        raise ArgumentError(f"interp={interp}; expected 0 to 4, 9 (by size) or 10 (any).")
    return interp


def _automatic(old_height: int, old_width: int, height: int, width: int) -> int:
    if height > old_height and width > old_width:
        return resizing.CUBIC
    shrinks = height < old_height and width < old_width
    return resizing.AREA if shrinks else resizing.LINEAR


def resize(data: Any, size: Any = 0, keep_ratio: bool = False, interp: int = 1) -> np.ndarray:
    """The image, or a batch of them, in `size`: (width, height), or one number for both.

    With `keep_ratio`, one number is the length of the shorter side.
    """
    sizes = tuple(size) if isinstance(size, tuple | list) else (size,)
    if len(sizes) not in (1, 2) or min(sizes) < 1:
        raise ArgumentError(f"resize: size={size}; expected one positive number, or two.")
    if len(sizes) == 2:
        return imresize(data, *sizes, interp)
    if keep_ratio:
        return _with_short_side(data, sizes[0], interp)
    return imresize(data, sizes[0], sizes[0], interp)


def resize_short(src: Any, size: int, interp: int = 2) -> np.ndarray:
    """The image with its shorter side `size` long and the proportions kept."""
    return _with_short_side(src, size, interp)


def _with_short_side(src: Any, size: int, interp: int) -> np.ndarray:
    height, width = src.shape[-3:-1]
    if height > width:
        return imresize(src, size, size * height // width, interp)
    return imresize(src, size * width // height, size, interp)


def scale_down(src_size: Size, size: Size) -> Size:
    """`size`, made smaller in its proportions until it fits into `src_size`."""
    (width, height), (old_width, old_height) = size, src_size
    if old_height < height:
        width, height = width * old_height / height, old_height
    if old_width < width:
        width, height = old_width, height * old_width / width
    return int(width), int(height)


# -- crops ----------------------------------------------------------------------------------------


def crop(data: Any, x: int, y: int, width: int, height: int) -> Any:
    """`width` by `height` pixels of the image, or of a batch of them, from (x, y) on."""
    if data.ndim not in (3, 4):
        raise ShapeError(
            f"crop: an array of shape {data.shape}; expected an image (height, width, channels) or "
            "a batch of them."
        )
    rows, columns = data.shape[-3:-1]
    if min(x, y) < 0 or min(width, height) < 1 or x + width > columns or y + height > rows:
        raise ArgumentError(
            f"crop: {width} x {height} pixels from ({x}, {y}) on do not lie within an image of "
            f"{columns} x {rows}."
        )
    return data[..., y : y + height, x : x + width, :]


def fixed_crop(
    src: Any, x0: int, y0: int, w: int, h: int, size: Size | None = None, interp: int = 2
) -> np.ndarray:
    """`w` by `h` pixels of the image from (x0, y0) on, resized to `size` if that is given."""
    part = src[y0 : y0 + h, x0 : x0 + w]
    if size is None or (w, h) == tuple(size):
        return part
    return imresize(part, *size, interp=interp)


def random_crop(src: Any, size: Size, interp: int = 2) -> tuple[np.ndarray, Box]:
    """A part of the image anywhere, of `size` or resized to it; and the part's box."""
    refuse_python_numbers("random_crop")
    height, width = src.shape[:2]
    new_width, new_height = scale_down((width, height), size)
    x = random.randint(0, width - new_width)
    y = random.randint(0, height - new_height)
    return _cropped(src, (x, y, new_width, new_height), size, interp)


def center_crop(src: Any, size: Size, interp: int = 2) -> tuple[np.ndarray, Box]:
    """The middle of the image, of `size` or resized to it; and the part's box."""
    height, width = src.shape[:2]
    new_width, new_height = scale_down((width, height), size)
    x, y = (width - new_width) // 2, (height - new_height) // 2
    return _cropped(src, (x, y, new_width, new_height), size, interp)


def _cropped(src: Any, box: Box, size: Size, interp: int) -> tuple[np.ndarray, Box]:
    return fixed_crop(src, *box, size, interp), box


_ATTEMPTS = 10


def random_size_crop(
    src: Any, size: Size, area: Any, ratio: tuple[float, float], interp: int = 2
) -> tuple[np.ndarray, Box]:
    """A part of the image anywhere, resized to `size`; and the part's box.

    `area` is the part's share of the image, between two bounds, or one bound and 1; `ratio` bounds
    its width divided by its height.
    """
    refuse_python_numbers("random_size_crop")
    height, width = src.shape[:2]
    low, high = (area, 1.0) if isinstance(area, Number) else area
    for _ in range(_ATTEMPTS):
        pixels = random.uniform(low, high) * height * width
        shape = math.exp(random.uniform(*map(math.log, ratio)))
        new_width = round(math.sqrt(pixels * shape))
        new_height = round(math.sqrt(pixels / shape))
        if new_width <= width and new_height <= height:
            x = random.randint(0, width - new_width)
            y = random.randint(0, height - new_height)
            return _cropped(src, (x, y, new_width, new_height), size, interp)
    return center_crop(src, size, interp)


def color_normalize(src: Any, mean: Any, std: Any = None) -> Any:
    """`(src - mean) / std`; either may be None."""
    src = src if mean is None else src - mean
    return src if std is None else src / std


# -- rotation -------------------------------------------------------------------------------------


def imrotate(
    src: Any, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False
) -> np.ndarray:
    """Images (channels, height, width) turned about their middle, or a batch of them each by its
    angle; float32. What comes from outside is 0.

    `zoom_in` enlarges until nothing from outside is seen, `zoom_out` shrinks until nothing is lost.
    """
    if zoom_in and zoom_out:
        raise ArgumentError("imrotate: zoom_in and zoom_out exclude each other; give one.")
    if src.dtype != numpy.float32:
        raise DTypeError(f"imrotate: elements are {src.dtype}; expected float32, see to_tensor.")
    if src.ndim not in (3, 4):
        raise ShapeError(
            f"imrotate: shape {src.shape}; expected (channels, height, width), or 4-d."
        )
    if src.ndim == 3:
        if not isinstance(rotation_degrees, Number):
            raise ArgumentTypeError("imrotate: one image takes one angle, a number.")
        return imrotate(src[None], rotation_degrees, zoom_in, zoom_out)[0]
    angles = np.array(numpy.broadcast_to(numpy.asarray(rotation_degrees, "float32"), len(src)))
    zoom = _enlarging if zoom_in else _shrinking if zoom_out else None
    return _turned(src, angles * (math.pi / 180), zoom)


def _turned(src: np.ndarray, angles: np.ndarray, zoom: Callable[..., Any] | None) -> np.ndarray:
    height, width = src.shape[-2:]
    angles = angles.reshape(-1, 1, 1)
    y = np.arange(height).reshape(-1, 1) - (height - 1) / 2
    x = np.arange(width) - (width - 1) / 2
    scale = 1.0 if zoom is None else zoom(angles, height, width)
    from_x = (x * np.cos(angles) - y * np.sin(angles)) * scale + (width - 1) / 2
    from_y = (x * np.sin(angles) + y * np.cos(angles)) * scale + (height - 1) / 2
    return _between(src, from_x, from_y)


def _extent(angles: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Width and height of the box around the turned image."""
    cosine, sine = np.abs(np.cos(angles)), np.abs(np.sin(angles))
    return width * cosine + height * sine, width * sine + height * cosine


def _shrinking(angles: np.ndarray, height: int, width: int) -> np.ndarray:
    across, along = _extent(angles, height, width)
    return np.maximum(across / width, along / height)


def _enlarging(angles: np.ndarray, height: int, width: int) -> np.ndarray:
    across, along = _extent(angles, height, width)
    return np.minimum(width / across, height / along)


def _between(src: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Images (n, c, h, w) at the places x, y of shape (n, h, w), linear between pixels."""
    left, top = np.floor(x), np.floor(y)
    total = 0
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (1 - np.abs(x - left - dx)) * (1 - np.abs(y - top - dy))
            total = total + _picked(src, left + dx, top + dy) * np.expand_dims(weight, 1)
    return total


def _picked(src: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The pixels at whole places, 0 outside of the image."""
    height, width = src.shape[-2:]
    inside = (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    columns = np.clip(x, 0, width - 1).astype("int64")
    rows = np.clip(y, 0, height - 1).astype("int64")
    images = np.arange(len(src), dtype="int64").reshape(-1, 1, 1)
    found = src.transpose(0, 2, 3, 1)[images, rows, columns]
    return found.transpose(0, 3, 1, 2) * np.expand_dims(inside, 1)


def random_rotate(
    src: Any, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False
) -> np.ndarray:
    """`imrotate` by an angle between two limits, another for each image of a batch."""
    refuse_python_numbers("random_rotate")
    count = None if src.ndim == 3 else len(src)
    drawn = [random.uniform(*angle_limits) for _ in range(count or 1)]
    return imrotate(src, drawn[0] if count is None else drawn, zoom_in, zoom_out)


__all__ = [
    "center_crop",
    "color_normalize",
    "crop",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize",
    "resize_short",
    "scale_down",
]
