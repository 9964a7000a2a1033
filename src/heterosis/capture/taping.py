"""What the tape is told of operations that a captured function records, and what it is asked of
their operands: who is a variable, and where gradients from outside end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heterosis import _core
from heterosis.autograd import tape
from heterosis.capture.captured import Argument, Outside, Source
from heterosis.ir.program import Value
from heterosis.ir.types import is_float
from heterosis.ops.math.cast import stop_gradient
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError

if TYPE_CHECKING:
    from heterosis.capture.trace import Trace

ndarray = _core.ndarray


def stopped(
    trace: Trace, operands: Sequence[Any], values: tuple[Value | None, ...]
) -> tuple[Value | None, ...]:
    """The values of operands while operations are recorded, without those gradients that an
    eager tape would not follow."""
    for array in operands:
        if isinstance(array, ndarray):
            _check_unwritten(trace, array)
    if not trace.recorded and not any(map(tape.source_of, operands)):
        return values
    ends = _is_detached if trace.recorded else _ends
    return tuple(
        stop_gradient(value)
        if value is not None and isinstance(operand, ndarray) and ends(trace, operand)
        else value
        for operand, value in zip(operands, values, strict=True)
    )


def _check_unwritten(trace: Trace, array: Any) -> None:
    """Note a variable that is used after it was written to: what a program is given, and finds
    gradients for, is its value from before."""
    cell = trace.cell(array)
    if cell.writes and isinstance(cell.source, Argument | Outside):
        outside = trace.original(cell.source)
        if isinstance(trace.place_before(outside), tape.Leaf):
            trace.rewritten.add(outside._storage_id)
            if trace.recorded:
                raise rewritten_error(outside)


def _is_detached(trace: Trace, array: Any) -> bool:
    """Whether it shares the memory of an array that gradients flow to, and is none itself."""
    known = trace.cell(array).source
    if not isinstance(known, Outside) or known.array is array:
        return False
    return tape.source_of(array) is None and tape.source_of(known.array) is not None


def _ends(trace: Trace, array: Any) -> bool:
    """Whether gradients from outside do not go through an operand that the function records:
    the tape does not follow it, or it is a variable that the function has made."""
    source = tape.source_of(array)
    if isinstance(source, tape.Leaf):
        return not isinstance(trace.cell(array).source, Outside)
    return source is None


def note_writes(trace: Trace, outs: Sequence[Any]) -> None:
    """Note what recorded calls have written to, for arrays that share the memory."""
    for array in outs:
        if tape.source_of(array) is not None:
            cell = trace.cell(array)
            trace.recorded_writes[cell.base or cell] = tape.sweeps()


def is_lost(trace: Trace, array: Any) -> bool:
    """Whether an array, which is not on the tape, holds what a recorded call has written."""
    cell = trace.cell(array)
    written = trace.recorded_writes.get(cell.base or cell)
    return written == tape.sweeps() and is_float(array._dtype_name)


def check_no_variable(trace: Trace, name: str, array: Any) -> None:
    """Raise for what a choice has handed on while nothing was recorded, and may be a variable:
    gradients would reach it or not."""
    sources = (cell.source for cell in trace.may_be(array))
    outside = (source.array for source in sources if isinstance(source, Outside))
    if any(tape.source_of(one) is not None for one in outside):
        raise CaptureError(
            f"{name}: an array may be a variable, since a branch or a loop hands it on as it "
            "is, before operations are recorded. Choose while they are recorded."
        )


def depend_on_places(trace: Trace, arrays: Sequence[Any]) -> None:
    """Let the program depend on which arrays from outside are variables, and on where their
    gradients go."""
    for array in arrays:
        source = trace.place_before(array)
        if isinstance(trace.cell(array).source, Outside) and not isinstance(source, tape.Entry):
            trace.guards.depend_on_place(array, source)


def check_variable(trace: Trace, source: Source | None) -> None:
    """Raise before a variable from outside is written to where gradients are recorded."""
    if modes.is_recording() and isinstance(source, Argument | Outside):
        outside = trace.original(source)
        if outside._has_variable:
            tape.check_write(outside)


def check_views(trace: Trace, outs: Sequence[Any]) -> None:
    """Raise before what the tape follows is written to a part of an array, or to a variable."""
    for array, cell in zip(outs, map(trace.cell, outs), strict=True):
        if cell.base is not None and isinstance(cell.base.source, Outside):
            tape.check_write(cell.base.source.array)
        if not cell.covers_base:
            raise tape.part_written(array)


def rewritten_error(variable: Any) -> CaptureError:
    """What is raised for a variable that is used after a write, where that is recorded."""
    return CaptureError(
        f"a variable of shape {variable.shape} is written to in the hybridized function, and "
        "used after that in what is recorded: its gradient would not reach it. Write to it "
        "outside of the function, or call backward() inside."
    )
