"""What optimisers share: learning rates and weight decay a parameter, counts of updates."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from heterosis import _core, capture
from heterosis.capture import count_from
from heterosis.ir.traced_sizes import fixed_number, is_traced, value_of
from heterosis.np import zeros_like
from heterosis.ops.math.cast import assign
from heterosis.optimizer.steps import Step, run
from heterosis.runtime import modes
from heterosis.runtime.arguments import described
from heterosis.runtime.errors import ArgumentError, CaptureError, UnsupportedError
from heterosis.runtime.registry import Registry
from heterosis.runtime.warning import warn_user

_HALF = ("float16", "bfloat16")
_PACKAGE = f"{__name__.partition('.')[0]}."


class Optimizer:
    """The base of all optimisers. A subclass defines `create_state` and `update`.

    A parameter is known by its index; `param_idx2name` gives it a name, `param_dict` an object
    whose `lr_mult` and `wd_mult` scale its learning rate and its weight decay.
    """

    opt_registry: dict[str, type]
    aggregate_num = 0  # above 0, `update` takes lists of up to so many parameters

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: Mapping[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: Callable[[int], float] | None = None,
        sym: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: Mapping[int, Any] | None = None,
    ):
        if param_idx2name is not None and not isinstance(param_idx2name, Mapping):
            raise ArgumentError(
                f"param_idx2name is a {type(param_idx2name).__name__}; expected a dictionary from "
                "indices to names."
            )
        self.rescale_grad, self.wd, self.clip_gradient = rescale_grad, wd, clip_gradient
        self.lr_scheduler, self.lr = lr_scheduler, learning_rate
        if lr_scheduler is None and learning_rate is None:
            self.lr = 0.01
        elif hasattr(lr_scheduler, "base_lr") and learning_rate is not None:
            _start_at(lr_scheduler, learning_rate)
        self.begin_num_update = self.num_update = begin_num_update
        self.multi_precision = multi_precision
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = dict(param_dict or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.set_lr_mult({})
        self.set_wd_mult({})

    def __repr__(self) -> str:
        """The class and its numbers, as its constructor takes them."""
        own = inspect.signature(type(self).__init__).parameters
        names = dict.fromkeys(("learning_rate", *own, "wd"))
        known = vars(self) | {"learning_rate": self.lr}
        numbers = [n for n in names if isinstance(known.get(n), bool | int | float)]
        shown = [f"{name}={known[name]}" for name in numbers]
        if self.lr_scheduler is not None:
            shown.append(f"lr_scheduler={described(self.lr_scheduler)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    # -- what subclasses define ---------------------------------------------------------------

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        """What is remembered of a parameter: None, an array, or a tuple of these."""
        return None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` in place."""
        raise UnsupportedError(f"{type(self).__name__} has to define update().")

    # -- narrow element types -----------------------------------------------------------------

    def create_state_multi_precision(self, index: Any, weight: _core.ndarray) -> Any:
        """The state; with `multi_precision`, for narrow weights, a float32 copy goes before it."""
        if not _is_half(weight):
            return self.create_state(index, weight)
        if self.multi_precision:
            master = weight.astype("float32")
            return master, self.create_state(index, master)
        warnings.warn(
            f"weights of {weight._dtype_name} lose small updates; multi_precision=True keeps a "
            "copy in float32.",
            stacklevel=2,
        )
        return self.create_state(index, weight)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """`update`, through the float32 copy where there is one."""
        if not self._has_master(weight):
            self.update(index, weight, grad, state)
            return
        master, inner = state
        self.update(index, master, grad.astype("float32"), inner)
        assign(master, out=weight)

    def _has_master(self, weight: Any) -> bool:
        return self.multi_precision and not isinstance(weight, list | tuple) and _is_half(weight)

    def update_all(
        self,
        indices: Sequence[Any],
        weights: Sequence[_core.ndarray],
        grads: Sequence[_core.ndarray],
        states: Sequence[Any],
    ) -> None:
        """One update of several parameters."""
        if modes.is_capturing() and not isinstance(self, RuleOptimizer):
            raise modes.refusals.note(
                CaptureError(
                    f"{type(self).__name__} computes its update in Python, with numbers that a "
                    "program would take for constants. Derive it from RuleOptimizer, or leave the "
                    "training step unhybridized: hybridize the network and the loss."
                )
            )
        for index, weight, grad, state in zip(indices, weights, grads, states, strict=True):
            self.update_multi_precision(index, weight, grad, state)

    # -- learning rate ------------------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The rate now, before a parameter's own factor."""
        if self.lr_scheduler is not None:
            return self.lr_scheduler(self.num_update)
        assert self.lr is not None
        return self.lr

    def set_learning_rate(self, lr: float) -> None:
        """Change the rate; with a scheduler, the rate is the scheduler's alone."""
        if self.lr_scheduler is not None:
            raise UserWarning(
                "set_learning_rate: this optimizer has an lr_scheduler, which decides the rate. "
                "Set the scheduler's base_lr, or make the optimizer without one."
            )
        rate = fixed_number(lr)

        def change() -> list[float]:
            self.lr = rate
            return []

        if modes.is_capturing():
            count_from(lambda: partial(setattr, self, "lr", self.lr))
            capture.supplied(change, [])  # at every run, before the steps behind it
        change()

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Factors of the learning rate by parameter name or index; others have 1."""
        self.lr_mult = self._from_symbol("__lr_mult__") | dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Factors of the weight decay. Named parameters that are no weights start with 0."""
        without = (n for n in self.idx2name.values() if not n.endswith(self._decayed))
        self.wd_mult = dict.fromkeys(without, 0.0)
        self.wd_mult |= self._from_symbol("__wd_mult__") | dict(args_wd_mult)

    _decayed: tuple[str, ...] = ("_weight", "_gamma")

    def _from_symbol(self, attribute: str) -> dict[Any, float]:
        """Factors that a symbol's arguments carry."""
        if not self.sym_info:
            return {}
        attributes, names = self.sym_info
        found = ((name, attributes.get(name, {}).get(attribute)) for name in names)
        return {name: float(text) for name, text in found if text is not None}

    def _factors(self, indices: Sequence[Any], own: Mapping[Any, float], name: str) -> list[float]:
        known, names = self.param_dict, self.idx2name
        return [
            float(getattr(known[i], name)) if i in known else own.get(i, own.get(names.get(i), 1.0))
            for i in indices
        ]

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        rate = self.learning_rate
        return [rate * factor for factor in self._factors(indices, self.lr_mult, "lr_mult")]

    def _get_wds(self, indices: Sequence[Any]) -> list[float]:
        return [self.wd * factor for factor in self._factors(indices, self.wd_mult, "wd_mult")]

    def _get_lr(self, index: Any) -> float:
        """The learning rate of one parameter."""
        return self._get_lrs([index])[0]

    def _get_wd(self, index: Any) -> float:
        """The weight decay of one parameter."""
        return self._get_wds([index])[0]

    # -- counts -------------------------------------------------------------------------------

    def _set_current_context(self, device_id: int) -> None:
        """Count the updates on each device by themselves."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Any) -> None:
        """Note that a parameter, or each of several, is about to be updated."""
        counts, first, most = self._index_update_count, self.begin_num_update, self.num_update
        for one in index if isinstance(index, list | tuple) else [index]:
            counts[one] = count = counts.get(one, first) + 1
            most = max(most, count)
        self.num_update = most

    # -- classes by name ----------------------------------------------------------------------

    @staticmethod
    def register(klass: type) -> type:
        """Let `create` find a class by its name in lower case."""
        return _registry.register(klass)

    @staticmethod
    def create_optimizer(name: Any, **kwargs: Any) -> Any:
        """An optimiser by the name of its class."""
        return _registry.create(name, **kwargs)


_registry = Registry(Optimizer, "optimizer")
Optimizer.opt_registry = _registry.classes
register = Optimizer.register
create = Optimizer.create_optimizer


def _start_at(scheduler: Any, learning_rate: float) -> None:
    """Let the optimizer's rate be the scheduler's first."""
    if learning_rate != scheduler.base_lr:
        warn_user(
            f"the optimizer's learning rate {learning_rate} replaces the scheduler's base_lr "
            f"{scheduler.base_lr}; give both the same."
        )
        scheduler.base_lr = learning_rate


class RuleOptimizer(Optimizer):
    """An optimiser whose update is one operation, so that many parameters go in one run."""

    def step(
        self,
        index: Any,
        weight: _core.ndarray,
        grad: _core.ndarray,
        state: Any,
        numbers: dict[str, Any],
    ) -> Step | None:
        """The call that updates one parameter; None if nothing changes this time.

        `numbers` has the operands that most rules take: `lr`, `wd`, `rescale_grad` and
        `clip_gradient`.
        """
        raise UnsupportedError(f"{type(self).__name__} has to define step().")

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        given = (index, weight, grad, state)
        if not isinstance(index, list | tuple):
            given = tuple([one] for one in given)
        for pair in zip(given[1], given[2], strict=True):
            _check_dense(*pair)
        rescale = self.rescale_grad

        def take() -> list[Step]:
            self.rescale_grad = rescale
            steps = self._steps(*given)
            self.rescale_grad = value_of(rescale)
            return steps

        if modes.is_capturing():
            count_from(self._undo)
        run(take)

    def _undo(self) -> Callable[[], None] | None:
        """What lets it forget all updates that it counts from here on; None for a class of the
        user's, which may remember more of them."""
        known = [one for one in (self, self.lr_scheduler) if one is not None]
        if not all(type(one).__module__.startswith(_PACKAGE) for one in known):
            return None
        counted = deepcopy([{n: v for n, v in vars(one).items() if _is_count(v)} for one in known])

        def undo() -> None:
            for one, before in zip(known, counted, strict=True):
                vars(one).update(before)

        return undo

    def _steps(self, indices: Any, weights: Any, grads: Any, states: Any) -> list[Step]:
        self._update_count(indices)
        common = self._of_gradients()
        lrs, wds = self._get_lrs(indices), self._get_wds(indices)
        rows = zip(indices, weights, grads, states, lrs, wds, strict=True)
        steps = [
            self.step(index, weight, grad, state, {"lr": float(lr), "wd": float(wd), **common})
            for index, weight, grad, state, lr, wd in rows
        ]
        return [step for step in steps if step is not None]

    def _of_gradients(self) -> dict[str, Any]:
        """How gradients are scaled and bounded before use."""
        clip = self.clip_gradient
        bound = float(clip) if clip and clip > 0 else None
        rescale = self.rescale_grad
        rescale = rescale if is_traced(rescale) else float(rescale)
        return {"rescale_grad": rescale, "clip_gradient": bound}

    def update_all(
        self,
        indices: Sequence[Any],
        weights: Sequence[_core.ndarray],
        grads: Sequence[_core.ndarray],
        states: Sequence[Any],
    ) -> None:
        if _is_redefined(type(self)) or any(map(self._has_master, weights)):
            super().update_all(indices, weights, grads, states)
        else:
            self.update(list(indices), weights, grads, states)


def _is_count(value: Any) -> bool:
    """Whether it is made of numbers and texts, as all is that changes when updates are counted."""
    if isinstance(value, dict | list | tuple):
        items = value.values() if isinstance(value, dict) else value
        return all(map(_is_count, items))
    return value is None or type(value) in (bool, int, float, str)


def _is_redefined(kind: type) -> bool:
    """Whether a subclass has an update of its own, for one parameter at a time."""
    own = (kind.update, kind.update_multi_precision)
    return own != (RuleOptimizer.update, RuleOptimizer.update_multi_precision)


def _check_dense(weight: Any, grad: Any) -> None:
    if not (isinstance(weight, _core.ndarray) and isinstance(grad, _core.ndarray)):
        raise UnsupportedError(
            f"update: the weight is a {type(weight).__name__} and the gradient a "
            f"{type(grad).__name__}; expected two np.ndarrays. Sparse arrays are not supported."
        )


def _is_half(weight: _core.ndarray) -> bool:
    return weight._dtype_name in _HALF


def zeros_like_weight(weight: _core.ndarray, count: int) -> tuple[_core.ndarray, ...]:
    """State arrays that start from nothing."""
    return tuple(zeros_like(weight) for _ in range(count))
