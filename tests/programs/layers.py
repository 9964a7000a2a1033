"""Steps of networks: layers, one or some of them in a row, on values of the shape they take."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from heterosis.ir.types import is_float
from tests.ops.nn import test_rnn
from tests.programs.draft import Draft
from tests.programs.kinds import kind
from tests.programs.meaning import NAMESPACE
from tests.programs.program import ACCUMULATES, EXACT, ROUNDS

_IMAGES = (
    (1, 3, 8, 8),
    (2, 4, 7, 5),
    (1, 8, 12, 12),
    (1, 16, 14, 14),
    (2, 3, 17, 9),
    (1, 32, 6, 6),
)
_LARGE = 4000  # elements
_SEQUENCES = ((2, 5, 8), (1, 17, 16), (2, 9, 4), (1, 3, 33), (2, 37, 4))


@kind(2.5)
def layer(draft: Draft) -> None:
    """One layer, often with an activation behind it."""
    chosen = draft.among(LAYERS)
    made = None if draft.special and chosen in WINDOWED else chosen(draft)
    if made is not None and draft.chance(0.5):
        text = draft.among(
            ("npx.relu({0})", "np.tanh({0})", "npx.sigmoid({0})", "{0} + {0} * 0.5", "np.abs({0})")
        )
        draft.step("layer", text, made, rounding=ROUNDS)


@kind(0.2)
def attending(draft: Draft) -> None:
    """Attention, for hunts of its own."""
    attention(draft)


@kind(0.1)
def recurring(draft: Draft) -> None:
    """Recurrent layers, for hunts of their own: rows enough for several threads among them."""
    recurrent(draft)


@kind(0.1)
def filtering(draft: Draft) -> None:
    """Filters with gradients, which several images are summed up for: for hunts of their own."""
    if draft.special:
        return
    dtype, (channels, group) = _floats(draft), draft.among(_IN_GROUPS)
    extents = draft.among(((33,), (9, 17), (12, 5), (3, 4, 9)))
    kernel = tuple(draft.among((1, 2, 3, 3)) for _ in extents)
    data = draft.argument((draft.among((4, 5, 9)), channels, *extents), dtype, -1, 1)
    groups = channels // group
    shape = (groups * draft.among((1, 2, 3, 5, 8)), group, *kernel)
    weight = (draft.constant if draft.mode == "inside" else draft.argument)(shape, dtype, -1, 1)
    stride, dilate = ([draft.among((1, 1, 2)) for _ in extents] for _ in range(2))
    pad = tuple(draft.whole(0, size // 2) for size in kernel)
    more = f"kernel={kernel}, stride={tuple(stride)}, dilate={tuple(dilate)}, pad={pad}"
    text = f"npx.convolution({{0}}, {{1}}, {more}, num_group={groups}, no_bias=True)"
    absolute = 8.0 * prod(kernel) * group  # as of tiles
    draft.step("layer", text, data, weight, rounding=ACCUMULATES, absolute=absolute)


@kind(0.1)
def large(draft: Draft) -> None:
    """What kernels do block by block and in shares, for hunts of its own: once a program, since
    its meaning takes NumPy long."""
    if not any(value.size > _LARGE for value in draft.values.values() if hasattr(value, "size")):
        draft.among((_deep, _deep, _of_many_units, _of_many_channels))(draft)


def _deep(draft: Draft) -> None:
    """A product whose depth is more than a block, rows and columns however they lie."""
    m, n = draft.among((1, 5, 17, 40, 70)), draft.among((1, 9, 33, 64, 100))
    depth, dtype = draft.among((520, 1024, 1100, 2050)), _floats(draft)
    left = draft.argument(draft.among(((m, depth), (depth, m))), dtype, -1, 1)
    right = _parameter(draft, draft.among(((n, depth), (depth, n))), dtype)
    first = "{0}" if draft.shape_of(left) == (m, depth) else "{0}.T"
    second = "{1}" if draft.shape_of(right) == (depth, n) else "{1}.T"
    made = draft.step("layer", f"np.matmul({first}, {second})", left, right, rounding=ACCUMULATES)
    if made and draft.chance(0.5):
        draft.step("layer", "npx.relu({0}) + 1", made, rounding=ROUNDS)


def _of_many_units(draft: Draft) -> None:
    """A recurrent layer whose units are shared out."""
    sizes = draft.whole(1, 3), draft.among((1, 2, 17)), draft.among((3, 64))
    _recurrent(draft, draft.argument(sizes, "float32"), draft.among((96, 160, 256)), 1, False)


def _of_many_channels(draft: Draft) -> None:
    """A convolution of more channels and filters than a block has."""
    channels, filters = draft.among((40, 64, 130)), draft.among((33, 64, 96))
    extent, size = draft.among((7, 14, 15)), draft.among((1, 3, 3))
    images = draft.among((1, 2, 9))  # several stand side by side in one product
    data = draft.argument((images, channels, extent, extent), "float32", -1, 1)
    weight = _parameter(draft, (filters, channels, size, size), "float32")
    stride = draft.among((1, 1, 2))
    more = f"kernel=({size}, {size}), pad=({size // 2}, {size // 2}), stride=({stride}, {stride})"
    text = f"npx.convolution({{0}}, {{1}}, {more}, no_bias=True)"
    absolute = _of_tiles(size, channels)
    draft.step("layer", text, data, weight, rounding=ACCUMULATES, absolute=absolute)


def _image(draft: Draft, dtype: str) -> str:
    found = draft.pick(lambda a: a.ndim == 4 and a.dtype.name == dtype and min(a.shape) > 0)
    return found or draft.argument(draft.among(_IMAGES), dtype, -1, 1)


def _floats(draft: Draft) -> str:
    return draft.among([d for d in draft.dtypes if is_float(d)] or ["float32"])


def _parameter(draft: Draft, shape: tuple[int, ...], dtype: str, low: float = -1) -> str:
    return (draft.constant if draft.chance(0.8) else draft.argument)(shape, dtype, low, 1)


def dense(draft: Draft) -> str | None:
    data = draft.pick(lambda a: a.ndim in (2, 3) and a.size > 0 and is_float(a.dtype.name))
    data = data or draft.argument((draft.whole(1, 9), draft.whole(1, 40)), _floats(draft))
    units = draft.among((1, 3, 8, 16, 17, 48, 64))
    if draft.chance(0.05):  # rows so far apart that they share lines of the cache
        data, units = draft.argument((draft.whole(9, 16), 1024), _floats(draft)), 40
    elif draft.chance(0.1):  # rows that are packed in place of the weights
        shape = draft.among((16, 32, 48)), draft.among((1, 7, 40, 130))
        data, units = draft.argument(shape, _floats(draft)), draft.among((33, 70, 100))
    dtype = draft.dtype_of(data)
    weight = _parameter(draft, (units, draft.shape_of(data)[-1]), dtype)
    operands, more = [data, weight], f"num_hidden={units}, flatten=False"
    if draft.chance(0.6):
        operands.append(_parameter(draft, (units,), dtype))
        text = f"npx.fully_connected({{0}}, {{1}}, {{2}}, {more})"
    else:
        text = f"npx.fully_connected({{0}}, {{1}}, {more}, no_bias=True)"
    return draft.step("layer", text, *operands, rounding=ACCUMULATES)


def _of_tiles(taps: int, channels: int) -> float:
    """The error of windows that may be multiplied in tiles, in rounding units: up to three bits of
    the largest that a sum of products can be."""
    return 8.0 * taps**2 * channels if taps == 3 else 0.0


def convolution(draft: Draft) -> str | None:
    dtype = _floats(draft)
    data = _image(draft, dtype)
    channels = draft.shape_of(data)[1]
    size = draft.among((1, 3, 3, 3, 5))
    grouped = draft.chance(0.2)
    filters, groups = (channels, channels) if grouped else (draft.among((2, 16, 32)), 1)
    weight = _parameter(draft, (filters, channels // groups, size, size), dtype)
    more = f"kernel=({size}, {size}), num_group={groups}"
    absolute = _of_tiles(size, channels // groups)
    if draft.chance(0.7):
        more += f", pad=({size // 2}, {size // 2})"
    if draft.chance(0.3):
        more += ", stride=(2, 2)"
    if draft.chance(0.5):
        bias = _parameter(draft, (filters,), dtype)
        text = f"npx.convolution({{0}}, {{1}}, {{2}}, {more})"
        return draft.step(
            "layer", text, data, weight, bias, rounding=ACCUMULATES, absolute=absolute
        )
    text = f"npx.convolution({{0}}, {{1}}, {more}, no_bias=True)"
    return draft.step("layer", text, data, weight, rounding=ACCUMULATES, absolute=absolute)


# Channels, and how many of them are a group.
_IN_GROUPS = ((8, 1), (16, 1), (3, 1), (16, 2), (16, 4), (32, 8), (32, 16), (64, 32), (6, 3))


def separable(draft: Draft) -> str | None:
    """A convolution of each channel by itself, or in groups, and one of points behind it; at times
    with its image's channels last, and with its channels weighed by what they are on average."""
    dtype, (channels, group) = _floats(draft), draft.among(_IN_GROUPS)
    images, width = draft.whole(1, 2), draft.among((8, 9))
    if draft.chance(0.3):
        last = draft.argument((images, 9, width, channels), dtype, -1, 1)
        data = draft.step("view", "np.transpose({0}, (0, 3, 1, 2))", last)
    else:
        data = draft.argument((images, channels, 9, width), dtype, -1, 1)
    weight = _parameter(draft, (channels, group, 3, 3), dtype)
    more = f"kernel=(3, 3), num_group={channels // group}, pad=(1, 1), no_bias=True"
    text = f"npx.convolution({{0}}, {{1}}, {more})"
    made = draft.step("layer", text, data, weight, rounding=ACCUMULATES)
    if draft.chance(0.5):
        made = draft.step("layer", "npx.relu({0})", made)
    if draft.chance(0.3):
        text = "{0} * np.mean({0}, axis=(2, 3), keepdims=True)"
        made = draft.step("layer", text, made, rounding=ACCUMULATES, absolute=1.0)
    weight = _parameter(draft, (16, channels, 1, 1), dtype)
    text = "npx.convolution({0}, {1}, kernel=(1, 1), no_bias=True)"
    return draft.step("layer", text, made, weight, rounding=ACCUMULATES)


