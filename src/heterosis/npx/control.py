"""Choices and loops on arrays: Python's, where nothing is captured, and a part of the program where
something is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heterosis import np
from heterosis.ops.control.capturing import captured, check_unbounded, listed
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, ShapeError
from heterosis.runtime.kinds import Natural

Function = Callable[..., Any]


def _function(name: str, given: Any) -> Function:
    """A function that is called here, as a capture runs it."""
    if not callable(given):
        raise ArgumentTypeError(f"{name} is {type(given).__name__}; expected a function.")
    return captured().opened(given) if modes.is_capturing() else given


def cond(pred: Any, then_func: Function, else_func: Function, inputs: Any = None) -> Any:
    """`then_func(*inputs)` where `pred` is true, else `else_func(*inputs)`.

    `pred` is an array of one element, or a function of the inputs that gives one. Without `inputs`,
    the functions take none. In a hybridized program both functions are captured, and one runs.

    >>> npx.cond(np.array(-3.0) > 0, lambda: np.array(1.0), lambda: np.array(2.0))
    array(2.)
    """
    then_func = _function("then_func", then_func)
    else_func = _function("else_func", else_func)
    given = [] if inputs is None else listed(inputs)
    truth = pred(*given) if callable(pred) else pred
    if modes.is_capturing() and isinstance(truth, np.ndarray):
        return captured().cond(truth, lambda: then_func(*given), lambda: else_func(*given))
    return then_func(*given) if bool(truth) else else_func(*given)


def foreach(body: Function, data: Any, init_states: Any) -> tuple[Any, Any]:
    """`outputs, states = body(row, states)` for each row of `data`, an array or a list of them:
    the outputs of all turns, stacked, and the last states.

    >>> npx.foreach(lambda x, s: (x + s, x + s), np.array([1.0, 2.0, 3.0]), np.array(0.0))
    (array([1., 3., 6.]), array(6.))
    """
    body = _function("body", body)
    lines, states = listed(data), listed(init_states)
    if not lines:
        raise ArgumentError("foreach: data is an empty list; expected arrays with rows.")
    lengths = [array.shape[:1] for array in lines]
    if () in lengths or len(set(lengths)) > 1:
        raise ShapeError(
            f"foreach: data has the shapes {', '.join(str(a.shape) for a in lines)}; expected "
            "arrays with as many rows each."
        )
    if lengths[0] == (0,) and not modes.is_capturing():  # only a capture knows what turns give
        return captured().run(lambda: foreach(body, data, init_states))
    like, many = as_given(init_states), as_given(data)

    def turn(rows: Sequence[Any], before: Sequence[Any]) -> tuple[Any, list[Any]]:
        outputs, after = pair("foreach", body(_made(many(rows)), _made(like(before))))
        return outputs, listed(after)

    if modes.is_capturing():
        outputs, states = captured().foreach(turn, lines, states)
        return outputs, like(states)
    found = []
    for i in range(lengths[0][0]):
        outputs, states = turn([line[i] for line in lines], states)
        found.append(_kept(outputs))
    return _stacked(found), like(states)


def while_loop(
    cond: Function, func: Function, loop_vars: Any, max_iterations: Natural | None = None
) -> tuple[Any, Any]:
    """`outputs, loop_vars = func(*loop_vars)` as long as `cond(*loop_vars)` is true, and
    `max_iterations` times at most: the outputs of all turns, stacked, with zeros for the turns
    left, and the last variables.

    Without `max_iterations` there is no bound, and `func` gives no outputs: an empty list.

    >>> npx.while_loop(lambda i: i < 2, lambda i: (i * 10, i + 1), np.array(0), 3)
    (array([ 0, 10,  0]), array(2))
    """
    cond, func = _function("cond", cond), _function("func", func)
    states, like = listed(loop_vars), as_given(loop_vars)

    def turn(*before: Any) -> tuple[Any, list[Any]]:
        outputs, after = pair("while_loop", func(*before))
        return outputs, listed(after)

    if modes.is_capturing():
        outputs, states = captured().while_loop(cond, turn, states, max_iterations)
        return outputs, like(states)
    found: list[Any] = []
    while (max_iterations is None or len(found) < max_iterations) and bool(cond(*states)):
        outputs, states = turn(*states)
        check_unbounded(max_iterations, outputs)
        found.append(_kept(outputs))
    left = 0 if max_iterations is None else max_iterations - len(found)
    return _stacked(found, left), like(states)


def pair(name: str, given: Any) -> tuple[Any, Any]:
    """What a body gives, outputs and states; raises for anything else."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentTypeError(
            f"{name}: the body gave {_kind(given)}; expected a pair (outputs, states)."
        )
    return given[0], given[1]


def _kind(given: Any) -> str:
    many = f" of {len(given)}" if isinstance(given, tuple | list) else ""
    return f"{type(given).__name__}{many}"


def as_given(given: Any) -> Callable[[Sequence[Any]], Any]:
    """A list of arrays as `given` has them: an array alone, or a list."""
    return list if isinstance(given, list | tuple) or given is None else lambda arrays: arrays[0]


def _made(given: Any) -> Any:
    """A list that is made for one turn, which may change it."""
    return captured().made(given) if modes.is_capturing() else given


def _kept(outputs: Any) -> Any:
    """The outputs of a turn as they are now: the next one may write to them."""
    if isinstance(outputs, list | tuple):
        return [*map(_kept, outputs)]
    return np.copy(outputs) if isinstance(outputs, np.ndarray) else outputs


def _stacked(found: Sequence[Any], left: int = 0) -> Any:
    """What the turns gave, each output along a new first axis, and zeros for the turns `left`."""
    if not found or found[0] is None:
        return []
    if isinstance(found[0], list | tuple):
        return [_stacked(column, left) for column in zip(*found, strict=True)]
    return np.stack([*found, *[np.zeros_like(found[0])] * left])
