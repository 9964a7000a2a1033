"""The one parameter vector of a fused recurrent layer, filled part by part."""

from __future__ import annotations

from collections.abc import Iterator

from heterosis import _core
from heterosis.initializer.base import InitDesc, Initializer, create, register
from heterosis.runtime.errors import ArgumentError, ShapeError

_GATES = {
    "rnn_relu": ("",),
    "rnn_tanh": ("",),
    "lstm": ("_i", "_f", "_c", "_o"),
    "gru": ("_r", "_z", "_o"),
}


@register
class FusedRNN(Initializer):
    """Fills each gate's weights with `init`, and the forget gate's biases with `forget_bias`.

    Without `init`, the parts are filled by the initialiser that the whole was given to.
    """

    def __init__(
        self,
        init: Initializer | str | None,
        num_hidden: int,
        num_layers: int,
        mode: str,
        bidirectional: bool = False,
        forget_bias: float = 1.0,
    ):
        if mode not in _GATES:
            raise ArgumentError(f"FusedRNN: mode={mode!r}; expected one of {', '.join(_GATES)}.")
        init = None if init is None else create(init)
        super().__init__(
            init=None if init is None else init.dumps(),
            num_hidden=num_hidden,
            num_layers=num_layers,
            mode=mode,
            bidirectional=bidirectional,
            forget_bias=forget_bias,
        )
        self._init, self._mode, self._forget_bias = init, mode, forget_bias
        self._num_hidden, self._num_layers = num_hidden, num_layers
        self._directions = ("l", "r") if bidirectional else ("l",)

    def _init_weight(self, desc: str, arr: _core.ndarray) -> None:
        whole = getattr(desc, "global_init", None)
        init = self._init or whole
        if init is None or init is self:
            raise ArgumentError("FusedRNN: no initializer for the parts; give one as init.")
        for name, part in self._parts(desc, arr):
            if self._mode == "lstm" and name.endswith("_f_bias"):
                part[...] = self._forget_bias
            else:
                init(InitDesc(name, global_init=whole), part)

    def _parts(self, desc: str, arr: _core.ndarray) -> Iterator[tuple[str, _core.ndarray]]:
        """Views of the gates' weights, then of their biases, in the order of the vector."""
        flat = arr.reshape(-1)
        inputs = self._inputs(desc, arr.size)
        start = 0
        for name, shape in self._layout(inputs):
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            yield name, flat[start : start + count].reshape(shape)
            start += count

    def _layout(self, inputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        hidden = self._num_hidden
        for kind in ("weight", "bias"):
            for layer in range(self._num_layers):
                below = inputs if layer == 0 else hidden * len(self._directions)
                for direction in self._directions:
                    for source, width in (("i2h", below), ("h2h", hidden)):
                        for gate in _GATES[self._mode]:
                            shape = (hidden, width) if kind == "weight" else (hidden,)
                            yield f"{direction}{layer}_{source}{gate}_{kind}", shape

    def _inputs(self, desc: str, size: int) -> int:
        """The width of the layer's input, which follows from the length of the vector."""
        hidden, directions = self._num_hidden, len(self._directions)
        rows = hidden * directions * len(_GATES[self._mode])
        later = (self._num_layers - 1) * (hidden * directions + hidden + 2)
        inputs, rest = divmod(size, rows)
        inputs -= later + hidden + 2
        if rest or inputs < 1:
            raise ShapeError(
                f"FusedRNN: {size} numbers in {desc!r} do not make up {self._num_layers} layers of "
                f"{self._mode} with {hidden} hidden units."
            )
        return inputs
