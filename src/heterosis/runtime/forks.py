"""What must hold when a process forks: the child waits for no thread that it does not have.

Locks that guard short work are taken before the fork. Whoever is importing is waited for, as a
first call imports what plans and compiles: the child would find the lock of the import taken for
ever. Locks under which a user's function runs are free again in the child.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import weakref
from typing import Any

from heterosis import _core

# What our functions import when they are first called. Others may import for as long as they run.
_IMPORTED = frozenset(
    ("PIL", "heterosis", "llvmlite", "matplotlib", "ml_dtypes", "numpy", "rich", "safetensors",
     "scipy_openblas32", *sys.stdlib_module_names)
)  # fmt: skip

_held: list[Any] = []
_imports: Any = importlib._bootstrap


def hold(lock: Any) -> None:
    """Let every fork take `lock`, a `threading.RLock`, before and let go of it after, in both."""
    _held.append(lock)


def _before() -> None:
    """Take the locks at a moment when nobody imports: who imports may want one of them."""
    while True:
        for name in _being_imported():
            _imports._lock_unlock_module(name)  # waits for it
        for lock in _held:
            lock.acquire()
        if not _being_imported():
            _core.hold_front_lock()
            return
        _let_go()


def _after() -> None:
    _core.release_front_lock()
    _let_go()


def _let_go() -> None:
    for lock in reversed(_held):
        lock.release()


def _being_imported() -> list[str]:
    """The modules that other threads are importing."""
    me = threading.get_ident()
    locks = ((name, found()) for name, found in list(_imports._module_locks.items()))
    taken = [name for name, lock in locks if getattr(lock, "owner", None) not in (None, me)]
    return [name for name in taken if name.partition(".")[0] in _IMPORTED]


class ReleasedLock:
    """A lock for longer work, which its thread may take again; a forked child finds it free, unless
    its own thread holds it."""

    def __init__(self) -> None:
        self._renew()
        _released.add(self)

    def _renew(self) -> None:
        self._lock: Any = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_released: weakref.WeakSet[ReleasedLock] = weakref.WeakSet()


def _after_in_child() -> None:
    _after()
    for lock in list(_released):
        if not lock._lock._is_owned():
            lock._renew()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
