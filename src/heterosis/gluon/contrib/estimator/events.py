"""What handlers of a training run derive from: one class for each moment they are called at.

Handlers are called in the order of their `priority`, lowest first; without one, it is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from heterosis.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from heterosis.gluon.contrib.estimator.estimator import Estimator


class EventHandler:
    """The base of all handlers. `remembered` names the attributes that a checkpoint keeps."""

    remembered: ClassVar[tuple[str, ...]] = ()


class TrainBegin(EventHandler):
    """Called once, before anything else."""

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Training is about to begin."""


class TrainEnd(EventHandler):
    """Called once, when training has ended."""

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """Training has ended."""


class EpochBegin(EventHandler):
    """Called before each epoch."""

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """An epoch is about to begin."""


class EpochEnd(EventHandler):
    """Called after each epoch."""

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool | None:
        """An epoch has ended; true stops training."""
        return False


class BatchBegin(EventHandler):
    """Called before each batch with the keyword `batch`."""

    def batch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        """A batch is about to be used."""


class BatchEnd(EventHandler):
    """Called after each batch with the keywords `batch`, `pred`, `label` and `loss`."""

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> bool | None:
        """Gradients are there; true ends the epoch."""
        return False


def listed_handlers(handlers: Any) -> list[EventHandler]:
    """One handler, several or none as a new list."""
    found = [handlers] if isinstance(handlers, EventHandler) else list(handlers or ())
    strangers = [h for h in found if not isinstance(h, EventHandler)]
    if strangers:
        raise ArgumentError(
            f"event handlers: {strangers[0]!r} is none; expected objects of classes derived from "
            "TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd or TrainEnd."
        )
    return found


def in_order(handlers: list[EventHandler]) -> list[EventHandler]:
    """By priority; those of one priority as they come."""
    return sorted(handlers, key=lambda handler: getattr(handler, "priority", 0))
