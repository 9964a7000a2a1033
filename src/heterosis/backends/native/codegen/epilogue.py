"""Elementwise work on the results of a kernel, done before they are stored.

A kernel that takes an epilogue sees its result as (batch, rows, columns). Further operands are
read at the same place; where they stand travels behind the fields of the `hx_call`, so that the
innermost functions find it through the one pointer that they are given anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from heterosis.backends.native.codegen import tables
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit import access as memory
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    SECOND_LEVEL,
    Function,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.nest import Apply, Argument, Extent, Literal, Slot
from heterosis.ir.types import UNSIGNED

# What each further operand is told: its address, and three strides.
_STRIDES = ("batch", "row", "column")
_WORDS = 1 + len(_STRIDES)
# Work that is worth writing out for every vector of a tile; dearer work runs in a loop.
_CHEAP = 12.0


@dataclass(frozen=True, slots=True)
class Finished:
    """The kernel's own result."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Beside:
    """The element of further operand `number` at the same place. `along` is its step from column
    to column where that is 0 or 1, and otherwise None; `of_columns` tells that all rows read the
    same."""

    number: int
    dtype: str
    along: int | None
    of_columns: bool = False


Step: TypeAlias = "Finished | Beside | Argument | Literal | Extent | Apply"


@dataclass(frozen=True)
class Position:
    """Where in the result a vector lies, and the call that knows the further operands. Lanes
    outside `mask` do not exist."""

    call: Value
    batch: Size
    row: Size
    column: Size
    mask: Value | None = None


