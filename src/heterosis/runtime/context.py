"""Where arrays live: contexts, all of them in main memory.

Programs say with contexts which arrays belong together. `cpu(1)` has arrays of its own, as in
MXNet: operations take arrays of one context, and their results are there. What is on a context is
computed as anywhere else.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from heterosis import _core
from heterosis.runtime import modes
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, CaptureError, UnsupportedError

DEVICE_TYPES = ("cpu", "gpu", "cpu_pinned", "cpu_shared")
_MOST = 1 << 15  # numbers of devices are below


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
        check_context(self)
        _entered.contexts.append((self, _core.current_device()))
        _core.set_current_device(self.device_id)
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
    """Main memory; there is no GPU to pin it for."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """The name of a GPU. Using it raises: computation runs on the CPU."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """How many GPUs can be used: none."""
    return 0


def current_context() -> Context:
    """The context of the innermost `with`; `cpu(0)` outside."""
    number = _core.current_device()
    if _entered.contexts and _entered.contexts[-1][0].device_id == number:
        return _entered.contexts[-1][0]
    return context_of_device(number)


@cache
def context_of_device(number: int) -> Context:
    """The context of a device, as arrays know it."""
    return Context("cpu", number)


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total bytes of a GPU; raises, since none can be used."""
    check_context(gpu(device_id))
    raise AssertionError("a GPU has passed the check")


def check_context(ctx: Any) -> Context:
    """`ctx`, or the current context for `None`, if arrays can live there."""
    if ctx is None:
        return current_context()
    if not isinstance(ctx, Context):
        raise ArgumentError(f"{ctx!r} is no context; expected npx.cpu() or None.")
    if not ctx.device_type.startswith("cpu"):
        raise UnsupportedError(
            f"{ctx} cannot be used: arrays live in main memory only. Use npx.cpu(), or choose "
            "with npx.num_gpus(), which is 0 here."
        )
    if not 0 <= ctx.device_id < _MOST:
        raise ArgumentError(f"{ctx} is no context: expected a number from 0 to {_MOST - 1}.")
    if ctx.device_id != _core.current_device() and modes.is_capturing():
        raise modes.refusals.note(
            CaptureError(
                f"{ctx} in a hybridized function that is called on {current_context()}: a program "
                "runs on the context of its arguments. Hybridize what is done on each context, and "
                "copy from one to another outside."
            )
        )
    return ctx


def _device_named(ctx: Any) -> int:
    return check_context(ctx).device_id


_core.set_hook("device_named", _device_named)
_check_members(globals())
