"""Names of blocks: `dense0_`, and `model0_dense0_` inside a block's name scope."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterosis.gluon.block import Block


class _Current(threading.local):
    """What this thread's next block is named after."""

    def __init__(self) -> None:
        self.scope: NameScope | None = None
        self.counts: Counter[str] = Counter()


_current = _Current()


class NameScope:
    """`with block.name_scope():` - the blocks made inside are named as parts of `block`."""

    def __init__(self, block: Block):
        self.block = block
        self.counts: Counter[str] = Counter()
        self._outer: list[NameScope | None] = []

    def __enter__(self) -> NameScope:  # noqa: PYI034 - typing has no Self in Python 3.10
        self._outer.append(_current.scope)
        if self.block.prefix_given != "":  # a block without a prefix is transparent
            _current.scope = self
        return self

    def __exit__(self, *error: Any) -> None:
        _current.scope = self._outer.pop()


def current_scope() -> NameScope | None:
    """The innermost name scope that this thread is in."""
    return _current.scope


def next_prefix(kind: str) -> str:
    """The prefix of the next block of a kind in the current scope: the kind and a number."""
    counts = _current.scope.counts if _current.scope else _current.counts
    counts[kind] += 1
    return f"{kind}{counts[kind] - 1}_"
