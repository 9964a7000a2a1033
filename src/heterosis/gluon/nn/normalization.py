"""Layers that normalise their inputs."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.runtime.kinds import Natural, Positive


class _Normalization(HybridBlock):
    """What the layers share: a learnt scale `gamma` and shift `beta`, and how they are printed."""

    _facts: dict[str, Any]

    def _add_scale_and_shift(
        self, size: int, center: bool, scale: bool, beta_init: Any, gamma_init: Any,
        frozen: bool = False,
    ) -> None:  # fmt: skip
        for name, learnt, init in (("gamma", scale, gamma_init), ("beta", center, beta_init)):
            parameter = self.params.get(
                name, grad_req="write" if learnt else "null", shape=(size,), init=init,
                allow_deferred_init=True, differentiable=learnt or not frozen,
            )  # fmt: skip
            setattr(self, name, parameter)

    def __repr__(self) -> str:
        facts = ", ".join(f"{key}={value!r}" for key, value in self._facts.items())
        return f"{type(self).__name__}({facts}, in_channels={self.gamma.shape[0]})"


class BatchNorm(_Normalization):
    """Each channel (of `axis`) scaled to mean 0 and variance 1 over the batch.

    In training the batch's own mean and variance are used, and averaged into `running_mean` and
    `running_var`, which are used otherwise, or always with `use_global_stats`.
    """

    def __init__(
        self, axis: int = 1, momentum: float = 0.9, epsilon: float = 1e-5, center: bool = True,
        scale: bool = True, use_global_stats: bool = False, beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones", running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones", in_channels: Natural = 0, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._facts = {
            "axis": axis, "eps": epsilon, "momentum": momentum, "fix_gamma": not scale,
            "use_global_stats": use_global_stats,
        }  # fmt: skip
        self.in_channels = in_channels
        # What is not learnt stays so, even if `grad_req` is set for all parameters.
        self._add_scale_and_shift(
            in_channels, center, scale, beta_initializer, gamma_initializer, frozen=True
        )
        self.running_mean = self._statistic("running_mean", in_channels, running_mean_initializer)
        self.running_var = self._statistic("running_var", in_channels, running_variance_initializer)

    def _statistic(self, name: str, size: int, init: Any) -> Any:
        return self.params.get(
            name, grad_req="null", shape=(size,), init=init, allow_deferred_init=True,
            differentiable=False,
        )  # fmt: skip

    def cast(self, dtype: Any) -> None:
        """Convert to another element type; statistics and scale are float32 at least."""
        super().cast("float32" if numpy.dtype(dtype).name == "float16" else dtype)

    def hybrid_forward(
        self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any
    ) -> Any:
        """The normalised input."""
        return F.npx.batch_norm(x, gamma, beta, running_mean, running_var, **self._facts)


class BatchNormReLU(BatchNorm):
    """Batch normalisation, and 0 where the result is negative."""

    def hybrid_forward(
        self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any
    ) -> Any:
        """The normalised input, where it is positive."""
        y = super().hybrid_forward(F, x, gamma, beta, running_mean, running_var)
        return F.npx.relu(y)


class InstanceNorm(_Normalization):
    """Each channel (of `axis`) of each example scaled to mean 0 and variance 1."""

    def __init__(
        self, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = False,
        beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._axis, self._epsilon = axis, epsilon
        self._facts = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._add_scale_and_shift(in_channels, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """The normalised input."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, eps=self._epsilon)
        moved = F.np.swapaxes(x, 1, self._axis)
        return F.np.swapaxes(F.InstanceNorm(moved, gamma, beta, eps=self._epsilon), 1, self._axis)


class LayerNorm(_Normalization):
    """The vectors along `axis` scaled to mean 0 and variance 1."""

    def __init__(
        self, axis: int = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
        beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", in_channels: Natural = 0,
        prefix: str | None = None, params: ParameterDict | None = None,
    ):  # fmt: skip
        super().__init__(prefix, params)
        self._axis, self._epsilon = axis, epsilon
        self._facts = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._add_scale_and_shift(in_channels, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """The normalised input."""
        return F.npx.layer_norm(data, gamma, beta, axis=self._axis, eps=self._epsilon)


class RMSNorm(HybridBlock):
    """The vectors along `axis` scaled to a mean square of 1, times a learnt `gamma`."""

    def __init__(
        self, axis: int = -1, epsilon: float = 1e-6, scale: bool = True,
        gamma_initializer: Any = "ones", in_channels: Natural = 0, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._axis, self._epsilon = axis, epsilon
        self.gamma: Any = None
        if scale:
            self.gamma = self.params.get(
                "gamma", shape=(in_channels,), init=gamma_initializer, allow_deferred_init=True
            )

    def hybrid_forward(self, F: Any, data: Any, gamma: Any = None) -> Any:
        """The normalised input."""
        return F.npx.rms_norm(data, gamma, axis=self._axis, eps=self._epsilon)

    def __repr__(self) -> str:
        size = "" if self.gamma is None else f", in_channels={self.gamma.shape[0]}"
        return f"{type(self).__name__}(eps={self._epsilon}, axis={self._axis}{size})"


class GroupNorm(_Normalization):
    """The channels of each of `num_groups` groups, of each example, scaled together."""

    def __init__(
        self, num_groups: Positive = 1, epsilon: float = 1e-5, center: bool = True,
        scale: bool = True, beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
        prefix: str | None = None, params: ParameterDict | None = None,
    ):  # fmt: skip
        super().__init__(prefix, params)
        self._num_groups, self._epsilon = num_groups, epsilon
        self._facts = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._add_scale_and_shift(num_groups, center, scale, beta_initializer, gamma_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """The normalised input."""
        return F.GroupNorm(data, gamma, beta, num_groups=self._num_groups, eps=self._epsilon)

    def __repr__(self) -> str:
        facts = ", ".join(f"{key}={value!r}" for key, value in self._facts.items())
        return f"{type(self).__name__}({facts})"
