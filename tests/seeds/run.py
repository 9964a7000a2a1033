"""What the cells of a document do, each document in a process and a folder of its own."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile

from tests.seeds.documents import ROOT


@functools.cache
def results(document: str) -> dict[int, dict[str, str]]:
    """For the numbers of its cells: the text printed, and the error or nothing."""
    paths = [str(ROOT), *(path for path in sys.path if path)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.seeds.worker", document],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return {int(number): result for number, result in json.loads(done.stdout).items()}
