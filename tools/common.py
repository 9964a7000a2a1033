"""The operations whose machine code comes with the package: all that small programs call.

Code is for any size: what tells two calls apart are the operation, element types, which strides
are one or zero, and the attributes. Elements do not matter, so that all are ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from heterosis import autograd, gluon, np, npx
from heterosis.gluon import nn, rnn
from heterosis.ir.types import is_float
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, SEQUENCE

_TYPES = ("float32", "float64", "int64", "int32", "bool")
_SAMPLED = 5  # cases of each operation, of all that its tests have
_BINARY = [
    "add", "subtract", "multiply", "true_divide", "power", "maximum", "minimum", "less",
    "less_equal", "greater", "greater_equal", "equal", "not_equal",
]  # fmt: skip
_IN_PLACE = ["__iadd__", "__isub__", "__imul__", "__itruediv__"]
_FUNCTIONS = ["exp", "log", "sqrt", "square", "tanh", "sin", "cos", "floor", "sign", "reciprocal"]
_REDUCTIONS = ["sum", "mean", "max", "min", "prod", "std", "var", "argmax", "argmin"]
# Which kernel multiplies depends on sizes: rows, depth, columns.
_PRODUCTS = (
    (6, 7, 3),
    (200, 8, 16),
    (8, 200, 16),
    (200, 16, 1),
    (1, 64, 32),
    (64, 64, 64),
    (600, 64, 300),
    (300, 2, 1),  # kernels for so many columns alone
    (300, 3, 1),
    (2, 300, 1),
    (3, 300, 1),
    (64, 64, 4096),  # a strip of columns for each thread of whatever machine this is built on
)
_DENSE = (
    ((4, 5), 3), ((64, 128), 10), ((64, 256), 128), ((1, 256), 128),  # inputs, units
    ((64, 800), 500), ((64, 500), 10), ((256, 784), 256), ((256, 256), 10), ((256, 120), 84),
    ((10, 2), 1),
)  # fmt: skip
_IMAGES = (
    ((4, 1, 28, 28), 20), ((2, 3, 32, 32), 16), ((2, 32, 14, 14), 32),  # inputs, channels
    ((64, 1, 28, 28), 6), ((64, 20, 12, 12), 50),
)  # fmt: skip
_KERNELS = ((5, 1, 0), (5, 1, 2), (3, 1, 0), (3, 2, 1), (1, 1, 0), (1, 2, 0))  # stride, padding


def call_all() -> None:
    """Call them."""
    for record in REGISTRY.values():
        if record.samples is not None:
            _call_samples(record)
    for dtype in _TYPES:
        _arrange(dtype)
        if dtype != "bool":
            _calculate(dtype)
    _draw()
    for layer, shape in _layers():
        _train(layer, shape)
    for loss, labels in _losses():
        _lose(loss, labels)
    for optimizer in ("sgd", "nag", "adam", "adamw", "rmsprop", "adagrad", "adadelta"):
        _optimize(optimizer)


# -- every operation, as its tests call it ---------------------------------------------------------


def _call_samples(record) -> None:
    """Some of the cases, spread over all of them, in the most common type."""
    if _TYPES[0] in record.samples.dtypes:
        cases = record.samples.cases
        for case in cases[:: -(-len(cases) // _SAMPLED)]:
            _call(record, case, _TYPES[0])


def _call(record, case, dtype: str) -> None:
    names = [p.name for p, use in zip(record.parameters, record.uses) if use in (ARRAY, SEQUENCE)]
    arrays = [_argument(record, i, shape, dtype) for i, shape in enumerate(case.shapes)]
    record.operation(**dict(zip(names, arrays)), **case.attributes)


def _argument(record, position: int, shape, dtype: str):
    if shape is None:
        return 1.0 if is_float(dtype) else True if dtype == "bool" else 1
    if isinstance(shape, list):
        return [_argument(record, position, one, dtype) for one in shape]
    if position in record.samples.integer_arrays:
        return np.array(numpy.zeros(shape, "int64"))
    return np.array(numpy.ones(shape, dtype))


# -- what is written with operators and methods ----------------------------------------------------


def _layouts(dtype: str) -> Iterator:
    """A matrix as it is made, a row and a number that broadcast with it; in the most common type
    also a column, a matrix transposed, and a part of one."""
    yield np.ones((6, 7), dtype)
    yield np.ones((7,), dtype)
    yield np.ones((), dtype)
    if dtype == _TYPES[0]:
        yield np.ones((6, 1), dtype)
        yield np.ones((7, 6), dtype).T
        yield np.ones((12, 9), dtype)[3:9, 1:8]


def _arrange(dtype: str) -> None:
    a, indices = np.ones((6, 7), dtype), np.zeros(3, "int64")
    for one in _layouts(dtype):
        one.copy()
        a[...] = one
        np.ones_like(one), np.zeros_like(one)
    for one in (a, np.ones((), dtype)):
        for other in (*_TYPES, "uint8"):
            one.astype(other)
    a[0] = 1
    a[:, 1] = 0
    a[1:3] = a[2:4]
    a[indices], a[::-1].copy(), a[a > 0], a.T.reshape(-1), a.T.flatten()
    for axis in (0, 1):
        np.concatenate([a, a], axis=axis), np.stack([a, a], axis=axis)
        np.concatenate([a, a, a], axis=axis), np.stack([a, a, a], axis=axis)
        np.repeat(a, 2, axis=axis), np.flip(a, axis).copy(), np.roll(a, 1, axis)
        np.take(a, indices, axis=axis)
    for parts in ((a, a[:, :2], a[:, :1]), (a[:, :1],) * 3, (a[:, :1],) * 2, (a, a[:, :1])):
        np.concatenate([part.copy() for part in parts], axis=1)
    np.tile(a, (2, 3)), np.zeros(3, dtype), np.ones(3, dtype), np.full(3, 1, dtype)
    np.eye(3, dtype=dtype)


def _calculate(dtype: str) -> None:
    for one in _layouts(dtype):
        _combine(one)
        _reduce(one)
    a = np.ones((6, 7), dtype)
    np.arange(5, dtype=dtype), np.sort(a), np.argsort(a), np.cumsum(a), np.cumsum(a, axis=0)
    np.sort(a[0]), np.argsort(a[0]), np.cumsum(a[0])
    if dtype == _TYPES[0]:  # rows that are reduced a vector of them at a time
        many = np.ones((64, 7), dtype)
        _reduce(many)
        np.cumsum(many, axis=1), npx.softmax(many), npx.log_softmax(many)
    if is_float(dtype):
        np.linspace(0, 1, 5, dtype=dtype)
        for sizes in _PRODUCTS:
            _multiply(dtype, *sizes)


def _multiply(dtype: str, m: int, k: int, n: int) -> None:
    """Products of matrices, each as it is made and transposed, and with a vector."""
    for left in (np.ones((m, k), dtype), np.ones((k, m), dtype).T):
        for right in (np.ones((k, n), dtype), np.ones((n, k), dtype).T):
            np.dot(left, right)
        np.dot(left, np.ones(k, dtype))
    np.dot(np.ones(k, dtype), np.ones(k, dtype))


def _combine(one) -> None:
    """Operators with two sides, and functions of one."""
    a = np.ones((6, 7), one.dtype)
    numbers = (2, 2.0) if is_float(one.dtype.name) else (2,)
    for name in _BINARY:
        function = getattr(np, name)
        function(a, one), function(one, a), function(one, one)
        for number in numbers:
            function(one, number), function(number, one)
    for name in _IN_PLACE[: 2 + len(numbers)]:  # the last gives floats
        for other in (one, *numbers):
            getattr(a, name)(other)
    if len(numbers) > 1:
        for name in _FUNCTIONS:
            getattr(np, name)(one)
        npx.relu(one), npx.sigmoid(one)
        if one.ndim:
            npx.softmax(one), npx.log_softmax(one)
    np.where(one > 0, one, one), np.where(one > 0, one, np.zeros_like(one)), -one, abs(one)
    np.clip(one, 0, 1), one**2, one**3, one % 3, one // 2


def _reduce(one) -> None:
    for name in _REDUCTIONS:
        for axis in (None, *range(one.ndim)):
            getattr(np, name)(one, axis=axis)


def _draw() -> None:
    np.random.seed(0)
    for size in ((), (5,), (3, 4)):
        np.random.normal(0, 1, size=size), np.random.uniform(0, 1, size=size), np.random.rand(*size)
        np.random.normal(0, 0.1, size=size), np.random.uniform(-1, 1, size=size)
        np.random.randint(0, 10, size=size)
    np.random.permutation(5), np.random.shuffle(np.arange(5)), np.random.choice(5, 3)


# -- networks, forwards and backwards --------------------------------------------------------------


def _layers() -> Iterator:
    """Layers, and the shape of what goes in."""
    for shape, units in _DENSE:
        yield nn.Dense(units), shape
        yield nn.Dense(units, use_bias=False), shape
    for activation in ("relu", "sigmoid", "tanh"):
        yield nn.Dense(3, activation=activation), (4, 5)
        yield nn.Conv2D(3, 3, padding=1, activation=activation), (2, 4, 8, 8)
    yield nn.Dense(3), (4, 5, 2)
    yield nn.Dense(3, flatten=False), (4, 5, 2)
    for shape, channels in _IMAGES:
        for kernel, stride, padding in _KERNELS:
            yield nn.Conv2D(channels, kernel, stride, padding), shape
            yield nn.Conv2D(channels, kernel, stride, padding, use_bias=False), shape
    for pooling in (nn.MaxPool2D, nn.AvgPool2D):
        for size, stride, padding in ((2, 2, 0), (3, 2, 0), (3, 2, 1)):
            yield pooling(size, stride, padding), (2, 4, 8, 8)
    yield nn.GlobalAvgPool2D(), (2, 4, 8, 8)
    yield nn.BatchNorm(), (4, 5)
    yield nn.BatchNorm(), (2, 4, 8, 8)
    yield nn.LayerNorm(), (4, 5)
    yield nn.LayerNorm(), (2, 4, 5)
    yield nn.Dropout(0.5), (4, 5)
    yield nn.Dropout(0.5), (2, 4, 8, 8)
    yield nn.Flatten(), (2, 4, 8, 8)
    for activation in ("relu", "sigmoid", "tanh", "softrelu"):
        yield nn.Activation(activation), (4, 5)
    for layer in (nn.LeakyReLU(0.1), nn.GELU(), nn.ELU(), nn.SiLU()):
        yield layer, (4, 5)
    for layer in (rnn.LSTM(4), rnn.GRU(4), rnn.RNN(4)):
        yield layer, (3, 2, 5)


def _train(layer, shape) -> None:
    """As the first layer, whose inputs need no gradients, and as one behind others."""
    layer.initialize()
    first, behind = np.ones(shape), np.ones(shape)
    behind.attach_grad()
    layer(first)
    for x in (first, behind) if layer.collect_params() else (behind,):
        with autograd.record():
            y = layer(x)
        y.backward()


def _losses() -> Iterator:
    """Losses, and labels for scores of three classes."""
    for name in ("L2Loss", "L1Loss", "SigmoidBinaryCrossEntropyLoss", "HuberLoss", "HingeLoss"):
        yield getattr(gluon.loss, name)(), np.ones((4, 3))
    for dtype in ("float32", "int32", "int64"):
        for count in (4, 200):
            yield gluon.loss.SoftmaxCrossEntropyLoss(), np.ones((count,), dtype)


def _lose(loss, labels) -> None:
    for classes in (3, 10) if labels.ndim == 1 else (3,):
        _lose_of(loss, labels, np.ones((labels.shape[0], classes)))


def _lose_of(loss, labels, scores) -> None:
    scores.attach_grad()
    for finish in (lambda value: value, lambda value: value.mean(), lambda value: value.sum()):
        with autograd.record():
            value = finish(loss(scores, labels))
        value.backward()
    if labels.ndim == 1:
        _classify(scores, labels)


def _classify(scores, labels) -> None:
    chosen = scores.argmax(axis=1)
    npx.softmax(scores), npx.log_softmax(scores), npx.one_hot(labels, scores.shape[1])
    (chosen == labels).mean(), (chosen.astype(labels.dtype) == labels).sum()


def _optimize(name: str) -> None:
    options = [{}, {"wd": 0.01}] + ([{"momentum": 0.9}] if name in ("sgd", "nag") else [])
    for more in options:
        net = nn.Dense(3, in_units=2)
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), name, {"learning_rate": 0.1, **more})
        with autograd.record():
            value = net(np.ones((4, 2)))
        value.backward()
        trainer.step(4)