@dataclass(frozen=True)
class Epilogue:
    """Steps as in a loop nest, the last of them stored; without any, the result is. Of an `Extent`
    or an `Argument`, a further number says what it is."""

    steps: tuple[Step, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.steps

    @property
    def key(self) -> str:
        """What it adds to the key of a kernel."""
        return f" {self.steps}" if self.steps else ""

    @cached_property
    def operands(self) -> int:
        """How many further operands there are."""
        return sum(isinstance(step, Beside) for step in self.steps)

    @cached_property
    def further(self) -> int:
        """How many further numbers there are: extents, and which arguments it takes."""
        return sum(isinstance(step, Extent | Argument) for step in self.steps)

    @cached_property
    def digest(self) -> str:
        """A name for code that depends on the steps."""
        return hashlib.sha256(repr(self.steps).encode()).hexdigest()[:16]

    @cached_property
    def is_cheap(self) -> bool:
        return tables.cost(s.primitive for s in self.steps if isinstance(s, Apply)) <= _CHEAP

    # -- what the kernel's function takes, and how it is handed on ------------------------------

    def parameters(
        self, inputs: Sequence[str], outputs: Sequence[str], numbers: list[tuple[str, Type]]
    ) -> list[tuple[str, Type]]:
        """A kernel's parameters, with those of the epilogue: operands behind the `inputs`,
        numbers at the end."""
        further = [f"beside{i}" for i in range(self.operands)]
        pointers = [(label, PTR) for label in (*inputs, *further, *outputs)]
        return pointers + numbers + [(f"epilogue{i}", I64) for i in range(self.numbers)]

    def split(
        self, parameters: Sequence[Value], inputs: int, outputs: int
    ) -> tuple[list[Value], list[Value]]:
        """The kernel's own of these parameters, and what goes behind the fields of the call."""
        behind, end = inputs + self.operands, len(parameters) - self.numbers
        numbers = list(parameters[end:])
        words: list[Value] = []
        for i, pointer in enumerate(parameters[inputs:behind]):
            words += [pointer, *self.strides(numbers, i)]
        words += numbers[self.operands * len(_STRIDES) :]
        return [*parameters[:inputs], *parameters[behind:end]], words

    @property
    def numbers(self) -> int:
        """How many numbers its operands and it are described by."""
        return self.operands * len(_STRIDES) + self.further

    def strides(self, numbers: Sequence[Value], operand: int) -> Sequence[Value]:
        """An operand's steps from batch to batch, row to row and column to column."""
        return numbers[operand * len(_STRIDES) : (operand + 1) * len(_STRIDES)]

    # -- emission -------------------------------------------------------------------------------

    def read_words(self, f: Function, call: Value) -> None:
        """Read where further operands stand before a loop begins: its stores would hide from LLVM
        that the words never change."""
        ends = self.operands * _WORDS
        for i in range(ends + self.further):
            abi.further(f, call, i, PTR if i < ends and i % _WORDS == 0 else I64)

    def fetch(self, f: Function, at: Position, columns: int) -> None:
        """Fetch what so many columns of a row will read of further operands: a tile reads a piece
        of each of its rows, and the processor does not guess the next pieces."""
        for step in self.steps:
            if isinstance(step, Beside) and step.along is not None and not step.of_columns:
                here = self._place(f, step, at)
                stored = memory.STORED[step.dtype]
                nbytes = (columns * step.along or 1) * stored.bits // 8
                f.prefetch(here, nbytes, locality=SECOND_LEVEL)

    def __call__(self, f: Function, total: Value, at: Position) -> Value:
        """What is stored where the kernel computed `total`: a vector, or one number."""
        values: list[Value] = []
        for step in self.steps:
            values.append(self._value(f, step, values, total, at))
        return _as_summed(f, self._dtype, values[-1], total.type)

    @property
    def _dtype(self) -> str:
        """The element type of the result, with and without the epilogue."""
        return next(step.dtype for step in self.steps if isinstance(step, Finished))

    def _value(
        self, f: Function, step: Step, values: list[Value], total: Value, at: Position
    ) -> Value:
        lanes = total.type.lanes
        match step:
            case Finished(dtype):
                return _as_computed(f, dtype, total)
            case Beside():
                return self._beside(f, step, lanes, at)
            case Literal(number, dtype):
                return constant(Type(memory.COMPUTED[dtype].element, lanes), number)
            case Argument(Slot(index), dtype):
                stored = abi.scalar(f, at.call, self._further(f, index, at), memory.STORED[dtype])
                return f.splat(memory.computed(f, dtype, stored), lanes)
            case Extent(Slot(index)):
                return f.splat(self._further(f, index, at), lanes)
            case Apply(primitive, arguments, dtype):
                operands = (values[a] for a in arguments)
                made: Value = tables.element(primitive).emit(f, dtype, *operands)
                return made
        raise AssertionError(f"no epilogue has the step {step}")

    def _further(self, f: Function, index: int, at: Position) -> Value:
        return abi.further(f, at.call, self.operands * _WORDS + index, I64)

    def _beside(self, f: Function, step: Beside, lanes: int, at: Position) -> Value:
        here = self._place(f, step, at)
        if not lanes or step.along == 0:
            one = memory.computed(f, step.dtype, f.load(memory.STORED[step.dtype], here))
            return f.splat(one, lanes)
        return memory.load_vector(f, step.dtype, here, self._along(f, step, at), lanes, at.mask)

    def _along(self, f: Function, step: Beside, at: Position) -> Size:
        column = abi.further(f, at.call, step.number * _WORDS + 3, I64)
        return column if step.along is None else step.along

    def _place(self, f: Function, step: Beside, at: Position) -> Value:
        """Where an operand has the element that belongs there."""
        first = step.number * _WORDS
        base = abi.further(f, at.call, first, PTR)
        place = f.mul_size(at.column, self._along(f, step, at))
        if not step.of_columns:
            batch, row = (abi.further(f, at.call, first + 1 + i, I64) for i in range(2))
            line = f.add_size(f.mul_size(at.batch, batch), f.mul_size(at.row, row))
            place = f.add_size(line, place)
        return f.offset(memory.STORED[step.dtype], base, place)


def _as_computed(f: Function, dtype: str, total: Value) -> Value:
    """A kernel's result as others compute with it: kernels add up elements of few bits in 32."""
    if total.type.is_float:
        return memory.nearest(f, dtype, total)
    if dtype == "bool":
        return f.compare("ne", total, constant(total.type, 0))
    return f.convert("trunc", total, total.type.of(memory.COMPUTED[dtype].element))


def _as_summed(f: Function, dtype: str, value: Value, to: Type) -> Value:
    """The counterpart, for a kernel that narrows what it stores."""
    return f.convert("zext" if dtype in ("bool", *UNSIGNED) else "sext", value, to)
