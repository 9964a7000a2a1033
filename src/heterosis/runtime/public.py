"""What `dir` of a module lists: what users call, and not what it is made of."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from typing import Any


def listing(namespace: Mapping[str, Any], modules: Collection[str] = ()) -> Callable[[], list[str]]:
    """A `__dir__` for a module: its public names, and of modules those that are named."""

    def public(name: str, member: Any) -> bool:
        if name.startswith("_"):
            return False
        return name in modules or not isinstance(member, types.ModuleType)

    def names() -> list[str]:
        return sorted(name for name, member in namespace.items() if public(name, member))

    return names
