"""What can be tuned of the native core and of compiling, as one typed object."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from heterosis import _core
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.arguments import did_you_mean
from heterosis.runtime.errors import ArgumentError, MissingAttributeError

THREADS_VARIABLE = "HETEROSIS_NUM_THREADS"
CHECK_VARIABLE = "HETEROSIS_CHECK"
STAND_INS_VARIABLE = "HETEROSIS_STAND_IN_GPUS"


@dataclass(frozen=True)
class EngineBounds:
    """How much queued work may be outstanding before the front end waits by itself."""

    tasks: int
    bytes: int


class Settings:
    """What can be tuned while programs run. Assigning takes effect at once."""

    __slots__ = ("_check", "_programs_kept", "_stand_in_gpus")

    def __init__(self) -> None:
        self._programs_kept = 256
        self._check = False
        self._stand_in_gpus = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            known = [one for one in dir(type(self)) if not one.startswith("_")]
            raise MissingAttributeError(
                f"settings.{name}: there is no such setting.{did_you_mean(name, known)}"
            )
        object.__setattr__(self, name, value)

    @property
    def threads(self) -> int:
        """Threads that compute at once, for all callers together."""
        return _core.threads()

    @threads.setter
    def threads(self, count: int) -> None:
        _core.set_threads(_positive("threads", count))

    @property
    def intra_op_threads(self) -> int:
        """Of `threads`, how many may share the work of one operation or hybridized function: all,
        unless less is set. With 1, as many callers at once as there are threads do not get in each
        other's way."""
        return _core.intra_op_threads()

    @intra_op_threads.setter
    def intra_op_threads(self, count: int) -> None:
        _core.set_intra_op_threads(_positive("intra_op_threads", count))

    @property
    def inline_nanoseconds(self) -> float:
        """Work expected to take less runs at once, in the calling thread, if its inputs are
        ready."""
        return _core.inline_nanoseconds()

    @inline_nanoseconds.setter
    def inline_nanoseconds(self, limit: float) -> None:
        _core.set_inline_nanoseconds(float(limit))

    @property
    def memory_limit(self) -> int:
        """Bytes that all arrays together may take; beyond it, OutOfMemoryError is raised."""
        return _core.memory_counters()["limit"]

    @memory_limit.setter
    def memory_limit(self, limit: int) -> None:
        _core.set_memory_limit(_positive("memory_limit", limit))

    @property
    def memory_cache_limit(self) -> int:
        """Bytes of freed memory that are kept for reuse."""
        return _core.memory_counters()["cache_limit"]

    @memory_cache_limit.setter
    def memory_cache_limit(self, limit: int) -> None:
        _core.set_memory_cache_limit(int(limit))

    @property
    def programs_kept(self) -> int:
        """Programs that one hybridized function keeps, of all that it was captured for: one for
        each kind of arguments. Beyond, those used least recently are dropped, and captured again
        when they are needed."""
        return self._programs_kept

    @programs_kept.setter
    def programs_kept(self, count: int) -> None:
        self._programs_kept = _positive("programs_kept", count)

    @property
    def check(self) -> bool:
        """Whether every program is checked, as it was captured and after every pass, and every plan
        is proved to compute its program before it is used; ProgramError or ScheduleError is raised
        where one fails. Only what is made from then on is looked at."""
        return self._check

    @check.setter
    def check(self, check: bool) -> None:
        self._check = bool(check)

    @property
    def stand_in_gpus(self) -> int:
        """How many GPUs this processor plays, through JAX, whatever GPUs there are: to try on any
        machine what is for these. From the environment; nothing is faster there."""
        return self._stand_in_gpus

    def bound_engine(self, bounds: EngineBounds) -> None:
        """Let no more than this be outstanding."""
        _core.set_engine_bounds(_positive("tasks", bounds.tasks), _positive("bytes", bounds.bytes))

    def read_environment(self) -> None:
        """Take over what environment variables say."""
        given = os.environ.get(THREADS_VARIABLE)
        if given is not None:
            self.threads = _whole(THREADS_VARIABLE, given)
        self._stand_in_gpus = _whole(STAND_INS_VARIABLE, os.environ.get(STAND_INS_VARIABLE, "0"))
        self.check = _switch(CHECK_VARIABLE, os.environ.get(CHECK_VARIABLE, "0"))


def _positive(name: str, number: int) -> int:
    if number < 1:
        raise ArgumentError(f"{name}: expected at least 1, and got {number}.")
    return int(number)


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(
            f"{name}={text!r}: expected a whole number, or no such variable."
        ) from None


def _switch(name: str, text: str) -> bool:
    if text not in ("", "0", "1"):
        raise ArgumentError(f"{name}={text!r}: expected 1 or 0, or no such variable.")
    return text == "1"


settings = Settings()


_check_members(globals())
