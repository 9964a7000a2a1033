"""Augmenters that change an image and the boxes of the objects in it together.

A label is a NumPy array with a row for each object: its class, then left, top, right and bottom as
parts of the image's width and height, then whatever else there is.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy

from heterosis import np
from heterosis.image import augment, image
from heterosis.np.convert import from_numpy, shared
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, UnsupportedError

Label = numpy.ndarray
Pair = "tuple[Any, Label]"
Bounds = "float | tuple[float, float]"
_LEFT, _TOP, _RIGHT, _BOTTOM = 1, 2, 3, 4


class DetAugmenter(augment.Settings):
    """One's own gives its settings to `__init__` and defines `__call__(src, label)`."""

    def __call__(self, src: Any, label: Label) -> Pair:
        raise UnsupportedError(f"{type(self).__name__} must define __call__.")


class DetBorrowAug(DetAugmenter):
    """An augmenter of images that leaves all objects where they are."""

    def __init__(self, augmenter: augment.Augmenter):
        if not isinstance(augmenter, augment.Augmenter):
            raise ArgumentTypeError(
                f"DetBorrowAug: expected an Augmenter, and got {type(augmenter).__name__}."
            )
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: Any, label: Label) -> Pair:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of several augmenters, or, with probability `skip_prob`, none."""

    def __init__(self, aug_list: Any, skip_prob: float = 0):
        chosen = list(aug_list) if isinstance(aug_list, list | tuple) else [aug_list]
        for augmenter in chosen:
            if not isinstance(augmenter, DetAugmenter):
                raise ArgumentTypeError(
                    "DetRandomSelectAug: expected DetAugmenters, and got "
                    f"{type(augmenter).__name__}; see DetBorrowAug."
                )
        super().__init__(skip_prob=skip_prob if chosen else 1)
        self.aug_list = chosen

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [a.dumps() for a in self.aug_list]]

    def __call__(self, src: Any, label: Label) -> Pair:
        if random.random() < self.skip_prob:
            return src, label
        order = list(self.aug_list)
        random.shuffle(order)
        return order[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Left and right exchanged, with probability `p`."""

    def __init__(self, p: float):
        super().__init__(p=p)

    def __call__(self, src: Any, label: Label) -> Pair:
        if random.random() >= self.p:
            return src, label
        mirrored = label.copy()
        mirrored[:, _LEFT], mirrored[:, _RIGHT] = 1 - label[:, _RIGHT], 1 - label[:, _LEFT]
        return src[:, ::-1], mirrored


def _areas(boxes: numpy.ndarray) -> numpy.ndarray:
    """The areas of boxes, rows of left, top, right, bottom; 0 for those turned inside out."""
    sides = numpy.maximum(boxes[:, 2:4] - boxes[:, :2], 0)
    return sides[:, 0] * sides[:, 1]


def _within(boxes: numpy.ndarray, frame: Sequence[float]) -> numpy.ndarray:
    """The parts of boxes inside a frame."""
    low = numpy.maximum(boxes[:, :2], frame[:2])
    return numpy.concatenate([low, numpy.minimum(boxes[:, 2:4], frame[2:])], 1)


def _pair(given: Bounds) -> tuple[float, float]:
    return (given, given) if isinstance(given, Number) else tuple(given)


class _Proposer(DetAugmenter):
    """Draws the size of a box by area and proportion, as often as it takes."""

    aspect_ratio_range: tuple[float, float]
    area_range: tuple[float, float]
    max_attempts: int

    def _enable(self, least_area: float) -> None:
        low, high = self.area_range
        self.enabled = (
            least_area < high >= low
            and 0 < self.aspect_ratio_range[0] <= (self.aspect_ratio_range[1])
        )
        if not self.enabled:
            warnings.warn(
                f"{type(self).__name__} does nothing: area_range={self.area_range} and "
                f"aspect_ratio_range={self.aspect_ratio_range} must be ascending, the areas more "
                f"than {least_area}.",
                stacklevel=3,
            )

    def _heights(self, ratio: float, pixels: int) -> tuple[int, int]:
        """The heights of the smallest and the largest box."""
        return tuple(round(math.sqrt(share * pixels / ratio)) for share in self.area_range)


