"""Operations on images of shape (height, width, channels), and on batches of them."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant
from heterosis.ir.types import FLOATS, is_float
from heterosis.ops.array.shape import MOVED, flipped, samples
from heterosis.ops.math import elementwise as e
from heterosis.ops.random.draws import open_unit, standard_normal
from heterosis.ops.record import REGISTRY, Key, default, operation
from heterosis.ops.rules import cast
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import DTypeError, ShapeError

_HERE = ("npx.image",)
_GRAY = (0.299, 0.587, 0.114)
# The main directions in which colours vary in ImageNet's pictures, each times how far they do.
LIGHTING = numpy.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
) * [55.46, 4.794, 1.148]


def _check_image(name: str, x: Value) -> None:
    if x.ndim not in (3, 4):
        raise ShapeError(
            f"{name}: an array of shape {x.shape}; expected an image (height, width, channels) or "
            "a batch of them."
        )


def _check_colours(name: str, x: Value) -> None:
    _check_image(name, x)
    if x.shape[-1] not in (1, 3):
        raise ShapeError(
            f"{name}: an array of shape {x.shape}; expected 1 or 3 channels as its last dimension."
        )


# -- images to arrays for models ------------------------------------------------------------------


def _channels_first(x: Value) -> Value:
    last = x.ndim - 1
    return views.transpose(x, (*range(last - 2), last, last - 2, last - 1))


@operation(
    numpy=lambda x: numpy.moveaxis(x, -1, -3).astype("float32") / 255,
    public=_HERE,
    names={"mxnet": "_image_to_tensor"},
    samples=Samples(
        [Case(((4, 5, 3),)), Case(((2, 4, 5, 1),)), Case(((0, 4, 5, 3),))],
        domain=(0, 255),
        dtypes=("uint8", "int32"),
    ),
)
def to_tensor(data: Value) -> Value:
    """An image as float32 between 0 and 1, channels first."""
    _check_image("to_tensor", data)
    return e.multiply(cast(_channels_first(data), "float32"), constant(1 / 255, "float32"))


def _normalized(x: Any, mean: Any, std: Any) -> Any:
    return (x - numpy.reshape(mean, (-1, 1, 1))) / numpy.reshape(std, (-1, 1, 1))


@operation(
    numpy=_normalized,
    public=_HERE,
    names={"mxnet": "_image_normalize"},
    samples=Samples(
        [
            Case(((3, 4, 5), (3,), (3,))),
            Case(((2, 1, 4, 5), (1,), (1,))),
            Case(((3, 4, 5), (1,), None)),
        ],
        domain=((-4, 4), (-1, 1), (0.5, 2)),
        dtypes=FLOATS,
    ),
)
def normalize(data: Value, mean: Value = default(0.0), std: Value = default(1.0)) -> Value:
    """`(data - mean) / std` of channels-first images; one number for all channels or each."""
    if not is_float(data.dtype):
        raise DTypeError(f"normalize: elements are {data.dtype}; expected floats, see to_tensor.")
    if data.ndim not in (3, 4) or data.shape[-3] not in (1, 3):
        raise ShapeError(
            f"normalize: an array of shape {data.shape}; expected (channels, height, width) with 1 "
            "or 3 channels, or a batch of such; see to_tensor."
        )
    centred = e.subtract(data, _each_channel("mean", mean, data))
    return cast(e.true_divide(centred, _each_channel("std", std, data)), data.dtype)


def _each_channel(name: str, numbers: Value, data: Value) -> Value:
    numbers = cast(numbers, data.dtype)
    if numbers.size not in (1, data.shape[-3]):
        raise ShapeError(
            f"normalize: {name} has {numbers.size} numbers and the image {data.shape[-3]} "
            "channels; give one number, or one for each channel."
        )
    return views.reshape(numbers, (numbers.size, 1, 1))


# -- flips ----------------------------------------------------------------------------------------

_FLIPS = samples(((4, 5, 3), {}), ((2, 4, 5, 3), {}), dtypes=MOVED)


@operation(
    numpy=lambda x: x[..., ::-1, :],
    public=_HERE,
    names={"mxnet": "_image_flip_left_right"},
    samples=_FLIPS,
    views=True,
)
def flip_left_right(data: Value) -> Value:
    """The image with left and right exchanged."""
    _check_image("flip_left_right", data)
    return flipped(data, (data.ndim - 2,))


@operation(
    numpy=lambda x: x[..., ::-1, :, :],
    public=_HERE,
    names={"mxnet": "_image_flip_top_bottom"},
    samples=_FLIPS,
    views=True,
)
def flip_top_bottom(data: Value) -> Value:
    """The image upside down."""
    _check_image("flip_top_bottom", data)
    return flipped(data, (data.ndim - 3,))


def _maybe_flipped(name: str, data: Value, axis: int, key: Value) -> Value:
    """Each image of a batch has a chance of its own."""
    _check_image(name, data)
    shape = (*data.shape[:-3], 1, 1, 1)
    chosen = e.less(open_unit(key, shape, "float32"), 0.5)
    return e.select(chosen, flipped(data, (data.ndim + axis,)), data)


@operation(public=_HERE, names={"mxnet": "_image_random_flip_left_right"})
def random_flip_left_right(data: Value, key: Key = None) -> Value:
    """The image, with left and right exchanged in one of two cases."""
    return _maybe_flipped("random_flip_left_right", data, -2, key)


@operation(public=_HERE, names={"mxnet": "_image_random_flip_top_bottom"})
def random_flip_top_bottom(data: Value, key: Key = None) -> Value:
    """The image, upside down in one of two cases."""
    return _maybe_flipped("random_flip_top_bottom", data, -3, key)


# -- colours --------------------------------------------------------------------------------------


def _worked(x: Value) -> Value:
    return x if is_float(x.dtype) else cast(x, "float32")


def _stored(x: Value, dtype: str) -> Value:
    """Back to the type of the image: integers are cut off at the type's limits and to the point."""
    if is_float(dtype):
        return cast(x, dtype)
    limits = numpy.iinfo(dtype)
    return cast(e.minimum(e.maximum(x, float(limits.min)), float(limits.max)), dtype)


