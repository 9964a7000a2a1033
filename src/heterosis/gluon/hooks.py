"""Handles of functions that blocks call before and after their forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class HookHandle:
    """Keeps a hook in place until `detach`, or until the end of a `with`."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]):
        self._hooks = hooks
        hooks[id(self)] = hook

    def detach(self) -> None:
        """Take the hook away; nothing happens the second time."""
        self._hooks.pop(id(self), None)

    def __enter__(self) -> HookHandle:  # noqa: PYI034 - typing has no Self in Python 3.10
        return self

    def __exit__(self, *error: object) -> None:
        self.detach()
