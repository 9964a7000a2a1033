"""Machine code that stays in memory: what plans run, and the latest of the rest."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from heterosis._core import LoadedObject

K = TypeVar("K", bound=Hashable)

MOST_UNUSED = 256  # a program that was dropped is often made again; each takes two memory maps


class KeptObjects(Generic[K]):
    """Loaded objects by what they were made of.

    Plans keep the code that they run, so that forgetting an object here never takes code away from
    a plan: at worst, it is loaded once more for the next one. Threads may share it.
    """

    def __init__(self, most_unused: int = MOST_UNUSED):
        self.most_unused = most_unused
        self._objects: dict[K, LoadedObject] = {}
        self._full = 2 * most_unused  # so many, and those that nothing runs are looked for

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: K) -> LoadedObject | None:
        """The object that was made of `key`, if it is still here."""
        return self._objects.get(key)

    def add(self, key: K, made: LoadedObject) -> None:
        """Keep an object, for now."""
        self._objects[key] = made
        if len(self._objects) >= self._full:
            self._forget()

    def _forget(self) -> None:
        """Forget the objects that nothing runs, but the latest."""
        objects = self._objects.copy()  # in one step: other threads may add some
        unused = [key for key, made in objects.items() if not made.is_used]
        for key in unused[: max(len(unused) - self.most_unused, 0)]:
            self._objects.pop(key, None)
        self._full = len(self._objects) + self.most_unused
