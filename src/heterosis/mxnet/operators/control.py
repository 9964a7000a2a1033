"""Choices and loops, which have graphs inside: functions of lists of arrays, when they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.table import Attributes, stored
from heterosis.runtime.errors import ArgumentError

# What symbols and captured programs are made of besides.
CAST, COPY = "Cast", "_copy"
FOREACH, WHILE_LOOP, COND = "_foreach", "_while_loop", "_cond"
ENDLESS = 2**31 - 1  # turns at most, where there is no bound

Graph = Callable[[Sequence[Any]], list[Any]]
Places = Sequence[int]


def _results(attributes: Attributes) -> int:
    count = attributes.get("num_outputs")
    if not isinstance(count, int):
        raise ArgumentError(f"num_outputs is {count!r}; expected a number")
    return count


def _checked(name: str, subgraphs: Any, count: int) -> Sequence[Graph]:
    """The graphs inside of a node, of which a file can have any number."""
    found = subgraphs if isinstance(subgraphs, list) else []
    if len(found) != count:
        raise ArgumentError(f"operator {name}: {len(found)} sub-graphs; expected {count}.")
    return found


def _at(name: str, items: Sequence[Any], places: Any) -> list[Any]:
    """The items at places, which a file says."""
    listed = places if isinstance(places, tuple) else (None,)
    if not all(type(place) is int and 0 <= place < len(items) for place in listed):
        raise ArgumentError(f"operator {name}: {places!r} are no places of {len(items)} inputs.")
    return [items[place] for place in listed]


def _put(name: str, places: Places, items: Sequence[Any]) -> list[Any]:
    """The items in the order that their places say."""
    if sorted(places) != list(range(len(items))):
        raise ArgumentError(f"operator {name}: {places!r} are no places of {len(items)} inputs.")
    found: list[Any] = [None] * len(items)
    for place, item in zip(places, items, strict=True):
        found[place] = item
    return found


def _split(name: str, found: list[Any], outputs: int, states: int) -> tuple[list[Any], list[Any]]:
    """What a turn gives: so many outputs, and so many states."""
    if not isinstance(outputs, int) or outputs < 0 or len(found) != outputs + states:
        raise ArgumentError(
            f"operator {name}: the sub-graph gives {len(found)} results; expected num_out_data, "
            f"{outputs!r}, and {states} states."
        )
    return found[:outputs], found[outputs:]


@stored("_foreach", results=_results)
def foreach(
    *arrays: Any, num_outputs: int, num_out_data: int, in_data_locs: Places,
    in_state_locs: Places, remain_locs: Places, subgraphs: Any = None,
) -> list[Any]:  # fmt: skip
    """What the graph gives for each row of the data, as rows, and the last states."""
    (body,) = _checked("_foreach", subgraphs, 1)
    first, second = len(in_data_locs), len(in_data_locs) + len(in_state_locs)
    data, states, others = arrays[:first], arrays[first:second], arrays[second:]
    places = (*in_data_locs, *in_state_locs, *remain_locs)

    def turn(rows: Sequence[Any], before: Sequence[Any]) -> tuple[Any, list[Any]]:
        found = body(_put("_foreach", places, [*rows, *before, *others]))
        return _split("_foreach", found, num_out_data, len(before))

    outputs, last = npx.foreach(turn, list(data), list(states))
    return [*outputs, *last]


@stored("_while_loop", results=_results)
def while_loop(
    *arrays: Any, num_outputs: int, num_out_data: int, max_iterations: int,
    cond_input_locs: Places, func_input_locs: Places, func_var_locs: Places, subgraphs: Any = None,
) -> list[Any]:  # fmt: skip
    """What the second graph gives while the first one holds, as rows, and the last variables."""
    name = "_while_loop"
    test, body = _checked(name, subgraphs, 2)
    given = _at(name, arrays, func_input_locs)
    begun = _at(name, given, func_var_locs)
    places = _at(name, func_input_locs, func_var_locs)  # of the variables among all arrays

    def holds(*now: Any) -> Any:
        current = dict(enumerate(arrays)) | dict(zip(places, now, strict=True))
        return test(_at(name, list(current.values()), cond_input_locs))[0]

    def turn(*now: Any) -> tuple[list[Any], list[Any]]:
        current = dict(enumerate(given)) | dict(zip(func_var_locs, now, strict=True))
        return _split(name, body(list(current.values())), num_out_data, len(now))

    most = None if max_iterations == ENDLESS and not num_out_data else max_iterations
    outputs, last = npx.while_loop(holds, turn, begun, most)
    if not outputs and num_out_data:  # no turn: only a turn knows of what type they are
        outputs = [_rows_of_zeros(one, max_iterations) for one in turn(*begun)[0]]
    return [*outputs, *last]


def _rows_of_zeros(like: Any, many: int) -> Any:
    return np.zeros((many, *like.shape), dtype=like.dtype)


@stored("_cond", results=_results)
def cond(
    *arrays: Any, num_outputs: int, cond_input_locs: Places, then_input_locs: Places,
    else_input_locs: Places, subgraphs: Any = None,
) -> list[Any]:  # fmt: skip
    """What the second graph gives where the first one holds, else what the third one does."""
    test, then, otherwise = _checked("_cond", subgraphs, 3)
    (holds,) = test(_at("_cond", arrays, cond_input_locs))
    return npx.cond(
        holds,
        lambda: then(_at("_cond", arrays, then_input_locs)),
        lambda: otherwise(_at("_cond", arrays, else_input_locs)),
    )
