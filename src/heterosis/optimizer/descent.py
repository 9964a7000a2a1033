"""Gradient descent and its variants."""

from __future__ import annotations

import math
from typing import Any

from heterosis import _core
from heterosis.ops.training import optimizers as rules
from heterosis.optimizer.optimizer import RuleOptimizer, register, zeros_like_weight
from heterosis.optimizer.steps import Step

Numbers = dict[str, Any]


class _WithMomentum(RuleOptimizer):
    """Keeps one array a parameter, the momentum, unless `momentum` is 0."""

    def __init__(self, momentum: float = 0.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return zeros_like_weight(weight, 1)[0] if self.momentum else None


@register
class SGD(_WithMomentum):
    """Stochastic gradient descent, with momentum if there is one.

    `lazy_update` is accepted; it concerns sparse gradients, which there are none of.
    """

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any):
        super().__init__(momentum, **kwargs)
        self.lazy_update = lazy_update

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        return _descent(weight, grad, state, numbers, self.momentum)


def _descent(weight: Any, grad: Any, state: Any, numbers: dict[str, Any], decay: float) -> Step:
    """A step of gradient descent, with momentum if there is a state."""
    if state is None:
        return Step(rules.sgd_update, weight, grad, (), numbers)
    numbers["decay"] = float(decay)
    return Step(rules.sgd_mom_update, weight, grad, (state,), numbers)


@register
class ccSGD(SGD):
    """An older name of SGD."""


@register
class NAG(_WithMomentum):
    """Nesterov's accelerated gradient."""

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        if state is None:
            return Step(rules.sgd_update, weight, grad, (), numbers)
        numbers["decay"] = float(self.momentum)
        return Step(rules.nag_mom_update, weight, grad, (state,), numbers)


@register
class Signum(_WithMomentum):
    """Steps along the sign of the gradient, or of the momentum if there is one."""

    def __init__(
        self,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        wd_lh: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(momentum, learning_rate=learning_rate, **kwargs)
        self.wd_lh = wd_lh

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        if state is None:
            numbers = {name: numbers[name] for name in ("lr", "wd")}
            return Step(rules.signsgd_update, weight, grad, (), numbers)
        numbers |= {"decay": float(self.momentum), "wd_lh": float(self.wd_lh)}
        return Step(rules.signum_update, weight, grad, (state,), numbers)


@register
class DCASGD(RuleOptimizer):
    """Descent with gradients that come late, as they do from many workers."""

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return (*zeros_like_weight(weight, 1), weight.copy())

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= {"decay": float(self.momentum), "lamda": float(self.lamda)}
        return Step(rules.dcasgd_update, weight, grad, tuple(state), numbers)


@register
class SGLD(RuleOptimizer):
    """Stochastic gradient Langevin dynamics: descent with noise, which samples a posterior."""

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        return Step(rules.sgld_update, weight, grad, (), numbers)


@register
class LARS(_WithMomentum):
    """Descent whose rate in each layer is in proportion to the weight's norm.

    Parameters with names that end with gamma, beta or bias keep the common rate.
    """

    _decayed = ("_weight",)

    def __init__(
        self,
        momentum: float = 0.0,
        lazy_update: bool = True,
        eta: float = 0.001,
        eps: float = 0,
        momentum_correction: bool = True,
        **kwargs: Any,
    ):
        super().__init__(momentum, **kwargs)
        self.lazy_update, self.eta, self.eps = lazy_update, eta, eps
        self.momentum_correction = momentum_correction
        self.last_lr: float | None = None
        self.cur_lr: float | None = None
        self._rate_of = -1  # the number of the update that `cur_lr` belongs to

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        self._follow_rate()
        if not self.idx2name.get(index, str(index)).endswith(("gamma", "beta", "bias")):
            shares = {"eta": float(self.eta), "epsilon": float(self.eps)}
            shares |= {name: numbers[name] for name in ("lr", "wd", "rescale_grad")}
            numbers["lr"] = rules.lars_rate(weight, grad, **shares)
        return _descent(weight, grad, state, numbers, self._corrected_momentum())

    def _follow_rate(self) -> None:
        """Remember the rate of the last update and of this one."""
        if self._rate_of == self.num_update:
            return
        rate = self.learning_rate
        self.last_lr = rate if self.cur_lr is None else self.cur_lr
        self.cur_lr, self._rate_of = rate, self.num_update

    def _corrected_momentum(self) -> float:
        """The momentum holds steps of the last rate: scale them to this one."""
        if not (self.momentum_correction and self.last_lr):
            return self.momentum
        return self.momentum * self.cur_lr / self.last_lr


@register
class LBSGD(_WithMomentum):
    """Large-batch descent: sums the gradients of `batch_scale` updates, warms the rate up.

    `warmup_strategy` is 'linear', 'power2' or 'sqrt', or 'lars' for rates by the layers' norms.
    """

    def __init__(
        self,
        momentum: float = 0.0,
        multi_precision: bool = False,
        warmup_strategy: str = "linear",
        warmup_epochs: int = 5,
        batch_scale: int = 1,
        updates_per_epoch: int = 32,
        begin_epoch: int = 0,
        num_epochs: int = 60,
        **kwargs: Any,
    ):
        super().__init__(momentum, multi_precision=multi_precision, **kwargs)
        self.warmup_strategy, self.warmup_epochs = warmup_strategy, warmup_epochs
        self.batch_scale, self.updates_per_epoch = batch_scale, updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        """The momentum and the sum of gradients, each where it is needed."""
        total = zeros_like_weight(weight, 1)[0] if self.batch_scale > 1 else None
        return super().create_state(index, weight), total

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step | None:
        momentum, total = state
        count = self.init_updates + self._index_update_count[index] - self.begin_num_update
        if total is not None:
            total += grad
            if count % self.batch_scale:
                return None
            grad = total / self.batch_scale
            total[...] = 0.0
        if self.warmup_strategy == "lars":
            numbers["lr"] = rules.lbsgd_rate(weight, grad, lr=numbers["lr"], wd=numbers["wd"])
        else:
            numbers["lr"] *= self._warmed_up(count)
        return _descent(weight, grad, momentum, numbers, self.momentum)

    def _warmed_up(self, count: int) -> float:
        """The factor of the rate, from 1 to `batch_scale`."""
        length = self.warmup_epochs * self.updates_per_epoch
        if count >= length:
            return float(self.batch_scale)
        curves = {"linear": lambda x: x, "power2": lambda x: x * x, "sqrt": math.sqrt}
        curve = curves.get(self.warmup_strategy)
        if length <= 1 or curve is None:
            return 1.0
        return 1.0 + (self.batch_scale - 1) * curve(count / length)


@register
class Test(RuleOptimizer):
    """Adds gradients to weights, for tests of what stands around it."""

    __test__ = False  # not one of pytest's

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return zeros_like_weight(weight, 1)[0]

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers = {"rescale_grad": float(self.rescale_grad)}
        return Step(rules.accumulate_update, weight, grad, (state,), numbers)
