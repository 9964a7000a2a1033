"""Values inside loops: the steps that compute them at each point.

Elementwise work and views become steps of the loops that need them, and so do reductions over the
same points. What does not fit the loops is computed before them, and loaded.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.codegen.nest import (
    Apply,
    Argument,
    Counter,
    Extent,
    Literal,
    Load,
    Operand,
    Reduce,
    Step,
    Store,
)
from heterosis.backends.native.codegen.tables import reducer
from heterosis.backends.native.loops.canonical import canonical
from heterosis.backends.native.loops.reduction_fusion import is_aligned, reduced_shape
from heterosis.backends.native.loops.split_reductions import PIECE, split_reduction
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.primitives.families import (
    Assemble,
    Elementwise,
    Gather,
    Primitive,
    Reduction,
    Scan,
    Scatter,
    View,
)
from heterosis.ir.program import CONSTANT, EXTENT, IOTA, Node, Value
from heterosis.ir.strided import Move, Strided, moved
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.backends.native.loops.surroundings import Surroundings


_MOST_NESTED = 96  # elementwise steps on the way from one value in memory to the next
_AS_DEEP = 4  # elementwise steps: how far down in the stack a value is that has kernels of its own
# Reductions in one nest: memory is read ahead for few arrays at a time, and a nest of many, such as
# the norm of all gradients of one shape, takes LLVM more than its length says.
_MOST_JOINED = 6


def deep_nodes(order: Iterable[Node], kept: Container[Value]) -> Iterator[Node]:
    """Nodes, in the program's order, whose values are to stand in memory beside those that are
    `kept`, so that none is found by need further down in the stack than `_MOST_NESTED` steps."""
    depths: dict[Node, int] = {}
    for node in order:
        own = _depth(node.primitive) if node.outputs[0] not in kept else 0
        depth = own + max((depths[v.node] for v in node.inputs), default=0) if own else 0
        if depth >= _MOST_NESTED and not isinstance(node.primitive, View):
            yield node
            depth = 0
        depths[node] = depth


def _depth(primitive: Primitive) -> int:
    if isinstance(primitive, Elementwise | View):
        return 1
    return _AS_DEEP if isinstance(primitive, Assemble | Gather | Scan | Scatter) else 0


class NeedsCopy(Exception):
    """What an epilogue reads cannot be read where it stands."""


class Loops:
    """One nest in the making: its extents, and every value that is computed inside it."""

    def __init__(
        self, scheduler: Surroundings, kept: tuple[int, ...] = (), reduced: tuple[int, ...] = ()
    ):
        self.scheduler, self.kept, self.reduced = scheduler, kept, reduced
        self.steps: list[Step] = []
        self.joined: dict[Value, int] = {}  # reductions, and their steps
        self._known: dict[tuple[Value, Any], int] = {}

    def finish(self, stores: list[Store]) -> None:
        """Run the nest next."""
        nest = canonical(self.kept, self.reduced, tuple(self.steps), tuple(stores))
        self.scheduler.append(nest, self.kept)
        self.scheduler.runs.update(self.joined.keys())

    def are_overtaken(self) -> bool:
        """Whether a reduction that runs here stands in memory by now, for another kernel that was
        found to need it. Computed by two nests, in two orders, it would round differently, and
        nothing would equal the largest of such sums."""
        return any(value in self.scheduler.places for value in self.joined)

    def add(self, step: Step) -> int:
        """The position of a new step."""
        self.steps.append(step)
        return len(self.steps) - 1

    def converted(self, step: int, dtype: str) -> int:
        """A step's value as `dtype`."""
        have = self.steps[step].dtype
        if have == dtype:
            return step
        return self.add(Apply(conversion(dtype), (step,), have, dtype))

    def inline(self, value: Value, moves: tuple[Move, ...]) -> int:
        """The step that computes `value`, rearranged by `moves`, at each point of the loops."""
        # Different moves to the same places are the same step: compare where elements end up.
        places = moved(Strided.contiguous(value.shape), moves)
        key = (value, places.settled if places else moves)
        if key not in self._known:
            self._known[key] = self._inlined(value, moves)
        return self._known[key]

    def _inlined(self, value: Value, moves: tuple[Move, ...]) -> int:
        node, primitive = value.node, value.node.primitive
        if value in self.scheduler.places:
            return self._load(self.scheduler.places[value], moves)
        if value in self.scheduler.numbers:
            return self.add(Argument(self.scheduler.numbers[value], value.dtype))
        if primitive is CONSTANT:
            return self.add(Literal(node.attributes["value"], value.dtype))
        if primitive is EXTENT:
            return self.add(Extent(node.attributes["value"]))
        if primitive is IOTA:
            return self._count(value, moves)
        if isinstance(primitive, Elementwise) and not self._is_repeated(value):
            arguments = tuple(self.inline(v, moves) for v in node.inputs)
            return self.add(Apply(primitive, arguments, node.inputs[0].dtype, value.dtype))
        if isinstance(primitive, View):
            return self.inline(node.inputs[0], (primitive.move(node), *moves))
        return self._gathered_or_reduced(value, moves)

    def _gathered_or_reduced(self, value: Value, moves: tuple[Move, ...]) -> int:
        primitive = value.node.primitive
        if isinstance(primitive, Gather):
            found = self._gather(value, moves)
            if found is not None:
                return found
        if type(primitive) is Reduction:
            aligned = is_aligned(value, moves, self.kept, self.reduced)
            if aligned and len(self.joined) < _MOST_JOINED:
                return self._join(value)
            self._cut(value)
        return self._load(self.scheduler.place(value), moves)

    def _is_repeated(self, value: Value) -> bool:
        """Whether to compute a value once, before the loops, that these compute many times."""
        return False

    # -- reductions ---------------------------------------------------------------------------

    def _join(self, value: Value) -> int:
        """The reduction as a pass of this nest."""
        node = value.node
        axes = node.attributes["axes"]
        order = (*(a for a in range(node.inputs[0].ndim) if a not in axes), *axes)
        loops = self.kept + self.reduced
        moves: tuple[Move, ...] = (("transpose", (order,)), ("reshape", (loops,)))
        self.joined[value] = self.reduce(value, moves)
        return self.joined[value]

    def reduce(self, value: Value, moves: tuple[Move, ...]) -> int:
        """The step that reduces the operands of `value`, which the loops meet through `moves`."""
        primitive = value.node.primitive
        assert isinstance(primitive, Reduction), f"{primitive} reduces nothing"
        arguments = tuple(self.inline(v, moves) for v in value.node.inputs)
        return self.add(Reduce(reducer(primitive), arguments, value.index, value.dtype))

    def _cut(self, value: Value) -> None:
        """Compute a long reduction to one element piece by piece, so that threads can share it."""
        node = value.node
        if value.size != 1 or prod(reduced_shape(node)) <= 2 * PIECE:
            return
        for output, joined in zip(node.outputs, split_reduction(node, PIECE), strict=True):
            place = self.scheduler.place(joined)
            strided = Strided.contiguous(output.shape)
            self.scheduler.places[output] = Place(place.buffer, place.dtype, strided)

    # -- reading memory -----------------------------------------------------------------------

    def _load(self, place: Place, moves: tuple[Move, ...]) -> int:
        strided = moved(place.strided, moves)
        if strided is None:
            place, moves = self._copied(place, moves)
            return self._load(place, moves)
        operand = Operand(place.buffer, place.dtype, strided.offset, strided.strides)
        return self.add(Load(operand))

    def _copied(self, place: Place, moves: tuple[Move, ...]) -> tuple[Place, tuple[Move, ...]]:
        """Copy as much of the rearrangement as strides can express; the rest then starts anew."""
        strided = place.strided
        for i, (name, arguments) in enumerate(moves):
            following = getattr(strided, name)(*arguments)
            if following is None:
                return self._copy(Place(place.buffer, place.dtype, strided)), moves[i:]
            strided = following
        raise AssertionError("every move can be expressed: there is nothing to copy")

    def _copy(self, place: Place) -> Place:
        strided = place.strided
        room = self.scheduler.temporary(TensorType(strided.shape, place.dtype))
        copy = Loops(self.scheduler, strided.shape)
        source = Operand(place.buffer, place.dtype, strided.offset, strided.strides)
        to = Operand(room.buffer, room.dtype, 0, room.strided.strides)
        copy.finish([Store(to, copy.add(Load(source)))])
        return room

    def _count(self, value: Value, moves: tuple[Move, ...]) -> int:
        strided = moved(Strided.contiguous(value.shape), moves)
        if strided is None:
            return self._load(self.scheduler.place(value), moves)
        return self.add(Counter(strided.offset, strided.strides))

    def _gather(self, value: Value, moves: tuple[Move, ...]) -> int | None:
        """A load at computed places; None if strides cannot express what becomes of it."""
        data, *indices = value.node.inputs
        place = self.scheduler.whole(data)
        rank, lead = len(indices), indices[0].shape
        rest, strides = place.strided.shape[rank:], place.strided.strides
        rows = Strided(lead + rest, (0,) * len(lead) + strides[rank:], place.strided.offset)
        strided = moved(rows, moves)
        if strided is None:
            return None
        operand = Operand(place.buffer, place.dtype, strided.offset, strided.strides)
        spread = (*repeated(lead, rest), *moves)
        found = [self.inline(index, spread) for index in indices]
        steps = tuple(zip(found, strides[:rank], strict=True))
        return self.add(Load(operand, steps, place.strided.shape[:rank]))


class EpilogueSteps(Loops):
    """What a kernel does on its result of `size` elements: it can load, and that is all."""

    def __init__(self, scheduler: Surroundings, size: int):
        super().__init__(scheduler)
        self.size = size

    def _is_repeated(self, value: Value) -> bool:
        return 1 < value.size < self.size

    def _copied(self, place: Place, moves: tuple[Move, ...]) -> tuple[Place, tuple[Move, ...]]:
        raise NeedsCopy


def repeated(shape: tuple[int, ...], more: tuple[int, ...]) -> tuple[Move, ...]:
    """The moves that repeat a value of `shape` over further, inner dimensions."""
    ones = (1,) * len(more)
    return (("reshape", (shape + ones,)), ("broadcast", (shape + more,)))
