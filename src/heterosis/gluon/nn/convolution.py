"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.nn.activations import Activation
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.kinds import Natural, Positive

Sizes = int | Sequence[int]


def per_axis(layer: str, what: str, given: Sizes, count: int) -> tuple[int, ...]:
    """One number for each of `count` axes; a single number stands for all."""
    sizes = (given,) * count if isinstance(given, int) else tuple(given)
    if len(sizes) != count:
        raise ArgumentError(f"{layer}: {what}={given!r}; expected a number or {count} numbers.")
    return sizes


def check_layout(layer: str, layout: str, known: Sequence[str]) -> None:
    """Raise unless the layout is one of those the layer knows."""
    if layout not in known:
        raise ArgumentError(
            f"{layer}: layout={layout!r}; expected {' or '.join(map(repr, known))}."
        )


class _Convolution(HybridBlock):
    """What all convolutions share; a subclass says its number of axes, layouts and operation."""

    _layouts: tuple[str, ...] = ()
    _operation = "convolution"

    def __init__(
        self, channels: Positive, kernel_size: Sizes, strides: Sizes, padding: Sizes,
        dilation: Sizes, groups: Positive, layout: str, activation: str | None, use_bias: bool,
        weight_initializer: Any, bias_initializer: Any, in_channels: Natural,
        output_padding: Sizes | None = None, prefix: str | None = None,
        params: ParameterDict | None = None,
    ):  # fmt: skip
        super().__init__(prefix, params)
        name, count = type(self).__name__, len(self._layouts[0]) - 2
        check_layout(name, layout, self._layouts)
        self._channels, self._in_channels = channels, in_channels
        self._kwargs: dict[str, Any] = {
            "kernel": per_axis(name, "kernel_size", kernel_size, count),
            "stride": per_axis(name, "strides", strides, count),
            "dilate": per_axis(name, "dilation", dilation, count),
            "pad": per_axis(name, "padding", padding, count),
            "num_filter": channels, "num_group": groups, "no_bias": not use_bias, "layout": layout,
        }  # fmt: skip
        if output_padding is not None:
            self.outpad = per_axis(name, "output_padding", output_padding, count)
            self._kwargs["adj"] = self.outpad
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=self._weight_shape(), init=weight_initializer,
                allow_deferred_init=True,
            )  # fmt: skip
            self.bias: Any = None
            if use_bias:
                self.bias = self.params.get(
                    "bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True
                )
            self.act = Activation(activation, prefix=activation + "_") if activation else None

    def _weight_shape(self) -> tuple[int, ...]:
        """(outputs, inputs of a group, *kernel), the inputs where the layout has the channels."""
        inner = self._in_channels // self._kwargs["num_group"]
        shape = [self._channels, *self._kwargs["kernel"]]
        shape.insert(self._kwargs["layout"].index("C"), inner)
        return tuple(shape)

    def _alias(self) -> str:
        return "conv"

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """The layer's outputs."""
        y = getattr(F.npx, self._operation)(x, weight, bias, **self._kwargs)
        return y if self.act is None else self.act(y)

    def __repr__(self) -> str:
        outputs, inputs = self.weight.shape[:2]
        facts = self._kwargs
        text = f"{inputs} -> {outputs}, kernel_size={facts['kernel']}, stride={facts['stride']}"
        text += f", padding={facts['pad']}" if any(facts["pad"]) else ""
        text += f", dilation={facts['dilate']}" if set(facts["dilate"]) != {1} else ""
        text += f", groups={facts['num_group']}" if facts["num_group"] != 1 else ""
        text += ", bias=False" if self.bias is None else ""
        text += f", {self.act}" if self.act else ""
        return f"{type(self).__name__}({text})"


class _Transposed(_Convolution):
    """A convolution backwards: the gradient of one as an operation of its own."""

    _operation = "deconvolution"

    def _weight_shape(self) -> tuple[int, ...]:
        """(inputs, outputs of a group, *kernel), the outputs where the layout has the channels."""
        shape = [self._in_channels, *self._kwargs["kernel"]]
        inner = self._channels // self._kwargs["num_group"]
        shape.insert(self._kwargs["layout"].index("C"), inner)
        return tuple(shape)


class Conv1D(_Convolution):
    """A convolution over sequences (batch, channels, width)."""

    _layouts = ("NCW",)

    def __init__(
        self, channels: Positive, kernel_size: Sizes, strides: Sizes = 1,
        padding: Sizes = 0, dilation: Sizes = 1, groups: Positive = 1,
        layout: str = "NCW", activation: str | None = None, use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation,
            use_bias, weight_initializer, bias_initializer, in_channels, **kwargs,
        )  # fmt: skip


class Conv1DTranspose(_Transposed):
    """A transposed convolution over sequences (batch, channels, width).

    `strides` spread the input.
    """

    _layouts = ("NCW",)

    def __init__(
        self, channels: Positive, kernel_size: Sizes, strides: Sizes = 1,
        padding: Sizes = 0, output_padding: Sizes = 0, dilation: Sizes = 1, groups: Positive = 1,
        layout: str = "NCW", activation: str | None = None, use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation,
            use_bias, weight_initializer, bias_initializer, in_channels, output_padding, **kwargs,
        )  # fmt: skip


class Conv2D(_Convolution):
    """A convolution over images (batch, channels, height, width)."""

    _layouts = ("NCHW", "NHWC")

    def __init__(
        self, channels: Positive, kernel_size: Sizes, strides: Sizes = (1, 1),
        padding: Sizes = (0, 0), dilation: Sizes = (1, 1), groups: Positive = 1,
        layout: str = "NCHW", activation: str | None = None, use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation,
            use_bias, weight_initializer, bias_initializer, in_channels, **kwargs,
        )  # fmt: skip


class Conv2DTranspose(_Transposed):
    """A transposed convolution over images (batch, channels, height, width).

    `strides` spread the input.
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(
        self, channels: Positive, kernel_size: Sizes, strides: Sizes = (1, 1),
        padding: Sizes = (0, 0), output_padding: Sizes = (0, 0), dilation: Sizes = (1, 1),
        groups: Positive = 1, layout: str = "NCHW", activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation,
            use_bias, weight_initializer, bias_initializer, in_channels, output_padding, **kwargs,
        )  # fmt: skip


class Conv3D(_Convolution):
    """A convolution over volumes (batch, channels, depth, height, width)."""

    _layouts = ("NCDHW", "NDHWC")

    def __init__(
        self, channels: Positive, kernel_size: Sizes, strides: Sizes = (1, 1, 1),
        padding: Sizes = (0, 0, 0), dilation: Sizes = (1, 1, 1), groups: Positive = 1,
        layout: str = "NCDHW", activation: str | None = None, use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation,
            use_bias, weight_initializer, bias_initializer, in_channels, **kwargs,
        )  # fmt: skip


class Conv3DTranspose(_Transposed):
    """A transposed convolution over volumes (batch, channels, depth, height, width).

    `strides` spread the input.
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(
        self, channels: Positive, kernel_size: Sizes, strides: Sizes = (1, 1, 1),
        padding: Sizes = (0, 0, 0), output_padding: Sizes = (0, 0, 0),
        dilation: Sizes = (1, 1, 1), groups: Positive = 1, layout: str = "NCDHW",
        activation: str | None = None, use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation,
            use_bias, weight_initializer, bias_initializer, in_channels, output_padding, **kwargs,
        )  # fmt: skip
