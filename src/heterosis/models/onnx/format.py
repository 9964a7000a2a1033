"""The messages of ONNX files, as tables, and models as they are read from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from heterosis.io.files import FileName, opened
from heterosis.models.onnx import tensors, wire
from heterosis.models.onnx.wire import Field, Message, Table
from heterosis.runtime.errors import FormatError, UnsupportedError

_ENTRY: Table = {1: Field("key", "text"), 2: Field("value", "text")}
_TENSOR: Table = {
    1: Field("dims", "integer", True), 2: Field("data_type", "integer"),
    4: Field("float_data", "float", True), 5: Field("int32_data", "integer", True),
    6: Field("string_data", "bytes", True), 7: Field("int64_data", "integer", True),
    8: Field("name", "text"), 9: Field("raw_data", "bytes"),
    10: Field("double_data", "double", True), 11: Field("uint64_data", "integer", True),
    13: Field("external_data", _ENTRY, True), 14: Field("data_location", "integer"),
}  # fmt: skip
_DIMENSION: Table = {1: Field("value", "integer"), 2: Field("name", "text")}
_SHAPE: Table = {1: Field("dims", _DIMENSION, True)}
_TENSOR_TYPE: Table = {1: Field("element", "integer"), 2: Field("shape", _SHAPE)}
_TYPE: Table = {1: Field("tensor", _TENSOR_TYPE)}
_VALUE: Table = {1: Field("name", "text"), 2: Field("type", _TYPE)}
_OPERATORS: Table = {1: Field("domain", "text"), 2: Field("version", "integer")}

# Graphs hold nodes, whose attributes hold graphs.
_GRAPH: dict[int, Field] = {}
_ATTRIBUTE: Table = {
    1: Field("name", "text"), 2: Field("f", "float"), 3: Field("i", "integer"),
    4: Field("s", "bytes"), 5: Field("t", _TENSOR), 6: Field("g", _GRAPH),
    7: Field("floats", "float", True), 8: Field("ints", "integer", True),
    9: Field("strings", "bytes", True), 10: Field("tensors", _TENSOR, True),
    11: Field("graphs", _GRAPH, True), 14: Field("typed", "bytes"),
    20: Field("type", "integer"), 21: Field("reference", "text"),
}  # fmt: skip
_NODE: Table = {
    1: Field("inputs", "text", True), 2: Field("outputs", "text", True), 3: Field("name", "text"),
    4: Field("operator", "text"), 5: Field("attributes", _ATTRIBUTE, True),
    7: Field("domain", "text"),
}  # fmt: skip
_GRAPH |= {
    1: Field("nodes", _NODE, True), 2: Field("name", "text"),
    5: Field("initializers", _TENSOR, True), 11: Field("inputs", _VALUE, True),
    12: Field("outputs", _VALUE, True), 15: Field("sparse", {}, True),
}  # fmt: skip
_FUNCTION: Table = {
    1: Field("name", "text"), 4: Field("inputs", "text", True), 5: Field("outputs", "text", True),
    6: Field("parameters", "text", True), 7: Field("nodes", _NODE, True),
    9: Field("operators", _OPERATORS, True), 10: Field("domain", "text"),
    11: Field("defaults", _ATTRIBUTE, True),
}  # fmt: skip
_MODEL: Table = {
    1: Field("version", "integer"), 2: Field("producer", "text"), 7: Field("graph", _GRAPH),
    8: Field("operators", _OPERATORS, True), 14: Field("facts", _ENTRY, True),
    25: Field("functions", _FUNCTION, True),
}  # fmt: skip

# How attributes number what they hold.
_HOLDS = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors",
    10: "graphs", 13: "typed",
}  # fmt: skip
_ATTRIBUTES = {holds: number for number, holds in _HOLDS.items()}
_STANDARD = ("", "ai.onnx")
_KIND = "an ONNX model"
_HINT = "consumed_inputs"  # what the first versions could write into; it changes no result


@dataclass(frozen=True, eq=False)
class Node:
    """One operator of a graph. Inputs and outputs that are left out are ''."""

    operator: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]

    def __str__(self) -> str:
        return (
            f"{self.operator} {self.name!r}"
            if self.name
            else f"{self.operator} of {self.outputs[0]!r}"
        )


@dataclass(frozen=True)
class Input:
    """An input of a graph: None for an element type or a shape that the file does not tell, a name
    for an extent that it does not."""

    name: str
    dtype: str | None
    shape: tuple[int | str, ...] | None


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which they can run, and the arrays that come with them."""

    name: str
    nodes: tuple[Node, ...]
    arrays: dict[str, numpy.ndarray]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    types: dict[str, Input] = field(default_factory=dict)  # of outputs, in a graph to be written


