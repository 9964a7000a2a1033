"""The processes that `mpiexec` has started together, checked to be what they seem."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

import numpy

from heterosis.kvstore.messages import Messages
from heterosis.runtime.errors import CommunicationError, MissingPackageError

# What launchers tell their processes: how many there are, and which of them one is. Slurm's numbers
# are of the step that srun started; where mpiexec runs within one, that step has started its
# daemons, and mpiexec's own numbers come first.
_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": ("mpiexec of Open MPI", "OMPI_COMM_WORLD_RANK"),
    "PMI_SIZE": ("mpiexec of MPICH or Intel MPI", "PMI_RANK"),
    "MV2_COMM_WORLD_SIZE": ("mpiexec of MVAPICH", "MV2_COMM_WORLD_RANK"),
    "PALS_SIZE": ("mpiexec of Cray's PALS", "PALS_RANKID"),
    "SLURM_STEP_NUM_TASKS": ("srun", "SLURM_PROCID"),
}


class Launched(NamedTuple):
    """What a launcher has told this process: as it is `said`, the number of processes, and which
    of them this one is, if it says so."""

    said: str
    size: int
    rank: int | None


def launched(environment: Mapping[str, str]) -> Launched | None:
    """What the launcher says; None for a process that was started alone."""
    for name, (launcher, of_rank) in _LAUNCHERS.items():
        size, rank = environment.get(name, ""), environment.get(of_rank, "")
        if size.isdecimal():
            said = f"{launcher} has started {size} processes ({name}={size})"
            return Launched(said, int(size), int(rank) if rank.isdecimal() else None)
    return None


_joined: list[Messages] = []


def join() -> Messages:
    """What all processes send each other, over a communicator that is checked when it is made."""
    if not _joined:
        MPI = _package()
        world = MPI.COMM_WORLD.Dup()  # messages of ours do not meet those of the program's
        check_size(world.size, os.environ, MPI.Get_library_version())
        check_sums(world, MPI)
        if world.size > 1:
            end_together(lambda: world.Abort(1))
        _joined.append(Messages(world, MPI))
    return _joined[0]


def check_size(size: int, environment: Mapping[str, str], library: str) -> None:
    """Raise unless the launcher started as many processes as MPI has found.

    A library of MPI under another one's launcher finds every process alone, and each would train
    by itself without a word.
    """
    told = launched(environment)
    if told is not None and told.size != size:
        raise CommunicationError(
            f"kvstore: {told.said}, and MPI has found {size}: the launcher belongs to another MPI "
            f"than the library, {library.splitlines()[0].strip()}. Start with the mpiexec of that "
            "library, or name the launcher's library in MPI4PY_LIBMPI."
        )


def check_sums(world: Any, MPI: Any) -> None:
    """Raise unless MPI adds up as it should."""

    def added_up(mine: numpy.ndarray) -> numpy.ndarray:
        world.Allreduce(MPI.IN_PLACE, mine)
        return mine

    remedy = "MPI does not work between these machines: try another library or transport."
    check_known_sum(world.rank, world.size, added_up, f"kvstore: {remedy}")


def check_known_sum(
    rank: int, count: int, added_up: Callable[[numpy.ndarray], numpy.ndarray], message: str
) -> None:
    """Raise unless a sum over all processes, which `added_up` gives of this one's part, is what is
    known beforehand."""
    numbers = numpy.arange(1, 1025, dtype=numpy.float32)
    found = added_up(numbers * numpy.float32(rank + 1))
    if not numpy.array_equal(found, numbers * (count * (count + 1) / 2)):
        raise CommunicationError(
            f"{message} {count} processes added up 1, 2, ..., {count} and got {found[0]}; expected "
            f"{count * (count + 1) // 2}."
        )


def _package() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # the latter where it finds no library of MPI
        raise MissingPackageError(
            "kvstore: processes are joined by MPI, through mpi4py, and that could not be imported: "
            f"{str(error).splitlines()[0]}. Install it with pip install 'heterosis[mpi]'. It takes "
            "the machine's own MPI, which MPI4PY_LIBMPI names if it is not found; where there is "
            "none, pip install mpich."
        ) from error
    return MPI


def end_together(end_all: Callable[[], None]) -> None:
    """Let an error that nobody catches end all processes: the others would wait for ever."""
    shown = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        shown(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        end_all()

    sys.excepthook = end
