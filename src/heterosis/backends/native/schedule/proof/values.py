"""What the elements of a program's values are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy

from heterosis.backends.native.schedule.proof import terms
from heterosis.backends.native.schedule.proof.terms import Terms
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.primitives.families import (
    Assemble,
    Elementwise,
    Gather,
    Opaque,
    Reduction,
    Scan,
    Scatter,
    View,
)
from heterosis.ir.program import CONSTANT, EXTENT, IOTA, Node, Program, Value


class Values(dict[Value, Terms]):
    """The elements of every value, given those of the inputs."""

    def __init__(self, program: Program, inputs: Mapping[Value, Terms]):
        super().__init__(inputs)
        self.names: dict[Node, str] = {}  # of kernels
        for node in program.nodes():
            self.names[node] = f"{node.primitive} {len(self.names)}"
            if node.outputs[0] not in self:
                found = map(numpy.asarray, self._results(node, [self[v] for v in node.inputs]))
                self.update(zip(node.outputs, found, strict=True))

    def opaque(self, node: Node, operands: Sequence[Terms]) -> list[Terms]:
        """The results of a node's kernel for these operands."""
        name = self.names[node]
        return [
            terms.opaque(f"{name} {i}", operands, type_.shape) for i, type_ in enumerate(node.types)
        ]

    def _results(self, node: Node, operands: list[Terms]) -> Sequence[Any]:
        primitive, attributes, type_ = node.primitive, node.attributes, node.types[0]
        if primitive is CONSTANT:
            return [terms.literal(attributes["value"], type_.dtype)]
        if primitive is EXTENT:
            return [terms.extent(attributes["value"])]
        if primitive is IOTA:
            return [terms.counted(numpy.arange(type_.size).reshape(type_.shape))]
        if isinstance(primitive, Opaque):
            return self.opaque(node, operands)
        if isinstance(primitive, Reduction):
            return [_reduced(node, operands, part) for part in range(len(node.types))]
        return [_result(node, operands)]


def _result(node: Node, operands: list[Terms]) -> Terms:
    primitive = node.primitive
    if isinstance(primitive, Elementwise):
        dtypes = node.inputs[0].dtype, node.types[0].dtype
        return terms.applied(primitive, *dtypes, operands)
    if isinstance(primitive, View):
        return terms.rearranged(operands[0], primitive.move(node))
    if isinstance(primitive, Gather):
        return _gathered(*operands)
    if isinstance(primitive, Assemble):
        return _assembled(node, operands)
    assert isinstance(primitive, Scatter), f"nothing is known of {primitive}"
    return _scattered(node, operands)


def _reduced(node: Node, operands: list[Terms], part: int) -> Terms:
    axes = node.attributes["axes"]
    if isinstance(node.primitive, Scan):
        return terms.scanned(operands, part, *axes)
    return terms.reduced(operands, part, axes)


def _gathered(table: Terms, *indices: Terms) -> Terms:
    rows = terms.rows_of(table, len(indices))
    return terms.gathered(rows, [_over(index, rows.ndim) for index in indices])


def _over(index: Terms, rank: int) -> Terms:
    """An index that is the same for all elements of its row."""
    return numpy.reshape(index, index.shape + (1,) * rank)


def _assembled(node: Node, operands: list[Terms]) -> Terms:
    made = numpy.zeros(node.types[0].shape, "uint64")
    if node.attributes["filled"]:
        made[...] = operands.pop(0)
    for part, (starts, steps) in zip(operands, node.attributes["places"], strict=True):
        terms.part_of(made, starts, steps, part.shape)[...] = part
    return made


def _scattered(node: Node, operands: list[Terms]) -> Terms:
    base, *indices, update = operands
    if not update.size:
        return base
    dtype, given = node.types[0].dtype, node.inputs[-1].dtype
    if given != dtype:
        update = terms.applied(conversion(dtype), given, dtype, [update])
    combine = node.attributes["combine"]
    if combine is not None:
        update = terms.applied(combine, dtype, dtype, [terms.OLD, update])
    lead = indices[0].ndim
    spread = [
        numpy.broadcast_to(_over(index, update.ndim - lead), update.shape) for index in indices
    ]
    return terms.scattered(base, spread, update)


def cost(program: Program) -> int:
    """How many elements there are."""
    return sum(prod(type_.shape) for node in program.nodes() for type_ in node.types)