def _factor(name: str, low: Value, high: Value, key: Value) -> Value:
    if low.ndim or high.ndim:
        raise ShapeError(f"{name}: the factors must be numbers.")
    low, high = cast(low, "float32"), cast(high, "float32")
    return e.add(low, e.multiply(open_unit(key, (), "float32"), e.subtract(high, low)))


def _channel(x: Value, number: int) -> Value:
    starts, steps = (0,) * (x.ndim - 1) + (number,), (1,) * x.ndim
    return views.slice_(x, starts, steps, (*x.shape[:-1], 1))


def _gray(x: Value) -> Value:
    """The lightness of each pixel, as the only channel."""
    if x.shape[-1] == 1:
        return x
    parts = [e.multiply(_channel(x, i), weight) for i, weight in enumerate(map(_number, _GRAY))]
    return e.add(e.add(parts[0], parts[1]), parts[2])


def _number(given: float) -> Value:
    return constant(given, "float64", weak=True)


def _mixed(x: Value, other: Value, factor: Value, dtype: str) -> Value:
    """`factor` of `x`, and the rest of `other`."""
    rest = e.multiply(other, e.subtract(_number(1.0), factor))
    return _stored(e.add(e.multiply(x, factor), rest), dtype)


@operation(public=_HERE, names={"mxnet": "_image_random_brightness"})
def random_brightness(data: Value, min_factor: Value, max_factor: Value, key: Key = None) -> Value:
    """The image times a random number between two factors."""
    _check_image("random_brightness", data)
    factor = _factor("random_brightness", min_factor, max_factor, key)
    return _stored(e.multiply(_worked(data), factor), data.dtype)


@operation(public=_HERE, names={"mxnet": "_image_random_contrast"})
def random_contrast(data: Value, min_factor: Value, max_factor: Value, key: Key = None) -> Value:
    """The image's distance from its mean lightness times a random number between two factors."""
    _check_colours("random_contrast", data)
    factor = _factor("random_contrast", min_factor, max_factor, key)
    x = _worked(data)
    axes = tuple(range(data.ndim - 3, data.ndim))
    mean = REGISTRY["mean"].operation(_gray(x), axis=axes, keepdims=True)
    return _mixed(x, mean, factor, data.dtype)


@operation(public=_HERE, names={"mxnet": "_image_random_saturation"})
def random_saturation(data: Value, min_factor: Value, max_factor: Value, key: Key = None) -> Value:
    """Each pixel's distance from grey times a random number between two factors."""
    _check_colours("random_saturation", data)
    factor = _factor("random_saturation", min_factor, max_factor, key)
    x = _worked(data)
    return _mixed(x, _gray(x), factor, data.dtype)


