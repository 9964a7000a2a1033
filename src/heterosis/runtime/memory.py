"""The C library's memory, which NumPy, Pillow and Python use beside the core's own."""

from __future__ import annotations

from functools import cache

import numpy

_LARGE_BLOCK = 24 << 20


@cache
def keep_freed_memory() -> None:
    """Let temporary arrays on the host use memory again that earlier ones have freed.

    The C library gives large blocks back to the system at once, and each new one is filled with
    zeros page by page, until it has seen a block freed that is larger still: this one. Work on
    images takes two to three times as long without.
    """
    numpy.empty(_LARGE_BLOCK, numpy.uint8)
