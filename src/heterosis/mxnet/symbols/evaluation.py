"""Runs graphs: every node calls the operation that its operator names, on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heterosis import _core
from heterosis.mxnet.graph import Entry, Node, reached, variables
from heterosis.mxnet.operators import lookup
from heterosis.ops.unsized import Unsized
from heterosis.runtime.errors import ArgumentError, UnsupportedError


class Plan:
    """A graph with its operators looked up. Raises one error that lists all unknown ones."""

    def __init__(self, heads: Sequence[Entry]):
        self.heads = list(heads)
        self.nodes = reached(heads)
        _check_known(self.nodes)
        self._calls = [
            (node, lookup.found(node.operator), _attributes(node))
            for node in self.nodes
            if not node.is_variable
        ]

    def run(self, arrays: Mapping[str, Any]) -> list[Any]:
        """The results for the arrays of the variables, by name."""
        results: dict[Node, Sequence[Any]] = {
            node: (arrays[node.name],) for node in self.nodes if node.is_variable
        }
        for node, run, attributes in self._calls:
            given = [_result(results, entry) for entry in node.inputs]
            made = lookup.call(node.operator, run, given, attributes)
            results[node] = made if isinstance(made, tuple | list) else (made,)
        return [_ready(_result(results, entry)) for entry in self.heads]


def _attributes(node: Node) -> dict[str, Any]:
    found = lookup.values_of(node.parameters())
    return found | {"subgraphs": [*map(_function, node.subgraphs)]} if node.subgraphs else found


def _function(heads: Sequence[Entry]) -> Callable[[Sequence[Any]], list[Any]]:
    """A graph inside of a node, as a function of the arrays for its variables, in their order."""
    plan = Plan(heads)
    names = [node.name for node in variables(heads)]

    def run(arrays: Sequence[Any]) -> list[Any]:
        if len(arrays) != len(names):
            raise ArgumentError(f"{len(arrays)} arrays for the inputs {names} of a sub-graph.")
        return plan.run(dict(zip(names, arrays, strict=True)))

    return run


def _result(results: Mapping[Node, Sequence[Any]], entry: Entry) -> Any:
    node, index = entry
    if index >= len(results[node]):
        raise ArgumentError(
            f"the symbol uses result {index} of {node.name!r}, and operator {node.operator} gives "
            f"{len(results[node])}; was the file damaged?"
        )
    return results[node][index]


def _ready(result: Any) -> _core.ndarray:
    """An array that waited for its shape, as it was made."""
    return result.made if isinstance(result, Unsized) and result.made is not None else result


def _check_known(nodes: Sequence[Node]) -> None:
    wanted = {node.operator: node.name for node in nodes if not node.is_variable}
    unknown = [f"{op} (of {name!r})" for op, name in wanted.items() if not lookup.found(op)]
    if unknown:
        raise UnsupportedError(
            f"the symbol has {len(unknown)} operators that do not exist here: "
            f"{', '.join(sorted(unknown))}. Replace them in the program that made the symbol."
        )
