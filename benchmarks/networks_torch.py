"""The networks of the benchmarks in PyTorch. `NETWORKS` names them; parameters stand in the order
in which `networks_gluon` has them."""

from __future__ import annotations

import importlib
import sys
import warnings

import torch
from networks import INCEPTIONS, place, values_of
from torch import nn
from torch.nn import functional


def perceptron():
    """512-256-128-2."""
    return nn.Sequential(
        nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)
    )


def lenet():
    """Two convolutions, two dense layers, for one channel of 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip


# -- GoogLeNet ------------------------------------------------------------------------------------


def _convolution(before, channels, kernel):
    return nn.Sequential(nn.Conv2d(before, channels, kernel, 1, kernel // 2), nn.ReLU())


class Inception(nn.Module):
    """Four paths side by side, their channels joined."""

    def __init__(self, before, one, three, five, pooled):
        super().__init__()
        self.paths = nn.ModuleList([
            _convolution(before, one, 1),
            nn.Sequential(_convolution(before, three[0], 1), _convolution(three[0], three[1], 3)),
            nn.Sequential(_convolution(before, five[0], 1), _convolution(five[0], five[1], 5)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), _convolution(before, pooled, 1)),
        ])  # fmt: skip
        self.channels = one + three[1] + five[1] + pooled

    def forward(self, x):
        return torch.cat([path(x) for path in self.paths], 1)


def googlenet():
    """GoogLeNet (Szegedy and others, 2015) without the auxiliary outputs."""
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), _convolution(64, 64, 1),
        _convolution(64, 192, 3), nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    channels = 192
    for plan in INCEPTIONS:
        layers.append(Inception(channels, *plan) if plan else nn.MaxPool2d(3, 2, 1))
        channels = layers[-1].channels if plan else channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


# -- ResNet ---------------------------------------------------------------------------------------


def _basic(before, channels, stride):
    return nn.Sequential(
        nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
        nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels),
    )  # fmt: skip


def _bottleneck(before, channels, stride):
    inner = channels // 4
    return nn.Sequential(
        nn.Conv2d(before, inner, 1, stride), nn.BatchNorm2d(inner), nn.ReLU(),
        nn.Conv2d(inner, inner, 3, 1, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
        nn.Conv2d(inner, channels, 1), nn.BatchNorm2d(channels),
    )  # fmt: skip


class Residual(nn.Module):
    """A body, and its input beside it, made as small as the body's output where that is needed."""

    def __init__(self, body, before, channels, stride):
        super().__init__()
        self.body = body(before, channels, stride)
        self.shortcut = nn.Identity()
        if before != channels:
            shortcut = nn.Conv2d(before, channels, 1, stride, bias=False)
            self.shortcut = nn.Sequential(shortcut, nn.BatchNorm2d(channels))

    def forward(self, x):
        return functional.relu(self.body(x) + self.shortcut(x))


def _resnet(body, counts, widths):
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    before = 64
    for i, (count, channels) in enumerate(zip(counts, widths)):
        for j in range(count):
            layers.append(Residual(body, before, channels, 2 if i and not j else 1))
            before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


def resnet18():
    """ResNet-18 (He and others, 2015)."""
    return _resnet(_basic, (2, 2, 2, 2), (64, 128, 256, 512))


def resnet50():
    """ResNet-50, its strides in the first convolutions of the blocks, as in Gluon's zoo."""
    return _resnet(_bottleneck, (3, 4, 6, 3), (256, 512, 1024, 2048))


# -- MobileNet ------------------------------------------------------------------------------------


