"""How the calls of a program are written as operators; the table's families have the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heterosis.ir.calls import Call
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import CONSTANT, EXTENT, NUMBER, Value
from heterosis.mxnet.attributes import encoded
from heterosis.mxnet.graph import Entry, Node
from heterosis.mxnet.operators.table import IDLE, renamed
from heterosis.ops.record import ARRAY, KEY, REGISTRY, SEQUENCE

# Operations that MXNet's symbols have under these names alone.
NAMED = {"copy": "_np_copy", "where": "_npi_where"}
UNKNOWN = "?"  # the operator of calls that MXNet has none for

Made = Sequence[Entry] | None  # None: MXNet has no words
WRITERS: dict[str, Callable[[Writer, Arguments], Made]] = {}  # by record
FOLLOWERS: dict[Primitive, Callable[[Writer, Value], Entry]] = {}


def writes(*records: str) -> Callable[[Any], Any]:
    """Let a function write the calls of these records; the others are written by `plain`."""

    def register(function: Any) -> Any:
        WRITERS.update(dict.fromkeys(records, function))
        return function

    return register


def follows(*primitives: Primitive) -> Callable[[Any], Any]:
    """Let a function write what a primitive makes of its input where no call tells of it."""

    def register(function: Any) -> Any:
        FOLLOWERS.update(dict.fromkeys(primitives, function))
        return function

    return register


class Arguments:
    """The arguments of a call by the names of its record's parameters."""

    def __init__(self, call: Call, name: str):
        self.record, self.name, self.results = REGISTRY[call.operation], name, call.results
        given = list(self.record.arguments(call.operands, call.attributes))
        self.uses = {parameter.name: use for parameter, use, _ in given}
        self._given = {parameter.name: value for parameter, _, value in given}

    def __getitem__(self, parameter: str) -> Any:
        return self._given[parameter]

    def number(self, parameter: str) -> Any:
        """The number that an operand is; None if it is an array, or not given."""
        return _number(self._given[parameter])


def _number(value: Any) -> Any:
    if isinstance(value, Value) and value.node.primitive is CONSTANT:
        return value.node.attributes["value"]
    return None


def _is_array(value: Value) -> bool:
    return value.node.primitive not in (CONSTANT, EXTENT, NUMBER)


class Writer:
    """The graph so far: which entry holds which value of the program."""

    def __init__(self) -> None:
        self.entries: dict[Value, Entry] = {}

    def write(self, call: Call, name: str) -> None:
        """Add the operators for a call."""
        arguments = Arguments(call, name)
        made = WRITERS.get(call.operation, plain)(self, arguments)
        if made is None:
            inputs = [self.entry(v) for v in call.inputs if _is_array(v)]
            made = self.lost(call.operation, inputs, len(call.results))
        for value, entry in zip(call.results, made, strict=True):
            self.entries.setdefault(value, entry)

    def lost(self, name: str, inputs: Sequence[Entry], results: int = 1) -> list[Entry]:
        """The results of what MXNet has no words for."""
        node = Node(UNKNOWN, name, {}, tuple(inputs), results)
        return [Entry(node, i) for i in range(results)]

    def entry(self, value: Value) -> Entry:
        """Where a value is. What rearranges or copies others follows from those."""
        found = self.entries.get(value)
        if found is None:
            found = self.entries[value] = self._followed(value)
        return found

    def _followed(self, value: Value) -> Entry:
        primitive = value.node.primitive
        follow = FOLLOWERS.get(primitive)
        if follow is not None:
            return follow(self, value)
        below = [self.entry(v) for v in value.node.inputs if _is_array(v)]
        return self.lost(f"{primitive.name} of a part", below)[0]

    def node(
        self, operator: str, name: str, inputs: Sequence[Entry], attributes: dict[str, Any],
        outputs: int = 1,
    ) -> list[Entry]:  # fmt: skip
        """A new node's results; attributes that are None are left out."""
        texts = {k: encoded(v) for k, v in attributes.items() if v is not None}
        made = Node(operator, name, texts, tuple(inputs), outputs)
        return [Entry(made, i) for i in range(outputs)]

    def single(
        self, operator: str, arguments: Arguments, *inputs: Value, **attributes: Any
    ) -> list[Entry]:
        """The one node that a call is."""
        entries = [self.entry(value) for value in inputs]
        return self.node(operator, arguments.name, entries, attributes, len(arguments.results))


def plain(writer: Writer, arguments: Arguments, **more: Any) -> Sequence[Entry] | None:
    """An operator with the record's name in MXNet: arrays are inputs, all else is attributes."""
    record = arguments.record
    operator = record.names.get("mxnet")
    if operator is None:
        return None
    if any(_takes_number(arguments, p) for p in record.parameters):
        return None
    inputs, attributes = _split(arguments)
    return writer.single(operator, arguments, *inputs, **attributes | more)


def _takes_number(arguments: Arguments, parameter: Any) -> bool:
    """Whether an array stands where MXNet has a number as attribute."""
    given, default = arguments[parameter.name], parameter.default
    is_array = isinstance(given, Value) and _number(given) is None
    return is_array and isinstance(default, int | float) and arguments.uses[parameter.name] == ARRAY


def _split(arguments: Arguments) -> tuple[list[Value], dict[str, Any]]:
    """The arrays among the arguments, and the rest by MXNet's names."""
    theirs = renamed(arguments.record)
    defaults = {p.name: p.default for p in arguments.record.parameters}
    inputs: list[Value] = []
    attributes: dict[str, Any] = {}
    for parameter, use in arguments.uses.items():
        given, name = arguments[parameter], theirs.get(parameter, parameter)
        if use == SEQUENCE:
            inputs += given
            attributes["num_args"] = len(given)
        elif use == ARRAY and given is not None and _number(given) is None:
            inputs.append(given)
        elif use != KEY and name is not None and name not in IDLE:
            attributes[name] = _number(given) if use == ARRAY else given
            if given is None and defaults[parameter] is not None:
                attributes[name] = "None"
    return inputs, attributes
