"""All modules with rows of the tables, which are filled once this is imported."""

from heterosis.codegen.lowerings import (
    boxes,
    channels_last,
    checks,
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
    "elementwise",
    "factorizations",
    "products",
    "recurrent",
    "reducers",
    "shuffling",
    "sorting",
    "windows",
]
