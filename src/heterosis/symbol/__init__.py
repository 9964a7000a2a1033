"""Symbols: programs as values that can be composed, saved, loaded and run.

As `F` while a program is captured, the module has the operations of `heterosis.ndarray`.
"""

from __future__ import annotations

from typing import Any

from heterosis import ndarray
from heterosis.mxnet.symbols import composition as _composition
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.symbol import contrib, linalg, random
from heterosis.symbol.symbol import Symbol, group, load, load_json, var

Variable, Group, fromjson = var, group, load_json

_FUNCTIONS = _composition.functions()
globals().update(_FUNCTIONS)


def __getattr__(name: str) -> Any:
    found = None
    if not name.startswith("__"):
        found = _composition.function(name) or getattr(ndarray, name, None)
    if found is None:
        raise AttributeError(f"module 'heterosis.symbol' has no operator and no module {name!r}")
    globals()[name] = found
    return found


_check_members(globals())

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "contrib",
    "fromjson",
    "linalg",
    "load",
    "load_json",
    "random",
    "var",
]
__all__ += list(_FUNCTIONS)
