"""A small problem, its network, its data in several orders, and machines that fail."""

import random

import numpy

from heterosis import gluon, init, np
from heterosis.gluon import nn
from heterosis.gluon.contrib.estimator import BatchBegin
from heterosis.gluon.data import ArrayDataset, DataLoader

LOSS = gluon.loss.SoftmaxCrossEntropyLoss()
DRAWN = numpy.random.default_rng(7)
FEATURES = DRAWN.normal(size=(21, 6)).astype("float32")
LABELS = (FEATURES[:, 0] > FEATURES[:, 1]).astype("float32")


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(2))
    return net


def loader(kind="plain"):
    data = ArrayDataset(FEATURES, LABELS)
    if kind == "rollover":
        return DataLoader(data, 4, shuffle=True, last_batch="rollover")
    if kind == "reload":
        return DataLoader(data, 4, shuffle=True, auto_reload=True)
    if kind == "workers":
        noisy = data.transform_first(_noisy)
        return DataLoader(noisy, 4, shuffle=True, num_workers=1, auto_reload=True)
    if kind == "noisy":
        return DataLoader(data.transform_first(_noisy), 4, shuffle=True)
    return DataLoader(data, 4, shuffle=True)


def _noisy(x):
    """What transforms of one's own do: they draw from Python and from NumPy."""
    x = x + numpy.random.normal(0, 0.1, 6).astype("float32")
    return -x if random.random() < 0.1 else x


def validation():
    return DataLoader(ArrayDataset(FEATURES[:6], LABELS[:6]), 4)


def made(optimizer="adam", **settings):
    """A network and its trainer; what `np.random.seed` says, they are always the same."""
    net = network()
    net.initialize(init.Xavier())
    if not settings:
        settings = {"learning_rate": 0.02}
    return net, gluon.Trainer(net.collect_params(), optimizer, settings)


def seed(number):
    """Start all random numbers."""
    np.random.seed(number)
    numpy.random.seed(number)
    random.seed(number)


def everything(net, trainer):
    """All that training changes."""
    states = [(i, s) for i, s in sorted(trainer.updater.states.items())]
    leaves = [a for _, state in states for a in (state if isinstance(state, tuple) else (state,))]
    arrays = [p.data() for p in net._collect_params_with_prefix().values()]
    arrays += [a for a in leaves if a is not None]
    return [a.asnumpy() for a in arrays], trainer.optimizer.num_update, trainer.learning_rate


def assert_same(a, b):
    for mine, other in zip(a[0], b[0], strict=True):
        numpy.testing.assert_array_equal(mine, other)
    assert a[1:] == b[1:]


class Crash(Exception):
    """The machine fails."""


class CrashAt(BatchBegin):
    """Raises before the given batch."""

    def __init__(self, batch, error=Crash):
        self.left, self.error = batch, error

    def batch_begin(self, estimator, *args, **kwargs):
        self.left -= 1
        if self.left < 0:
            raise self.error


def run(net, trainer, data, folder=None, epochs=4, **given):
    return gluon.fit(
        net, data, loss=LOSS, trainer=trainer, epochs=epochs, validation=validation(),
        checkpoint=folder, progress=False, **given,
    )  # fmt: skip
