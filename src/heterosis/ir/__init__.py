"""Programs as values: written down, read, checked and evaluated.

`str(program)` and `parse(text)` are inverse to each other, `check` says whether a program is well
formed, and `evaluate` computes it with NumPy. `PRIMITIVES` has all that programs are made of.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterosis.ir.checking import check as check
    from heterosis.ir.parsing import parse as parse
    from heterosis.ir.primitives import PRIMITIVES as PRIMITIVES
    from heterosis.ir.program import Program as Program
    from heterosis.ir.reference import evaluate as evaluate

__all__ = ["PRIMITIVES", "Program", "check", "evaluate", "parse"]

_ON_FIRST_USE = {
    "PRIMITIVES": "primitives",
    "Program": "program",
    "check": "checking",
    "evaluate": "reference",
    "parse": "parsing",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = found
    return found
