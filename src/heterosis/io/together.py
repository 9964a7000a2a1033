"""Files of arrays that several processes have together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from heterosis import _core, backends
from heterosis.io.atomic import written
from heterosis.io.files import FileName


@contextmanager
def written_by_one(path: FileName, arrays: Sequence[Any]) -> Iterator[BinaryIO]:
    """`written`, where all processes that have the arrays together are to come: the first of them
    writes the file, and the others wait until it is there."""
    of_processes = _core.of_processes
    if not any(isinstance(a, _core.ndarray) and a._device == of_processes for a in arrays):
        with written(path) as file:
            yield file
        return
    processes = backends.named(backends.XLA).processes
    with written(path if processes.rank == 0 else os.devnull) as file:
        yield file
    processes.agree("has saved arrays that all processes have together")
