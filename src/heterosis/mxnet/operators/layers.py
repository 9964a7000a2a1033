"""Operators of neural networks."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.creation import of_any_batch
from heterosis.mxnet.operators.table import IDLE, Attributes, operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, plain, writes
from heterosis.ops.nn import normalization
from heterosis.runtime.errors import ArgumentError


def _of_npx(name: str, operation: str, **facts: Any) -> Any:
    """The operator that is an operation of `npx` under another name."""

    def run(*arguments: Any, **keywords: Any) -> Any:
        return getattr(npx, operation)(*arguments, **keywords)

    return operator(name, **facts)(run)


def _without_idle(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords without those that only chose among MXNet's implementations."""
    return {k: v for k, v in keywords.items() if k not in IDLE}


def _with_bias(attributes: Attributes) -> bool:
    return not attributes.get("no_bias", False)


# -- linear ---------------------------------------------------------------------------------------

_of_npx("FullyConnected", "fully_connected", is_layer=True, wanted={"bias": _with_bias})


@writes("fully_connected")
def _write_fully_connected(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, num_hidden=a["weight"].shape[0])


@operator("Convolution", is_layer=True, wanted={"bias": _with_bias})
def convolution(data: Any, weight: Any, bias: Any = None, **options: Any) -> Any:
    """See `npx.convolution`."""
    return npx.convolution(data, weight, bias, **_without_idle(options))


stored("Convolution_v1")(convolution)


@operator("Deconvolution", is_layer=True, wanted={"bias": lambda a: not a.get("no_bias", True)})
def deconvolution(data: Any, weight: Any, bias: Any = None, **options: Any) -> Any:
    """See `npx.deconvolution`."""
    options.setdefault("no_bias", True)
    return npx.deconvolution(data, weight, bias, **_without_idle(options))


@writes("convolution", "deconvolution")
def _write_convolution(writer: Writer, a: Arguments) -> Made:
    layout = a["layout"] or "NC"
    return plain(writer, a, num_filter=a.results[0].shape[layout.index("C")])


_embedding = _of_npx("Embedding", "embedding", is_layer=True)
stored("_contrib_SparseEmbedding")(_embedding)


@writes("embedding")
def _write_embedding(writer: Writer, a: Arguments) -> Made:
    count, width = a["weight"].shape
    return plain(writer, a, input_dim=count, output_dim=width, dtype=a["weight"].dtype)


# -- recurrent ------------------------------------------------------------------------------------


def _states(attributes: Attributes) -> int:
    if not attributes.get("state_outputs"):
        return 1
    return 3 if attributes.get("mode") == "lstm" else 2


_of_npx(
    "RNN", "rnn",
    results=_states, is_layer=True, wanted={"state_cell": lambda a: a.get("mode") == "lstm"},
)  # fmt: skip


@writes("rnn")
def _write_rnn(writer: Writer, a: Arguments) -> Made:
    for state in ("state", "state_cell"):
        if a[state] is not None:
            writer.entries[a[state]] = of_any_batch(writer.entry(a[state]))
    return plain(writer, a)


# -- activations, dropout, pooling ----------------------------------------------------------------

_ACTIVATIONS = ("relu", "sigmoid", "softrelu", "softsign", "tanh")  # what MXNet knows
_of_npx("Activation", "activation")


@writes("activation")
def _write_activation(writer: Writer, a: Arguments) -> Made:
    if a["act_type"] in _ACTIVATIONS:
        return plain(writer, a)
    return _gelu(writer, a) if a["act_type"] == "gelu" else None


@writes("gelu")
def _write_gelu(writer: Writer, a: Arguments) -> Made:
    return _gelu(writer, a) if a["approximation"] == "erf" else None


def _gelu(writer: Writer, a: Arguments) -> Made:
    return writer.single("LeakyReLU", a, a["data"], act_type="gelu")


_of_npx(
    "LeakyReLU", "leaky_relu",
    is_layer=True, wanted={"gamma": lambda a: a.get("act_type") == "prelu"},
)  # fmt: skip
_of_npx("softmax", "softmax", method=True)
_of_npx("log_softmax", "log_softmax", method=True)


@operator("softmin", method=True)
def softmin(data: Any, axis: int = -1, temperature: float | None = None) -> Any:
    """The softmax of `-data`."""
    return npx.softmax(-data, axis=axis, temperature=temperature)


