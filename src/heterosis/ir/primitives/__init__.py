"""The primitives that programs are made of: their families, and all of them in one table."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heterosis.ir.primitives.families import Primitive

    PRIMITIVES: Mapping[str, Primitive]

# All modules that declare primitives, in the order in which the table shows them.
_MODULES = (
    "leaves", "rearranging", "rows", "conversions", "elementwise", "real", "reductions", "products",
    "windows", "recurrent", "sort_keys", "sorting", "factorizations", "boxes", "random_bits",
    "random_loops", "shuffling", "checks", "control",
)  # fmt: skip


_met: set[Primitive] = set()  # of modules that were loaded


def is_declared(primitive: Primitive) -> bool:
    """Whether the table has `primitive`. Modules that nobody has loaded are not loaded for that:
    what they declare is met nowhere."""
    if primitive not in _met:
        loaded = (name for name in _MODULES if f"{__name__}.{name}" in sys.modules)
        _met.update(chain.from_iterable(map(_declared, loaded)))
    return primitive in _met


def _declared(module: str) -> Iterator[Primitive]:
    """The primitives at the top of a module."""
    from heterosis.ir.primitives.families import Primitive

    found = vars(import_module(f"{__name__}.{module}")).values()
    return (value for value in found if isinstance(value, Primitive))


def _collected() -> Mapping[str, Primitive]:
    """All primitives by their names."""
    found: dict[str, Primitive] = {}
    for primitive in chain.from_iterable(map(_declared, _MODULES)):
        if found.setdefault(primitive.name, primitive) is not primitive:
            raise AssertionError(f"two primitives are called {primitive.name}; rename one of them")
    return MappingProxyType(found)


def __getattr__(name: str) -> Any:
    """`PRIMITIVES`, made when it is first asked for: most of its modules import programs."""
    if name != "PRIMITIVES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = _collected()
    return globals()[name]
