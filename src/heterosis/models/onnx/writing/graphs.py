"""Graphs while they are written: nodes, and the arrays that they are given."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy

from heterosis.models.onnx import tensors
from heterosis.models.onnx.format import Graph, Input, Node

VERSION = 18  # of the operators: what common runtimes have long known


def described(name: str, dtype: str, shape: Sequence[Any]) -> Input:
    """An array as a file describes it: extents that are open by their texts."""
    return Input(name, dtype, tuple(n if isinstance(n, int) else str(n) for n in shape))


class Names:
    """Names that are each given once in a model."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counts: dict[str, Iterator[int]] = {}

    def fresh(self, wanted: str) -> str:
        """`wanted`, or the same with a number if it is taken."""
        name = wanted
        while name in self._used:
            name = f"{wanted}_{next(self._counts.setdefault(wanted, itertools.count(1)))}"
        self._used.add(name)
        return name


class GraphWriter:
    """The nodes of one graph, in order. Arrays stand in the outermost one, which all others see."""

    def __init__(self, outer: GraphWriter | None = None):
        self.outermost: GraphWriter = outer.outermost if outer else self
        self.names: Names = outer.names if outer else Names()
        self.nodes: list[Node] = []
        self.arrays: dict[str, numpy.ndarray] = {}
        self.label: str = outer.label if outer else ""  # of the operation that is being written
        self._known: dict[Any, str] = {}
        self._hosts: dict[str, numpy.ndarray] = {}  # of small arrays that are known

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The only result of a new node."""
        (name,) = self.nodes_of(operator, inputs, 1, **attributes)
        return name

    def nodes_of(
        self, operator: str, inputs: Sequence[str], outputs: int, **attributes: Any
    ) -> tuple[str, ...]:
        """The results of a new node. Inputs that are left out are ''; so are attributes of None."""
        label = f"{self.label}{operator}"
        results = tuple(self.names.fresh(f"{label}_output") for _ in range(outputs))
        given = {name: value for name, value in attributes.items() if value is not None}
        end = max((i + 1 for i, name in enumerate(inputs) if name), default=0)
        name = self.names.fresh(label)
        self.nodes.append(Node(operator, "", name, tuple(inputs[:end]), results, given))
        return results

    def guarded(self, name: str, failures: str, expected: str) -> str:
        """An array, if a row of one int64 is 0; else running it fails, and the error names a node
        that says what is expected.

        ONNX has no errors of its own. A reshape fails where it needs more elements than there are:
        the shape has another dimension, of 2, where something has failed.
        """
        before, self.label = self.label, f"expects {expected}: "
        ends = self.node("Min", failures, self.whole(1))
        more = self.node("Slice", self.whole(2), self.whole(0), ends)
        shape = self.node("Concat", self.node("Shape", name), more, axis=0)
        found = self.node("Reshape", name, shape)
        self.label = before
        return found

    # -- arrays that are known ------------------------------------------------------------------

    def array(self, host: Any, dtype: str) -> str:
        """A small array; equal ones are there once."""
        found = numpy.asarray(host).astype(tensors.numpy_dtype(dtype))
        key = found.tobytes(), dtype, found.shape
        outermost = self.outermost
        if key not in outermost._known:
            name = outermost._known[key] = outermost.held("constant", found)
            outermost._hosts[name] = found
        return outermost._known[key]

    def cast(self, name: str, dtype: str) -> str:
        """Elements converted, as ONNX does; those that are known, at once."""
        host = self.outermost._hosts.get(name)
        if host is not None:
            with numpy.errstate(all="ignore"):
                return self.array(host, dtype)
        return self.node("Cast", name, to=tensors.NUMBERS[dtype])

    def held(self, name: str, host: numpy.ndarray) -> str:
        """An array under a name, or one like it."""
        name = self.outermost.names.fresh(name)
        self.outermost.arrays[name] = host
        return name

    def whole(self, *numbers: int) -> str:
        """A row of int64."""
        return self.array(numbers, "int64")

    # -- the whole --------------------------------------------------------------------------------

    def graph(
        self, name: str, inputs: Sequence[Input], outputs: Sequence[tuple[str, Input]]
    ) -> Graph:
        """The graph; of each output, what computes it and its description. What no output needs
        is left out."""
        for source, described in outputs:
            self.nodes.append(Node("Identity", "", "", (source,), (described.name,), {}))
        results = tuple(described.name for _, described in outputs)
        nodes = _needed(self.nodes, results)
        used = {name for node in nodes for name in _reads(node)}
        arrays = {n: host for n, host in self.arrays.items() if n in used}
        types = {described.name: described for _, described in outputs}
        return Graph(name, tuple(nodes), arrays, tuple(inputs), results, types)


def _needed(nodes: Sequence[Node], results: Sequence[str]) -> list[Node]:
    wanted, kept = set(results), []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted.update(_reads(node))
            kept.append(node)
    return _without_copies(kept[::-1], results)


def _without_copies(nodes: list[Node], results: Sequence[str]) -> list[Node]:
    """Nodes that only rename what one node here makes for them alone give way to it."""
    readers: dict[str, int] = {}
    for node in nodes:
        for name in _reads(node):
            readers[name] = readers.get(name, 0) + 1
    made = {name for node in nodes for name in node.outputs if node.operator != "Identity"}
    renamed = {
        node.inputs[0]: node.outputs[0]
        for node in nodes
        if node.operator == "Identity"
        and node.outputs[0] in results
        and node.inputs[0] in made
        and readers[node.inputs[0]] == 1
    }
    kept = []
    for node in nodes:
        if node.operator == "Identity" and renamed.get(node.inputs[0]) == node.outputs[0]:
            continue
        outputs = tuple(renamed.get(name, name) for name in node.outputs)
        kept.append(
            Node(node.operator, node.domain, node.name, node.inputs, outputs, node.attributes)
        )
    return kept


def _reads(node: Node) -> Iterator[str]:
    """All names that a node, and the graphs in it, look up."""
    yield from node.inputs
    for value in node.attributes.values():
        if isinstance(value, Graph):
            yield from value.outputs
            for inner in value.nodes:
                yield from _reads(inner)
