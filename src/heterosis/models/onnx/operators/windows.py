"""Where windows lie that slide over the axes of space: what convolutions and pooling share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heterosis import np
from heterosis.runtime.errors import FormatError

Pairs = tuple[tuple[int, int], ...]  # for each axis, what is added before and behind


@dataclass(frozen=True)
class Windows:
    """How windows lie along each axis: `pads` as the file tells them, `behind` what `ceil_mode`
    makes the last windows reach for."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pairs
    behind: tuple[int, ...]
    out: tuple[int, ...]

    @property
    def symmetric(self) -> tuple[int, ...] | None:
        """The padding, if it is the same before and behind on each axis."""
        alike = all(before == after for before, after in self.pads) and not any(self.behind)
        return tuple(before for before, _ in self.pads) if alike else None

    @property
    def reach(self) -> Pairs:
        """The padding with what the last windows reach for."""
        pairs = zip(self.pads, self.behind, strict=True)
        return tuple((before, after + more) for (before, after), more in pairs)


def spans(kernel: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """How many elements there are from a window's first to its last."""
    return [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]


def numbers(what: str, given: Sequence[int] | None, axes: int, missing: int) -> tuple[int, ...]:
    """One number for each axis."""
    if not given:
        return (missing,) * axes
    if len(given) != axes:
        raise FormatError(f"{what}={list(given)} for {axes} axes of space.")
    return tuple(given)


def pairs(pads: Sequence[int] | None, axes: int) -> Pairs:
    """ONNX's list, all before and then all behind, as pairs."""
    flat = numbers("pads", pads, 2 * axes, 0)
    return tuple(zip(flat[:axes], flat[axes:], strict=True))


def windows(
    space: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: int = 0,
) -> Windows:
    """Windows as a convolution's or a pooling's attributes describe them."""
    axes = len(space)
    kernel = numbers("kernel_shape", kernel, axes, 1)
    step = numbers("strides", strides, axes, 1)
    apart = numbers("dilations", dilations, axes, 1)
    span = spans(kernel, apart)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        out = tuple(-(-n // s) for n, s in zip(space, step, strict=True))
        around = same_pads(space, span, step, upper=auto_pad == "SAME_UPPER")
        return Windows(kernel, step, apart, around, (0,) * axes, out)
    if auto_pad not in ("NOTSET", "VALID", ""):
        raise FormatError(f"auto_pad={auto_pad!r}; expected NOTSET, VALID, SAME_UPPER or _LOWER.")
    around = pairs(None if auto_pad == "VALID" else pads, axes)
    counts, behind = [], []
    for n, s, d, (before, after) in zip(space, step, span, around, strict=True):
        room = n + before + after - d
        count = room // s + 1
        more = 0
        # One window more, if there is something of the data or of the padding before it in it.
        if ceil_mode and room % s and count * s < n + before:
            more = count * s - room
            count += 1
        counts.append(count)
        behind.append(more)
    return Windows(kernel, step, apart, around, tuple(behind), tuple(counts))


def same_pads(
    space: Sequence[int], span: Sequence[int], strides: Sequence[int], *, upper: bool
) -> Pairs:
    """The padding with which there is a window for every `strides` elements; what is odd comes
    behind if `upper`."""
    found = []
    for n, d, s in zip(space, span, strides, strict=True):
        total = d - s if s == 1 else max((-(-n // s) - 1) * s + d - n, 0)
        total = max(total, 0)
        small, large = total // 2, total - total // 2
        found.append((small, large) if upper else (large, small))
    return tuple(found)


def padded(x: Any, around: Pairs, number: float = 0) -> Any:
    """`x` with so many more elements along its axes of space."""
    if not any(map(any, around)):
        return x
    if any(n < 0 for pair in around for n in pair):
        raise FormatError(f"pads={around}; expected numbers of at least 0.")
    return np.pad(x, ((0, 0), (0, 0), *around), constant_values=number)


def in_space(cut: Sequence[slice]) -> tuple[slice, ...]:
    """An index that cuts the axes of space."""
    return (slice(None), slice(None), *cut)
