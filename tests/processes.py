"""Python in other processes and folders, finding what this one finds."""

from __future__ import annotations

import os
import subprocess
import sys


def run_python(*arguments: str, folder: str | os.PathLike[str]) -> subprocess.CompletedProcess[str]:
    """Run the interpreter with `arguments` in `folder`."""
    paths = [os.path.abspath(path) for path in sys.path]
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
