"""Attention with learnt projections, and the layer of transformers that is made of it."""

from __future__ import annotations

from typing import Any

from heterosis import npx
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.nn.basic import Dense, Dropout
from heterosis.gluon.nn.normalization import LayerNorm
from heterosis.runtime.errors import ArgumentError, ShapeError
from heterosis.runtime.kinds import Positive


class MultiHeadAttention(HybridBlock):
    """Attention of several heads between learnt projections of queries, keys and values.

    All are (batch, length, width); without keys, the queries attend to themselves, and without
    values, the keys are the values. The result has `units` columns. With `num_kv_heads`, several
    heads of queries share the keys and values of one. With `is_causal`, a query takes no later key.
    `dropout` is that of the weights, in training.
    """

    def __init__(
        self, units: Positive, num_heads: Positive, num_kv_heads: Positive | None = None,
        dropout: float = 0.0, use_bias: bool = True, is_causal: bool = False,
        dtype: Any = "float32", weight_initializer: Any = None, bias_initializer: Any = "zeros",
        **kwargs: Any,
    ):  # fmt: skip
        shared = num_heads if num_kv_heads is None else num_kv_heads
        if units % num_heads or num_heads % shared:
            raise ArgumentError(
                f"MultiHeadAttention: units={units}, num_heads={num_heads}, "
                f"num_kv_heads={num_kv_heads}; expected units to be a multiple of num_heads, and "
                "num_heads of num_kv_heads."
            )
        super().__init__(**kwargs)
        self._units, self._num_heads, self._num_kv_heads = units, num_heads, shared
        self._dropout, self._is_causal = dropout, is_causal

        def projection(heads: int, name: str) -> Dense:
            return Dense(
                heads * (units // num_heads), use_bias=use_bias, flatten=False, dtype=dtype,
                weight_initializer=weight_initializer, bias_initializer=bias_initializer,
                prefix=f"{name}_",
            )  # fmt: skip

        with self.name_scope():
            self.query = projection(num_heads, "query")
            self.key = projection(shared, "key")
            self.value = projection(shared, "value")
            self.out = projection(num_heads, "out")

    def forward(self, query: Any, key: Any = None, value: Any = None, attn_mask: Any = None) -> Any:
        """The attention of `query` to `key` and `value`.

        `attn_mask` broadcasts to (batch, heads, queries, keys): bool, true where a key counts, or
        floats, which are added to the scores. One of paddings, (batch, keys), is given as
        `mask[:, None, None, :]`.
        """
        key = query if key is None else key
        value = key if value is None else value
        found = npx.scaled_dot_product_attention(
            self._heads("query", self.query(query), self._num_heads),
            self._heads("key", self.key(key), self._num_kv_heads),
            self._heads("value", self.value(value), self._num_kv_heads),
            attn_mask,
            self._dropout,
            self._is_causal,
            enable_gqa=self._num_kv_heads != self._num_heads,
        )
        batch, _, length, _ = found.shape
        return self.out(found.swapaxes(1, 2).reshape(batch, length, self._units))

    def _heads(self, name: str, x: Any, heads: int) -> Any:
        """(batch, length, columns) as (batch, heads, length, width)."""
        if x.ndim != 3:
            raise ShapeError(
                f"MultiHeadAttention: {name} has {x.ndim} dimensions; expected 3: (batch, length, "
                "width)."
            )
        batch, length, columns = x.shape
        return x.reshape(batch, length, heads, columns // heads).swapaxes(1, 2)

    def __repr__(self) -> str:
        facts = [f"{self._units}", f"heads={self._num_heads}"]
        if self._num_kv_heads != self._num_heads:
            facts.append(f"kv_heads={self._num_kv_heads}")
        facts += [f"dropout={self._dropout}"] * bool(self._dropout) + ["causal"] * self._is_causal
        return f"{type(self).__name__}({', '.join(facts)})"


class TransformerEncoderLayer(HybridBlock):
    """Attention of a sequence to itself, then two dense layers at each place, each added to what it
    is given and normalised.

    `hidden_size` is the width between the dense layers. With `pre_norm`, what the two are given is
    normalised in place of what they result in. With `is_causal` it is the layer of a GPT.
    """

    def __init__(
        self, units: Positive, hidden_size: Positive, num_heads: Positive, dropout: float = 0.1,
        activation: str = "relu", pre_norm: bool = False, epsilon: float = 1e-5,
        use_bias: bool = True, is_causal: bool = False, num_kv_heads: Positive | None = None,
        dtype: Any = "float32", weight_initializer: Any = None, bias_initializer: Any = "zeros",
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._pre_norm = pre_norm
        how = {
            "use_bias": use_bias, "dtype": dtype, "weight_initializer": weight_initializer,
            "bias_initializer": bias_initializer,
        }  # fmt: skip
        with self.name_scope():
            self.attention = MultiHeadAttention(
                units, num_heads, num_kv_heads, dropout, is_causal=is_causal,
                prefix="attention_", **how,
            )  # fmt: skip
            self.widen = Dense(hidden_size, activation, flatten=False, prefix="widen_", **how)
            self.narrow = Dense(units, flatten=False, prefix="narrow_", **how)
            self.attention_norm = LayerNorm(epsilon=epsilon, prefix="attention_norm_")
            self.norm = LayerNorm(epsilon=epsilon, prefix="norm_")
            self.drop = Dropout(dropout)

    def forward(self, x: Any, attn_mask: Any = None) -> Any:
        """The layer's outputs, in the shape of `x`: (batch, length, units)."""
        if self._pre_norm:
            x = x + self._attended(self.attention_norm(x), attn_mask)
            return x + self._dense(self.norm(x))
        x = self.attention_norm(x + self._attended(x, attn_mask))
        return self.norm(x + self._dense(x))

    def _attended(self, x: Any, attn_mask: Any) -> Any:
        return self.drop(self.attention(x, attn_mask=attn_mask))

    def _dense(self, x: Any) -> Any:
        return self.drop(self.narrow(self.drop(self.widen(x))))
