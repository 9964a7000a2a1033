"""Arrays that a program knows from outside, and may know twice: the same view, or another one."""

from __future__ import annotations

from typing import Any

from heterosis.autograd import tape
from heterosis.capture.captured import Outside
from heterosis.capture.memory import Cell
from heterosis.runtime.errors import CaptureError


def is_same_view(array: Any, cell: Cell) -> bool:
    """Whether an array shows what the input does that its cell holds, if it holds one."""
    source = cell.source
    return not isinstance(source, Outside) or shows(source, array)


def shows(source: Outside, array: Any) -> bool:
    """Whether an input stands for an array, too: not if gradients flow to the array only."""
    known = source.array
    if known is array:
        return True
    flows = tape.source_of(array) is not None and tape.source_of(known) is None
    return are_same_view(known, array) and not flows


def are_same_view(a: Any, b: Any) -> bool:
    """Whether two arrays show the same elements in the same way."""
    return place(a) == place(b)


def place(a: Any) -> tuple[Any, ...]:
    """Equal for arrays that show the same elements in the same way."""
    return a._storage_id, a._offset, a.shape, a._element_strides, a._dtype_name


def overlap(one: Any, other: Any) -> CaptureError:
    """What is raised where they only share memory, and that is written to."""
    return CaptureError(
        f"two arrays from outside the program, of shapes {one.shape} and {other.shape}, share "
        "memory, and the program writes to it. Pass copies."
    )
