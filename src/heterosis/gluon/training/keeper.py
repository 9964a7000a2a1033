"""The handler that writes checkpoints after each epoch, and goes on from the last one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from heterosis.gluon.contrib.estimator.events import EpochEnd, EventHandler, TrainBegin
from heterosis.gluon.contrib.estimator.handlers import LAST
from heterosis.gluon.data import DataLoader
from heterosis.gluon.training import checkpoint
from heterosis.gluon.training.history import History
from heterosis.io.packing import fits, is_plain

if TYPE_CHECKING:
    from heterosis.gluon.contrib.estimator import Estimator

LAST_FILE, BEST_FILE = "last.checkpoint", "best.params"


class CheckpointKeeper(TrainBegin, EpochEnd):
    """Keeps `last.checkpoint`, and `best.params` of the best epoch, in a folder.

    It is the last of all handlers, so that it sees what the others have done.
    """

    priority = LAST

    def __init__(self, folder: str | os.PathLike[str], data: DataLoader, history: History):
        self._folder, self._data, self._history = os.fspath(folder), data, history
        self._resumed: checkpoint.Facts | None = None
        self._restore_random: Callable[[], None] | None = None
        os.makedirs(self._folder, exist_ok=True)

    @property
    def path(self) -> str:
        """The file to go on from."""
        return os.path.join(self._folder, LAST_FILE)

    def resume(self, estimator: Estimator, handlers: Sequence[EventHandler]) -> bool:
        """Take over the checkpoint, if there is one; `handlers` will be those of the training."""
        if not os.path.exists(self.path):
            return False
        self._resumed, self._restore_random = checkpoint.load(
            self.path, estimator.net, estimator.trainer, lambda run: _check(run, handlers)
        )
        self._history.restore(self._resumed["history"])
        return True

    def known_of(self, kind: type[EventHandler]) -> dict[str, Any]:
        """What the checkpoint knows of the first handler of a kind."""
        rows = self._resumed["handlers"] if self._resumed else []
        return next((facts for name, facts in rows if name == kind.__name__), {})

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        if self._resumed is None or self._restore_random is None:
            return
        _restore_handlers(estimator.event_handlers, self._resumed["handlers"])
        self._data.restore(self._resumed["loader"])
        self._restore_random()

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        # The best first: a crash in between repeats this epoch, which then writes it again.
        if self._history.best_epoch == self._history.epochs:
            estimator.net.save_parameters(os.path.join(self._folder, BEST_FILE))
        run = {
            "history": self._history.facts(),
            "handlers": _handlers_facts(estimator.event_handlers),
            "loader": self._data.state(),
        }
        checkpoint.save(self.path, estimator.net, estimator.trainer, run)


def _check(run: checkpoint.Facts, handlers: Sequence[EventHandler]) -> None:
    """Raise unless `run` has the form that is written, and the handlers can go on from it."""
    History("", False).restore(run["history"])
    for name, facts in run["handlers"]:
        if not isinstance(name, str) or not isinstance(facts, dict):
            raise TypeError(f"{name!r}: {facts!r} is nothing that a handler remembers")
    for handler, name, value in _remembered(handlers, run["handlers"]):
        if not fits(value, getattr(handler, name), optional=True):
            raise TypeError(f"{type(handler).__name__}.{name} cannot be {value!r}")
    left, ahead = run["loader"]["left"], run["loader"]["ahead"]
    if not (isinstance(left, list) and is_plain(left)) or not (
        ahead is None or checkpoint.is_random_state(ahead)
    ):
        raise ValueError(f"{run['loader']!r} is no state of a DataLoader")


def _handlers_facts(handlers: Sequence[EventHandler]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (type(handler).__name__, {name: getattr(handler, name) for name in handler.remembered})
        for handler in handlers
        if handler.remembered
    ]


def _restore_handlers(handlers: Sequence[EventHandler], rows: Sequence[Any]) -> None:
    for handler, name, value in _remembered(handlers, rows):
        setattr(handler, name, value)


def _remembered(
    handlers: Sequence[EventHandler], rows: Sequence[Any]
) -> Iterator[tuple[EventHandler, str, Any]]:
    """What each handler is to remember: (handler, name, value).

    Handlers are known by their classes, and those of one class by their order.
    """
    waiting = list(rows)
    for handler in handlers:
        row = next((row for row in waiting if row[0] == type(handler).__name__), None)
        if row is not None:
            waiting.remove(row)
            found = [name for name in handler.remembered if name in row[1]]
            yield from ((handler, name, row[1][name]) for name in found)
