"""Layers that carry a state from call to call."""

from __future__ import annotations

import math
from typing import Any

from heterosis import np, npx
from heterosis.models.onnx.operators.table import operator
from heterosis.runtime.errors import FormatError


@operator("TensorScatter", since=24)
def _tensor_scatter(
    past_cache: Any, update: Any, write_indices: Any = None,
    *, axis: int = -2, mode: str = "linear",
) -> Any:  # fmt: skip
    if mode not in ("linear", "circular"):
        raise FormatError(f"TensorScatter: mode={mode!r}; expected 'linear' or 'circular'.")
    axis %= past_cache.ndim
    length, count = past_cache.shape[axis], update.shape[axis]
    along = [1] * past_cache.ndim
    along[axis] = length
    place = np.reshape(np.arange(length, dtype="int64"), tuple(along))
    if write_indices is not None:
        of_batch = [1] * past_cache.ndim
        of_batch[0] = past_cache.shape[0]
        place = place - np.reshape(write_indices.astype("int64"), tuple(of_batch))
    place = np.mod(place, length) if mode == "circular" else place
    written = (place >= 0) & (place < count)
    index = np.broadcast_to(np.clip(place, 0, count - 1), past_cache.shape)
    return np.where(written, np.take_along_axis(update, index, axis), past_cache)


@operator("CausalConvWithState", since=27)
def _causal_conv_with_state(
    x: Any, weight: Any, bias: Any = None, past_state: Any = None, *, activation: str = "none"
) -> Any:
    if activation not in ("none", "silu", "swish"):
        raise FormatError(f"CausalConvWithState: activation={activation!r}.")
    channels, width = weight.shape[0], weight.shape[2]
    if past_state is None:
        wide = np.pad(x, ((0, 0), (0, 0), (width - 1, 0)))
    else:
        wide = np.concatenate([past_state, x], 2)
    y = npx.convolution(
        wide, weight, bias, kernel=(width,), num_filter=channels, num_group=channels,
        no_bias=bias is None,
    )  # fmt: skip
    y = y if activation == "none" else npx.silu(y)
    return y, wide[:, :, wide.shape[2] - (width - 1) :]


_RULES = ("linear", "gated", "delta", "gated_delta")


@operator("LinearAttention", since=27)
def _linear_attention(
    query: Any, key: Any, value: Any, past_state: Any = None, decay: Any = None, beta: Any = None,
    *, q_num_heads: int, kv_num_heads: int, chunk_size: int = 64, scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> Any:  # fmt: skip
    gated, corrected = "gated" in update_rule, "delta" in update_rule
    if update_rule not in _RULES or gated != (decay is not None) or corrected != (beta is not None):
        raise FormatError(
            f"LinearAttention: update_rule={update_rule!r}; expected one of {_RULES}, with decay "
            "where it is gated and beta where it has a delta, and not else."
        )
    dtype = str(query.dtype)
    batch, steps = query.shape[:2]

    def heads(x: Any, count: int) -> Any:
        """(steps, batch, heads, width), in float32."""
        apart = np.reshape(x.astype("float32"), (batch, steps, count, x.shape[2] // count))
        return np.transpose(apart, (1, 0, 2, 3))

    q, k, v = heads(query, q_num_heads), heads(key, kv_num_heads), heads(value, kv_num_heads)
    group = q_num_heads // kv_num_heads
    factor = scale or 1 / math.sqrt(q.shape[3])
    lines = [q, k, v]
    if gated:
        lines.append(np.exp(heads(decay, kv_num_heads)))
    if corrected:
        lines.append(heads(beta, beta.shape[2]))
    if past_state is None:
        kept, state = dtype, np.zeros((batch, kv_num_heads, k.shape[3], v.shape[3]))
    else:
        kept, state = str(past_state.dtype), past_state
    state = state.astype("float32")

    def turn(rows: Any, before: Any) -> tuple[Any, Any]:
        now, key_now, new, *more = rows
        state = before[0]
        if gated:
            state = state * np.expand_dims(more.pop(0), 3)
        line = np.expand_dims(key_now, 2)
        if corrected:
            new = more.pop(0) * (new - np.squeeze(np.matmul(line, state), 2))
        state = state + np.swapaxes(line, 2, 3) * np.expand_dims(new, 2)
        shared = np.repeat(state, group, 1) if group > 1 else state
        return np.squeeze(np.matmul(np.expand_dims(now, 2), shared), 2) * factor, [state]

    found, last = npx.foreach(turn, lines, [state])
    y = np.reshape(np.transpose(found, (1, 0, 2, 3)), (batch, steps, -1))
    return y.astype(dtype), last[0].astype(kept)
