"""What the core and the tape call while functions are captured."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from heterosis import _core
from heterosis.autograd import tape
from heterosis.autograd.derivative import set_inline
from heterosis.capture.active import active, noting
from heterosis.capture.trace import Trace
from heterosis.ir.strided import row_major
from heterosis.ir.traced_sizes import TracedSize


def _of_active(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the capture that is active, which may have one of its own."""
    name = method.__name__
    return noting(lambda *arguments: getattr(active(), name)(*arguments))


def install() -> None:
    """Let the core, and the tape, call the capture."""
    set_inline(_of_active(Trace.inline))
    tape.set_capture(
        _of_active(Trace.check_marked),
        _of_active(Trace.need_tape),
        _of_active(Trace.note_written),
        _of_active(Trace.note_asked),
    )
    _core.set_hook("capture_call", _of_active(Trace.call))
    _core.set_hook("capture_made", _of_active(Trace.made))
    _core.set_hook("capture_read", _of_active(Trace.read))
    _core.set_hook("traced_size", TracedSize)
    _core.set_hook("count_of", math.prod)
    _core.set_hook("strides_of", row_major)
