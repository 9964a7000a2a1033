"""Which GPUs there are, and the copies of arrays between their memory and others'.

The elements of an array on a GPU are one of JAX's arrays, of one dimension: all the elements of the
memory that the array, and its views, are of. It is never written to: a write puts another in its
place. The same holds for arrays that several processes have together.
"""

from __future__ import annotations

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import jax
import numpy

from heterosis import _core, backends
from heterosis.backends.xla.executable import check_process, own_settings
from heterosis.ir.types import numpy_dtype
from heterosis.runtime import modes
from heterosis.runtime.context import context_of_device
from heterosis.runtime.errors import UnsupportedError
from heterosis.runtime.settings import STAND_INS_VARIABLE, settings

_process = os.getpid()  # that uses JAX

# Of threads, one at a time asks who has the elements of an array, and has them overwritten.
lock = threading.RLock()


@cache
def devices() -> tuple[Any, ...]:
    """JAX's devices that are GPUs here, in the order of their numbers."""
    if settings.stand_in_gpus:
        return _stand_ins(settings.stand_in_gpus)
    try:
        return tuple(jax.local_devices(backend="gpu"))
    except RuntimeError:  # JAX has none, or is not the one for GPUs
        return ()


def _stand_ins(count: int) -> tuple[Any, ...]:
    """Parts of this processor that are called GPUs: to try on it what is for these."""
    if "--xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        # Where JAX has been used already, its devices are what they are.
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", count + 1)
    found = jax.local_devices(backend="cpu")
    if len(found) <= count:
        raise UnsupportedError(
            f"{STAND_INS_VARIABLE}={count}: JAX has {len(found)} devices on this processor, and "
            f"{count + 1} are needed. Set XLA_FLAGS=--xla_force_host_platform_device_count="
            f"{count + 1}, or use GPUs before anything else uses JAX."
        )
    return tuple(found[1 : count + 1])


class Memory(ABC):
    """Where the elements of arrays are, and programs on them run."""

    sharding: Any  # JAX's word for it
    limit: int | None = None  # in bytes, if it is known

    @abstractmethod
    def new(self, elements: numpy.ndarray) -> Any:
        """The elements, there."""

    def put(self, elements: Any) -> Any:
        """The same, of others that are in another memory."""
        return self.new(elements)

    def fetched(self, elements: Any) -> numpy.ndarray:
        """All elements, in main memory."""
        return numpy.asarray(elements)

    def sharding_of(self, likes: Iterable[Any]) -> Any:
        """How elements lie there that are to lie as the first of `likes` that is divided."""
        return self.sharding

    def laid_as(self, like: Any, elements: Any) -> Any:
        """The elements, lying as others of the same memory."""
        return elements

    def running(
        self, name: str, digest: Callable[[], int], numbers: Sequence[Any]
    ) -> AbstractContextManager[None]:
        """For `with`: a program of the digest that it is asked for is run inside, on these numbers.
        Raises unless all who run it do so."""
        return contextlib.nullcontext()

    def settled(self, elements: Sequence[Any]) -> Sequence[Any]:
        """What a run gives, as soon as another may begin."""
        return elements

    def exported(self, elements: Any) -> Any:
        """The elements of what another library is given."""
        return elements


class _OfGpu(Memory):
    def __init__(self, device: Any):
        self.device = device
        self.sharding = jax.sharding.SingleDeviceSharding(device)
        self.limit = (device.memory_stats() or {}).get("bytes_limit")

    def new(self, elements: Any) -> Any:
        return jax.device_put(elements, self.device)


def memory_of(number: int) -> Memory:
    """The memory of a device, which is known by a number of ours."""
    check_process(str(context_of_device(number)), _process)
    return _made(number)


@cache
def _made(number: int) -> Memory:
    if number != _core.of_processes:
        return _OfGpu(devices()[number - _core.first_remote])
    joined: Any = backends.named(backends.XLA).processes
    found: Memory = joined.together
    return found


def room(number: int) -> tuple[int, int]:
    """Free bytes of a GPU, and all."""
    known = devices()[number - _core.first_remote].memory_stats() or {}
    if "bytes_limit" not in known:
        raise UnsupportedError("gpu_memory_info: JAX does not know how much memory it has.")
    return known["bytes_limit"] - known["bytes_in_use"], known["bytes_limit"]


def elements_of(array: _core.ndarray) -> Any:
    """All elements of the memory that an array is of. Nobody has written to new memory: zeros."""
    found = array._elements
    check_process("an array on a GPU", _process)
    if found is None:
        count = array._storage_nbytes // array.itemsize
        with own_settings():
            zeros = numpy.zeros(count, numpy_dtype(array._dtype_name))
            found = memory_of(array._device).new(zeros)
        array._elements = found
    return found


def brought(array: _core.ndarray, number: int) -> _core.ndarray:
    """A copy of an array on another device, where one of the two has memory of its own."""
    if array._device < _core.first_remote:
        return _put(array.asnumpy().reshape(-1), array, number)
    if not array._covers_storage:
        array = copied(array)
    array.wait_to_read()
    with lock:  # from then on, they are not XLA's to overwrite
        elements = elements_of(array)
    devices = {array._device, number}
    if number >= _core.first_remote and _core.of_processes not in devices:
        return _put(elements, array, number)
    with own_settings():
        elements = memory_of(array._device).fetched(elements)
    if number >= _core.first_remote:
        return _put(elements, array, number)
    if array._dtype_name == "bfloat16":  # which the buffer protocol cannot name
        elements = elements.view("float16")
    with modes.switched(recording=False, capturing=False), context_of_device(number):
        return _core.array_from_bytes(elements, array._dtype_name, array.shape)


def copied(array: _core.ndarray) -> _core.ndarray:
    """A copy on the same device, without gaps."""
    with modes.switched(recording=False, capturing=False):
        return array.copy()


def _put(elements: Any, like: _core.ndarray, number: int) -> _core.ndarray:
    with own_settings():
        there = memory_of(number).put(elements)
    return array_of(there, like._dtype_name, like.shape, number)


def array_of(elements: Any, dtype: str, shape: tuple[int, ...], number: int) -> _core.ndarray:
    """An array on a device, whose elements are there."""
    with modes.switched(recording=False, capturing=False), context_of_device(number):
        made = _core.empty(dtype, shape)
    made._elements = elements
    return made


def wait(array: _core.ndarray) -> None:
    """Until the elements are there."""
    with lock:
        elements = elements_of(array)
    jax.block_until_ready(elements)


def wait_all() -> None:
    """Until the elements of all arrays are there."""
    for platform in {device.platform for device in devices()}:
        waiting = (one for one in jax.live_arrays(platform) if not one.is_deleted())
        jax.block_until_ready(list(waiting))


def dlpack_device(array: _core.ndarray) -> tuple[int, int]:
    """DLPack's numbers for the device of an array."""
    kind, number = _exported(array).__dlpack_device__()
    return int(kind), int(number)


def to_dlpack(array: _core.ndarray) -> Any:
    """A copy of the elements in the device's memory, for another library, which may write there."""
    with own_settings():
        return _exported(copied(array)).reshape(array.shape).__dlpack__()


def _exported(array: _core.ndarray) -> Any:
    return memory_of(array._device).exported(elements_of(array))
