"""`F` while a program is captured: the operations of `heterosis.ndarray`, on arrays that have no
elements yet."""

from __future__ import annotations

from typing import Any

from heterosis import ndarray


def __getattr__(name: str) -> Any:
    found = globals()[name] = getattr(ndarray, name)
    return found
