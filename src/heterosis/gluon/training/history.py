"""What a training run measured, epoch by epoch."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heterosis.io.atomic import written
from heterosis.runtime.errors import ArgumentError, MissingPackageError

_PANEL = (6.0, 3.2)  # inches


class History(Mapping[str, Sequence[float]]):
    """Metrics by name, each a list with one value an epoch: `history["validation loss"][-1]`.

    `best_epoch`, counted from 1, is the one with the best value of the metric `monitor`;
    `seconds` is how long each epoch took.
    """

    def __init__(self, monitor: str, larger_is_better: bool):
        self.monitor, self.larger_is_better = monitor, larger_is_better
        self.seconds: list[float] = []
        self._values: dict[str, list[float]] = {}

    def __getitem__(self, name: str) -> list[float]:
        if name not in self._values:
            raise KeyError(f"no metric is called {name!r}; there are {', '.join(self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        best = f", best {self.monitor} {self.best:.4g} at epoch {self.best_epoch}"
        return f"<History of {self.epochs} epochs{best if self.best_epoch else ''}>"

    @property
    def epochs(self) -> int:
        """How many epochs there are."""
        return len(self.seconds)

    @property
    def best_epoch(self) -> int | None:
        """The first epoch with the best value; None if there is none."""
        values = self._values.get(self.monitor, [])
        numbered = [(v, -i) for i, v in enumerate(values, 1) if not math.isnan(v)]
        if not numbered:
            return None
        if self.larger_is_better:
            return -max(numbered)[1]
        return -min(numbered, key=lambda row: (row[0], -row[1]))[1]

    @property
    def best(self) -> float:
        """The best value of `monitor`; NaN if there is none."""
        epoch = self.best_epoch
        return self._values[self.monitor][epoch - 1] if epoch else math.nan

    def add(self, values: Mapping[str, float], seconds: float) -> None:
        """Note the values of one more epoch; metrics that some epochs lack are NaN there."""
        for name in dict.fromkeys([*self._values, *values]):
            column = self._values.setdefault(name, [math.nan] * self.epochs)
            column.append(float(values.get(name, math.nan)))
        self.seconds.append(seconds)

    def line(self) -> str:
        """The last epoch in a line of text."""
        values = (f"{name} {column[-1]:.4f}" for name, column in self._values.items())
        return "  ".join([*values, f"{self.seconds[-1]:.1f} s"])

    # -- as data ----------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """All of it, in what JSON has."""
        return {"values": self._values, "seconds": self.seconds}

    def restore(self, facts: Mapping[str, Any]) -> None:
        """Become what `facts` was made from."""
        values = {str(name): [float(v) for v in column] for name, column in facts["values"].items()}
        seconds = [float(s) for s in facts["seconds"]]
        if any(len(column) != len(seconds) for column in values.values()):
            raise ValueError("the columns of the history have different lengths")
        self._values, self.seconds = values, seconds

    # -- as a picture -----------------------------------------------------------------------------

    def plot(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Draw the metrics over the epochs into an image file, validation beside training.

        Needs matplotlib, which `pip install 'heterosis[plot]'` brings.
        """
        suffix = os.path.splitext(path)[1].removeprefix(".")
        if not suffix:
            raise ArgumentError(
                f"plot: {os.fspath(path)!r} has no ending; expected one that names a format, such "
                "as .png, .svg or .pdf."
            )
        panels = _panels([name for name in (names or self) if self[name]])
        if not panels:
            raise ArgumentError("plot: there is nothing to draw yet: no epoch has been trained.")
        buffer = io.BytesIO()
        self._drawn(panels).savefig(buffer, format=suffix)
        with written(path) as file:
            file.write(buffer.getvalue())

    def _drawn(self, panels: dict[str, list[str]]) -> Any:
        figure_module = _matplotlib()
        width, height = _PANEL
        figure = figure_module.Figure((width, height * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), squeeze=False)[:, 0]
        for axis, (title, names) in zip(axes, panels.items(), strict=True):
            for name in names:
                numbers = range(1, len(self[name]) + 1)
                axis.plot(numbers, self[name], marker=".", label=name)
            axis.set_ylabel(title)
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.legend()
            axis.grid(alpha=0.3)
        axes[-1].set_xlabel("epoch")
        return figure


def _panels(names: Sequence[str]) -> dict[str, list[str]]:
    """A metric in training and in validation share a panel."""
    panels: dict[str, list[str]] = {}
    for name in names:
        panels.setdefault(name.removeprefix("validation "), []).append(name)
    return panels


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError:
        raise MissingPackageError(
            "History.plot needs matplotlib, which is not installed: pip install 'heterosis[plot]'."
        ) from None
    return matplotlib.figure
