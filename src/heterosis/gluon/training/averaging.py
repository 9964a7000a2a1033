"""Moving averages of parameters, which often predict better than the last values do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from heterosis import _core, capture
from heterosis.gluon.parameter import Parameter
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.trainer import listed_parameters
from heterosis.ops.math.cast import assign
from heterosis.ops.nn.normalization import moving_average
from heterosis.optimizer.steps import Step, run
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError


class ExponentialMovingAverage:
    """Averages of the parameters that are learnt: `average.update()` after each step.

    An update keeps the part `decay` of the average, and takes the rest from the parameter. With
    `warm_up`, the first updates keep less, `(1 + n) / (10 + n)` after `n`, so that the beginning
    is soon forgotten. Inside `with average.applied():` the parameters are their averages, to
    predict with or to save.
    """

    def __init__(
        self,
        params: ParameterDict | Mapping[str, Parameter] | Sequence[Any],
        decay: float = 0.999,
        warm_up: bool = False,
    ):
        if not 0 <= decay <= 1:
            raise ArgumentError(
                f"ExponentialMovingAverage: decay={decay}; expected a number from 0 to 1."
            )
        found = listed_parameters("ExponentialMovingAverage", params)
        self._params = [p for p in found if p.grad_req != "null"]
        self._averages = [p.list_data()[0].copy() for p in self._params]
        self._decay, self._warm_up = float(decay), warm_up
        self._updates = 0
        self._is_applied = False

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(decay={self._decay}, {len(self._params)} parameters, "
            f"{self._updates} updates)"
        )

    @property
    def averages(self) -> dict[str, _core.ndarray]:
        """The averages now, by the parameters' names."""
        return {p.name: a for p, a in zip(self._params, self._averages, strict=True)}

    def update(self) -> None:
        """Bring the averages nearer to the parameters."""
        self._check_free("update")
        if modes.is_capturing():
            capture.count_from(lambda: partial(setattr, self, "_updates", self._updates))
        run(self._steps)

    def _steps(self) -> Iterator[Step]:
        decay = self._decay
        if self._warm_up:
            decay = min(decay, (1.0 + self._updates) / (10.0 + self._updates))
        self._updates += 1
        for parameter, average in zip(self._params, self._averages, strict=True):
            yield Step(moving_average, average, parameter.list_data()[0], (), {"momentum": decay})

    @contextmanager
    def applied(self) -> Iterator[None]:
        """A context in which the parameters have the values of their averages."""
        self._check_free("applied")
        kept = [p.list_data()[0].copy() for p in self._params]
        self._put(self._averages)
        self._is_applied = True
        try:
            yield
        finally:
            self._is_applied = False
            self._put(kept)

    def _put(self, values: Sequence[_core.ndarray]) -> None:
        with modes.switched(recording=False):
            for parameter, value in zip(self._params, values, strict=True):
                for array in parameter.list_data():
                    assign(value, out=array)

    def _check_free(self, name: str) -> None:
        if self._is_applied:
            raise ArgumentError(
                f"ExponentialMovingAverage.{name}: the parameters are their averages inside "
                "`with average.applied()`; leave it first."
            )
