"""Gathers windows of the input into panels, so that a convolution needs no copy of the image.

A panel holds `tile.columns` neighbouring output positions. Where they read neighbouring input
elements, at most four runs a vector, they are loaded as vectors under masks that leave out the
padding; otherwise element by element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    Branch,
    Function,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.kernels.convolution.problem import AXES, NUMBERS
from heterosis.backends.native.codegen.kernels.convolution.rows import OUTSIDE, Rows
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel

# What loads one vector of a panel: from the starts of runs and a tap's masks.
_Load = Callable[[Function, "list[list[Value]]", Value, int], Value]

# How the positions of a panel read the input: element by element, or so many runs a vector. Inside,
# no tap of any of them meets the padding, so that the taps need no masks of their own.
_SCATTERED, _ONE_RUN, _TWO_RUNS, _FOUR_RUNS, _ONE_INSIDE, _TWO_INSIDE, _FOUR_INSIDE = range(7)
TABLE_BYTES = 16  # for each step of depth: the offset of its tap, and where its masks are


@dataclass(frozen=True)
class Windows:
    """Emits the functions that look up and pack windows; `own` is memory of one thread.

    `own` holds, in order: the kind and the starts of runs, the offset of every position (inside:
    the lanes where later runs of each vector begin), its coordinates, and the masks of every tap.
    """

    kernel: Kernel
    step: int
    runs: int = 4  # of a vector, at most

    def name(self, part: str) -> str:
        """One function for all kernels of a module: they all begin their frames with the numbers
        of their problem."""
        return f"windows.{self.kernel.element.dtype}.{self.step}.{self.runs}.{part}"

    def _function(self, part: str, parameters: list[tuple[str, Type]]) -> Function | None:
        """None if the module has it."""
        module, attributes = self.kernel.module, self.kernel.target.function_attributes
        if module.defines(self.name(part)):
            return None
        return module.function(self.name(part), parameters, attributes=attributes)

    @property
    def lanes(self) -> int:
        return self.kernel.tile.lanes

    @property
    def vectors(self) -> int:
        return self.kernel.tile.vectors

    @property
    def columns(self) -> int:
        return self.kernel.tile.columns

    @property
    def by_vectors(self) -> bool:
        """Whether part of a vector can be loaded."""
        return self.step > 0 and self.kernel.target.has_masks()

    @property
    def integer(self) -> Type:
        """Coordinates and masks are as wide as the elements, so that lanes match."""
        return self.kernel.element.compute.as_integer

    # -- memory ---------------------------------------------------------------------------------

    @property
    def _mask_bytes(self) -> int:
        """Of one load's mask: a bit for each lane, where masks have registers of their own."""
        bits = 1 if self._are_bits else 8 * self.kernel.element.size
        return self.lanes * bits // 8

    @property
    def masks_of_tap(self) -> int:
        """Bytes: one integer for each position, then for each run a mask for each load."""
        loads = self.runs * self.step * self.vectors * self.by_vectors
        whole = self.columns * self.kernel.element.size + loads * self._mask_bytes
        return -(-whole // 8) * 8

    @property
    def _slots(self) -> int:
        return 1 + self.runs * self.vectors + self.columns

    @property
    def head_bytes(self) -> int:
        return 8 * self._slots + 3 * self.columns * self.kernel.element.size

    def own_bytes(self, f: Function, taps: Size) -> Size:
        return f.add_size(self.head_bytes, f.mul_size(taps, self.masks_of_tap))

    def _slot(self, f: Function, own: Value, slot: Size) -> Value:
        return f.offset(I64, own, slot)

    def _offset_of(self, f: Function, own: Value, position: Size) -> Value:
        return self._slot(f, own, f.add_size(1 + self.runs * self.vectors, position))

    def _start_of(self, f: Function, own: Value, run: int, vector: int) -> Value:
        return self._slot(f, own, 1 + run * self.vectors + vector)

    def _break_of(self, f: Function, own: Value, run: int, vector: int) -> Value:
        """Where the lane is that a run begins with, if all positions are inside."""
        return self._offset_of(f, own, run * self.vectors + vector)

    def _coordinates(self, f: Function, own: Value, axis: int) -> Value:
        behind = f.offset(I64, own, self._slots)
        return f.offset(self.integer, behind, axis * self.columns)

    def masks(self, f: Function, own: Value) -> Value:
        return f.offset(I8, own, self.head_bytes)

    # -- the table of taps ----------------------------------------------------------------------

    def fill_table(self, f: Function, v: SimpleNamespace, table: Value) -> None:
        """One entry for each (channel, tap), in the order of the left operand's columns."""
        taps = f.mul_size(f.mul_size(v.kernel_d, v.kernel_h), v.kernel_w)
        with f.loop(0, v.channels) as c, f.loop(0, v.kernel_d) as d, f.loop(0, v.kernel_h) as h:
            at = f.mul_size(c.index, v.x_channel)
            for axis, index in (("d", d.index), ("h", h.index)):
                at = f.add_size(at, self._reach(f, v, axis, index))
            row = f.add_size(f.mul_size(d.index, v.kernel_h), h.index)
            with f.loop(0, v.kernel_w) as w:
                tap = f.add_size(f.mul_size(row, v.kernel_w), w.index)
                entry = f.add_size(f.mul_size(c.index, taps), tap)
                to = f.offset(I64, table, f.mul_size(entry, 2))
                f.store(f.i64(f.add_size(at, self._reach(f, v, "w", w.index))), to)
                f.store(f.i64(f.mul_size(tap, self.masks_of_tap)), f.offset(I64, to, 1))

    def _reach(self, f: Function, v: SimpleNamespace, axis: str, tap: Size) -> Size:
        moved = f.mul_size(tap, getattr(v, f"dilate_{axis}"))
        return f.mul_size(moved, getattr(v, f"x_{axis}"))

    # -- looking up a panel's positions -----------------------------------------------------------

    def emit_look_up(self, problem: SimpleNamespace) -> None:
        """`look_up(context, at, count, own)`: positions `at` to `at + count` into `own`. The
        context is a frame that begins with the numbers of the `problem`."""
        labels = [("context", PTR), ("at", I64), ("count", I64), ("own", PTR)]
        f = self._function("look_up", labels)
        if f is None:
            return
        context, at, count, own = f.parameters
        v = Frame(**{label: getattr(problem, label) for label in NUMBERS}).load(f, context)

        def look_up(rows: list[int]) -> Sequence[Value]:
            """By so many rows a vector, if that is enough, or by more."""
            if not rows:
                return self._look_up_each(f, v, own, count, self.place(f, v, at))
            few, *more = rows
            found = [
                Rows.of(f, self, v, at, count, i * self.lanes, few) for i in range(self.vectors)
            ]
            fitting = functools.reduce(
                functools.partial(f.binary, "and"), (r.are_enough for r in found)
            )
            if few > 2:  # one by one, rows that follow one another in memory become one run
                many = (f.compare("sgt", r.runs, f.i64(2)) for r in found)
                fitting = f.binary(
                    "and", fitting, functools.reduce(functools.partial(f.binary, "or"), many)
                )
            return f.if_else(
                fitting, lambda: self._look_up_rows(f, v, own, count, found), lambda: look_up(more)
            )

        kind, *breaks = look_up([2, 4][: self.runs // 2] if self.by_vectors else [])
        f.store(kind, own)

        def masks(runs: int) -> None:
            few = breaks[: (runs - 1) * self.vectors]
            self._store_masks(f, v, own, [few[i :: self.vectors] for i in range(self.vectors)])

        def some_outside() -> None:
            if self.runs == 2 or not self.by_vectors:
                masks(2)
                return
            many = f.compare("eq", kind, f.i64(_FOUR_RUNS))
            f.if_else(many, lambda: masks(4), lambda: masks(2))

        f.if_else(f.compare("slt", kind, f.i64(_ONE_INSIDE)), some_outside)
        f.ret()

    def place(self, f: Function, v: SimpleNamespace, position: Size) -> list[Value]:
        """(image, d, h, w) of a position."""
        rest, w = f.div_size(position, v.out_w), f.rem_size(position, v.out_w)
        rest, h = f.div_size(rest, v.out_h), f.rem_size(rest, v.out_h)
        spot: list[Size] = [f.div_size(rest, v.out_d), f.rem_size(rest, v.out_d), h, w]
        return [f.i64(size) for size in spot]

    def _look_up_rows(
        self, f: Function, v: SimpleNamespace, own: Value, count: Value, rows: list[Rows]
    ) -> list[Value]:
        """Each row is a run: the kind, and the lanes where later runs of each vector begin."""
        inside = f.compare("eq", f.i64(count), f.i64(self.columns))
        two = len(rows[0].starts) == 2
        kind = f.i64(_ONE_RUN if two else _FOUR_RUNS)
        breaks = [each.breaks for each in rows]
        for vector, each in enumerate(rows):
            for run, start in enumerate(each.starts):
                f.store(start, self._start_of(f, own, run, vector))
            for run, lane in enumerate(breaks[vector]):
                f.store(lane, self._break_of(f, own, run, vector))
            if two:
                apart = f.compare("sgt", each.runs, f.i64(1))
                kind = f.select(apart, f.i64(_TWO_RUNS), kind)
            for number, axis in enumerate(AXES):
                at = each.coordinates(axis)
                first = vector * self.lanes
                f.store(at, f.offset(self.integer, self._coordinates(f, own, number), first))
                inside = f.binary("and", inside, self._all_inside(f, v, axis, at))
        beyond = f.add_size(kind, _ONE_INSIDE - _ONE_RUN)
        return [f.select(inside, f.i64(beyond), kind), *self._in_turn(f, breaks)]

    def _in_turn(self, f: Function, breaks: list[list[Value]]) -> list[Value]:
        """The breaks of each vector, run by run; runs that there are not begin behind it."""
        none = f.i64(self.lanes)
        return [
            each[run] if run < len(each) else none
            for run in range(self.runs - 1)
            for each in breaks
        ]

    def _all_inside(self, f: Function, v: SimpleNamespace, axis: str, at: Value) -> Value:
        """Whether neither the first tap nor the last one, which may lie before it, leaves the input
        from any of these coordinates."""
        last = f.sub_size(getattr(v, f"kernel_{axis}"), 1)
        reach = self.splat(f, f.i64(f.mul_size(last, getattr(v, f"dilate_{axis}"))))
        end, together = self.splat(f, f.i64(getattr(v, f"in_{axis}"))), Type(f"i{self.lanes}")
        ends = (f.compare("ult", tap, end) for tap in (at, f.add(at, reach)))
        bits = f.convert("bitcast", f.binary("and", *ends), together)
        return f.compare("eq", bits, constant(together, -1))

    def _look_up_each(
        self, f: Function, v: SimpleNamespace, own: Value, count: Value, place: list[Value]
    ) -> list[Value]:
        """The kind, and where the last run of each vector begins."""
        breaks: list[list[Value]] = []
        kind = f.i64(_ONE_RUN)
        for vector in range(self.vectors):
            place, turns, second = self._look_up_vector(f, v, own, count, vector, place)
            breaks.append([second])
            kind = f.i64(f.max_size(kind, f.add_size(turns, 1)))
        scattered = f.compare("sgt", kind, f.i64(_TWO_RUNS))
        kind = f.select(scattered, f.i64(_SCATTERED), kind) if self.by_vectors else f.i64(0)
        return [kind, *self._in_turn(f, breaks)]

    def _look_up_vector(
        self, f: Function, v: SimpleNamespace, own: Value, count: Value, vector: int,
        place: list[Value],
    ) -> tuple[list[Value], Value, Value]:  # fmt: skip
        """The next position, how often the run breaks, and the lane where it last does."""
        zero = f.i64(0)
        state = [*place, zero, zero, f.i64(self.lanes), zero]
        with f.loop(0, self.lanes, 1, state) as lane:
            *place, before, breaks, second, start = lane.carried
            spot = place[1:]
            position = f.i64(f.add_size(lane.index, vector * self.lanes))
            inside = f.compare("slt", position, count)
            here = self.offset_of_place(f, v, lane.carried[:4])
            for number, (axis, p) in enumerate(zip(AXES, spot, strict=True)):
                q = self._read(f, v, axis, p)
                kept = f.select(inside, f.i64(q), f.i64(OUTSIDE))
                if self.integer != I64:
                    kept = f.convert("trunc", kept, self.integer)
                f.store(kept, f.offset(self.integer, self._coordinates(f, own, number), position))
            f.store(f.i64(here), self._offset_of(f, own, position))
            apart = f.compare("ne", f.i64(here), f.i64(f.add_size(before, self.step)))
            behind = f.compare("sgt", lane.index, zero)
            broken = f.binary("and", inside, f.binary("and", apart, behind))
            virtual = f.sub_size(here, f.mul_size(lane.index, self.step))
            first = f.compare("eq", lane.index, zero)
            f.if_else(first, lambda: self._keep(f, own, vector, here))
            lane.next = [
                *self.following(f, v, place),
                f.i64(here),
                f.add(breaks, f.convert("zext", broken, I64)),
                f.select(broken, lane.index, second),
                f.select(broken, f.i64(virtual), start),
            ]
        *place, _, breaks, second, start = lane.results
        f.store(start, self._start_of(f, own, 1, vector))
        return place, breaks, second

    def offset_of_place(self, f: Function, v: SimpleNamespace, place: Sequence[Value]) -> Size:
        """Where (image, d, h, w) reads with the first tap."""
        image, *spot = place
        here = f.mul_size(image, v.x_image)
        for axis, p in zip(AXES, spot, strict=True):
            here = f.add_size(here, f.mul_size(self._read(f, v, axis, p), getattr(v, f"x_{axis}")))
        return here

    def _read(self, f: Function, v: SimpleNamespace, axis: str, position: Size) -> Size:
        """The coordinate of the input that a position reads with the first tap."""
        apart = f.mul_size(position, getattr(v, f"stride_{axis}"))
        return f.add_size(apart, getattr(v, f"origin_{axis}"))

    def _keep(self, f: Function, own: Value, vector: int, start: Size) -> None:
        f.store(f.i64(start), self._start_of(f, own, 0, vector))

    def following(self, f: Function, v: SimpleNamespace, place: list[Value]) -> list[Value]:
        """The position after (image, d, h, w)."""
        image, *spot = place
        carry = f.i64(1)
        moved: list[Value] = []
        for axis, p in zip(reversed(AXES), reversed(spot), strict=True):
            up = f.add(p, carry)
            full = f.compare("eq", up, f.i64(getattr(v, f"out_{axis}")))
            moved.insert(0, f.select(full, f.i64(0), up))
            carry = f.convert("zext", full, I64)
        return [f.add(image, carry), *moved]

    def _store_masks(
        self, f: Function, v: SimpleNamespace, own: Value, breaks: list[list[Value]]
    ) -> None:
        number = Type(self.integer.element, self.lanes)
        runs = [self._lanes_of_runs(f, each) for each in breaks]
        masks = self.masks(f, own)

        def inside(axis: int, tap: Value) -> list[Value]:
            name = AXES[axis]
            reach = self.splat(f, f.i64(f.mul_size(tap, getattr(v, f"dilate_{name}"))))
            end = self.splat(f, f.i64(getattr(v, f"in_{name}")))
            base = self._coordinates(f, own, axis)
            found = []
            for vector in range(self.vectors):
                start = f.load(number, f.offset(self.integer, base, vector * self.lanes))
                found.append(f.compare("ult", f.add(start, reach), end))
            return found

        def both(a: list[Value], b: list[Value]) -> list[Value]:
            return [f.binary("and", x, y) for x, y in zip(a, b, strict=True)]

        with f.loop(0, v.kernel_d) as d:
            deep = inside(0, d.index)
            with f.loop(0, v.kernel_h) as h:
                row = both(deep, inside(1, h.index))
                line = f.add_size(f.mul_size(d.index, v.kernel_h), h.index)
                with f.loop(0, v.kernel_w) as w:
                    tap = f.add_size(f.mul_size(line, v.kernel_w), w.index)
                    to = f.offset(I8, masks, f.mul_size(tap, self.masks_of_tap))
                    self._store_tap(f, both(row, inside(2, w.index)), runs, to)

    def _lanes_of_runs(self, f: Function, breaks: list[Value]) -> list[Value]:
        """Which lanes of a vector each run has, by those where all but the first begin."""
        lanes = lane_numbers(f, self.lanes, self.integer)
        starts = [self.splat(f, lane) for lane in breaks]
        behind = [f.compare("sge", lanes, start) for start in starts]
        before = [f.compare("slt", lanes, start) for start in starts]
        middle = [f.binary("and", a, b) for a, b in zip(behind[:-1], before[1:], strict=True)]
        return [before[0], *middle, behind[-1]]

    def splat(self, f: Function, size: Value) -> Value:
        """A size in every lane, as coordinates have it."""
        narrow = size if self.integer == I64 else f.convert("trunc", size, self.integer)
        return f.splat(narrow, self.lanes)

    def _store_tap(
        self, f: Function, found: list[Value], runs: list[list[Value]], to: Value
    ) -> None:
        number = Type(self.integer.element, self.lanes)
        whole = [f.convert("sext", bits, number) for bits in found]
        for vector, mask in enumerate(whole):
            f.store(mask, f.offset(self.integer, to, vector * self.lanes))
        if not self.by_vectors:
            return
        for run, of_run in enumerate(zip(*runs, strict=True)):
            for vector, (mask, lanes) in enumerate(zip(whole, of_run, strict=True)):
                pieces = self._apart(f, f.select(lanes, mask, constant(number, 0)))
                for part, piece in enumerate(pieces):
                    at = self._mask_of(f, to, run, vector, part)
                    f.store(self._bits(f, piece) if self._are_bits else piece, at)

    def _apart(self, f: Function, mask: Value) -> list[Value]:
        """The masks of the loads that bring in every `step`-th element."""
        if self.step == 1:
            return [mask]
        zero, half = constant(mask.type, 0), self.lanes // 2
        return [
            f.shuffle(mask, zero, [first + i // 2 if i % 2 == 0 else self.lanes
                                   for i in range(self.lanes)])
            for first in (0, half)
        ]  # fmt: skip

    # -- loading one tap for all positions --------------------------------------------------------

    def _run(self, f: Function, pointer: Value, masks: Sequence[Value]) -> Value:
        """A vector of elements `step` apart, by one load under each of the masks."""
        type_ = Type(self.kernel.element.compute.element, self.lanes)
        loaded = [
            f.masked_load(type_, f.offset(type_, pointer, part * self.lanes), mask)
            for part, mask in enumerate(masks)
        ]
        if self.step == 1:
            return loaded[0]
        return f.shuffle(loaded[0], loaded[1], range(0, 2 * self.lanes, 2))

    @property
    def _are_bits(self) -> bool:
        return self.kernel.target.has_mask_registers

    def _bits(self, f: Function, mask: Value) -> Value:
        return f.compare("slt", mask, constant(mask.type, 0))

    def _mask_of(self, f: Function, masks: Value, run: int, vector: int, part: int) -> Value:
        """Where the mask of one load is, among those of a tap."""
        number = (run * self.vectors + vector) * self.step + part
        behind = self.columns * self.kernel.element.size
        return f.offset(I8, masks, behind + number * self._mask_bytes)

    def _stored(self, f: Function, masks: Value, run: int, vector: int) -> list[Value]:
        """The masks of one run's loads, from those that were stored for a tap."""
        places = [self._mask_of(f, masks, run, vector, part) for part in range(self.step)]
        if self._are_bits:
            return [f.load(Type("i1", self.lanes), place) for place in places]
        number = Type(self.integer.element, self.lanes)
        return [self._bits(f, f.load(number, place)) for place in places]

    def _load_runs(self, runs: int) -> _Load:
        def load(f: Function, starts: list[list[Value]], masks: Value, vector: int) -> Value:
            stored = [self._stored(f, masks, run, vector) for run in range(runs)]
            return self._joined(f, starts, stored, vector)

        return load

    def _joined(
        self, f: Function, starts: list[list[Value]], masks: list[list[Value]], vector: int
    ) -> Value:
        """Each lane is zero in all runs but one: their bits join."""
        if len(masks) == 1:
            return self._run(f, starts[0][vector], masks[0])
        runs = [f.bits(self._run(f, starts[i][vector], mask)) for i, mask in enumerate(masks)]
        joined = functools.reduce(functools.partial(f.binary, "or"), runs)
        return f.convert("bitcast", joined, joined.type.of(self.kernel.element.compute.element))

    def _inside(self, f: Function, own: Value, runs: int) -> _Load:
        """Loads of positions whose masks are the same for all taps."""
        number = Type(self.integer.element, self.lanes)
        zero, full = constant(number, 0), constant(number, -1)

        def masks(vector: int) -> list[list[Value]]:
            breaks = [f.load(I64, self._break_of(f, own, run, vector)) for run in range(runs - 1)]
            found = self._lanes_of_runs(f, breaks or [f.i64(self.lanes)])[:runs]
            pieces = [self._apart(f, f.select(lanes, full, zero)) for lanes in found]
            return [[self._bits(f, piece) for piece in run] for run in pieces]

        own_masks = [masks(vector) for vector in range(self.vectors)]

        def load(f: Function, starts: list[list[Value]], of_tap: Value, vector: int) -> Value:
            del of_tap
            return self._joined(f, starts, own_masks[vector], vector)

        return load

    def _starts(self, f: Function, x: Value, own: Value) -> list[list[Value]]:
        element = self.kernel.element.compute
        return [
            [
                f.offset(element, x, f.load(I64, self._start_of(f, own, run, vector)))
                for vector in range(self.vectors)
            ]
            for run in range(self.runs)
        ]

    def _entry(self, f: Function, table: Value, own: Value, step: Size) -> tuple[Value, Value]:
        """The offset of a step's tap, and its masks."""
        entry = f.offset(I64, table, f.mul_size(step, 2))
        masks = f.offset(I8, self.masks(f, own), f.load(I64, f.offset(I64, entry, 1)))
        return f.load(I64, entry), masks

    def _moved(self, f: Function, starts: list[list[Value]], offset: Value) -> list[list[Value]]:
        element = self.kernel.element.compute
        return [[f.offset(element, start, offset) for start in run] for run in starts]

    def _element(
        self, f: Function, x: Value, own: Value, offset: Value, masks: Value, at: Value
    ) -> Value:
        """One element, zero in the padding; a masked one is read from where there is memory."""
        element = self.kernel.element
        mask = f.load(self.integer, f.offset(self.integer, masks, at))
        there = f.compare("ne", mask, constant(self.integer, 0))
        place = f.add(f.load(I64, self._offset_of(f, own, at)), offset)
        safe = f.select(there, place, f.i64(0))
        value = element.load(f, f.offset(element.storage, x, safe))
        return f.select(there, value, constant(value.type, 0))

    def _by_kind(
        self, f: Function, own: Value, vectors: Callable[[_Load], None],
        scattered: Callable[[], None],
    ) -> None:  # fmt: skip
        """What the positions call for: `vectors` with what loads one, or `scattered`."""
        if not self.by_vectors:
            scattered()
            return
        kind = f.load(I64, own)
        ways: dict[int, Branch] = {
            _ONE_RUN: lambda: vectors(self._load_runs(1)),
            _TWO_RUNS: lambda: vectors(self._load_runs(2)),
            _ONE_INSIDE: lambda: vectors(self._inside(f, own, 1)),
            _TWO_INSIDE: lambda: vectors(self._inside(f, own, 2)),
        }
        if self.runs == 4:
            ways[_FOUR_RUNS] = lambda: vectors(self._load_runs(4))
            ways[_FOUR_INSIDE] = lambda: vectors(self._inside(f, own, 4))
        f.first_of(
            [(f.compare("eq", kind, f.i64(here)), way) for here, way in ways.items()], scattered
        )

    # -- panels whose columns are positions -------------------------------------------------------

    def emit_pack(self) -> None:
        """`window(x, table, own, depth, into)`: `depth` taps of the positions looked up."""
        labels = [("x", PTR), ("table", PTR), ("own", PTR), ("depth", I64), ("into", PTR)]
        f = self._function("window", labels)
        if f is None:
            return
        x, table, own, depth, into = f.parameters
        element = self.kernel.element

        def vectors(load: _Load) -> None:
            starts = self._starts(f, x, own)
            with f.loop(0, depth) as step:
                offset, masks = self._entry(f, table, own, step.index)
                moved = self._moved(f, starts, offset)
                to = f.offset(element.compute, into, f.mul_size(step.index, self.columns))
                for vector in range(self.vectors):
                    value = load(f, moved, masks, vector)
                    f.store(value, f.offset(element.compute, to, vector * self.lanes))

        def scattered() -> None:
            with f.loop(0, depth) as step:
                offset, masks = self._entry(f, table, own, step.index)
                to = f.offset(element.compute, into, f.mul_size(step.index, self.columns))
                with f.loop(0, self.columns) as at:
                    value = self._element(f, x, own, offset, masks, at.index)
                    f.store(value, f.offset(element.compute, to, at.index))

        self._by_kind(f, own, vectors, scattered)
        f.ret()

    # -- panels whose columns are taps ------------------------------------------------------------

    def emit_pack_turned(self) -> None:
        """`turned(x, table, own, count, into)`: up to `columns` taps, one row for each position
        looked up."""
        labels = [("x", PTR), ("table", PTR), ("own", PTR), ("count", I64), ("into", PTR)]
        f = self._function("turned", labels)
        if f is None:
            return
        x, table, own, count, into = f.parameters
        last = f.sub_size(count, 1)

        def vectors(load: _Load) -> None:
            starts = self._starts(f, x, own)
            for group in range(self.vectors):
                taps = range(group * self.lanes, (group + 1) * self.lanes)
                entries = [self._entry(f, table, own, f.min_size(last, t)) for t in taps]
                for vector in range(self.vectors):
                    rows = [
                        load(f, self._moved(f, starts, offset), masks, vector)
                        for offset, masks in entries
                    ]
                    self._store_turned(f, rows, into, group, vector)

        def scattered() -> None:
            element = self.kernel.element.compute
            with f.loop(0, count) as tap:
                offset, masks = self._entry(f, table, own, tap.index)
                with f.loop(0, self.columns) as at:
                    value = self._element(f, x, own, offset, masks, at.index)
                    to = f.add_size(f.mul_size(at.index, self.columns), tap.index)
                    f.store(value, f.offset(element, into, to))
            # Taps that are missing are multiplied, too: not by what happened to lie there.
            with f.loop(0, self.columns) as at, f.loop(count, self.columns) as tap:
                to = f.add_size(f.mul_size(at.index, self.columns), tap.index)
                f.store(constant(element, 0), f.offset(element, into, to))

        self._by_kind(f, own, vectors, scattered)
        f.ret()

    def _store_turned(
        self, f: Function, rows: list[Value], into: Value, group: int, vector: int
    ) -> None:
        element = self.kernel.element
        for i, row in enumerate(transpose(f, rows, 16 // element.size)):
            at = (vector * self.lanes + i) * self.columns + group * self.lanes
            f.store(row, f.offset(element.compute, into, at))
