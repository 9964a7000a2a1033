"""What watching costs a hybridized call: python benchmarks/guards.py

Functions on an array of two elements, so that little else takes time; calls are queued. Beside them
the network of mlp.py, whose layers are watched too.
"""

from __future__ import annotations

import runner


class Settings:
    """Ten numbers that a function reads."""

    def __init__(self):
        self.a = self.b = self.c = self.d = self.e = 1.0
        self.f = self.g = self.h = self.i = self.j = 1.0


def _cases():
    from mlp import perceptron, row

    import heterosis
    from heterosis import gluon, np

    x, settings = np.ones((1, 2)), Settings()

    def watched(y):
        s = settings
        return y * (s.a + s.b + s.c + s.d + s.e + s.f + s.g + s.h + s.i + s.j)

    nothing = heterosis.hybridize(lambda y: y * 10.0)
    ten = heterosis.hybridize(watched)
    other = gluon.nn.HybridSequential()

    def unrelated():
        other.epoch = 1
        return nothing(x)

    def unread():
        settings.unread = 1
        return ten(x)

    net, example = perceptron(gluon.nn, np.array), np.array(row())
    net.hybridize()
    yield "a function that reads nothing", lambda: nothing(x)
    yield "a function that reads ten numbers", lambda: ten(x)
    yield "the same, another attribute set at every turn", unread
    yield "the first, an unrelated block changed at every turn", unrelated
    yield "the network of mlp.py", lambda: net(example)


def measure(contender: str) -> dict:
    """Seconds and a figure of the result, for every case."""
    import heterosis
    from heterosis import npx

    found = {}
    for name, call in _cases():
        value = float(call().asnumpy().sum())
        found[name] = runner.seconds_a_call(call, npx.waitall), value
    return {"version": heterosis.__version__, "cases": found}


if __name__ == "__main__":
    runner.main(__file__, measure, contenders=("heterosis",))
