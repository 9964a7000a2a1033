"""Attention, and the rotation of what it compares by positions."""

from __future__ import annotations

import math
from typing import Any

from heterosis import np, npx
from heterosis.models.onnx.operators.table import operator
from heterosis.runtime.errors import FormatError, UnsupportedError

_DOUBLE = 11  # the number of float64 in files


def _heads(x: Any, count: int | None, name: str) -> Any:
    """(batch, length, heads * width) as (batch, heads, length, width)."""
    if x.ndim == 4:
        return x
    if not count:
        raise FormatError(f"Attention: {name} has 3 axes; its number of heads is missing.")
    batch, length, width = x.shape
    return np.transpose(np.reshape(x, (batch, length, count, width // count)), (0, 2, 1, 3))


def _repeated(x: Any, times: int) -> Any:
    """Each head so many times."""
    return x if times == 1 else np.repeat(x, times, 1)


@operator("Attention", since=23)
def _attention(
    q: Any, k: Any, v: Any, attn_mask: Any = None, past_key: Any = None, past_value: Any = None,
    nonpad_kv_seqlen: Any = None,
    *, is_causal: int = 0, kv_num_heads: int | None = None, q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0, scale: float | None = None, softcap: float = 0.0,
    softmax_precision: int | None = None, left_window_size: int = -1,
    right_window_size: int = -1, _outputs: int = 1,
) -> Any:  # fmt: skip
    flat, dtype = q.ndim == 3, str(q.dtype)
    query = _heads(q, q_num_heads, "Q")
    key, value = _heads(k, kv_num_heads, "K"), _heads(v, kv_num_heads, "V")
    past = 0
    if past_key is not None:
        past = past_key.shape[2]
        key, value = np.concatenate([past_key, key], 2), np.concatenate([past_value, value], 2)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    windows = (left_window_size, right_window_size)
    # Queries and keys that are both counted from the first are what ours do by themselves.
    ours = bool(is_causal) and past_key is None and nonpad_kv_seqlen is None and max(windows) < 0
    counted = _counted(query, key, past, nonpad_kv_seqlen, bool(is_causal) and not ours, *windows)
    mask = _with(_widened(attn_mask, key), counted)
    if softcap or _outputs > 3 or softmax_precision == _DOUBLE:
        if ours:
            mask = _with(mask, _counted(query, key, past, None, True, *windows))
        precise = "float64" if softmax_precision == _DOUBLE else dtype
        y, scores = _step_by_step(
            query, key, value, mask, scale, softcap, qk_matmul_output_mode, precise
        )
    else:
        y = npx.scaled_dot_product_attention(
            query, key, value, mask, is_causal=ours, scale=scale,
            enable_gqa=query.shape[1] != key.shape[1],
        )  # fmt: skip
        scores = None
    if flat:
        batch, _, length, _ = y.shape
        y = np.reshape(np.transpose(y, (0, 2, 1, 3)), (batch, length, -1))
    return (y, key, value, scores)[: max(_outputs, 1)] if _outputs > 1 else y


def _widened(mask: Any, key: Any) -> Any:
    """A mask that may be shorter than the keys: those that it does not tell of do not count."""
    if mask is None:
        return None
    mask = np.reshape(mask, (1, -1)) if mask.ndim == 1 else mask
    missing = key.shape[2] - mask.shape[-1]
    if missing == 0:
        return mask
    pads = ((0, 0),) * (mask.ndim - 1) + ((0, missing),)
    return np.pad(mask, pads, constant_values=False if str(mask.dtype) == "bool" else -math.inf)


def _with(mask: Any, counted: Any) -> Any:
    """A mask in which what is not counted does not count."""
    if mask is None or counted is None:
        return counted if mask is None else mask
    if str(mask.dtype) == "bool":
        return mask & counted
    return np.where(counted, mask, np.full_like(mask, -math.inf))


def _counted(
    query: Any, key: Any, past: Any, lengths: Any, is_causal: bool, left: int, right: int
) -> Any:
    """Which keys count for which queries, (..., queries, keys); None for all."""
    rows, columns = query.shape[2], key.shape[2]
    place = np.reshape(np.arange(columns, dtype="int64"), (1, columns))
    first = np.reshape(np.arange(rows, dtype="int64"), (rows, 1)) + past
    found = None
    if lengths is not None:
        ends = np.reshape(lengths.astype("int64"), (-1, 1, 1, 1))
        found = place < ends
        first = first + (ends - rows)  # the last query is at the last key that counts
    for limit in (
        place <= first if is_causal else None,
        place >= first - left if left >= 0 else None,
        place <= first + right if right >= 0 else None,
    ):
        if limit is not None:
            found = limit if found is None else found & limit
    return found


def _step_by_step(
    query: Any, key: Any, value: Any, mask: Any, scale: float, softcap: float, mode: int,
    precise: str,
) -> tuple[Any, Any]:  # fmt: skip
    """The result, and the scores at the step that `mode` asks for."""
    if mode not in range(4):
        raise UnsupportedError(f"Attention: qk_matmul_output_mode={mode}; expected 0, 1, 2 or 3.")
    times, dtype = query.shape[1] // key.shape[1], str(query.dtype)
    root = math.sqrt(scale)
    turned = np.swapaxes(_repeated(key, times), 2, 3)
    scores = np.matmul(query * root, turned * root)
    capped = np.tanh(scores / softcap) * softcap if softcap else scores
    masked = capped
    if mask is not None and str(mask.dtype) == "bool":
        masked = np.where(mask, masked, np.full_like(masked, -math.inf))
    elif mask is not None:
        masked = masked + mask
    # A row of which nothing counts has no weights at all.
    empty = np.max(masked, -1, keepdims=True) == -math.inf
    weights = np.where(empty, np.zeros_like(masked), masked).astype(precise)
    weights = npx.softmax(weights, axis=-1).astype(dtype)
    weights = np.where(empty, np.zeros_like(weights), weights)
    shown = (scores, capped, masked, weights)[mode]
    return np.matmul(weights, _repeated(value, times)), shown


@operator("RotaryEmbedding", since=23)
def _rotary_embedding(
    x: Any, cos_cache: Any, sin_cache: Any, position_ids: Any = None,
    *, interleaved: int = 0, num_heads: int | None = None, rotary_embedding_dim: int = 0,
) -> Any:  # fmt: skip
    flat = x.ndim == 3
    if flat:
        if not num_heads:
            raise FormatError("RotaryEmbedding: X has 3 axes; num_heads is missing.")
        batch, length, width = x.shape
        apart = np.reshape(x, (batch, length, num_heads, width // num_heads))
    else:
        apart = np.transpose(x, (0, 2, 1, 3))
    turned = rotary_embedding_dim or apart.shape[-1]
    cos, sin = cos_cache, sin_cache
    if position_ids is not None:
        cos, sin = (np.take(table, position_ids, 0) for table in (cos, sin))
    cos, sin = np.expand_dims(cos, 2), np.expand_dims(sin, 2)
    left, rest = apart[..., :turned], apart[..., turned:]
    if interleaved:
        a, b = left[..., 0::2], left[..., 1::2]
    else:
        a, b = left[..., : turned // 2], left[..., turned // 2 :]
    pair = a * cos - b * sin, a * sin + b * cos
    found = np.reshape(np.stack(pair, -1), left.shape) if interleaved else np.concatenate(pair, -1)
    if turned < apart.shape[-1]:
        found = np.concatenate([found, rest], -1)
    return np.reshape(found, x.shape) if flat else np.transpose(found, (0, 2, 1, 3))
