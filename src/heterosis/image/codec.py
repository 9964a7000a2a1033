"""Image files to pixels and back, by Pillow. It is imported when the first image comes."""

from __future__ import annotations

import io
from typing import Any

import numpy

from heterosis.io.files import DEFLATE_RATIO, FileName, opened, translated, wrong
from heterosis.runtime.errors import ArgumentError, FormatError, MissingPackageError, ShapeError
from heterosis.runtime.memory import keep_freed_memory

_KIND = "an image"
GRAY, COLOUR, UNCHANGED = 0, 1, -1
_FORMATS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".bmp": "BMP", ".webp": "WEBP"}
_BOUNDED = ("BMP", "GIF", "PNG", "TIFF")  # no byte of theirs stands for more than one of deflate's
# libpng's weights of red and green, and the rest for blue, in units of 1 / 32768.
_PNG_GRAY = (9797, 19234, 3737)


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError:
        raise MissingPackageError(
            "Reading and writing images needs Pillow, which is not installed: "
            "pip install 'heterosis[image]'."
        ) from None
    keep_freed_memory()
    return PIL


def decode(encoded: bytes, flag: int = COLOUR, name: str = "imdecode") -> numpy.ndarray:
    """Pixels (height, width, channels) of an encoded image, colours in the order red, green, blue.

    `flag` is 1 for three channels, 0 for one, -1 for those that the image has.
    """
    if flag not in (GRAY, COLOUR, UNCHANGED):
        raise ArgumentError(f"{name}: flag={flag}; expected 1 for colour or 0 for grey.")
    if not len(encoded):
        raise FormatError(f"{name}: there are no bytes to decode.")
    pillow = _pillow()
    with translated(name, _KIND):
        try:
            with pillow.Image.open(io.BytesIO(encoded)) as image:
                _check_size(image, len(encoded), name)
                pixels = _pixels(image, flag)
        except pillow.UnidentifiedImageError:
            raise wrong(
                name, _KIND, f"{len(encoded):,} bytes that are no image of a known format; they "
                f"begin with {bytes(encoded[:8])!r}"
            ) from None  # fmt: skip
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _check_size(image: Any, nbytes: int, name: str) -> None:
    """Refuse pixels that cannot be there before there is room for them; Pillow bounds the rest."""
    bits = image.width * image.height  # at least so many, as a pixel may have just one
    bounded = image.format in _BOUNDED and image.mode != "1"  # fax codes tell whole rows in a bit
    if bounded and bits > 8 * DEFLATE_RATIO * nbytes:
        raise wrong(name, _KIND, f"{image.width} x {image.height} pixels in {nbytes:,} bytes")


def _pixels(image: Any, flag: int) -> numpy.ndarray:
    """As MXNet, without turning the image where its file says how the camera was held."""
    if flag == GRAY and image.format == "JPEG":
        image.draft("L", None)  # the lightness as the file has it
    if image.mode.startswith("I;16"):  # two bytes a pixel: the upper one counts
        pixels = (numpy.asarray(image) >> 8).astype("uint8")
        return numpy.stack([pixels] * 3, 2) if flag == COLOUR else pixels
    if flag == UNCHANGED:
        return numpy.asarray(image.convert(_plain_mode(image)))
    if flag == COLOUR:
        return numpy.asarray(image.convert("RGB"))
    if image.format == "PNG" and image.mode in ("RGB", "RGBA", "P"):
        return _png_gray(numpy.asarray(image.convert("RGB")))
    return numpy.asarray(image.convert("L"))


def _plain_mode(image: Any) -> str:
    if image.mode in ("1", "L"):
        return "L"
    return "RGBA" if image.has_transparency_data else "RGB"


def _png_gray(pixels: numpy.ndarray) -> numpy.ndarray:
    gray = (pixels @ numpy.array(_PNG_GRAY) >> 15).astype("uint8")
    same = (pixels == pixels[..., :1]).all(-1)
    return numpy.where(same, pixels[..., 0], gray)


def encode(pixels: numpy.ndarray, extension: str, quality: int = 95) -> bytes:
    """An image file of (height, width, channels) or (height, width) bytes.

    `quality` is 1 to 100 for JPEG and WebP, and the effort of compression, 0 to 9, for PNG.
    """
    kind = _FORMATS.get(extension.lower())
    if kind is None:
        raise ArgumentError(
            f"an image cannot be written as {extension!r}; expected one of {', '.join(_FORMATS)}."
        )
    pixels = numpy.ascontiguousarray(pixels)
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    if pixels.dtype != numpy.uint8 or not (
        pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    ):
        raise ShapeError(
            f"an image to be written has elements {pixels.dtype} and shape {pixels.shape}; "
            "expected uint8 and (height, width), or (height, width, channels) with 1, 3 or 4 "
            "channels."
        )
    options = {"compress_level": min(quality, 9)} if kind == "PNG" else {"quality": quality}
    to = io.BytesIO()
    _pillow().Image.fromarray(pixels).save(to, kind, **options)
    return to.getvalue()


def read(filename: FileName) -> bytes:
    """The bytes of an image file."""
    with opened(filename, _KIND) as source:
        return source.whole()


__all__ = ["COLOUR", "GRAY", "UNCHANGED", "decode", "encode", "read"]
