"""Programs that run over the processors of several processes, joined by JAX.

Every process has the same program. XLA divides the work on it by the inputs that are divided, and
puts in what the processes send to each other: the sums of gradients. All other inputs, and all
results, are whole in each of them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import jax
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from heterosis import _core
from heterosis.backends import JoinedExecutable, Processes
from heterosis.backends.xla import failing, gpus
from heterosis.backends.xla.executable import Compiled, Failed, Places, check_call, own_settings
from heterosis.backends.xla.interchange import Operand, own
from heterosis.backends.xla.stages import prepared
from heterosis.backends.xla.together import Together
from heterosis.ir.program import Program, Value
from heterosis.ir.text import printed
from heterosis.runtime.errors import ArgumentError, CommunicationError, UninitializedError

_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Joined(Processes):
    """The processes that have been joined, and messages between them.

    Calls are made by all of them in the same order; of threads in one process, one at a time.
    """

    def __init__(self, coordinator: str, num_workers: int, rank: int):
        self.lock = threading.RLock()
        self._has_left = False
        if num_workers > 1:
            _join(coordinator, num_workers, rank)
        devices = sorted(jax.devices("cpu"), key=lambda one: (one.process_index, one.id))
        self.rank = jax.process_index("cpu")
        self.num_workers = jax.process_count("cpu")
        self.devices_each = len(devices) // self.num_workers
        self._check(devices, num_workers, rank)
        mesh = Mesh(numpy.array(devices).reshape(self.num_workers, -1), ("worker", "device"))
        self.whole = NamedSharding(mesh, PartitionSpec())
        self.rows = NamedSharding(mesh, PartitionSpec(("worker", "device")))
        # A row a process.
        self._parts = NamedSharding(mesh, PartitionSpec("worker"))
        self._gathered = jax.jit(lambda rows: rows, out_shardings=self.whole)
        self._sum = jax.jit(lambda rows: rows.sum(0, rows.dtype), out_shardings=self.whole)
        self._row = jax.jit(
            lambda rows, i: jax.lax.dynamic_index_in_dim(rows, i, keepdims=False),
            out_shardings=self.whole,
        )

    def _check(self, devices: Sequence[Any], num_workers: int, rank: int) -> None:
        """Raise unless those have come together that were to."""
        of_each = [one.process_index for one in devices]
        if (self.num_workers, self.rank) != (num_workers, rank):
            raise CommunicationError(
                f"distributed.initialize: this is to be process {rank} of {num_workers}, and JAX "
                f"has found process {self.rank} of {self.num_workers}. Call initialize before "
                "anything else uses JAX."
            )
        if any(of_each.count(i) != self.devices_each for i in range(num_workers)):
            counts = ", ".join(str(of_each.count(i)) for i in range(num_workers))
            raise CommunicationError(
                f"distributed.initialize: the processes have {counts} devices; expected as many in "
                "each. Start all with the same --xla_force_host_platform_device_count, or none."
            )

    def compile(self, program: Program, split: Collection[int]) -> JoinedExecutable:
        return JoinedRunner(self, program, split)

    def from_parts(self, part: _core.ndarray, shape: tuple[int, ...]) -> _core.ndarray:
        with own_settings():
            elements = self.together.from_parts(part.asnumpy())
        return gpus.array_of(elements, part._dtype_name, shape, _core.of_processes)

    def divide(self, array: _core.ndarray) -> None:
        with gpus.lock, own_settings():
            array._elements = self.together.divided(gpus.elements_of(array))

    @functools.cached_property
    def together(self) -> Together:
        """The memory of arrays that the processes have together."""
        return Together(self)

    @contextlib.contextmanager
    def sending(self) -> Iterator[None]:
        """For `with`: what is run inside sends, and of threads one at a time does so."""
        with self.lock, _messages_told_of():
            yield

    def leave(self) -> None:
        with self.lock:
            self._has_left = True
            jax.distributed.shutdown()

    def put(self, mine: numpy.ndarray) -> Any:
        """Numbers that are the same in all processes, as an array over all devices."""
        return jax.make_array_from_process_local_data(self.whole, mine, mine.shape)

    # -- messages -----------------------------------------------------------------------------

    def added_up(self, mine: numpy.ndarray) -> numpy.ndarray:
        return self._message(self._sum, mine)

    def of_one(self, root: int, mine: numpy.ndarray) -> numpy.ndarray:
        return self._message(self._row, mine, root)

    def agree(self, call: str, numbers: str = "", *, flag: bool = False) -> bool:
        texts = call, numbers
        mine = [*(zlib.crc32(text.encode()) for text in texts), flag]
        rows = self._message(self._gathered, numpy.array(mine, "int64"))
        for text, digests in zip(texts, rows.T, strict=False):
            others = numpy.flatnonzero(digests != digests[0])
            if others.size:
                raise self._difference(text, int(others[0]), is_call=text is call)
        return bool(rows[:, -1].any())

    def _difference(self, text: str, rank: int, *, is_call: bool) -> CommunicationError:
        """What to raise where this text is another one in the process `rank` than in the first."""
        encoded = numpy.frombuffer(text.encode(), "uint8")
        sizes = self._message(self._gathered, numpy.array([len(encoded)], "int64"))
        padded = numpy.zeros(int(sizes.max()), "uint8")
        padded[: len(encoded)] = encoded
        rows = self._message(self._gathered, padded)
        texts = [rows[i, : int(sizes[i, 0])].tobytes().decode() for i in (0, rank)]
        first, other = _around_difference(texts[0], texts[1])
        if is_call:
            return CommunicationError(
                f"the processes do not do the same: process 0 {first}; process {rank} {other}. "
                "Every process makes the same calls in the same order, with the same network and "
                "parts of a batch of one size."
            )
        return CommunicationError(
            f"the processes do not have the same numbers: process 0 {first}; process {rank} "
            f"{other}. Seed all of them alike, with np.random.seed, and let learning rates and "
            "other numbers follow from what is the same in each."
        )

    def _message(self, send: Any, mine: numpy.ndarray, *others: Any) -> numpy.ndarray:
        """What `send` makes of the rows that all processes give."""
        if self._has_left:
            raise UninitializedError(
                "this process has left the others by distributed.shutdown(): programs of all of "
                "them run before that alone."
            )
        with self.lock, own_settings():
            shape = self.num_workers, *mine.shape
            rows = jax.make_array_from_process_local_data(self._parts, mine[None], shape)
            with _messages_told_of():
                return numpy.asarray(send(rows, *others).addressable_data(0))


class JoinedRunner(JoinedExecutable):
    """Runs one program in all processes. Before each run these compare what they are about to do;
    and before the first, and after someone has written to them, the elements of whole inputs."""

    def __init__(self, processes: Joined, program: Program, split: Collection[int]):
        self.program = program = prepared(program)
        self._processes, self._split = processes, frozenset(split)
        self._operands = [
            _Placed(processes, value, i in split) for i, value in enumerate(program.inputs)
        ]
        text = printed(program, calls=False).text
        inputs = text.partition(":\n")[0]
        digest = zlib.crc32(text.encode())
        self._call = f"{inputs} divided at {sorted(split)}, a program of digest {digest:08x}"
        self._last: Sequence[Any] = ()
        # What whole inputs were when all processes had the same; None if that is not known.
        self._alike: list[Any] | None = None
        self._process = os.getpid()

    @functools.cached_property
    def compiled(self) -> Compiled:
        """What XLA has made of the program: for the first run, when all agree on it."""
        mine = self._processes
        return Compiled(self.program, Places(mine.whole, mine.rows, self._split, mine.put))

    @property
    def text(self) -> str:
        return self.compiled.text

    def run(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results. Where a check fails, they are arrays that raise when they are read."""
        check_call(self.program.name, self._process, operands)
        with self._processes.lock, own_settings():
            self._agree(operands)
            with _messages_told_of():
                used = self.compiled.used
                found = self.compiled([self._operands[i].given(operands[i]) for i in used])
        self._last = operands
        if isinstance(found, Failed):
            nothing = Program((), self.program.outputs, self.program.name)
            return failing.results(nothing, (), *found)
        arrays: Sequence[Any] = found
        return tuple(own(one.addressable_data(0)) for one in arrays)

    def note_written(self) -> None:
        self._alike = self._states(self._last)

    def _agree(self, operands: Sequence[Any]) -> None:
        """Raise in all processes unless this run is the same in each."""
        numbers = ", ".join(repr(one) for one in operands if not _is_array(one))
        states, known, self._alike = self._states(operands), self._alike, None
        if self._processes.agree(self._call, numbers, flag=states != known):
            self._compare(operands)

    def _states(self, operands: Sequence[Any]) -> list[Any]:
        """What tells whether whole inputs have been written to. They are not freed meanwhile, so
        that no others look like them."""
        return [(operands[i]._storage_id, operands[i]._version) for i in self._whole(operands)]

    def _whole(self, operands: Sequence[Any]) -> list[int]:
        """The positions of the arrays that are the same in all processes."""
        return [i for i, one in enumerate(operands) if _is_array(one) and i not in self._split]

    def _compare(self, operands: Sequence[Any]) -> None:
        """Raise in all processes unless whole inputs have the same elements in each."""
        positions = [i for i in self._whole(operands) if i in set(self.compiled.used)]
        digests = [_digest(operands[i]) for i in positions]
        mine = numpy.array(digests, "int64")
        first = self._processes.of_one(0, mine)
        others = self._processes.added_up((mine != first).astype("int64"))
        if others.any():
            found = [self.program.inputs[positions[i]].type for i in numpy.flatnonzero(others)]
            raise ArgumentError(
                f"{self.program.name}: {len(found)} arrays that it uses, parameters or states of "
                "an optimizer, have other elements in other processes; the first of them is "
                f"{found[0]}. Call distributed.broadcast_parameters(net.collect_params()) before "
                "the first step, or seed all processes alike; and write the same to them in each."
            )


