"""Runs graphs of ONNX, on arrays of ours or, where all is known, on NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from heterosis.models.onnx import operators
from heterosis.models.onnx.format import Function, Graph, Model, Node, Reference
from heterosis.models.onnx.operators import table
from heterosis.models.onnx.values import Following, Stored, array, is_known, on_host
from heterosis.runtime.errors import FormatError, HeterosisError, UnsupportedError

__all__ = ["Plan", "operators"]

Values = dict[str, Any]


class Plan:
    """A model whose operators are all done here, as its making checks."""

    def __init__(self, model: Model):
        self.model = model
        _check_versions(model.versions)
        unknown: dict[str, int] = {}
        for node, version in self._nodes(model.graph.nodes, model.versions):
            row = table.found(node.domain, node.operator, version)
            if row:
                _check(node, row, version)
            else:
                name = f"{node.domain}.{node.operator}" if node.domain else node.operator
                unknown[name] = unknown.get(name, 0) + 1
        if unknown:
            listed = ", ".join(f"{name} ({count})" for name, count in sorted(unknown.items()))
            raise UnsupportedError(
                f"the model uses {len(unknown)} operators that are not done here: {listed}. In "
                "brackets, how often. Export the model with others, or compute that part yourself."
            )

    def _nodes(
        self, nodes: Sequence[Node], versions: Mapping[str, int], inside: tuple[str, ...] = ()
    ) -> Iterator[tuple[Node, int]]:
        """The nodes, those inside of them too, that no function of the file's stands for, and the
        version of their operators; `inside` of which functions they are."""
        for node in nodes:
            version = _version(node, versions)
            function = self.model.functions.get((node.domain, node.operator))
            if function and not table.found(node.domain, node.operator, version):
                name = f"{node.domain}.{node.operator}"
                if name in inside:
                    raise FormatError(f"the function {name} calls itself.")
                _check_versions(function.versions)
                yield from self._nodes(function.nodes, function.versions, (*inside, name))
            else:
                yield node, version
            for graph in _graphs(node):
                yield from self._nodes(graph.nodes, versions, inside)

    def run(self, values: Values) -> list[Any]:
        """The outputs of the graph, for the values of its inputs and stored arrays."""
        frame = Frame(self.model, values, self.model.versions)
        return [array(value) for value in frame.run(self.model.graph)]


class Frame:
    """The values that a graph's nodes see, and what they are read with: the versions of operators,
    and the attributes of the function that the nodes are in."""

    def __init__(
        self,
        model: Model,
        values: Values,
        versions: Mapping[str, int],
        attributes: Mapping[str, Any] | None = None,
    ):
        self.model, self.values, self.versions = model, values, versions
        self.attributes = attributes or {}

    def run(self, graph: Graph | Function) -> list[Any]:
        """The outputs of a graph, or of a function's."""
        last = _last_uses(graph)
        for i, node in enumerate(graph.nodes):
            try:
                results = self._results(node)
            except HeterosisError as error:
                _tell(error, node)
                raise
            self.values |= {n: r for n, r in zip(node.outputs, results, strict=False) if n}
            for name in node.inputs:
                if last.get(name) == i:
                    self.values.pop(name, None)
        return [self._value(name, "the graph's outputs") for name in graph.outputs]

    def _value(self, name: str, reader: object) -> Any:
        if not name:
            return None
        if name not in self.values:
            raise FormatError(f"{reader}: {name!r} is read, which nothing before it computes.")
        return self.values[name]

    def _results(self, node: Node) -> Sequence[Any]:
        inputs = [self._value(name, node) for name in node.inputs]
        attributes = self._attributes(node)
        version = _version(node, self.versions)
        row = table.found(node.domain, node.operator, version)
        if row is None:
            return self._function(node, inputs, attributes)
        asked = {"_outputs": len(node.outputs), "_version": version, "_run": self._inner}
        attributes |= {name: asked[name] for name in row.asks}
        self._settle(node)
        results = _computed(row, inputs, attributes, len(node.outputs))
        if len(results) < sum(map(bool, node.outputs)):
            raise UnsupportedError(
                f"{node.operator}: {len(node.outputs)} results are asked for, and {len(results)} "
                "are computed here."
            )
        return results

    def _settle(self, node: Node) -> None:
        """Compute what the graphs in a node read and follows from parameters here: not in a branch
        or a loop, from where it would not be seen again."""
        for name in {name for graph in _graphs(node) for name in _read(graph)}:
            value = self.values.get(name)
            if isinstance(value, Following):
                value.array()

    def _attributes(self, node: Node) -> dict[str, Any]:
        """A node's attributes; those that refer to what its function was called with, as that."""
        found = {
            name: self.attributes.get(value.name) if isinstance(value, Reference) else value
            for name, value in node.attributes.items()
        }
        return {name: value for name, value in found.items() if value is not None}

    def _function(self, node: Node, inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
        function = self.model.functions[node.domain, node.operator]
        values: Values = dict.fromkeys(function.inputs)
        values |= dict(zip(function.inputs, inputs, strict=False))
        given = function.defaults | attributes
        return Frame(self.model, values, function.versions, given).run(function)

    def _inner(self, graph: Graph, *arrays: Any) -> list[Any]:
        """The outputs of a graph in a node, which sees what is around it."""
        values = self.values | graph.arrays
        values |= {i.name: a for i, a in zip(graph.inputs, arrays, strict=True)}
        return Frame(self.model, values, self.versions, self.attributes).run(graph)


def _computed(
    row: table.Operator, inputs: list[Any], attributes: dict[str, Any], count: int
) -> tuple[Any, ...]:
    """The results of an operator, on the host where all that it takes is known."""

    @cache
    def by_numpy() -> tuple[Any, ...]:
        assert row.on_host is not None
        return _as_tuple(row.on_host(*map(on_host, inputs), **attributes))

    @cache
    def by_ours() -> tuple[Any, ...]:
        return _as_tuple(row.compute(*_placed(row, inputs), **attributes))

    if not row.on_host or not all(value is None or is_known(value) for value in inputs):
        return by_ours()
    if not any(isinstance(value, Stored) for value in inputs):
        return by_numpy()
    # Parameters change by training, and gradients go to them: no number takes their place.
    return tuple(
        Following(partial(_item, by_numpy, i), partial(_array, by_ours, i)) for i in range(count)
    )


def _item(results: Callable[[], tuple[Any, ...]], place: int) -> Any:
    return results()[place]


def _array(results: Callable[[], tuple[Any, ...]], place: int) -> Any:
    """The same as an array of ours: what a branch hands on may have come with the file."""
    return array(results()[place])


def _as_tuple(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def _placed(row: table.Operator, inputs: list[Any]) -> list[Any]:
    """The inputs as the operator takes them."""
    if row.keeps:
        return inputs
    names = [*row.inputs[: len(inputs)], *[row.rest] * (len(inputs) - len(row.inputs))]
    return [
        on_host(value) if name in row.hosted else array(value)
        for name, value in zip(names, inputs, strict=True)
    ]


def _check_versions(versions: Mapping[str, int]) -> None:
    """Refuse what comes after the versions that are known: what operators mean may have changed."""
    version = versions.get("", 1)
    if version > table.LATEST:
        raise UnsupportedError(
            f"the model uses version {version} of ONNX's operators; known here are those up to "
            f"{table.LATEST}. Export it for an older version (opset)."
        )


def _check(node: Node, row: table.Operator, version: int) -> None:
    """Refuse what an operator's row does not know: nothing is left out silently."""
    strange = sorted(set(node.attributes) - row.attributes)
    if strange:
        raise UnsupportedError(f"{node}: {strange} are not done here for version {version}.")
    missing = sorted(row.wanted - set(node.attributes))
    if missing:
        raise FormatError(f"{node} lacks {missing}, which it must have in version {version}.")
    count = len(node.inputs)
    if count < row.required or (row.rest is None and count > len(row.inputs)):
        raise FormatError(
            f"{node} has {count} inputs; in version {version} it takes {', '.join(row.inputs)}, "
            f"{row.required} of them at least."
        )


def _version(node: Node, versions: Mapping[str, int]) -> int:
    return versions.get(node.domain, versions.get("", 1))


def _graphs(node: Node) -> Iterator[Graph]:
    """The graphs among a node's attributes."""
    for value in node.attributes.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Graph):
                yield item


def _read(graph: Graph) -> Iterator[str]:
    """The names that the nodes of a graph, and those inside of them, read."""
    yield from graph.outputs
    for node in graph.nodes:
        yield from node.inputs
        for inner in _graphs(node):
            yield from _read(inner)


def _last_uses(graph: Graph | Function) -> dict[str, int]:
    """The node behind which a value is not read any more; none for what inner graphs may read."""
    if any(True for node in graph.nodes for _ in _graphs(node)):
        return {}
    last = {name: i for i, node in enumerate(graph.nodes) for name in node.inputs}
    return {name: i for name, i in last.items() if name not in graph.outputs}


def _tell(error: HeterosisError, node: Node) -> None:
    """Put the node that an error came from into its text, the innermost one alone."""
    if error.args and not getattr(error, "of_node", False):
        error.of_node = True  # type: ignore[attr-defined]
        error.args = (f"{error.args[0]} (ONNX: {node})", *error.args[1:])