def _normalized(before, channels, kernel=1, stride=1, groups=1):
    padding = kernel // 2
    return [
        nn.Conv2d(before, channels, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(channels),
    ]


class Inverted(nn.Module):
    """Wide within, narrow between; the input added where it fits."""

    def __init__(self, before, channels, widening, stride):
        super().__init__()
        inner, self.fits = before * widening, stride == 1 and before == channels
        self.body = nn.Sequential(
            *_normalized(before, inner), nn.ReLU6(), *_normalized(inner, inner, 3, stride, inner),
            nn.ReLU6(), *_normalized(inner, channels),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x) + x if self.fits else self.body(x)


# Channels, widening, stride of the first, and how many.
_STAGES = (
    (16, 1, 1, 1), (24, 6, 2, 2), (32, 6, 2, 3), (64, 6, 2, 4), (96, 6, 1, 3), (160, 6, 2, 3),
    (320, 6, 1, 1),
)  # fmt: skip


def mobilenet():
    """MobileNetV2 (Sandler and others, 2018)."""
    layers, before = [*_normalized(3, 32, 3, 2), nn.ReLU6()], 32
    for channels, widening, stride, count in _STAGES:
        for j in range(count):
            layers.append(Inverted(before, channels, widening, 1 if j else stride))
            before = channels
    layers += [*_normalized(before, 1280), nn.ReLU6(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Conv2d(1280, 1000, 1, bias=False), nn.Flatten())


# -- sequences ------------------------------------------------------------------------------------


class Lstm(nn.Module):
    """One layer of 256 units; the outputs of all steps."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(256, 256)

    def forward(self, x):
        return self.lstm(x)[0]


def language_model():
    """The layer of 256 units, and 256 scores for each step."""
    return nn.Sequential(Lstm(), nn.Linear(256, 256))


class Attention(nn.Module):
    """Each place of a sequence looks at all places, or at none behind it, with several heads."""

    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        parts = self.project(x).reshape(batch, steps, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.merge(found.transpose(1, 2).reshape(batch, steps, width))


class EncoderLayer(nn.Module):
    """Attention and a network for each place, each added to its input and normalised."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.norm1 = Attention(width, heads), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.network(x))


def encoder():
    """Four layers, 256 wide, 8 heads."""
    return nn.Sequential(*(EncoderLayer(256, 8) for _ in range(4)))


class Bert(nn.Module):
    """BERT-base (Devlin and others, 2018) without its output layers, for a single sentence."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
        self.norm = nn.LayerNorm(768)
        self.layers = nn.Sequential(*(EncoderLayer(768, 12) for _ in range(12)))

    def forward(self, x):
        places = self.places(torch.arange(x.shape[1]))
        return self.layers(self.norm(self.words(x) + places))


class GptLayer(nn.Module):
    """Attention to what came before and a network for each place, of normalised inputs."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, causal=True)
        self.norm2 = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))


class Gpt(nn.Module):
    """A small GPT (Radford and others, 2018): 4 layers, 128 wide, 4 heads, for 65 characters."""

    def __init__(self):
        super().__init__()
        self.characters, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
        self.layers = nn.Sequential(*(GptLayer(128, 4) for _ in range(4)))
        self.norm, self.scores = nn.LayerNorm(128), nn.Linear(128, 65)

    def forward(self, x):
        places = self.places(torch.arange(x.shape[1]))
        return self.scores(self.norm(self.layers(self.characters(x) + places)))


NETWORKS = {
    f.__name__.lower(): f
    for f in (
        perceptron, lenet, googlenet, resnet18, resnet50, mobilenet, Lstm, language_model, encoder,
        Bert, Gpt,
    )
}  # fmt: skip


# -- what the benchmarks do with them -------------------------------------------------------------


def loaded(network):
    """The network of that name with the values that were written for it."""
    net = NETWORKS[network]()
    state = net.state_dict()
    names = [name for name in state if not name.endswith("num_batches_tracked")]
    values = values_of(network)
    found = {name: torch.from_numpy(value) for name, value in zip(names, values)}
    net.load_state_dict(found, strict=False)
    if len(names) != len(values):
        raise ValueError(f"{network}: {len(values)} values for {len(names)} parameters")
    return net


def write_onnx(key, case):
    """Write a case's network as ONNX."""
    net, x = loaded(case.network).eval(), torch.from_numpy(case.input())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net, (x,), place(key + ".onnx"), opset_version=17, dynamo=False, input_names=["x"]
        )


if __name__ == "__main__":
    benchmark, *keys = sys.argv[1:]
    cases = importlib.import_module(benchmark).CASES
    for key in keys:
        write_onnx(key, cases[key])
