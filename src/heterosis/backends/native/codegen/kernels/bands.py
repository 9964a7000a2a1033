"""Matrix products, a loop nest on the rows of their results, and products of what comes of it with
other matrices, in one pass: attention.

A band is a few rows of one of the matrices. It is multiplied, goes through the nest and is
multiplied again while it is in the cache, and nothing else of what lies between is ever in memory.
Right operands are packed once for all bands of a matrix that a thread computes one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import STORED
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    Function,
    Module,
    Size,
    Value,
)
from heterosis.backends.native.codegen.emit.nest import emit_nest
from heterosis.backends.native.codegen.epilogue import Beside, Epilogue
from heterosis.backends.native.codegen.kernels import matmul
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.nest import Nest
from heterosis.backends.native.codegen.target import Target

# The numbers that come first: how many bands there are, how many are worth a thread, and the bytes
# of a thread's memory; then the bands of a matrix, its rows, the rows of a band, the elements of a
# row, and where behind the band the products' own memory begins.
SHARING = ("count", "grain", "own")
CUTTING = ("bands", "rows", "band", "width", "work_at")


Sizes = dict[str, Size]


@dataclass(frozen=True)
class Products:
    """The products of one band with what ends them, and along how many axes the two operands that
    stand in memory move from matrix to matrix. A packed right operand is packed here."""

    problem: matmul.Problem
    epilogue: Epilogue
    axes: tuple[int, int]

    @property
    def labels(self) -> list[str]:
        return [label for label, _ in self.problem.parameters()]

    @property
    def numbers(self) -> int:
        own = len(self.labels) + self.problem.b_packed
        return own + self.epilogue.numbers + 2 * sum(self.axes)


@dataclass(frozen=True)
class Between:
    """The nest over the rows of one matrix: how many numbers it has, and along how many axes each
    of its buffers moves; None for the band, which does not."""

    nest: Nest
    integers: int
    axes: tuple[int | None, ...]

    @property
    def moving(self) -> list[int]:
        return [axes for axes in self.axes if axes is not None]

    @property
    def numbers(self) -> int:
        return self.integers + 2 * sum(self.moving)


@dataclass(frozen=True)
class Bands:
    """The code for any size.

    Pointers come in this order: the operands of the first products and those of their epilogue, the
    nest's buffers, the right operand of the second products, those of their epilogue, the result.
    Numbers: `SHARING`, `CUTTING`, then part by part. A product has its own, where its packed
    operand stands behind the band, those of its epilogue, and a count and a stride in bytes for
    every axis of its operands; the nest has these before its own.
    """

    first: Products
    between: Between
    second: Products

    @property
    def pointers(self) -> int:
        besides = self.first.epilogue.operands + self.second.epilogue.operands
        return len(self.first.axes) + len(self.between.moving) + len(self.second.axes) + besides

    @property
    def numbers(self) -> int:
        parts = (self.first, self.between, self.second)
        return len(SHARING) + len(CUTTING) + sum(part.numbers for part in parts)


def emit_bands(module: Module, target: Target, name: str, code: Bands) -> None:
    """Define `@name(call, pointers..., scratch, numbers...)`."""
    for part, products in (("first", code.first), ("second", code.second)):
        ended = None if products.epilogue.is_empty else products.epilogue
        matmul.emit_matmul(module, target, f"{name}.{part}", products.problem, ended)
    emit_nest(module, target, f"{name}.nest", code.between.nest)
    if code.first.problem.b_packed or code.second.problem.b_packed:
        matmul.emit_pack_b(module, target, f"{name}.pack", _to_pack(code))
    _Band(module, target, name, code).emit()
    labels = [("call", PTR), *((f"pointer{i}", PTR) for i in range(code.pointers))]
    labels += [("scratch", PTR), *((f"number{i}", I64) for i in range(code.numbers))]
    f = module.function(name, labels, attributes=target.function_attributes)
    call, *pointers = f.parameters[: 1 + code.pointers]
    scratch, *numbers = f.parameters[1 + code.pointers :]
    memory = Frame.allocate(f)
    arrays = {"pointers": _array(f, pointers), "numbers": _array(f, numbers)}
    frame = Frame(call=call, scratch=scratch, **arrays)
    frame.save(f, memory)
    count, grain, _ = numbers[: len(SHARING)]
    abi.parallel_for(f, call, f"{name}.share", memory, count, grain)
    f.ret()
    _emit_share(module, target, name, frame)


def _to_pack(code: Bands) -> matmul.Problem:
    return matmul.Problem(code.first.problem.dtype, b_packed=True, over_batches=True)


def _array(f: Function, values: Sequence[Value]) -> Value:
    """The address of these values, one behind the other."""
    memory = f.allocate(values[0].type, len(values))
    for i, value in enumerate(values):
        f.store(value, f.offset(value.type, memory, i))
    return memory


def _emit_share(module: Module, target: Target, name: str, frame: Frame) -> None:
    """Some of the bands, one after the other, in the thread's own memory."""
    f, v, begin, end, worker = frame.body(module, target, f"{name}.share")
    own = f.load(I64, f.offset(I64, v.numbers, SHARING.index("own")))
    scratch = f.offset(I8, v.scratch, f.mul(worker, own))
    with f.loop(begin, end) as part:
        f.call(f"{name}.band", [v.call, v.pointers, v.numbers, scratch, part.index, begin])
    f.ret()


