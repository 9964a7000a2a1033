"""All modules with rows: once this is imported, the tables are full."""

from heterosis.backends.native.codegen.lowerings import (
    boxes,
    channels_last,
    checks,
    counting,
    elementwise,
    factorizations,
    products,
    recurrent,
    reducers,
    shuffling,
    sorting,
    windows,
)

__all__ = [
    "boxes",
    "channels_last",
    "checks",
    "counting",
    "elementwise",
    "factorizations",
    "products",
    "recurrent",
    "reducers",
    "shuffling",
    "sorting",
    "windows",
]