class _Placed:
    """What a program of all processes is given at one position."""

    def __init__(self, processes: Joined, value: Value, is_split: bool):
        self._processes, self._shape = processes, value.shape
        self._sharding = processes.rows if is_split else processes.whole
        self._operand = Operand(value, is_kept=True)
        self._made: tuple[Any, Any] = (None, None)  # of an array of JAX's, one over all devices

    def given(self, operand: Any) -> Any:
        """An operand over all devices, of which this process gives its part; or a number."""
        mine = self._operand.given(operand)
        if not _is_array(operand):
            return mine
        known, found = self._made
        if mine is known:
            return found
        if self._processes.devices_each > 1:
            return jax.make_array_from_process_local_data(
                self._sharding, numpy.asarray(mine), self._shape
            )
        found = jax.make_array_from_single_device_arrays(self._shape, self._sharding, [mine])
        self._made = mine, found
        return found


def _join(coordinator: str, num_workers: int, rank: int) -> None:
    """Let JAX join the processes. What listens for others listens on this machine alone, where the
    address is of it."""
    if jax.config.jax_cpu_collectives_implementation in (None, "none"):
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if hasattr(jax.config, "jax_enable_preemption_service"):  # it would keep SIGTERM to itself
        jax.config.update("jax_enable_preemption_service", False)
    host = coordinator.rpartition(":")[0]
    try:
        jax.distributed.initialize(
            coordinator, num_workers, rank,
            coordinator_bind_address=coordinator if host in _LOCAL else None,
            cluster_detection_method="deactivate",
        )  # fmt: skip
    except RuntimeError as error:
        raise CommunicationError(
            f"distributed.initialize: process {rank} of {num_workers} could not be joined to the "
            f"others through {coordinator}: {str(error).splitlines()[0]} Call initialize before "
            "anything else uses JAX, with an address of process 0 that all machines can reach."
        ) from error


@contextlib.contextmanager
def _messages_told_of() -> Iterator[None]:
    """Say what it means that a message has failed: XLA raises a ValueError, or one of its own."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if "gloo" not in str(error).lower():
            raise
        raise CommunicationError(
            "a message to the other processes has failed, perhaps since one of them has ended: "
            f"{str(error).splitlines()[0]}"
        ) from error


def _is_array(operand: Any) -> bool:
    return isinstance(operand, _core.ndarray)


def _digest(array: Any) -> int:
    return zlib.crc32(numpy.ascontiguousarray(array.asnumpy()).reshape(-1).view("uint8").data)


def _around_difference(one: str, other: str, limit: int = 160) -> tuple[str, str]:
    """Both texts, from a little before the place where they differ."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    begin = 0 if at < limit // 2 else at - limit // 4
    return _excerpt(one, begin, limit), _excerpt(other, begin, limit)


def _excerpt(text: str, begin: int, limit: int) -> str:
    end = "..." if begin + limit < len(text) else ""
    return f"{'...' if begin else ''}{text[begin : begin + limit]}{end}"
