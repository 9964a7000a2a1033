"""Optimisers that scale each element's step by what its gradients have been."""

from __future__ import annotations

import math
from typing import Any

from heterosis import _core
from heterosis.ops.training import optimizers as rules
from heterosis.optimizer.optimizer import RuleOptimizer, register, zeros_like_weight
from heterosis.optimizer.steps import Step

Numbers = dict[str, Any]


class _Averaging(RuleOptimizer):
    """Keeps running averages of gradients and of their squares."""

    arrays = 2

    def __init__(
        self, learning_rate: float | None, beta1: float, beta2: float, epsilon: float, kwargs: dict
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return zeros_like_weight(weight, self.arrays)

    def _averages(self) -> Numbers:
        """How averages are kept, as operands."""
        betas = {"beta1": float(self.beta1), "beta2": float(self.beta2)}
        return betas | {"epsilon": float(self.epsilon)}

    def _starts(self, index: Any) -> tuple[float, float]:
        """How full the averages are after as many updates: 0 is empty, 1 is full."""
        count = self._index_update_count[index]
        return 1.0 - self.beta1**count, 1.0 - self.beta2**count


@register
class Adam(_Averaging):
    """Adam: steps by the mean of gradients over the root of their mean square."""

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_update: bool = True,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, kwargs)
        self.lazy_update = lazy_update

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= self._averages()
        start1, start2 = self._starts(index)
        numbers["lr"] *= math.sqrt(start2) / start1
        return Step(rules.adam_update, weight, grad, tuple(state), numbers)


@register
class AdamW(_Averaging):
    """Adam whose weight decay is taken from the weights and not through the averages.

    `wd` is scaled by the learning rate, as in PyTorch.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        wd: float = 0.01,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, kwargs | {"wd": wd})

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= self._averages()
        numbers["start1"], numbers["start2"] = self._starts(index)
        return Step(rules.adamw_update, weight, grad, tuple(state), numbers)


@register
class Lion(_Averaging):
    """Steps of equal length along the sign of gradient and mean; one state, no square roots.

    It wants a learning rate three to ten times below AdamW's, and a `wd` as much above.
    """

    arrays = 1

    def __init__(
        self,
        learning_rate: float = 0.0001,
        beta1: float = 0.9,
        beta2: float = 0.99,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, beta1, beta2, 0.0, kwargs)

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= self._averages()
        del numbers["epsilon"]
        return Step(rules.lion_update, weight, grad, tuple(state), numbers)


@register
class Adamax(_Averaging):
    """Adam with the largest gradient so far in place of the mean square."""

    def __init__(
        self,
        learning_rate: float = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, beta1, beta2, 0.0, kwargs)

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= self._averages()
        del numbers["epsilon"]
        numbers["lr"] /= self._starts(index)[0]
        return Step(rules.adamax_update, weight, grad, tuple(state), numbers)


@register
class Nadam(_Averaging):
    """Adam with Nesterov's momentum on a schedule."""

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        schedule_decay: float = 0.004,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, kwargs)
        self.schedule_decay = schedule_decay
        self.m_schedule = 1.0

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        count = self._index_update_count[index]
        now, following = self._momentum(count), self._momentum(count + 1)
        # As in MXNet, every parameter's update moves the one schedule on.
        self.m_schedule *= now
        numbers |= self._averages()
        numbers["grad_share"] = (1.0 - now) / (1.0 - self.m_schedule)
        numbers["mean_share"] = following / (1.0 - self.m_schedule * following)
        numbers["variance_scale"] = 1.0 / self._starts(index)[1]
        return Step(rules.nadam_update, weight, grad, tuple(state), numbers)

    def _momentum(self, count: int) -> float:
        return self.beta1 * (1.0 - 0.5 * 0.96 ** (count * self.schedule_decay))


@register
class FTML(_Averaging):
    """Follow the moving leader."""

    arrays = 3

    def __init__(
        self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any
    ):
        super().__init__(kwargs.pop("learning_rate", None), beta1, beta2, epsilon, kwargs)

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= self._averages()
        numbers["start1"], numbers["start2"] = self._starts(index)
        return Step(rules.ftml_update, weight, grad, tuple(state), numbers)


@register
class LAMB(_Averaging):
    """Adam's direction with a length in proportion to the weight's norm, for large batches."""

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        bias_correction: bool = True,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, kwargs)
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.bias_correction = bias_correction

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= self._averages()
        starts = self._starts(index) if self.bias_correction else (1.0, 1.0)
        numbers["start1"], numbers["start2"] = starts
        numbers["lower_bound"] = _bound(self.lower_bound)
        numbers["upper_bound"] = _bound(self.upper_bound)
        return Step(rules.lamb_update, weight, grad, tuple(state), numbers)


def _bound(given: float | None) -> float | None:
    return float(given) if given else None


@register
class AdaGrad(RuleOptimizer):
    """Steps that shrink with the sum of all squared gradients."""

    def __init__(self, eps: float = 1e-7, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return zeros_like_weight(weight, 1)[0]

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= {"epsilon": float(self.float_stable_eps)}
        return Step(rules.adagrad_update, weight, grad, (state,), numbers)


@register
class AdaDelta(RuleOptimizer):
    """Steps as long as earlier ones, compared with gradients; the learning rate does not count."""

    def __init__(self, rho: float = 0.9, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return zeros_like_weight(weight, 2)

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= {"rho": float(self.rho), "epsilon": float(self.epsilon)}
        del numbers["lr"]
        return Step(rules.adadelta_update, weight, grad, tuple(state), numbers)


@register
class RMSProp(RuleOptimizer):
    """Steps scaled by a running mean of squared gradients; `centered` takes the variance."""

    def __init__(
        self,
        learning_rate: float = 0.001,
        gamma1: float = 0.9,
        gamma2: float = 0.9,
        epsilon: float = 1e-8,
        centered: bool = False,
        clip_weights: float | None = None,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return zeros_like_weight(weight, 3 if self.centered else 1)

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= {"gamma1": float(self.gamma1), "epsilon": float(self.epsilon)}
        numbers["clip_weights"] = _bound(self.clip_weights)
        if not self.centered:
            return Step(rules.rmsprop_update, weight, grad, tuple(state), numbers)
        numbers["gamma2"] = float(self.gamma2)
        return Step(rules.rmspropalex_update, weight, grad, tuple(state), numbers)


@register
class Ftrl(RuleOptimizer):
    """Follow the regularised leader: keeps weights at zero until they matter."""

    def __init__(
        self, lamda1: float = 0.01, learning_rate: float = 0.1, beta: float = 1, **kwargs: Any
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1, self.beta = lamda1, beta

    def create_state(self, index: Any, weight: _core.ndarray) -> Any:
        return zeros_like_weight(weight, 2)

    def step(self, index: Any, weight: Any, grad: Any, state: Any, numbers: Numbers) -> Step:
        numbers |= {"lamda1": float(self.lamda1), "beta": float(self.beta)}
        return Step(rules.ftrl_update, weight, grad, tuple(state), numbers)
