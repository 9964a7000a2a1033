"""Trainer: an optimizer applied to parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from heterosis import autograd, capture, np
from heterosis import kvstore as stores
from heterosis import optimizer as optimizers
from heterosis.gluon.parameter import Parameter
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.utils import clip_global_norm, listed
from heterosis.kvstore.local import added
from heterosis.runtime.context import Context
from heterosis.runtime.errors import ArgumentError, StaleGradientError, UnsupportedError


class Trainer:
    """Updates parameters with an optimizer: `trainer.step(batch_size)` after backward.

    `kvstore` is how several devices or machines exchange gradients. With 'device' or 'local', those
    of a parameter's contexts are added up; with None, it is on one context. With 'mpi', which
    'dist_sync' and 'horovod' name too, gradients are added up over all processes, and `batch_size`
    is that of all their parts together. A store of one's own, an object or a registered name, is
    given every gradient before the update.

    With `clip_global_norm`, gradients whose norm, of all together and divided by the batch size, is
    above it are scaled down to it, in place.
    """

    def __init__(
        self,
        params: ParameterDict | Mapping[str, Parameter] | Sequence[Any],
        optimizer: str | optimizers.Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        kvstore: str | stores.KVStoreBase | None = "device",
        compression_params: Mapping[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
        clip_global_norm: float | None = None,
    ):
        if clip_global_norm is not None and not clip_global_norm > 0:
            raise ArgumentError(
                f"Trainer: clip_global_norm={clip_global_norm}; expected a number above 0."
            )
        self._largest_norm = clip_global_norm
        self._store = _exchange(kvstore, compression_params)
        self._params = listed_parameters("Trainer", params)
        _check_contexts(self._params, kvstore)
        self._are_summed = False  # whether the gradients of several contexts are
        by_index = dict(enumerate(self._params))
        if isinstance(optimizer, optimizers.Optimizer):
            if optimizer_params:
                raise ArgumentError(
                    "Trainer: optimizer_params goes with the name of an optimizer; an Optimizer "
                    "object has its own settings."
                )
            self._optimizer = optimizer
            optimizer.param_dict = by_index
        else:
            settings = optimizer_params or {}
            self._optimizer = optimizers.create(optimizer, param_dict=by_index, **settings)
        self._updater = optimizers.get_updater(self._optimizer)
        self._scale = self._optimizer.rescale_grad
        self._update_on_kvstore = bool(update_on_kvstore)
        self._turns = partial(_turns, self._params)
        self._unsent = list(enumerate(self._params)) if self._store else []
        self._send([(i, p) for i, p in self._unsent if p.has_data])

    def __repr__(self) -> str:
        return f"Trainer({self._optimizer!r}, {len(self._params)} parameters)"

    @property
    def optimizer(self) -> optimizers.Optimizer:
        """The optimizer."""
        return self._optimizer

    @property
    def updater(self) -> optimizers.Updater:
        """The optimizer with the states of the parameters, by their place among `parameters`."""
        return self._updater

    @property
    def parameters(self) -> list[Parameter]:
        """What is updated."""
        return list(self._params)

    @property
    def learning_rate(self) -> float:
        """The learning rate now."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; refused if a scheduler sets it."""
        self._optimizer.set_learning_rate(lr)

    def step(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Update all parameters, their gradients divided by `batch_size`.

        A parameter whose gradient is not new since the last step is an error, or, with
        `ignore_stale_grad`, left as it is.
        """
        if ignore_stale_grad and self._store is not None and self._store.joins_processes:
            raise UnsupportedError(
                "Trainer.step: ignore_stale_grad with several processes: each may have left out "
                "others. Let the loss depend on all parameters, or set grad_req to 'null'."
            )
        self._check_doubts(ignore_stale_grad)  # before gradients are exchanged, which writes them
        self._exchange_gradients()
        self._update(batch_size, ignore_stale_grad)

    def _list_ctx(self) -> list[Context]:
        """The contexts of the parameters; the first one has the optimizer's states."""
        return self._params[0].list_ctx() if self._params else []

    def allreduce_grads(self) -> None:
        """Let the store exchange gradients; nothing happens where there is one context."""
        self._check_updates_here("allreduce_grads")
        self._exchange_gradients()

    def _exchange_gradients(self) -> None:
        learnt = [(i, p) for i, p in enumerate(self._params) if p.grad_req != "null"]
        self._are_summed = True
        if self._store is None:
            if self._list_ctx()[1:]:
                _add_up([p for _, p in learnt])
            return
        self._check_started()
        stale = [p for _, p in learnt if not p.has_fresh_grad]
        given = [i for i, _ in learnt], [p.list_grad() for _, p in learnt]
        if self._store.joins_processes:
            self._store.exchange(*given, self._turns)
        else:
            self._store.exchange(*given)
        for parameter in stale:  # the exchange has written them; backward has not
            parameter.mark_used()

    def _send(self, parameters: Sequence[tuple[int, Parameter]]) -> None:
        """Let all processes start from the same values."""
        for i, parameter in parameters:
            self._store.broadcast(i, parameter.data(), parameter.list_data())
        self._unsent = [pair for pair in self._unsent if pair not in parameters]

    def _check_started(self) -> None:
        """Send what the first forward pass has initialised; gradients are of those values."""
        late = self._unsent
        before = [parameter.data().copy() for _, parameter in late]
        self._send(late)
        pairs = zip(late, before, strict=True)
        others = [p.name for (_, p), values in pairs if not np.array_equal(values, p.data())]
        if late and sum(self._store.sum([len(others)])):
            raise ArgumentError(
                f"Trainer: parameters {listed(others)} were initialised by the first forward pass, "
                "with other values than in process 0, and the gradients are of these. Call the "
                "network on a batch before the trainer is made, or np.random.seed with the same "
                "number in every process."
                if others
                else "Trainer: other processes have initialised parameters with other values than "
                "process 0; their messages say more."
            )

    def update(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """What `step` does after `allreduce_grads`, for programs that change gradients between."""
        self._check_updates_here("update")
        if self._list_ctx()[1:] and not self._are_summed:
            raise ArgumentError(
                f"Trainer.update: the parameters are on {_shown(self._list_ctx())}, and their "
                "gradients have not been added up since the last update. Call allreduce_grads() "
                "before, or step()."
            )
        self._check_doubts(ignore_stale_grad)
        self._update(batch_size, ignore_stale_grad)

    def _check_doubts(self, ignore_stale_grad: bool) -> None:
        """Let a captured step fail where backward does not come to a gradient."""
        learnt = (p for p in self._params if p.grad_req != "null")
        doubts = [(truth, p.name) for p in learnt for truth in p.fresh_where()]
        if doubts and ignore_stale_grad:
            raise UnsupportedError(
                "Trainer: ignore_stale_grad in a hybridized function: whether backward comes to "
                f"{listed(name for _, name in doubts)} depends on arrays, and how often a "
                "parameter has been updated is counted outside of programs. Hybridize the network "
                "and its loss, and call step outside."
            )
        together: dict[int, tuple[np.ndarray, list[str]]] = {}  # a truth is often that of a branch
        for truth, name in doubts:
            together.setdefault(id(truth), (truth, []))[1].append(name)
        for truth, names in together.values():
            capture.require(truth, _stale(names))

    def _check_updates_here(self, name: str) -> None:
        if self._update_on_kvstore:
            raise ArgumentError(
                f"Trainer.{name} needs update_on_kvstore=False: make the trainer so, or call step."
            )

    def _update(self, batch_size: float, ignore_stale_grad: bool) -> None:
        learnt = [(i, p) for i, p in enumerate(self._params) if p.grad_req != "null"]
        if not ignore_stale_grad:
            _check_fresh([p for _, p in learnt])
        learnt = [(i, p) for i, p in learnt if not ignore_stale_grad or p.has_fresh_grad]
        if not learnt:
            return
        capture.depend_on(self, "_scale", "_largest_norm")
        self._optimizer.rescale_grad = self._scale / batch_size
        if self._largest_norm is not None:
            bound = self._largest_norm / self._optimizer.rescale_grad
            clip_global_norm([p.list_grad()[0] for _, p in learnt], bound, check_isfinite=False)
        indices = [i for i, _ in learnt]
        gradients = [p.list_grad()[0] for _, p in learnt]
        arrays = [p.list_data() for _, p in learnt]
        self._updater(indices, gradients, [first for first, *_ in arrays])
        for (first, *others), (_, parameter) in zip(arrays, learnt, strict=True):
            for other in others:
                other[...] = first
            parameter.mark_used()
        self._are_summed = False

    # -- files ------------------------------------------------------------------------------------

    def save_states(self, fname: str) -> None:
        """Write the optimizer's states to a file; a crash leaves an older file whole."""
        self._updater.save(fname, dump_optimizer=True)

    def load_states(self, fname: str) -> None:
        """Read the states that `save_states` wrote; nothing changes if they do not fit."""
        self._updater.load(fname)
        self._optimizer = self._updater.optimizer
        self._optimizer.param_dict = dict(enumerate(self._params))


def listed_parameters(name: str, params: Any) -> list[Parameter]:
    """The parameters that `name` is given, as a list or by their names."""
    if isinstance(params, Mapping | ParameterDict):
        params = [params[name] for name in sorted(params.keys())]
    if not isinstance(params, list | tuple) or not all(isinstance(p, Parameter) for p in params):
        raise ArgumentError(
            f"{name}: got {type(params).__name__}; the first argument is a list or dict of "
            "Parameters, such as net.collect_params()."
        )
    return list(params)


def _exchange(kvstore: Any, compression_params: Any) -> stores.KVStoreBase | None:
    """The store that gradients go through; None where there is nothing to exchange."""
    if compression_params:
        raise UnsupportedError(
            "Trainer: compression_params: no gradients are sent anywhere; leave it out."
        )
    if not kvstore or kvstore in stores.LOCAL:
        return None
    store = kvstore if isinstance(kvstore, stores.KVStoreBase) else stores.create(kvstore)
    return None if type(store) is stores.KVStore else store


def _check_contexts(parameters: Sequence[Parameter], kvstore: Any) -> None:
    """Raise unless all parameters are on the same contexts, whose gradients a store adds up."""
    for parameter in parameters:
        contexts = parameter.list_ctx()  # raises if initialize was forgotten
        first = parameters[0].list_ctx()
        if contexts != first:
            raise ArgumentError(
                f"Trainer: {parameters[0].name!r} is on {_shown(first)}, and {parameter.name!r} on "
                f"{_shown(contexts)}; expected all on the same contexts. Initialise the whole "
                "network at once, or make a trainer for each part."
            )
        if contexts[1:] and not kvstore:
            raise ArgumentError(
                f"Trainer: kvstore is {kvstore!r}, and {parameter.name!r} is on "
                f"{_shown(contexts)}: on each it would learn by itself. Leave kvstore out, or "
                "initialise on one context."
            )


def _shown(contexts: Sequence[Context]) -> str:
    return ", ".join(map(str, contexts))


def _add_up(parameters: Sequence[Parameter]) -> None:
    """Let the gradients on all contexts be their sums; those that were stale stay so."""
    for parameter in parameters:
        is_fresh = parameter.has_fresh_grad
        gradients = parameter.list_grad()
        total = added(gradients)
        for gradient in gradients:
            gradient[...] = total
        if not is_fresh:
            parameter.mark_used()


def _turns(parameters: Sequence[Parameter]) -> list[int]:
    """In which order backward has found the gradients."""
    return [autograd.turn_of(p.data()) for p in parameters if p.grad_req != "null"]


def _check_fresh(parameters: Sequence[Parameter]) -> None:
    stale = [p.name for p in parameters if not p.has_fresh_grad]
    if stale:
        raise _stale(stale)


def _stale(names: Sequence[str]) -> StaleGradientError:
    return StaleGradientError(
        f"Trainer: backward has not updated the gradients of {', '.join(map(repr, names))} "
        "since the last step: the loss does not depend on them. If that is intended, call "
        "step(batch_size, ignore_stale_grad=True), and they are left as they are."
    )


__all__ = ["Trainer"]
