"""Dense, Dropout, Embedding and Flatten."""

from __future__ import annotations

from typing import Any

from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.nn.activations import Activation
from heterosis.runtime.kinds import Natural, Positive


class Dense(HybridBlock):
    """`activation(x @ weight.T + bias)`.

    With `flatten`, all dimensions of the input but the first are one; without, the last is used.
    `in_units` is found by the first forward pass if it is 0.
    """

    def __init__(
        self, units: Positive, activation: str | None = None, use_bias: bool = True,
        flatten: bool = True, dtype: Any = "float32", weight_initializer: Any = None,
        bias_initializer: Any = "zeros", in_units: Natural = 0, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._units, self._in_units, self._flatten = units, in_units, flatten
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, dtype=dtype,
                allow_deferred_init=True,
            )  # fmt: skip
            self.bias: Any = None
            if use_bias:
                self.bias = self.params.get(
                    "bias", shape=(units,), init=bias_initializer, dtype=dtype,
                    allow_deferred_init=True,
                )  # fmt: skip
            self.act = Activation(activation, prefix=activation + "_") if activation else None

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """The layer's outputs."""
        y = F.npx.fully_connected(x, weight, bias, self._units, bias is None, self._flatten)
        return y if self.act is None else self.act(y)

    def __repr__(self) -> str:
        units, inputs = self.weight.shape
        return f"{type(self).__name__}({inputs} -> {units}, {self.act or 'linear'})"


class Dropout(HybridBlock):
    """In training, sets each element to 0 with probability `rate` and scales the others up.

    Along `axes`, elements are dropped together.
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any):
        super().__init__(**kwargs)
        self._rate, self._axes = rate, axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The input with elements dropped, or, outside training, a copy."""
        if self._rate > 0:
            return F.npx.dropout(x, p=self._rate, axes=self._axes)
        return F.np.copy(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """A learnt vector of `output_dim` numbers for each of the integers below `input_dim`.

    Gradients are dense, with `sparse_grad` too.
    """

    def __init__(
        self, input_dim: Positive, output_dim: Positive, dtype: Any = "float32",
        weight_initializer: Any = None, sparse_grad: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._input_dim, self._output_dim, self._dtype = input_dim, output_dim, dtype
        self.weight = self.params.get(
            "weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
            allow_deferred_init=True, grad_stype="row_sparse" if sparse_grad else "default",
        )  # fmt: skip

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """The vectors of the integers in `x`, along a new last dimension."""
        return F.npx.embedding(x, weight, self._input_dim, self._output_dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._input_dim} -> {self._output_dim}, {self._dtype})"


class Flatten(HybridBlock):
    """All dimensions of the input but the first made one."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The input in two dimensions."""
        return F.npx.batch_flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__
