"""What is to be convolved: element type, sizes, strides, and how windows lie in the input."""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.builder import I64, Type

AXES = ("d", "h", "w")

# Every size and stride, in the order in which code takes them. Strides count elements; along
# axis `h`, tap `t` of output position `p` reads input position p * stride_h + t * dilate_h +
# origin_h, and what lies outside the input is zero.
NUMBERS = (
    ("images", "groups", "rows", "channels")
    + tuple(f"kernel_{a}" for a in AXES)
    + tuple(f"out_{a}" for a in AXES)
    + tuple(f"in_{a}" for a in AXES)
    + ("x_image", "x_group", "x_channel")
    + tuple(f"x_{a}" for a in AXES)
    + tuple(f"stride_{a}" for a in AXES)
    + tuple(f"dilate_{a}" for a in AXES)
    + tuple(f"origin_{a}" for a in AXES)
    + ("a_image", "a_group", "a_row", "a_column", "a_channel")
    + tuple(f"a_{a}" for a in AXES)
    + ("chunks",)
)


@dataclass(frozen=True)
class Problem:
    """Products of matrices whose columns are windows of an input; all numbers are known.

    `rows` rows of the left operand stand for filters; `step` is how far apart in memory the
    elements of neighbouring positions are, where that is 1 or 2, and otherwise 0. `depthwise`
    asks for the code for one channel a group. The left operand's columns are `a_column` apart, or
    `scattered`: then it has strides for the channel and for the tap along each axis. Where it is
    `packed`, it lies as `emit_pack_filters` wrote it, and its strides are unused. If
    `turned`, it is packed as the right operand of a matrix product, a column for each filter. With
    `winograd`, it holds packed filters that were transformed for tiles of so many results. By
    `planes`, the gradient of filters is summed up over copied planes.
    """

    dtype: str
    step: int
    sizes: tuple[int, ...]
    depthwise: bool = False
    scattered: bool = False
    packed: bool = False
    turned: bool = False
    winograd: int = 0
    planes: bool = False

    @property
    def key(self) -> str:
        """All that the code depends on: sizes and strides are passed."""
        kinds = [
            label
            for label in ("depthwise", "scattered", "packed", "turned", "planes")
            if getattr(self, label)
        ]
        kinds += [f"winograd{self.winograd}"] if self.winograd else []
        return ".".join([self.dtype, str(self.step), *kinds])

    def parameters(self) -> list[tuple[str, Type]]:
        return [(name, I64) for name in NUMBERS]

    def known(self) -> dict[str, int]:
        return dict(zip(NUMBERS, self.sizes, strict=True))
