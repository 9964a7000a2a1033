"""Augmenters: functions from an image to a changed one, with settings that can be written down.

Images are arrays (height, width, channels). What is random is drawn with Python's `random`.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import np
from heterosis.image import image
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError

_GRAY = (0.299, 0.587, 0.114)
IMAGENET_MEAN = (123.68, 116.28, 103.53)
IMAGENET_STD = (58.395, 57.12, 57.375)
# How far, and in which directions, the colours of ImageNet's pictures vary.
PCA_VALUES = (55.46, 4.794, 1.148)
PCA_VECTORS = (
    (-0.5675, 0.7192, 0.4009),
    (-0.5808, -0.0045, -0.8140),
    (-0.5836, -0.6948, 0.4203),
)


def plain(setting: Any) -> Any:
    """A setting as JSON can hold it."""
    return numpy.asarray(setting).tolist() if hasattr(setting, "__array__") else setting


class Settings:
    """Keeps the arguments that an augmenter was made with, as attributes and to write down."""

    def __init__(self, **kwargs: Any):
        self._kwargs = {name: plain(given) for name, given in kwargs.items()}
        vars(self).update(kwargs)

    def dumps(self) -> Any:
        """The augmenter's name and settings, as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])


class Augmenter(Settings):
    """One's own augmenter gives its settings to `__init__` and defines `__call__`."""

    def __call__(self, src: Any) -> Any:
        raise UnsupportedError(f"{type(self).__name__} must define __call__.")


class _Several(Augmenter):
    def __init__(self, ts: Sequence[Augmenter]):
        super().__init__()
        self.ts = list(ts)

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]


class SequentialAug(_Several):
    """Augmenters one after the other."""

    def __call__(self, src: Any) -> Any:
        for augmenter in self.ts:
            src = augmenter(src)
        return src


class RandomOrderAug(_Several):
    """Augmenters one after the other, each time in another order."""

    def __call__(self, src: Any) -> Any:
        order = list(self.ts)
        random.shuffle(order)
        for augmenter in order:
            src = augmenter(src)
        return src


# -- size and place -------------------------------------------------------------------------------


class ResizeAug(Augmenter):
    """The shorter side made `size` long."""

    def __init__(self, size: int, interp: int = 2):
        super().__init__(size=size, interp=interp)

    def __call__(self, src: Any) -> Any:
        return image.resize_short(src, self.size, self.interp)


class ForceResizeAug(Augmenter):
    """Resized to `size`, (width, height), whatever the proportions."""

    def __init__(self, size: tuple[int, int], interp: int = 2):
        super().__init__(size=size, interp=interp)

    def __call__(self, src: Any) -> Any:
        return image.imresize(src, *self.size, interp=self.interp)


class RandomCropAug(Augmenter):
    """A part anywhere, of `size` (width, height)."""

    def __init__(self, size: tuple[int, int], interp: int = 2):
        super().__init__(size=size, interp=interp)

    def __call__(self, src: Any) -> Any:
        return image.random_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """A part anywhere, of a random area and proportion, resized to `size` (width, height)."""

    def __init__(
        self, size: tuple[int, int], area: Any, ratio: tuple[float, float], interp: int = 2
    ):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)

    def __call__(self, src: Any) -> Any:
        return image.random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(Augmenter):
    """The middle, of `size` (width, height)."""

    def __init__(self, size: tuple[int, int], interp: int = 2):
        super().__init__(size=size, interp=interp)

    def __call__(self, src: Any) -> Any:
        return image.center_crop(src, self.size, self.interp)[0]


