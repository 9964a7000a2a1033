"""Products whose results go through a nest into further products run band by band: attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from heterosis.backends.native.codegen.emit.function import (
    OwnNumbers,
    grain_of_turns,
    nest_nanoseconds,
    open_nest,
)
from heterosis.backends.native.codegen.kernel import (
    Kernel,
    KernelCode,
    Machine,
    OpaqueCall,
    Place,
    Schedule,
)
from heterosis.backends.native.codegen.nest import (
    Buffer,
    Load,
    Nest,
    Operand,
    Step,
    Store,
    known,
    reads_late,
)
from heterosis.backends.native.codegen.nest import Counter as Counting
from heterosis.backends.native.schedule.arena import rounded, uses, written_by
from heterosis.ir.strided import Strided
from heterosis.ir.table_sizes import divided, largest, smallest
from heterosis.ir.types import ITEMSIZE

if TYPE_CHECKING:  # the functions below import these when there is something to join
    from heterosis.backends.native.codegen.kernels import bands as code
    from heterosis.backends.native.codegen.kernels.matmul import Problem

# What a band may take: of smaller ones, the packed operands pass by too often.
_BAND_BYTES = 1 << 19
_FEWEST_ROWS = 16
# Of up to so many rows or columns, operands are read as they lie.
_FEW_ROWS = 4

Axes = tuple[tuple[int, int], ...]  # (count, stride in bytes), outermost first


class Trio(NamedTuple):
    """Products, the nest that alone reads them, and the products that alone read the nest's
    result."""

    first: OpaqueCall
    nest: Nest
    second: OpaqueCall


def join_bands(schedule: Schedule, machine: Machine) -> None:
    """Make one kernel of each such trio."""
    if len(schedule.kernels) < len(Trio._fields):  # the usual eager operation
        return
    gone: set[int] = set()
    for trio in list(_trios(schedule.kernels)):
        joined = _Joining(*trio, machine).joined() if gone.isdisjoint(map(id, trio)) else None
        if joined:
            _replace(schedule, trio, joined)
            gone.update(map(id, trio))


# -- which kernels --------------------------------------------------------------------------------


def _trios(kernels: list[Kernel]) -> Iterator[Trio]:
    users = uses(kernels)
    writers = {buffer: kernel for kernel in kernels for buffer in written_by(kernel)}

    def writer(buffer: Buffer) -> Kernel | None:
        """What wrote the buffer, if one other kernel reads it, and nothing else."""
        alone = buffer.kind == "temporary" and users[known(buffer.index)] == 2
        return writers.get(buffer) if alone else None

    for second in filter(_multiplies, kernels):
        nest = writer(second.inputs[0].buffer)
        if not isinstance(nest, Nest):
            continue
        for first in map(writer, {load.operand.buffer: None for load in _loads(nest)}):
            if _multiplies(first) and _may_wait(kernels, first, second):
                yield Trio(first, nest, second)


def _multiplies(kernel: Kernel | None) -> TypeGuard[OpaqueCall]:
    return isinstance(kernel, OpaqueCall) and kernel.code.product is not None


def _loads(nest: Nest) -> list[Load]:
    return [step for step in nest.steps if isinstance(step, Load)]


def _touches(nest: Nest) -> list[Load | Store]:
    """All that the nest reads and writes."""
    return [*_loads(nest), *nest.stores]


def _may_wait(kernels: list[Kernel], first: Kernel, second: Kernel) -> bool:
    """Whether `first` may run when `second` does. Temporaries are written once; a result may stand
    where an input does."""
    places = [i for i, kernel in enumerate(kernels) if kernel is first or kernel is second]
    between = kernels[places[0] : places[1]]
    return all(b.kind == "temporary" for kernel in between for b in written_by(kernel))


def _replace(schedule: Schedule, trio: Trio, joined: OpaqueCall) -> None:
    """The trio by one kernel, without what was between and the memory that each had for itself."""
    first, _, second = trio
    gone = [first.outputs[0].buffer, second.inputs[0].buffer, first.scratch, second.scratch]
    for buffer in gone:
        if buffer is not None:
            schedule.temporaries[known(buffer.index)] = 0
    schedule.temporaries.append(joined.code.scratch_bytes)
    scratch = Buffer("temporary", len(schedule.temporaries) - 1)
    found = replace(joined, scratch=scratch)
    kernels = (found if kernel is second else kernel for kernel in schedule.kernels)
    schedule.kernels[:] = [k for k in kernels if k is not first and k is not trio.nest]


# -- as one kernel --------------------------------------------------------------------------------


class _Joining:
    """One kernel from three, in the making."""

    def __init__(self, first: OpaqueCall, nest: Nest, second: OpaqueCall, machine: Machine):
        self.first, self.nest, self.second, self.machine = first, nest, second, machine
        before, behind = first.code.product, second.code.product
        assert before and behind
        self.before, self.behind = before, behind
        self.matrices, self.rows, self.width, _ = before.shape
        self.size = ITEMSIZE[before.problem.dtype]
        self.between = first.outputs[0].buffer, second.inputs[0].buffer

    def joined(self) -> OpaqueCall | None:
        if not (self._products_fit() and self._nest_fits()):
            return None
        inner = _of_one_matrix(self.nest, self.rows)
        axes = _axes_of_places(self.nest, self.rows)
        if inner is None or axes is None:
            return None
        return self._call(inner, axes)

    def _products_fit(self) -> bool:
        one, two = self.before.problem, self.behind.problem
        matrices, rows, _, depth = self.behind.shape
        alike = (matrices, rows, depth) == (self.matrices, self.rows, self.width)
        packed = one.b_packed or two.b_packed
        sized = self.matrices > 1 and self.rows * self.width > 0
        return sized and alike and not packed and one.dtype == two.dtype

    def _nest_fits(self) -> bool:
        """Whether the nest goes from row to row, and may write each where it reads it."""
        source, result = self.first.outputs[0], self.second.inputs[0]
        nest, ours = self.nest, self.between
        further = any(place.buffer == result.buffer for place in self.second.inputs[1:])
        if further or not _is_plain(source) or not _is_plain(result):
            return False
        touching = [x for x in _touches(nest) if x.operand.buffer in ours]
        found = {(o.dtype, o.offset, o.strides) for o in (x.operand for x in touching)}
        alone = all(s.operand.buffer == result.buffer and not s.running for s in nest.stores)
        simple = alone and len(found) == 1 and not any(x.indices for x in touching)
        return (
            simple
            and found.pop()[:2] == (self.before.problem.dtype, 0)
            and _steps_in_order(nest, nest.stores[0].operand, self.rows, self.width)
            and not reads_late(nest, *ours)
        )

    def _call(self, inner: Nest, axes: dict[tuple[Buffer, str, int], Axes]) -> OpaqueCall:
        from heterosis.backends.native.codegen.kernels import bands as code

        bands = _bands(self.rows, self.width * self.size, self.matrices, self.machine.workers)
        band = -divided(-self.rows, bands)
        begin = rounded(band * self.width * self.size)
        first, of_first, end, room = self._products(self.first, "ab", band, begin)
        second, of_second, work_at, more = self._products(self.second, "bc", band, end)
        between, of_nest, places = self._between(inner, axes)
        both = code.Bands(first, between, second)
        own = work_at + rounded(max(room, more))
        nanoseconds = self.first.code.nanoseconds + self.second.code.nanoseconds
        nanoseconds += nest_nanoseconds(self.nest)
        count = self.matrices * bands
        sharing = (count, grain_of_turns(count, nanoseconds), own)
        cutting = (bands, self.rows, band, self.width, work_at)
        made = KernelCode(
            key=f"{both}",
            emit=lambda module, target, name: code.emit_bands(module, target, name, both),
            numbers=(*sharing, *cutting, *of_first, *of_nest, *of_second),
            scratch_bytes=own * self.machine.workers,
            nanoseconds=nanoseconds,
        )
        inputs = (*self.first.inputs, *places, *self.second.inputs[1:])
        made_of = self.first, self.nest, self.second
        return OpaqueCall(made, inputs, self.second.outputs, made_of=made_of)

    def _products(
        self, call: OpaqueCall, operands: str, band: int, begin: int
    ) -> tuple[code.Products, list[int], int, int]:
        """The products of one band and their numbers. Their packed operand stands from `begin` on:
        where it ends, and the bytes that they need besides."""
        from heterosis.backends.native.codegen.kernels import bands as code
        from heterosis.backends.native.codegen.kernels import matmul

        whole, target = call.code.product, self.machine.target
        assert whole is not None
        packed = min(band, whole.shape[2]) > _FEW_ROWS
        one = replace(whole.problem, m=band, batch=(), b_packed=packed)
        one = matmul.choose(one, target, 1, epilogue=not whole.epilogue.is_empty)
        one = replace(one, over_batches=True)
        axes = [_axes_of(whole.problem, operand, self.size) for operand in operands]
        made = code.Products(one.generic(), whole.epilogue, (len(axes[0]), len(axes[1])))
        size = matmul.packed_b_layout(one, target).size if one.b_packed else 0
        ending = call.code.numbers[len(whole.labels) :]
        numbers = [*made.problem.arguments(one), *[begin] * one.b_packed, *ending, *_flat(axes)]
        needed = matmul.workspace_bytes(one, target, 1)
        return made, numbers, begin + rounded(size), needed

    def _between(
        self, inner: Nest, axes: dict[tuple[Buffer, str, int], Axes]
    ) -> tuple[code.Between, list[int], list[Place]]:
        """The nest, its numbers, and what it reads beside the band."""
        from heterosis.backends.native.codegen.kernels import bands as code

        own = OwnNumbers()
        opened = open_nest(inner, own)
        moving = [place for place in own.places if place[0] not in self.between]
        many = tuple(len(axes[p]) if p in moving else None for p in own.places)
        numbers = [*_flat([axes[place] for place in moving]), *own.passed]
        places = [Place(b, dtype, Strided((), (), offset)) for b, dtype, offset in moving]
        return code.Between(opened, len(own.passed), many), numbers, places


def _is_plain(place: Place) -> bool:
    return place.strided.is_contiguous and place.strided.offset == 0


def _bands(rows: int, row_bytes: int, matrices: int, workers: int) -> int:
    """Into how many bands a matrix is cut: few enough that copying operands for each is little."""
    most = largest(1, rows // _FEWEST_ROWS)
    cached = -(-rows * row_bytes // _BAND_BYTES)
    shared = -divided(-2 * workers, matrices) if workers > 1 else 1
    return smallest(most, largest(cached, shared))


def _flat(axes: list[Axes]) -> list[int]:
    return [number for own in axes for pair in own for number in pair]


def _axes_of(problem: Problem, operand: str, size: int) -> Axes:
    pairs = ((axis.count, getattr(axis, operand)) for axis in problem.batch)
    return tuple((count or 0, stride * size) for count, stride in pairs)


# -- a nest over the rows of all matrices, cut up -------------------------------------------------


def _of_one_matrix(nest: Nest, rows: int) -> Nest | None:
    """The nest over the rows of one matrix, if it goes through the matrices in its outer loops and
    does not count them: what it counts of rows begins anew in each, as it does where it runs."""
    last = len(nest.kept) - 1
    among_matrices = last if known(nest.kept[last]) == rows else last + 1
    if any(isinstance(s, Counting) and any(s.strides[:among_matrices]) for s in nest.steps):
        return None

    def inner(operand: Operand) -> Operand:
        return replace(operand, strides=operand.strides[last:])

    def step(own: Step) -> Step:
        match own:
            case Load():
                return replace(own, operand=inner(own.operand))
            case Counting():
                assert not any(own.strides[:last]), "a count of the matrices would be lost"
                return replace(own, strides=own.strides[last:])
        return own

    return replace(
        nest,
        kept=(rows,),
        steps=tuple(map(step, nest.steps)),
        stores=tuple(replace(store, operand=inner(store.operand)) for store in nest.stores),
    )


def _steps_in_order(nest: Nest, operand: Operand, rows: int, width: int) -> bool:
    """Whether the nest's outer loops go through `operand` row by row, matrix by matrix."""
    expected = width
    for extent, stride in reversed(list(zip(nest.kept, operand.strides, strict=False))):
        if extent != 1 and stride != expected:
            return False
        expected *= known(extent)
    return known(nest.kept[-1]) % rows == 0 and expected == prod(map(known, nest.kept)) * width


def _axes_of_places(nest: Nest, rows: int) -> dict[tuple[Buffer, str, int], Axes] | None:
    """How what the nest touches moves from matrix to matrix, unless something moves in two ways."""
    found: dict[tuple[Buffer, str, int], Axes] = {}
    last = len(nest.kept) - 1
    counts = [*map(known, nest.kept[:last]), known(nest.kept[last]) // rows]
    for operand in [x.operand for x in _touches(nest)]:
        strides = [*map(known, operand.strides[:last]), known(operand.strides[last]) * rows]
        size = ITEMSIZE[operand.dtype]
        axes = tuple((n, s * size) for n, s in zip(counts, strides, strict=True) if n > 1)
        place = (operand.buffer, operand.dtype, known(operand.offset))
        if found.setdefault(place, axes) != axes:
            return None
    return found
