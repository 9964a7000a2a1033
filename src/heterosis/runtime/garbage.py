"""Python's search for objects that only refer to each other, while a program is compiled.

It looks through all objects, again and again as they become more: those of a program, which are all
in use, took it a quarter of the time.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from heterosis.runtime import forks


class _Pauses:
    """Those of all threads that are going on."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        forks.hold(self.lock)
        self._count = 0
        self._is_ours = False  # whether it is we who have switched the search off

    def begin(self) -> None:
        with self.lock:
            if not self._count and gc.isenabled():
                gc.disable()
                self._is_ours = True
            self._count += 1

    def end(self) -> None:
        with self.lock:
            self._count = max(self._count - 1, 0)  # a child begins with none
            if not self._count:
                self._search_again()

    def forget(self) -> None:
        """Begin anew in a child, which does not have the threads."""
        self._count = 0
        self._search_again()

    def _search_again(self) -> None:
        if self._is_ours:
            gc.enable()
            self._is_ours = False


_pauses = _Pauses()
os.register_at_fork(after_in_child=_pauses.forget)


@contextmanager
def not_searched() -> Iterator[None]:
    """For `with`: nothing is searched for inside. What is there then is found afterwards."""
    _pauses.begin()
    try:
        yield
    finally:
        _pauses.end()
