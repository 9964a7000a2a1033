"""Which GPUs there are, and the copies of arrays between their memory and others'.

The elements of an array on a GPU are one of JAX's arrays, of one dimension: all the elements of the
memory that the array, and its views, are of. It is never written to: a write puts another in its
place.
"""

from __future__ import annotations

import contextlib
import os
import threading
from functools import cache
from typing import Any

import jax
import numpy

from heterosis import _core
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


def device_of(number: int) -> Any:
    """JAX's device for a number of ours."""
    check_process(f"gpu({number - _core.first_remote})", _process)
    return devices()[number - _core.first_remote]


def memory(number: int) -> tuple[int, int]:
    """Free bytes of a device, and all."""
    known = device_of(number).memory_stats() or {}
    if "bytes_limit" not in known:
        raise UnsupportedError("gpu_memory_info: JAX does not know how much memory it has.")
    return known["bytes_limit"] - known["bytes_in_use"], known["bytes_limit"]


def elements_of(array: _core.ndarray) -> Any:
    """All elements of the memory that an array is of. Nobody has written to new memory: zeros."""
    found = array._elements
    check_process("an array on a GPU", _process)
    if found is None:
        count = array._storage_nbytes // array.itemsize
        found = _put(numpy.zeros(count, numpy_dtype(array._dtype_name)), array._device)
        array._elements = found
    return found


def brought(array: _core.ndarray, number: int) -> _core.ndarray:
    """A copy of an array on another device, where one of the two has memory of its own."""
    if array._device < _core.first_remote:
        return _with_elements(array.asnumpy().reshape(-1), array, number)
    if not array._covers_storage:
        array = copied(array)
    array.wait_to_read()
    with lock:  # from then on, they are not XLA's to overwrite
        elements = elements_of(array)
    if number >= _core.first_remote:
        return _with_elements(elements, array, number)
    elements = numpy.asarray(elements)
    if array._dtype_name == "bfloat16":  # which the buffer protocol cannot name
        elements = elements.view("float16")
    with modes.switched(recording=False, capturing=False), context_of_device(number):
        return _core.array_from_bytes(elements, array._dtype_name, array.shape)


def copied(array: _core.ndarray) -> _core.ndarray:
    """A copy on the same device, without gaps."""
    with modes.switched(recording=False, capturing=False):
        return array.copy()


def _with_elements(elements: Any, like: _core.ndarray, number: int) -> _core.ndarray:
    with modes.switched(recording=False, capturing=False), context_of_device(number):
        made = _core.empty(like._dtype_name, like.shape)
    made._elements = _put(elements, number)
    return made


def _put(elements: Any, number: int) -> Any:
    with own_settings():
        return jax.device_put(elements, device_of(number))


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
    kind, number = elements_of(array).__dlpack_device__()
    return int(kind), int(number)


def to_dlpack(array: _core.ndarray) -> Any:
    """A copy of the elements in the device's memory, for another library, which may write there."""
    with own_settings():
        return copied(array)._elements.reshape(array.shape).__dlpack__()
