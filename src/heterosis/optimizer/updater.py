"""An optimiser with the states of its parameters, and those as bytes."""

from __future__ import annotations

import copy
import inspect
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from heterosis import _core, capture
from heterosis.io.files import opened
from heterosis.io.packing import fits, is_plain, pack, unpack
from heterosis.io.together import written_by_one
from heterosis.lr_scheduler import LRScheduler
from heterosis.np import zeros_like
from heterosis.optimizer.optimizer import Optimizer
from heterosis.runtime import modes
from heterosis.runtime.errors import FormatError


class Updater:
    """Calls an optimiser for parameters by their indices and keeps their states."""

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}

    @property
    def aggregate_updates(self) -> bool:
        """Whether the optimiser wants lists of parameters."""
        return self.optimizer.aggregate_num > 0

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update one parameter, or several with lists of indices, gradients and weights."""
        several = isinstance(index, list | tuple)
        indices, grads, weights = (
            list(given) if several else [given] for given in (index, grad, weight)
        )
        indices = [i.decode() if isinstance(i, bytes) else i for i in indices]
        capture.depend_on(self, "states")
        for one, array in zip(indices, weights, strict=True):
            if one not in self.states:
                with modes.switched(capturing=False):  # states outlive every program
                    self.states[one] = self.optimizer.create_state_multi_precision(one, array)
                self.states_synced[one] = True
        if self.aggregate_updates:
            self._update_groups(indices, weights, grads)
        else:
            states = [self.states[one] for one in indices]
            self.optimizer.update_all(indices, weights, grads, states)

    def _update_groups(self, indices: Sequence, weights: Sequence, grads: Sequence) -> None:
        """Lists of one element type, as many parameters each as the optimiser takes."""
        by_type: dict[str, list[tuple]] = {}
        for row in zip(indices, weights, grads, strict=True):
            by_type.setdefault(row[1]._dtype_name, []).append(row)
        most = self.optimizer.aggregate_num
        for rows in by_type.values():
            for start in range(0, len(rows), most):
                group = rows[start : start + most]
                states = [self.states[row[0]] for row in group]
                self.optimizer.update_multi_precision(*map(list, zip(*group, strict=True)), states)

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """All states as bytes in the safetensors format; with the optimiser's own numbers."""
        arrays: dict[str, _core.ndarray] = {}
        states = [[key, _tree(state, arrays)] for key, state in self.states.items()]
        facts: dict[str, Any] = {"states": states}
        if dump_optimizer:
            facts["optimizer"] = _described(self.optimizer)
        return pack(arrays, facts)

    def set_states(self, states: bytes) -> None:
        """Take over what `get_states` gave; nothing changes if it does not fit."""
        self.prepared(states)()

    def prepared(
        self, states: bytes, weights: Mapping[Any, _core.ndarray] | None = None
    ) -> Callable[[], None]:
        """What takes the states over when it is called; it is here that unfit ones raise.

        `weights` are the parameters that the states are of, by index, if the optimiser does not
        know them by the same indices.
        """
        arrays, facts = unpack(states)
        try:
            found = {key: _planted(tree, arrays) for key, tree in facts["states"]}
            described = facts.get("optimizer")
            restored = [] if described is None else list(_restored(self.optimizer, described))
        except FormatError:
            raise
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise FormatError(
                "these arrays are no optimizer states; expected what get_states() gave."
            ) from None
        if weights is None:
            known = self.optimizer.param_dict
            weights = {index: getattr(p, "_data", None) for index, p in known.items()}
        self._check_fit(found, restored, weights)
        found = {index: _beside(state, weights.get(index)) for index, state in found.items()}
        return lambda: self._take(found, restored)

    def _check_fit(
        self, states: Mapping[Any, Any], restored: Sequence[tuple[Any, str, Any]],
        weights: Mapping[Any, _core.ndarray],
    ) -> None:  # fmt: skip
        """Raise unless each state is of a parameter that there is, and like what would be made."""
        counted = (value for _, name, value in restored if name == "_all_index_update_counts")
        indices = {i for counts in counted for own in counts.values() for i in own} | set(states)
        if weights and not indices <= set(weights):
            raise FormatError(
                f"there are states of the parameters {sorted(map(str, indices - set(weights)))}, "
                f"which are not among the {len(weights)} here; make the same trainer."
            )
        trial = copy.copy(self.optimizer)
        for thing, name, value in restored:
            if thing is self.optimizer:
                setattr(trial, name, value)
        for index, state in states.items():
            expected = self._expected(trial, index, weights.get(index))
            if expected is not None and _layout(state) != expected:
                raise FormatError(
                    f"the state of parameter {index} is {_layout(state)}; expected {expected}, as "
                    f"{type(trial).__name__} makes it for this parameter."
                )

    def _expected(self, optimizer: Optimizer, index: Any, weight: Any) -> str | None:
        """The layout of a parameter's state; None if nothing is known of it."""
        if weight is None:
            return _layout(self.states[index]) if index in self.states else None
        with warnings.catch_warnings(), modes.switched(capturing=False, recording=False):
            warnings.simplefilter("ignore")  # of narrow weights: said when the states were made
            return _layout(optimizer.create_state_multi_precision(index, weight))

    def _take(self, states: dict[Any, Any], restored: list[tuple[Any, str, Any]]) -> None:
        for thing, name, value in restored:
            setattr(thing, name, value)
        self.optimizer._set_current_context(0)
        self.states = states
        self.states_synced = dict.fromkeys(states, True)

    def save(self, fname: str | os.PathLike[str], dump_optimizer: bool = False) -> None:
        """Write what `get_states` gives to a file; a crash leaves an older file whole."""
        weights = [getattr(p, "_data", None) for p in self.optimizer.param_dict.values()]
        states = self.get_states(dump_optimizer)
        with written_by_one(fname, weights) as file:
            file.write(states)

    def load(self, fname: str | os.PathLike[str]) -> None:
        """Take over the states in a file; nothing changes if they do not fit."""
        with opened(fname, "a file of optimizer states") as source:
            take = self.prepared(source.whole())
        take()

    def renumber(self, numbers: Mapping[Any, Any]) -> None:
        """Let the states and counts of each index be those of `numbers[index]`."""
        self.states = {numbers[index]: state for index, state in self.states.items()}
        self.states_synced = dict.fromkeys(self.states, True)
        for counts in self.optimizer._all_index_update_counts.values():
            moved = {numbers[index]: count for index, count in counts.items()}
            counts.clear()
            counts.update(moved)