def strided(draft: Draft) -> str | None:
    """The end of a residual block, of which convolutions with one tap and a stride read a part."""
    dtype, channels, size = _floats(draft), draft.among((3, 8, 16)), draft.among((1, 3, 3))
    shape = draft.whole(1, 2), channels, draft.whole(3, 9), draft.whole(3, 9)
    data, before = draft.argument(shape, dtype, -1, 1), draft.argument(shape, dtype, -1, 1)
    weight = _parameter(draft, (channels, channels, size, size), dtype)
    more = f"kernel=({size}, {size}), pad=({size // 2}, {size // 2}), no_bias=True"
    text, absolute = f"npx.convolution({{0}}, {{1}}, {more})", _of_tiles(size, channels)
    made = draft.step("layer", text, data, weight, rounding=ACCUMULATES, absolute=absolute)
    text = draft.among(("npx.relu({0} + {1})", "{0} + {1}", "{0} * 0.5 - {1}"))
    end = draft.step("layer", text, made, before, rounding=ROUNDS)
    if draft.chance(0.3):  # the other branch reads the part as a slice
        draft.view("{0}[:, :, ::2, ::2]", end)
    for filters in (16, 5)[: draft.whole(1, 2)]:
        weight = _parameter(draft, (filters, channels, 1, 1), dtype)
        stride = draft.among(((2, 2), (2, 2), (2, 1), (4, 2)))
        text = f"npx.convolution({{0}}, {{1}}, kernel=(1, 1), stride={stride}, no_bias=True)"
        made = draft.step("layer", text, end, weight, rounding=ACCUMULATES, absolute=absolute)
    return made


