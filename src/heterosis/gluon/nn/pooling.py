"""Pooling: the largest element or the mean of each window, or of each channel."""

from __future__ import annotations

from typing import Any

from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.nn.convolution import Sizes, check_layout, per_axis
from heterosis.runtime.errors import ArgumentError


class _Pooling(HybridBlock):
    """What all poolings share; a subclass says its layouts and what it does."""

    _layouts: tuple[str, ...] = ()
    _kind = "max"
    _global = False

    def __init__(
        self, pool_size: Sizes, strides: Sizes | None, padding: Sizes, ceil_mode: bool,
        layout: str, count_include_pad: bool | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        name, count = type(self).__name__, len(self._layouts[0]) - 2
        check_layout(name, layout, self._layouts)
        kernel = per_axis(name, "pool_size", pool_size, count)
        self._kwargs = {
            "kernel": kernel,
            "stride": kernel if strides is None else per_axis(name, "strides", strides, count),
            "pad": per_axis(name, "padding", padding, count),
            "global_pool": self._global, "pool_type": self._kind, "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }  # fmt: skip
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """One number for each window."""
        return F.npx.pooling(x, **self._kwargs)

    def __repr__(self) -> str:
        facts = self._kwargs
        return (
            f"{type(self).__name__}(size={facts['kernel']}, stride={facts['stride']}, "
            f"padding={facts['pad']}, ceil_mode={facts['pooling_convention'] == 'full'}, "
            f"global_pool={self._global}, pool_type={self._kind}, layout={facts['layout']})"
        )


class _GlobalPooling(_Pooling):
    """One number for each channel."""

    _global = True

    def __init__(self, layout: str, **kwargs: Any):
        super().__init__(1, None, 0, True, layout, **kwargs)


class MaxPool1D(_Pooling):
    """The largest element of each window of 1 dimension."""

    _layouts = ("NCW", "NWC")

    def __init__(
        self, pool_size: Sizes = 2, strides: Sizes | None = None, padding: Sizes = 0,
        layout: str = "NCW", ceil_mode: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **kwargs)


class MaxPool2D(_Pooling):
    """The largest element of each window of 2 dimensions."""

    _layouts = ("NCHW", "NHWC")

    def __init__(
        self, pool_size: Sizes = (2, 2), strides: Sizes | None = None, padding: Sizes = 0,
        layout: str = "NCHW", ceil_mode: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **kwargs)


class MaxPool3D(_Pooling):
    """The largest element of each window of 3 dimensions."""

    _layouts = ("NCDHW", "NDHWC")

    def __init__(
        self, pool_size: Sizes = (2, 2, 2), strides: Sizes | None = None, padding: Sizes = 0,
        ceil_mode: bool = False, layout: str = "NCDHW", **kwargs: Any,
    ):  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **kwargs)


class AvgPool1D(_Pooling):
    """The mean of each window of 1 dimension; padding counts if `count_include_pad`."""

    _layouts = ("NCW", "NWC")
    _kind = "avg"

    def __init__(
        self, pool_size: Sizes = 2, strides: Sizes | None = None, padding: Sizes = 0,
        layout: str = "NCW", ceil_mode: bool = False, count_include_pad: bool = True, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            pool_size, strides, padding, ceil_mode, layout, count_include_pad, **kwargs
        )


class AvgPool2D(_Pooling):
    """The mean of each window of 2 dimensions; padding counts if `count_include_pad`."""

    _layouts = ("NCHW", "NHWC")
    _kind = "avg"

    def __init__(
        self, pool_size: Sizes = (2, 2), strides: Sizes | None = None, padding: Sizes = 0,
        ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            pool_size, strides, padding, ceil_mode, layout, count_include_pad, **kwargs
        )


class AvgPool3D(_Pooling):
    """The mean of each window of 3 dimensions; padding counts if `count_include_pad`."""

    _layouts = ("NCDHW", "NDHWC")
    _kind = "avg"

    def __init__(
        self, pool_size: Sizes = (2, 2, 2), strides: Sizes | None = None, padding: Sizes = 0,
        ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            pool_size, strides, padding, ceil_mode, layout, count_include_pad, **kwargs
        )


class GlobalMaxPool1D(_GlobalPooling):
    """The largest element of each channel, over 1 dimension."""

    _layouts = ("NCW", "NWC")

    def __init__(self, layout: str = "NCW", **kwargs: Any):
        super().__init__(layout, **kwargs)


class GlobalMaxPool2D(_GlobalPooling):
    """The largest element of each channel, over 2 dimensions."""

    _layouts = ("NCHW", "NHWC")

    def __init__(self, layout: str = "NCHW", **kwargs: Any):
        super().__init__(layout, **kwargs)


class GlobalMaxPool3D(_GlobalPooling):
    """The largest element of each channel, over 3 dimensions."""

    _layouts = ("NCDHW", "NDHWC")

    def __init__(self, layout: str = "NCDHW", **kwargs: Any):
        super().__init__(layout, **kwargs)


class GlobalAvgPool1D(_GlobalPooling):
    """The mean of each channel, over 1 dimension."""

    _layouts = ("NCW", "NWC")
    _kind = "avg"

    def __init__(self, layout: str = "NCW", **kwargs: Any):
        super().__init__(layout, **kwargs)


class GlobalAvgPool2D(_GlobalPooling):
    """The mean of each channel, over 2 dimensions."""

    _layouts = ("NCHW", "NHWC")
    _kind = "avg"

    def __init__(self, layout: str = "NCHW", **kwargs: Any):
        super().__init__(layout, **kwargs)


class GlobalAvgPool3D(_GlobalPooling):
    """The mean of each channel, over 3 dimensions."""

    _layouts = ("NCDHW", "NDHWC")
    _kind = "avg"

    def __init__(self, layout: str = "NCDHW", **kwargs: Any):
        super().__init__(layout, **kwargs)


class ReflectionPad2D(HybridBlock):
    """Height and width made larger by the pixels mirrored at the borders."""

    def __init__(self, padding: int | tuple[int, ...] = 0, **kwargs: Any):
        super().__init__(**kwargs)
        if isinstance(padding, int):
            padding = (0, 0, 0, 0, padding, padding, padding, padding)
        if len(padding) != 8:
            raise ArgumentError(
                f"ReflectionPad2D: padding={padding}; expected a number, or 8 numbers: before and "
                "after, for each of the 4 axes."
            )
        self._padding = tuple(padding)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The padded images."""
        pairs = tuple(zip(self._padding[::2], self._padding[1::2], strict=True))
        return F.np.pad(x, pairs, mode="reflect")
