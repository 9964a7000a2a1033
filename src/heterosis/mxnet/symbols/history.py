"""What was recorded, as a symbol: the calls of operations on the tape, captured once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis import _core, capture
from heterosis.autograd import tape
from heterosis.autograd.derivative import Differentiable
from heterosis.autograd.tape import Entry, Leaf, Node, ProgramNode, Source
from heterosis.ir.calls import Call
from heterosis.mxnet.symbols.capturing import graph_of
from heterosis.mxnet.symbols.symbol import Symbol
from heterosis.ops.record import KEY, REGISTRY
from heterosis.runtime import modes
from heterosis.runtime.errors import AutogradError, UnsupportedError


def symbol_of(array: _core.ndarray) -> Symbol:
    """The computation of `array` from the variables and other arrays, named var0, var1, ..."""
    head = tape.source_of(array)
    if not isinstance(head, Entry):
        raise AutogradError(
            f"get_symbol: the array of shape {array.shape} is no result of recorded operations. "
            "Compute it from variables, inside 'with autograd.record():'."
        )
    history = _History(head)
    with modes.switched(recording=False):
        captured = capture.capture(history.run, tuple(history.inputs), {})
    return Symbol(graph_of(captured, lambda source: (f"var{source.position}", {})))


class _History:
    """The calls that lead to a result, in order, and stand-ins for the arrays they begin with."""

    def __init__(self, head: Entry):
        self.head = head
        self.inputs: list[_core.ndarray] = []
        self._variables: dict[Leaf, int] = {}  # places among the inputs
        self._calls = [(node, self._operands(node)) for node in _reached(head)]

    def _operands(self, node: ProgramNode) -> list[Any]:
        """For each operand a place among the inputs, the result of another call, or a number."""
        given = zip(node.sources, node.others, node.of.inputs, strict=True)
        return [
            source
            if isinstance(source, Entry)
            else other
            if value is None or other is not None
            else self._input(source, value.dtype, value.shape)
            for source, other, value in given
        ]

    def _input(self, source: Source | None, dtype: str, shape: tuple[int, ...]) -> _Place:
        known = self._variables.get(source) if isinstance(source, Leaf) else None
        if known is not None:
            return _Place(known)
        if isinstance(source, Leaf):
            self._variables[source] = len(self.inputs)
        self.inputs.append(_core.unreadable(dtype, shape, "a variable of a symbol has no elements"))
        return _Place(len(self.inputs) - 1)

    def run(self, *inputs: Any) -> Any:
        """All calls once more."""
        results: dict[Node, tuple[Any, ...]] = {}

        def value(operand: Any) -> Any:
            if isinstance(operand, Entry):
                return results[operand.node][operand.index]
            return inputs[operand] if isinstance(operand, _Place) else operand

        for node, operands in self._calls:
            (call,) = node.of.program.calls
            found = _called(call, [value(operand) for operand in operands])
            results[node] = found if isinstance(found, tuple) else (found,)
        return value(self.head)


class _Place(int):
    """A position among the inputs; other whole numbers are operands themselves."""


def _reached(head: Entry) -> list[ProgramNode]:
    """The nodes that a result was computed by, the first call first."""
    found: set[Node] = set()
    stack: list[Node] = [head.node]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            _check(node)
            stack.extend(s.node for s in node.sources if isinstance(s, Entry))
    return sorted(found, key=lambda node: node.number)


def _check(node: Node) -> None:
    if not isinstance(node, ProgramNode) or not _is_single(node.of):
        raise UnsupportedError(
            f"get_symbol: {node.name} is no single operation. A hybridized block has a symbol of "
            "its own: export it. Functions and gradients of gradients have none."
        )
    if node.derivative is None:
        raise AutogradError(
            f"get_symbol: the record of {node.name} is gone, since backward has been here before. "
            "Keep it with backward(retain_graph=True), or ask before backward."
        )


def _is_single(of: Differentiable) -> bool:
    """Whether it is the call of one operation, outside of what is hybridized."""
    if of.whole:
        return False
    calls = [(call.operands, call.results) for call in of.program.calls or ()]
    return calls == [(of.inputs, of.program.outputs)]


def _called(call: Call, operands: Sequence[Any]) -> Any:
    """An operation, called with what the core was given; keys for random numbers are drawn anew."""
    record = REGISTRY[call.operation]
    given = record.arguments(operands, call.attributes)
    return record.operation(**{p.name: value for p, use, value in given if use != KEY})


__all__ = ["symbol_of"]
