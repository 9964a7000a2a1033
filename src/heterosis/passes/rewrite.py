"""The engine of the rule tables: every node whose surroundings fit a pattern is replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import Node, Program, Value, with_inputs

# A primitive, a class of them, or one of these followed by patterns of its first operands.
Pattern: TypeAlias = Any


@dataclass(frozen=True)
class Rule:
    """One row of a table.

    Where `pattern` fits and `guard` agrees, the node's only result becomes `replacement(node)`.
    """

    name: str
    pattern: Pattern
    replacement: Callable[[Node], Value]
    note: str  # before -> after
    guard: Callable[[Node], bool] = lambda node: True

    def fits(self, node: Node) -> bool:
        return _fits(node, self.pattern) and self.guard(node)


def _fits(node: Node, pattern: Pattern) -> bool:
    if not _is(node.primitive, pattern):
        return False
    operands = pattern[1:] if isinstance(pattern, tuple) else ()
    inputs = zip(node.inputs, operands, strict=False)
    return all(_fits(value.node, own) for value, own in inputs)


def _is(primitive: Primitive, pattern: Pattern) -> bool:
    head = pattern[0] if isinstance(pattern, tuple) else pattern
    return primitive is head if isinstance(head, Primitive) else isinstance(primitive, head)


def rewritten(program: Program, rules: Sequence[Rule]) -> Program:
    """`program` with the rules applied, operands first, until none fits anywhere."""
    rewriter = _Rewriter(rules)
    for node in program.nodes():
        rewriter.visit(node)
    outputs = tuple(rewriter.known[output] for output in program.outputs)
    return Program(program.inputs, outputs, program.name)


class _Rewriter:
    def __init__(self, rules: Sequence[Rule]):
        self.rules = rules
        self.known: dict[Value, Value] = {}  # what has become of a value; final ones map to itself
        self._by_primitive: dict[Primitive, list[Rule]] = {}

    def visit(self, node: Node) -> None:
        """Find the final form of a node whose operands have theirs."""
        made = with_inputs(node, tuple(self.known[value] for value in node.inputs))
        for before, after in zip(node.outputs, made.outputs, strict=True):
            self.known[before] = self._final(after)

    def _final(self, value: Value) -> Value:
        if value in self.known:
            return self.known[value]
        candidates = self._candidates(value.node.primitive)
        rule = next((rule for rule in candidates if rule.fits(value.node)), None)
        if rule is None:
            self.known[value] = value
            return value
        found = rule.replacement(value.node)
        same = (found.shape, found.dtype) == (value.shape, value.dtype)
        assert same, f"{rule.name}: {value.type} has become {found.type}"
        self._visit_new(found.node)
        self.known[value] = self.known[found]
        return self.known[value]

    def _candidates(self, primitive: Primitive) -> list[Rule]:
        """The rules that are about `primitive`."""
        found = self._by_primitive.get(primitive)
        if found is None:
            found = [rule for rule in self.rules if _is(primitive, rule.pattern)]
            self._by_primitive[primitive] = found
        return found

    def _visit_new(self, node: Node) -> None:
        """Visit what a replacement has added."""
        if node.outputs[0] in self.known:
            return
        for value in node.inputs:
            self._visit_new(value.node)
        self.visit(node)