def get_updater(optimizer: Optimizer) -> Updater:
    """An updater that calls `optimizer`."""
    return Updater(optimizer)


# -- states as a tree of names --------------------------------------------------------------------


def _tree(state: Any, arrays: dict[str, _core.ndarray]) -> Any:
    """The state with a name in place of each array, which goes into `arrays`."""
    if state is None:
        return None
    if isinstance(state, list | tuple):
        return [_tree(part, arrays) for part in state]
    name = str(len(arrays))
    arrays[name] = state
    return name


def _layout(state: Any) -> str:
    """The shapes and element types of a state's arrays."""
    if isinstance(state, list | tuple):
        return f"({', '.join(map(_layout, state))})"
    return "nothing" if state is None else f"{state._dtype_name}{list(state.shape)}"


def _beside(state: Any, weight: Any) -> Any:
    """A state, where its weight is; what has the shape of the weight lies as it does."""
    if state is None or weight is None or weight._device == 0:
        return state
    if isinstance(state, tuple):
        return tuple(_beside(part, weight) for part in state)
    if state.shape != weight.shape:
        return state.as_in_context(weight.ctx)
    with modes.switched(capturing=False, recording=False):
        made = zeros_like(weight, dtype=state._dtype_name)
        made[...] = state
    return made


def _planted(tree: Any, arrays: dict[str, _core.ndarray]) -> Any:
    if tree is None:
        return None
    if isinstance(tree, list):
        return tuple(_planted(part, arrays) for part in tree)
    return arrays[tree]


# -- the optimiser's own numbers ------------------------------------------------------------------


def _described(thing: Any) -> dict[str, Any]:
    """The class of an optimiser or scheduler, and its attributes that are data."""
    return {"class": type(thing).__name__, "attributes": dict(_data(thing))}


def _data(thing: Any) -> Iterator[tuple[str, Any]]:
    for name, value in vars(thing).items():
        if isinstance(value, LRScheduler):
            yield name, {"scheduler": _described(value)}
        elif name == "_all_index_update_counts":
            yield name, [[device, list(counts.items())] for device, counts in value.items()]
        elif is_plain(value):
            several = isinstance(value, dict | list)
            items = list(value.items()) if isinstance(value, dict) else value
            yield name, {type(value).__name__: items} if several else value


def _restored(thing: Any, described: dict[str, Any]) -> Iterator[tuple[Any, str, Any]]:
    """What to assign to an object so that it is like the one described: (object, name, value)."""
    if described["class"] != type(thing).__name__:
        raise FormatError(
            f"the states are those of {described['class']}, and here is {type(thing).__name__}; "
            "make the same optimizer and scheduler before loading."
        )
    for name, value in described["attributes"].items():
        if name not in vars(thing):
            continue
        now = getattr(thing, name)
        if isinstance(value, dict) and "scheduler" in value:
            yield from _restored(now, value["scheduler"])
            continue
        if name == "_all_index_update_counts":
            value = _counts(value)
        elif isinstance(value, dict):
            value = dict(value["dict"]) if "dict" in value else value["list"]
        if name != "_all_index_update_counts" and not fits(
            value, now, optional=_optional(thing, name)
        ):
            raise FormatError(
                f"{described['class']}.{name} cannot be {value!r}; it is {now!r} here."
            )
        yield thing, name, value


def _counts(given: Any) -> dict[Any, dict[Any, int]]:
    """How often each parameter was updated, by device."""
    found = {device: dict(counts) for device, counts in given}
    for counts in found.values():
        if not all(type(n) is int and 0 <= n < 1 << 63 for n in counts.values()):
            raise FormatError(f"the numbers of updates are {counts}.")
    return found


def _optional(thing: Any, name: str) -> bool:
    """Whether an attribute is an argument of its class that may be left out."""
    signatures = (inspect.signature(kind.__init__) for kind in type(thing).__mro__[:-1])
    found = (s.parameters.get(name) for s in signatures)
    return any(p is not None and p.default is None for p in found)
