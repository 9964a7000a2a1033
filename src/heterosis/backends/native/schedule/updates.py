"""Which results of a loop's body may stand where the carried operand stands that they are made of:
it is written to in parts, and nothing needs what has stood there any more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from heterosis.ir.primitives.families import Assemble, Opaque, Scatter
from heterosis.ir.program import Node, Program, Value, reached

# The positions of results, and the values that are made of what stood there before: they have to be
# computed before any of these results is.
Updates = dict[int, tuple[Value, ...]]


def updates(program: Program, carried: int) -> Updates:
    """The results among the first `carried` that update the operands of the same positions."""
    users = _users(program)
    found: Updates = {}
    writers: set[Node] = set()
    for i in range(carried):
        chain = _chain(program, i, users)
        if chain is None:
            continue
        first = chain[-2].node if len(chain) > 1 else None
        readers = [node for node in users.get(chain[-1], ()) if first and node is not first]
        found[i] = tuple(value for node in readers for value in node.outputs)
        writers |= {first} if first else set()
    return {
        i: readers
        for i, readers in found.items()
        if _come_first(readers, writers) and _are_few(readers, program.inputs[i])
    }


def _come_first(readers: tuple[Value, ...], writers: set[Node]) -> bool:
    """Whether these can be computed before anything is updated. Kernels that are no nests may end
    with what comes behind them, which may need an update."""
    opaque = any(isinstance(value.node.primitive, Opaque) for value in readers)
    return not opaque and writers.isdisjoint(reached(readers))


def _are_few(readers: tuple[Value, ...], operand: Value) -> bool:
    """Whether it is less work to compute these ahead than to copy the operand."""
    return sum(value.size for value in readers) <= operand.size // 2


def _users(program: Program) -> dict[Value, list[Node]]:
    users: dict[Value, list[Node]] = {}
    for node in program.nodes():
        for value in dict.fromkeys(node.inputs):
            users.setdefault(value, []).append(node)
    return users


def _chain(
    program: Program, position: int, users: dict[Value, list[Node]]
) -> tuple[Value, ...] | None:
    """A result, what it is an update of, and so on to the operand of the same position, if nothing
    else needs what stands between."""
    operand, result = program.inputs[position], program.outputs[position]
    chain = tuple(_updated(result))
    if len(chain) == 1:
        return chain if result == operand else None
    alone = all(len(users[value]) == 1 and value not in program.outputs for value in chain[1:-1])
    once = all(a.node.inputs.count(b) == 1 for a, b in pairwise(chain))
    ends = chain[-1] == operand and operand not in program.outputs
    return chain if alone and once and ends and program.outputs.count(result) == 1 else None


def _updated(value: Value) -> Iterator[Value]:
    """A value, what it is an update of, and so on."""
    found: Value | None = value
    while found is not None:
        yield found
        found = _base(found.node)


def _base(node: Node) -> Value | None:
    """What a node writes to in parts."""
    if isinstance(node.primitive, Scatter):
        return node.inputs[0]
    if isinstance(node.primitive, Assemble) and not node.attributes["filled"]:
        base, (starts, steps) = node.inputs[0], node.attributes["places"][0]
        whole = base.shape == node.types[0].shape and not any(starts) and set(steps) <= {1}
        return base if whole else None
    return None
