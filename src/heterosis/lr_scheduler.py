"""Learning rates that change with the number of updates."""

from __future__ import annotations

import logging
import math

from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, UnsupportedError

_log = logging.getLogger(__name__)
_MANY_STEPS = 10_000  # taken at once: the rate would take as long to follow one by one

__all__ = [
    "CosineScheduler",
    "FactorScheduler",
    "LRScheduler",
    "MultiFactorScheduler",
    "PolyScheduler",
]


class LRScheduler:
    """The learning rate as a function of the number of updates, after a warm-up.

    During the first `warmup_steps` updates the rate grows from `warmup_begin_lr` to `base_lr`
    ('linear'), or stays at `warmup_begin_lr` ('constant').
    """

    def __init__(
        self,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        _check_whole("warmup_steps", warmup_steps, 0)
        if warmup_begin_lr > base_lr:
            raise ArgumentError(
                f"warmup_begin_lr is {warmup_begin_lr}, above base_lr {base_lr}; start lower."
            )
        if warmup_mode not in ("linear", "constant"):
            raise ArgumentError(f"warmup_mode={warmup_mode!r}: expected 'linear' or 'constant'.")
        self.base_lr = base_lr
        self.warmup_steps, self.warmup_mode = warmup_steps, warmup_mode
        self.warmup_begin_lr, self.warmup_final_lr = warmup_begin_lr, base_lr

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate of an update that belongs to the warm-up."""
        if num_update >= self.warmup_steps:
            raise ArgumentError(
                f"update {num_update} is past the warm-up of {self.warmup_steps}; call the "
                "scheduler itself."
            )
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        way = self.warmup_final_lr - self.warmup_begin_lr
        return self.warmup_begin_lr + way * num_update / self.warmup_steps

    def __call__(self, num_update: int) -> float:
        """The rate for update `num_update`."""
        raise UnsupportedError(f"{type(self).__name__} has to define __call__(num_update).")


class FactorScheduler(LRScheduler):
    """Multiplied by `factor` every `step` updates, but never below `stop_factor_lr`."""

    def __init__(
        self,
        step: int,
        factor: float = 1,
        stop_factor_lr: float = 1e-8,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ArgumentError(f"step={step}: expected at least 1 update.")
        _check_factor(factor)
        self.step, self.factor, self.stop_factor_lr = step, factor, stop_factor_lr
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        passed = max(num_update - self.count - 1, 0) // self.step
        factors = [self.factor] * passed if passed < _MANY_STEPS else [self.factor**passed]
        for factor in factors:
            self.base_lr = max(self.base_lr * factor, self.stop_factor_lr)
            _log.info("update %d: the learning rate is now %.5e", num_update, self.base_lr)
        self.count += passed * self.step
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiplied by `factor` after each number of updates in the list `step`."""

    def __init__(
        self,
        step: list[int],
        factor: float = 1,
        base_lr: float = 0.01,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        steps = list(step) if isinstance(step, list | tuple) else []
        if not steps or steps[0] < 1 or steps != sorted(set(steps)):
            raise ArgumentError(f"step={step!r}: expected a growing list of numbers of updates.")
        _check_factor(factor)
        self.step, self.factor = steps, factor
        self.cur_step_ind = self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            _log.info("update %d: the learning rate is now %.5e", num_update, self.base_lr)
        return self.base_lr


class _FallingScheduler(LRScheduler):
    """From `base_lr` to `final_lr` along a curve that ends with update `max_update`."""

    def __init__(
        self,
        max_update: int,
        base_lr: float,
        final_lr: float,
        warmup_steps: int,
        warmup_begin_lr: float,
        warmup_mode: str,
    ):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        _check_whole("max_update", max_update, 1)
        self.base_lr_orig, self.final_lr, self.max_update = base_lr, final_lr, max_update
        self.max_steps = max_update - warmup_steps

    def _height(self, progress: float) -> float:
        """How much of the way down is left, from 1 to 0, when `progress` goes from 0 to 1."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            height = self._height((num_update - self.warmup_steps) / max(self.max_steps, 1))
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * height
        return self.base_lr


class PolyScheduler(_FallingScheduler):
    """From `base_lr` to `final_lr` along a polynomial of power `pwr`."""

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        pwr: float = 2,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _height(self, progress: float) -> float:
        return (1 - progress) ** self.power


class CosineScheduler(_FallingScheduler):
    """From `base_lr` to `final_lr` along half a wave of the cosine."""

    def __init__(
        self,
        max_update: int,
        base_lr: float = 0.01,
        final_lr: float = 0,
        warmup_steps: int = 0,
        warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _height(self, progress: float) -> float:
        return (1 + math.cos(math.pi * progress)) / 2


def _check_whole(name: str, number: int, least: int) -> None:
    if not isinstance(number, int) or number < least:
        raise ArgumentError(f"{name}={number!r}: expected a whole number, at least {least}.")


def _check_factor(factor: float) -> None:
    if factor > 1:
        raise ArgumentError(f"factor={factor}: expected at most 1, so that the rate falls.")


_check_members(globals())
