"""What a store of arrays by key is, and the one that lies in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from heterosis import _core
from heterosis.optimizer import Optimizer, Updater, get_updater
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, UnsupportedError


class KVStoreBase:
    """What a store offers. Classes of one's own become known to `create` by `register`."""

    OPTIMIZER = "optimizer"
    kv_registry: ClassVar[dict[str, type]] = {}
    joins_processes: ClassVar[bool] = False  # whether calls wait for those of other processes

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Give all of `out` the value."""
        raise UnsupportedError(f"{type(self).__name__} has to define broadcast().")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Add the values up and give the sum to all of `out`; to the values, without one."""
        raise UnsupportedError(f"{type(self).__name__} has to define pushpull().")

    def exchange(
        self,
        keys: Sequence[Any],
        values: Sequence[list[_core.ndarray]],
        turns: Callable[[], Sequence[int]] | None = None,
    ) -> None:
        """`pushpull` of several keys, which a store may send together, or in the order in which the
        arrays get their values, which `turns` says."""
        for key, arrays in zip(keys, values, strict=True):
            self.pushpull(key, arrays)

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Every process's numbers added up: in one process, these."""
        return [float(number) for number in numbers]

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Let the store update what it holds."""
        raise UnsupportedError(f"{type(self).__name__} has to define set_optimizer().")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        """Write the optimiser's states to a file."""
        raise UnsupportedError(f"{type(self).__name__} has to define save_optimizer_states().")

    def load_optimizer_states(self, fname: str) -> None:
        """Take the optimiser's states from a file."""
        raise UnsupportedError(f"{type(self).__name__} has to define load_optimizer_states().")

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store can do that: 'optimizer' is all that is asked."""
        raise UnsupportedError("a store has to define is_capable().")

    @property
    def type(self) -> str:
        """The name that `create` was given."""
        raise UnsupportedError(f"{type(self).__name__} has to define type.")

    @property
    def rank(self) -> int:
        """The number of this process among those that share the store."""
        raise UnsupportedError(f"{type(self).__name__} has to define rank.")

    @property
    def num_workers(self) -> int:
        """How many processes share the store."""
        raise UnsupportedError(f"{type(self).__name__} has to define num_workers.")

    @staticmethod
    def register(klass: type) -> type:
        """Let `create` find a class by its name in lower case."""
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass


class KVStore(KVStoreBase):
    """A store in this process. Several arrays of one key are added up; nothing is sent anywhere."""

    def __init__(self, name: str = "local"):
        self._name = name
        self._values: dict[Any, _core.ndarray] = {}
        self._update: Callable[[Any, _core.ndarray, _core.ndarray], None] | None = None
        self._updater: Updater | None = None

    def init(self, key: Any, value: Any) -> None:
        """Start a key, or each of a list of keys, with a copy of its value."""
        for one, arrays in by_key(key, value):
            if one in self._values:
                raise ArgumentError(f"init: the key {one!r} has a value already; use push.")
            self._values[one] = arrays[0].copy()

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Replace a key's value by the sum of the arrays, or update it with that."""
        for one, arrays in by_key(key, value):
            held = self._held(one)
            if self._update:
                self._update(one, self._sum(arrays).as_in_context(held.ctx), held)
            else:
                held[...] = self._sum(arrays)

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Copy a key's value into all of `out`."""
        if out is None:
            raise ArgumentError("pull: out is None; expected the arrays to copy values into.")
        for one, arrays in by_key(key, out):
            for array in arrays:
                array[...] = self._held(one)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """`push`, then `pull` into `out`, or into the values themselves without one.

        A key that was not started, with nothing to update, is only added up.
        """
        targets = dict(by_key(key, value if out is None else out))
        for one, arrays in by_key(key, value):
            if one in self._values or self._update:
                self.push(one, arrays)
                self.pull(one, targets[one])
            else:
                total = self._sum(arrays)
                for target in targets[one]:
                    if target is not total:
                        target[...] = total

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Start a key and copy its value into all of `out`."""
        self.init(key, value)
        self.pull(key, out)

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        """Raises: there are no sparse arrays."""
        raise UnsupportedError(
            "row_sparse_pull: sparse arrays are not supported; pull whole arrays with pull."
        )

    # -- updating -----------------------------------------------------------------------------

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Let `push` update values: gradients come in, weights are held."""
        self._updater = get_updater(optimizer)
        self._set_updater(self._updater)

    def _set_updater(self, updater: Callable[[Any, _core.ndarray, _core.ndarray], None]) -> None:
        """Let `push` call `updater(key, pushed, held)`."""
        self._update = updater

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        self._with_optimizer("save_optimizer_states").save(fname, dump_optimizer)

    def load_optimizer_states(self, fname: str) -> None:
        self._with_optimizer("load_optimizer_states").load(fname)

    def _with_optimizer(self, name: str) -> Updater:
        if self._updater is None:
            raise ArgumentError(f"{name}: this store has no optimizer; call set_optimizer first.")
        return self._updater

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Raises: nothing is sent that could be compressed."""
        raise UnsupportedError(
            "set_gradient_compression: the store is in one process and sends nothing; leave "
            "compression out."
        )

    # -- what it is ---------------------------------------------------------------------------

    @staticmethod
    def is_capable(capability: str) -> bool:
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return True
        raise ArgumentError(f"is_capable: {capability!r} is unknown; expected 'optimizer'.")

    @property
    def type(self) -> str:
        return self._name

    @property
    def rank(self) -> int:
        return 0

    @property
    def num_workers(self) -> int:
        return 1

    def _sum(self, arrays: list[_core.ndarray]) -> _core.ndarray:
        return added(arrays)

    def _held(self, key: Any) -> _core.ndarray:
        if key not in self._values:
            raise ArgumentError(f"the key {key!r} has no value yet; start it with init.")
        return self._values[key]


def by_key(key: Any, value: Any) -> Iterator[tuple[Any, list[_core.ndarray]]]:
    """Each key with the list of its arrays, for one key or a list of them."""
    if not isinstance(key, list | tuple):
        yield key, _listed(value)
        return
    if len(key) != len(value):
        raise ArgumentError(f"{len(key)} keys and {len(value)} values; expected one for each.")
    for one, part in zip(key, value, strict=True):
        yield one, _listed(part)


def _listed(value: Any) -> list[_core.ndarray]:
    arrays = list(value) if isinstance(value, list | tuple) else [value]
    for array in arrays:
        if not isinstance(array, _core.ndarray):
            raise ArgumentError(
                f"a store holds arrays, and was given a {type(array).__name__}; see np.array."
            )
    return arrays


def added(arrays: list[_core.ndarray]) -> _core.ndarray:
    """The sum of arrays, where the first is; the array itself, where there is one."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array.as_in_context(total.ctx)
    return total


_check_members(globals())

__all__ = ["KVStore", "KVStoreBase"]
