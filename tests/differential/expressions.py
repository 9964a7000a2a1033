"""What both are asked: expressions over the arrays that `SETUP` makes, with `np` and `npx`."""

from __future__ import annotations

from itertools import chain

SETUP = """
m = np.array([[1, -2, 3], [-4, 5, 0.5]])
v = np.array([3, -1, 2, 0.5])
p = np.array([[0.25, 0.5, 2], [1.5, 3, 0.75]])
u = np.array([[0.25, -0.5, 0.75], [-0.125, 0.625, 0.0]])
c = np.arange(24).reshape(2, 3, 4)
d = np.array(onp.array([[1.5, -2], [0.25, 4]]))
s = np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]])
i = np.array([2, 0, 1], dtype="int32")
j = np.array([[5, -7, 3], [2, 4, -9]], dtype="int32")
k = np.array([[2, 3, 5], [7, 2, 4]], dtype="int32")
l = np.array([7, 2, 9], dtype="int64")
b = np.array([[True, False, True], [False, False, True]], dtype=bool)
h = np.array([0.5, 1.5, -2], dtype="float16")
n = np.array([1, float("nan"), float("inf")])
z = np.zeros((0, 3))
w = np.array(7.0)
anchors = np.array([[[0.1, 0.08, 0.52, 0.92], [0.08, 0.2, 0.56, 0.95], [0.15, 0.3, 0.62, 0.91],
                     [0.55, 0.2, 0.9, 0.88], [0, 0, 0.1, 0.1]]])
truth = np.array([[[0, 0.1, 0.08, 0.52, 0.92], [1, 0.55, 0.2, 0.9, 0.88], [-1, -1, -1, -1, -1]]])
def grid(n): return np.array(onp.sin(onp.arange(n)).astype("float32"))
guess = np.array([[[0, 0, 0, 0, 0.5], [0.9, 0.8, 0.7, 0.1, 0.2], [0.1, 0.2, 0.3, 0.95, 0.3]]])
"""

_UNARY = [
    "abs",
    "absolute",
    "cos",
    "exp",
    "expm1",
    "fabs",
    "floor",
    "negative",
    "sign",
    "sin",
    "sinh",
    "square",
    "tan",
    "tanh",
    "trunc",
    "ceil",
    "cosh",
    "degrees",
    "radians",
    "cbrt",
    "arctan",
    "arcsinh",
    "fix",
    "isnan",
    "isinf",
    "isfinite",
    "isposinf",
    "isneginf",
    "logical_not",
]
_POSITIVE = ["log", "log10", "log1p", "log2", "reciprocal", "sqrt"]
_UNIT = ["arccos", "arcsin", "arctanh"]
_BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "mod",
    "remainder",
    "maximum",
    "minimum",
    "arctan2",
    "hypot",
    "copysign",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
]
_WHOLE = [
    "add",
    "subtract",
    "multiply",
    "mod",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "maximum",
    "minimum",
    "lcm",
]
_REDUCTIONS = ["sum", "mean", "max", "min", "prod", "amax", "amin"]
_STATISTICS = ["std", "var"]


def _functions() -> list[str]:
    made = [f"np.{f}({x})" for f in _UNARY for x in ("m", "d", "w", "z")]
    made += [f"np.{f}(p)" for f in _POSITIVE]
    made += [f"np.{f}(u)" for f in _UNIT]
    made += [f"np.{f}({a})" for f in _BINARY for a in ("m, p", "m, p[0]", "m, 2.0", "3, p")]
    made += [f"np.{f}(j, k)" for f in _WHOLE]
    made += [f"np.{f}(n)" for f in ("isnan", "isinf", "isfinite", "exp", "sqrt", "nan_to_num")]
    made += [f"np.power(p, {a})" for a in ("m", "2", "0.5")]
    made += ["np.invert(b)", "np.invert(j)", "np.bitwise_not(j)", "np.ldexp(p, p)"]
    made += ["np.around(m, 1)", "np.round(d)", "np.clip(m, 0, 1)", "np.clip(m, None, 1)"]
    return made


