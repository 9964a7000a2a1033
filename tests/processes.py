"""Python in other processes and folders, finding what this one finds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable


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


def raises(error: type[Exception], text: str, function: Callable[[], object]) -> None:
    """Check that `function` raises, with `text`: in processes that run without pytest."""
    try:
        function()
    except error as raised:
        assert text in str(raised), raised
    else:
        raise AssertionError(f"no {error.__name__}")
