"""From a program to the kernels that run it, in order.

Elementwise work and views are inlined into the loop nests that use them; reductions over the same
points join one nest (softmax is one); what other kernels need whole gets a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import prod
from typing import Any

from heterosis.codegen.conversion import conversion
from heterosis.codegen.epilogue import Epilogue
from heterosis.codegen.kernel import KernelCode, Machine, OpaqueCall, Place, Schedule
from heterosis.codegen.nest import (
    Apply,
    Argument,
    Buffer,
    Counter,
    Extent,
    Literal,
    Load,
    Nest,
    Operand,
    Reduce,
    Step,
    Store,
)
from heterosis.ir.program import (
    CONSTANT,
    EXTENT,
    INPUT,
    IOTA,
    NUMBER,
    Assemble,
    Elementwise,
    Gather,
    Leaf,
    Node,
    Opaque,
    Program,
    Reduction,
    Scan,
    Scatter,
    Value,
    View,
)
from heterosis.ir.strided import Move, Strided, moved, row_major
from heterosis.ir.types import TensorType
from heterosis.ir.views import BROADCAST, RESHAPE
from heterosis.passes.apart import are_apart, is_apart
from heterosis.passes.epilogues import FINISHED, Attached, Uses, attached, candidates
from heterosis.passes.loops import canonical
from heterosis.passes.materialize import unrearranged
from heterosis.passes.memory import plan_memory
from heterosis.passes.pieces import reduce_in_pieces
from heterosis.passes.stash import stash

# A reduction longer than this, with no other dimension to share out, is cut into pieces.
# The length does not depend on the number of threads, so neither does the result.
_PIECE = 1 << 15

_WRITES_WHOLE = Opaque | Assemble | Scatter | Scan  # kinds with kernels of their own


def schedule(
    program: Program,
    layouts: Sequence[Strided],
    outputs: Sequence[Strided | None],
    machine: Machine,
    *,
    views: bool,
    in_place: bool = False,
    kept: AbstractSet[Value] = frozenset(),
) -> Schedule:
    """Plan `program` for inputs that lie as `layouts` say.

    `outputs` gives the layout of each result's memory (None: without gaps). With `views`, a result
    that only rearranges an input is reported as a view of it instead of being written. With
    `in_place`, the one result is written where the first input stands. The `kept` values get
    memory even where nests could compute them.
    """
    scheduler = _Scheduler(program, layouts, machine)
    if in_place:
        scheduler.update()
    else:
        scheduler.run(outputs, views, kept)
    plan_memory(scheduler.result)
    return scheduler.result


class _Scheduler:
    def __init__(self, program: Program, layouts: Sequence[Strided], machine: Machine):
        self.program, self.machine = program, machine
        self.result = Schedule()
        self.uses = Uses(program)
        self.homes: dict[Value, Place] = {}  # where values will stand once they are computed
        self.inside: set[Node] = set()  # what kernels do on their results: no value of its own
        self.places: dict[Value, Place] = {}
        self.numbers: dict[Value, int] = {}
        self.kept: AbstractSet[Value] = frozenset()
        buffers = 0
        for value, layout in zip(program.inputs, layouts, strict=True):
            if value.node.primitive is NUMBER:
                self.numbers[value] = len(self.numbers)
            else:
                self.places[value] = Place(Buffer("call", buffers), value.dtype, layout)
                buffers += 1
        self.inputs = buffers

    def run(
        self, outputs: Sequence[Strided | None], views: bool, kept: AbstractSet[Value] = frozenset()
    ) -> None:
        """Write every result, or report it as a view."""
        rooms: list[tuple[Value, Place]] = []
        for i, (value, layout) in enumerate(zip(self.program.outputs, outputs, strict=True)):
            found = self._as_view(value) if views and layout is None else None
            if found:
                self.result.views[i] = found
                continue
            buffer = Buffer("call", self.inputs + len(rooms))
            strided = layout or Strided.contiguous(value.shape)
            rooms.append((value, Place(buffer, value.dtype, strided)))
            self._settle(*rooms[-1])
        self.kept = kept
        self._place_in_order()
        rooms = [(value, room) for value, room in rooms if not self._stands(value, room)]
        for group in self._groups(rooms):
            if len(group) > 1:
                _NestBuilder(self).map_together(group)
            else:
                self.write(*group[0])
            for value, room in group:
                self.places.setdefault(value, room)

    def _settle(self, value: Value, room: Place) -> None:
        """Let kernels of their own write where a result, or a part of it, will stand."""
        value, room = self._unviewed(value, room)
        self.homes.setdefault(value, room)
        if isinstance(value.node.primitive, Assemble) and not value.node.attributes["filled"]:
            for part, inside in self._lasting_parts(value, room):
                self._settle(part, inside)

    def _lasting_parts(self, value: Value, room: Place) -> Iterator[tuple[Value, Place]]:
        """The parts that nobody else needs once later parts are written over them."""
        places = value.node.attributes["places"]
        rooms = list(_parts(value, room))
        for i, (part, inside) in enumerate(rooms):
            behind = zip(places[i + 1 :], rooms[i + 1 :], strict=True)
            if self._serves_one(part) or all(
                is_apart(places[i], part.shape, place, other.shape) for place, (other, _) in behind
            ):
                yield part, inside

    def _serves_one(self, value: Value) -> bool:
        """Whether one node alone uses `value` and what it is a view of."""
        while len(self.uses.of(value)) == 1 and value not in self.uses.outputs:
            if not isinstance(value.node.primitive, View):
                return True
            (value,) = value.node.inputs
        return False

    def _place_in_order(self) -> None:
        """Compute whole operands, and what is to be kept, in the program's order: found by need,
        they would lie as deep in the stack as the program is long."""
        for node in reversed(self.uses.order):
            if isinstance(node.primitive, Assemble) and node.outputs[0] not in self.homes:
                self._settle(node.outputs[0], self.temporary(node.types[0]))
        reduced: list[Value] = []
        for node in self.uses.order:
            kept = [v for v in node.outputs if v in self.kept and node not in self.inside]
            if type(node.primitive) is Reduction:
                reduced += kept
            elif isinstance(node.primitive, Opaque):
                self._place_reduced(reduced)
                if node.outputs[0] not in self.places:
                    self._call(node, {})
            elif kept:
                self._place_reduced(reduced)
                for value in kept:
                    self.place(value)
        self._place_reduced(reduced)

    def _place_reduced(self, values: list[Value]) -> None:
        """The last first: its nest may need the others, and stores them too."""
        while values:
            self.place(values.pop())

    def _groups(self, rooms: list[tuple[Value, Place]]) -> list[list[tuple[Value, Place]]]:
        """Results of one shape that are elementwise share a nest, and what they load."""
        groups: dict[Any, list[tuple[Value, Place]]] = {}
        for i, (value, room) in enumerate(rooms):
            key = value.shape if self._is_elementwise(value) else i
            groups.setdefault(key, []).append((value, room))
        return list(groups.values())

    def _is_elementwise(self, value: Value) -> bool:
        """Whether a value is made element by element of what has a place, and of numbers."""
        seen: set[Value] = set()
        stack = [value]
        while stack:
            value = stack.pop()
            if value in seen or value in self.places:
                continue
            seen.add(value)
            if not isinstance(value.node.primitive, Elementwise | View | Leaf):
                return False
            stack.extend(value.node.inputs)
        return True

    def update(self) -> None:
        """Write the one result over the first input."""
        (value,), (first, *_) = self.program.outputs, self.program.inputs
        self.write(value, self.places[first])

    def _as_view(self, value: Value) -> tuple[int, Strided] | None:
        """The input and layout that `value` is a view of, if it is one."""
        if unrearranged(value).node.primitive is not INPUT:
            return None
        place = self._found(value)
        return (place.buffer.index, place.strided) if place else None

    # -- memory -------------------------------------------------------------------------------

    def temporary(self, type_: TensorType) -> Place:
        """Room for a whole value in the workspace."""
        return Place(self.scratch(type_.nbytes), type_.dtype, Strided.contiguous(type_.shape))

    def scratch(self, nbytes: int) -> Buffer:
        self.result.temporaries.append(nbytes)
        return Buffer("temporary", len(self.result.temporaries) - 1)

    def place(self, value: Value) -> Place:
        """Where `value` stands in memory; computed into the workspace on first need."""
        if value not in self.places:
            node = value.node
            if isinstance(node.primitive, Opaque):
                self._call(node, {})
            else:
                room = self.homes.get(value) or self.temporary(value.type)
                self.write(value, room)
                self.places[value] = room
        return self.places[value]

    def whole(self, value: Value) -> Place:
        """Where `value` stands, views of memory left as they are: for kernels with strides."""
        found = self._found(value)
        if found:
            return found
        base = value
        while base.node.primitive in (RESHAPE, BROADCAST):
            (base,) = base.node.inputs
        if unrearranged(base) in self.places or not 0 < base.size <= value.size:
            return self.place(value)
        self.place(base)
        return self._found(value) or self.place(value)

    def _found(self, value: Value) -> Place | None:
        """Where `value` stands if it is a view of what has a place, and strides can say how."""
        moves: list[Move] = []
        while isinstance(value.node.primitive, View) and value not in self.places:
            moves.insert(0, value.node.primitive.move(value.node))
            value = value.node.inputs[0]
        place = self.places.get(value)
        strided = moved(place.strided, moves) if place else None
        return Place(place.buffer, place.dtype, strided) if place and strided else None

    def _stands(self, value: Value, room: Place) -> bool:
        """Whether `value` has been computed into `room`."""
        found = self._found(value)
        return found is not None and _are_same(found, room)

    def _gapless(self, value: Value) -> Place:
        """Where `value` stands row by row; a copy if it stands otherwise."""
        base = unrearranged(value)
        if base in self.places or isinstance(base.node.primitive, Opaque):
            place = self.whole(value)
        else:
            place = self.place(value)
        if place.strided.is_contiguous:
            return place
        room = self.temporary(value.type)
        _NestBuilder(self).map(value, room)
        return room

    # -- writing a value ----------------------------------------------------------------------

    def write(self, value: Value, room: Place) -> None:
        """Append the kernels that compute `value` into `room`."""
        if self._stands(value, room):
            return
        value, room = self._seen_through(*self._as_shaped(value, room))
        primitive = value.node.primitive
        if value not in self.places:
            if isinstance(primitive, Opaque):
                self._call(value.node, {value: room})
                return
            if isinstance(primitive, Assemble):
                self._assemble(value, room)
                return
            if isinstance(primitive, Scatter):
                self._scatter(value, room)
                return
            if isinstance(primitive, Scan):
                self._scan(value, room)
                return
        _NestBuilder(self).map(value, room)

    def _as_shaped(self, value: Value, room: Place) -> tuple[Value, Place]:
        """A reshaped value in the shape that it is computed in, and its room in that shape."""
        while value.node.primitive is RESHAPE and value not in self.places:
            (base,) = value.node.inputs
            strided = room.strided.reshape(base.shape)
            if strided is None:
                break
            value, room = base, Place(room.buffer, room.dtype, strided)
        return value, room

    def _seen_through(self, value: Value, room: Place) -> tuple[Value, Place]:
        """What a rearranged value is made of, where that can be written as it will stand."""
        base, inside = self._unviewed(value, room)
        if base in self.places or not isinstance(base.node.primitive, _WRITES_WHOLE):
            return value, room
        return base, inside

    def _unviewed(self, value: Value, room: Place) -> tuple[Value, Place]:
        base, strided = value, room.strided
        while isinstance(base.node.primitive, View) and base not in self.places:
            name, arguments = base.node.primitive.move(base.node)
            base = base.node.inputs[0]
            moved = _undone(strided, name, arguments, base.shape)
            if moved is None:
                return value, room
            strided = moved
        return base, Place(room.buffer, room.dtype, strided)

    def _call(self, node: Node, rooms: dict[Value, Place]) -> None:
        find = self._gapless if node.primitive.gapless else self.whole
        inputs = tuple(find(operand) for operand in node.inputs)
        finish = self._finish(node) if node.primitive.finishes else None
        for output in (finish.result,) if finish else node.outputs:
            room = rooms.get(output) or self.homes.get(output)
            if room is None or not room.strided.is_contiguous:
                room = self.temporary(output.type)
            self.places[output] = room
        if finish:
            code, outputs = self._finishing(node, inputs, finish)
            inputs += finish.inputs
        else:
            outputs = tuple(self.places[output] for output in node.outputs)
            none = (Epilogue(),) if node.primitive.finishes else ()
            code = node.primitive.kernel(node, inputs, outputs, self.machine, *none)
        scratch = self.scratch(code.scratch_bytes) if code.scratch_bytes else None
        self.result.kernels.append(OpaqueCall(code, inputs, outputs, scratch))
        for output, room in rooms.items():
            self.write(output, room)

    # -- elementwise work that a kernel does before it stores its result -----------------------

    def _finishing(
        self, node: Node, inputs: tuple[Place, ...], finish: Attached
    ) -> tuple[KernelCode, tuple[Place, ...]]:
        """The kernel with its epilogue, and its result as it sees it."""
        room = self.places[finish.result]
        strided = Strided(node.types[0].shape, row_major(node.types[0].shape), room.strided.offset)
        outputs = (Place(room.buffer, room.dtype, strided),)
        code = node.primitive.kernel(node, inputs, outputs, self.machine, finish.code)
        return replace(code, numbers=code.numbers + finish.numbers), outputs

    def _finish(self, node: Node) -> Attached | None:
        """What can be done behind `node` before its result is stored."""
        (source,) = node.outputs
        shape = node.primitive.finishes(source.type)
        for result, between in candidates(source, self.uses, self._is_ready):
            self.places[source] = Place(FINISHED, source.dtype, Strided.contiguous(source.shape))
            builder = _NestBuilder(self, copies=False)
            builder.size = result.size
            try:
                builder.inline(result, (("reshape", (shape,)),))
                found = attached(result, builder.steps, shape)
            except _NeedsCopy:
                found = None
            finally:
                del self.places[source]
            if found:
                self.inside |= between
                return found
        return None

    def _is_ready(self, value: Value) -> bool:
        """Whether a value is made of what has been computed, by elementwise work and views."""
        stack, seen = [value], set()
        while stack:
            one = stack.pop()
            if one in self.places or one in self.numbers or one in seen:
                continue
            seen.add(one)
            known = one.node.primitive in (CONSTANT, EXTENT)
            if not known and not isinstance(one.node.primitive, Elementwise | View):
                return False
            stack.extend(one.node.inputs)
        return True

    def _assemble(self, value: Value, room: Place) -> None:
        if value.node.attributes["filled"]:
            fill = value.node.inputs[0]
            _NestBuilder(self).map(fill, room, (("broadcast", (value.shape,)),))
        rooms = list(_parts(value, room))
        parts = [part for part, _ in rooms]
        if self._share_work(parts) and are_apart(value.node.attributes["places"], parts[0].shape):
            _NestBuilder(self).map_together(rooms)
            return
        for part, inside in rooms:
            self.write(part, inside)

    def _share_work(self, parts: Sequence[Value]) -> bool:
        """Whether values of one shape, without reductions, compute something more than once."""
        if len({part.shape for part in parts}) > 1:
            return False
        works = [self._inlined(part) for part in parts]
        if any(type(node.primitive) is Reduction for work in works for node in work):
            return False
        computed = [n for work in works for n in work if isinstance(n.primitive, Elementwise)]
        return len(set(computed)) < len(computed)

    def _inlined(self, value: Value) -> set[Node]:
        """The nodes that a nest which writes `value` computes, and those that it reads."""
        seen: set[Node] = set()
        stack = [value]
        while stack:
            value = stack.pop()
            if value.node not in seen and value not in self.places:
                seen.add(value.node)
                if isinstance(value.node.primitive, Elementwise | View):
                    stack.extend(value.node.inputs)
        return seen

    def _scatter(self, value: Value, room: Place) -> None:
        base, *indices, update = value.node.inputs
        if self.places.get(base) != room:
            known = set(self.places)
            self.write(base, room)
            # What was found to stand there stands there no longer.
            for other in self.places.keys() - known:
                if self.places[other].buffer == room.buffer:
                    del self.places[other]
        _NestBuilder(self).scatter(value.node, indices, update, room)

    def _scan(self, value: Value, room: Place) -> None:
        _NestBuilder(self).scan(value, room)

    def append(self, nest: Nest, kept: Sequence[int]) -> None:
        """Run `nest` next, unless its loops have no points."""
        if prod(kept):
            self.result.kernels.append(nest)


class _NestBuilder:
    """One nest in the making: the loops, and every value that is computed inside them."""

    def __init__(self, scheduler: _Scheduler, copies: bool = True):
        self.scheduler, self.copies = scheduler, copies
        self.size = 0
        self.kept: tuple[int, ...] = ()
        self.reduced: tuple[int, ...] = ()
        self.steps: list[Step] = []
        self.known: dict[tuple[Value, Any], int] = {}
        self.joined: dict[Value, int] = {}  # reductions, and their steps

    # -- kinds of nests -----------------------------------------------------------------------

    def map(self, value: Value, room: Place, moves: tuple[Move, ...] = ()) -> None:
        """`value`, rearranged by `moves`, into `room`."""
        shape = room.strided.shape
        order = tuple(range(len(shape)))
        self.kept, split = shape, len(shape)
        for reduction, between in self._reductions(value, moves):
            along = self._along(reduction, between, shape)
            if along is None:
                continue
            order = (*(a for a in order if a not in along), *along)
            split = len(shape) - len(along)
            self.kept = tuple(shape[a] for a in order[:split])
            self.reduced = self._reduced_shape(reduction.node)
            moves = (*moves, ("transpose", (order,)))
            if not along:
                moves = (*moves, *_add_dimensions(shape, self.reduced))
            break
        step = self.inline(value, moves)
        strides = tuple(room.strided.strides[a] for a in order)
        padding = (0,) * (len(self.kept) + len(self.reduced) - len(strides))
        operand = Operand(room.buffer, room.dtype, room.strided.offset, strides + padding)
        store = Store(operand, self._converted(step, room.dtype))
        steps, stores = stash(len(self.kept), tuple(self.steps), (store,))
        self.steps = list(steps)
        self._finish([*stores, *self._kept_stores(value)])

    def _kept_stores(self, root: Value) -> Iterator[Store]:
        """What keeps reductions that other kernels will need, and that ran on the way to `root`."""
        scheduler = self.scheduler
        for value, step in self.joined.items():
            if value in scheduler.kept and value not in scheduler.places and value != root:
                room = scheduler.places[value] = scheduler.temporary(value.type)
                strides = row_major(self.kept) + (0,) * len(self.reduced)
                yield Store(Operand(room.buffer, room.dtype, 0, strides), step)

    def map_together(self, group: Sequence[tuple[Value, Place]]) -> None:
        """Several elementwise values of one shape, each into its room."""
        self.kept = group[0][1].strided.shape
        stores = []
        for value, room in group:
            step = self._converted(self.inline(value, ()), room.dtype)
            operand = Operand(room.buffer, room.dtype, room.strided.offset, room.strided.strides)
            stores.append(Store(operand, step))
        self._finish(stores)

    def scan(self, value: Value, room: Place) -> None:
        """Running results along one axis, which becomes the only reduced dimension."""
        node = value.node
        (axis,) = node.attributes["axes"]
        order = (*(a for a in range(value.ndim) if a != axis), axis)
        shape = tuple(value.shape[a] for a in order)
        self.kept, self.reduced = shape[:-1], shape[-1:]
        arguments = tuple(self.inline(v, (("transpose", (order,)),)) for v in node.inputs)
        step = self._add(Reduce(node.primitive.reducer, arguments, value.index, value.dtype))
        strides = tuple(room.strided.strides[a] for a in order)
        operand = Operand(room.buffer, room.dtype, room.strided.offset, strides)
        store = Store(operand, step, running=node.primitive.reducer)
        self._finish([store])

    def scatter(self, node: Node, indices: Sequence[Value], update: Value, room: Place) -> None:
        """Write or add rows at computed places, in order, so that the last of equals wins."""
        rank = len(indices)
        self.kept = update.shape
        lead = indices[0].shape
        rest = update.shape[len(lead) :]
        moves = _add_dimensions(lead, rest)
        strides = (0,) * len(lead) + room.strided.strides[rank:]
        operand = Operand(room.buffer, room.dtype, room.strided.offset, strides)
        places = tuple(
            (self.inline(index, moves), stride)
            for index, stride in zip(indices, room.strided.strides[:rank], strict=True)
        )
        step = self._converted(self.inline(update, ()), room.dtype)
        combine = node.attributes["combine"]
        if combine is not None:
            old = self._add(Load(operand, places))
            step = self._add(Apply(combine, (old, step), room.dtype, room.dtype))
        self._finish([Store(operand, step, places)])

    def _finish(self, stores: list[Store]) -> None:
        nest = canonical(self.kept, self.reduced, tuple(self.steps), tuple(stores))
        self.scheduler.append(nest, self.kept)

    # -- joining reductions -------------------------------------------------------------------

    def _reductions(
        self, value: Value, moves: tuple[Move, ...]
    ) -> Iterator[tuple[Value, tuple[Move, ...]]]:
        """Reductions that could run inside this nest, with the moves between them and the nest."""
        seen: set[Value] = set()
        stack = [(value, moves)]
        while stack:
            value, moves = stack.pop()
            primitive = value.node.primitive
            if value in seen or value in self.scheduler.places:
                continue
            seen.add(value)
            if isinstance(primitive, Elementwise):
                stack.extend((v, moves) for v in value.node.inputs)
            elif isinstance(primitive, View):
                stack.append((value.node.inputs[0], (primitive.move(value.node), *moves)))
            elif isinstance(primitive, Reduction) and not isinstance(primitive, Scan):
                yield value, moves

    def _reduced_shape(self, node: Node) -> tuple[int, ...]:
        return tuple(node.inputs[0].shape[a] for a in node.attributes["axes"])

    def _along(
        self, value: Value, moves: tuple[Move, ...], shape: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """The loop dimensions that a reduction's result is repeated over, if it fits the nest.

        It fits where those dimensions are exactly the reduced ones, or where there are none.
        """
        reduced = self._reduced_shape(value.node)
        strided = moved(Strided.contiguous(value.shape), moves)
        if strided is None:
            return None
        along = tuple(a for a, n in enumerate(shape) if n > 1 and strided.strides[a] == 0)
        kept = tuple(n for a, n in enumerate(shape) if a not in along)
        there = tuple(strided.strides[a] for a in range(len(shape)) if a not in along)
        exact = Strided(kept, there, strided.offset)
        fits = not along or tuple(shape[a] for a in along) == reduced
        whole = prod(kept) == value.size and not strided.offset and exact.is_contiguous
        if not fits or not whole:
            return None
        if prod(kept) < 8 and prod(reduced) > 2 * _PIECE:
            # Too few points to share out: cut the reduction into pieces instead, in a nest of
            # its own, unless this is that nest already.
            return None if along or prod(kept) == 1 else along
        return along

    def _is_aligned(self, value: Value, moves: tuple[Move, ...]) -> bool:
        """Whether a reduction can run over this nest's own reduced dimensions."""
        if not self.reduced or self._reduced_shape(value.node) != self.reduced:
            return False
        strided = moved(Strided.contiguous(value.shape), moves)
        if strided is None or strided.offset or prod(self.kept) != value.size:
            return False
        split = len(self.kept)
        if any(s and n > 1 for n, s in zip(self.reduced, strided.strides[split:], strict=True)):
            return False
        return Strided(self.kept, strided.strides[:split]).is_contiguous

    def _join(self, value: Value) -> int:
        """The reduction as a pass of this nest."""
        node = value.node
        axes = node.attributes["axes"]
        ndim = node.inputs[0].ndim
        order = (*(a for a in range(ndim) if a not in axes), *axes)
        moves: tuple[Move, ...] = (
            ("transpose", (order,)),
            ("reshape", (self.kept + self.reduced,)),
        )
        arguments = tuple(self.inline(v, moves) for v in node.inputs)
        step = self._add(Reduce(node.primitive.reducer, arguments, value.index, value.dtype))
        self.joined[value] = step
        return step

    # -- values inside the loops --------------------------------------------------------------

    def inline(self, value: Value, moves: tuple[Move, ...]) -> int:
        """The step that computes `value` at each point of the loops."""
        # Different moves to the same places are the same step: compare where elements end up.
        places = moved(Strided.contiguous(value.shape), moves)
        key = (value, places or moves)
        if key not in self.known:
            self.known[key] = self._inline(value, moves)
        return self.known[key]

    def _inline(self, value: Value, moves: tuple[Move, ...]) -> int:
        node, primitive = value.node, value.node.primitive
        if value in self.scheduler.places:
            return self._load(self.scheduler.places[value], moves)
        if value in self.scheduler.numbers:
            return self._add(Argument(self.scheduler.numbers[value], value.dtype))
        if primitive is CONSTANT:
            return self._add(Literal(node.attributes["value"], value.dtype))
        if primitive is EXTENT:
            return self._add(Extent(node.attributes["value"]))
        if primitive is IOTA:
            return self._count(value, moves)
        if isinstance(primitive, Elementwise) and self._is_repeated(value):
            return self._load(self.scheduler.place(value), moves)
        if isinstance(primitive, Elementwise):
            arguments = tuple(self.inline(v, moves) for v in node.inputs)
            return self._add(Apply(primitive, arguments, node.inputs[0].dtype, value.dtype))
        if isinstance(primitive, View):
            return self.inline(node.inputs[0], (primitive.move(node), *moves))
        if isinstance(primitive, Gather):
            found = self._gather(value, moves)
            if found is not None:
                return found
        if type(primitive) is Reduction:
            if self._is_aligned(value, moves):
                return self._join(value)
            self._cut(value)
        return self._load(self.scheduler.place(value), moves)

    def _is_repeated(self, value: Value) -> bool:
        """Whether a kernel with an epilogue would compute the elements of a value many times."""
        return not self.copies and 1 < value.size < self.size

    def _cut(self, value: Value) -> None:
        """Compute a long reduction to one element piece by piece, so that threads can share it."""
        node = value.node
        if value.size != 1 or prod(self._reduced_shape(node)) <= 2 * _PIECE:
            return
        for output, joined in zip(node.outputs, reduce_in_pieces(node, _PIECE), strict=True):
            place = self.scheduler.place(joined)
            strided = Strided.contiguous(output.shape)
            self.scheduler.places[output] = Place(place.buffer, place.dtype, strided)

    def _load(self, place: Place, moves: tuple[Move, ...]) -> int:
        strided = moved(place.strided, moves)
        if strided is None:
            if not self.copies:
                raise _NeedsCopy
            place, moves = self._copied(place, moves)
            return self._load(place, moves)
        operand = Operand(place.buffer, place.dtype, strided.offset, strided.strides)
        return self._add(Load(operand))

    def _copied(self, place: Place, moves: tuple[Move, ...]) -> tuple[Place, tuple[Move, ...]]:
        """Copy as much of the rearrangement as strides can express; the rest then starts anew."""
        strided = place.strided
        for i, (name, arguments) in enumerate(moves):
            following = getattr(strided, name)(*arguments)
            if following is None:
                room = self.scheduler.temporary(TensorType(strided.shape, place.dtype))
                copy = _NestBuilder(self.scheduler)
                copy.kept = strided.shape
                source = Operand(place.buffer, place.dtype, strided.offset, strided.strides)
                to = Operand(room.buffer, room.dtype, 0, room.strided.strides)
                copy._finish([Store(to, copy._add(Load(source)))])
                return room, moves[i:]
            strided = following
        raise AssertionError("every move can be expressed: there is nothing to copy")

    def _count(self, value: Value, moves: tuple[Move, ...]) -> int:
        strided = moved(Strided.contiguous(value.shape), moves)
        if strided is None:
            return self._load(self.scheduler.place(value), moves)
        return self._add(Counter(strided.offset, strided.strides))

    def _gather(self, value: Value, moves: tuple[Move, ...]) -> int | None:
        data, *indices = value.node.inputs
        place = self.scheduler.whole(data)
        rank, lead = len(indices), indices[0].shape
        rest = place.strided.shape[rank:]
        rows = Strided(
            lead + rest, (0,) * len(lead) + place.strided.strides[rank:], place.strided.offset
        )
        strided = moved(rows, moves)
        if strided is None:
            return None
        operand = Operand(place.buffer, place.dtype, strided.offset, strided.strides)
        spread = (*_add_dimensions(lead, rest), *moves)
        places = tuple(
            (self.inline(index, spread), stride)
            for index, stride in zip(indices, place.strided.strides[:rank], strict=True)
        )
        return self._add(Load(operand, places))

    def _converted(self, step: int, dtype: str) -> int:
        have = self.steps[step].dtype
        if have == dtype:
            return step
        return self._add(Apply(conversion(dtype), (step,), have, dtype))

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


