"""What is to be convolved with channels last: element type and sizes."""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.builder import I64, Type

# In the order in which code takes them. Along axis `h`, tap `t` of output position `p` reads input
# position p * stride_h + t * dilate_h + origin_h, and what lies outside the input is zero.
NUMBERS = (
    ("images", "channels", "filters", "y_row")
    + ("kernel_h", "kernel_w", "out_h", "out_w", "in_h", "in_w")
    + ("stride_h", "stride_w", "dilate_h", "dilate_w", "origin_h", "origin_w")
)
_OF_WINDOWS = ("kernel", "stride", "dilate")


@dataclass(frozen=True)
class Problem:
    """Input (images, in_h, in_w, channels) and result (images * out_h * out_w, filters) lie without
    gaps, but for rows of the result, which are `y_row` apart; all numbers are known. Where there
    are groups, each has `width` channels and as many filters."""

    dtype: str
    sizes: tuple[int, ...]
    width: int = 1

    def parameters(self) -> list[tuple[str, Type]]:
        return [(name, I64) for name in NUMBERS]

    def windows(self) -> dict[str, int]:
        """The numbers that say how windows look, which is the same for many layers."""
        known = self.known()
        return {name: known[name] for name in NUMBERS if name.startswith(_OF_WINDOWS)}

    def known(self) -> dict[str, int]:
        return dict(zip(NUMBERS, self.sizes, strict=True))
