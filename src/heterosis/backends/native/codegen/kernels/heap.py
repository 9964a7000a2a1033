"""Memory of which a kernel knows only while it runs how much it needs: it grows, and is given back.

It is no part of a plan's workspace: the C library's `realloc` and `free` are called for it.
"""

from __future__ import annotations

import ctypes
from functools import cache

from heterosis import _core
from heterosis.backends.native.codegen.emit.builder import PTR, Function, Size, Value

# Generated code knows the two by these names, which an object file from the disk has as well.
_ROUTINES = {"heterosis_heap_resize": "realloc", "heterosis_heap_free": "free"}
_RESIZE, _FREE = _ROUTINES


def resized(f: Function, memory: Value, nbytes: Size) -> Value:
    """The memory, of another size and maybe elsewhere; null if there is not as much."""
    _register()
    return f.call(_RESIZE, [memory, f.i64(nbytes)], PTR)


def free(f: Function, memory: Value) -> None:
    """Give the memory back."""
    f.call(_FREE, [memory])


@cache
def _register() -> None:
    library = ctypes.CDLL(None)
    for name, routine in _ROUTINES.items():
        address = ctypes.cast(getattr(library, routine), ctypes.c_void_p).value
        assert address is not None, f"every C library has {routine}"
        _core.register_symbol(name, address)


def register_called(file: bytes) -> bool:
    """Let the routines be called that an object file names; whether there are any."""
    calls = _RESIZE.encode() in file
    if calls:
        _register()
    return calls
