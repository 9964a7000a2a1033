"""Attention: means of values, weighted by how well their keys answer to queries.

The scores, their softmax and the sum of values are two products and a nest between them. Behind
each other, the native back end makes them one kernel that holds no more than a band of the scores.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant, extent
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import FLOATS, is_float
from heterosis.ops.array.join import concatenate, stack
from heterosis.ops.linalg.matmul import product
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.nn.dropout import dropped
from heterosis.ops.nn.softmax import masked_softmax, softmax
from heterosis.ops.record import Key, default, operation
from heterosis.ops.rules import broadcast_shapes, cast, floating, iota, result_type, wide
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

_NETWORK = ("npx",)
_NAME = "scaled_dot_product_attention"


# -- attention ------------------------------------------------------------------------------------


def _reference(
    query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: Any = False,
    scale: Any = None, enable_gqa: Any = False,
) -> Any:  # fmt: skip
    if enable_gqa:
        key, value = (numpy.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ numpy.swapaxes(key, -1, -2) * (scale or query.shape[-1] ** -0.5)
    if is_causal:
        scores = numpy.where(numpy.tril(numpy.ones(scores.shape[-2:], bool)), scores, -numpy.inf)
    if attn_mask is not None and attn_mask.dtype == bool:
        scores = numpy.where(attn_mask, scores, -numpy.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    largest = scores.max(-1, keepdims=True, initial=-numpy.inf)
    exponents = numpy.exp(scores - numpy.where(numpy.isinf(largest), 0, largest))
    total = exponents.sum(-1, keepdims=True)
    return exponents / numpy.where(total == 0, 1, total) @ value


_HEADS = ((2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 7, 6))
_GROUPED = ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8))


@operation(
    numpy=_reference,
    public=(),
    samples=Samples(
        (
            Case(((5, 8), (7, 8), (7, 8))),
            Case(_HEADS),
            Case(_HEADS, {"is_causal": True, "scale": 0.5}),
            Case((*_HEADS, (5, 7))),
            Case((*_HEADS, (2, 1, 1, 7)), {"is_causal": True}),
            Case(_GROUPED, {"enable_gqa": True}),
            Case((*_GROUPED, (4, 1, 7)), {"enable_gqa": True}),
            Case((*_GROUPED, (5, 7)), {"enable_gqa": True, "is_causal": True}),
            Case(((2, 0, 8), (2, 7, 8), (2, 7, 8))),
        ),
        (-2, 2),
        FLOATS,
        ulps=32,
        absolute=64,
    ),
)
def attention(
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """What `npx.scaled_dot_product_attention` gives, without dropout."""
    parts = _Parts(query, key, value, enable_gqa)
    masked = None if attn_mask is None else attn_mask.shape
    blocks = _blocks(query.shape, key.shape[-2], masked) if is_causal else []
    if not blocks:
        return parts.mixed(parts.weights(attn_mask, is_causal, scale))
    found = []
    for begin, end in blocks:
        known = min(end, key.shape[-2])
        taken = _cut(query, -2, begin, end), _cut(key, -2, 0, known), _cut(value, -2, 0, known)
        mask = attn_mask
        if mask is not None:
            mask = _cut(_cut(mask, -2, begin, end), -1, 0, known)
        parts = _Parts(*taken, enable_gqa)
        found.append(parts.mixed(parts.weights(mask, is_causal, scale, begin)))
    return concatenate(found, axis=-2)


# Of a long causal sequence, so many blocks of queries at most, of so many rows at least, are each
# multiplied by the keys that the last of them takes and no others: eight leave out nearly a half.
# For shorter sequences, their gradients cost more to add up than that saves.
_MOST_BLOCKS, _FEWEST_ROWS, _LONG = 8, 64, 256


def _blocks(
    query: tuple[int, ...], keys: int, mask: tuple[int, ...] | None
) -> list[tuple[int, int]]:
    """Where blocks of queries begin and end. There are none where extents are open, or where a mask
    of that shape does not fit, which is raised for the whole."""
    *lead, rows, _ = query
    if is_traced(rows) or is_traced(keys) or rows < _LONG:
        return []
    if mask is not None and not _fits(mask, (*lead, rows, keys)):
        return []
    block = -(-rows // min(_MOST_BLOCKS, rows // _FEWEST_ROWS))
    return [(begin, min(begin + block, rows)) for begin in range(0, rows, block)]


def _fits(mask: tuple[int, ...], scores: tuple[int, ...]) -> bool:
    if any(map(is_traced, (*mask, *scores))) or not 2 <= len(mask) <= len(scores):
        return False
    return all(n in (1, m) for n, m in zip(reversed(mask), reversed(scores), strict=False))


def _cut(x: Value, axis: int, begin: int, end: int) -> Value:
    """From `begin` to `end` along an axis, unless it is repeated along it."""
    extent = x.shape[axis]
    if extent == 1 or (begin, end) == (0, extent):
        return x
    starts, counts = [0] * x.ndim, list(x.shape)
    starts[axis], counts[axis] = begin, end - begin
    return views.slice_(x, tuple(starts), (1,) * x.ndim, tuple(counts))


@operation(public=())
def attention_with_dropout(
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: Value = default(0.0),
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    random_key: Key = None,
) -> Value:
    """Attention whose weights are set to 0 with probability `dropout_p`, the others scaled up."""
    parts = _Parts(query, key, value, enable_gqa)
    weights = parts.weights(attn_mask, is_causal, scale)
    return parts.mixed(dropped(weights, dropout_p, weights.shape, random_key))


class _Parts:
    """Queries, keys and values that fit together, with one axis of heads.

    Where several heads of queries share the keys of one, they are rows of one product.
    """

    def __init__(self, query: Value, key: Value, value: Value, grouped: bool):
        given = (query, key, value)
        _check_shapes(query.shape, key.shape, value.shape, grouped)
        self.dtype = floating(result_type(*given))
        # Scores of halves may be beyond their range before they are scaled.
        query, key, value = (cast(x, wide(self.dtype)) for x in given)
        self.group = query.shape[-3] // key.shape[-3] if grouped else 1
        self.shape = query.shape
        self.query, self.key, self.value = self._folded(query), key, value

    def _folded(self, x: Value) -> Value:
        """(..., heads, rows, columns) with the heads of a group as rows below each other."""
        if self.group == 1:
            return x
        *lead, heads, rows, columns = x.shape
        return views.reshape(x, (*lead, heads // self.group, self.group * rows, columns))

    def _unfolded(self, x: Value) -> Value:
        if self.group == 1:
            return x
        *lead, heads, rows, columns = x.shape
        return views.reshape(x, (*lead, heads * self.group, rows // self.group, columns))

    def weights(
        self, mask: Value | None, is_causal: bool, scale: float | None, first: int = 0
    ) -> Value:
        """How much of each value each query takes, one matrix a head of the queries, of which the
        first row is that of the query `first`."""
        turned = views.transpose(self.key, _with_last_two_swapped(self.key.ndim))
        scores = self._unfolded(product(_NAME, self.query, turned))
        if scale is None:
            depth = cast(extent(self.shape[-1]), scores.dtype)
            scores = e.multiply(scores, r.rsqrt(depth))
        else:
            scores = e.multiply(scores, constant(scale, scores.dtype))
        return _masked(scores, mask, is_causal, first)

    def mixed(self, weights: Value) -> Value:
        """The values, weighted."""
        found = product(_NAME, self._folded(weights), self.value)
        return cast(self._unfolded(found), self.dtype)


def _with_last_two_swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _check_shapes(
    query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], grouped: bool
) -> None:
    expected = ""
    if min(map(len, (query, key, value))) < (3 if grouped else 2):
        least = "heads, length and width" if grouped else "length and width"
        expected = f"expected axes of {least} at the end."
    elif query[-1] != key[-1] or key[-2] != value[-2]:
        expected = "expected (..., queries, width), (..., keys, width) and (..., keys, any width)."
    elif not query[-1]:
        expected = "expected a width of at least 1."
    elif grouped and (key[-3] != value[-3] or not key[-3] or query[-3] % key[-3]):
        expected = (
            "with enable_gqa, the heads of the queries must be a multiple of those of keys and "
            "values."
        )
    if expected:  # to write shapes fixes their sizes
        raise ShapeError(f"{_NAME}: query {query}, key {key}, value {value}; {expected}")


def _masked(scores: Value, mask: Value | None, is_causal: bool, first: int) -> Value:
    """The softmax of the scores that count."""
    inside = None
    if mask is not None:
        _check_mask(mask, scores)
        if mask.dtype == "bool":
            inside = mask
        else:
            scores = e.add(scores, cast(mask, scores.dtype))
            # Where a whole row is -inf, there is nothing to take. NaN is unequal, and stays.
            inside = e.not_equal(scores, constant(-math.inf, scores.dtype))
    if is_causal:
        rows, keys = scores.shape[-2:]
        earlier = _causal(rows, keys, first)
        inside = earlier if inside is None else e.logical_and(inside, earlier)
    return softmax(scores) if inside is None else masked_softmax(scores, inside)


def _check_mask(mask: Value, scores: Value) -> None:
    if mask.dtype != "bool" and not is_float(mask.dtype):
        raise DTypeError(
            f"{_NAME}: attn_mask has elements of {mask.dtype}; expected bool, true where a key "
            "counts, or floats, which are added to the scores: try attn_mask.astype('bool')."
        )
    if broadcast_shapes(_NAME, (mask.shape, scores.shape)) != scores.shape:
        raise ShapeError(
            f"{_NAME}: attn_mask of shape {mask.shape} for scores of shape {scores.shape}; "
            "expected one that broadcasts to them."
        )


def _causal(rows: int, columns: int, first: int) -> Value:
    """Where the key stands no later than the query, of which the first one here is `first`."""
    queries = e.add(iota(rows), constant(first, "int64")) if first else iota(rows)
    return e.greater_equal(views.reshape(queries, (rows, 1)), iota(columns))


# -- places in sequences --------------------------------------------------------------------------


def _rotary_reference(
    data: Any, positions: Any = None, base: Any = 10000.0, interleaved: Any = False
) -> Any:
    length, width = data.shape[-2:]
    positions = numpy.arange(length) if positions is None else positions
    frequencies = base ** (-numpy.arange(0, width, 2) / width)
    angles = numpy.asarray(positions)[..., None] * frequencies
    cosine, sine = numpy.cos(angles), numpy.sin(angles)
    # Not as complex numbers: times 1j, an infinity is NaN beside it.
    half = width // 2
    first, second = data[..., :half], data[..., half:]
    if interleaved:
        first, second = data[..., ::2], data[..., 1::2]
    found = first * cosine - second * sine, second * cosine + first * sine
    if interleaved:
        return numpy.stack(found, -1).reshape(data.shape)
    return numpy.concatenate(found, -1)


@operation(
    numpy=_rotary_reference,
    public=_NETWORK,
    samples=Samples(
        (
            Case(((7, 8),)),
            Case(((2, 3, 7, 6),), {"interleaved": True, "base": 100.0}),
            Case(((2, 3, 4, 6), (4,))),
            Case(((2, 3, 4, 6), (2, 1, 4)), {"interleaved": True}),
            Case(((0, 6),)),
        ),
        ((-4, 4), (0, 9)),
        ("float16", "float32", "float64"),
        ulps=32,
        absolute=32,
        integer_arrays=(1,),
    ),
)
def rotary_embedding(
    data: Value,
    positions: Value | None = None,
    base: float = 10000.0,
    interleaved: bool = False,
) -> Value:
    """`data`, (..., length, width), with pairs of its columns turned by angles that grow with the
    place in the sequence, so that products of two such rows depend on how far they are apart.

    Pair `i` turns by `base ** (-2 * i / width)` a place. It is columns `i` and `i + width / 2`, or,
    `interleaved`, columns `2 * i` and `2 * i + 1`. `positions` are the places, if they are not
    0, 1, ...: numbers that broadcast to `data` without its last axis.
    """
    lead, width = data.shape[:-1], data.shape[-1] if data.ndim > 1 else 1
    if width % 2:
        raise ShapeError(
            f"rotary_embedding: data of shape {data.shape}; expected (..., length, width) with an "
            "even width."
        )
    x = cast(data, wide(floating(data.dtype)))
    angles = _angles(positions, lead, width, base, x.dtype)
    turned = _turned(_pairs(x, interleaved), r.cos(angles), r.sin(angles))
    return cast(_joined(turned, interleaved, x.shape), floating(data.dtype))


def _angles(
    positions: Value | None, lead: tuple[int, ...], width: int, base: float, dtype: str
) -> Value:
    """The angle of each place and pair."""
    if not base > 0:
        raise ArgumentError(f"rotary_embedding: base={base}; expected a number above 0.")
    places = iota(lead[-1]) if positions is None else positions
    if broadcast_shapes("rotary_embedding", (places.shape, lead)) != lead:
        raise ShapeError(
            f"rotary_embedding: positions of shape {places.shape} for data whose rows have the "
            f"shape {lead}; expected one that broadcasts to it."
        )
    pairs = cast(iota(width // 2), dtype)
    step = constant(-2 * math.log(base), dtype)
    frequencies = r.exp(e.multiply(e.true_divide(pairs, cast(extent(width), dtype)), step))
    return e.multiply(views.reshape(cast(places, dtype), (*places.shape, 1)), frequencies)


def _pairs(x: Value, interleaved: bool) -> tuple[Value, Value]:
    """The first and the second of each pair of columns."""
    *lead, width = x.shape
    shape = (*lead, width // 2, 2) if interleaved else (*lead, 2, width // 2)
    x, axis = views.reshape(x, shape), len(lead) + interleaved
    return _column(x, axis, 0), _column(x, axis, 1)


def _column(x: Value, axis: int, place: int) -> Value:
    starts = tuple(place if a == axis else 0 for a in range(x.ndim))
    counts = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    part = views.slice_(x, starts, (1,) * x.ndim, counts)
    return views.reshape(part, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _turned(pair: tuple[Value, Value], cosine: Value, sine: Value) -> tuple[Value, Value]:
    first, second = pair
    return (
        e.subtract(e.multiply(first, cosine), e.multiply(second, sine)),
        e.add(e.multiply(second, cosine), e.multiply(first, sine)),
    )


def _joined(pair: tuple[Value, Value], interleaved: bool, shape: tuple[int, ...]) -> Value:
    return views.reshape(stack(pair, -1 if interleaved else -2), shape)