@operator("SoftmaxActivation")
def softmax_activation(data: Any, mode: str = "instance") -> Any:
    """Softmax over the last axis, or over the channels (`mode='channel'`)."""
    return npx.softmax(data, axis=1 if mode == "channel" else -1)


@operator("softmax_cross_entropy")
def softmax_cross_entropy(data: Any, label: Any) -> Any:
    """The sum over examples of minus the logarithm of the label's probability.

    A label that is no class counts as the nearest one, as `pick` has it.
    """
    return -np.sum(npx.pick(npx.log_softmax(data, axis=-1), label)).reshape(1)


_of_npx("Dropout", "dropout", counted=2)


@writes("dropout")
def _write_dropout(writer: Writer, a: Arguments) -> Made:
    # A program is written as it predicts: what draws numbers there, always does.
    return plain(writer, a, mode="always")


@operator("Pooling", counted=lambda texts: 2 if texts.get("pool_type", "max") == "max" else 1)
def pooling(data: Any, **options: Any) -> Any:
    """See `npx.pooling`."""
    return npx.pooling(data, **_without_idle(options))


stored("Pooling_v1")(pooling)


# -- normalization --------------------------------------------------------------------------------


def _statistics(attributes: Attributes) -> int:
    return 3 if attributes.get("output_mean_var") else 1


_MOVING = (3, 4)  # the places of the moving mean and variance

_batch_norm = _of_npx(
    "BatchNorm", "batch_norm",
    results=_statistics, counted=3, states=_MOVING, is_layer=True, renamed={"training": None},
)  # fmt: skip
stored("BatchNorm_v1", results=_statistics, counted=3, states=_MOVING)(_batch_norm)


@stored("_contrib_SyncBatchNorm", states=_MOVING)
def _sync_batch_norm(*arrays: Any, key: Any = None, ndev: int = 1, **attributes: Any) -> Any:
    return _batch_norm(*arrays, **attributes)


@stored("_contrib_BatchNormWithReLU", states=_MOVING)
def _batch_norm_relu(*arrays: Any, **attributes: Any) -> Any:
    return npx.relu(npx.batch_norm(*arrays, **attributes))


@writes("batch_norm")
def _write_batch_norm(writer: Writer, a: Arguments) -> Made:
    # MXNet's operator returns other results in training, and writes to its operands.
    return None if a["training"] and not a["use_global_stats"] else plain(writer, a)


_of_npx("LayerNorm", "layer_norm", results=_statistics, counted=3, is_layer=True)


@operator("InstanceNorm", counted=3, is_layer=True)
def instance_norm(data: Any, gamma: Any, beta: Any, eps: float = 1e-3) -> Any:
    """Each channel of each example scaled to mean 0 and variance 1, then scaled and shifted."""
    return normalization.instance_norm(data, gamma, beta, eps)


@operator("GroupNorm", results=_statistics, counted=3, is_layer=True)
def group_norm(
    data: Any, gamma: Any, beta: Any, num_groups: int = 1, eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Any:  # fmt: skip
    """The channels of each group, of each example, scaled together, then scaled and shifted."""
    if output_mean_var:
        raise ArgumentError("GroupNorm: output_mean_var=True; compute them with F.moments.")
    return normalization.group_norm(data, gamma, beta, num_groups, eps)


_NORM_AXES = {"instance": lambda n: tuple(range(1, n)), "channel": lambda n: (1,),
              "spatial": lambda n: tuple(range(2, n))}  # fmt: skip


@operator("L2Normalization", counted=2)
def l2_normalization(data: Any, eps: float = 1e-10, mode: str = "instance") -> Any:
    """Vectors scaled to length 1: whole examples, channels, or positions in a channel."""
    if mode not in _NORM_AXES:
        raise ArgumentError(f"L2Normalization: mode={mode!r}; expected {', '.join(_NORM_AXES)}.")
    squares = np.sum(np.square(data), axis=_NORM_AXES[mode](data.ndim), keepdims=True)
    return data / np.sqrt(squares + eps)


@operator("LRN", counted=2)
def local_response_norm(
    data: Any, nsize: int, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2.0
) -> Any:
    """Elements divided by a power of the squares of `nsize` neighbouring channels."""
    half, channels = nsize // 2, data.shape[1]
    width = ((0, 0), (half, half), *((0, 0),) * (data.ndim - 2))
    squares = np.pad(np.square(data), width)
    total = sum(squares[:, i : i + channels] for i in range(nsize))
    return data * np.power(knorm + alpha / nsize * total, -beta)
