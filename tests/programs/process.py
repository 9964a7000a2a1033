"""Workers: processes that run programs, one a target, started again when a program ends them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from typing import Any

LIMIT = 120  # seconds that one program may take
SERVED = 400  # programs that one process runs


class Worker:
    """A process for one target. `traced`: it notes which lines of the compiler run; `turned`:
    networks keep their channels last wherever that is possible, worth it or not."""

    def __init__(self, target: str | None = None, *, traced: bool = False, turned: bool = False):
        self.target, self.traced, self.turned = target, traced, turned
        # Plans that are made with other prices are not for others to find.
        self._folder = tempfile.TemporaryDirectory() if turned else None
        self.lines: dict[str, set[int]] = {}  # of the compiler that ran, if they are traced
        self.operations: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._left = 0

    @property
    def flags(self) -> str:
        """Of a command that runs programs as this worker does."""
        target = f" --targets {self.target}" if self.target else ""
        return target + (" --turned" if self._folder else "")

    def run(self, *job: Any) -> Any:
        """What the process tells of a job; if it ends or hangs instead, how it did."""
        self.start(*job)
        return self.result()

    def start(self, *job: Any) -> None:
        """Begin a job; `result` waits for it."""
        if self._process is None or self._left == 0:
            self.close()
            self._open()
        self._left -= 1
        self._connection.send(job)

    def result(self) -> Any:
        try:
            if self._connection.poll(LIMIT):
                return self._connection.recv()
            how = f"no end within {LIMIT} s"
        except (EOFError, ConnectionError):
            how = "crash"
        process = self._process
        if how != "crash":
            process.kill()
        code = process.wait()
        self.close()
        if how == "crash":
            how = f"{signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return {"process": (how, "", "")}

    def _open(self) -> None:
        ours, theirs = socket.socketpair()
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path)
        if self.target:
            environment["HETEROSIS_TARGET"] = self.target
        command = [sys.executable, "-m", "tests.programs.worker", str(theirs.fileno())]
        command.append("traced" if self.traced else "untraced")
        if self._folder:
            environment["HETEROSIS_CACHE"] = self._folder.name
            command.append("turned")
        self._process = subprocess.Popen(
            command, env=environment, pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL
        )
        theirs.close()
        self._connection = Connection(ours.detach())
        self._left = SERVED

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            if self.traced and self._process.poll() is None:
                self._gather()
            self._connection.close()
            self._process.wait()
            self._process = None

    def _gather(self) -> None:
        """Take over what a process has traced."""
        self._connection.send(())
        lines, operations = self._connection.recv()
        self.operations |= operations
        for file, seen in lines.items():
            self.lines.setdefault(file, set()).update(seen)
