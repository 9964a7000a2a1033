"""Symbols: programs as values that can be composed, saved, loaded and run.

As `F` while a program is captured, the module has the operations of `heterosis.ndarray`.
"""

from __future__ import annotations

from typing import Any

from heterosis import ndarray
from heterosis.mxnet.symbols.composition import binary as _binary
from heterosis.mxnet.symbols.composition import creation as _creation
from heterosis.mxnet.symbols.composition import function as _function
from heterosis.mxnet.symbols.symbol import Symbol, group, load, load_json, var
from heterosis.runtime.arguments import check_members as _check_members

Variable, Group, fromjson = var, group, load_json

maximum, minimum = _binary("maximum"), _binary("minimum")
power, hypot = _binary("power"), _binary("hypot")
pow = power
zeros, ones = _creation("zeros", "_npi_zeros"), _creation("ones", "_npi_ones")
full, arange = _creation("full", "_npi_full"), _creation("arange", "_npi_arange")
eye, linspace = _creation("eye", "_npi_eye"), _creation("linspace", "_npi_linspace")
split_v2, histogram = _function("_split_v2"), _function("_histogram")


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else _function(name) or getattr(ndarray, name, None)
    if found is None:
        raise AttributeError(f"module 'heterosis.symbol' has no operator and no module {name!r}")
    globals()[name] = found
    return found


_check_members(globals())

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "eye",
    "fromjson",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "var",
    "zeros",
]
