"""Choices and loops of symbols: what their functions compose becomes a graph inside of a node.

Nodes that were there before the functions ran stay outside, and their results go in.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from heterosis.mxnet.arrays import contrib
from heterosis.mxnet.graph import Entry, Node, reached, variable, variables
from heterosis.mxnet.operators.control import CAST, COND, COPY, FOREACH, WHILE_LOOP
from heterosis.mxnet.symbols.symbol import Symbol
from heterosis.npx.control import as_given, pair
from heterosis.ops.control.capturing import listed
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError

Function = Callable[..., Any]
_counters: dict[str, itertools.count[int]] = defaultdict(itertools.count)


def foreach(
    body: Function, data: Any, init_states: Any, name: str | None = None
) -> tuple[Any, Any]:
    """`outputs, states = body(row, states)` for each row of the data; see `npx.foreach`."""
    lines, states = listed(data), listed(init_states)
    if not _any_symbols([*lines, *states]):
        return contrib.foreach(body, data, init_states)
    graph = _Graph("foreach")
    rows, before = graph.stand_ins(lines), graph.stand_ins(states)
    given = as_given(data)(rows), as_given(init_states)(before)
    outputs = graph.closed_with_states(body(*given), len(states))
    in_data, in_states = graph.places(rows), graph.places(before)
    inputs = graph.inputs()
    remain = [place for place in range(len(inputs)) if place not in (*in_data, *in_states)]
    node = _node(
        FOREACH,
        name,
        [*_entries(lines), *_entries(states), *(inputs[place] for place in remain)],
        [graph],
        num_outputs=len(graph.heads),
        num_out_data=len(listed(outputs)),
        in_data_locs=in_data,
        in_state_locs=in_states,
        remain_locs=remain,
    )
    return _split(node, outputs, init_states)


def while_loop(
    cond: Function, func: Function, loop_vars: Any, max_iterations: int | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`outputs, loop_vars = func(*loop_vars)` while `cond(*loop_vars)`; see `npx.while_loop`."""
    begun = listed(loop_vars)
    if not _any_symbols(begun):
        return contrib.while_loop(cond, func, loop_vars, max_iterations)
    if max_iterations is None:
        raise ArgumentError("while_loop: give max_iterations, how often it may run at most.")
    test, body = _Graph("while_loop"), _Graph("while_loop")
    test.close([_truth(cond(*test.stand_ins(begun)))])
    body.reopen()
    before = body.stand_ins(begun)
    outputs = body.closed_with_states(func(*before), len(begun))
    variables_ = _entries(begun)
    # What is also known by another name than the variable's, and does not change with it.
    kept = {entry: _copied(entry) for entry in variables_}
    first = [entry if variables_.index(entry) == i else _copied(entry)
             for i, entry in enumerate(variables_)]  # fmt: skip
    asked, taken = test.inputs(first, kept), body.inputs(first, kept)
    inputs = _united(first, taken, asked)
    node = _node(
        WHILE_LOOP,
        name,
        inputs,
        [test, body],
        num_outputs=len(body.heads),
        num_out_data=len(listed(outputs)),
        max_iterations=max_iterations,
        cond_input_locs=[inputs.index(entry) for entry in asked],
        func_input_locs=[inputs.index(entry) for entry in taken],
        func_var_locs=body.places(before),
    )
    return _split(node, outputs, loop_vars)