def _reductions() -> list[str]:
    ways = ("", ", axis=0", ", axis=1", ", axis=-1", ", axis=1, keepdims=True")
    made = [f"np.{f}(m{way})" for f in _REDUCTIONS + _STATISTICS for way in ways]
    made += [f"np.{f}(c, axis=(0, 2))" for f in ("sum", "mean", "max", "min", "std")]
    made += [f"np.{f}({x})" for f in ("all", "any") for x in ("m", "b", "b, axis=0")]
    made += [f"np.{f}({x})" for f in ("argmax", "argmin") for x in ("m", "m, axis=1", "j", "v")]
    made += ["np.sum(j)", "np.sum(b)", "np.mean(j)", "np.mean(b)", "np.max(j)", "np.prod(k)"]
    made += ["np.sum(m, dtype='float64')", "np.mean(j, dtype='float64')", "np.sum(z)"]
    made += ["np.sum(l)", "np.max(n)", "np.min(n)", "np.std(m, ddof=1)", "np.sum(h)"]
    made += ["np.cumsum(m)", "np.cumsum(m, axis=0)", "np.average(m)", "np.average(m, axis=1)"]
    made += ["np.average(v, weights=np.array([1, 2, 3, 4]))", "np.linalg.norm(m)"]
    made += ["np.percentile(m, 30)", "np.quantile(m, 0.25, axis=1)"]
    return made


_OPERATORS = """
    m + p; m - p; m * p; m / p; m % p; p ** m; m @ p.T; -m; abs(m); m + 1; 1 - m; 2 / p; 2 ** p
    m > p; m == m; m != 1; m <= p[0]; j + k; j - k; j * k; j / k; j % k; j & k; j | k; j ^ k; ~j
    j + 1; j * 2; j / 2; m + j; d * d; h + h; h * 2; b + b; b * b; l + i; m + h; m + True; w + 1
    round(m, 1)
""".replace("\n", ";")

_CREATION = """
    np.array([1, 2]); np.array(True); np.array([1.5]); np.array([]); np.array([[]]); np.array(None)
    np.array(onp.arange(3)); np.array(onp.float64(1)); np.array([onp.int64(1)]); np.array(range(3))
    np.array([1, 2], dtype=int); np.array([1, 2], dtype=float); np.array([1, 0], dtype=bool)
    np.array([300, -1], dtype='uint8'); np.array([1.9, -1.9], dtype='int32'); np.array(i)
    np.array([np.array([1, 2]), np.array([3, 4])]); np.array([2**40], dtype='int64')
    np.zeros(2); np.zeros((2, 3), 'int32'); np.zeros(shape=(2, 3)); np.ones([2, 3]); np.ones(())
    np.ones(2, dtype='bool'); np.ones((0, 3)); np.full(2, 1); np.full((2,), True); np.full((), 2)
    np.full((2,), 1.5, dtype='int32'); np.full((2,), onp.int64(3)); np.full((2, 2), v[:2])
    np.full_like(i, 1.5); np.full_like(m, True); np.zeros_like(l); np.ones_like(b)
    np.ones_like(i, dtype='float64'); np.arange(3); np.arange(1, 7, 2); np.arange(5, 0, -2)
    np.arange(0); np.arange(3, 1); np.arange(1, 2, 0.25); np.arange(3, dtype='int32')
    np.arange(0.5, 3); np.arange(10, step=3); np.linspace(0, 1, 3); np.linspace(0, 1, 0)
    np.linspace(0, 10, 3, dtype='int32'); np.linspace(0, 1, 3, endpoint=False)
    np.linspace(0, 1, 3, retstep=True); np.linspace(0, 1); np.logspace(0, 2, 3); np.eye(2, 3, 1)
    np.logspace(0, 2, 3, base=2); np.eye(3, k=-1); np.eye(0); np.identity(2, dtype=int)
    np.indices((2, 3)); np.hanning(4); np.hamming(4, dtype='float64'); np.blackman(5)
    np.hanning(1); np.tril(m); np.tril(m, -1); np.meshgrid(v, i); np.diag(v); np.diag(m, 1)
    np.meshgrid(v, v[:2], indexing='ij'); np.diagflat(v); np.unravel_index(i, (2, 2)); np.copy(m)
    np.diag_indices_from(s); np.shape(m)
""".replace("\n", ";")

