"""Transforms: blocks that prepare an image, or change it at random, before a model sees it.

Images are arrays (height, width, channels); from `ToTensor` on, (channels, height, width).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from numbers import Number
from typing import Any

from heterosis import np
from heterosis.gluon.block import Block
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.nn import Sequential
from heterosis.ir.types import dtype_name
from heterosis.npx import image
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.modes import refuse_python_numbers

Size = "int | tuple[int, int]"  # (width, height), or one number for both


def _both(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, Number) else tuple(size)


class Compose(Sequential):
    """Transforms one after the other."""

    def __init__(self, transforms: Sequence[Block]):
        super().__init__()
        self.add(*transforms)


class RandomApply(Block):
    """A transform, or a list of them, applied with probability `p`."""

    def __init__(self, transforms: Any, p: float = 0.5):
        super().__init__()
        several = isinstance(transforms, list | tuple)
        self.transforms = Compose(transforms) if several else transforms
        self.p = p

    def forward(self, x: Any) -> Any:
        """The image, transformed or not."""
        refuse_python_numbers("RandomApply")
        return x if self.p < random.random() else self.transforms(x)


# -- to what a model takes ------------------------------------------------------------------------


class Cast(HybridBlock):
    """Elements of type `dtype`."""

    def __init__(self, dtype: Any = "float32"):
        super().__init__()
        self._dtype = dtype_name(dtype)

    def forward(self, x: Any) -> Any:
        """The image with such elements."""
        return x.astype(self._dtype)


class ToTensor(HybridBlock):
    """Bytes as float32 between 0 and 1, channels first."""

    def forward(self, x: Any) -> Any:
        """The image as (channels, height, width)."""
        return image.to_tensor(x)


class Normalize(HybridBlock):
    """`(x - mean) / std` of images with channels first; one number, or one for each channel."""

    def __init__(self, mean: Any = 0.0, std: Any = 1.0):
        super().__init__()
        self._mean, self._std = np.array(mean), np.array(std)

    def forward(self, x: Any) -> Any:
        """The normalised image."""
        return image.normalize(x, self._mean, self._std)


# -- size, place, direction -----------------------------------------------------------------------


class Resize(HybridBlock):
    """Another size; with `keep_ratio`, one number is the length of the shorter side."""

    def __init__(self, size: Size, keep_ratio: bool = False, interpolation: int = 1):
        super().__init__()
        self._size, self._keep_ratio, self._interpolation = size, keep_ratio, interpolation

    def forward(self, x: Any) -> Any:
        """The image in that size."""
        return image.resize(x, self._size, self._keep_ratio, self._interpolation)


class CropResize(HybridBlock):
    """`width` by `height` pixels from (x, y) on, resized to `size` if that is given."""

    def __init__(
        self,
        x: int,
        y: int,
        width: int,
        height: int,
        size: Size | None = None,
        interpolation: int | None = None,
    ):
        super().__init__()
        self._box, self._size = (x, y, width, height), size
        self._interpolation = 1 if interpolation is None else interpolation

    def forward(self, x: Any) -> Any:
        """The part of the image, or of each image of a batch."""
        part = image.crop(x, *self._box)
        if not self._size:
            return part
        return image.resize(part, self._size, False, self._interpolation)


class CenterCrop(Block):
    """The middle of the image, of `size` or resized to it."""

    def __init__(self, size: Size, interpolation: int = 1):
        super().__init__()
        self._size, self._interpolation = _both(size), interpolation

    def forward(self, x: Any) -> Any:
        """The middle."""
        return image.center_crop(x, self._size, self._interpolation)[0]


class RandomResizedCrop(Block):
    """A part anywhere, resized to `size`; `scale` bounds its share of the image, `ratio` its width
    divided by its height."""

    def __init__(
        self,
        size: Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: int = 1,
    ):
        super().__init__()
        self._arguments = (_both(size), scale, ratio, interpolation)

    def forward(self, x: Any) -> Any:
        """Another part each time."""
        return image.random_size_crop(x, *self._arguments)[0]


class RandomFlipLeftRight(HybridBlock):
    """Left and right exchanged in one of two cases."""

    def forward(self, x: Any) -> Any:
        """The image, flipped or not."""
        return image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """Upside down in one of two cases."""

    def forward(self, x: Any) -> Any:
        """The image, flipped or not."""
        return image.random_flip_top_bottom(x)


class Rotate(Block):
    """Turned by an angle in degrees; float32, channels first."""

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False):
        super().__init__()
        self._arguments = (rotation_degrees, zoom_in, zoom_out)

    def forward(self, x: Any) -> Any:
        """The turned image."""
        return image.imrotate(x, *self._arguments)


class RandomRotation(Block):
    """With probability `rotate_with_proba`, turned by an angle between two limits."""

    def __init__(
        self,
        angle_limits: tuple[float, float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ):
        super().__init__()
        low, high = angle_limits
        if low >= high:
            raise ArgumentError(
                f"RandomRotation: angle_limits={angle_limits}; expected the lower one first."
            )
        if not 0 <= rotate_with_proba <= 1:
            raise ArgumentError(
                f"RandomRotation: rotate_with_proba={rotate_with_proba}; expected 0 to 1."
            )
        self._arguments = ((low, high), zoom_in, zoom_out)
        self._probability = rotate_with_proba

    def forward(self, x: Any) -> Any:
        """The image, turned or not."""
        refuse_python_numbers("RandomRotation")
        if random.random() > self._probability:
            return x
        return image.random_rotate(x, *self._arguments)


# -- colours --------------------------------------------------------------------------------------


class _Jitter(HybridBlock):
    """An operation with a factor that lies within a distance of 1."""

    operation: Any

    def __init__(self, spread: float):
        super().__init__()
        self._factors = image.factors(spread)

    def forward(self, x: Any) -> Any:
        """The changed image."""
        return type(self).operation(x, *self._factors)


class RandomBrightness(_Jitter):
    """Brightness times a factor within `brightness` of 1."""

    operation = staticmethod(image.random_brightness)

    def __init__(self, brightness: float):
        super().__init__(brightness)


class RandomContrast(_Jitter):
    """Contrast times a factor within `contrast` of 1."""

    operation = staticmethod(image.random_contrast)

    def __init__(self, contrast: float):
        super().__init__(contrast)


class RandomSaturation(_Jitter):
    """Saturation times a factor within `saturation` of 1."""

    operation = staticmethod(image.random_saturation)

    def __init__(self, saturation: float):
        super().__init__(saturation)


class RandomHue(_Jitter):
    """The hue turned by up to `hue` of a full turn either way."""

    operation = staticmethod(image.random_hue)

    def __init__(self, hue: float):
        super().__init__(hue)


class RandomColorJitter(HybridBlock):
    """Brightness, contrast, saturation and hue changed in any order."""

    def __init__(
        self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0
    ):
        super().__init__()
        self._spreads = (brightness, contrast, saturation, hue)

    def forward(self, x: Any) -> Any:
        """The changed image."""
        return image.random_color_jitter(x, *self._spreads)


class RandomLighting(HybridBlock):
    """Colours shifted along their principal directions, as AlexNet's authors did."""

    def __init__(self, alpha: float):
        super().__init__()
        self._alpha = alpha

    def forward(self, x: Any) -> Any:
        """The changed image."""
        return image.random_lighting(x, self._alpha)


_check_members(globals())

__all__ = [
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "ToTensor",
]
