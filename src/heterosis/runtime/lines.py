"""The user's line: the nearest one on the stack that is not the framework's own."""

from __future__ import annotations

import os
import sys
from types import FrameType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_frame() -> tuple[FrameType, int]:
    """The nearest frame that is not the framework's own, and how many frames are below it."""
    depth, frame = 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        depth, frame = depth + 1, frame.f_back
    return frame, depth


def user_line() -> str:
    """Where that is: `net.py:12`, with the path of the file."""
    frame, _ = user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
