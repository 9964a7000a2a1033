"""Models that are exported, each made by a function without arguments."""

import numpy

from heterosis import np
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK
from heterosis.backends.native.compile.compiler import usable_targets
from heterosis.gluon import nn, rnn


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    net.initialize()
    return net


def convolution_net():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 5, padding=2, activation="relu"), nn.MaxPool2D(2, 2), nn.BatchNorm())
    net.add(nn.Conv2D(16, 5, activation="sigmoid"), nn.AvgPool2D(2, 2), nn.Dense(10))
    net.initialize()
    return net


def recurrent_net():
    net = rnn.LSTM(12, input_size=8)
    net.initialize()
    return net


def even_recurrent_net():
    """Outputs as wide as the inputs: both are multiplied by their weights at once."""
    net = rnn.LSTM(32, input_size=32)
    net.initialize()
    return net


def embedding():
    net = nn.HybridSequential()
    net.add(nn.Embedding(20, 8), nn.LayerNorm(), nn.Dense(4, flatten=False))
    net.initialize()
    return net


def until_small(x):
    turns = np.zeros(())
    while (x * x).sum() > 1:
        x = x / 2
        turns = turns + 1
    return x, turns


INTEGERS = [
    np.array([0, 5, 2**15 - 1], dtype="int16"),
    np.array([0, 5, 2**16 - 1], dtype="uint16"),
    np.array([0, 5, 2**32 - 1], dtype="uint32"),
    np.array([0, 5, 2**53], dtype="uint64"),  # as far as numbers of every language go
]


def quotients(*arrays):
    return tuple(x // 3 + x % 7 for x in arrays)


def without_elements(x):
    return x + 1, x.sum(axis=0), x.sum()


def random(*shape):
    return np.array(numpy.random.default_rng(0).normal(size=shape).astype("float32"))


def runnable_levels():
    """The kinds of processors whose code this one runs, the best first."""
    targets = {"x86-64-v4": AVX512, "x86-64-v3": AVX2, "x86-64": FALLBACK}
    return [level for level, target in targets.items() if target in usable_targets()]
