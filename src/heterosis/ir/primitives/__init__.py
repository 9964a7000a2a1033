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
    "windows", "recurrent", "sort_keys", "sorting", "counting", "factorizations", "boxes",
    "random_bits", "random_loops", "shuffling", "checks", "control",
)  # fmt: skip


_subjects: dict[Primitive, str] = {}  # of those that were asked for


def subject_of(primitive: Primitive) -> str | None:
    """The module here that declares `primitive`, under its name in capitals; None if none does.

    Modules that nobody has loaded are not loaded for that: what they declare is met nowhere.
    """
    if primitive not in _subjects:
        name = primitive.name.upper()
        for subject in _MODULES:
            module = sys.modules.get(f"{__name__}.{subject}")
            if module is not None and vars(module).get(name) is primitive:
                _subjects[primitive] = subject
    return _subjects.get(primitive)


def is_declared(primitive: Primitive) -> bool:
    """Whether the table has `primitive`."""
    return subject_of(primitive) is not None


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
