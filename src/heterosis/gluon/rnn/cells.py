"""Recurrent cells: one step of a recurrent network, and its unrolling over a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np
from heterosis.gluon.block import Block
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.rnn import sequences
from heterosis.gluon.utils import indented
from heterosis.runtime.errors import ArgumentError, UnsupportedError
from heterosis.runtime.kinds import Natural, Positive

States = list[np.ndarray]
_GATE_FUNCTIONS = ("tanh", "relu", "sigmoid", "softsign")


class RecurrentCell(Block):
    """One step of a recurrent network: `output, states = cell(input, states)`."""

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        super().__init__(prefix, params)
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Forget the steps made; called before another sequence."""
        self._counter = -1
        for cell in self._children.values():
            cell.reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        raise UnsupportedError(f"{type(self).__name__} defines no state_info(batch_size).")

    def begin_state(
        self, batch_size: int = 0, func: Callable[..., Any] = np.zeros, **kwargs: Any
    ) -> States:
        """The states before the first step, made by `func(shape=..., **kwargs)`."""
        self._check_unmodified()
        facts = list(self.state_info(batch_size))
        return [func(shape=info["shape"], **kwargs) for info in facts]

    def _check_unmodified(self) -> None:
        if self._modified:
            raise ArgumentError(
                f"{self.name}: a modifier such as ZoneoutCell is applied to this cell; call the "
                "modifier instead."
            )

    def _initial(self, begin_state: States | None, inputs: Any, layout: str) -> States:
        if begin_state is not None:
            return begin_state
        first = inputs if isinstance(inputs, np.ndarray) else inputs[0]
        return self.begin_state(sequences.batch_size(inputs, layout), dtype=first.dtype)

    def unroll(
        self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
        merge_outputs: bool | None = None, valid_length: Any = None,
    ) -> tuple[Any, States]:  # fmt: skip
        """Run over `length` steps: outputs of all steps, and the states after the last.

        `inputs` is one array laid out as `layout` says, or a list with one array a step. Outputs
        are one array if `merge_outputs`, else a list. With `valid_length`, each example ends at its
        own length: outputs behind it are 0.
        """
        self.reset()
        steps = sequences.split(inputs, length, layout)
        states = self._initial(begin_state, inputs, layout)
        outputs, history = [], []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
            history.append(states)
        if valid_length is None:
            return sequences.arranged(outputs, length, layout, merge_outputs), states
        whole = sequences.masked(outputs, length, valid_length, layout, True)
        states = sequences.last_states(history, valid_length)
        return sequences.arranged(whole, length, layout, merge_outputs), states

    def forward(self, inputs: Any, states: States) -> tuple[Any, States]:
        """One step."""
        self._counter += 1
        return super().forward(inputs, states)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """A recurrent cell whose step is a `hybrid_forward`."""

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """One step."""
        return HybridBlock.hybrid_forward(self, F, x, *args, **kwargs)


class _GatedCell(HybridRecurrentCell):
    """What the cells with weights share: `gates` blocks of rows in each weight."""

    _gates = 1
    _kind = "rnn"
    _state_count = 1

    def __init__(
        self, hidden_size: Positive, i2h_weight_initializer: Any, h2h_weight_initializer: Any,
        i2h_bias_initializer: Any, h2h_bias_initializer: Any, input_size: Natural,
        prefix: str | None, params: ParameterDict | None,
    ):  # fmt: skip
        super().__init__(prefix, params)
        self._hidden_size, self._input_size = hidden_size, input_size
        rows = self._gates * hidden_size
        shapes = {
            "i2h_weight": ((rows, input_size), i2h_weight_initializer),
            "h2h_weight": ((rows, hidden_size), h2h_weight_initializer),
            "i2h_bias": ((rows,), i2h_bias_initializer),
            "h2h_bias": ((rows,), h2h_bias_initializer),
        }
        for name, (shape, init) in shapes.items():
            parameter = self.params.get(name, shape=shape, init=init, allow_deferred_init=True)
            setattr(self, name, parameter)

    def _alias(self) -> str:
        return self._kind

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        shape = (batch_size, self._hidden_size)
        return [{"shape": shape, "__layout__": "NC"} for _ in range(self._state_count)]

    def _mapping(self) -> str:
        rows, inputs = self.i2h_weight.shape
        return f"{inputs} -> {rows}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._mapping()})"

    def _products(
        self, F: Any, inputs: Any, state: Any, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, Any]:  # fmt: skip
        """What the gates see of the input, and of the state."""
        rows = self._gates * self._hidden_size
        i2h = F.npx.fully_connected(inputs, i2h_weight, i2h_bias, num_hidden=rows)
        return i2h, F.npx.fully_connected(state, h2h_weight, h2h_bias, num_hidden=rows)