_SHAPES = """
    np.reshape(m, (3, 2)); np.reshape(m, -1); m.reshape(3, -1); m.T; np.transpose(c, (1, 0, 2))
    np.swapaxes(c, 0, 2); np.moveaxis(c, 0, -1); np.expand_dims(m, 1); np.squeeze(m[None], 0)
    np.ravel(c); np.concatenate([m, p]); np.concatenate([m, p], axis=1); np.stack([m, p], axis=-1)
    np.vstack([m, p]); np.hstack([m, p]); np.dstack([m, p]); np.column_stack([v, v])
    np.split(v, 2); np.split(v, [1]); np.array_split(v, 3); np.hsplit(m, 3); np.vsplit(m, 2)
    np.dsplit(c, 2); np.tile(m, (2, 1)); np.repeat(m, 2); np.repeat(m, 2, axis=1); np.flip(m, 0)
    np.flipud(m); np.fliplr(m); np.roll(m, 1); np.roll(m, 1, axis=1); np.rot90(m); np.append(v, v)
    np.broadcast_to(v, (2, 4)); np.broadcast_arrays(v[:3], m); np.atleast_2d(v); np.atleast_3d(m)
    np.pad(m, ((1, 1), (1, 2)), mode='constant'); np.pad(m, ((0, 1), (1, 0)), mode='edge')
    np.pad(m, ((1, 1), (1, 1)), mode='reflect'); np.delete(v, 1); np.insert(v, 1, 9)
    np.resize(v, (2, 3)); np.trace(m); np.diagonal(c); np.diff(v); np.diff(m, axis=0)
    np.ediff1d(v); np.where(b, m, p); np.where(b, m, 0); np.nonzero(m); np.nonzero(b)
    np.take(v, i); np.take(m, i, axis=1); np.take(v, i, mode='clip'); np.sort(m); np.argsort(m)
    np.sort(m, axis=0); np.argsort(v); np.unique(i); np.unique(v, return_index=True)
    np.bincount(i); np.histogram(v, bins=2, range=(-1, 3)); np.outer(v, v); np.inner(v, v)
    np.dot(m, p.T); np.dot(v, v); np.vdot(v, v); np.matmul(m, p.T); np.tensordot(m, p, 2)
    np.einsum('ij,kj->ik', m, p); np.einsum('ij->j', m); np.polyval(v, p);
    np.linalg.det(s); np.linalg.inv(s); np.linalg.cholesky(s); np.linalg.solve(s, s[0])
    np.linalg.slogdet(s); np.linalg.eigvalsh(s); np.linalg.svd(m)[1]; np.linalg.pinv(s)
    np.linalg.norm(m, axis=1); np.linalg.norm(v, 1); np.linalg.norm(m, 'fro')
    np.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2)); np.linalg.tensorsolve(s, v[:3])
    npx.relu(m); npx.sigmoid(m); npx.softmax(m); npx.log_softmax(m, axis=0); npx.one_hot(i, 3)
    npx.pick(m, i[:2]); npx.shape_array(m)
""".replace("\n", ";")

_INDEXING = """
    m[0]; m[-1]; m[:, 1]; m[0, 2]; c[1, :, ::2]; c[..., 0]; c[None].shape; m[::-1]; m[:, ::-1]
    v[1:3]; v[i]; m[:, i]; m[[1, 0]]; m[[1, 0], [0, 2]]; m[b]; v[v > 0]; c[0, i]; c[:, i, 1]
    m[1][2]; c[1:, 0]; v[:0]; m[0:1, ...]; v[np.array([0, 3], dtype='int64')]
""".replace("\n", ";")