def _parts(value: Value, room: Place) -> Iterator[tuple[Value, Place]]:
    """The values that an assembled one is made of, and where in `room` they stand."""
    parts = value.node.inputs[bool(value.node.attributes["filled"]) :]
    for part, (starts, steps) in zip(parts, value.node.attributes["places"], strict=True):
        strided = room.strided.slice(starts, steps, part.shape)
        yield part, Place(room.buffer, room.dtype, strided)


def _are_same(a: Place, b: Place) -> bool:
    """Whether two places of one shape hold the same elements in the same order."""
    x, y = a.strided, b.strided
    apart = zip(x.shape, x.strides, y.strides, strict=True)
    same = all(n == 1 or s == t for n, s, t in apart)
    return (a.buffer, a.dtype, x.offset) == (b.buffer, b.dtype, y.offset) and same


class _NeedsCopy(Exception):
    """An operand of an epilogue cannot be read where it stands."""


def _undone(
    strided: Strided, name: str, arguments: tuple[Any, ...], shape: tuple[int, ...]
) -> Strided | None:
    """Where a value of `shape` stands if it stands at `strided` once rearranged."""
    if name == "reshape":
        return strided.reshape(shape)
    if name == "transpose":
        (axes,) = arguments
        return strided.transpose(tuple(axes.index(a) for a in range(len(axes))))
    return None


def _add_dimensions(shape: tuple[int, ...], more: tuple[int, ...]) -> tuple[Move, ...]:
    """Repeat a value of `shape` over further, inner dimensions."""
    ones = (1,) * len(more)
    return (("reshape", (shape + ones,)), ("broadcast", (shape + more,)))
