"""How meanings compute with NumPy where a result is a sum of many terms."""

from __future__ import annotations

from typing import Any


def precise(elements: Any) -> Any:
    """Floats as float64, to be rounded once at the end; integers as they are, since they wrap."""
    return elements if elements.dtype.kind in "biu" else elements.astype("float64")
