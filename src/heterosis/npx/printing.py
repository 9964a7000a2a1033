"""Printing where values are, also within programs."""

from __future__ import annotations

import builtins
from typing import Any

from heterosis.ops.control.capturing import captured
from heterosis.runtime import modes
from heterosis.runtime.arguments import described
from heterosis.runtime.errors import ArgumentTypeError


def print(*values: Any, sep: str | None = " ", end: str | None = "\n") -> None:
    """Print `values` as Python's `print` does, and in a hybridized function at every run.

    A program prints when it has run, in the order of its statements, within branches and loops as
    well; the call waits for it. Arrays are to be handed in by themselves: a text that is made of
    them is made once, while the function is captured.

    >>> npx.print("the sum is", np.array([1.0, 2.0]).sum())
    the sum is 3.0
    """
    for name, given in (("sep", sep), ("end", end)):
        if not isinstance(given, str | None):
            raise ArgumentTypeError(
                f"print: {name} is {described(given)}; expected a text, or None for Python's own."
            )
    if modes.is_capturing():
        captured().print(values, {"sep": sep, "end": end})
    else:
        builtins.print(*values, sep=sep, end=end)