_MEMBERS = """
    m.sum(); m.sum(1, keepdims=True); m.mean(0); m.max(); m.min(0); m.prod(0); m.std(); m.var(0)
    m.argmax(); m.argmin(axis=0); m.argsort(axis=0); m.all(axis=0); m.any(axis=1, keepdims=True)
    m.astype('int32'); m.astype(int); m.astype(bool); m.copy(); m.flatten(); m.reshape(3, 2)
    m.reshape_view(-1); c.reshape_view(-3, 0); c.reshape_view(0, -1); c.reshape_view(-4, 1, 2, -2)
    m.transpose(); m.transpose(1, 0); m.swapaxes(0, 1); m.squeeze(); v.repeat(2); m.take(i)
    m.take(i, axis=1); v.clip(0, 1); v.round(); m.round(decimals=1); m.cumsum(); m.dot(m.T)
    m.nonzero(); m.detach(); m.tolist(); i.tolist(); b.tolist(); v.item(2); w.item(); m.item(1, 0)
    v.broadcast_to((2, 4)); m.shape; m.ndim; m.size; str(m.dtype); m.stype; str(m.ctx); m.writable
    m.slice_assign(np.ones((1, 3)), (0,), (1,), (None,)); len(m); bool(w); float(w); int(w)
    m.slice_assign_scalar(9.0, (0, 1), (2, 2), (None, None)); [r.shape for r in m]; 5 in m
    m.as_in_ctx(npx.cpu()); m.copyto(npx.cpu())
""".replace("\n", ";")

