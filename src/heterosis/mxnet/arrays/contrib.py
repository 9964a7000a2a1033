"""What MXNet kept under `nd.contrib`: loops over arrays, and detection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np, npx
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError

MultiBoxPrior = npx.multibox_prior
MultiBoxTarget = npx.multibox_target
MultiBoxDetection = npx.multibox_detection
arange_like = npx.arange_like


def foreach(body: Callable[..., Any], data: Any, init_states: Any) -> tuple[Any, Any]:
    """`outputs, states = body(slice, states)` for each slice of `data` (an array, or several)
    along the first axis; the outputs stacked, and the last states."""
    rows = zip(*data, strict=True) if isinstance(data, list | tuple) else data
    states, found = init_states, []
    for row in rows:
        outputs, states = body(list(row) if isinstance(row, tuple) else row, states)
        found.append(outputs)
    return _stacked(found), states


def while_loop(
    cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`outputs, loop_vars = func(*loop_vars)` while `cond(*loop_vars)`, `max_iterations` times at
    most; the outputs stacked, followed by zeros for the rounds left, and the last variables."""
    if max_iterations is None:
        raise ArgumentError("while_loop: give max_iterations, how often it may run at most.")
    found: list[Any] = []
    while len(found) < max_iterations and bool(cond(*_listed(loop_vars))):
        outputs, loop_vars = func(*_listed(loop_vars))
        found.append(outputs)
    return _stacked(found, max_iterations - len(found)), loop_vars


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """The result of one of two functions."""
    return then_func() if bool(pred) else else_func()


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _stacked(found: list[Any], left: int = 0) -> Any:
    """What the rounds gave, each output along a new first axis, and zeros for rounds `left`."""
    if not found:
        return []
    if isinstance(found[0], list | tuple):
        return [_stacked(list(column), left) for column in zip(*found, strict=True)]
    return np.stack(found + [np.zeros_like(found[0])] * left)


_check_members(globals())

__all__ = [
    "MultiBoxDetection",
    "MultiBoxPrior",
    "MultiBoxTarget",
    "arange_like",
    "cond",
    "foreach",
    "while_loop",
]
