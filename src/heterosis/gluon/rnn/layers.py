"""Recurrent layers: whole sequences through stacks of recurrent cells in one operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from heterosis import np
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.parameter import Parameter
from heterosis.gluon.rnn import cells, modifiers
from heterosis.runtime.errors import ArgumentError, ShapeError, UnsupportedError
from heterosis.runtime.kinds import Natural, Positive

_MOST_LAYERS = 1024
_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
_FUSED_NAME = re.compile(r"([lr])(\d+)_(i2h|h2h|h2r)_(weight|bias)\Z")


class _RNNLayer(HybridBlock):
    """What RNN, LSTM and GRU share; parameters are named `l0_i2h_weight`, `r0_...` backwards."""

    def __init__(
        self, hidden_size: Positive, num_layers: Positive, layout: str, dropout: float,
        bidirectional: bool, input_size: Natural, initializers: dict[str, Any], mode: str,
        dtype: Any, projection_size: int | None = None, clip: dict[str, Any] | None = None,
        use_sequence_length: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        if use_sequence_length:
            raise self._refused_lengths("use_sequence_length=True")
        if layout not in ("TNC", "NTC") or mode not in _GATES:
            raise ArgumentError(
                f"{type(self).__name__}: layout={layout!r}, mode={mode!r}; expected layout 'TNC' "
                f"or 'NTC', and one of the modes {', '.join(_GATES)}."
            )
        if num_layers > _MOST_LAYERS:
            raise ArgumentError(
                f"{type(self).__name__}: num_layers={num_layers}; expected at most {_MOST_LAYERS}."
            )
        self._hidden_size, self._num_layers, self._layout = hidden_size, num_layers, layout
        self._dropout, self._input_size, self._mode, self._dtype = dropout, input_size, mode, dtype
        self._projection_size = projection_size or None
        self._clip = clip or {}
        self._directions = ("l", "r") if bidirectional else ("l",)
        self._gates, self._initializers = _GATES[mode], initializers
        for name, shape in self._shapes().items():
            init = initializers[name.split("_", 1)[1]]
            parameter = self.params.get(
                name, shape=shape, init=init, allow_deferred_init=True, dtype=dtype
            )
            setattr(self, name, parameter)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The parameters' shapes by name."""
        rows, inputs = self._gates * self._hidden_size, self._input_size
        width = self._projection_size or self._hidden_size
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(self._num_layers):
            for direction in self._directions:
                head = f"{direction}{layer}_"
                shapes[head + "i2h_weight"] = (rows, inputs)
                shapes[head + "h2h_weight"] = (rows, width)
                shapes[head + "i2h_bias"] = shapes[head + "h2h_bias"] = (rows,)
                if self._projection_size:
                    shapes[head + "h2r_weight"] = (width, self._hidden_size)
            inputs = width * len(self._directions)
        return shapes

    def __repr__(self) -> str:
        rows, inputs = self.l0_i2h_weight.shape
        text = f"{inputs} -> {rows // self._gates}, {self._layout}"
        text += f", num_layers={self._num_layers}" if self._num_layers != 1 else ""
        text += f", dropout={self._dropout}" if self._dropout else ""
        text += ", bidirectional" if self._directions[1:] else ""
        return f"{type(self).__name__}({text})"

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """In files, the parameters stand where they would stand in a stack of cells."""
        start = prefix + "." if prefix else ""
        return {start + self._unfused_name(name): p for name, p in self._reg_params.items()}

    def _unfused_name(self, name: str) -> str:
        direction, layer, group, kind = _FUSED_NAME.match(name).groups()
        cell = f"{direction}_cell." if self._directions[1:] else ""
        return f"_unfused.{layer}.{cell}{group}_{kind}"

    def cast(self, dtype: Any) -> None:
        """Convert parameters and states to another element type."""
        super().cast(dtype)
        self._dtype = dtype

    # -- states -----------------------------------------------------------------------------------

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape, layout and element type of each state."""
        count = self._num_layers * len(self._directions)
        widths = [self._projection_size or self._hidden_size]
        widths += [self._hidden_size] if self._mode == "lstm" else []
        return [
            {"shape": (count, batch_size, width), "__layout__": "LNC", "dtype": self._dtype}
            for width in widths
        ]

    def begin_state(
        self, batch_size: int = 0, func: Callable[..., Any] = np.zeros, **kwargs: Any
    ) -> list[Any]:
        """The states before the first step, made by `func(shape=..., dtype=..., **kwargs)`."""
        return [
            func(**{"shape": info["shape"], "dtype": info["dtype"], **kwargs})
            for info in self.state_info(batch_size)
        ]

    # -- running ----------------------------------------------------------------------------------

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None) -> Any:
        """Outputs of all steps; with `states` given, also the states after the last step."""
        if sequence_length is not None:
            raise self._refused_lengths("sequence_length is given")
        if states is None:
            return super().__call__(inputs)
        given = list(states) if isinstance(states, list | tuple) else [states]
        return super().__call__(inputs, given)

    def _refused_lengths(self, given: str) -> UnsupportedError:
        return UnsupportedError(
            f"{type(self).__name__}: {given}, and layers go through all steps of every sequence. "
            "Unroll a cell, which takes valid_length, such as rnn.LSTMCell(units).unroll(length, "
            "inputs, valid_length=lengths, merge_outputs=True); or use only the steps that count "
            "of what layers give."
        )

    def infer_shape(self, inputs: Any, *args: Any) -> None:
        """Complete the shapes of the first layer's weights from the inputs."""
        self._batch_of(inputs)  # raises unless there are three dimensions
        for direction in self._directions:
            weight = self._reg_params[f"{direction}0_i2h_weight"]
            weight.shape = (weight.shape[0], inputs.shape[2])

    def hybrid_forward(
        self, F: Any, inputs: Any, states: list[Any] | None = None, **parameters: Any
    ) -> Any:
        """Outputs of all steps; with `states` given, also the states after the last step. Without,
        the first ones are made here: they are part of the program of a hybridized layer."""
        batch, given = self._batch_of(inputs), states is not None
        if states is None:
            states = self.begin_state(batch, dtype=inputs.dtype)
        self._check_states(states, batch)
        x = F.np.swapaxes(inputs, 0, 1) if self._layout == "NTC" else inputs
        flat = F.np.concatenate([parameters[name].reshape(-1) for name in self._order()])
        outputs, *states = F.npx.rnn(
            x, flat, *states, mode=self._mode, state_size=self._hidden_size,
            num_layers=self._num_layers, bidirectional=len(self._directions) == 2,
            p=self._dropout, state_outputs=True, projection_size=self._projection_size,
            **self._clip,
        )  # fmt: skip
        outputs = F.np.swapaxes(outputs, 0, 1) if self._layout == "NTC" else outputs
        return (outputs, states) if given else outputs

    def _order(self) -> Iterator[str]:
        """The parameters' names in the order of the operation's one array: weights, then biases."""
        groups = ("i2h", "h2h", "h2r") if self._projection_size else ("i2h", "h2h")
        for kind in ("weight", "bias"):
            for layer in range(self._num_layers):
                for direction in self._directions:
                    for group in groups if kind == "weight" else groups[:2]:
                        yield f"{direction}{layer}_{group}_{kind}"

    def _batch_of(self, inputs: Any) -> int:
        """How many sequences there are."""
        if inputs.ndim != 3:
            raise ShapeError(
                f"{self.name}: inputs of shape {inputs.shape}; expected three dimensions, "
                f"{self._layout}."
            )
        batch: int = inputs.shape[self._layout.index("N")]
        return batch

    def _check_states(self, states: list[Any], batch: int) -> None:
        expected = [state["shape"] for state in self.state_info(batch)]
        given = [state.shape for state in states]
        if given != expected:
            raise ShapeError(
                f"{self.name}: states of shapes {given}; expected {expected}, as "
                "begin_state(batch_size) makes them."
            )

    def _unfuse(self) -> cells.HybridSequentialRNNCell:
        """A stack of cells with the same parameters."""
        if self._projection_size or self._clip:
            raise UnsupportedError(
                f"{self.name}: cells have no projection and no state clipping to unfuse to."
            )
        stack = cells.HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            inputs = self._input_size
            for layer in range(self._num_layers):
                pair = [self._cell(d, layer, inputs) for d in self._directions]
                stack.add(cells.BidirectionalCell(*pair) if pair[1:] else pair[0])
                if self._dropout > 0 and layer != self._num_layers - 1:
                    stack.add(modifiers.DropoutCell(self._dropout))
                inputs = self._hidden_size * len(self._directions)
        return stack

    def _cell(self, direction: str, layer: int, inputs: int) -> cells.RecurrentCell:
        facts = {f"{k}_initializer": v for k, v in self._initializers.items() if k[:3] != "h2r"}
        kind = {"lstm": cells.LSTMCell, "gru": cells.GRUCell}.get(self._mode, cells.RNNCell)
        if kind is cells.RNNCell:
            facts["activation"] = self._mode.removeprefix("rnn_")
        return kind(self._hidden_size, input_size=inputs, prefix=f"{direction}{layer}_", **facts)


