"""Handles of functions that blocks call before and after their forward pass."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_numbers = itertools.count()


class HookHandle:
    """Keeps a hook in place until `detach`, or until the end of a `with`."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]):
        self._hooks, self._number = hooks, next(_numbers)
        hooks[self._number] = hook

    def detach(self) -> None:
        """Take the hook away; nothing happens the second time."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> HookHandle:  # noqa: PYI034 - typing has no Self in Python 3.10
        return self

    def __exit__(self, *error: object) -> None:
        self.detach()
