"""Stores of arrays by key, through which Gluon programs exchange gradients.

'local' and 'device' lie in one process; 'mpi' joins the processes that `mpiexec` has started.
"""

from __future__ import annotations

from heterosis.kvstore.local import KVStore, KVStoreBase
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, UnsupportedError

LOCAL = (
    "local",
    "device",
    "nccl",
    "local_update_cpu",
    "local_allreduce_cpu",
    "local_allreduce_device",
)
JOINED = ("mpi", "horovod", "dist", "dist_sync", "dist_device_sync", "dist_sync_device")


def create(name: str = "local") -> KVStoreBase:
    """A store by its kind: 'local' and 'device' are the same here, and so are 'mpi', 'dist_sync'
    and 'horovod', which join processes.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"create: {name!r} names no store; expected one of {', '.join(LOCAL)}.")
    kind = name.lower()
    if kind in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[kind]()
    if kind in LOCAL:
        return KVStore(kind)
    if kind in JOINED:
        from heterosis.kvstore.mpi import MPIStore  # its package is optional

        return MPIStore(kind)
    if "async" in kind:
        raise UnsupportedError(
            f"create: the store {name!r} lets every process update when it likes, with gradients "
            "of older values, and no two runs would be the same. Use 'dist_sync', which waits for "
            "all of them."
        )
    if kind in ("byteps", "p3"):
        raise UnsupportedError(
            f"create: the store {name!r} needs servers beside the processes that train, and there "
            "are none. Use 'mpi', where the processes add up gradients among themselves."
        )
    known = ", ".join((*LOCAL, *JOINED))
    raise ArgumentError(f"create: no store is called {name!r}; known are {known}.")


_check_members(globals())

__all__ = ["KVStore", "KVStoreBase", "create"]
