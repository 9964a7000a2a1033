"""Where arrays live: contexts, each with a number that the core knows it by.

Programs say with contexts which arrays belong together: operations take arrays of one context, and
their results are there. `cpu(1)` has arrays of its own, as in MXNet, in main memory as all CPUs'.
Those of `gpu(0)` are in a GPU's memory, and those of `processes(0)` belong to several processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from heterosis import _core
from heterosis.runtime import modes
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, CaptureError, UnsupportedError

DEVICE_TYPES = ("cpu", "gpu", "cpu_pinned", "cpu_shared", "processes")
_MOST = _core.first_remote  # so many numbers has each kind of device


class _Entered(threading.local):
    """The contexts that the thread is in, each with the number of the device before."""

    def __init__(self) -> None:
        self.contexts: list[tuple[Context, int]] = []


_entered = _Entered()


class Context:
    """A kind of device and its number; `with ctx:` makes it the current one."""

    __slots__ = ("device_id", "device_type")
    device_type: str
    device_id: int

    def __init__(self, device_type: str | Context, device_id: int = 0):
        if isinstance(device_type, Context):
            device_id, device_type = device_type.device_id, device_type.device_type
        if device_type not in DEVICE_TYPES:
            raise ArgumentError(
                f"Context: {device_type!r} is no device; expected one of {', '.join(DEVICE_TYPES)}."
            )
        self.device_type, self.device_id = device_type, device_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> Context:  # noqa: PYI034 - typing has no Self in Python 3.10
        number = number_named(self)
        _entered.contexts.append((self, _core.current_device()))
        _core.set_current_device(number)
        return self

    def __exit__(self, *error: object) -> None:
        _, before = _entered.contexts.pop()
        _core.set_current_device(before)

    def _key(self) -> tuple[str, int]:
        return self.device_type, self.device_id


def cpu(device_id: int = 0) -> Context:
    """Main memory, which may be told apart by numbers."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Main memory; nothing is pinned for GPUs."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU, which JAX computes on: `pip install 'heterosis[cuda]'`."""
    return Context("gpu", device_id)


_count_gpus: list[Callable[[], int]] = []
_gpu_memory: list[Callable[[int], tuple[int, int]]] = []


def set_gpus(count: Callable[[], int], memory: Callable[[int], tuple[int, int]]) -> None:
    """`count()` says how many there are, `memory(number)` how many bytes a device has, free and
    in all."""
    _count_gpus[:], _gpu_memory[:] = [count], [memory]


def num_gpus() -> int:
    """How many GPUs can be used."""
    (count,) = _count_gpus
    return count()


def current_context() -> Context:
    """The context of the innermost `with`; `cpu(0)` outside."""
    number = _core.current_device()
    if _entered.contexts and number_of(_entered.contexts[-1][0]) == number:
        return _entered.contexts[-1][0]
    return context_of_device(number)


@cache
def context_of_device(number: int) -> Context:
    """The context of a device, as arrays know it."""
    if number == _core.of_processes:
        return Context("processes")
    return Context("cpu", number) if number < _MOST else Context("gpu", number - _MOST)


def number_named(ctx: Any) -> int:
    """The number of the device of a context, once that is checked; of the current one for None."""
    return number_of(check_context(ctx))


def number_of(ctx: Context) -> int:
    if ctx.device_type == "processes":
        return _core.of_processes
    return ctx.device_id + (_MOST if ctx.device_type == "gpu" else 0)


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total bytes of a GPU."""
    (found,) = _gpu_memory
    return found(number_named(gpu(device_id)))


def check_context(ctx: Any) -> Context:
    """`ctx`, or the current context for `None`, if arrays can live there."""
    if ctx is None:
        return current_context()
    if not isinstance(ctx, Context):
        raise ArgumentError(f"{ctx!r} is no context; expected npx.cpu() or None.")
    if ctx.device_type == "gpu" and not 0 <= ctx.device_id < (count := num_gpus()):
        raise UnsupportedError(
            f"{ctx} cannot be used: npx.num_gpus() is {count} here. Use npx.cpu(); GPUs need a "
            "driver, and JAX for them: pip install 'heterosis[cuda]'."
        )
    most = 1 if ctx.device_type == "processes" else _MOST
    if not 0 <= ctx.device_id < most:
        raise ArgumentError(f"{ctx} is no context: expected a number from 0 to {most - 1}.")
    if number_of(ctx) != _core.current_device() and modes.is_capturing():
        raise modes.refusals.note(
            CaptureError(
                f"{ctx} in a hybridized function that is called on {current_context()}: a program "
                "runs on the context of its arguments. Hybridize what is done on each context, and "
                "copy from one to another outside."
            )
        )
    return ctx


_core.set_hook("device_named", number_named)
_check_members(globals())
