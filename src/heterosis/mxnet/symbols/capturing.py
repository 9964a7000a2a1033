"""From a captured program to a graph of MXNet's operators: each call becomes its operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heterosis.capture.captured import Argument, Captured, Computed, Outside, Source, Window
from heterosis.ir.calls import Call
from heterosis.ir.program import Value
from heterosis.mxnet.graph import Entry, reached, variable
from heterosis.mxnet.operators.writing import UNKNOWN, Writer
from heterosis.runtime.errors import UnsupportedError


def graph_of(
    captured: Captured, named: Callable[[Source], tuple[str, dict[str, str]]]
) -> list[Entry]:
    """The results of a captured program as entries of a graph.

    `named` gives the name and the attributes of the variable for an array from outside.
    """
    _refuse_what_no_symbol_has(captured)
    writer = Writer()
    sources: dict[Any, Entry] = {}
    for value, source in zip(captured.program.inputs, captured.sources, strict=True):
        if isinstance(source, Argument | Outside):
            sources[source] = writer.entries[value] = variable(*named(source))
    calls = [step.call for step in captured.steps]
    names = _Names(calls)
    for call in calls:
        writer.write(call, names.of(call))
    heads = [
        sources[leaf] if leaf in sources else writer.entry(_value(captured, leaf))
        for leaf in _leaves(captured.result)
    ]
    _check_expressed(heads)
    return heads


def _value(captured: Captured, leaf: Computed | Window) -> Value:
    return leaf.value if isinstance(leaf, Window) else captured.program.outputs[leaf.position]


def _leaves(tree: Any) -> list[Any]:
    """The arrays that the function returns."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in _leaves(item)]
    return [tree] if isinstance(tree, Computed | Window | Argument | Outside) else []


def _refuse_what_no_symbol_has(captured: Captured) -> None:
    if captured.supply:
        raise UnsupportedError(
            f"{captured.program.name}: Python computes numbers for every run of this program, and "
            "a symbol has no Python. Export a block that computes with arrays only."
        )
    if captured.printed:
        raise UnsupportedError(
            f"{captured.program.name}: the program prints with npx.print, and a symbol cannot. "
            "Leave npx.print out before you export."
        )
    if captured.checks:
        raise UnsupportedError(
            f"{captured.program.name}: the program may raise, and a symbol cannot. Leave out what "
            "asserts, and raises, something of arrays before you export."
        )
    if captured.writes:
        places = [write.position for write in captured.writes]
        shapes = ", ".join(str(captured.program.outputs[i].shape) for i in places)
        raise UnsupportedError(
            f"{captured.program.name}: the program writes to arrays from outside, of shapes "
            f"{shapes}. A symbol cannot, but for the statistics of BatchNorm: return the new "
            "values instead."
        )


def _check_expressed(heads: Sequence[Entry]) -> None:
    lost = sorted({n.name for n in reached(heads) if n.operator == UNKNOWN})
    if lost:
        raise UnsupportedError(
            f"{len(lost)} operations of the program have no operator in MXNet that computes the "
            f"same: {', '.join(lost)}. Use others, or keep the network as its Python code and "
            "save_parameters."
        )


class _Names:
    """Names of nodes: the block's prefix and 'fwd', or the operation and a number."""

    def __init__(self, calls: Sequence[Call]):
        self._calls: dict[str, int] = {}
        for call in calls:
            self._calls[call.scope] = self._calls.get(call.scope, 0) + 1
        self._used: dict[str, int] = {}

    def of(self, call: Call) -> str:
        """A name that no other call has."""
        alone = call.scope and self._calls[call.scope] == 1
        if alone:
            return f"{call.scope}fwd"
        stem = f"{call.scope}{call.operation}"
        self._used[stem] = self._used.get(stem, -1) + 1
        return f"{stem}{self._used[stem]}"
