"""MXNet 1.9.1 in a process of its own, which answers until it is closed."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.differential import wire

VARIABLE = "HETEROSIS_MXNET_PYTHON"
ROOT = Path(__file__).parents[2]
_SECONDS = 240


class AskedInVain(Exception):
    """MXNet raised, ended its process, or did not answer in time."""


def why_not(python: str | None = os.environ.get(VARIABLE)) -> str | None:
    """Why MXNet cannot be asked through this interpreter; nothing if it can."""
    if not python:
        return f"{VARIABLE} names no Python that has MXNet: see tests/differential/environment.sh"
    if not Path(python).is_file():
        return f"{VARIABLE}={python} is no file"
    return None


class MXNetProcess:
    """Calls functions in MXNet's interpreter; a process that ended is followed by a new one."""

    def __init__(self, python: str | None = None):
        self._python = python or os.environ[VARIABLE]
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, module: str, function: str, *arguments: Any, seconds: float = _SECONDS) -> Any:
        """What a function of a module under `tests` returns there."""
        if self._process is None:
            self._process = self._started()
        try:
            self._process.stdin.write(wire.encoded([module, function, *arguments]))
            self._process.stdin.flush()
            readable, _, _ = select.select([self._process.stdout], [], [], seconds)
            line = self._process.stdout.readline() if readable else None
        except BrokenPipeError:
            line = b""
        if not line:
            self.close()
            raise AskedInVain(self._last_words() if line is not None else f"no word in {seconds} s")
        answer = wire.decoded(line)
        if "error" in answer:
            raise AskedInVain(answer["error"])
        return answer["result"]

    def answer(self, code: str) -> dict[str, Any]:
        """What a piece of code gives there (see answers.py); its process may end over it."""
        try:
            return self.call("tests.differential.answers", "mxnet_answer", code)
        except AskedInVain as error:
            return {"raised": "the end of its process", "message": str(error)}

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._python, "-W", "ignore", "-m", "tests.differential.mxnet_server"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
        )

    def _last_words(self) -> str:
        self._messages.seek(0)
        told = self._messages.read().decode(errors="replace").splitlines()
        return "\n".join(["the process ended", *told[-5:]])

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
