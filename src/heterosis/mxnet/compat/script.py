"""Runs a Python script as the interpreter would, with `import mxnet` answered."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from heterosis.mxnet.compat.alias import install_as_mxnet

_NOT_OPENED, _RAISED, _INTERRUPTED = 2, 1, 130  # exit statuses, those of Python


def run(script: str, arguments: Sequence[str]) -> None:
    """Run the file `script` as `__main__`. Ends with SystemExit where Python's status is not 0."""
    source = _read(script)
    install_as_mxnet()
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    path = os.path.abspath(script)
    with _reported(path):
        code = compile(source, path, "exec", dont_inherit=True)
        exec(code, _as_main(path).__dict__)  # noqa: S102 - running the user's script is the purpose


def _read(script: str) -> bytes:
    try:
        with io.open_code(os.path.abspath(script)) as file:
            return file.read()
    except OSError as error:
        print(f"heterosis run: cannot open {script!r}: {error.strerror}", file=sys.stderr)
        raise SystemExit(_NOT_OPENED) from None


def _as_main(path: str) -> ModuleType:
    """A fresh `__main__`; the one before stays alive with this module."""
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None)
    _mains.extend((sys.modules["__main__"], module))
    sys.modules["__main__"] = module
    return module


_mains: list[ModuleType] = []


@contextmanager
def _reported(path: str) -> Iterator[None]:
    """Errors inside are shown by `sys.excepthook`, without the frames in front of the script's."""
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - also KeyboardInterrupt
        traceback = error.__traceback__
        while traceback and traceback.tb_frame.f_code.co_filename != path:
            traceback = traceback.tb_next
        error.__traceback__ = traceback
        sys.excepthook(type(error), error, traceback)
        interrupted = isinstance(error, KeyboardInterrupt)
        raise SystemExit(_INTERRUPTED if interrupted else _RAISED) from None


__all__ = ["run"]
