"""Layers whose work depends on the mode, and what needs values on the host."""

from __future__ import annotations

from typing import Any

from heterosis import _core
from heterosis.np.indexing import argwhere
from heterosis.np.inquiry import ndim
from heterosis.ops.nn import activations, attention, normalization
from heterosis.ops.nn import dropout as _random
from heterosis.ops.nn import rnn as recurrent
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, UnsupportedError


def dropout(
    data: Any, p: float = 0.5, mode: str = "training", axes: Any = (), cudnn_off: bool = False
) -> Any:
    """In training, `data` with elements set to 0, each with probability `p`, and the others scaled
    up so that the mean stays; else a copy. With `mode='always'`, in prediction as well. Along
    `axes` all elements share one fate."""
    if mode not in ("training", "always"):
        raise ArgumentError(f"dropout: mode={mode!r}; expected 'training' or 'always'.")
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout: p={p}; expected a probability, from 0 to 1.")
    shared = tuple(axes) if hasattr(axes, "__len__") else (axes,)
    if not p or (mode == "training" and not modes.is_training()):
        return _random.idle_dropout(data, float(p), shared)
    return _random.dropout(data, float(p), shared)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """`softmax(scale * query @ key.T) @ value` for (..., heads, length, width), one head at a time.

    `attn_mask` broadcasts to (..., heads, queries, keys). One of dtype bool is true where a key
    counts; floats, which `np.array` makes of a list without a dtype, are added to the scores. With
    `is_causal`, a query takes no later key, both counted from the first. A query to which nothing
    counts gets 0. `scale` is `1 / sqrt(width)` if none is given. With `enable_gqa`, each head of
    keys and values serves several consecutive ones of the queries. In training, weights are
    dropped with probability `dropout_p`.
    """
    if not 0 <= dropout_p <= 1:
        raise ArgumentError(
            f"scaled_dot_product_attention: dropout_p={dropout_p}; expected a probability, from 0 "
            "to 1."
        )
    factor = None if scale is None else float(scale)
    how = (bool(is_causal), factor, bool(enable_gqa))
    if not dropout_p or not modes.is_training():
        return attention.attention(query, key, value, attn_mask, *how)
    return attention.attention_with_dropout(query, key, value, attn_mask, float(dropout_p), *how)


def leaky_relu(
    data: Any,
    gamma: Any = None,
    act_type: str = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
) -> Any:
    """`data` where it is positive; below, what `act_type` says: 'leaky' and 'prelu' a line of
    `slope` or of slopes `gamma`, 'elu' and 'selu' an exponential curve, 'rrelu' a line with a slope
    between the bounds: random in training, else halfway. 'gelu' is smooth everywhere."""
    if act_type == "rrelu" and modes.is_training():
        return _random.random_leaky_relu(data, float(lower_bound), float(upper_bound))
    return activations.leaky_relu(data, gamma, act_type, slope, lower_bound, upper_bound)


def batch_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
) -> Any:
    """`data` with mean 0 and variance 1 for each place along `axis`, times `gamma` (1 if
    `fix_gamma`) plus `beta`.

    In training, mean and variance are the batch's, and `moving_mean` and `moving_var` are brought
    nearer to them, in place; in prediction, or with `use_global_stats`, they are the moving ones.
    With `output_mean_var`, the mean and `1 / sqrt(var + eps)` are returned too.
    """
    by_batch = modes.is_training() and not use_global_stats
    found = normalization.batch_norm(
        data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, use_global_stats,
        output_mean_var, axis, by_batch,
    )  # fmt: skip
    if not by_batch:
        return found
    mean, variance, *results = found
    with modes.switched(recording=False):
        normalization.moving_average(moving_mean, mean, float(momentum), out=moving_mean)
        normalization.moving_average(moving_var, variance, float(momentum), out=moving_var)
    return tuple(results) if output_mean_var else results[0]


def rnn(
    data: Any,
    parameters: Any,
    state: Any,
    state_cell: Any = None,
    sequence_length: Any = None,
    state_size: int = 0,
    num_layers: int = 1,
    bidirectional: bool = False,
    mode: str = "lstm",
    p: float = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
) -> Any:
    """Stacked recurrent layers over `data` (steps, batch, inputs): what the last layer gives at
    every step, and with `state_outputs` the last states of all layers.

    `mode` is 'rnn_relu', 'rnn_tanh', 'lstm' or 'gru'. `parameters` is one vector: for each layer
    and direction the weights of the inputs, those of the state, and those of the projection if
    there is one; then for each the two biases. `state` (and for 'lstm' `state_cell`) is
    (layers * directions, batch, units). In training, dropout by `p` between the layers.
    """
    clips = (lstm_state_clip_min, lstm_state_clip_max) != (None, None)
    if use_sequence_length or sequence_length is not None or clips:
        raise UnsupportedError(
            "rnn: sequence lengths and clipped states are not supported; mask the result with "
            "npx.sequence_mask, or unroll a cell."
        )
    if not 0 <= p <= 1:
        raise ArgumentError(f"rnn: p={p}; expected a probability, from 0 to 1.")
    shape = (mode, state_size, num_layers, bool(bidirectional), projection_size)
    drop = p if modes.is_training() and num_layers > 1 else 0.0
    if not drop and not modes.is_recording():
        mode, *sizes, projection_size = shape
        return recurrent.rnn(
            data, parameters, state, state_cell, *sizes, mode, projection_size, state_outputs,
            float(p),
        )  # fmt: skip
    # Layer by layer: each keeps what its gradient needs, and dropout draws its own numbers.
    found = recurrent.stacked(
        recurrent.described(*shape), data, parameters, state, state_cell, float(drop),
        keep=modes.is_recording(),
    )  # fmt: skip
    return tuple(found) if state_outputs else found[0]


def nonzero(a: Any) -> _core.ndarray:
    """The places of the elements that are not zero, one row of indices each; waits for `a`."""
    return argwhere(a if ndim(a) else a.reshape(1))


__all__ = [
    "batch_norm",
    "dropout",
    "leaky_relu",
    "nonzero",
    "rnn",
    "scaled_dot_product_attention",
]
