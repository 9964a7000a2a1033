"""What MXNet kept under `nd.contrib`: loops over arrays, detection, and the operators of
`heterosis.mxnet.operators.contrib`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import npx
from heterosis.mxnet.operators.contrib import CONTRIB as _CONTRIB
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError

MultiBoxPrior = npx.multibox_prior
MultiBoxTarget = npx.multibox_target
MultiBoxDetection = npx.multibox_detection
arange_like = npx.arange_like
globals().update(_CONTRIB)


cond, foreach = npx.cond, npx.foreach


def while_loop(
    cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """See `npx.while_loop`, which does without a bound, too."""
    if max_iterations is None:
        raise ArgumentError("while_loop: give max_iterations, how often it may run at most.")
    return npx.while_loop(cond, func, loop_vars, max_iterations)


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
__all__ += list(_CONTRIB)
