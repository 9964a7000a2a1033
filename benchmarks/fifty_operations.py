"""A small ordinary program that touches about fifty operations; prints what compiling took."""

import json
import time

_start = time.perf_counter()

from heterosis import np, npx
from heterosis.backends.native.compile import object_cache
from heterosis.ops import REGISTRY

_imported = time.perf_counter()


def data():
    """A regression problem with some noise."""
    np.random.seed(0)
    x = np.random.normal(0, 1, size=(200, 8))
    w = np.arange(8).reshape(8, 1) / 8
    y = np.dot(x, w) + np.random.uniform(-0.1, 0.1, size=(200, 1))
    return x, y


def prepare(x):
    """Standardised, clipped, with a column of ones and squares beside."""
    x = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)
    x = np.clip(x, -2, 2)
    squares = np.square(x[:, :2])
    return np.concatenate([x, squares, np.ones((x.shape[0], 1))], axis=1)


def train(x, y, steps=5):
    """A hidden layer of tanh units by gradient descent, derived by hand."""
    w = np.random.normal(0, 0.1, size=(x.shape[1], 16))
    v = np.zeros((16, 1))
    for _ in range(steps):
        hidden = np.tanh(np.dot(x, w))
        error = np.dot(hidden, v) - y
        dv = np.dot(hidden.T, error) / len(x)
        dw = np.dot(x.T, np.dot(error, v.T) * (1 - hidden**2)) / len(x)
        v -= 0.1 * dv
        w -= 0.1 * dw
    return np.dot(np.tanh(np.dot(x, w)), v)


def describe(y):
    """Statistics, order and conditions."""
    order = np.argsort(y.reshape(-1))
    ranked = np.sort(y.reshape(-1))
    above = np.where(y > 0, y, np.zeros_like(y))
    facts = [y.max(), y.min(), y.sum(), y.std(), np.abs(y).mean(), np.cumsum(ranked)[-1]]
    facts += [above.sum(), np.log(np.exp(ranked).sum()), np.argmax(y), np.argmin(y)]
    facts += [(order >= 0).sum(), np.floor(ranked[-1]), np.maximum(y, 0).sum()]
    return np.stack([fact.astype("float32") for fact in facts])


def classify(y):
    """Probabilities of three classes and their entropy."""
    scores = np.concatenate([y, -y, np.zeros_like(y)], axis=1)
    probabilities = npx.softmax(npx.relu(scores))
    picked = probabilities.argmax(axis=1)
    hot = npx.one_hot(picked, 3)
    entropy = -(probabilities * np.log(probabilities)).sum(axis=1)
    return hot.sum(axis=0), entropy.mean(), np.sin(entropy) + np.cos(entropy)


def main():
    x, y = data()
    prediction = train(prepare(x), y)
    results = [describe(prediction), *classify(prediction), np.linspace(0, 1, 5), np.eye(3)]
    results += [np.expand_dims(prediction, 0), np.tile(prediction[:2], (1, 3)), prediction[::-1]]
    return [result.asnumpy() for result in results]


main()
_end = time.perf_counter()
counters = object_cache.default_cache().counters
print(
    json.dumps(
        {
            "operations": sum(record.operation.plans > 0 for record in REGISTRY.values()),
            "compiles": counters.compiles,
            "disk_hits": counters.disk_hits,
            "compile_seconds": counters.compile_seconds,
            "disk_seconds": counters.disk_seconds,
            "import": _imported - _start,
            "program": _end - _imported,
        }
    )
)