class HorizontalFlipAug(Augmenter):
    """Left and right exchanged, with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)

    def __call__(self, src: Any) -> Any:
        return src[:, ::-1] if random.random() < self.p else src


# -- colours --------------------------------------------------------------------------------------


def _around_one(spread: float) -> float:
    return 1.0 + random.uniform(-spread, spread)


class BrightnessJitterAug(Augmenter):
    """Times a number within `brightness` of 1."""

    def __init__(self, brightness: float):
        super().__init__(brightness=brightness)

    def __call__(self, src: Any) -> Any:
        return src * _around_one(self.brightness)


class ContrastJitterAug(Augmenter):
    """The distance from the mean lightness times a number within `contrast` of 1."""

    def __init__(self, contrast: float):
        super().__init__(contrast=contrast)

    def __call__(self, src: Any) -> Any:
        factor = _around_one(self.contrast)
        return src * factor + (src * np.array(_GRAY)).sum(-1).mean() * (1 - factor)


class SaturationJitterAug(Augmenter):
    """The distance from grey times a number within `saturation` of 1."""

    def __init__(self, saturation: float):
        super().__init__(saturation=saturation)

    def __call__(self, src: Any) -> Any:
        factor = _around_one(self.saturation)
        return src * factor + (src * np.array(_GRAY)).sum(-1, keepdims=True) * (1 - factor)


# To lightness and two coordinates of colour (YIQ), and back.
_TO_YIQ = numpy.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_FROM_YIQ = numpy.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])


class HueJitterAug(Augmenter):
    """The hue turned by at most `hue` half turns."""

    def __init__(self, hue: float):
        super().__init__(hue=hue)

    def __call__(self, src: Any) -> Any:
        angle = random.uniform(-self.hue, self.hue) * math.pi
        turn = numpy.eye(3)
        turn[1:, 1:] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        return np.dot(src, np.array((_FROM_YIQ @ turn @ _TO_YIQ).T, dtype="float32"))


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation changed in any order."""

    def __init__(self, brightness: float, contrast: float, saturation: float):
        kinds = (BrightnessJitterAug, ContrastJitterAug, SaturationJitterAug)
        spreads = (brightness, contrast, saturation)
        super().__init__([kind(s) for kind, s in zip(kinds, spreads, strict=True) if s > 0])


class LightingAug(Augmenter):
    """Colours shifted along their principal directions, by normal numbers times `eigval`."""

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)

    def __call__(self, src: Any) -> Any:
        alpha = numpy.random.normal(0, self.alphastd, size=3)
        shift = (numpy.asarray(self.eigvec) * alpha) @ numpy.asarray(self.eigval)
        return src + np.array(shift, dtype="float32")


class ColorNormalizeAug(Augmenter):
    """Less `mean` and divided by `std`, of which either may be None."""

    def __init__(self, mean: Any, std: Any):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (
            None if x is None else np.array(x, dtype="float32") for x in (mean, std)
        )

    def __call__(self, src: Any) -> Any:
        return image.color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Made grey, with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)

    def __call__(self, src: Any) -> Any:
        if random.random() >= self.p:
            return src
        return np.dot(src, np.array([[0.21] * 3, [0.72] * 3, [0.07] * 3]))


class CastAug(Augmenter):
    """Elements of another type."""

    def __init__(self, typ: str = "float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src: Any) -> Any:
        return src.astype(self.typ)


# -- lists of augmenters --------------------------------------------------------------------------


def statistics(name: str, given: Any, usual: tuple[float, ...]) -> Any:
    """A mean or deviation of each channel: ImageNet's for `True`."""
    if given is None or given is False:
        return None
    numbers = numpy.asarray(usual if given is True else given, "float32")
    if numpy.size(numbers) not in (1, 3):
        raise ShapeError(f"{name} has {numbers.size} numbers; expected 1 or 3, or True.")
    return numbers.ravel()


def colour_augmenters(
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    pca_noise: float,
    rand_gray: float,
    mean: Any,
    std: Any,
) -> list[Augmenter]:
    """The augmenters of colours that are asked for, the conversion to float32 in front."""
    found: list[Augmenter] = [CastAug()]
    if brightness or contrast or saturation:
        found.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        found.append(HueJitterAug(hue))
    if pca_noise > 0:
        found.append(LightingAug(pca_noise, numpy.array(PCA_VALUES), numpy.array(PCA_VECTORS)))
    if rand_gray > 0:
        found.append(RandomGrayAug(rand_gray))
    mean, std = statistics("mean", mean, IMAGENET_MEAN), statistics("std", std, IMAGENET_STD)
    if mean is not None or std is not None:
        found.append(ColorNormalizeAug(mean, std))
    return found


def CreateAugmenter(
    data_shape: tuple[int, int, int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """The usual augmenters for images of `data_shape`, (channels, height, width)."""
    size = (data_shape[2], data_shape[1])
    if rand_resize and not rand_crop:
        raise ArgumentError("CreateAugmenter: rand_resize cuts at random; set rand_crop too.")
    found: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        found.append(RandomSizedCropAug(size, 0.08, (3 / 4, 4 / 3), inter_method))
    else:
        found.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if rand_mirror:
        found.append(HorizontalFlipAug(0.5))
    return found + colour_augmenters(
        brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std
    )


__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
]
