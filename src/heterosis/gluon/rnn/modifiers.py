"""Cells around cells: dropout, zoneout and residual connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import autograd, np
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.rnn import sequences
from heterosis.gluon.rnn.cells import (
    BidirectionalCell,
    HybridRecurrentCell,
    RecurrentCell,
    States,
)
from heterosis.runtime.errors import ArgumentError


class DropoutCell(HybridRecurrentCell):
    """Dropout between cells; it has no states."""

    def __init__(
        self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None,
        params: ParameterDict | None = None,
    ):  # fmt: skip
        super().__init__(prefix, params)
        self._rate, self._axes = rate, axes

    def _alias(self) -> str:
        return "dropout"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """No states."""
        return []

    def hybrid_forward(self, F: Any, inputs: Any, states: States) -> tuple[Any, States]:
        """One step."""
        if self._rate > 0:
            inputs = F.npx.dropout(inputs, p=self._rate, axes=self._axes)
        return inputs, states

    def unroll(
        self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
        merge_outputs: bool | None = None, valid_length: Any = None,
    ) -> tuple[Any, States]:  # fmt: skip
        """Run over all steps, at once where they are one array."""
        self.reset()
        inputs = sequences.arranged(inputs, length, layout, merge_outputs)
        if isinstance(inputs, np.ndarray):
            return self(inputs, begin_state or [])
        return super().unroll(length, inputs, begin_state or [], layout, merge_outputs)


class ModifierCell(HybridRecurrentCell):
    """A cell that changes what another one, `base_cell`, does; it has that one's parameters."""

    def __init__(self, base_cell: RecurrentCell):
        if base_cell._modified:
            raise ArgumentError(
                f"Cell {base_cell.name} is already modified; apply modifiers to the modifier."
            )
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias())
        self.base_cell = base_cell

    @property
    def params(self) -> ParameterDict:
        """The parameters of the base cell."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state of the base cell."""
        return self.base_cell.state_info(batch_size)

    def begin_state(
        self, batch_size: int = 0, func: Callable[..., Any] = np.zeros, **kwargs: Any
    ) -> States:
        """The base cell's states before the first step."""
        self._check_unmodified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(batch_size=batch_size, func=func, **kwargs)
        finally:
            self.base_cell._modified = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell})"


class ZoneoutCell(ModifierCell):
    """In training, keeps elements of the step before with the given probabilities."""

    def __init__(
        self, base_cell: RecurrentCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0
    ):
        if isinstance(base_cell, BidirectionalCell):
            raise ArgumentError(
                "ZoneoutCell works step by step, and a BidirectionalCell needs the whole sequence. "
                "Put a ZoneoutCell around each of its two cells."
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self._prev_output: Any = None

    def _alias(self) -> str:
        return "zoneout"

    def __repr__(self) -> str:
        rates = f"p_out={self.zoneout_outputs}, p_state={self.zoneout_states}"
        return f"{type(self).__name__}({rates}, {self.base_cell})"

    def reset(self) -> None:
        """Forget the steps made; called before another sequence."""
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: States) -> tuple[Any, States]:
        """One step."""
        output, new = self.base_cell(inputs, states)
        before = F.np.zeros_like(output) if self._prev_output is None else self._prev_output
        output = _zoned(F, self.zoneout_outputs, output, before)
        new = [_zoned(F, self.zoneout_states, *pair) for pair in zip(new, states, strict=True)]
        self._prev_output = output
        return output, new


def _zoned(F: Any, rate: float, new: Any, old: Any) -> Any:
    """`old` in places that dropout chooses; `new` in the others, and outside training."""
    if not rate or not autograd.is_training():
        return new
    return F.np.where(F.npx.dropout(F.np.ones_like(new), p=rate) != 0, new, old)


class ResidualCell(ModifierCell):
    """Adds the input to the base cell's output."""

    def _alias(self) -> str:
        return "residualcell"

    def hybrid_forward(self, F: Any, inputs: Any, states: States) -> tuple[Any, States]:
        """One step."""
        output, states = self.base_cell(inputs, states)
        return output + inputs, states

    def unroll(
        self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
        merge_outputs: bool | None = None, valid_length: Any = None,
    ) -> tuple[Any, States]:  # fmt: skip
        """Run over `length` steps; see `RecurrentCell.unroll`."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(
                length, inputs, begin_state, layout, merge_outputs, valid_length
            )
        finally:
            self.base_cell._modified = True
        merge = isinstance(outputs, np.ndarray)
        added = sequences.arranged(inputs, length, layout, merge)
        if valid_length is not None:
            added = sequences.masked(added, length, valid_length, layout, merge)
        if merge:
            return outputs + added, states
        return [a + b for a, b in zip(outputs, added, strict=True)], states
