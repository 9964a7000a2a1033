"""Signals: Fourier transforms as products with tables of waves, windows, and mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.tensors import dtype_of, numpy_dtype
from heterosis.runtime.errors import FormatError


def _one(array: Host | None, missing: int) -> int:
    """The number in an array of one element."""
    if array is None or array.size == 0:
        return missing
    return int(array.reshape(-1)[0])


# -- transforms -----------------------------------------------------------------------------------


def _waves(length: int, count: int, dtype: str) -> tuple[Any, Any]:
    """(length, count): the real and the imaginary parts of what the transform multiplies with."""
    # The turns are counted as whole numbers, of which none is large.
    turns = numpy.outer(numpy.arange(length), numpy.arange(count)) % length
    angle = turns * (2 * math.pi / length)
    return np.array(numpy.cos(angle), dtype=dtype), np.array(-numpy.sin(angle), dtype=dtype)


def _fitted(x: Any, length: int) -> Any:
    """Exactly `length` elements along the last axis, zeros behind."""
    missing = length - int(x.shape[-1])
    if missing <= 0:
        return x[..., :length]
    return np.pad(x, ((0, 0),) * (x.ndim - 1) + ((0, missing),))


def _transformed(real: Any, imaginary: Any, length: int, count: int, inverse: bool) -> Any:
    """The transform along the last axis: real and imaginary parts of the first `count` results."""
    cosine, sine = _waves(length, count, str(real.dtype))
    sine = -sine if inverse else sine
    a, b = np.matmul(real, cosine), np.matmul(real, sine)
    if imaginary is not None:
        a, b = a - np.matmul(imaginary, sine), b + np.matmul(imaginary, cosine)
    return (a / length, b / length) if inverse else (a, b)


def _whole_spectrum(real: Any, imaginary: Any, length: int) -> tuple[Any, Any]:
    """A one-sided spectrum of a real signal with the other side, which mirrors it."""
    half = length // 2 + 1
    real, imaginary = _fitted(real, half), _fitted(imaginary, half)
    # The ends are real: what is given beside that does not count.
    flat = numpy.ones(half)
    flat[0] = 0
    if length % 2 == 0:
        flat[-1] = 0
    imaginary = imaginary * np.array(flat, dtype=str(real.dtype))
    inner = slice(1, length - half + 1)
    mirrored = np.flip(real[..., inner], -1), -np.flip(imaginary[..., inner], -1)
    return np.concatenate([real, mirrored[0]], -1), np.concatenate([imaginary, mirrored[1]], -1)


def _dft(x: Any, given: Host | None, axis: int, inverse: int, onesided: int) -> Any:
    axis %= x.ndim
    if axis == x.ndim - 1:
        raise FormatError("DFT: axis is that of the parts of numbers; expected one before it.")
    back = bool(inverse and onesided)
    extent = int(x.shape[axis])
    length = _one(given, 2 * (extent - 1) if back else extent)
    real = np.moveaxis(x[..., 0], axis, -1)
    imaginary = np.moveaxis(x[..., 1], axis, -1) if x.shape[-1] == 2 else None
    if back:
        imaginary = np.zeros_like(real) if imaginary is None else imaginary
        real, imaginary = _whole_spectrum(real, imaginary, length)
    else:
        real = _fitted(real, length)
        imaginary = None if imaginary is None else _fitted(imaginary, length)
    count = length // 2 + 1 if onesided and not inverse else length
    parts = _transformed(real, imaginary, length, count, bool(inverse))
    return np.stack([np.moveaxis(p, -1, axis) for p in parts[: 1 if back else 2]], -1)


@operator("DFT", since=17)
def _dft_along_attribute(
    x: Any, dft_length: Host | None = None,
    *, axis: int = 1, inverse: int = 0, onesided: int = 0,
) -> Any:  # fmt: skip
    return _dft(x, dft_length, axis, inverse, onesided)


@operator("DFT", since=20)
def _dft_along_input(
    x: Any, dft_length: Host | None = None, axis: Host | None = None,
    *, inverse: int = 0, onesided: int = 0,
) -> Any:  # fmt: skip
    return _dft(x, dft_length, _one(axis, -2), inverse, onesided)


@operator("STFT", since=17)
def _stft(
    signal: Any, frame_step: Host, window: Any = None, frame_length: Host | None = None,
    *, onesided: int = 1,
) -> Any:  # fmt: skip
    signal = np.expand_dims(signal, 2) if signal.ndim == 2 else signal
    step = _one(frame_step, 1)
    length = int(signal.shape[1]) if window is None else int(window.shape[0])
    length = _one(frame_length, length)
    frames = 1 + (int(signal.shape[1]) - length) // step
    place = numpy.arange(frames)[:, None] * step + numpy.arange(length)
    cut = np.take(signal, np.array(place, dtype="int64"), 1, mode="clip")  # b, frames, length, 1|2
    if window is not None:
        if window.shape[0] != length:
            raise FormatError(f"STFT: a window of {window.shape[0]} for frames of {length}.")
        cut = cut * np.reshape(window, (1, 1, -1, 1))
    imaginary = cut[..., 1] if signal.shape[2] == 2 else None
    count = length // 2 + 1 if onesided else length
    return np.stack(_transformed(cut[..., 0], imaginary, length, count, False), -1)


# -- windows --------------------------------------------------------------------------------------


def _window(name: str, *weights: float) -> None:
    """A window that is a sum of cosines, of 0, 1, 2 ... turns."""

    @operator(name, since=17)
    def window(size: Host, *, output_datatype: int = 1, periodic: int = 1) -> Any:
        count = _one(size, 0)
        turn = numpy.arange(count) * (2 * math.pi / max(count if periodic else count - 1, 1))
        found = sum(w * numpy.cos(k * turn) for k, w in enumerate(weights))
        dtype = dtype_of(output_datatype)
        return np.array(numpy.asarray(found).astype(numpy_dtype(dtype)), dtype=dtype)


_window("HannWindow", 0.5, -0.5)
_window("HammingWindow", 25 / 46, -21 / 46)
_window("BlackmanWindow", 0.42, -0.5, 0.08)


@operator("MelWeightMatrix", since=17)
def _mel_weight_matrix(
    num_mel_bins: Host, dft_length: Host, sample_rate: Host, lower_edge_hertz: Host,
    upper_edge_hertz: Host, *, output_datatype: int = 1,
) -> Any:  # fmt: skip
    bins, length, rate = (_one(v, 0) for v in (num_mel_bins, dft_length, sample_rate))
    low, high = (
        2595 * math.log10(1 + float(v.reshape(-1)[0]) / 700)
        for v in (lower_edge_hertz, upper_edge_hertz)
    )
    mel = numpy.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    hertz = 700 * (10 ** (mel / 2595) - 1)
    edges = ((length + 1) * hertz // rate).astype("int64")
    found = numpy.zeros((length // 2 + 1, bins))
    for i, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        if centre == left:
            found[centre, i] = 1
        else:
            found[left : centre + 1, i] = numpy.arange(centre - left + 1) / (centre - left)
        if right > centre:
            found[centre:right, i] = numpy.arange(right - centre, 0, -1) / (right - centre)
    dtype = dtype_of(output_datatype)
    return np.array(found.astype(numpy_dtype(dtype)), dtype=dtype)