def _by_parameter(i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any) -> dict[str, Any]:
    """Initialisers by the ends of parameters' names."""
    return {
        "i2h_weight": i2h_weight, "h2h_weight": h2h_weight, "i2h_bias": i2h_bias,
        "h2h_bias": h2h_bias,
    }  # fmt: skip


class RNN(_RNNLayer):
    """Layers of plain recurrent cells with 'relu' or 'tanh'."""

    def __init__(
        self, hidden_size: Positive, num_layers: Positive = 1, activation: str = "relu",
        layout: str = "TNC", dropout: float = 0, bidirectional: bool = False,
        i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros",
        input_size: Natural = 0, dtype: Any = "float32", **kwargs: Any,
    ):  # fmt: skip
        initializers = _by_parameter(
            i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer,
        )  # fmt: skip
        super().__init__(
            hidden_size, num_layers, layout, dropout, bidirectional, input_size, initializers,
            f"rnn_{activation}", dtype, **kwargs,
        )  # fmt: skip


class LSTM(_RNNLayer):
    """Layers of long short-term memory cells.

    `projection_size` makes outputs smaller; `state_clip_min` and `max` bound the memory.
    """

    def __init__(
        self, hidden_size: Positive, num_layers: Positive = 1, layout: str = "TNC",
        dropout: float = 0, bidirectional: bool = False, input_size: Natural = 0,
        i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros",
        projection_size: int | None = None, h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None, state_clip_max: float | None = None,
        state_clip_nan: bool = False, dtype: Any = "float32", **kwargs: Any,
    ):  # fmt: skip
        initializers = _by_parameter(
            i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer,
        )  # fmt: skip
        clip = {
            "lstm_state_clip_min": state_clip_min, "lstm_state_clip_max": state_clip_max,
            "lstm_state_clip_nan": state_clip_nan,
        }  # fmt: skip
        super().__init__(
            hidden_size, num_layers, layout, dropout, bidirectional, input_size,
            {**initializers, "h2r_weight": h2r_weight_initializer}, "lstm", dtype,
            projection_size, clip if any(v not in (None, False) for v in clip.values()) else None,
            **kwargs,
        )  # fmt: skip


class GRU(_RNNLayer):
    """Layers of gated recurrent units."""

    def __init__(
        self, hidden_size: Positive, num_layers: Positive = 1, layout: str = "TNC",
        dropout: float = 0, bidirectional: bool = False, input_size: Natural = 0,
        i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros",
        dtype: Any = "float32", **kwargs: Any,
    ):  # fmt: skip
        initializers = _by_parameter(
            i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
            h2h_bias_initializer,
        )  # fmt: skip
        super().__init__(
            hidden_size, num_layers, layout, dropout, bidirectional, input_size, initializers,
            "gru", dtype, **kwargs,
        )  # fmt: skip
