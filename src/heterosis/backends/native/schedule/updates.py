"""Which results of a loop's body may stand where the carried operand stands that they are made of:
it is written to in parts, and nothing needs what has stood there any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heterosis.ir.primitives.families import Assemble, Opaque, Scatter, View
from heterosis.ir.program import Node, Program, Value, reached
from heterosis.ir.strided import Strided, moved
from heterosis.ir.views import RESHAPE, TRANSPOSE

# The positions of results, and the values that are made of what stood there before: they have to be
# computed before any of these results is.
Updates = dict[int, tuple[Value, ...]]
Users = dict[Value, list[Node]]


def updates(program: Program, carried: int) -> Updates:
    """The results among the first `carried` that update the operands of the same positions."""
    users = _users(program)
    chains = {i: _chain(program, i, users) for i in range(carried)}
    found = {i: chain for i, chain in chains.items() if chain is not None}
    writers = {chain.first for chain in found.values() if chain.first is not None}
    return {
        i: readers
        for i, chain in found.items()
        if _come_first(readers := chain.readers(users), writers)
        and _are_few(readers, program.inputs[i])
    }


def _come_first(readers: tuple[Value, ...], writers: set[Node]) -> bool:
    """Whether these can be computed before anything is updated. Kernels that are no nests may end
    with what comes behind them, which may need an update."""
    opaque = any(isinstance(value.node.primitive, Opaque) for value in readers)
    return not opaque and writers.isdisjoint(reached(readers))


def _are_few(readers: tuple[Value, ...], operand: Value) -> bool:
    """Whether it is less work to compute these ahead than to copy the operand."""
    return sum(value.size for value in readers) <= operand.size // 2


def _users(program: Program) -> Users:
    users: Users = {}
    for node in program.nodes():
        for value in dict.fromkeys(node.inputs):
            users.setdefault(value, []).append(node)
    return users


@dataclass(frozen=True)
class _Chain:
    """The way from a result down to the operand that it updates: rearranged as it lies, written to
    in parts, and the result that is rearranged back."""

    new: tuple[Value, ...]  # the result, and what it is a view of
    between: tuple[Value, ...]  # what only a part of the writes have been done to
    old: tuple[Value, ...]  # views of the operand, and that itself

    @property
    def first(self) -> Node | None:
        """The first to write; None if nothing does."""
        last = (*self.new, *self.between)[-1] if self.new else None
        return last.node if last is not None else None

    def readers(self, users: Users) -> tuple[Value, ...]:
        """What is made of the operand besides its update."""
        if not self.new:
            return ()
        own = {self.first, *(value.node for value in self.old)}
        nodes = dict.fromkeys(node for value in self.old for node in users[value])
        return tuple(value for node in nodes if node not in own for value in node.outputs)


def _chain(program: Program, position: int, users: Users) -> _Chain | None:
    """The chain of a result; None if it does not update the operand of its position, or something
    else needs what stands there between its writes, or a result does."""
    operand, result = program.inputs[position], program.outputs[position]
    if operand == result:
        return _Chain((), (), (operand,))
    way = tuple(_updated(result))
    writing = [at for at, value in enumerate(way) if _is_write(value.node)]
    if way[-1] != operand or not writing or not _lies_as_before(way):
        return None
    last, first = writing[0] + 1, writing[-1] + 1  # behind the last write, and behind the first
    new, between, old = way[:last], way[last:first], way[first:]
    alone = all(len(users[value]) == 1 for value in between)
    once = all(way[at].node.inputs.count(way[at + 1]) == 1 for at in writing)
    once = once and set(old).isdisjoint(way[first - 1].node.inputs[1:])
    given = sum(program.outputs.count(value) for value in way) == 1
    return _Chain(new, between, old) if alone and once and given else None


def _lies_as_before(way: tuple[Value, ...]) -> bool:
    """Whether the result lies where the operand does, whose views are written to."""
    strided: Strided | None = Strided.contiguous(way[-1].shape)
    for value in reversed(way[:-1]):
        primitive = value.node.primitive
        if isinstance(primitive, View) and strided is not None:
            strided = moved(strided, [primitive.move(value.node)])
    return strided == Strided.contiguous(way[0].shape)


def _updated(value: Value) -> Iterator[Value]:
    """A value, what it is an update or a view of, and so on."""
    found: Value | None = value
    while found is not None:
        yield found
        node = found.node
        seen = node.primitive in (RESHAPE, TRANSPOSE)
        found = node.inputs[0] if seen or _is_write(node) else None


def _is_write(node: Node) -> bool:
    """Whether it writes to parts of its first operand."""
    if isinstance(node.primitive, Scatter):
        return True
    if not isinstance(node.primitive, Assemble) or node.attributes["filled"]:
        return False
    starts, steps = node.attributes["places"][0]
    return node.inputs[0].shape == node.types[0].shape and not any(starts) and set(steps) <= {1}
