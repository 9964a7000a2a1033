"""The rows of the result that a vector of positions lies in."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import I64, Function, Size, Value, constant
from heterosis.backends.native.codegen.kernels.convolution.problem import AXES

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.kernels.convolution.window import Windows

OUTSIDE = -(1 << 30)  # a coordinate that no tap brings back into the input


@dataclass(frozen=True)
class Rows:
    """The row that a vector of positions begins in, and those below it."""

    f: Function
    windows: Windows
    v: SimpleNamespace
    places: list[list[Value]]  # (image, d, h, w) of the first position in each row
    lanes: list[Value]  # where that position is; of the first row, the first lane
    starts: list[Value]  # where each row begins to read, if it had begun in the first lane
    count: Value  # positions that there are

    @classmethod
    def of(
        cls, f: Function, windows: Windows, v: SimpleNamespace, at: Value, count: Value,
        first: int, rows: int,
    ) -> Rows:  # fmt: skip
        """So many `rows`, at least two, of the vector that begins `first` positions behind `at`, of
        `count` ones."""
        places = [windows.place(f, v, f.add_size(at, first))]
        lanes: list[Size] = [0, f.sub_size(v.out_w, places[0][3])]
        last = f.i64(f.sub_size(v.out_w, 1))
        while len(places) < rows:
            places.append(windows.following(f, v, [*places[-1][:3], last]))
        while len(lanes) < rows:
            lanes.append(f.add_size(lanes[-1], v.out_w))
        starts = [
            f.sub_size(windows.offset_of_place(f, v, place), f.mul_size(lane, windows.step))
            for place, lane in zip(places, lanes, strict=True)
        ]
        there = f.max_size(0, f.min_size(windows.lanes, f.sub_size(count, first)))
        return cls(f, windows, v, places, [*map(f.i64, lanes)], [*map(f.i64, starts)], f.i64(there))

    @property
    def are_enough(self) -> Value:
        """Whether all positions lie in these rows."""
        end = self.f.add_size(self.lanes[-1], self.v.out_w)
        return self.f.compare("sle", self.count, self.f.i64(end))

    @property
    def runs(self) -> Value:
        """How many stretches of memory the positions read: a row may go on where the one before it
        ended."""
        f = self.f
        found = f.i64(1)
        for i in range(1, len(self.starts)):
            begins = f.compare("sgt", self.count, self.lanes[i])
            apart = f.compare("ne", self.starts[i], self.starts[i - 1])
            found = f.add(found, f.convert("zext", f.binary("and", begins, apart), I64))
        return found

    @property
    def breaks(self) -> list[Value]:
        """The lanes where all runs but the first begin."""
        f, later = self.f, self.lanes[1:]
        if len(later) > 1:
            return later
        whole = f.compare("eq", self.runs, f.i64(1))
        return [f.select(whole, f.i64(self.windows.lanes), later[0])]

    def coordinates(self, axis: str) -> Value:
        """What the positions read of an axis with the first tap."""
        f, windows, number = self.f, self.windows, AXES.index(axis)
        lanes = lane_numbers(f, windows.lanes, windows.integer)
        apart, origin = getattr(self.v, f"stride_{axis}"), getattr(self.v, f"origin_{axis}")

        def read(row: int) -> Value:
            before = self.lanes[row] if axis == "w" else 0
            at = f.sub_size(self.places[row][1 + number], before)
            first = windows.splat(f, f.i64(f.add_size(f.mul_size(at, apart), origin)))
            if axis != "w":
                return first
            return f.add(first, f.mul(lanes, windows.splat(f, f.i64(apart))))

        found = read(0)
        for row, lane in enumerate(self.lanes[1:], 1):
            found = f.select(f.compare("slt", lanes, windows.splat(f, lane)), found, read(row))
        there = f.compare("slt", lanes, windows.splat(f, self.count))
        return f.select(there, found, constant(found.type, OUTSIDE))
