"""The description of one loop nest: what is read, computed, reduced and written, over which loops.

A nest runs over `kept` dimensions; within each of their points, passes run over the `reduced`
dimensions (none for a plain elementwise kernel). A step that depends on a reduction's result
belongs to a later pass over the same points, so softmax and layer normalisation are one nest.

Descriptions are plain frozen data: equal descriptions share machine code, and their text is the
key of the compile cache. Numbers are `int` in specialised code and `Slot` in code for any size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from heterosis.backends.native.codegen.emit.reducers import Reducer
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.types import ITEMSIZE


@dataclass(frozen=True, slots=True)
class Slot:
    """A number that the caller passes: the position in `hx_call.integers`."""

    index: int


Number = int | Slot


def known(number: Number) -> int:
    """A number of a description in which all are known."""
    assert isinstance(number, int), f"{number} is passed"
    return number


@dataclass(frozen=True, slots=True)
class Buffer:
    """`call` number `index` of `hx_call.buffers`, or `temporary`: in the workspace. There, `index`
    is the temporary's number in a schedule, and in code the bytes before it."""

    kind: str
    index: Number


@dataclass(frozen=True, slots=True)
class Operand:
    """Elements of a buffer, one stride a loop dimension: kept first, then reduced."""

    buffer: Buffer
    dtype: str
    offset: Number
    strides: tuple[Number, ...]


# Steps whose values are added to a place, each with the stride that it is multiplied by.
Indices: TypeAlias = tuple[tuple[int, Number], ...]


@dataclass(frozen=True, slots=True)
class Load:
    """Read an element. `indices` are further steps whose values, times a stride, are added; there
    are so many `rows` for each, which is for checks alone."""

    operand: Operand
    indices: Indices = ()
    rows: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @property
    def dtype(self) -> str:
        return self.operand.dtype


@dataclass(frozen=True, slots=True)
class Argument:
    """A number argument: `index` in `hx_call.scalars`."""

    index: Number
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number in the code. Compared by its text: 0.0 is not -0.0, and a NaN is another NaN."""

    value: float | int | bool
    dtype: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, slots=True)
class Extent:
    """An integer that follows from a shape."""

    value: Number
    dtype: str = "int64"


@dataclass(frozen=True, slots=True)
class Counter:
    """An integer that grows along the loops: `offset` plus each index times its stride."""

    offset: Number
    strides: tuple[Number, ...]
    dtype: str = "int64"


@dataclass(frozen=True, slots=True)
class Apply:
    """An elementwise primitive on earlier steps, given by their positions."""

    primitive: Elementwise
    arguments: tuple[int, ...]
    operand_dtype: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Reduce:
    """The reduction of earlier steps over all reduced dimensions; `part` picks from its state."""

    reducer: Reducer
    arguments: tuple[int, ...]
    part: int
    dtype: str


Step = Load | Argument | Literal | Extent | Counter | Apply | Reduce


@dataclass(frozen=True, slots=True)
class Store:
    """Write step `value`. `indices` and `rows` as in `Load`; a scattering nest runs in order, on
    one thread. So many stores of the nest, from this one on, are `together`: along the vectors,
    each takes the elements behind those of the one before, and they leave no gaps."""

    operand: Operand
    value: int
    indices: Indices = ()
    running: Any = None  # a Reducer: store the running value at every point instead
    rows: tuple[int, ...] = field(default=(), compare=False, repr=False)
    together: int = 1


@dataclass(frozen=True, slots=True)
class Nest:
    """Extents, steps in an order where operands come first, and what is stored."""

    kept: tuple[Number, ...]
    reduced: tuple[Number, ...]
    steps: tuple[Step, ...]
    stores: tuple[Store, ...]
    # The dimension that vectors run along: the last "kept", or "rows" if what lies along the last
    # reduced one is turned for that; the last "reduced"; or "none".
    vector: str

    @property
    def vector_level(self) -> int:
        """Which dimension vectors run along; -1 for none."""
        kept, every = len(self.kept), len(self.kept) + len(self.reduced)
        return {"kept": kept, "rows": kept, "reduced": every, "none": 0}[self.vector] - 1

    @property
    def scatters(self) -> bool:
        return any(store.indices for store in self.stores)


def operands_of(step: Step) -> tuple[int, ...]:
    """The earlier steps that a step uses."""
    match step:
        case Load(_, indices):
            return tuple(i for i, _ in indices)
        case Apply(_, arguments) | Reduce(_, arguments):
            return arguments
    return ()


def passes_before(steps: tuple[Step, ...]) -> list[int]:
    """For every step, how many passes over the reduced dimensions its value waits for."""
    waits: list[int] = []
    for step in steps:
        before = [waits[a] for a in operands_of(step)]
        waits.append(max(before, default=0) + isinstance(step, Reduce))
    return waits


def needed(steps: tuple[Step, ...], roots: Iterable[int], *, in_one_pass: bool = True) -> set[int]:
    """The steps that computing `roots` takes. In one pass, reductions are known before it."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        step = stack.pop()
        if step not in seen:
            seen.add(step)
            if not (in_one_pass and isinstance(steps[step], Reduce)):
                stack.extend(operands_of(steps[step]))
    return seen


def reads_late(nest: Nest, old: Buffer, new: Buffer) -> bool:
    """Whether a pass behind the first that writes `new` reads `old`."""
    waits = passes_before(nest.steps)
    first = min(waits[store.value] for store in nest.stores if store.operand.buffer == new)
    late = [store.value for store in nest.stores if waits[store.value] > first]
    for step, wait in zip(nest.steps, waits, strict=True):
        if isinstance(step, Reduce) and wait - 1 > first:
            late += step.arguments
    found = (nest.steps[i] for i in needed(nest.steps, late))
    return any(isinstance(step, Load) and step.operand.buffer == old for step in found)


def fits_over(nest: Nest, old: Buffer, new: Buffer) -> bool:
    """Whether `new` may stand where `old` does: each point reads there what it writes, and reads it
    before."""
    loads = [s for s in nest.steps if isinstance(s, Load) and s.operand.buffer == old]
    stores = [store for store in nest.stores if store.operand.buffer == new]
    if any(load.indices for load in loads) or any(s.indices or s.running for s in stores):
        return False
    where = {_position(load.operand) for load in loads}
    where |= {_position(store.operand) for store in stores}
    return len(where) == 1 and not (nest.reduced and reads_late(nest, old, new))


def _position(operand: Operand) -> tuple[object, ...]:
    """Equal where each turn of the loops touches the same bytes."""
    return ITEMSIZE[operand.dtype], operand.offset, operand.strides
