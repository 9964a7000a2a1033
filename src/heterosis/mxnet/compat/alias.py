"""Answers `import mxnet` with what is here, so that programs written for MXNet run unchanged."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from heterosis.mxnet.compat import facade as mxnet
from heterosis.mxnet.compat.absent import ABSENT, explain, missing
from heterosis.mxnet.compat.views import warn_of_writes
from heterosis.runtime.errors import ArgumentError

_FACADE = mxnet.__name__ + "."
_ELSEWHERE = {mxnet.place_of(name): name for name in ABSENT}


def install_as_mxnet() -> None:
    """From now on `import mxnet` and what follows it give Heterosis, in this process.

    The modules are the same objects under both names. Call it before anything imports mxnet.
    """
    present = sys.modules.get("mxnet")
    if present not in (None, mxnet):
        raise ArgumentError(
            f"install_as_mxnet: another mxnet is imported already, from "
            f"{getattr(present, '__file__', 'somewhere')}. Call install_as_mxnet() before the "
            "first import of mxnet, or in a process of its own: python -m heterosis run script.py"
        )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        warn_of_writes()


class _Finder:
    """Finds `mxnet` and all below it. In front of the others, which would load files twice."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        first, _, name = fullname.partition(".")
        if first == "mxnet":
            return ModuleSpec(fullname, _Loader(_place(name)), is_package=True)
        name = _asked_for(fullname)
        if name is not None and PathFinder.find_spec(fullname, path) is None:
            raise ModuleNotFoundError(missing(name))
        return None


def _asked_for(fullname: str) -> str | None:
    """What `from mxnet... import name` asked for when importlib looks for `fullname` in a module
    of ours, whose own name that is."""
    if fullname.startswith(_FACADE):
        return fullname.removeprefix(_FACADE)
    return _ELSEWHERE.get(fullname)


def _place(name: str) -> str:
    """The module for `mxnet.<name>`. The error has no `name`: importlib would hide its text."""
    place = mxnet.place_of(name) if name else mxnet.__name__
    if place is None or not _exists(place):
        raise ModuleNotFoundError(missing(name))
    return place


def _exists(place: str) -> bool:
    try:
        return importlib.util.find_spec(place) is not None
    except ModuleNotFoundError:  # the module above it is no package
        return False


class _Loader:
    """Puts the module that exists in the place of the one being made, as importlib allows."""

    def __init__(self, place: str):
        self._place = place

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        found = sys.modules[module.__name__] = importlib.import_module(self._place)
        _, _, name = module.__name__.partition(".")
        if name:
            explain(found, name)


__all__ = ["install_as_mxnet"]