class DetRandomCropAug(_Proposer):
    """A part of the image that covers more than `min_object_covered` of every object it touches.

    The part has a share of the image within `area_range` and a proportion within
    `aspect_ratio_range`; an object stays in the label if more than `min_eject_coverage` of it does.
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: Bounds = (0.75, 1.33),
        area_range: Bounds = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ):
        super().__init__(
            min_object_covered=min_object_covered,
            aspect_ratio_range=_pair(aspect_ratio_range),
            area_range=_pair(area_range),
            min_eject_coverage=min_eject_coverage,
            max_attempts=max_attempts,
        )
        self._enable(0)

    def __call__(self, src: Any, label: Label) -> Pair:
        height, width = src.shape[:2]
        for _ in range(self.max_attempts if self.enabled else 0):
            box = self._box(height, width)
            if box is None or not self._covers(box, label, height, width):
                continue
            kept = self._kept(box, label, height, width)
            if len(kept):
                return image.fixed_crop(src, *box), kept
        return src, label

    def _box(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        ratio = random.uniform(*self.aspect_ratio_range)
        least, most = (share * height * width for share in self.area_range)
        low, high = self._heights(ratio, height * width)
        if round(high * ratio) > width:
            high = int((width + 0.4999999) / ratio)
        high = min(high, height)
        h = random.randint(low, high) if low < high else high
        if round(h * ratio) * h < least:
            h += 1  # what rounding took away
        if round(h * ratio) * h > most:
            h -= 1
        w = round(h * ratio)
        if not (least <= w * h <= most and w <= width and 0 <= h <= height):
            return None
        y = random.randint(0, height - h)
        return random.randint(0, width - w), y, w, h

    def _covers(self, box: tuple, label: Label, height: int, width: int) -> bool:
        x, y, w, h = box
        boxes = label[:, _LEFT : _BOTTOM + 1]
        boxes = boxes[_areas(boxes) * width * height > 2]
        if w * h < 2 or not len(boxes):
            return False
        frame = (x / width, y / height, (x + w) / width, (y + h) / height)
        shares = _areas(_within(boxes, frame)) / _areas(boxes)
        touched = shares[shares > 0]
        return touched.size > 0 and touched.min() > self.min_object_covered

    def _kept(self, box: tuple, label: Label, height: int, width: int) -> Label:
        """The objects that enough is left of, in the coordinates of the part."""
        x, y, w, h = box
        across, down = (_LEFT, _RIGHT), (_TOP, _BOTTOM)
        part = label.copy()
        part[:, across] = (label[:, across] - x / width) / (w / width)
        part[:, down] = (label[:, down] - y / height) / (h / height)
        boxes = part[:, _LEFT : _BOTTOM + 1] = numpy.clip(part[:, _LEFT : _BOTTOM + 1], 0, 1)
        left = _areas(boxes) * (w / width) * (h / height)
        whole = _areas(label[:, _LEFT : _BOTTOM + 1])
        return part[(left > 0) & (left > self.min_eject_coverage * whole)]


class DetRandomPadAug(_Proposer):
    """The image somewhere within a larger one filled with `pad_val`.

    The larger one's area, in areas of the image, lies within `area_range`, and its proportion
    within `aspect_ratio_range`.
    """

    def __init__(
        self,
        aspect_ratio_range: Bounds = (0.75, 1.33),
        area_range: Bounds = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ):
        super().__init__(
            aspect_ratio_range=_pair(aspect_ratio_range),
            area_range=_pair(area_range),
            max_attempts=max_attempts,
            pad_val=(pad_val,) if isinstance(pad_val, Number) else tuple(pad_val),
        )
        self._enable(1)

    def __call__(self, src: Any, label: Label) -> Pair:
        height, width, channels = src.shape
        box = self._box(height, width)
        if box is None:
            return src, label
        x, y, w, h = box
        canvas = numpy.empty((h, w, channels), src.dtype)
        canvas[...] = self.pad_val
        canvas[y : y + height, x : x + width] = shared(np.asarray(src))
        moved = label.copy()
        moved[:, (_LEFT, _RIGHT)] = (label[:, (_LEFT, _RIGHT)] * width + x) / w
        moved[:, (_TOP, _BOTTOM)] = (label[:, (_TOP, _BOTTOM)] * height + y) / h
        return from_numpy(canvas), moved

    def _box(self, height: int, width: int) -> tuple[int, int, int, int] | None:
        for _ in range(self.max_attempts if self.enabled else 0):
            ratio = random.uniform(*self.aspect_ratio_range)
            low, high = self._heights(ratio, height * width)
            if round(low * ratio) < width:
                low = int((width + 0.499999) / ratio)
            low = min(max(low, height), high)
            h = random.randint(low, high) if low < high else low
            w = round(h * ratio)
            if h - height >= 2 and w - width >= 2:  # less is not worth it
                y = random.randint(0, h - height)
                return random.randint(0, w - width), y, w, h
        return None


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """One of several random crops; a list as an argument has a value for each of them."""
    given = (min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts)
    lists = [g if isinstance(g, list) else [g] for g in given]
    count = max(map(len, lists))
    if any(len(values) not in (1, count) for values in lists):
        raise ArgumentError(
            f"CreateMultiRandCropAugmenter: lists of {sorted({len(v) for v in lists})} values; "
            "expected lists of one length, and single values."
        )
    full = [values * count if len(values) == 1 else values for values in lists]
    crops = [DetRandomCropAug(*arguments) for arguments in zip(*full, strict=True)]
    return DetRandomSelectAug(crops, skip_prob)


def CreateDetAugmenter(
    data_shape: tuple[int, int, int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """The usual augmenters for detection; `rand_crop` and `rand_pad` are probabilities."""
    found: list[DetAugmenter] = []
    if resize > 0:
        found.append(DetBorrowAug(augment.ResizeAug(resize, inter_method)))
    if rand_crop > 0:
        found.append(
            CreateMultiRandCropAugmenter(
                min_object_covered,
                aspect_ratio_range,
                area_range,
                min_eject_coverage,
                max_attempts,
                1 - rand_crop,
            )
        )
    if rand_mirror:
        found.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:
        pad = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        found.append(DetRandomSelectAug([pad], 1 - rand_pad))
    size = (data_shape[2], data_shape[1])
    colours = augment.colour_augmenters(
        brightness, contrast, saturation, hue, pca_noise, rand_gray, mean, std
    )
    borrowed = [augment.ForceResizeAug(size, inter_method), *colours]
    return found + [DetBorrowAug(augmenter) for augmenter in borrowed]


__all__ = [
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
]
