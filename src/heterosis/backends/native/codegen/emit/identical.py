"""Functions of one module that differ in nothing but their names become one.

Kernels bring their own copies of what they are made of: two convolutions that differ in what they
do to a result have the same windows, edges and products. LLVM would compile every copy.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

_NAME = re.compile(r"@([\w.]+)")  # splits a text into parts with names at odd positions
_OWN = "its own name"


def stand_ins(texts: dict[str, str], inside: AbstractSet[str]) -> dict[str, str]:
    """Which functions others stand in for, given all functions' texts by their names.

    Functions are replaced only if they are named in `inside`: nobody else knows them.
    """
    parts = {name: _NAME.split(texts[name]) for name in texts if name in inside}
    stands: dict[str, str] = {}
    while found := _alike({n: p for n, p in parts.items() if n not in stands}, stands):
        stands |= found
    return {name: _last(name, stands) for name in stands}


def renamed(text: str, stands: dict[str, str]) -> str:
    """Text that names functions, with those that stand in for others instead of them."""
    return _NAME.sub(lambda found: f"@{stands.get(found[1], found[1])}", text) if stands else text


def _alike(parts: dict[str, list[str]], stands: dict[str, str]) -> dict[str, str]:
    """Functions equal to an earlier one once those in `stands` are replaced, and that one."""
    first: dict[tuple[str, ...], str] = {}
    found = {}
    for name, own in parts.items():
        key = list(own)
        key[1::2] = [_OWN if n == name else _last(n, stands) for n in own[1::2]]
        other = first.setdefault(tuple(key), name)
        if other != name:
            found[name] = other
    return found


def _last(name: str, stands: dict[str, str]) -> str:
    while name in stands:
        name = stands[name]
    return name
