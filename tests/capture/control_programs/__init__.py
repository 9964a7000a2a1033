"""Programs whose arrays decide how they go on: the table, in files by subject."""

from tests.capture.control_programs import (
    algorithms,  # noqa: F401 - each puts its programs into the table
    choices,  # noqa: F401
    functions,  # noqa: F401
    loops,  # noqa: F401
    updates,  # noqa: F401
    values,  # noqa: F401
)
from tests.capture.control_programs.table import PROGRAMS, SHIFTS, agree, called, loss_of

__all__ = ["PROGRAMS", "SHIFTS", "agree", "called", "loss_of"]
