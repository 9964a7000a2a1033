"""Handlers that watch a metric: files of what is learnt, and an early end."""

from __future__ import annotations

import math
import os
import re
import warnings
from typing import TYPE_CHECKING, Any

from heterosis.gluon.contrib.estimator.events import BatchEnd, EpochEnd, TrainBegin, TrainEnd
from heterosis.gluon.contrib.estimator.metrics import better, check_monitor, worst
from heterosis.metric import EvalMetric
from heterosis.runtime.errors import (
    ArgumentError,
    CaptureError,
    UninitializedError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from heterosis.gluon.contrib.estimator.estimator import Estimator


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Writes parameters and optimizer states every `epoch_period` epochs or `batch_period` batches.

    The files are `<model_prefix>-epoch<e>batch<b>.params` and `.states` in `model_dir`; the last
    `max_checkpoints` pairs stay. A hybridized network's program goes to
    `<model_prefix>-symbol.json`. With `save_best`, `<model_prefix>-best` are those at the best
    value of `monitor`. With `resume_from_checkpoint`, training goes on from the last pair.
    """

    remembered = ("current_batch", "current_epoch", "best")

    def __init__(
        self,
        model_dir: str,
        model_prefix: str = "model",
        monitor: EvalMetric | None = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ):
        self.monitor: Any = monitor
        self.save_best = save_best
        if save_best:
            self.monitor_op = better(check_monitor(monitor, "CheckpointHandler, save_best"), mode)
            self.best = worst(self.monitor_op)
        else:
            self.best = math.nan
        self.model_dir, self.model_prefix, self.verbose = model_dir, model_prefix, verbose
        self.epoch_period, self.batch_period = epoch_period, batch_period
        self.max_checkpoints = max_checkpoints
        self.resume_from_checkpoint = resume_from_checkpoint
        self.current_batch = self.current_epoch = 0
        self.trained_epoch = self.trained_batch = -1
        self.saved_checkpoints: list[str] = []
        os.makedirs(model_dir, exist_ok=True)

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self.current_batch = self.current_epoch = 0
        if self.save_best:
            self.best = worst(self.monitor_op)
        if self.resume_from_checkpoint:
            self._check_periods(estimator)
            self._resume(estimator)

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save(estimator)
        self.current_epoch += 1

    # -- writing ----------------------------------------------------------------------------------

    def _save(self, estimator: Estimator) -> None:
        prefix = f"{self.model_prefix}-epoch{{}}batch{{}}".format(*self._position(estimator))
        self._write(estimator, prefix)
        self._tell(estimator, f"saved as {prefix}")
        self.saved_checkpoints.append(prefix)
        while len(self.saved_checkpoints) > self.max_checkpoints:
            self._remove(self.saved_checkpoints.pop(0))
        if self.save_best:
            self._save_best(estimator)

    def _save_symbol(self, estimator: Estimator) -> None:
        """The network's program, `<model_prefix>-symbol.json`, if it is hybridized."""
        from heterosis.gluon.exporting import described

        path = os.path.join(self.model_dir, f"{self.model_prefix}-symbol.json")
        try:
            described(estimator.net)[0].save(path)
        except (CaptureError, UninitializedError, UnsupportedError) as error:
            estimator.logger.info("CheckpointHandler: %s is not written: %s", path, error)

    def _position(self, estimator: Estimator) -> tuple[int, int]:
        """The numbers in the names of files: epochs, and batches since training first began."""
        if not self.resume_from_checkpoint:
            return self.current_epoch, self.current_batch
        # After an epoch the batches are counted already, within one they are not.
        batch = self.current_batch + self.trained_batch + (0 if estimator.max_epoch else 1)
        return self.current_epoch + self.trained_epoch + 1, batch

    def _save_best(self, estimator: Estimator) -> None:
        name, value = self.monitor.get()
        if math.isnan(value):
            warn_unused(name, "the best model is not saved")
        elif self.monitor_op(value, self.best):
            self._write(estimator, f"{self.model_prefix}-best")
            self._tell(estimator, f"{name} improved from {self.best:.5f} to {value:.5f}")
            self.best = value

    def _write(self, estimator: Estimator, prefix: str) -> None:
        """The states first: a checkpoint is there when its parameters are."""
        path = os.path.join(self.model_dir, prefix)
        estimator.trainer.save_states(f"{path}.states")
        estimator.net.save_parameters(f"{path}.params")

    def _remove(self, prefix: str) -> None:
        for ending in (".params", ".states"):
            path = os.path.join(self.model_dir, prefix + ending)
            if os.path.exists(path):
                os.remove(path)

    def _tell(self, estimator: Estimator, what: str) -> None:
        if self.verbose > 0:
            estimator.logger.info("[Epoch %d] CheckpointHandler: %s", self.current_epoch, what)

    # -- going on ---------------------------------------------------------------------------------

    def _check_periods(self, estimator: Estimator) -> None:
        used, other = self.epoch_period, self.batch_period
        if not estimator.max_epoch:
            used, other = other, used
        if not used or other:
            raise ArgumentError(
                "CheckpointHandler: resume_from_checkpoint counts as fit does: training by epochs "
                "needs epoch_period and no batch_period, and by batches the opposite."
            )

    def _resume(self, estimator: Estimator) -> None:
        found = self._found()
        self.saved_checkpoints = [f"{self.model_prefix}-epoch{e}batch{b}" for e, b in found]
        self.trained_epoch, self.trained_batch = found[-1] if found else (-1, -1)
        if not found:
            estimator.logger.info("CheckpointHandler: no checkpoint in %s yet", self.model_dir)
            return
        left = self._left(estimator)
        path = os.path.join(self.model_dir, self.saved_checkpoints[-1])
        estimator.net.load_parameters(f"{path}.params", ctx=estimator.context)
        estimator.trainer.load_states(f"{path}.states")
        if estimator.max_epoch:
            estimator.max_epoch = left
        else:
            estimator.max_batch = left
        estimator.logger.info("CheckpointHandler: going on from %s", path)

    def _found(self) -> list[tuple[int, int]]:
        """The checkpoints in the folder, in their order."""
        name = re.compile(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.params")
        matches = (name.fullmatch(file) for file in os.listdir(self.model_dir))
        return sorted((int(m[1]), int(m[2])) for m in matches if m)

    def _left(self, estimator: Estimator) -> int:
        done, asked, what = self.trained_epoch + 1, estimator.max_epoch or 0, "epochs"
        if not asked:
            done, asked, what = self.trained_batch + 1, estimator.max_batch or 0, "batches"
        if done >= asked:
            raise ArgumentError(
                f"CheckpointHandler: {self.model_dir} holds a checkpoint after {done} {what}, and "
                f"fit is asked for {asked} in all. Ask for more, or leave "
                "resume_from_checkpoint out to start anew."
            )
        return asked - done


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Stops when `monitor` has not become better by `min_delta` for `patience` epochs.

    With a `baseline`, becoming better starts from there.
    """

    remembered = ("wait", "stopped_epoch", "current_epoch", "best")

    def __init__(
        self,
        monitor: EvalMetric,
        min_delta: float = 0,
        patience: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
    ):
        self.monitor = check_monitor(monitor, "EarlyStoppingHandler")
        self.monitor_op = better(monitor, mode)
        self.min_delta = min_delta if self.monitor_op(1, 0) else -min_delta
        self.patience, self.baseline = patience, baseline
        self._start()

    def _start(self) -> None:
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        self.best = worst(self.monitor_op) if self.baseline is None else self.baseline

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self._start()

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool:
        name, value = self.monitor.get()
        if math.isnan(value):
            warn_unused(name, "training does not stop early")
        elif self.monitor_op(value - self.min_delta, self.best):
            self.best, self.wait = value, 0
        else:
            self._waited()
        self.current_epoch += 1
        return self.stop_training

    def _waited(self) -> None:
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch = self.current_epoch
            self.stop_training = True

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self.stop_training:
            estimator.logger.info(
                "[Epoch %d] EarlyStoppingHandler: stopped, %s does not become better",
                self.stopped_epoch,
                self.monitor.name,
            )


def warn_unused(name: str, consequence: str) -> None:
    """Say that a monitored metric has no value."""
    warnings.warn(
        f"{name} is NaN: {consequence}. Does nobody update it? Take a metric of "
        "estimator.train_metrics or estimator.val_metrics.",
        RuntimeWarning,
        stacklevel=3,
    )