def tiled(draft: Draft) -> str | None:
    """A convolution of 3 x 3 taps with whole vectors of channels, which may go in tiles; at times
    with taps in depth, wherever they lie."""
    channels, filters = draft.among((16, 32)), draft.among((16, 32, 48))
    kernel, pad, stride = (3, 3), (draft.whole(1, 2), 1), (1, 1)
    extents = draft.whole(1, 14), draft.whole(1, 14)
    if draft.chance(0.3):
        taps = draft.among((1, 2, 3))
        kernel, extents = (taps, *kernel), (draft.whole(taps, 5), *extents)
        pad, stride = (draft.whole(0, 2), *pad), (draft.among((1, 1, 2)), *stride)
    data = draft.argument((draft.whole(1, 3), channels, *extents), "float32", -1, 1)
    weight = _parameter(draft, (filters, channels, *kernel), "float32")
    more = f"kernel={kernel}, pad={pad}, stride={stride}, no_bias=True"
    text = f"npx.convolution({{0}}, {{1}}, {more})"
    absolute = _of_tiles(3, prod(kernel) // 9 * channels)
    return draft.step("layer", text, data, weight, rounding=ACCUMULATES, absolute=absolute)


def pooling(draft: Draft) -> str | None:
    data = _image(draft, _floats(draft))
    size, stride = draft.among((1, 2, 3)), draft.among((1, 2))
    more = draft.among((
        f"kernel=({size}, {size}), stride=({stride}, {stride}), pool_type='max'",
        f"kernel=({size}, {size}), stride=({stride}, {stride}), pool_type='avg'",
        f"kernel=({size}, {size}), pad=({size // 2}, {size // 2}), pool_type='avg'",
        "global_pool=True, pool_type='avg'",
    ))  # fmt: skip
    text = f"npx.pooling({{0}}, {more})"
    return draft.step("layer", text, data, rounding=ACCUMULATES)


def batch_norm(draft: Draft) -> str | None:
    data = _image(draft, _floats(draft))
    dtype, channels = draft.dtype_of(data), draft.shape_of(data)[1]
    parameters = [_parameter(draft, (channels,), dtype) for _ in range(3)]
    parameters.append(_parameter(draft, (channels,), dtype, low=0.25))
    shaped = [f"{{{i}}}.reshape(-1, 1, 1)" for i in range(1, 5)]
    meaning = "({0} - {3}) / np.sqrt(np.abs({4}) + 1e-3) * {1} + {2}".format("{0}", *shaped)
    text = "npx.batch_norm({0}, {1}, {2}, {3}, np.abs({4}), fix_gamma=False, use_global_stats=True)"
    return draft.step("layer", text, data, *parameters, rounding=ACCUMULATES, meaning=meaning)


def own_norm(draft: Draft) -> str | None:
    """Normalisation by statistics of the data, whose gradients are sums that are results too."""
    data = _image(draft, _floats(draft))
    dtype, channels = draft.dtype_of(data), draft.shape_of(data)[1]
    scales = [_parameter(draft, (channels,), dtype) for _ in range(2)]
    groups = draft.among([n for n in (1, 2, 4, channels) if channels % n == 0])
    call = draft.among((
        "('batch_norm')({0}, {1}, {2}, {1}, {2}, fix_gamma=False, training=True, eps=0.1)[2]",
        "('batch_norm')({0}, {1}, {2}, {1}, {2}, fix_gamma=True, training=True, eps=0.1)[2]",
        f"('group_norm')({{0}}, {{1}}, {{2}}, num_groups={groups}, eps=0.1)",
        "('instance_norm')({0}, {1}, {2}, eps=0.1)",
    ))  # fmt: skip
    text, meaning = f"operation{call}", f"reference{call}"
    return draft.step("layer", text, data, *scales, rounding=ACCUMULATES, meaning=meaning)


def layer_norm(draft: Draft) -> str | None:
    data = draft.pick(lambda a: a.ndim >= 1 and a.size > 0 and is_float(a.dtype.name))
    data = data or draft.argument((3, 17), _floats(draft))
    dtype, extent = draft.dtype_of(data), draft.shape_of(data)[-1]
    scales = [_parameter(draft, (extent,), dtype) for _ in range(2)]
    text = "npx.layer_norm({0}, {1}, {2}, axis=-1, eps=1e-5)"
    return draft.step("layer", text, data, *scales, rounding=ACCUMULATES)


def attention(draft: Draft) -> str | None:
    """Attention in its few steps, which the compiler does in one pass."""
    dtype = _floats(draft)
    shape = draft.among(_SEQUENCES)
    if draft.chance(0.2):  # queries that are packed in place of the keys
        batch, _, depth = shape
        rows, others = draft.among(((16, 40), (24, 60), (48, 100)))
        shapes = [(batch, n, depth) for n in (rows, others, others)]
    else:
        shapes = [shape] * draft.among((1, 3))
    queries, keys, values = ([draft.argument(s, dtype, -1, 1) for s in shapes] * 3)[:3]
    scores = draft.step(
        "layer", "npx.batch_dot({0}, {1}, transpose_b=True)", queries, keys, rounding=ACCUMULATES
    )
    if draft.chance(0.6):
        scores = draft.step("layer", f"{{0}} / {shape[-1] ** 0.5}", scores, rounding=ROUNDS)
    if draft.chance(0.5):  # a row takes no later column; or matrices are counted, or all rows
        among = draft.among((
            "np.arange({0}.shape[1]).reshape(-1, 1) >= np.arange({0}.shape[2])",
            "np.arange({0}.shape[0]).reshape(-1, 1, 1) >= np.arange({0}.shape[2])",
            "np.arange({0}.shape[0] * {0}.shape[1]).reshape({0}.shape[0], -1, 1) >= 3",
        ))  # fmt: skip
        text = f"np.where({among}, {{0}}, -5.0)"
        scores = draft.step("layer", text, scores, rounding=ROUNDS)
    chances = draft.step("layer", "npx.softmax({0}, axis=-1)", scores, rounding=ACCUMULATES)
    return draft.step("layer", "npx.batch_dot({0}, {1})", chances, values, rounding=ACCUMULATES)


def recurrent(draft: Draft) -> str | None:
    """A fused recurrent layer: what it gives at every step, or its last states."""
    mode, layers, both = draft.among(test_rnn.MODES), draft.whole(1, 2), draft.chance(0.3)
    steps, batch, inputs, units = (draft.whole(1, n) for n in (4, 3, 5, 6))
    found = draft.pick(
        lambda a: a.ndim == 3 and min(a.shape) > 0 and a.size < 200 and a.dtype == "float32"
    )
    if draft.chance(0.4):  # sizes of which one kernel multiplies inputs and states together
        found, layers, batch, inputs, units = None, 1, draft.among((16, 17)), 32, 32
    data = found or draft.argument((steps, batch, inputs), "float32")
    return _recurrent(draft, data, units, layers, both, mode)


def _recurrent(
    draft: Draft, data: str, units: int, layers: int, both: bool, mode: str = ""
) -> str | None:
    mode = mode or draft.among(test_rnn.MODES)
    _, batch, inputs = draft.shape_of(data)
    count = layers * (1 + both)
    sizes = test_rnn.shapes(mode, inputs, units, layers, both, None)
    size = sum(_product(s) for s in sizes)
    operands = [data, draft.constant((size,), "float32", -0.5, 0.5)]
    operands += [draft.constant((count, batch, units), "float32")] * (1 + (mode == "lstm"))
    places = ", ".join(f"{{{i}}}" for i in range(len(operands)))
    more = f"state_size={units}, num_layers={layers}, bidirectional={both}, mode={mode!r}"
    text = f"npx.rnn({places}, {more})"
    meaning = f"recurrent({mode!r}, {layers}, {both}, None, {units}, {places})[0]"
    return draft.step("layer", text, *operands, rounding=ACCUMULATES, meaning=meaning)


def _product(shape: tuple[int, ...]) -> int:
    found = 1
    for extent in shape:
        found *= extent
    return found


def cell(draft: Draft) -> str | None:
    """A step of a recurrent cell, in operations on its gates."""
    data = draft.argument((draft.whole(1, 4), 4 * draft.among((1, 3, 8))), _floats(draft))
    units = draft.shape_of(data)[1] // 4
    gates = [draft.view(f"{{0}}[:, {i * units}:{(i + 1) * units}]", data) for i in range(4)]
    state = draft.step(
        "layer", "npx.sigmoid({0}) * np.tanh({1})", gates[0], gates[1], rounding=ROUNDS
    )
    return draft.step("layer", "npx.sigmoid({0}) * np.tanh({1})", gates[2], state, rounding=ROUNDS)


def embedding(draft: Draft) -> str | None:
    count, width = draft.whole(1, 9), draft.whole(1, 17)
    weight = _parameter(draft, (count, width), _floats(draft))
    shape = draft.among(((3,), (2, 4), (1, 1), ()))
    indices = draft.argument(shape, draft.among(("int32", "int64")), 0, count - 1)
    text = "npx.embedding({0}, {1})"
    return draft.step("layer", text, indices, weight, rounding=EXACT, whole=(0,))


def dropout(draft: Draft) -> str | None:
    data = draft.pick(lambda a: is_float(a.dtype.name))
    if data is None:
        return None
    return draft.step("layer", "npx.dropout({0}, p=0.5)", data, meaning="{0} * 1")


def softmax(draft: Draft) -> str | None:
    data = draft.pick(lambda a: a.ndim > 0 and a.size > 0 and is_float(a.dtype.name))
    if data is None:
        return None
    axis = draft.whole(-draft.values[data].ndim, -1)
    text = draft.among((f"npx.softmax({{0}}, axis={axis})", f"npx.log_softmax({{0}}, axis={axis})"))
    return draft.step("layer", text, data, rounding=ACCUMULATES, absolute=2.0)


# Where an infinite element meets padding, or the transforms of an algorithm, what becomes of it is
# the algorithm's: no reference says.
WINDOWED = (convolution, separable, strided, tiled)
LAYERS: tuple[Callable[[Draft], str | None], ...] = (
    dense, dense, convolution, convolution, convolution, separable, strided, tiled,
    pooling, pooling, batch_norm, own_norm, layer_norm, attention, recurrent, cell, embedding,
    dropout, softmax,
)  # fmt: skip
NAMESPACE["recurrent"] = test_rnn.reference