class _Band:
    """The function for one band, in the making: takes pointers and numbers in their order. `begin`
    is the band with which the thread began."""

    def __init__(self, module: Module, target: Target, name: str, code: Bands):
        labels = [(label, PTR) for label in ("call", "pointers", "numbers", "scratch")]
        self.f = f = module.function(
            f"{name}.band", [*labels, ("part", I64), ("begin", I64)],
            attributes=target.function_attributes,
        )  # fmt: skip
        self.name, self.code = name, code
        self.element = STORED[code.first.problem.dtype]
        self.call, self.pointers, self.integers, self.middle, part, begin = f.parameters
        self.taken, self.read = 0, len(SHARING)
        bands, rows, band, self.width, work_at = self._numbers(len(CUTTING))
        self.matrix = f.div_size(part, bands)
        self.row = f.mul_size(f.rem_size(part, bands), band)
        self.rows = f.min_size(band, f.sub_size(rows, self.row))
        self.work = f.offset(I8, self.middle, work_at)
        self.is_first = f.binary(
            "or", f.compare("eq", part, begin), f.compare("eq", f.i64(self.row), f.i64(0))
        )

    def emit(self) -> None:
        self._first()
        self._between()
        self._second()
        self.f.ret()

    def _first(self) -> None:
        products = self.code.first
        left, right = self._pointer(), self._pointer()
        sizes, panels, call = self._given(products)
        left = self._down(self._moved(left, products.axes[0]), sizes["a_row"])
        right = self._packed(self._moved(right, products.axes[1]), panels, sizes)
        self._multiply("first", products, sizes, call, left, right, self.middle)

    def _between(self) -> None:
        f, between = self.f, self.code.between
        # The nest counts rows from the matrix's first one.
        begin = f.offset(self.element, self.middle, f.sub_size(0, f.mul_size(self.row, self.width)))
        buffers = _array(
            f,
            [
                begin if axes is None else self._moved(self._pointer(), axes)
                for axes in between.axes
            ],
        )
        frame = abi.with_buffers(f, self.call, buffers)
        abi.set_integers(f, frame, f.offset(I64, self.integers, self.read))
        self.read += between.integers
        end = f.i64(f.add_size(self.row, self.rows))
        f.call(f"{self.name}.nest", [frame, f.i64(self.row), end, f.i64(0)])

    def _second(self) -> None:
        products = self.code.second
        right = self._pointer()
        sizes, panels, call = self._given(products)
        right = self._packed(self._moved(right, products.axes[0]), panels, sizes)
        result = self._down(self._moved(self._pointer(), products.axes[1]), sizes["c_row"])
        self._multiply("second", products, sizes, call, self.middle, right, result)

    # -- products ---------------------------------------------------------------------------------

    def _given(self, products: Products) -> tuple[Sizes, Value | None, Value]:
        """The numbers of one product by their names, room for its packed operand, and its call."""
        sizes = self._sizes(products)
        panels = None
        if products.problem.b_packed:
            panels = self.f.offset(I8, self.middle, *self._numbers(1))
        return sizes, panels, self._ended(products.epilogue)

    def _packed(self, right: Value, panels: Value | None, sizes: Sizes) -> Value:
        """The right operand, in its panels if they have room; all bands but the first find it
        there."""
        f = self.f
        if panels is None:
            return right
        numbers = [f.i64(sizes[label]) for label in ("n", "k", "b_row", "b_column")]

        def pack() -> None:
            f.call(f"{self.name}.pack", [self.call, right, panels, *numbers])

        f.if_else(self.is_first, pack)
        return panels

    def _sizes(self, products: Products) -> Sizes:
        problem = products.problem
        known = {label: size for label, size in problem.sizes().items() if size is not None}
        passed = zip(products.labels, self._numbers(len(products.labels)), strict=True)
        return known | dict(passed)

    def _ended(self, epilogue: Epilogue) -> Value:
        """The call of one product, whose epilogue finds its operands where the band begins."""
        f = self.f
        steps = {step.number: step for step in epilogue.steps if isinstance(step, Beside)}
        pointers = [self._pointer() for _ in steps]
        numbers = self._numbers(epilogue.numbers)
        for i, pointer in enumerate(pointers):
            by_matrix, by_row, _ = epilogue.strides(numbers, i)
            behind = f.add_size(f.mul_size(self.matrix, by_matrix), f.mul_size(self.row, by_row))
            pointers[i] = f.offset(STORED[steps[i].dtype], pointer, behind)
        _, words = epilogue.split([*pointers, *numbers], 0, 0)
        return abi.with_workspace(f, self.call, self.work, words)

    def _multiply(
        self, part: str, products: Products, sizes: Sizes, call: Value, *operands: Value
    ) -> None:
        here = sizes | {"m": self.rows}
        numbers = [self.f.i64(here[label]) for label in products.labels]
        self.f.call(f"{self.name}.{part}", [call, *operands, *numbers])

    # -- what the function is given ---------------------------------------------------------------

    def _pointer(self) -> Value:
        self.taken += 1
        return self.f.load(PTR, self.f.offset(PTR, self.pointers, self.taken - 1))

    def _numbers(self, count: int) -> list[Value]:
        first = self.read
        self.read += count
        return [
            self.f.load(I64, self.f.offset(I64, self.integers, i)) for i in range(first, self.read)
        ]

    def _moved(self, pointer: Value, axes: int) -> Value:
        """The pointer to this matrix, given the one to the first."""
        pairs = self._numbers(2 * axes)
        places = self.f.unravelled(self.matrix, pairs[::2])
        for place, stride in zip(places, pairs[1::2], strict=True):
            pointer = self.f.offset(I8, pointer, self.f.mul_size(place, stride))
        return pointer

    def _down(self, pointer: Value, row: Size) -> Value:
        return self.f.offset(self.element, pointer, self.f.mul_size(self.row, row))
