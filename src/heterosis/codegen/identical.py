"""Functions of one module that differ in nothing but their names become one.

Kernels bring their own copies of what they are made of: two convolutions that differ in what they
do to a result have the same windows, edges and products. LLVM would compile every copy.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

_NAME = re.compile(r"@([\w.]+)")
_OWN = "its own name"


def merged(texts: dict[str, str], inside: AbstractSet[str]) -> list[str]:
    """The texts of functions, given by their names, without those that another one stands in for.

    Functions are replaced only if they are named in `inside`: nobody else knows them.
    """
    parts = {name: _NAME.split(text) for name, text in texts.items()}  # names at odd positions
    stands: dict[str, str] = {}
    while found := _alike({n: p for n, p in parts.items() if n in inside - stands.keys()}, stands):
        stands |= found
    return [_renamed(own, stands) for name, own in parts.items() if name not in stands]


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


def _renamed(parts: list[str], stands: dict[str, str]) -> str:
    made = list(parts)
    made[1::2] = [f"@{_last(name, stands)}" for name in parts[1::2]]
    return "".join(made)
