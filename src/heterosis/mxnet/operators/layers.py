"""Operators of neural networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.elementwise import add_n
from heterosis.mxnet.operators.operator import operator
from heterosis.ops.nn import normalization
from heterosis.runtime.errors import ArgumentError, ShapeError
from heterosis.runtime.kinds import Positive


def _renamed(*pairs: tuple[str, str]) -> None:
    """Operators that are operations of `npx` under another name."""
    for name, operation in pairs:

        def run(*arguments: Any, _operation: str = operation, **keywords: Any) -> Any:
            return getattr(npx, _operation)(*arguments, **keywords)

        operator(name)(run)


_renamed(
    ("FullyConnected", "fully_connected"), ("Activation", "activation"), ("RNN", "rnn"),
    ("LeakyReLU", "leaky_relu"), ("Dropout", "dropout"), ("Embedding", "embedding"),
    ("BatchNorm", "batch_norm"), ("LayerNorm", "layer_norm"), ("softmax", "softmax"),
    ("log_softmax", "log_softmax"), ("Softmax", "softmax"), ("ROIPooling", "roi_pooling"),
)  # fmt: skip


def _without(keywords: dict[str, Any], *names: str) -> dict[str, Any]:
    """Keywords without those that only chose among MXNet's implementations."""
    return {k: v for k, v in keywords.items() if k not in names}


_TUNING = ("workspace", "cudnn_tune", "cudnn_off")


@operator("Convolution")
def convolution(data: Any, weight: Any, bias: Any = None, **options: Any) -> Any:
    """See `npx.convolution`."""
    return npx.convolution(data, weight, bias, **_without(options, *_TUNING))


@operator("Deconvolution")
def deconvolution(data: Any, weight: Any, bias: Any = None, **options: Any) -> Any:
    """See `npx.deconvolution`."""
    options.setdefault("no_bias", True)
    return npx.deconvolution(data, weight, bias, **_without(options, *_TUNING))


@operator("Pooling")
def pooling(data: Any, **options: Any) -> Any:
    """See `npx.pooling`."""
    return npx.pooling(data, **_without(options, *_TUNING))


@operator("InstanceNorm")
def instance_norm(data: Any, gamma: Any, beta: Any, eps: float = 1e-3) -> Any:
    """Each channel of each example scaled to mean 0 and variance 1, then scaled and shifted."""
    return normalization.instance_norm(data, gamma, beta, eps)


@operator("GroupNorm")
def group_norm(
    data: Any, gamma: Any, beta: Any, num_groups: int = 1, eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Any:  # fmt: skip
    """The channels of each group, of each example, scaled together, then scaled and shifted."""
    if output_mean_var:
        raise ArgumentError("GroupNorm: output_mean_var=True; compute them with F.moments.")
    return normalization.group_norm(data, gamma, beta, num_groups, eps)


@operator("softmin")
def softmin(data: Any, axis: int = -1, temperature: float | None = None) -> Any:
    """The softmax of `-data`."""
    return npx.softmax(-data, axis=axis, temperature=temperature)


@operator("SoftmaxActivation")
def softmax_activation(data: Any, mode: str = "instance") -> Any:
    """Softmax over the last axis, or over the channels (`mode='channel'`)."""
    return npx.softmax(data, axis=1 if mode == "channel" else -1)


@operator("softmax_cross_entropy")
def softmax_cross_entropy(data: Any, label: Any) -> Any:
    """The sum over examples of minus the logarithm of the label's probability."""
    return -np.sum(npx.pick(npx.log_softmax(data, axis=-1), label)).reshape(1)


_NORM_AXES = {"instance": lambda n: tuple(range(1, n)), "channel": lambda n: (1,),
              "spatial": lambda n: tuple(range(2, n))}  # fmt: skip


@operator("L2Normalization")
def l2_normalization(data: Any, eps: float = 1e-10, mode: str = "instance") -> Any:
    """Vectors scaled to length 1: whole examples, channels, or positions in a channel."""
    if mode not in _NORM_AXES:
        raise ArgumentError(f"L2Normalization: mode={mode!r}; expected {', '.join(_NORM_AXES)}.")
    squares = np.sum(np.square(data), axis=_NORM_AXES[mode](data.ndim), keepdims=True)
    return data / np.sqrt(squares + eps)


@operator("LRN")
def local_response_norm(
    data: Any, nsize: int, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0
) -> Any:
    """Elements divided by a power of the squares of `nsize` neighbouring channels."""
    half, channels = nsize // 2, data.shape[1]
    width = ((0, 0), (half, half), *((0, 0),) * (data.ndim - 2))
    squares = np.pad(np.square(data), width)
    total = sum(squares[:, i : i + channels] for i in range(nsize))
    return data * np.power(knorm + alpha / nsize * total, -beta)


@operator("UpSampling")
def up_sampling(
    *data: Any, scale: Positive, sample_type: str = "nearest", multi_input_mode: str = "concat",
    num_args: int | None = None, num_filter: int = 0, workspace: int = 512,
) -> Any:  # fmt: skip
    """Each pixel repeated in both directions, `scale` times in the first of `data`.

    Further images are enlarged to the size that the first gets, and joined as channels or, with
    `multi_input_mode="sum"`, added.
    """
    if sample_type != "nearest":
        raise ArgumentError(
            f"UpSampling: sample_type={sample_type!r}; expected 'nearest'. For bilinear sampling "
            "use Deconvolution with weights from init.Bilinear()."
        )
    if multi_input_mode not in ("concat", "sum"):
        raise ArgumentError(
            f"UpSampling: multi_input_mode={multi_input_mode!r}; expected 'concat' or 'sum'."
        )
    if scale < 1:
        raise ArgumentError(f"UpSampling: scale={scale}; expected at least 1.")
    height, width = (scale * n for n in data[0].shape[2:])
    enlarged = [_enlarged(x, height, width) for x in data]
    return add_n(*enlarged) if multi_input_mode == "sum" else np.concatenate(enlarged, axis=1)


def _enlarged(images: Any, height: int, width: int) -> Any:
    """Images of that size, each pixel repeated equally often."""
    old = images.shape[2:]
    if height % old[0] or width % old[1]:
        raise ShapeError(
            f"UpSampling: images of size {old} do not divide the size {(height, width)} that the "
            "first ones are enlarged to."
        )
    rows = np.repeat(images, height // old[0], axis=2)
    return np.repeat(rows, width // old[1], axis=3)


@operator("Crop")
def crop(
    *data: Any, offset: Sequence[int] = (0, 0), h_w: Sequence[int] = (0, 0),
    center_crop: bool = False, num_args: int | None = None,
) -> Any:  # fmt: skip
    """A part of images: as large as those of a second argument, or `h_w`."""
    x = data[0]
    height, width = data[1].shape[2:] if len(data) > 1 else h_w
    top, left = offset
    if center_crop:
        top, left = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
    return x[:, :, top : top + height, left : left + width]