_NETWORK = """
    npx.activation(m, 'relu'); npx.activation(m, act_type='softrelu'); npx.activation(m, 'tanh')
    npx.activation(m, 'softsign'); npx.activation(h, 'sigmoid'); npx.leaky_relu(m)
    npx.leaky_relu(m, act_type='elu', slope=0.5); npx.leaky_relu(m, act_type='selu')
    npx.leaky_relu(m, act_type='gelu'); npx.leaky_relu(m, v[:3], act_type='prelu')
    npx.leaky_relu(c - 5, v[:3], act_type='prelu'); npx.leaky_relu(m, v[:1], act_type='prelu')
    npx.smooth_l1(m, scalar=2.0); npx.fully_connected(m, p, v[:2], num_hidden=2)
    npx.fully_connected(c, p[:, :1] * np.ones((2, 12)), num_hidden=2, no_bias=True)
    npx.fully_connected(c, np.ones((5, 4)), np.arange(5), num_hidden=5, flatten=False)
    npx.batch_flatten(c); npx.batch_flatten(v); npx.cast(m, 'int32'); npx.dropout(m, p=0.5)
    npx.embedding(np.array([[0, 1], [-2, 9]]), m, input_dim=2, output_dim=3)
    npx.arange_like(m); npx.arange_like(m, axis=1); npx.arange_like(c, start=2, step=0.5, repeat=3)
    npx.arange_like(j, axis=0); npx.arange_like(h); npx.nonzero(m); npx.nonzero(b); npx.erf(m)
    npx.erfinv(u); npx.gamma(p); npx.gammaln(p); npx.gather_nd(m, np.array([[0, 1], [1, 2]]))
    npx.sequence_mask(c, np.array([1, 2, 0]), use_sequence_length=True, value=-1)
    npx.sequence_mask(c, np.array([1, 2]), use_sequence_length=True, axis=1); npx.sequence_mask(c)
    npx.layer_norm(c, v, -v); npx.layer_norm(c, v[:3], v[1:], axis=1, output_mean_var=True)
    npx.batch_norm(c, v[:3], v[1:], p[0], p[1]); npx.softmax(m, temperature=2.0)
    npx.batch_norm(c, v, v, np.ones(4), p[0, 0] * np.ones(4), fix_gamma=False, axis=-1)
    npx.batch_norm(c, v[:3], v[1:], p[0], p[1], output_mean_var=True, fix_gamma=False, eps=0.1)
    npx.softmax(m, np.array([1, 3], dtype='int32'), use_length=True); npx.topk(m, k=2)
    npx.topk(m, k=2, ret_typ='both'); npx.topk(m, k=2, ret_typ='mask'); npx.pick(m, v[:2])
    npx.pick(m, np.array([4, -1]), mode='wrap', keepdims=True); npx.slice(c, (0, 1), (1, 3))
    npx.slice(m, begin=(0, 2), end=(2, None), step=(1, -1)); npx.reshape_like(m, p.T)
    npx.reshape_like(c, np.ones((6, 7)), lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=1)
    npx.reshape(c, (-2, -2, -1)); npx.reshape(c, (-5, 4)); npx.reshape(c, (-6, 1, 2, -4))
    npx.reshape(c, (-5, -2), reverse=True); npx.reshape(c, (8, -1), reverse=True)
    npx.one_hot(np.array([0, 2.7]), 3, 2.0, -1.0, 'int32'); npx.batch_dot(c, c, transpose_b=True)
    npx.multibox_prior(c[None], sizes=(0.5, 0.25), ratios=(1, 2, 0.5))
    npx.multibox_prior(c[None], sizes=(0.8,), clip=True, steps=(0.4, 0.3), offsets=(0.1, 0.2))
    npx.multibox_target(anchors, truth, guess); npx.multibox_target(anchors, -np.ones((1, 2, 5)), guess)
    npx.multibox_target(anchors, truth, guess, overlap_threshold=0.9, variances=(1, 1, 1, 1))
    npx.multibox_target(anchors, truth, guess, negative_mining_ratio=1, ignore_label=-7)
    npx.multibox_detection(guess, np.ones((1, 20)) * 0.7, anchors)
    npx.multibox_detection(guess, np.zeros((1, 20)), anchors, clip=False, threshold=0.75)
    npx.multibox_detection(guess, np.zeros((1, 20)), anchors, nms_threshold=0.1, force_suppress=True)
    npx.multibox_detection(guess, np.zeros((1, 20)), anchors, nms_threshold=-1)
    npx.roi_pooling(c[None], np.array([[0, 0, 0, 2, 2], [0, 1, 1, 9, 9]]), (2, 2), 1.0)
    npx.roi_pooling(c[None], np.array([[0, 0.5, 1.5, 2.5, 3.5]]), (2, 3), 0.7)
    npx.rnn(c, grid(16), np.ones((1, 3, 2)), state_size=2, num_layers=1, mode='rnn_tanh')[:, 0]
    npx.rnn(c, grid(64), np.ones((1, 3, 2)), np.ones((1, 3, 2)), state_size=2, num_layers=1, mode='lstm')
    npx.rnn(c, grid(96), np.ones((2, 3, 2)), state_size=2, num_layers=1, mode='gru', bidirectional=True, state_outputs=True)
    npx.rnn(c, grid(58), np.ones((1, 3, 1)), np.ones((1, 3, 2)), state_size=2, num_layers=1, mode='lstm', projection_size=1, state_outputs=True)
    npx.activation(k, 'relu'); npx.batch_flatten(z[None]); npx.dropout(np.ones(2), 1, 'always')
""".replace("\n", ";")

_TEXT = """
    repr(m); str(m); repr(v); repr(w); str(w); repr(i); repr(l); repr(d); repr(h); repr(b); repr(z)
    repr(c); repr(n); repr(np.arange(2000)); repr(np.zeros((0,))); repr(np.array([1e-10, 1e10]))
    '%.2f' % w; f'{w:.3f}'; f'{v}'; repr(np.array([0.1, 0.123456789])); repr(np.zeros(0, 'int32'))
""".replace("\n", ";")

