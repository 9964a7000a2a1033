"""What rewritten generators call: they may go on when the capture has ended."""

from __future__ import annotations

import types
from typing import Any, Protocol

from heterosis.runtime import modes


class Flow(Protocol):
    """What they call during a capture, as all rewritten functions do: see `statements.Flow`."""

    def called(self, function: Any) -> Any: ...
    def attribute(self, owner: Any, name: str) -> Any: ...
    def item(self, owner: Any, key: Any) -> Any: ...
    def made(self, container: Any) -> Any: ...
    def changed(self, given: Any, attribute: str | None = None) -> Any: ...
    def augmented(self, value: Any, method: str) -> None: ...
    def rebound(self, name: str, read: types.FunctionType) -> None: ...


class Lasting:
    """During a capture, what a `Flow` does; behind it, what Python does."""

    def __init__(self, flow: Flow):
        self._flow = flow

    def called(self, function: Any) -> Any:
        """What is called in place of a function."""
        return self._flow.called(function) if modes.is_capturing() else function

    def attribute(self, owner: Any, name: str) -> Any:
        """What `owner.name` is."""
        return self._flow.attribute(owner, name) if modes.is_capturing() else getattr(owner, name)

    def item(self, owner: Any, key: Any) -> Any:
        """What `owner[key]` is."""
        return self._flow.item(owner, key) if modes.is_capturing() else owner[key]

    def made(self, container: Any) -> Any:
        """A container that is made here."""
        return self._flow.made(container) if modes.is_capturing() else container

    def changed(self, given: Any, attribute: str | None = None) -> Any:
        """An object that is about to be changed."""
        return self._flow.changed(given, attribute) if modes.is_capturing() else given

    def augmented(self, value: Any, method: str) -> None:
        """Tell of `value += ...`."""
        if modes.is_capturing():
            self._flow.augmented(value, method)

    def rebound(self, name: str, read: types.FunctionType) -> None:
        """Tell of a variable outside of the function that is set next."""
        if modes.is_capturing():
            self._flow.rebound(name, read)
