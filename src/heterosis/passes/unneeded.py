"""Choices and loops without the operands and results that nothing needs.

What a loop carries is needed if its last value is, or if another result of a turn is made of it;
dead code within the programs goes by itself, since these have the nodes that their results reach.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP, WHILE_LOOP_BACK
from heterosis.ir.primitives.families import Control
from heterosis.ir.program import Node, Program, Value, reached, with_inputs


def pruned(program: Program) -> Program:
    """`program`, whose choices and loops take and give what is needed alone."""
    nodes = list(program.nodes())
    if not any(isinstance(node.primitive, Control) for node in nodes):
        return program
    needed = {value for node in nodes for value in node.inputs} | {*program.outputs}
    made: dict[Value, Value] = {}
    for node in nodes:
        here = with_inputs(node, tuple(made.get(v, v) for v in node.inputs))
        if isinstance(node.primitive, Control):
            kept = [i for i, value in enumerate(node.outputs) if value in needed]
            pruned_ = _pruned_back if node.primitive is WHILE_LOOP_BACK else _pruned
            made |= pruned_(node, here, kept)
        else:
            made |= dict(zip(node.outputs, here.outputs, strict=True))
    outputs = tuple(made[v] for v in program.outputs)
    if outputs == program.outputs:
        return program
    return Program(program.inputs, outputs, program.name)


def _pruned(node: Node, here: Node, kept: Sequence[int]) -> dict[Value, Value]:
    """The needed results of `node` by those of the smaller one that is made of `here`."""
    names = ["then", "otherwise"] if node.primitive is COND else ["body"]
    first = int(node.primitive is COND)  # of the operands that the programs are given
    carried = node.attributes.get("carried", 0)
    asked = (node.attributes["condition"],) if node.primitive is WHILE_LOOP else ()
    programs = [node.attributes[name] for name in names]
    outputs = _needed_outputs([*programs, *asked], len(programs), kept, carried)
    inputs = _inputs([*programs, *asked], len(programs), outputs)
    inputs = sorted({*inputs, *(i for i in outputs if i < carried)})
    if len(outputs) == len(node.types) and len(inputs) == len(programs[0].inputs):
        return dict(zip(node.outputs, here.outputs, strict=True))
    attributes = dict(node.attributes)
    for name in names:
        attributes[name] = _smaller(node.attributes[name], inputs, outputs)
    if node.primitive is WHILE_LOOP:
        attributes["condition"] = _smaller(node.attributes["condition"], inputs, (0,))
    if "carried" in attributes:
        attributes["carried"] = sum(i < carried for i in inputs)
    if node.primitive is SCAN:
        end = carried + attributes["shared"]
        attributes["shared"] = sum(carried <= i < end for i in inputs)
    operands = (*here.inputs[:first], *(here.inputs[first + i] for i in inputs))
    types = tuple(node.types[i] for i in outputs)
    found = Node(node.primitive, operands, attributes, types)
    return {node.outputs[i]: value for i, value in zip(outputs, found.outputs, strict=True)}


def _pruned_back(node: Node, here: Node, kept: Sequence[int]) -> dict[Value, Value]:
    """The same for what goes back through a loop, which keeps what its turns are given: this is
    needed if the way back asks for it, or the condition, or what is made of it and needed."""
    back, condition, body = (node.attributes[name] for name in ("back", "condition", "body"))
    end, carried = len(node.inputs) - node.attributes["received"], node.attributes["carried"]
    outputs = set(kept)
    while more := {i - end for i in _inputs([back], 1, outputs) if i >= end} - outputs:
        outputs |= more
    results = sorted(outputs)
    used = {i for i in _inputs([back, condition], 1, results) if i < end}
    while more := set(_inputs([body], 1, [i for i in used if i < carried])) - used:
        used |= more
    state = sorted(i for i in used if i < carried)
    around = sorted(used)
    places = [*around, *(end + i for i in results)]
    attributes = node.attributes | {
        "condition": _smaller(condition, around, (0,)),
        "body": _smaller(body, around, state),
        "back": _smaller(back, places, results),
        "carried": len(state),
        "received": len(results),
    }
    operands = tuple(here.inputs[i] for i in places)
    found = Node(node.primitive, operands, attributes, tuple(node.types[i] for i in results))
    return dict(zip((node.outputs[i] for i in results), found.outputs, strict=True))


def _needed_outputs(
    programs: Sequence[Program], many: int, kept: Iterable[int], carried: int
) -> list[int]:
    """The results of the first `many` programs that are `kept`, and what these make necessary:
    who carries something on has to be given it."""
    outputs = set(kept)
    while True:
        inputs = _inputs(programs, many, outputs)
        more = {i for i in inputs if i < carried} - outputs
        if not more:
            return sorted(outputs)
        outputs |= more


def _inputs(programs: Sequence[Program], many: int, outputs: Collection[int]) -> list[int]:
    """The positions of the inputs that are needed for some results of the first `many` programs,
    and for all of the others."""
    found: set[int] = set()
    for number, program in enumerate(programs):
        results = [program.outputs[i] for i in outputs] if number < many else program.outputs
        nodes = set(reached(results))
        found |= {i for i, value in enumerate(program.inputs) if value.node in nodes}
    return sorted(found)


def _smaller(program: Program, inputs: Iterable[int], outputs: Iterable[int]) -> Program:
    return Program(
        tuple(program.inputs[i] for i in inputs),
        tuple(program.outputs[i] for i in outputs),
        program.name,
    )
