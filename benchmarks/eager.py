"""Imperative operations against NumPy, PyTorch and MXNet: python benchmarks/eager.py"""

from __future__ import annotations

import numpy
import runner

_MILLION = 1 << 20


class Numpy:
    """What a case needs of a library; the others override what they do differently."""

    def __init__(self):
        self.np, self.version = numpy, numpy.__version__

    def array(self, values):
        return self.np.array(values)

    def wait(self):
        """Until all results are computed."""

    def softmax(self, x):
        shifted = self.np.exp(x - self.np.max(x, axis=-1, keepdims=True))
        return shifted / self.np.sum(shifted, axis=-1, keepdims=True)

    def sort(self, x):
        return self.np.sort(x)

    def rows(self, x, places):
        return self.np.take(x, places, axis=0)

    def turned(self, x):
        return x.T.copy()

    def to_numpy(self, x):
        return numpy.asarray(x)


class Layers:
    """What NumPy has none of, as Gluon has it."""

    def convolution(self, x, filters, stride):
        count, _, *taps = filters.shape
        return self.npx.convolution(
            x, filters, kernel=tuple(taps), stride=(stride, stride), pad=(1, 1), num_filter=count,
            no_bias=True,
        )  # fmt: skip

    def pooling(self, x):
        return self.npx.pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")

    def gradient(self, function, x, y):
        """What computes a function of two variables, and goes back through it."""
        x.attach_grad()
        y.attach_grad()

        def call():
            with self.autograd.record():
                total = function(self.np, x, y).sum()
            total.backward()
            return x.grad

        return call


class Heterosis(Layers, Numpy):
    def __init__(self):
        import heterosis

        self.np, self.npx, self.version = heterosis.np, heterosis.npx, heterosis.__version__
        self.autograd = heterosis.autograd
        self.wait, self.softmax = self.npx.waitall, self.npx.softmax


class Mxnet(Layers, Numpy):
    def __init__(self):
        numpy.bool = numpy.bool_  # MXNet 1.9.1 asks for it, NumPy 1.23 warns of it
        import mxnet

        mxnet.npx.set_np()
        self.np, self.npx, self.version = mxnet.np, mxnet.npx, mxnet.__version__
        self.autograd = mxnet.autograd
        self.wait, self.softmax = self.npx.waitall, self.npx.softmax

    def to_numpy(self, x):
        return x.asnumpy()


class Torch(Numpy):
    def __init__(self):
        import torch

        torch.set_grad_enabled(False)
        self.np, self.version = torch, torch.__version__

    def array(self, values):
        return self.np.from_numpy(numpy.asarray(values))

    def softmax(self, x):
        return self.np.softmax(x, -1)

    def sort(self, x):
        return self.np.sort(x)[0]

    def rows(self, x, places):
        return self.np.index_select(x, 0, places)

    def turned(self, x):
        return x.T.contiguous()

    def convolution(self, x, filters, stride):
        return self.np.nn.functional.conv2d(x, filters, stride=stride, padding=1)

    def pooling(self, x):
        return self.np.nn.functional.max_pool2d(x, 2)

    def gradient(self, function, x, y):
        x.requires_grad_()
        y.requires_grad_()

        def call():
            x.grad = y.grad = None
            with self.np.enable_grad():
                total = function(self.np, x, y).sum()
            total.backward()
            return x.grad

        return call


LIBRARIES = {"heterosis": Heterosis, "numpy": Numpy, "torch": Torch, "mxnet": Mxnet}


def _ten_operations(np, x, y):
    a = x + y
    b = a * x
    c = b - y
    d = np.tanh(c)
    e = d + 1
    f = e * e
    g = np.exp(-f)
    return np.maximum(g, x) + a


def cases(library):
    """(name, function without arguments, wait after every call)."""
    np, generator = library.np, numpy.random.default_rng(0)

    def normal(*shape):
        return library.array(generator.normal(size=shape).astype("float32"))

    x, y = normal(1, 2), normal(1, 2)
    yield "x + 1 on (1, 2), queued", lambda: x + 1, False
    yield "x + 1 on (1, 2), waited for", lambda: x + 1, True
    yield "ten operations on (1, 2), queued", lambda: _ten_operations(np, x, y), False
    yield "ten operations on (1, 2), waited for", lambda: _ten_operations(np, x, y), True

    a, b = normal(_MILLION), normal(_MILLION)
    yield "x * 2 + 1, 1M", lambda: a * 2 + 1, True
    yield "x + y, 1M", lambda: a + b, True
    yield "exp, 1M", lambda: np.exp(a), True
    yield "tanh, 1M", lambda: np.tanh(a), True
    yield "sum, 1M", lambda: a.sum(), True
    table = normal(1000, 1000)
    yield "softmax, 1000 x 1000", lambda: library.softmax(table), True

    positive = library.array(generator.uniform(0.1, 3, _MILLION).astype("float32"))
    yield "log, 1M", lambda: np.log(positive), True
    yield "power, 1M", lambda: positive**a, True
    yield "arctan2, 1M", lambda: np.arctan2(a, b), True
    yield "argmax of rows, 1000 x 1000", lambda: np.argmax(table, 1), True
    yield "cumsum of rows, 1000 x 1000", lambda: np.cumsum(table, 1), True
    few = normal(512)
    yield "sort, 512", lambda: library.sort(few), True
    yield "sort of rows, 1000 x 1000", lambda: library.sort(table), True
    above = table > 0
    yield "x[x > 0], 1000 x 1000", lambda: table[above], True
    places = library.array(generator.integers(0, 1000, 4096))
    yield "4096 rows of 1000 x 1000", lambda: library.rows(table, places), True
    yield "transposed copy, 1000 x 1000", lambda: library.turned(table), True
    for side in (64, 128, 256, 512, 1024, 2048):
        p, q = normal(side, side), normal(side, side)
        yield f"dot, {side} x {side}", lambda p=p, q=q: np.matmul(p, q), True

    if hasattr(library, "convolution"):
        image, filters = normal(8, 32, 28, 28), normal(64, 32, 3, 3)
        for stride in (1, 2):
            title = f"64 filters of 3 x 3 on 8 x 32 x 28 x 28, stride {stride}"
            yield title, lambda s=stride: library.convolution(image, filters, s), True
        yield "largest of 2 x 2, 8 x 32 x 28 x 28", lambda: library.pooling(image), True
        gradient = library.gradient(_ten_operations, normal(8, 8), normal(8, 8))
        yield "ten operations on (8, 8), and their gradients", gradient, True


def measure(contender: str) -> dict:
    """Seconds and a figure of the result, for every case."""
    library = LIBRARIES[contender]()
    found = {}
    for name, call, waits in cases(library):
        value = float(numpy.abs(library.to_numpy(call())).mean())
        found[name] = _seconds(call, library.wait, waits), value
    return {"version": library.version, "cases": found}


def _seconds(call, wait, waits: bool) -> float:
    if not waits:
        return runner.seconds_a_call(call, wait)

    def call_and_wait():
        result = call()
        wait()
        return result

    return runner.seconds_a_call(call_and_wait, wait)


if __name__ == "__main__":
    runner.main(__file__, measure, contenders=tuple(LIBRARIES))