class RNNCell(_GatedCell):
    """`activation(W_i x + b_i + W_h h + b_h)`."""

    def __init__(
        self, hidden_size: Positive, activation: Any = "tanh", i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", input_size: Natural = 0, prefix: str | None = None,
        params: ParameterDict | None = None,
    ):  # fmt: skip
        super().__init__(
            hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer, input_size, prefix, params,
        )  # fmt: skip
        self._activation = activation

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._mapping()}, {self._activation})"

    def hybrid_forward(
        self, F: Any, inputs: Any, states: States, i2h_weight: Any, h2h_weight: Any,
        i2h_bias: Any, h2h_bias: Any,
    ) -> tuple[Any, States]:  # fmt: skip
        """One step."""
        i2h, h2h = self._products(F, inputs, states[0], i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        output = activate(F, i2h + h2h, self._activation)
        return output, [output]


class LSTMCell(_GatedCell):
    """The long short-term memory cell; its states are the output and the memory."""

    _gates, _kind, _state_count = 4, "lstm", 2

    def __init__(
        self, hidden_size: Positive, i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", input_size: Natural = 0, prefix: str | None = None,
        params: ParameterDict | None = None, activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
    ):  # fmt: skip
        super().__init__(
            hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer, input_size, prefix, params,
        )  # fmt: skip
        self._activation, self._recurrent_activation = activation, recurrent_activation

    def hybrid_forward(
        self, F: Any, inputs: Any, states: States, i2h_weight: Any, h2h_weight: Any,
        i2h_bias: Any, h2h_bias: Any,
    ) -> tuple[Any, States]:  # fmt: skip
        """One step."""
        i2h, h2h = self._products(F, inputs, states[0], i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        entering, kept, new, leaving = F.np.split(i2h + h2h, 4, axis=1)
        entering, kept, leaving = [
            activate(F, gate, self._recurrent_activation) for gate in (entering, kept, leaving)
        ]
        memory = kept * states[1] + entering * activate(F, new, self._activation)
        output = leaving * activate(F, memory, self._activation)
        return output, [output, memory]


class GRUCell(_GatedCell):
    """The gated recurrent unit."""

    _gates, _kind = 3, "gru"

    def __init__(
        self, hidden_size: Positive, i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", input_size: Natural = 0, prefix: str | None = None,
        params: ParameterDict | None = None,
    ):  # fmt: skip
        super().__init__(
            hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer, input_size, prefix, params,
        )  # fmt: skip

    def hybrid_forward(
        self, F: Any, inputs: Any, states: States, i2h_weight: Any, h2h_weight: Any,
        i2h_bias: Any, h2h_bias: Any,
    ) -> tuple[Any, States]:  # fmt: skip
        """One step."""
        before = states[0]
        i2h, h2h = self._products(F, inputs, before, i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h_reset, i2h_update, i2h_new = F.np.split(i2h, 3, axis=1)
        h2h_reset, h2h_update, h2h_new = F.np.split(h2h, 3, axis=1)
        reset = F.npx.sigmoid(i2h_reset + h2h_reset)
        update = F.npx.sigmoid(i2h_update + h2h_update)
        new = F.np.tanh(i2h_new + reset * h2h_new)
        output = (1 - update) * new + update * before
        return output, [output]


def activate(F: Any, x: Any, activation: Any) -> Any:
    """An activation given by name, or as a block or function."""
    return F.npx.activation(x, activation) if isinstance(activation, str) else activation(x)


class _CellSequence(RecurrentCell):
    """Cells one upon the other: each one's outputs are the next one's inputs."""

    def add(self, cell: RecurrentCell) -> None:
        """Put a cell on top."""
        self.register_child(cell)

    def __len__(self) -> int:
        return len(self._children)

    def __getitem__(self, i: int) -> RecurrentCell:
        return list(self._children.values())[i]

    def __repr__(self) -> str:
        lines = (f"({key}): {indented(repr(cell))}" for key, cell in self._children.items())
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state, from the lowest cell up."""
        return [info for c in self._children.values() for info in c.state_info(batch_size)]

    def begin_state(self, batch_size: int = 0, **kwargs: Any) -> States:
        """The states before the first step."""
        self._check_unmodified()
        cells = self._children.values()
        return [s for cell in cells for s in cell.begin_state(batch_size=batch_size, **kwargs)]

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        """One step of all cells."""
        self._counter += 1
        rest, new = list(states), []
        for cell in self._children.values():
            own, rest = _taken(cell, rest)
            inputs, own = cell(inputs, own)
            new += own
        return inputs, new

    def unroll(
        self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
        merge_outputs: bool | None = None, valid_length: Any = None,
    ) -> tuple[Any, States]:  # fmt: skip
        """Run over `length` steps, cell by cell; see `RecurrentCell.unroll`."""
        self.reset()
        rest, new = list(self._initial(begin_state, inputs, layout)), []
        top = len(self._children) - 1
        for i, cell in enumerate(self._children.values()):
            own, rest = _taken(cell, rest)
            merge = merge_outputs if i == top else None
            inputs, own = cell.unroll(length, inputs, own, layout, merge, valid_length)
            new += own
        return inputs, new


def _taken(cell: RecurrentCell, states: States) -> tuple[States, States]:
    """The first states, as many as the cell has, and the others."""
    count = len(cell.state_info())
    return states[:count], states[count:]


class SequentialRNNCell(_CellSequence):
    """Cells one upon the other."""


class HybridSequentialRNNCell(_CellSequence, HybridRecurrentCell):
    """Hybrid cells one upon the other."""

    def hybrid_forward(self, F: Any, inputs: Any, states: States) -> tuple[Any, States]:
        """One step of all cells."""
        return self(inputs, states)


class BidirectionalCell(HybridRecurrentCell):
    """A cell that runs forwards and one that runs backwards, their outputs side by side."""

    def __init__(self, l_cell: RecurrentCell, r_cell: RecurrentCell, output_prefix: str = "bi_"):
        super().__init__(prefix="")
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: States) -> tuple[Any, States]:
        """Raises: the backward cell needs the whole sequence."""
        raise UnsupportedError("BidirectionalCell cannot make one step; call unroll.")

    def __repr__(self) -> str:
        forward, backward = self._children.values()
        return f"{type(self).__name__}(forward={forward}, backward={backward})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state, the forward cell's first."""
        return [info for c in self._children.values() for info in c.state_info(batch_size)]

    def begin_state(self, batch_size: int = 0, **kwargs: Any) -> States:
        """The states before the first step, the forward cell's first."""
        self._check_unmodified()
        cells = self._children.values()
        return [s for cell in cells for s in cell.begin_state(batch_size=batch_size, **kwargs)]

    def unroll(
        self, length: int, inputs: Any, begin_state: States | None = None, layout: str = "NTC",
        merge_outputs: bool | None = None, valid_length: Any = None,
    ) -> tuple[Any, States]:  # fmt: skip
        """Run over `length` steps in both directions; see `RecurrentCell.unroll`."""
        self.reset()
        forward, backward = self._children.values()
        states = self._initial(begin_state, inputs, layout)
        own, others = _taken(forward, states)
        steps = sequences.split(inputs, length, layout)
        turned = sequences.backwards(steps, valid_length)
        left, left_states = forward.unroll(length, steps, own, layout, False, valid_length)
        right, right_states = backward.unroll(length, turned, others, layout, False, valid_length)
        outputs = [
            np.concatenate(pair, axis=1)
            for pair in zip(left, sequences.backwards(right, valid_length), strict=True)
        ]
        whole: Any = outputs
        if valid_length is not None:
            whole = sequences.masked(outputs, length, valid_length, layout, True)
        states = left_states + right_states
        return sequences.arranged(whole, length, layout, merge_outputs), states
