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

    def to_numpy(self, x):
        return numpy.asarray(x)


class Heterosis(Numpy):
    def __init__(self):
        import heterosis

        self.np, self.npx, self.version = heterosis.np, heterosis.npx, heterosis.__version__
        self.wait, self.softmax = self.npx.waitall, self.npx.softmax


class Mxnet(Numpy):
    def __init__(self):
        numpy.bool = numpy.bool_  # MXNet 1.9.1 asks for it, NumPy 1.23 warns of it
        import mxnet

        mxnet.npx.set_np()
        self.np, self.npx, self.version = mxnet.np, mxnet.npx, mxnet.__version__
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

    for side in (64, 128, 256, 512, 1024, 2048):
        p, q = normal(side, side), normal(side, side)
        yield f"dot, {side} x {side}", lambda p=p, q=q: np.matmul(p, q), True


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