@dataclass(frozen=True, eq=False)
class Function:
    """An operator that the file itself defines."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    parameters: tuple[str, ...]
    defaults: dict[str, Any]
    versions: dict[str, int]


@dataclass(frozen=True, eq=False)
class Reference:
    """An attribute inside of a function, which its call gives."""

    name: str


@dataclass(frozen=True, eq=False)
class Model:
    """A file's graph, the version of each set of operators that it uses, and its own operators, by
    domain and name."""

    graph: Graph
    versions: dict[str, int]
    functions: dict[tuple[str, str], Function] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)  # what it says of itself, when written


# -- reading --------------------------------------------------------------------------------------


def read(source: FileName | bytes) -> Model:
    """The model in a file, or in its bytes."""
    if isinstance(source, bytes | bytearray | memoryview):
        return _model(memoryview(source), "the bytes", None)
    with opened(source, _KIND) as file:
        data = file.whole()
    return _model(memoryview(data), file.name, os.path.dirname(file.name))


def _model(data: memoryview, name: str, folder: str | None) -> Model:
    try:
        message = wire.parsed(data, _MODEL)
        if message.graph is None or not message.operators:
            raise FormatError("it has no graph, or does not say which operators it uses.")
        reader = _Reader(folder)
        versions = _versions(message.operators)
        functions = {(_domain(f.domain), f.name): reader.function(f) for f in message.functions}
        return Model(reader.graph(message.graph), versions, functions)
    except FormatError as error:
        raise FormatError(f"{name}: no ONNX model that can be read: {error}") from None


def _versions(operators: list[Message]) -> dict[str, int]:
    return {_domain(o.domain): o.version or 1 for o in operators}


def _domain(name: str | None) -> str:
    return "" if name is None or name in _STANDARD else name


class _Reader:
    """Messages as nodes and graphs; the folder is where arrays in files of their own are."""

    def __init__(self, folder: str | None):
        self.folder = folder

    def graph(self, message: Message) -> Graph:
        if message.sparse:
            raise UnsupportedError(
                f"graph {message.name!r} has sparse arrays, which are not read; store them dense."
            )
        named = (*message.initializers, *message.inputs, *message.outputs)
        if not all(item.name for item in named):
            raise FormatError(f"graph {message.name!r}: an array, input or output has no name.")
        arrays = {t.name: self.tensor(t) for t in message.initializers}
        inputs = [_input(v) for v in message.inputs if v.name not in arrays]
        return Graph(
            message.name or "",
            tuple(self.node(n) for n in message.nodes),
            arrays,
            tuple(inputs),
            tuple(v.name for v in message.outputs),
        )

    def function(self, message: Message) -> Function:
        return Function(
            tuple(message.inputs),
            tuple(message.outputs),
            tuple(self.node(n) for n in message.nodes),
            tuple(message.parameters),
            self.attributes(message.defaults),
            _versions(message.operators),
        )

    def node(self, message: Message) -> Node:
        if not message.operator or not message.outputs:
            raise FormatError(f"node {message.name!r} has no operator, or no outputs.")
        return Node(
            message.operator,
            _domain(message.domain),
            message.name or "",
            tuple(message.inputs),
            tuple(message.outputs),
            self.attributes(message.attributes),
        )

    def attributes(self, messages: Sequence[Message]) -> dict[str, Any]:
        return {a.name or "": self.attribute(a) for a in messages if a.name != _HINT}

    def attribute(self, message: Message) -> Any:
        if message.reference:
            return Reference(message.reference)
        holds = _HOLDS.get(message.type or 0)
        if holds is None:  # written before attributes told: what is there is meant
            holds = next(
                (h for h in _HOLDS.values() if getattr(message, h) not in (None, [])), "ints"
            )
        value = getattr(message, holds)
        match holds:
            case "i" | "f":
                return value or 0
            case "s":
                return _text(value or b"")
            case "strings":
                return [_text(v) for v in value]
            case "t":
                return self.tensor(value)
            case "g" if value is None:
                raise FormatError(f"attribute {message.name!r} announces a graph and has none.")
            case "g":
                return self.graph(value)
            case "tensors":
                return [self.tensor(v) for v in value]
            case "graphs":
                return [self.graph(v) for v in value]
            case "typed":
                return bytes(value or b"")
        return list(value)

    def tensor(self, message: Message | None) -> numpy.ndarray:
        if message is None:
            raise FormatError("an attribute announces an array and has none.")
        return tensors.array(message, self.folder)


def _text(value: Any) -> str | bytes:
    found = bytes(value)
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found


def _input(message: Message) -> Input:
    tensor = message.type.tensor if message.type else None
    if tensor is None:
        return Input(message.name, None, None)
    shape = None
    if tensor.shape is not None:
        shape = tuple(
            d.name or f"{message.name}.{axis}" if d.value is None else d.value
            for axis, d in enumerate(tensor.shape.dims)
        )
    return Input(message.name, tensors.dtype_of(tensor.element) if tensor.element else None, shape)


# -- writing --------------------------------------------------------------------------------------

_FORMAT_VERSION = 8  # which came with operators of version 18
_MOST_BYTES = (1 << 31) - 1  # of a message, for who reads it with Google's library
_ALIGNED = 4096  # bytes of what is mapped into memory
_OUTSIDE = 1  # where arrays are that have a file of their own


def written(model: Model, beside: str | None = None) -> tuple[wire.Pieces, wire.Pieces]:
    """The bytes of a model, and those of the file `beside` it, which has its large arrays if it is
    named."""
    outside: wire.Pieces = []
    writer = _Writer(beside, outside)
    pieces = wire.pieces(
        {
            "version": _FORMAT_VERSION,
            "producer": "Heterosis",
            "graph": writer.graph(model.graph),
            "operators": [{"domain": d, "version": v} for d, v in model.versions.items()],
            "facts": [{"key": key, "value": value} for key, value in model.facts.items()],
        },
        _MODEL,
    )
    size = wire.size_of(pieces)
    if size > _MOST_BYTES:
        raise UnsupportedError(
            f"the model takes {size:,} bytes, and an ONNX file has {_MOST_BYTES:,} at most. Give "
            "weights='file': then its arrays are in a file of their own."
        )
    return pieces, outside


class _Writer:
    """Graphs and nodes as the fields of their messages."""

    def __init__(self, beside: str | None, outside: wire.Pieces):
        self.beside, self.outside = beside, outside

    def graph(self, graph: Graph) -> dict[str, Any]:
        return {
            "name": graph.name,
            "nodes": [self.node(node) for node in graph.nodes],
            "initializers": [self.array(name, host) for name, host in graph.arrays.items()],
            "inputs": [_described(given) for given in graph.inputs],
            "outputs": [_described(graph.types[name]) for name in graph.outputs],
        }

    def node(self, node: Node) -> dict[str, Any]:
        return {
            "inputs": node.inputs,
            "outputs": node.outputs,
            "name": node.name,
            "operator": node.operator,
            "domain": node.domain or None,
            "attributes": [self.attribute(n, value) for n, value in node.attributes.items()],
        }

    def attribute(self, name: str, value: Any) -> dict[str, Any]:
        match value:
            case bool() | int():
                holds, value = "i", int(value)
            case float():
                holds = "f"
            case str():
                holds, value = "s", value.encode()
            case Graph():
                holds, value = "g", self.graph(value)
            case numpy.ndarray():
                holds, value = "t", tensors.described("", value)
            case [str(), *_]:
                holds, value = "strings", [text.encode() for text in value]
            case [float(), *_]:
                holds = "floats"
            case _:
                holds, value = "ints", list(map(int, value))
        return {"name": name, "type": _ATTRIBUTES[holds], holds: value}

    def array(self, name: str, host: numpy.ndarray) -> dict[str, Any]:
        """An array with its bytes, or where these are."""
        found = tensors.described(name, host)
        if self.beside is None or host.nbytes < _ALIGNED:
            return found
        data = found.pop("raw_data")
        at = wire.size_of(self.outside)
        self.outside += [data, bytes(-len(data) % _ALIGNED)]
        places = {"location": self.beside, "offset": str(at), "length": str(len(data))}
        entries = [{"key": key, "value": value} for key, value in places.items()]
        return found | {"external_data": entries, "data_location": _OUTSIDE}


def _described(given: Input) -> dict[str, Any]:
    dims = [{"name": n} if isinstance(n, str) else {"value": n} for n in given.shape or ()]
    element = tensors.NUMBERS[given.dtype or ""]
    return {
        "name": given.name,
        "type": {"tensor": {"element": element, "shape": {"dims": dims}}},
    }
