"""Warnings that point at the user's line, however deep in the framework they arise."""

from __future__ import annotations

import warnings

from heterosis.runtime.lines import user_frame


def warn_user(message: str) -> None:
    """Warn at the nearest line that is not the framework's own."""
    _, depth = user_frame()
    warnings.warn(message, stacklevel=depth + 1)
