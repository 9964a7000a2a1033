"""How choices and loops of a program are written: their programs as graphs inside of a node."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from heterosis.ir.program import INPUT, Program, Value, apply
from heterosis.ir.types import TensorType
from heterosis.mxnet.graph import Entry, reached, variable, variables
from heterosis.mxnet.operators.control import ENDLESS
from heterosis.mxnet.operators.writing import UNKNOWN, Arguments, Made, Writer, writes

_counter = itertools.count()
_ASKED = apply(INPUT, (), TensorType((), "bool"))
_IDENTITY = Program((_ASKED,), (_ASKED,), "condition", ())


class _Inside:
    """A program inside of another one, as a graph."""

    def __init__(self, program: Program, title: str, numbers: Collection[int] = ()):
        """`numbers`: the positions of truth values among inputs and outputs, which MXNet's loops
        carry as numbers."""
        self._writer, self._title = Writer(), title
        self._stand_ins: list[Entry] = []
        for i, value in enumerate(program.inputs):
            stand_in = variable(f"{title}_{i}")
            self._stand_ins.append(stand_in)
            truth = i in numbers
            self._writer.entries[value] = self._cast(stand_in, "bool") if truth else stand_in
        for i, call in enumerate(program.calls or ()):
            self._writer.write(call, f"{title}_{call.operation}{i}")
        self.heads: list[Entry] = []
        for value in program.outputs:
            entry = self._writer.entry(value)
            is_number = numbers and value.dtype == "bool"
            self._add(self._cast(entry, "float32") if is_number else entry)

    def _cast(self, entry: Entry, dtype: str) -> Entry:
        title = f"{self._title}_cast{next(_counter)}"
        return self._writer.node("Cast", title, [entry], {"dtype": dtype})[0]

    def _add(self, entry: Entry) -> None:
        """One more head: no variable, and none twice."""
        if entry.node.is_variable or entry in self.heads:
            title = f"{self._title}_copy{next(_counter)}"
            (entry,) = self._writer.node("_copy", title, [entry], {})
        self.heads.append(entry)

    @property
    def lost(self) -> str:
        """The name of something that MXNet has no words for."""
        names = (node.name for node in reached(self.heads) if node.operator == UNKNOWN)
        return next(names, "")

    def truth(self) -> None:
        """Let the head be what MXNet takes for a condition."""
        self.heads = [self._cast(entry, "float32") for entry in self.heads]

    def another(self) -> int:
        """The position of one more input."""
        self._stand_ins.append(variable(f"{self._title}_{len(self._stand_ins)}"))
        return len(self._stand_ins) - 1

    def unused(self, positions: Iterable[int]) -> list[int]:
        """Those of the inputs that are not used."""
        used = variables(self.heads)
        return [i for i in positions if self._stand_ins[i].node not in used]

    def give(self, positions: Iterable[int]) -> None:
        """Give inputs, behind what is given: MXNet's graphs use all that they are given, and their
        outputs have an axis."""
        for position in positions:
            title = f"{self._title}_expand_dims{next(_counter)}"
            stand_in = self._stand_ins[position]
            self.heads += self._writer.node("expand_dims", title, [stand_in], {"axis": 0})

    def locations(self) -> list[int]:
        """The inputs' positions, in the order of the graph's variables."""
        known = {entry.node: i for i, entry in enumerate(self._stand_ins)}
        return [known[node] for node in variables(self.heads)]


def _cast(writer: Writer, name: str, entry: Entry, dtype: str) -> Entry:
    return writer.node("Cast", f"{name}_cast{next(_counter)}", [entry], {"dtype": dtype})[0]


def _operand(writer: Writer, a: Arguments, value: Value, *, carried: bool) -> Entry:
    entry = writer.entry(value)
    return _cast(writer, a.name, entry, "float32") if carried and value.dtype == "bool" else entry


def _results(writer: Writer, a: Arguments, entries: Sequence[Entry]) -> list[Entry]:
    """What loops have carried, truth values as such again."""
    pairs = zip(entries, a.results, strict=True)
    return [_cast(writer, a.name, e, "bool") if v.dtype == "bool" else e for e, v in pairs]


def _node(
    writer: Writer, a: Arguments, operator: str, inputs: Sequence[Entry],
    graphs: Sequence[_Inside], **facts: Any,
) -> list[Entry]:  # fmt: skip
    """The results of a node with graphs inside; of what is lost in these, if there is something."""
    for graph in graphs:
        if graph.lost:
            return writer.lost(graph.lost, inputs, len(a.results))
    facts["num_args"] = len(inputs) + len(graphs)
    texts = {key: str(value) for key, value in facts.items()}
    made = writer.node(operator, a.name, inputs, texts, facts["num_outputs"])
    made[0].node.subgraphs = tuple(tuple(graph.heads) for graph in graphs)
    return made


@writes("scan")
def _write_scan(writer: Writer, a: Arguments) -> Made:
    if a["reverse"]:
        return None
    body, carried, shared = a["body"], a["carried"], a["shared"]
    kept = range(carried, carried + shared)
    operands = [_operand(writer, a, v, carried=i not in kept) for i, v in enumerate(a["operands"])]
    numbers = [i for i, v in enumerate(a["operands"]) if v.dtype == "bool" and i not in kept]
    states, rows = range(carried), [*range(carried + shared, len(operands))]
    turn = None if rows else _turn_of(body, carried)
    if turn is not None:
        return _write_bounded(writer, a, operands, *turn)
    graph = _Inside(body, a.name, numbers)
    if not rows:  # MXNet counts the turns by something that has rows
        rows = [graph.another()]
        facts = {"shape": (a["length"],), "dtype": "float32"}
        operands += writer.node("_npi_zeros", f"{a.name}_rows", [], facts)
    many = len(graph.heads) - carried
    unused = graph.unused([*states, *rows])
    graph.heads = graph.heads[carried:] + graph.heads[:carried]
    behind = graph.heads[many:]
    graph.heads = graph.heads[:many]
    graph.give(unused)
    graph.heads += behind
    places = graph.locations()
    remain = [k for k, place in enumerate(places) if place in kept]
    made = _node(
        writer, a, "_foreach",
        [operands[i] for i in (*rows, *states, *(places[k] for k in remain))],
        [graph],
        num_outputs=len(graph.heads),
        num_out_data=many + len(unused),
        in_data_locs=[places.index(i) for i in rows],
        in_state_locs=[places.index(i) for i in states],
        remain_locs=remain,
    )  # fmt: skip
    if len(made) != len(graph.heads):
        return made
    return _results(writer, a, [*made[many + len(unused) :], *made[:many]])


def _turn_of(body: Program, carried: int) -> tuple[Program, list[int], list[int]] | None:
    """Of the body of a loop that ends before its last turn, where its first state says so: the
    program of a turn, what its inputs are among the body's, and what the body's outputs are among
    its own. None for other bodies."""
    calls = [call for call in body.calls or () if call.operation == "conditional"]
    if len(calls) != 1 or not carried:
        return None
    given = Arguments(calls[0], body.name)
    operands, otherwise = given["operands"], given["otherwise"]
    known = all(value in body.inputs for value in operands)
    if not known or _root(given["condition"]) != body.inputs[0]:
        return None
    made = {value: i for i, value in enumerate(calls[0].results)}
    # What both branches hand on as it is is no result of theirs.
    handed = [value for value in body.outputs if value not in made]
    if any(value not in made for value in body.outputs[carried:]):
        return None
    kept = dict(zip(otherwise.inputs, operands, strict=True))
    after = [
        kept.get(otherwise.outputs[made[value]]) if value in made else value
        for value in body.outputs[:carried]
    ]
    if after != list(body.inputs[:carried]):
        return None
    turn, operands = _handing_on(given["then"], operands, handed)
    made |= {value: len(made) + i for i, value in enumerate(handed)}
    order = [made[value] for value in body.outputs]
    return turn, [body.inputs.index(value) for value in operands], order


def _handing_on(
    turn: Program, operands: Sequence[Value], handed: Sequence[Value]
) -> tuple[Program, list[Value]]:
    """A branch that gives some values around it as well, and its operands."""
    taken = dict(zip(operands, turn.inputs, strict=True))
    for value in handed:
        taken.setdefault(value, apply(INPUT, (), value.type))
    outputs = (*turn.outputs, *(taken[value] for value in handed))
    return Program(tuple(taken.values()), outputs, turn.name, turn.calls), list(taken)


def _root(value: Value) -> Value:
    """What a value is a copy of."""
    while value.node.primitive.name in ("copy", "reshape"):
        (value,) = value.node.inputs
    return value


def _write_bounded(
    writer: Writer, a: Arguments, operands: Sequence[Entry], turn: Program, taken: Sequence[int],
    order: Sequence[int],
) -> Made:  # fmt: skip
    carried = a["carried"]
    numbers = [i for i, v in enumerate(turn.inputs) if v.dtype == "bool" and taken[i] < carried]
    graph, test = _Inside(turn, a.name, numbers), _Inside(_IDENTITY, f"{a.name}_condition", [0])
    heads = [graph.heads[i] for i in order]
    inputs = {place: i for i, place in enumerate(taken)}
    if any(i not in inputs for i in range(carried)):
        return None
    graph.heads = heads
    unused = graph.unused(inputs[i] for i in range(carried))
    graph.heads = heads[carried:]
    graph.give(unused)
    many = len(graph.heads)
    graph.heads += heads[:carried]
    places = [taken[i] for i in graph.locations()]
    made = _node(
        writer, a, "_while_loop", operands, [test, graph],
        num_outputs=len(graph.heads),
        num_out_data=many,
        max_iterations=a["length"],
        cond_input_locs=[0],
        func_input_locs=places,
        func_var_locs=[places.index(i) for i in range(carried)],
    )  # fmt: skip
    if len(made) != len(graph.heads):
        return made
    return _results(writer, a, [*made[many:], *made[: len(heads) - carried]])


@writes("conditional")
def _write_conditional(writer: Writer, a: Arguments) -> Made:
    graphs = [_Inside(a[name], f"{a.name}_{name}") for name in ("then", "otherwise")]
    test = _Inside(_IDENTITY, f"{a.name}_condition")
    test.truth()
    taken = [graph.locations() for graph in graphs]
    around = sorted({place for places in taken for place in places})
    then, otherwise = ([1 + around.index(place) for place in places] for places in taken)
    operands = [a["operands"][place] for place in around]
    return _node(
        writer, a, "_cond",
        [writer.entry(a["condition"]), *map(writer.entry, operands)],
        [test, *graphs],
        num_outputs=len(a.results),
        cond_input_locs=[0],
        then_input_locs=then,
        else_input_locs=otherwise,
    )  # fmt: skip


@writes("while_loop")
def _write_while_loop(writer: Writer, a: Arguments) -> Made:
    carried = a["carried"]
    numbers = [i for i in range(carried) if a["operands"][i].dtype == "bool"]
    test = _Inside(a["condition"], f"{a.name}_condition", numbers)
    test.truth()
    body = _Inside(a["body"], a.name, numbers)
    if body.unused(range(carried)):
        return None
    operands = [_operand(writer, a, v, carried=i < carried) for i, v in enumerate(a["operands"])]
    places = body.locations()
    made = _node(
        writer, a, "_while_loop", operands, [test, body],
        num_outputs=carried,
        num_out_data=0,
        max_iterations=ENDLESS,
        cond_input_locs=test.locations(),
        func_input_locs=places,
        func_var_locs=[places.index(i) for i in range(carried)],
    )  # fmt: skip
    return _results(writer, a, made)
