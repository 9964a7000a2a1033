"""From a captured program to a graph of MXNet's operators: each call becomes its operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heterosis.capture.captured import Argument, Captured, Computed, Outside, Source, Window
from heterosis.ir import views
from heterosis.ir.calls import Call
from heterosis.ir.primitives.conversions import COPY, conversion
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import CONSTANT, EXTENT, NUMBER, Value
from heterosis.mxnet.attributes import encoded
from heterosis.mxnet.graph import Entry, Node, reached, variable
from heterosis.mxnet.symbols.spelling import IDLE, PARAMETERS, TURNED, WITH_NUMBER
from heterosis.ops.record import ARRAY, KEY, REGISTRY, SEQUENCE
from heterosis.runtime.errors import UnsupportedError

UNKNOWN = "?"  # the operator of calls that MXNet has none for

Rule = Callable[["Writer", "Arguments"], "Sequence[Entry] | None"]
RULES: dict[str, Rule] = {}  # by record: what is no plain operator with plain attributes


def rule(*records: str) -> Callable[[Rule], Rule]:
    """Let a function write the calls of these records; None means that MXNet has no words."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(records, function))
        return function

    return register


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
        made = RULES.get(call.operation, plain)(self, arguments)
        if made is None:
            inputs = [self.entry(v) for v in call.inputs if _is_array(v)]
            made = self._lost(call.operation, inputs, len(call.results))
        for value, entry in zip(call.results, made, strict=True):
            self.entries.setdefault(value, entry)

    def _lost(self, name: str, inputs: Sequence[Entry], results: int = 1) -> list[Entry]:
        node = Node(UNKNOWN, name, {}, tuple(inputs), results)
        return [Entry(node, i) for i in range(results)]

    def entry(self, value: Value) -> Entry:
        """Where a value is. What rearranges or copies others follows from those."""
        found = self.entries.get(value)
        if found is None:
            found = self.entries[value] = self._followed(value)
        return found

    def _followed(self, value: Value) -> Entry:
        node, inputs = value.node, value.node.inputs
        if isinstance(node.primitive, Elementwise) and len(inputs) == 1:
            if node.primitive is COPY:
                return self.entry(inputs[0])
            if node.primitive is conversion(value.dtype):
                attributes = {"dtype": value.dtype}
                return self.node("Cast", "cast", [self.entry(inputs[0])], attributes)[0]
        if node.primitive is views.RESHAPE:
            shape = {"newshape": value.shape}
            return self.node("_np_reshape", "reshape", [self.entry(inputs[0])], shape)[0]
        if node.primitive is views.TRANSPOSE:
            axes = {"axes": node.attributes["axes"]}
            return self.node("_np_transpose", "transpose", [self.entry(inputs[0])], axes)[0]
        below = [self.entry(v) for v in inputs if _is_array(v)]
        return self._lost(f"{node.primitive.name} of a part", below)[0]

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
    if record.name in WITH_NUMBER:
        numbers = [arguments.number(p) for p in arguments.uses]
        if numbers != [None, None]:
            return _with_number(writer, arguments, *numbers)
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
    theirs = PARAMETERS.get(arguments.record.name, {})
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


def _with_number(
    writer: Writer, arguments: Arguments, left: Any, right: Any
) -> Sequence[Entry] | None:
    """`x + 1` and `1 + x`: operators with an attribute in the place of an operand."""
    name = arguments.record.name
    if left is not None and right is not None:
        return None
    number = right if left is None else left
    if left is not None:
        name = TURNED.get(name, f"r{name}")
    array, dtype = arguments["x1" if left is None else "x2"], arguments.results[0].dtype
    entry = writer.entry(array)
    if dtype not in ("bool", array.dtype):  # MXNet would choose float64
        entry = writer.node("Cast", f"{arguments.name}_cast", [entry], {"dtype": dtype})[0]
    facts = {"scalar": number, "is_int": isinstance(number, int)}
    return writer.node(f"_npi_{name}_scalar", arguments.name, [entry], facts)
