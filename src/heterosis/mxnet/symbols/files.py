"""Symbol files: JSON with a list of nodes. Everything is checked before it is used."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from heterosis.io.files import FileName, Source, opened, parsed_json, translated, wrong
from heterosis.mxnet.attributes import decoded, encoded
from heterosis.mxnet.graph import VARIABLE, Entry, Node, reached, variable
from heterosis.mxnet.operators.lookup import MOST_RESULTS, output_count, states
from heterosis.mxnet.operators.table import row_of
from heterosis.ops.unsized import UNKNOWN
from heterosis.runtime.errors import ArgumentError, FormatError

KIND = "a symbol file"
_VERSION = 10901  # of MXNet, whose format it is
_DEEPEST = 50  # graphs within one another
_TOP = {"nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"}  # MXNet refuses others, too

# MXNet reads these, does nothing with them, and leaves them out of what it writes.
_MARK = "heterosis_export"
_CHECKSUM = "heterosis_checksum"


def text_of(entries: Sequence[Entry]) -> str:
    """The graph as the text of a symbol file, without a checksum: programs edit such texts."""
    return json.dumps(_described_graph(entries), indent=2)


def content_of(entries: Sequence[Entry], mark: int = 0) -> bytes:
    """The content of a symbol file, with a checksum, and with a mark unless it is 0."""
    found = _described_graph(entries)
    if mark:
        found["attrs"][_MARK] = ["str", f"{mark:016x}"]
    found["attrs"][_CHECKSUM] = ["str", _checksum(found)]
    return json.dumps(found, indent=2).encode()


def _described_graph(entries: Sequence[Entry]) -> dict[str, Any]:
    facts = {"is_np_shape": ["int", 1], "mxnet_version": ["int", _VERSION]}
    return {**_table(entries), "attrs": facts}


def _checksum(found: dict[str, Any]) -> str:
    """The CRC-32 of all that is said but the checksum; not of how it is laid out."""
    facts = {key: fact for key, fact in found["attrs"].items() if key != _CHECKSUM}
    said = json.dumps({**found, "attrs": facts}, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(said.encode()):08x}"


def _table(entries: Sequence[Entry]) -> dict[str, Any]:
    """A graph as JSON has it: nodes, and what of them is given and asked for."""
    nodes = reached(entries)
    places = {node: i for i, node in enumerate(nodes)}
    written = states(nodes)
    rows = [0]
    for node in nodes:
        rows.append(rows[-1] + max(node.outputs, _counted(node)))
    return {
        "nodes": [_described(node, places, written) for node in nodes],
        "arg_nodes": [i for i, node in enumerate(nodes) if node.is_variable],
        "node_row_ptr": rows,
        "heads": [[places[node], index, 0] for node, index in entries],
    }


def _counted(node: Node) -> int:
    counted = row_of(node.operator).counted
    return counted(node.attributes) if callable(counted) else counted


def _described(node: Node, places: dict[Node, int], written: set[Node]) -> dict[str, Any]:
    facts: dict[str, Any] = {"op": node.operator, "name": node.name}
    if node.attributes:
        facts["attrs"] = dict(sorted(node.attributes.items()))
    facts["inputs"] = [[places[n], index, int(n in written)] for n, index in node.inputs]
    if node.subgraphs:
        facts["subgraphs"] = [_table(entries) for entries in node.subgraphs]
    return facts


# -- reading --------------------------------------------------------------------------------------


def loaded(fname: FileName) -> tuple[list[Entry], int]:
    """The heads of the graph in a file, and the mark of the export it is from; 0 without one."""
    with opened(fname, KIND) as source:
        found = source.json()
        entries = graph_of(found, source.name)
        mark, checksum = (_digits(found, *one, source) for one in ((_MARK, 16), (_CHECKSUM, 8)))
        if checksum is not None and checksum != _checksum(found):
            raise source.wrong(
                "its checksum is wrong: a part of it is no longer as it was written. If you have "
                f'edited it, leave "{_CHECKSUM}" out of its "attrs"'
            )
        return entries, int(mark or "0", 16)


def _digits(found: Any, key: str, count: int, source: Source) -> str | None:
    """What an attribute of the graph says in so many hexadecimal digits; None if there is none."""
    facts = found.get("attrs")
    given = facts.get(key) if isinstance(facts, dict) else None
    if given is None:
        return None
    text = given[1] if isinstance(given, list) and len(given) == 2 else None
    if not isinstance(text, str) or not re.fullmatch(f"[0-9a-f]{{{count}}}", text):
        raise source.wrong(f'"{key}" is {_short(given)}; expected {count} hexadecimal digits')
    return text


def parsed(text: str | bytes, source: str) -> list[Entry]:
    """The heads of the graph in the text of a symbol file; `source` names it in messages."""
    with translated(source, KIND):
        return graph_of(parsed_json(text, partial(wrong, source, KIND)), source)


def graph_of(found: Any, source: str) -> list[Entry]:
    """The heads of the graph in what JSON gave."""
    return _Reader(source).graph(found)


class _Reader:
    """Turns what JSON gave into nodes; every error says where."""

    def __init__(self, source: str, path: str = "", depth: int = 0):
        self.source = source
        self.path, self.depth = path, depth  # of a sub-graph: the node that it belongs to
        self.nodes: list[Node] = []
        self.zero_is_unknown = False

    def wrong(self, where: str, what: str) -> FormatError:
        return wrong(self.source, KIND, f"{self.path}{where}: {what}")

    def graph(self, found: Any) -> list[Entry]:
        """All nodes, then the heads."""
        self.zero_is_unknown = isinstance(found, dict) and not _has_numpy_shapes(found.get("attrs"))
        return self._heads(found)

    def _heads(self, found: Any) -> list[Entry]:
        table = found if isinstance(found, dict) else {}
        if not isinstance(table.get("nodes"), list) or not isinstance(table.get("heads"), list):
            raise self.wrong("the top", 'expected an object with the lists "nodes" and "heads"')
        if others := table.keys() - _TOP:
            raise self.wrong("the top", f"{_short(min(others))} is no part of a graph")
        for place, facts in enumerate(table["nodes"]):
            self.nodes.append(self._node(place, facts))
        heads = [self._entry(f"heads[{i}]", head) for i, head in enumerate(table["heads"])]
        if not heads:
            raise self.wrong("heads", "the list is empty; expected the results of the graph")
        _check_names(heads, self.wrong)
        return heads

    def _node(self, place: int, facts: Any) -> Node:
        if not isinstance(facts, dict):
            raise self.wrong(f"nodes[{place}]", f"expected an object, and found {_short(facts)}")
        operator, name = facts.get("op"), facts.get("name")
        where = f"nodes[{place}] ({_short(name)})"
        if not isinstance(operator, str) or not isinstance(name, str):
            raise self.wrong(where, '"op" and "name" must be texts')
        inputs = facts.get("inputs", [])
        if not isinstance(inputs, list) or (operator == VARIABLE and inputs):
            raise self.wrong(where, '"inputs" must be a list, and empty for a variable')
        attributes = self._attributes(where, facts)
        entries = tuple(self._entry(f"{where}, inputs[{i}]", e) for i, e in enumerate(inputs))
        count = self._count(where, operator, attributes)
        if self.zero_is_unknown and row_of(operator).zero_is_unknown:
            attributes["shape"] = _with_unknown(attributes.get("shape", "()"))
        subgraphs = self._subgraphs(where, facts.get("subgraphs", []))
        return _upgraded(Node(operator, name, attributes, entries, count, subgraphs))

    def _subgraphs(self, where: str, found: Any) -> tuple[tuple[Entry, ...], ...]:
        """The graphs inside of a node."""
        if not isinstance(found, list):
            raise self.wrong(where, f'"subgraphs" must be a list, and is {_short(found)}')
        if found and self.depth == _DEEPEST:
            raise self.wrong(where, f"graphs within graphs, {_DEEPEST} deep; expected fewer")
        made = []
        for i, table in enumerate(found):
            inner = _Reader(self.source, f"{self.path}{where}, subgraphs[{i}], ", self.depth + 1)
            inner.zero_is_unknown = self.zero_is_unknown
            made.append(tuple(inner._heads(table)))
        return tuple(made)

    def _count(self, where: str, operator: str, attributes: dict[str, str]) -> int:
        try:
            return output_count(operator, attributes)
        except (ArgumentError, FormatError) as error:
            raise self.wrong(where, str(error).rstrip(".")) from None

    def _attributes(self, where: str, facts: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for key in ("param", "attr", "attrs"):  # the first two are those of older files
            given = facts.get(key) or {}
            pairs = given.items() if isinstance(given, dict) else [(None, None)]
            if not all(isinstance(text, str) for pair in pairs for text in pair):
                raise self.wrong(where, f'"{key}" must be an object of texts')
            found |= given
        return found

    def _entry(self, where: str, given: Any) -> Entry:
        numbers = given if isinstance(given, list) and 2 <= len(given) <= 3 else [None]
        if not all(type(n) is int for n in numbers):
            raise self.wrong(where, f"expected [node, result, version], and found {_short(given)}")
        place, index = numbers[:2]
        if not 0 <= place < len(self.nodes):
            raise self.wrong(
                where, f"node {place} does not come before; there are {len(self.nodes)}"
            )
        node = self.nodes[place]
        if not 0 <= index < MOST_RESULTS or (node.is_variable and index):
            raise self.wrong(where, f"{node.name!r} has no result {index}")
        node.outputs = max(node.outputs, index + 1)
        return Entry(node, index)


def _check_names(heads: list[Entry], wrong: Callable[[str, str], FormatError]) -> None:
    seen: set[str] = set()
    for node in reached(heads):
        if node.is_variable:
            if node.name in seen:
                raise wrong("nodes", f"two variables have the name {node.name!r}")
            seen.add(node.name)


def _has_numpy_shapes(facts: Any) -> bool:
    """Whether the file was written where a shape may have extents of 0; once, 0 was unknown."""
    found = facts.get("is_np_shape") if isinstance(facts, dict) else None
    return isinstance(found, list) and len(found) == 2 and bool(found[1])


def _with_unknown(shape: str) -> str:
    extents = decoded(shape)
    return encoded(tuple(n or UNKNOWN for n in extents)) if isinstance(extents, tuple) else shape


def _upgraded(node: Node) -> Node:
    """A node of an older file as newer ones have it."""
    states = row_of(node.operator).states
    if states and len(node.inputs) == min(states):
        moving = (variable(f"{node.name}_{what}") for what in ("moving_mean", "moving_var"))
        node.inputs += tuple(moving)  # once, states were no nodes
    return node


def _short(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= 40 else text[:37] + "..."
