"""Filters on windows of an input, which ONNX calls convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heterosis.ir.primitives.windows import CONVOLVE, windows_of
from heterosis.ir.program import Node
from heterosis.ir.sizes import Size
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.broadcasting import operands_of
from heterosis.models.onnx.writing.rows.rearranging import reshaped, sliced
from heterosis.models.onnx.writing.sizes import Extent
from heterosis.models.onnx.writing.tables import row
from heterosis.runtime.errors import UnsupportedError

_SPACE = 3  # where dimensions of space begin, of six


@dataclass(frozen=True)
class _Axis:
    """Windows along one dimension: tap t of position p is at `p * stride + t * dilate + origin`."""

    extent: Extent
    kernel: int
    stride: int
    dilate: int
    origin: int
    out: Extent

    @property
    def is_trivial(self) -> bool:
        return (self.extent, self.kernel, self.origin, self.out) == (1, 1, 0, 1)

    @property
    def first(self) -> int:
        """Where the first window begins; taps may go backwards."""
        return self.origin + min(0, (self.kernel - 1) * self.dilate)

    @property
    def reach(self) -> int:
        return (self.kernel - 1) * abs(self.dilate) + 1

    def after(self) -> int:
        """So many elements behind the last one give just the positions that there are."""
        needed = (self.out - 1) * self.stride + self.reach + self.first - self.extent
        if not isinstance(needed, Size):
            return needed
        for after in range(-self.reach - self.stride, self.reach + self.stride):
            room = self.extent - self.first + after - self.reach
            if room // self.stride + 1 == self.out:
                return after
        raise UnsupportedError(
            f"a convolution that gives {self.out} of {self.extent} elements is no ONNX operator."
        )


@row(CONVOLVE)
def _convolved(writer: ProgramWriter, node: Node) -> str:
    x, filters = node.inputs
    windows, shape = windows_of(node), node.types[0].shape
    columns = (x.shape[_SPACE:], windows.kernel, windows.stride, windows.dilate, windows.origin,
               shape[_SPACE:])  # fmt: skip
    axes = [_Axis(*one) for one in zip(*columns, strict=True)]
    while len(axes) > 1 and axes[0].is_trivial:
        del axes[0]
    images, groups, channels, *_ = x.shape
    rows = filters.shape[1]
    taps = [a.kernel for a in axes]
    names = writer.operands(node)
    flat = (images, groups * channels, *(a.extent for a in axes))
    own = (groups * rows, channels, *taps)
    seen = operands_of(node)
    data = reshaped(writer, names[0], seen[0].shape, flat)
    weights = reshaped(writer, names[1], seen[1].shape, own)
    data, before, after = _cut(writer, data, flat, axes)
    weights = _turned(writer, weights, own, axes)
    found = writer.node(
        "Conv", data, weights, group=groups, kernel_shape=taps, strides=[a.stride for a in axes],
        dilations=[abs(a.dilate) for a in axes], pads=[*before, *after],
    )  # fmt: skip
    return reshaped(writer, found, (images, groups * rows, *(a.out for a in axes)), shape)


def _cut(
    writer: ProgramWriter, data: str, shape: tuple[Extent, ...], axes: list[_Axis]
) -> tuple[str, list[int], list[int]]:
    """Padding before and after; where it would be negative, elements are cut off."""
    before, after = [-a.first for a in axes], [a.after() for a in axes]
    if min(*before, *after) < 0:
        lead = len(shape) - len(axes)
        starts = [0] * lead + [max(-n, 0) for n in before]
        ends = [0] * lead + [max(-n, 0) for n in after]
        left = [n - s - e for n, s, e in zip(shape, starts, ends, strict=True)]
        data = sliced(writer, data, shape, starts, [1] * len(shape), left)
    return data, [max(n, 0) for n in before], [max(n, 0) for n in after]


def _turned(writer: ProgramWriter, weights: str, shape: tuple[Any, ...], axes: list[_Axis]) -> str:
    """Filters whose taps go forwards along every axis."""
    lead = len(shape) - len(axes)
    backwards = [a.dilate < 0 and a.kernel > 1 for a in axes]
    starts = [0] * lead + [(a.kernel - 1) * b for a, b in zip(axes, backwards, strict=True)]
    steps = [1] * lead + [-1 if b else 1 for b in backwards]
    return sliced(writer, weights, shape, starts, steps, shape)
