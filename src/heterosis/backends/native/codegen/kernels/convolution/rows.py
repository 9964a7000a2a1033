"""The one or two rows of the result that a vector of positions lies in."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import Function, Size, Value, constant
from heterosis.backends.native.codegen.kernels.convolution.problem import AXES

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.kernels.convolution.window import Windows

OUTSIDE = -(1 << 30)  # a coordinate that no tap brings back into the input


@dataclass(frozen=True)
class Rows:
    """The row that a vector of positions begins in, and the one below it."""

    f: Function
    windows: Windows
    v: SimpleNamespace
    here: list[Value]  # (image, d, h, w) of the first position
    below: list[Value]  # and of the first one of the row below
    rest: Value  # positions until then
    count: Value  # positions that there are
    start: Size  # where the first row begins to read, and the second one if it had begun before
    second: Size
    broken: Value  # whether the second begins within the vector, and goes on elsewhere
    are_enough: Value

    @classmethod
    def of(
        cls, f: Function, windows: Windows, v: SimpleNamespace, at: Value, count: Value, first: int
    ) -> Rows:
        """Of the vector that begins `first` positions behind `at`, of `count` ones."""
        here = windows.place(f, v, f.add_size(at, first))
        rest = f.i64(f.sub_size(v.out_w, here[3]))
        below = windows.following(f, v, [*here[:3], f.i64(f.sub_size(v.out_w, 1))])
        there = f.max_size(0, f.min_size(windows.lanes, f.sub_size(count, first)))
        start, second = (windows.offset_of_place(f, v, place) for place in (here, below))
        second = f.sub_size(second, f.mul_size(rest, windows.step))
        broken = f.binary(
            "and",
            f.compare("sgt", f.i64(there), rest),
            f.compare("ne", f.i64(start), f.i64(second)),
        )
        enough = f.compare("sle", f.i64(there), f.i64(f.add_size(rest, v.out_w)))
        return cls(f, windows, v, here, below, rest, f.i64(there), start, second, broken, enough)

    @property
    def breaks(self) -> Value:
        """The lane where the second run begins."""
        f = self.f
        return f.select(self.broken, self.rest, f.i64(self.windows.lanes))

    def coordinates(self, axis: str) -> Value:
        """What the positions read of an axis with the first tap."""
        f, windows, number = self.f, self.windows, AXES.index(axis)
        lanes = lane_numbers(f, windows.lanes, windows.integer)
        early = f.compare("slt", lanes, windows.splat(f, self.rest))
        apart, origin = getattr(self.v, f"stride_{axis}"), getattr(self.v, f"origin_{axis}")

        def read(place: list[Value], before: Size) -> Value:
            at = f.sub_size(place[1 + number], before)
            first = windows.splat(f, f.i64(f.add_size(f.mul_size(at, apart), origin)))
            if axis != "w":
                return first
            return f.add(first, f.mul(lanes, windows.splat(f, f.i64(apart))))

        both = f.select(
            early, read(self.here, 0), read(self.below, self.rest if axis == "w" else 0)
        )
        there = f.compare("slt", lanes, windows.splat(f, self.count))
        return f.select(there, both, constant(both.type, OUTSIDE))
