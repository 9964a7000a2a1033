"""Functions of one array that MXNet can compute from our symbols: (text, shape of the input)."""

FUNCTIONS = [
    (f"nn.HybridLambda(lambda F, x: {text})", (2, 4))
    for text in (
        "x[:, 1:3]", "x[0]", "x[:, None, ::2]", "x[..., -1]", "x[::-1]", "x[:, -2:]",
        "x[:, F.np.array([0, 2])]", "x.reshape(-1, 2)", "x.reshape(x.shape[0], 2, -1)", "x.T",
        "x.sum(axis=1)", "x.mean()", "x.max(axis=0, keepdims=True)", "x.min()", "x.prod(axis=1)",
        "x.astype('int32') + 1", "F.np.concatenate([x, x], axis=1)", "F.np.expand_dims(x, 0)",
        "F.npx.softmax(x)", "F.npx.log_softmax(x, axis=0)", "x.copy()", "F.stop_gradient(x)",
        "x ** 2", "2 ** x", "1 - x", "3 / (x + 2)", "x * 2.5 - 1", "(x > 0) * 1.0", "(0.5 >= x) * 2",
        "F.np.dot(x, x.T)", "x.flatten()", "F.np.split(x, 2, axis=1)[1]",
        "F.np.split(x, [1, 3], axis=1)[1]", "-x", "abs(x)", "F.np.where(x > 0, x, -x)",
        "F.np.where(x > 0, x, 0.0)", "F.np.where(x > 0, 1.0, x)", "F.np.where(x > 0, 1.0, 2.0)",
        "F.np.zeros((2, 4)) + x", "F.np.arange(4) * x", "x.clip(0, 0.5)", "F.np.clip(x, None, 0.25)",
        "F.np.stack([x, x], axis=1)", "F.np.ones_like(x) + x", "x @ x.T", "x.swapaxes(0, 1)",
        "F.np.pad(x, ((1, 1), (0, 0)))", "F.np.tile(x, (2, 1))", "F.np.repeat(x, 2, axis=0)",
        "x.var(axis=1)", "x.std()", "x.take(F.np.array([0, 1]), axis=1)",
        "F.npx.pick(x, F.np.array([0, 3]))", "F.npx.one_hot(F.np.array([0, 2]), 4) + x",
        "F.np.full((4,), 3.0) + x", "F.np.argmax(x, axis=1)", "F.np.exp(x)", "F.np.log(x + 2)",
        "F.npx.sigmoid(x)", "F.npx.relu(x)", "F.npx.erf(x)", "F.np.sqrt(abs(x))", "x + F.np.array(2.0)",
        "F.np.maximum(x, 0.1)", "F.np.minimum(0.2, x)", "F.np.linspace(0, 1, 4) + x",
        "F.npx.topk(x, k=2)", "F.np.squeeze(x[:1])", "F.np.broadcast_to(x, (3, 2, 4))",
        "F.np.transpose(x, (1, 0))", "F.np.flip(x, 1)", "F.np.cumsum(x, axis=1)",
        "F.npx.smooth_l1(x)", "F.npx.arange_like(x, axis=1)", "F.npx.batch_dot(x[None], x.T[None])",
        "F.np.einsum('ij,kj->ik', x, x)", "F.np.tensordot(x, x.T, axes=1)", "F.np.tril(x)",
        "F.npx.leaky_relu(x, act_type='gelu')", "F.npx.activation(x, 'tanh')",
        "F.npx.sequence_mask(x, F.np.array([1, 2, 1, 1]), True)", "F.np.roll(x, 1, axis=1)",
        "F.SliceChannel(x, num_outputs=2)[0]", "F.reshape(x, shape=(0, -1, 2))", "F.L2Normalization(x)",
        "F.npx.reshape(x, (-2, 2, -1))", "F.np.vstack([x, x])", "F.np.hstack([x, x])",
        "F.np.moveaxis(x, 0, 1)", "F.np.sign(x) * F.np.floor(x)", "F.np.logical_not(x > 0)",
        "F.np.linalg.norm(x)", "F.np.sin(x) / F.np.cos(x)",
        "F.np.outer(x[0], x[1])", "F.npx.dropout(x, 0.5)", "[x, x + 1, (x, x * 2)]",
        "F.np.sort(x, axis=1)", "F.np.argsort(x, axis=1)", "F.np.bitwise_not(x.astype('int32'))",
        "F.np.logical_and(x > 0, x < 0.5)", "x % 0.3", "F.np.mod(2, x + 2)",
    )
]  # fmt: skip
