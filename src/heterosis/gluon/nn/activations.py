"""Activations: functions of each element."""

from __future__ import annotations

from typing import Any

from heterosis import initializer
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.kinds import Natural


class Activation(HybridBlock):
    """What `npx.activation` computes: 'relu', 'sigmoid', 'tanh', 'gelu', 'silu' and others."""

    def __init__(self, activation: str, **kwargs: Any):
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.activation(x, self._act_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """`x` where it is positive, `alpha * x` elsewhere."""

    def __init__(self, alpha: float, **kwargs: Any):
        if alpha < 0:
            raise ArgumentError(f"LeakyReLU: alpha={alpha}; expected a slope of 0 or more.")
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.leaky_relu(x, act_type="leaky", slope=self._alpha)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """`x` where it is positive, `alpha * x` elsewhere, with a learnt `alpha` for each channel."""

    def __init__(self, alpha_initializer: Any = None, in_channels: Natural = 1, **kwargs: Any):
        super().__init__(**kwargs)
        init = initializer.Constant(0.25) if alpha_initializer is None else alpha_initializer
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=init)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        """The activation of each element."""
        return F.npx.leaky_relu(x, gamma=alpha, act_type="prelu")


class ELU(HybridBlock):
    """`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.leaky_relu(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The exponential unit that keeps mean 0 and variance 1 from layer to layer."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.leaky_relu(x, act_type="selu")


class GELU(HybridBlock):
    """`x` times the probability that a normal number is below it.

    `approximation` is how that is computed: 'erf', or 'tanh' for a formula that comes close to it.
    """

    def __init__(self, approximation: str = "erf", **kwargs: Any):
        if approximation not in ("erf", "tanh"):
            raise ArgumentError(f"GELU: approximation={approximation!r}; expected 'erf' or 'tanh'.")
        super().__init__(**kwargs)
        self._approximation = approximation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.gelu(x, self._approximation)


class Swish(HybridBlock):
    """`x * sigmoid(beta * x)`."""

    def __init__(self, beta: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return x * F.npx.sigmoid(self._beta * x)


class SiLU(HybridBlock):
    """`x * sigmoid(x)`: `Swish` whose `beta` is 1."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.silu(x)


class Softplus(HybridBlock):
    """`log(1 + exp(beta * x)) / beta`, a smooth version of what is positive."""

    def __init__(self, beta: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.softplus(x, self._beta)


class Mish(HybridBlock):
    """`x * tanh(log(1 + exp(x)))`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.mish(x)


class Hardswish(HybridBlock):
    """`x` times the line from 0 at -3 to 1 at 3: a cheap `SiLU`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.npx.hardswish(x)
