"""Functions that ask what is no part of a program, the time, random numbers of others, files, the
process, or that do something there. They run when a function is captured, and that is told of."""

from __future__ import annotations

import contextvars
import datetime
import io
import logging
import os
import pathlib
import random
import types
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import _core

_RANDOM = (random.Random, numpy.random.RandomState, numpy.random.Generator)
_ASKED = (*_RANDOM, contextvars.ContextVar, io.IOBase, logging.Logger, pathlib.Path)
_CLOCKS = frozenset({
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
    "process_time", "process_time_ns", "thread_time", "localtime", "gmtime", "ctime", "now",
    "today", "utcnow",
})  # fmt: skip
# Not what users' objects say of themselves: to ask them would run their code.
_FUNCTIONS = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, type(numpy.random.randint),
)  # fmt: skip
_DAYS = (datetime.datetime, datetime.date)
_READS = frozenset({"read", "readline", "readlines", "read1", "readinto", "getvalue"})
_WRITES = frozenset({"write", "writelines", "truncate"})
_LOGS = frozenset({
    "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "fatal", "handle",
})  # fmt: skip
_SYSTEM = frozenset({"posix", "nt", "os", "shutil", "subprocess", "_posixsubprocess", "tempfile"})
# Of these modules, what looks at texts alone.
_OF_TEXTS = frozenset({"fspath", "fsencode", "fsdecode", "strerror", "get_terminal_size"})
_PATHS = frozenset({
    "exists", "lexists", "isfile", "isdir", "islink", "getsize", "getmtime", "getctime", "getatime",
    "abspath", "realpath", "expanduser", "expandvars", "samefile",
})  # fmt: skip
_SETTINGS = {
    "sys": frozenset({"getrecursionlimit", "getswitchinterval", "getrefcount"}),
    "numpy": frozenset({"geterr", "get_printoptions"}),
    "decimal": frozenset({"getcontext"}),
    "_decimal": frozenset({"getcontext"}),
    "threading": frozenset({"current_thread", "active_count", "enumerate", "get_ident"}),
    "_thread": frozenset({"get_ident", "get_native_id"}),
    "locale": frozenset({"getlocale", "localeconv"}),
    "platform": frozenset({"node", "system", "machine", "platform", "python_version"}),
}
_FILES = {
    "json": frozenset({"load", "dump"}),
    "_pickle": frozenset({"load", "dump"}),
    "numpy": frozenset({
        "load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile",
    }),
}  # fmt: skip
# Functions and methods of ours: those that NumPy has, too, and more.
OUR_FILES = _FILES["numpy"] | {
    "load_parameters", "save_parameters", "load_dict", "load_states", "save_states", "imread",
    "export",
}  # fmt: skip
# What sets something in an optimizer or a metric, by the module of its class.
OUR_SETTINGS = {
    "heterosis.gluon.trainer": frozenset({"set_learning_rate"}),
    "heterosis.optimizer": frozenset({"set_learning_rate", "set_lr_mult", "set_wd_mult"}),
    "heterosis.metric": frozenset({"reset", "reset_local"}),
}
_QUEUES = frozenset({"queue", "_queue", "multiprocessing.queues"})
_PASSED = frozenset({"put", "put_nowait", "get", "get_nowait"})
_MODULES = frozenset({
    "random", "numpy.random", "secrets", "uuid", "time", "datetime", "os", "os.path", "posixpath",
    "sys", "io", "logging", "warnings", "json", "pickle", "decimal", "locale", "platform",
    "pathlib", "shutil", "subprocess", "tempfile", "threading", "queue",
})  # fmt: skip

_HAND_IN = " Hand it in as an argument."
_BEFORE = " Read it before, and hand in what is needed of it."
_BEHIND = " Do it behind the call, with what that returns."


def asked(function: Any, is_outside: Callable[[Any], bool]) -> tuple[str, str] | None:
    """What a function asks for or does, and what to do instead; None if it is one that does nothing
    of the kind. `is_outside` says of an object that it was there before the capture."""
    if function is open:
        return "open opens a file", _BEHIND
    if isinstance(function, _core.Checked):
        function = function.__wrapped__
    if not issubclass(type(function), _FUNCTIONS):
        return None
    owner, name = getattr(function, "__self__", None), function.__name__
    module = str(function.__module__ or "")
    if isinstance(owner, _RANDOM) or module in ("secrets", "uuid"):
        return (
            f"{name} gives a random number of another library",
            " Draw with heterosis.np.random, or hand the number in.",
        )
    if name in _CLOCKS and (module == "time" or any(owner is day for day in _DAYS)):
        return f"{name} asks for the time", _HAND_IN
    if isinstance(owner, contextvars.ContextVar) or owner is os.environ or function is os.getenv:
        return f"{name} asks for a setting", _HAND_IN
    if name in _SETTINGS.get(module, ()):
        return f"{name} asks for a setting", _HAND_IN
    if isinstance(owner, io.IOBase):
        is_own = isinstance(owner, io.StringIO | io.BytesIO) and not is_outside(owner)
        return None if is_own else _of_file(name)
    return _of_system(name, module, owner)


def _of_file(name: str) -> tuple[str, str] | None:
    if name in _READS:
        return f"{name} reads a file", _BEFORE
    return (f"{name} writes to a file", _BEHIND) if name in _WRITES else None


def _of_system(name: str, module: str, owner: Any) -> tuple[str, str] | None:
    if name in _LOGS and module == "logging":
        return f"{name} logs", " npx.print shows arrays at every call."
    if name == "warn" and module in ("warnings", "_warnings"):
        return f"{name} warns", _BEHIND
    if name in _PASSED and getattr(type(owner), "__module__", None) in _QUEUES:
        return f"{name} hands something over", _BEHIND
    of_path = isinstance(owner, pathlib.Path) and not hasattr(pathlib.PurePath, name)
    of_path |= name in _PATHS and module in ("posixpath", "ntpath", "genericpath", "nt")
    of_path |= name in OUR_FILES and module.startswith("heterosis.")
    if of_path or name in _FILES.get(module, ()):
        return f"{name} looks at files, or changes some", _BEHIND
    if any(module.startswith(ours) and name in names for ours, names in OUR_SETTINGS.items()):
        return f"{type(owner).__name__}.{name} sets something", " Do it outside."
    if module in _SYSTEM and name not in _OF_TEXTS:
        return f"{name} asks the system, or changes something there", _BEHIND
    return None


def may_ask(value: Any, attributes: set[str]) -> bool:
    """Whether something that code reaches, which reads such attributes, may ask so."""
    kind = type(value)
    if issubclass(kind, types.ModuleType):
        found = value.__name__
        return found in _MODULES or (found == "numpy" and not _OF_NUMPY.isdisjoint(attributes))
    if (
        value is os.environ
        or issubclass(kind, _ASKED)
        or getattr(kind, "__module__", None) in _QUEUES
    ):
        return True
    return asked(value, lambda owner: True) is not None


_OF_NUMPY = {"random"} | _SETTINGS["numpy"] | _FILES["numpy"]
