"""The primitives that programs are made of: their families, and all of them in one table."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heterosis.ir.primitives.families import Primitive

    PRIMITIVES: Mapping[str, Primitive]

# All modules that declare primitives, in the order in which the table shows them.
_MODULES = (
    "leaves", "rearranging", "rows", "conversions", "elementwise", "real", "reductions", "products",
    "windows", "recurrent", "sort_keys", "sorting", "factorizations", "boxes", "random_bits",
    "random_loops", "shuffling", "checks", "control",
)  # fmt: skip


def _collected() -> Mapping[str, Primitive]:
    """The primitives at the top of these modules, by their names."""
    from heterosis.ir.primitives.families import Primitive

    found: dict[str, Primitive] = {}
    for name in _MODULES:
        module = import_module(f"{__name__}.{name}")
        for value in vars(module).values():
            if isinstance(value, Primitive) and found.setdefault(value.name, value) is not value:
                raise AssertionError(f"two primitives are called {value.name}; rename one of them")
    return MappingProxyType(found)


def __getattr__(name: str) -> Any:
    """`PRIMITIVES`, made when it is first asked for: most of its modules import programs."""
    if name != "PRIMITIVES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = _collected()
    return globals()[name]
