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

_lock = threading.RLock()
forks.hold(_lock)
_pauses = 0  # that are going on, of all threads
_is_ours = False  # whether it is we who have switched it off


@contextmanager
def not_searched() -> Iterator[None]:
    """For `with`: nothing is searched for inside. What is there then is found afterwards."""
    global _pauses, _is_ours
    with _lock:
        if not _pauses and gc.isenabled():
            gc.disable()
            _is_ours = True
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses = max(_pauses - 1, 0)
            if not _pauses:
                _search_again()


def _search_again() -> None:
    global _is_ours
    if _is_ours:
        gc.enable()
        _is_ours = False


def _start_in_child() -> None:
    """Forget the pauses of threads that the child does not have."""
    global _pauses
    _pauses = 0
    _search_again()


os.register_at_fork(after_in_child=_start_in_child)