_CONVOLVED = [
    "c, np.ones((5, 3, 2)), np.arange(5), kernel=(2,), num_filter=5, pad=(1,)",
    "c[None], np.ones((4, 1, 2, 3)), np.ones(4), kernel=(2, 3), num_filter=4, num_group=2",
    (
        "c[None], np.arange(24).reshape(2, 2, 2, 3), kernel=(2, 3), num_filter=2, stride=(1, 2), "
        "dilate=(2, 1), pad=(1, 2), no_bias=True"
    ),
    "c[None, None], np.ones((1, 1, 2, 2, 2)), kernel=(2, 2, 2), num_filter=1, no_bias=True",
    "c.astype('float16'), np.ones((1, 3, 2), 'float16'), kernel=(2,), num_filter=1, no_bias=True",
    "c, np.ones((1, 2, 4)), kernel=(2,), num_filter=1, no_bias=True, layout='NWC'",
    "c[:0], np.ones((1, 3, 2)), kernel=(2,), num_filter=1, no_bias=True",
]
_DECONVOLVED = [
    "c, np.arange(12).reshape(3, 2, 2), kernel=(2,), num_filter=2, stride=(2,), adj=(1,)",
    (
        "c[None], np.ones((2, 1, 3, 3)), np.arange(2), kernel=(3, 3), num_filter=2, num_group=2, "
        "pad=(1, 1), stride=(2, 1), no_bias=False"
    ),
]
_POOLED = [
    "c, kernel=(2,)",
    "c, kernel=(2,), stride=(3,), pad=(1,), pooling_convention='full'",
    "c[None], kernel=(2, 3), stride=(1, 2), pooling_convention='full'",
    "c[None], kernel=(3, 2), pad=(1, 1), pool_type='avg'",
    "c[None], kernel=(3, 2), pad=(1, 1), pool_type='avg', count_include_pad=False",
    "c[None], kernel=(1, 1), global_pool=True, pool_type='avg'",
    "c[None], kernel=(2, 2), pool_type='sum', layout='NHWC'",
    "c[None], kernel=(2, 2), pool_type='lp', p_value=2",
    "n.reshape(1, 1, 3), kernel=(2,)",
    "c.astype('float16'), kernel=(3,)",
]


def _windows() -> list[str]:
    """Operations that slide over the axes of space."""
    convolved = [f"npx.convolution({arguments})" for arguments in _CONVOLVED]
    deconvolved = [f"npx.deconvolution({arguments})" for arguments in _DECONVOLVED]
    return [*convolved, *deconvolved, *(f"npx.pooling({arguments})" for arguments in _POOLED)]


# Only element type and shape are compared: the numbers are drawn in other ways.
DRAWN = [
    text.strip()
    for text in """
    np.random.uniform(size=(2, 3)); np.random.uniform(); np.random.normal(0, 1, (2,))
    np.random.randn(2, 3); np.random.rand(2); np.random.randint(0, 5, (2, 2))
    np.random.uniform(0, 1, 3, dtype='float64'); np.random.exponential(1.0, (2,))
    np.random.gamma(2.0, 1.0, (3,)); np.random.beta(2.0, 2.0, (2,)); np.random.choice(5, 3)
    np.random.multinomial(10, [0.2, 0.3, 0.5])
    np.random.weibull(1.0, (2,)); np.random.pareto(1.0, (2,)); np.random.power(2.0, (2,))
    np.random.rayleigh(1.0, (2,)); np.random.gumbel(0.0, 1.0, (2,)); np.random.logistic(0, 1, (2,))
    np.random.lognormal(0.0, 1.0, (2,)); np.random.chisquare(2.0, (2,)); np.random.shuffle(v)
    """.replace("\n", ";").split(";")
    if text.strip()
]


def _split(block: str) -> list[str]:
    return [text.strip() for text in block.split(";") if text.strip()]


def expressions() -> list[str]:
    """Every expression whose value is compared, each once."""
    texts = (_OPERATORS, _CREATION, _SHAPES, _INDEXING, _MEMBERS, _NETWORK, _TEXT)
    written = map(_split, texts)
    return list(dict.fromkeys([*_functions(), *_reductions(), *_windows(), *chain(*written)]))
