"""Where arrays live. MXNet programs say it with contexts; here every array is in main memory."""

from __future__ import annotations

from typing import Any

from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, UnsupportedError

DEVICE_TYPES = ("cpu", "gpu", "cpu_pinned", "cpu_shared")

_entered: list[Context] = []


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
        _entered.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered.pop()

    def _key(self) -> tuple[str, int]:
        return self.device_type, self.device_id


def cpu(device_id: int = 0) -> Context:
    """Main memory."""
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
    return _entered[-1] if _entered else cpu()


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
    if not ctx.device_type.startswith("cpu") or ctx.device_id != 0:
        raise UnsupportedError(
            f"{ctx} cannot be used: arrays live in main memory only. Use npx.cpu(), or choose "
            "with npx.num_gpus(), which is 0 here."
        )
    return ctx


_check_members(globals())
