"""What the cells of a document do, each document in a process and a folder of its own."""

from __future__ import annotations

import functools
import json
import tempfile

from tests.processes import run_python


@functools.cache
def results(document: str) -> dict[int, dict[str, str]]:
    """For the numbers of its cells: the text printed, and the error or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        done = run_python("-m", "tests.seeds.worker", document, folder=folder)
    assert done.returncode == 0, done.stderr
    return {int(number): result for number, result in json.loads(done.stdout).items()}
