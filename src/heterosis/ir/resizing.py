"""Programs with other extents: sizes in place of numbers, numbers in place of sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from heterosis.ir.calls import Call
from heterosis.ir.program import Node, Program, Value, reached
from heterosis.ir.sizes import Extent, Size
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import TracedSize, untraced
from heterosis.ir.types import TensorType

Change = Callable[[Any], Any]  # of one extent that is no plain number


def at(values: Mapping[str, int]) -> Change:
    """Numbers for sizes, whose names have these values."""
    return lambda size: untraced(size).at(values)


def resized(program: Program, change: Change, *, calls: bool = True) -> Program:
    """`program` with every extent that is no plain number changed, in types and attributes; with
    its calls or without."""
    known: dict[Value, Value] = {}

    def visit(node: Node) -> None:
        inputs = tuple(known[value] for value in node.inputs)
        attributes = {name: changed(value, change) for name, value in node.attributes.items()}
        types = tuple(resized_type(type_, change) for type_ in node.types)
        made = Node(node.primitive, inputs, attributes, types)
        known.update(zip(node.outputs, made.outputs, strict=True))

    for value in program.inputs:
        visit(value.node)
    for node in program.nodes():
        if node.types and Value(node) not in known:
            visit(node)
    inputs = tuple(known[value] for value in program.inputs)
    outputs = tuple(known[value] for value in program.outputs)
    found = program.calls if calls else None
    new = found and tuple(_resized_call(call, known, visit, change) for call in found)
    return Program(inputs, outputs, program.name, new)


def _resized_call(
    call: Call, known: dict[Value, Value], visit: Callable[[Node], None], change: Change
) -> Call:
    for node in tuple(reached(call.values, known)):
        if Value(node) not in known:  # what a call speaks of, and no result needs
            visit(node)
    pullback = call.pullback and replace(
        call.pullback,
        program=resized(call.pullback.program, change),
        saved=tuple(known[v] for v in call.pullback.saved),
    )
    return replace(
        call,
        operands=tuple(None if v is None else known[v] for v in call.operands),
        attributes=changed(call.attributes, change),
        results=tuple(known[v] for v in call.results),
        held=tuple(known[v] for v in call.held),
        steps=tuple(_resized_call(step, known, visit, change) for step in call.steps),
        pullback=pullback,
    )


def changed(value: Any, change: Change) -> Any:
    """An attribute with its extents changed."""
    if type(value) in (Size, TracedSize):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(changed(item, change) for item in value)
    return resized(value, change) if isinstance(value, Program) else value


def resized_type(type_: TensorType, change: Change) -> TensorType:
    """A type with its extents changed."""
    if not _has_sizes(type_.shape):
        return type_
    return TensorType(changed(type_.shape, change), type_.dtype, type_.weak)


def without_gaps(program: Program, layouts: Sequence[Strided | None]) -> list[Strided]:
    """The layouts of the inputs of `program`: without gaps where none is given."""
    pairs = zip(program.inputs, layouts, strict=True)
    return [layout or Strided.contiguous(value.shape) for value, layout in pairs]


def _has_sizes(shape: tuple[Extent, ...]) -> bool:
    return any(type(extent) is not int for extent in shape)
