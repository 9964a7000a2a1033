"""Which elementwise work a kernel can do on its result before storing it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from heterosis.backends.native.codegen.epilogue import Beside, Epilogue, Finished
from heterosis.backends.native.codegen.epilogue import Step as EpilogueStep
from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.codegen.nest import (
    Apply,
    Argument,
    Buffer,
    Extent,
    Literal,
    Load,
    Slot,
    Step,
    known,
)
from heterosis.ir import views
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import Node, Program, Value, reached
from heterosis.ir.strided import Strided

# Nodes and operands of one epilogue: beyond, registers run out.
_MOST_NODES, _MOST_OPERANDS = 48, 6

FINISHED = Buffer("finished", 0)  # where steps find the kernel's own result


class Uses:
    """Who uses the values of a program, and in which order its nodes stand."""

    def __init__(self, program: Program):
        self.order: dict[Node, int] = {}
        self.users: dict[Value, list[Node]] = {}
        self.outputs = frozenset(program.outputs)
        for node in _soonest_first(program):
            self.order[node] = len(self.order)
            for operand in dict.fromkeys(node.inputs):
                self.users.setdefault(operand, []).append(node)

    def of(self, value: Value) -> list[Node]:
        return self.users.get(value, [])


def _soonest_first(program: Program) -> Iterator[Node]:
    """The nodes, operands before users: first what those results need that are fewest steps away.

    A gradient of weights is then computed as soon as what it is made of, which is still in the
    cache, and need not stay until all layers before have theirs.
    """
    steps: dict[Node, int] = {}
    for node in program.nodes():
        steps[node] = 1 + max((steps[value.node] for value in node.inputs), default=0)
    outputs = sorted(program.outputs, key=lambda value: steps[value.node])
    return reached(outputs)


def candidates(
    source: Value, uses: Uses, ready: Callable[[Value], bool]
) -> Iterator[tuple[Value, set[Node]]]:
    """Values that could be stored in place of `source`, the last ones first, and what lies between.

    Everything between is elementwise and used by nothing else; other operands are `ready`.
    """
    inside = {source}
    found: list[Value] = []
    queue = [(uses.order[user], user) for user in uses.of(source)]
    heapq.heapify(queue)
    seen: set[int] = set()
    while queue and len(inside) < _MOST_NODES:
        order, node = heapq.heappop(queue)
        if order in seen:
            continue
        seen.add(order)
        if not _joins(node, inside, ready):
            continue
        (made,) = node.outputs
        inside.add(made)
        if isinstance(node.primitive, Elementwise) and made.dtype == source.dtype:
            found.append(made)
        for user in uses.of(made):
            heapq.heappush(queue, (uses.order[user], user))
    for result in reversed(found):
        between = _between(source, result, inside)
        if _is_alone(between, result, uses):
            yield result, {value.node for value in between} - {source.node, result.node}


def _joins(node: Node, inside: set[Value], ready: Callable[[Value], bool]) -> bool:
    if node.primitive is views.RESHAPE:
        return True
    return isinstance(node.primitive, Elementwise) and all(
        operand in inside or ready(operand) for operand in node.inputs
    )


def _between(source: Value, result: Value, inside: set[Value]) -> set[Value]:
    """The values that lead from `source` to `result`, with both."""
    found: set[Value] = set()
    stack = [result]
    while stack:
        value = stack.pop()
        if value in inside and value not in found:
            found.add(value)
            stack.extend(() if value == source else value.node.inputs)
    return found


def _is_alone(between: set[Value], result: Value, uses: Uses) -> bool:
    """Whether nothing but `result` needs what lies before it."""
    nodes = {value.node for value in between}
    return all(
        value not in uses.outputs and all(user in nodes for user in uses.of(value))
        for value in between
        if value != result
    )


@dataclass(frozen=True)
class Attached:
    """An epilogue with what is stored in the end, its operands, and its numbers."""

    result: Value
    code: Epilogue
    inputs: tuple[Place, ...]
    numbers: tuple[int, ...]


def attached(result: Value, steps: list[Step], shape: tuple[int, int, int]) -> Attached | None:
    """The steps of a nest over (batches, rows, columns) as an epilogue, if they can be one."""
    made: list[EpilogueStep] = []
    inputs: list[Place] = []
    strides: list[int] = []
    further: list[int] = []
    for step in steps:
        match step:
            case Load(operand, ()) if operand.buffer == FINISHED:
                made.append(Finished(operand.dtype))
            case Load(operand, ()):
                own = tuple(map(known, operand.strides))
                along = own[2] if own[2] in (0, 1) else None
                alike = not any(own[:2])
                made.append(Beside(len(inputs), operand.dtype, along, alike))
                strided = Strided(shape, own, known(operand.offset))
                inputs.append(Place(operand.buffer, operand.dtype, strided))
                strides += own
            case Extent(value):
                made.append(Extent(Slot(len(further))))
                further.append(known(value))
            case Argument(index, dtype):
                made.append(Argument(Slot(len(further)), dtype))
                further.append(known(index))
            case Apply() | Literal():
                made.append(step)
            case _:
                return None
    if len(inputs) > _MOST_OPERANDS or not isinstance(made[-1], Apply):
        return None
    return Attached(result, Epilogue(tuple(made)), tuple(inputs), (*strides, *further))
