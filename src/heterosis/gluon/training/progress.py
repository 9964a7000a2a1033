"""How training tells of itself: a bar where somebody watches, else a line an epoch."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from heterosis.gluon.contrib.estimator.handlers import LAST, LoggingHandler
from heterosis.gluon.training.history import History

if TYPE_CHECKING:
    from heterosis.gluon.contrib.estimator import Estimator

_PAUSE = 0.1  # seconds between two looks at values, each of which waits for the engine


class Display:
    """Shows nothing."""

    def begin(self, title: str, batches: int) -> None:
        """An epoch of so many batches begins."""

    def advance(self, estimator: Estimator) -> None:
        """One more batch is done."""

    def note(self, text: str) -> None:
        """Show a line that stays."""

    def close(self) -> None:
        """Nothing more will come."""


class Lines(Display):
    """Shows the lines that stay."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Bar(Display):
    """A bar for the epoch with the loss so far, and the lines above it."""

    def __init__(self, stream: TextIO):
        import rich.console
        import rich.progress as parts

        self._console = rich.console.Console(file=stream)
        self._bar = parts.Progress(
            parts.TextColumn("{task.description}"),
            parts.BarColumn(),
            parts.MofNCompleteColumn(),
            parts.TimeRemainingColumn(),
            parts.TextColumn("{task.fields[values]}"),
            console=self._console,
            auto_refresh=False,  # a thread of its own would be in the way of fork
            transient=True,
        )
        self._task: Any = None
        self._shown = 0.0

    def begin(self, title: str, batches: int) -> None:
        if self._task is None:
            self._bar.start()
        else:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(title, total=batches, values="")
        self._bar.refresh()

    def advance(self, estimator: Estimator) -> None:
        self._bar.advance(self._task)
        if time.monotonic() - self._shown > _PAUSE:
            _, value = estimator.train_metrics[0].get()
            self._bar.update(self._task, values=f"loss {value:.4f}")
            self._bar.refresh()
            self._shown = time.monotonic()

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        self._bar.stop()


def display(progress: bool, stream: TextIO | None = None) -> Display:
    """What suits the stream, standard output if none is given."""
    stream = sys.stdout if stream is None else stream
    if not progress:
        return Display()
    return Bar(stream) if stream.isatty() else Lines(stream)


class ProgressHandler(LoggingHandler):
    """Tells the display what happens; as a LoggingHandler it takes the standard one's place."""

    def __init__(self, shown: Display, history: History, batches: int):
        super().__init__(priority=LAST)
        self._display, self._history, self._batches = shown, history, batches

    def train_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        pass

    def epoch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        title = f"epoch {self._history.epochs + 1}/{estimator.max_epoch}"
        self._display.begin(title, self._batches)

    def batch_begin(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        pass

    def batch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        self._display.advance(estimator)

    def epoch_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        number = self._history.epochs
        self._display.note(f"epoch {number}/{estimator.max_epoch}  {self._history.line()}")

    def train_end(self, estimator: Estimator, *args: Any, **kwargs: Any) -> None:
        pass
