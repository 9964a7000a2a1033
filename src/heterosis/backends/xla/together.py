"""The memory that arrays of several processes are in: whole in each of them, or divided among them.

All processes make the same calls on such arrays, in the same order; they compare them first.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy

from heterosis.backends.xla.gpus import Memory
from heterosis.runtime.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from heterosis.backends.xla.joined import Joined


class Together(Memory):
    """What the processes that have been joined hold together."""

    def __init__(self, processes: Joined):
        self._processes = processes
        self.sharding = processes.whole
        self._whole = jax.jit(lambda elements: elements, out_shardings=processes.whole)
        self._divided = jax.jit(lambda elements: elements, out_shardings=processes.rows)

    def new(self, elements: numpy.ndarray) -> Any:
        return self._processes.put(elements)

    def put(self, elements: Any) -> Any:
        """Elements that are the same in all processes, which are compared."""
        mine = numpy.asarray(elements)
        with self._processes.lock:
            self._processes.agree(f"copies {_described(mine)} to all processes")
            digest = numpy.array([zlib.crc32(mine.view("uint8").data)], "int64")
            differs = digest != self._processes.of_one(0, digest)
            if self._processes.added_up(differs.astype("int64")).any():
                raise ArgumentError(
                    f"{_described(mine)} that are copied to all processes are others in some of "
                    "them. Seed all alike, or call distributed.broadcast_parameters(params) "
                    "before; parts of a batch are put together by distributed.from_parts(x)."
                )
            return self._processes.put(mine)

    def fetched(self, elements: Any) -> numpy.ndarray:
        if not elements.is_fully_replicated:
            with self._processes.sending():
                self._processes.agree(f"reads {_described(elements)}, divided among processes")
                elements = self._whole(elements)
        return numpy.asarray(elements.addressable_data(0))

    def sharding_of(self, likes: Iterable[Any]) -> Any:
        divided = (one.sharding for one in likes if not one.is_fully_replicated)
        return next(divided, self.sharding)

    def laid_as(self, like: Any, elements: Any) -> Any:
        return elements if like.is_fully_replicated else self._divided(elements)

    @contextlib.contextmanager
    def running(
        self, name: str, digest: Callable[[], int], numbers: Sequence[Any]
    ) -> Iterator[None]:
        with self._processes.sending():
            shown = ", ".join(map(repr, numbers))
            self._processes.agree(f"runs {name}, a program of digest {digest():08x}", shown)
            yield

    def settled(self, elements: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = jax.block_until_ready(elements)  # of those that send, one at a time
        return found

    def exported(self, elements: Any) -> Any:
        raise UnsupportedError(
            "__dlpack__: an array of several processes has no memory that another library could "
            "use. Copy it first, x.as_in_ctx(npx.cpu())."
        )

    # -- what is divided --------------------------------------------------------------------------

    def from_parts(self, mine: numpy.ndarray) -> Any:
        """Elements of which this process has its rows; they stay where they are."""
        count = self._processes.num_workers
        with self._processes.lock:
            self._processes.agree(f"gives a part of {mine.dtype}{list(mine.shape)}")
            return jax.make_array_from_process_local_data(
                self._processes.rows, mine.reshape(-1), (mine.size * count,)
            )

    def divided(self, elements: Any) -> Any:
        """The same elements, of which each process keeps as many as any other."""
        with self._processes.sending():
            self._processes.agree(f"divides {_described(elements)}")
            return self._divided(elements)


def _described(elements: Any) -> str:
    return f"{elements.size} elements of {elements.dtype}"
