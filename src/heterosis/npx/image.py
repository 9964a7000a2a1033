"""Operations on images: arrays (height, width, channels), and batches where they allow it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from heterosis import np
from heterosis.image.image import (
    center_crop,
    color_normalize,
    crop,
    fixed_crop,
    imdecode,
    imread,
    imresize,
    imrotate,
    random_crop,
    random_rotate,
    random_size_crop,
    resize,
    resize_short,
    scale_down,
)
from heterosis.ops.record import public_names as _public_names
from heterosis.ops.vision import image as _operations
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.modes import refuse_python_numbers as _refuse_python_numbers

if TYPE_CHECKING:  # what the table below holds
    from heterosis._stubs.npx_image import *

globals().update(_public_names("npx.image"))


def random_color_jitter(
    data: Any,
    brightness: float = 0.0,
    contrast: float = 0.0,
    saturation: float = 0.0,
    hue: float = 0.0,
) -> np.ndarray:
    """Brightness, contrast, saturation and hue changed at random, in any order, by factors that
    lie as far from 1 as the arguments say."""
    steps = [
        (_operations.random_brightness, brightness),
        (_operations.random_contrast, contrast),
        (_operations.random_saturation, saturation),
        (_operations.random_hue, hue),
    ]
    steps = [(operation, spread) for operation, spread in steps if spread > 0]
    if len(steps) > 1:
        _refuse_python_numbers("random_color_jitter")
    random.shuffle(steps)
    for operation, spread in steps:
        data = operation(data, *factors(spread))
    return data


def factors(spread: float) -> tuple[float, float]:
    """The bounds of a factor that lies within `spread` of 1 and is not negative."""
    return max(0.0, 1.0 - spread), 1.0 + spread


_check_members(globals())

__all__ = [
    "center_crop",
    "color_normalize",
    "crop",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_color_jitter",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize",
    "resize_short",
    "scale_down",
]
