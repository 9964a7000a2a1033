"""`sym.contrib`: choices and loops of symbols; on arrays, and for all else, `nd.contrib`."""

from __future__ import annotations

from typing import Any

from heterosis.mxnet.symbols import composition as _composition
from heterosis.mxnet.symbols.control import cond, foreach, while_loop
from heterosis.ndarray import contrib as _contrib


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not hasattr(_contrib, name):
        raise AttributeError(f"module 'heterosis.symbol.contrib' has no {name!r}")
    return _composition.either(f"_contrib_{name}", getattr(_contrib, name))


__all__ = ["cond", "foreach", "while_loop"]