@operation(public=_HERE, names={"mxnet": "_image_random_hue"})
def random_hue(data: Value, min_factor: Value, max_factor: Value, key: Key = None) -> Value:
    """The hue turned by a random number of full turns between two factors; whole turns do
    nothing."""
    _check_colours("random_hue", data)
    if data.shape[-1] == 1:
        return e.positive(data)
    factor = _factor("random_hue", min_factor, max_factor, key)
    unit = _number(1.0 if is_float(data.dtype) else 255.0)
    colours = [e.true_divide(_worked(_channel(data, i)), unit) for i in range(3)]
    turned = _turned(colours, factor)
    together = [e.multiply(c, unit) for c in turned]
    return _stored(REGISTRY["concatenate"].operation(together, axis=-1), data.dtype)


def _turned(colours: list[Value], turns: Value) -> list[Value]:
    """Red, green and blue with their hue turned, and with lightness and saturation as they were.

    A hue is counted in sixths of a circle. Without colour there is none, and nothing to turn.
    """
    red, green, blue = colours
    most = e.maximum(e.maximum(red, green), blue)
    least = e.minimum(e.minimum(red, green), blue)
    spread = e.subtract(most, least)
    safe = e.select(e.greater(spread, 0), spread, _number(1.0))
    from_red = e.true_divide(e.subtract(green, blue), safe)
    from_green = e.add(e.true_divide(e.subtract(blue, red), safe), _number(2.0))
    from_blue = e.add(e.true_divide(e.subtract(red, green), safe), _number(4.0))
    hue = e.select(
        e.equal(most, red), from_red, e.select(e.equal(most, green), from_green, from_blue)
    )
    hue = e.add(hue, e.multiply(turns, _number(6.0)))
    return [_at_hue(e.add(hue, _number(shift)), least, spread) for shift in (0.0, -2.0, 2.0)]


def _at_hue(hue: Value, least: Value, spread: Value) -> Value:
    """One channel: full within a sixth of its hue, falling off to nothing within the next."""
    away = e.absolute(e.subtract(e.mod(e.add(hue, _number(3.0)), _number(6.0)), _number(3.0)))
    part = e.minimum(e.maximum(e.subtract(_number(2.0), away), _number(0.0)), _number(1.0))
    return e.add(least, e.multiply(spread, part))


def _lit(x: Any, alpha: Any) -> Any:
    return x + LIGHTING @ alpha


@operation(
    numpy=_lit,
    public=_HERE,
    names={"mxnet": "_image_adjust_lighting"},
    samples=Samples(
        [Case(((4, 5, 3), (3,))), Case(((2, 4, 5, 3), (3,)))], dtypes=FLOATS, absolute=900
    ),
)
def adjust_lighting(data: Value, alpha: Value) -> Value:
    """The image plus `alpha` times the three directions in which natural colours vary most."""
    _check_image("adjust_lighting", data)
    if data.shape[-1] != 3 or alpha.shape != (3,):
        raise ShapeError(
            f"adjust_lighting: an image of shape {data.shape} and alpha of shape {alpha.shape}; "
            "expected an image of three channels, and three numbers."
        )
    return _with_light(data, alpha)


@operation(public=_HERE, names={"mxnet": "_image_random_lighting"})
def random_lighting(data: Value, alpha_std: Value = default(0.05), key: Key = None) -> Value:
    """`adjust_lighting` with normal random numbers of deviation `alpha_std`."""
    _check_image("random_lighting", data)
    if data.shape[-1] == 1:
        return e.positive(data)
    alpha = e.multiply(standard_normal(key, (3,), "float32"), cast(alpha_std, "float32"))
    return _with_light(data, alpha)


def _with_light(data: Value, alpha: Value) -> Value:
    alpha = cast(alpha, _worked(data).dtype)
    parts = [views.slice_(alpha, (i,), (1,), (1,)) for i in range(3)]
    shifts = []
    for row in LIGHTING:
        terms = [e.multiply(part, _number(float(n))) for part, n in zip(parts, row, strict=True)]
        shifts.append(e.add(e.add(terms[0], terms[1]), terms[2]))
    shift = REGISTRY["concatenate"].operation(shifts, axis=0)
    return _stored(e.add(_worked(data), shift), data.dtype)


__all__ = ["LIGHTING"]
