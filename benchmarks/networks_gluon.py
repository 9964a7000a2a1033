"""The networks of the benchmarks in Gluon, for MXNet and, under its name, for Heterosis. `NETWORKS`
names them; parameters stand in the order in which `networks_torch` has them."""

from __future__ import annotations

import importlib
import math
import sys

import numpy
from mxnet import np, npx
from mxnet.gluon import model_zoo, nn, rnn
from networks import INCEPTIONS, first_value, place, values_of


def _sequence(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def perceptron():
    """512-256-128-2."""
    return _sequence(
        nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2)
    )


def lenet():
    """Two convolutions, two dense layers, for one channel of 28 x 28."""
    return _sequence(
        nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"), nn.MaxPool2D(2, 2),
        nn.Dense(500, activation="relu"), nn.Dense(10),
    )  # fmt: skip


# -- GoogLeNet ------------------------------------------------------------------------------------


def _convolution(channels, kernel):
    return nn.Conv2D(channels, kernel, 1, kernel // 2, activation="relu")


def _inception(one, three, five, pooled):
    """Four paths side by side, their channels joined."""
    net = nn.HybridConcurrent(axis=1)
    net.add(
        _convolution(one, 1),
        _sequence(_convolution(three[0], 1), _convolution(three[1], 3)),
        _sequence(_convolution(five[0], 1), _convolution(five[1], 5)),
        _sequence(nn.MaxPool2D(3, 1, 1), _convolution(pooled, 1)),
    )
    return net


def googlenet():
    """GoogLeNet (Szegedy and others, 2015) without the auxiliary outputs."""
    return _sequence(
        nn.Conv2D(64, 7, 2, 3, activation="relu"), nn.MaxPool2D(3, 2, 1), _convolution(64, 1),
        _convolution(192, 3), nn.MaxPool2D(3, 2, 1),
        *(_inception(*plan) if plan else nn.MaxPool2D(3, 2, 1) for plan in INCEPTIONS),
        nn.GlobalAvgPool2D(), nn.Dense(10),
    )  # fmt: skip


# -- the zoo --------------------------------------------------------------------------------------

resnet18 = model_zoo.vision.resnet18_v1
resnet50 = model_zoo.vision.resnet50_v1
mobilenet = model_zoo.vision.mobilenet_v2_1_0


# -- sequences ------------------------------------------------------------------------------------


def lstm():
    """One layer of 256 units; the outputs of all steps."""
    return rnn.LSTM(256, input_size=256)


class LanguageModel(nn.HybridBlock):
    """The layer of 256 units, and 256 scores for each step, for 32 sequences."""

    def __init__(self):
        super().__init__()
        self.lstm, self.scores = lstm(), nn.Dense(256, flatten=False, in_units=256)

    def hybrid_forward(self, F, x):
        start = F.np.zeros((1, 32, 256))  # MXNet needs its shape to compile the layer
        outputs, _ = self.lstm(x, [start, start])
        return self.scores(outputs)


class Attention(nn.HybridBlock):
    """Each place of a sequence looks at all places, or at none behind it, with several heads."""

    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.project = nn.Dense(3 * width, flatten=False, in_units=width)
        self.merge = nn.Dense(width, flatten=False, in_units=width)

    def forward(self, x):
        batch, steps, width = x.shape
        parts = self.project(x).reshape(batch, steps, 3, self.heads, width // self.heads)
        query, key, value = (parts[:, :, i].swapaxes(1, 2) for i in range(3))
        scores = np.matmul(query, key.swapaxes(2, 3)) * (width // self.heads) ** -0.5
        if self.causal:
            scores = scores + (np.tril(np.ones((steps, steps))) - 1) * 1e9
        found = np.matmul(npx.softmax(scores), value)
        return self.merge(found.swapaxes(1, 2).reshape(batch, steps, width))


class EncoderLayer(nn.HybridBlock):
    """Attention and a network for each place, each added to its input and normalised."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(in_channels=width)
        self.network = _sequence(
            nn.Dense(4 * width, flatten=False, in_units=width), nn.GELU(),
            nn.Dense(width, flatten=False, in_units=4 * width),
        )  # fmt: skip
        self.norm2 = nn.LayerNorm(in_channels=width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.network(x))


def encoder():
    """Four layers, 256 wide, 8 heads."""
    return _sequence(*(EncoderLayer(256, 8) for _ in range(4)))


class Bert(nn.HybridBlock):
    """BERT-base (Devlin and others, 2018) without its output layers, for a single sentence."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
        self.norm = nn.LayerNorm(in_channels=768)
        self.layers = _sequence(*(EncoderLayer(768, 12) for _ in range(12)))

    def forward(self, x):
        places = self.places(np.arange(x.shape[1], dtype="int32"))
        return self.layers(self.norm(self.words(x) + places))


class GptLayer(nn.HybridBlock):
    """Attention to what came before and a network for each place, of normalised inputs."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(in_channels=width)
        self.attention = Attention(width, heads, causal=True)
        self.norm2 = nn.LayerNorm(in_channels=width)
        self.network = _sequence(
            nn.Dense(4 * width, flatten=False, in_units=width), nn.GELU(),
            nn.Dense(width, flatten=False, in_units=4 * width),
        )  # fmt: skip

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))


class Gpt(nn.HybridBlock):
    """A small GPT (Radford and others, 2018): 4 layers, 128 wide, 4 heads, for 65 characters."""

    def __init__(self):
        super().__init__()
        self.characters, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
        self.layers = _sequence(*(GptLayer(128, 4) for _ in range(4)))
        self.norm = nn.LayerNorm(in_channels=128)
        self.scores = nn.Dense(65, flatten=False, in_units=128)

    def forward(self, x):
        places = self.places(np.arange(x.shape[1], dtype="int32"))
        return self.scores(self.norm(self.layers(self.characters(x) + places)))


NETWORKS = {
    "perceptron": perceptron, "lenet": lenet, "googlenet": googlenet, "resnet18": resnet18,
    "resnet50": resnet50, "mobilenet": mobilenet, "lstm": lstm, "language_model": LanguageModel,
    "encoder": encoder, "bert": Bert, "gpt": Gpt,
}  # fmt: skip


# -- what the benchmarks do with them -------------------------------------------------------------


def loaded(network):
    """The network of that name with the values that were written for it."""
    net, values = NETWORKS[network](), values_of(network)
    net.initialize()
    parameters = list(net.collect_params().values())
    for parameter, value in zip(parameters, values):
        parameter.set_data(np.array(value, dtype="float32"))
    if len(parameters) != len(values):
        raise ValueError(f"{network}: {len(values)} values for {len(parameters)} parameters")
    return net


def write_values(case):
    """Write first values for a case's network; its floating-point operations for an input."""
    net = NETWORKS[case.network]()
    net.initialize()
    counted = []
    net.apply(lambda layer: layer.register_forward_hook(_counter(counted)))
    net(np.array(case.input(), dtype="int32" if case.words else "float32"))
    generator = numpy.random.default_rng(0)
    found = net.collect_params().items()
    values = [first_value(name, tuple(p.shape), generator) for name, p in found]
    numpy.savez(place(case.network + ".npz"), *values)
    return sum(counted)


def _counter(counted):
    """A hook that counts multiplications and additions of matrix products and convolutions."""
    return lambda layer, inputs, output: counted.append(2 * _products(layer, inputs[0], output))


def _products(layer, x, output):
    if isinstance(layer, nn.Conv2D | nn.Dense):
        return output.size * math.prod(layer.weight.shape[1:])
    if isinstance(layer, rnn.LSTM):
        weights = (layer.l0_i2h_weight, layer.l0_h2h_weight)
        return x.shape[0] * x.shape[1] * sum(math.prod(w.shape) for w in weights)
    return 2 * x.shape[1] * x.size if isinstance(layer, Attention) else 0


if __name__ == "__main__":
    benchmark, *keys = sys.argv[1:]
    cases = importlib.import_module(benchmark).CASES
    for key in keys:
        print(key, write_values(cases[key]))