def cond(
    pred: Any, then_func: Function, else_func: Function, inputs: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """`then_func(*inputs)` where `pred` is true, else `else_func(*inputs)`; see `npx.cond`."""
    given = listed(inputs)
    if not _any_symbols([pred, *given]):
        return contrib.cond(pred, then_func, else_func, inputs)
    test, then, otherwise = graphs = [_Graph("cond") for _ in range(3)]
    asks = callable(pred) and not isinstance(pred, Symbol)
    test.close([_truth(pred(*given) if asks else pred)])
    results = []
    for graph, function in ((then, then_func), (otherwise, else_func)):
        graph.reopen()
        results.append(function(*given))
        graph.close(listed(results[-1]))
    if len(then.heads) != len(otherwise.heads):
        raise ArgumentError(
            f"cond: then_func gives {len(then.heads)} symbols, and else_func "
            f"{len(otherwise.heads)}; expected as many from both."
        )
    taken = [graph.inputs() for graph in graphs]
    around = _united(*taken)
    places = ([around.index(entry) for entry in entries] for entries in taken)
    names = ("cond_input_locs", "then_input_locs", "else_input_locs")
    locations = dict(zip(names, places, strict=True))
    node = _node(COND, name, around, graphs, num_outputs=len(then.heads), **locations)
    return as_given(results[0])([Symbol([Entry(node, i)]) for i in range(node.outputs)])


def _any_symbols(given: Iterable[Any]) -> bool:
    return any(isinstance(item, Symbol) for item in given)


def _entries(symbols: Iterable[Symbol]) -> list[Entry]:
    return [_symbol("a loop", symbol).only_entry() for symbol in symbols]


def _symbol(what: str, given: Any) -> Symbol:
    if not isinstance(given, Symbol):
        raise ArgumentTypeError(f"{what} of symbols got {type(given).__name__}; expected a symbol.")
    return given


def _united(*groups: Iterable[Entry]) -> list[Entry]:
    """Entries of all groups, each once."""
    return list(dict.fromkeys(entry for group in groups for entry in group))


def _copied(entry: Entry) -> Entry:
    return Entry(Node(COPY, _fresh("identity"), {}, (entry,)))


def _truth(given: Any) -> Symbol:
    """A condition as MXNet takes it: it knows no truth values there."""
    entry = _symbol("a condition", given).only_entry()
    return Symbol([Entry(Node(CAST, _fresh("cast"), {"dtype": "float32"}, (entry,)))])


def _fresh(stem: str) -> str:
    return f"{stem}{next(_counters[stem])}"


def _node(
    operator: str, name: str | None, inputs: Sequence[Entry], graphs: Sequence[_Graph], **facts: Any
) -> Node:
    facts["num_args"] = len(inputs) + len(graphs)
    texts = {key: str(value) for key, value in facts.items()}
    heads = tuple(graph.heads for graph in graphs)
    title = name or _fresh(operator)
    return Node(operator, title, texts, tuple(inputs), facts["num_outputs"], heads)


def _split(node: Node, outputs: Any, states: Any) -> tuple[Any, Any]:
    """The results of a loop as its body and its states have them."""
    found = [Symbol([Entry(node, i)]) for i in range(node.outputs)]
    many = len(listed(outputs))
    return as_given(outputs)(found[:many]), as_given(states)(found[many:])


class _Graph:
    """What a function composes, cut off from what was there before."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._given: list[Node] = []  # stand-ins for what the function is given
        self._from: dict[Node, Entry] = {}  # and what all stand-ins are for
        self._around: dict[Entry, Entry] = {}  # stand-ins for results from around
        self.heads: tuple[Entry, ...] = ()
        self.reopen()

    def reopen(self) -> None:
        """Take what is composed from now on as composed inside."""
        self._begun = Node("", "").number

    def stand_ins(self, given: Sequence[Symbol]) -> list[Symbol]:
        """Variables in the place of symbols."""
        made = []
        for entry in _entries(given):
            name = f"{entry.node.name}-{entry.index}"
            number = sum(node.name.partition("'")[0] == name for node in self._given)
            stand_in = variable(name + "'" * number)
            self._given.append(stand_in.node)
            self._from[stand_in.node] = entry
            made.append(Symbol([stand_in]))
        return made

    def closed_with_states(self, found: Any, many: int) -> Any:
        """Take what a body gives, outputs and `many` states: the outputs."""
        outputs, after = pair(self._what, found)
        if len(listed(after)) != many:
            raise ArgumentError(
                f"{self._what}: the body gives {len(listed(after))} states; expected {many}, as "
                "many as it is given."
            )
        self.close([*listed(outputs), *listed(after)])
        return outputs

    def close(self, results: Sequence[Any]) -> None:
        """Take what the function has composed. No result is a variable, or given twice."""
        heads: list[Entry] = []
        for symbol in results:
            entry = _symbol(self._what, symbol).only_entry()
            own = not entry.node.is_variable and not self._is_outside(entry.node)
            heads.append(entry if own and entry not in heads else _copied(entry))
        self.heads = tuple(self._cut(heads))

    def _is_outside(self, node: Node) -> bool:
        return node.number < self._begun

    def _cut(self, heads: Sequence[Entry]) -> list[Entry]:
        """The graph with variables in the place of results from around."""
        made: dict[Node, Node] = {}

        def placed(entry: Entry) -> Entry:
            if self._is_outside(entry.node) and not entry.node.is_variable:
                return self._stand_in(entry)
            return Entry(made[entry.node], entry.index)

        for node in reached(heads):
            inside = node.is_variable or not self._is_outside(node)
            if inside:
                inputs = tuple(map(placed, node.inputs))
                made[node] = node if inputs == node.inputs else replace(node, inputs=inputs)
        return [placed(entry) for entry in heads]

    def _stand_in(self, entry: Entry) -> Entry:
        if entry not in self._around:
            stand_in = self._around[entry] = variable(entry.name)
            self._from[stand_in.node] = entry
        return self._around[entry]

    def inputs(
        self, given: Sequence[Entry] = (), kept: Mapping[Entry, Entry] | None = None
    ) -> list[Entry]:
        """What goes in, in the order of the graph's variables: `given` for what the function is
        given, and others as `kept` has them."""
        begun = dict(zip(self._given, given, strict=bool(given)))
        found = []
        for node in variables(self.heads):
            entry = self._from.get(node, Entry(node))
            is_given = node in self._given
            found.append(begun.get(node, entry) if is_given else (kept or {}).get(entry, entry))
        return found

    def places(self, stand_ins: Sequence[Symbol]) -> list[int]:
        """Where stand-ins are among the graph's variables."""
        known = variables(self.heads)
        for entry in _entries(stand_ins):
            if entry.node not in known:
                raise ArgumentError(
                    f"{self._what}: {entry.node.name!r}, which the function is given, is not used "
                    "in what it returns. Use it, or leave it out."
                )
        return [known.index(entry.node) for entry in _entries(stand_ins)]
