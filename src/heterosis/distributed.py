"""Several processes that train as one, through XLA: each gives its part of every batch.

    distributed.initialize()
    distributed.broadcast_parameters(net.collect_params())

    @heterosis.hybridize(backend="xla", sharding=distributed.Sharding())
    def step(x, y): ...

The step is that of one process, captured for the whole batch. XLA divides the work among the
processes, and puts in the sums over them.

Parameters that are too large for each to hold are divided among them, by their names:

    distributed.shard_parameters(net.collect_params(), r".*weight")

    @heterosis.hybridize
    def step(x, y): ...

    step(distributed.from_parts(x), distributed.from_parts(y))
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import backends, np, npx
from heterosis.capture.sharded import Sharding
from heterosis.kvstore.world import Launched, check_known_sum, end_together, join, launched
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.context import Context
from heterosis.runtime.errors import ArgumentError, CommunicationError, ShapeError
from heterosis.runtime.modes import refuse_in_capture
from heterosis.runtime.placing import from_device

_ADDRESS = "JAX_COORDINATOR_ADDRESS"


def initialize(
    coordinator: str | None = None, num_workers: int | None = None, rank: int | None = None
) -> None:
    """Join the processes that have been started together, before anything else uses JAX.

    `num_workers` and `rank` are what the launcher says, `mpiexec` or `srun`, if they are not given;
    a process that was started alone is the only one. `coordinator` is an address of process 0,
    "host:port", that all of them can reach: without it, that of the environment's variable
    JAX_COORDINATOR_ADDRESS, or one that MPI tells the processes.

    All processes add up known numbers. From then on an error that nobody catches ends them all.
    """
    told = launched(os.environ)
    coordinator = coordinator or os.environ.get(_ADDRESS)
    if coordinator and told is None and num_workers is None:
        raise ArgumentError(
            f"distributed.initialize: there is a coordinator, {coordinator!r}, and no launcher "
            "says how many processes there are; expected num_workers and rank too."
        )
    num_workers, rank = _numbers(told, num_workers, rank)
    if coordinator is None and num_workers > 1:
        coordinator = _address_by_mpi(told, num_workers, rank)
    if coordinator is not None and not coordinator.rpartition(":")[2].isdecimal():
        raise ArgumentError(
            f"distributed.initialize: got coordinator={coordinator!r}; expected 'host:port'."
        )
    processes = backends.named(backends.XLA).join(coordinator or "", num_workers, rank)
    check_known_sum(
        rank, num_workers, processes.added_up,
        "distributed.initialize: messages between these machines go wrong.",
    )  # fmt: skip
    if num_workers > 1:
        end_together(lambda: os._exit(1))


def rank() -> int:
    """The number of this process among those that have been joined."""
    return _processes().rank


def num_workers() -> int:
    """How many processes have been joined."""
    return _processes().num_workers


def barrier() -> None:
    """Wait until all processes are here, with all that they have issued done."""
    refuse_in_capture("distributed.barrier", "Call it outside of hybridized functions.")
    npx.waitall()
    _processes().agree("barrier")


def broadcast_parameters(params: Any, root_rank: int = 0) -> None:
    """Give the parameters of a network, of all processes, the values that process `root_rank`
    has."""
    refuse_in_capture("distributed.broadcast_parameters", "Call it before the first step.")
    processes = _processes()
    if not 0 <= root_rank < processes.num_workers:
        raise ArgumentError(
            f"broadcast_parameters: root_rank={root_rank}; expected one of the "
            f"{processes.num_workers} processes, from 0 on."
        )
    arrays = {name: parameter.data() for name, parameter in params.items()}
    types = ", ".join(f"{name} {a.shape} {a.dtype}" for name, a in arrays.items())
    processes.agree(f"broadcast_parameters of process {root_rank}: {types}")
    for array in arrays.values():
        mine = numpy.ascontiguousarray(array.asnumpy())
        bytes_ = processes.of_one(root_rank, mine.reshape(-1).view("uint8"))
        array[...] = np.array(bytes_.view(mine.dtype).reshape(mine.shape), dtype=array.dtype)


def context() -> Context:
    """Where arrays are that all processes have together. They make the same calls on such arrays,
    in the same order, each of which runs as one program of all; whoever makes another call raises
    in all of them."""
    _processes()
    return Context("processes")


def from_parts(part: Any) -> np.ndarray:
    """The array of all processes, of which each gives its rows: those of process 0 come first.

    Parts are of one shape. They stay where they are.
    """
    refuse_in_capture("distributed.from_parts", "Call it on the arguments of what is hybridized.")
    processes = _processes()
    part = np.asarray(part)
    if part.ndim == 0 or part.shape[0] % processes.devices_each:
        raise ShapeError(
            f"from_parts: a part of shape {part.shape}; expected rows along a first axis, as many "
            f"as {processes.devices_each} devices of each process can share."
        )
    shape = part.shape[0] * processes.num_workers, *part.shape[1:]
    return processes.from_parts(from_device(part), shape)


def shard_parameters(params: Any, rule: str | Callable[[str, tuple[int, ...]], bool]) -> list[str]:
    """Move parameters to `context()`, with the values that process 0 has, and divide those among
    the processes that `rule` picks, along their first axes; gives the names of these.

    The rule is a regular expression that whole names match, or a function of a name and a shape.
    Gradients and states of optimizers are divided as their parameters are.
    """
    refuse_in_capture("distributed.shard_parameters", "Call it before the first step.")
    processes, there = _processes(), context()
    picks = _picking(rule)
    chosen = [name for name, one in params.items() if picks(name, one.data().shape)]
    if not chosen:
        raise ArgumentError(
            f"shard_parameters: the rule {rule!r} picks none of the parameters "
            f"{', '.join(params)}. To hold all of them whole, use params.reset_ctx(context())."
        )
    count = processes.num_workers * processes.devices_each
    for name in chosen:
        shape = params[name].shape
        if not shape or shape[0] % count:
            raise ShapeError(
                f"shard_parameters: {name} of shape {shape} cannot be divided: its first axis is "
                f"no multiple of {count}, the number of devices. Let the rule leave it out."
            )
    if any(one.list_ctx() != [there] for one in params.values()):
        broadcast_parameters(params)
    for name, one in params.items():
        one.reset_ctx(there)
        if name in chosen:
            processes.divide(one.data())
            if one.grad_req != "null":
                processes.divide(one.grad())
    return chosen


def _picking(rule: Any) -> Callable[[str, tuple[int, ...]], bool]:
    if isinstance(rule, str):
        return lambda name, shape: re.fullmatch(rule, name) is not None
    if callable(rule):
        return lambda name, shape: bool(rule(name, shape))
    raise ArgumentError(
        f"shard_parameters: got rule={rule!r}; expected a regular expression, or a function of a "
        "name and a shape."
    )


def shutdown() -> None:
    """Leave the other processes: programs of all of them no longer run. It waits for all to do so,
    and happens by itself when they end."""
    _processes().leave()


def _processes() -> backends.Processes:
    return backends.named(backends.XLA).processes


def _numbers(told: Launched | None, num_workers: int | None, rank: int | None) -> tuple[int, int]:
    """How many processes there are to be, and which of them this one is."""
    if num_workers is None:
        num_workers = told.size if told else 1
    if told is not None and told.size != num_workers:
        raise CommunicationError(
            f"distributed.initialize: {told.said}, and num_workers is {num_workers}: each of them "
            "would train by itself, or wait for others. Leave num_workers and rank out."
        )
    if rank is None:
        rank = told.rank if told else 0 if num_workers == 1 else None
    if rank is None or not 0 <= rank < num_workers:
        raise ArgumentError(
            f"distributed.initialize: got rank={rank} and num_workers={num_workers}; expected a "
            "number from 0 on for each process, as a launcher gives them."
        )
    return num_workers, rank


def _address_by_mpi(told: Launched | None, num_workers: int, rank: int) -> str:
    """An address of process 0, which it tells the others by MPI."""
    if told is None:
        raise ArgumentError(
            f"distributed.initialize: num_workers={num_workers}, and no coordinator; expected an "
            f"address of process 0, 'host:port', here or in {_ADDRESS}. Processes that mpiexec "
            "starts find it by themselves."
        )
    world = join().world
    if world.rank != rank:
        raise CommunicationError(
            f"distributed.initialize: this is to be process {rank}, and MPI's number for it is "
            f"{world.rank}. Leave rank out."
        )
    hosts = world.allgather(socket.gethostname())
    host = "127.0.0.1" if len(set(hosts)) == 1 else hosts[0]
    return str(world.bcast(f"{host}:{_free_port()}", 0))


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


_check_members(globals())

__all__ = [
    "Sharding", "barrier", "broadcast_parameters", "context", "from_parts", "initialize",
    "num_workers", "rank", "shard_parameters", "shutdown",
]  # fmt: skip
