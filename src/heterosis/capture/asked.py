"""Functions that ask what is no part of a program: the time, random numbers of others, settings of
the process. What they say is fixed when a program is captured, and that is told of."""

from __future__ import annotations

import contextvars
import datetime
import os
import random
import types
from typing import Any

import numpy

_RANDOM = (random.Random, numpy.random.RandomState, numpy.random.Generator)
_ASKED = (*_RANDOM, contextvars.ContextVar)
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
_MODULES = frozenset({"random", "numpy.random", "secrets", "uuid", "time", "datetime", "os"})


def asked(function: Any) -> tuple[str, str] | None:
    """What a function asks for, and what to do instead; None if it is one that asks for nothing
    of the kind."""
    if not issubclass(type(function), _FUNCTIONS):
        return None
    owner, name = getattr(function, "__self__", None), function.__name__
    module = function.__module__
    if isinstance(owner, _RANDOM) or module in ("secrets", "uuid"):
        return (
            f"{name} gives a random number of another library",
            " Draw with heterosis.np.random, or hand the number in.",
        )
    if name in _CLOCKS and (module == "time" or any(owner is day for day in _DAYS)):
        return f"{name} asks for the time", " Hand it in as an argument."
    if isinstance(owner, contextvars.ContextVar) or owner is os.environ or function is os.getenv:
        return f"{name} asks for a setting", " Hand it in as an argument."
    return None


def may_ask(value: Any, attributes: set[str]) -> bool:
    """Whether something that code reaches, which reads such attributes, may ask so."""
    kind = type(value)
    if issubclass(kind, types.ModuleType):
        found = value.__name__
        return found in _MODULES or (found == "numpy" and "random" in attributes)
    return value is os.environ or issubclass(kind, _ASKED) or asked(value) is not None
