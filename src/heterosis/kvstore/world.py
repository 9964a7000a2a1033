"""The processes that `mpiexec` has started together, checked to be what they seem."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy

from heterosis.kvstore.messages import Messages
from heterosis.runtime.errors import CommunicationError, MissingPackageError

# What launchers tell their processes. Slurm's number is of the step that srun started; where
# mpiexec runs within one, that step has started its daemons, and mpiexec's own number comes first.
_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": "mpiexec of Open MPI",
    "PMI_SIZE": "mpiexec of MPICH or Intel MPI",
    "MV2_COMM_WORLD_SIZE": "mpiexec of MVAPICH",
    "PALS_SIZE": "mpiexec of Cray's PALS",
    "SLURM_STEP_NUM_TASKS": "srun",
}

_joined: list[Messages] = []


def join() -> Messages:
    """What all processes send each other, over a communicator that is checked when it is made."""
    if not _joined:
        MPI = _package()
        world = MPI.COMM_WORLD.Dup()  # messages of ours do not meet those of the program's
        check_size(world.size, os.environ, MPI.Get_library_version())
        check_sums(world, MPI)
        if world.size > 1:
            _end_together(world)
        _joined.append(Messages(world, MPI))
    return _joined[0]


def check_size(size: int, environment: Mapping[str, str], library: str) -> None:
    """Raise unless the launcher started as many processes as MPI has found.

    A library of MPI under another one's launcher finds every process alone, and each would train
    by itself without a word.
    """
    for name, launcher in _LAUNCHERS.items():
        told = environment.get(name, "")
        if not told.isdecimal():
            continue
        if int(told) != size:
            raise CommunicationError(
                f"kvstore: {launcher} has started {told} processes ({name}={told}), and MPI has "
                f"found {size}: the launcher belongs to another MPI than the library, "
                f"{library.splitlines()[0].strip()}. Start with the mpiexec of that library, or "
                "name the launcher's library in MPI4PY_LIBMPI."
            )
        return


def check_sums(world: Any, MPI: Any) -> None:
    """Raise unless a sum over all processes is what is known beforehand."""
    count = world.size
    numbers = numpy.arange(1, 1025, dtype=numpy.float32)
    found = numpy.ascontiguousarray(numbers * (world.rank + 1))
    world.Allreduce(MPI.IN_PLACE, found)
    if not numpy.array_equal(found, numbers * (count * (count + 1) / 2)):
        raise CommunicationError(
            f"kvstore: {count} processes added up 1, 2, ..., {count} and got {found[0]}; expected "
            f"{count * (count + 1) // 2}. MPI does not work between these machines: try another "
            "library or transport."
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


def _end_together(world: Any) -> None:
    """Let an error that nobody catches end all processes: the others would wait for ever."""
    shown = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        shown(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        world.Abort(1)

    sys.excepthook = end
