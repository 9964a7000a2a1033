"""Networks of many kinds in Gluon, small enough to read: `NETWORKS` names them. As a script, it
writes the parameters and the ONNX files of those that are named, where the benchmark reads them."""

from __future__ import annotations

import sys

from networks import place

from heterosis import initializer, np, npx
from heterosis.gluon import HybridBlock, nn, rnn
from heterosis.gluon.model_zoo import vision


def _sequence(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


# -- transformers and their like ------------------------------------------------------------------


class TransformerLayer(HybridBlock):
    """Attention and two dense layers, each behind a normalisation and added to its input."""

    def __init__(self, units, heads, is_causal=False):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.before, self.between = nn.LayerNorm(), nn.LayerNorm()
        self.projections = nn.Dense(3 * units, flatten=False)
        self.joined = nn.Dense(units, flatten=False)
        self.wide = nn.Dense(4 * units, flatten=False)
        self.narrow = nn.Dense(units, flatten=False)

    def forward(self, x):
        images, places, units = x.shape
        heads = self.projections(self.before(x)).reshape(images, places, 3 * self.heads, -1)
        q, k, v = np.split(heads.transpose(0, 2, 1, 3), 3, axis=1)
        seen = npx.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        x = x + self.joined(seen.transpose(0, 2, 1, 3).reshape(images, places, units))
        return x + self.narrow(npx.gelu(self.wide(self.between(x))))


class MixerLayer(HybridBlock):
    """Dense layers along places, then along channels (MLP-Mixer)."""

    def __init__(self, places, units):
        super().__init__()
        self.before, self.between = nn.LayerNorm(), nn.LayerNorm()
        self.along = _sequence(
            nn.Dense(units // 2, flatten=False), nn.GELU(), nn.Dense(places, flatten=False)
        )
        self.across = _sequence(
            nn.Dense(4 * units, flatten=False), nn.GELU(), nn.Dense(units, flatten=False)
        )

    def forward(self, x):
        x = x + self.along(self.before(x).transpose(0, 2, 1)).transpose(0, 2, 1)
        return x + self.across(self.between(x))


class Patches(HybridBlock):
    """An image of 224 x 224 in patches of 16 x 16, some layers for these, and their mean."""

    def __init__(self, units, *layers):
        super().__init__()
        self.patches = nn.Conv2D(units, 16, strides=16)
        self.layers, self.after = _sequence(*layers), nn.LayerNorm()
        self.classes = nn.Dense(1000)

    def forward(self, x):
        patches = self.patches(x)
        images, units = patches.shape[:2]
        places = patches.reshape(images, units, -1).transpose(0, 2, 1)
        return self.classes(self.after(self.layers(places)).mean(axis=1))


class Writer(HybridBlock):
    """A language model: what may follow each word."""

    def __init__(self, words, most, units, heads, layers):
        super().__init__()
        self.words, self.places = nn.Embedding(words, units), nn.Embedding(most, units)
        self.layers = _sequence(*[TransformerLayer(units, heads, True) for _ in range(layers)])
        self.after, self.next = nn.LayerNorm(), nn.Dense(words, flatten=False)

    def forward(self, x):
        places = self.places(np.arange(x.shape[1]))
        return self.next(self.after(self.layers(self.words(x) + places)))


class SelfAttention(HybridBlock):
    """One layer of attention of a sequence to itself."""

    def __init__(self, units, heads):
        super().__init__()
        self.attention = nn.MultiHeadAttention(units, heads)

    def forward(self, x):
        return self.attention(x, x, x)


# -- images ---------------------------------------------------------------------------------------


class ChannelNorm(HybridBlock):
    """A normalisation of every pixel's channels."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm()

    def forward(self, x):
        return self.norm(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


class NextBlock(HybridBlock):
    """ConvNeXt's: 7 x 7 for each channel, two dense layers for each pixel."""

    def __init__(self, units):
        super().__init__()
        self.spatial = nn.Conv2D(units, 7, padding=3, groups=units)
        self.norm = nn.LayerNorm()
        self.wide = nn.Dense(4 * units, flatten=False)
        self.narrow = nn.Dense(units, flatten=False)

    def forward(self, x):
        pixels = self.norm(self.spatial(x).transpose(0, 2, 3, 1))
        return x + self.narrow(npx.gelu(self.wide(pixels))).transpose(0, 3, 1, 2)


def convnext():
    """ConvNeXt-T."""
    layers = [nn.Conv2D(96, 4, strides=4), ChannelNorm()]
    for count, units in ((3, 96), (3, 192), (9, 384), (3, 768)):
        if units != 96:
            layers += [ChannelNorm(), nn.Conv2D(units, 2, strides=2)]
        layers += [NextBlock(units) for _ in range(count)]
    return _sequence(*layers, nn.GlobalAvgPool2D(), nn.Flatten(), nn.LayerNorm(), nn.Dense(1000))


class Excitation(HybridBlock):
    """Channels weighed by what they are on average (squeeze and excite)."""

    def __init__(self, channels, few):
        super().__init__()
        self.squeeze, self.excite = nn.Conv2D(few, 1), nn.Conv2D(channels, 1)

    def forward(self, x):
        weights = self.excite(npx.silu(self.squeeze(x.mean(axis=(2, 3), keepdims=True))))
        return x * npx.sigmoid(weights)


def _normed(channels, kernel, stride=1, groups=1):
    return (
        nn.Conv2D(channels, kernel, stride, kernel // 2, groups=groups, use_bias=False),
        nn.BatchNorm(),
    )


class InvertedBottleneck(HybridBlock):
    """EfficientNet's: wider, each channel by itself, weighed, narrow again."""

    def __init__(self, before, channels, kernel, stride, expansion):
        super().__init__()
        wide = before * expansion
        widened = [*_normed(wide, 1), nn.SiLU()] if expansion > 1 else []
        self.body = _sequence(
            *widened, *_normed(wide, kernel, stride, wide), nn.SiLU(),
            Excitation(wide, max(1, before // 4)), *_normed(channels, 1),
        )  # fmt: skip
        self.adds = stride == 1 and before == channels

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


def efficientnet():
    """EfficientNet-B0."""
    layers, before = [*_normed(32, 3, 2), nn.SiLU()], 32
    for expansion, channels, count, stride, kernel in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    ):  # fmt: skip
        for i in range(count):
            step = stride if i == 0 else 1
            layers.append(InvertedBottleneck(before, channels, kernel, step, expansion))
            before = channels
    return _sequence(*layers, *_normed(1280, 1), nn.SiLU(), nn.GlobalAvgPool2D(), nn.Dense(1000))


class GroupedBottleneck(HybridBlock):
    """A bottleneck whose windows are convolved in groups of channels (ResNeXt, RegNet)."""

    def __init__(self, before, inner, channels, width, stride):
        super().__init__()
        self.body = _sequence(
            *_normed(inner, 1), nn.Activation("relu"),
            *_normed(inner, 3, stride, inner // width), nn.Activation("relu"),
            *_normed(channels, 1),
        )  # fmt: skip
        changes = stride > 1 or before != channels
        self.beside = _sequence(*_normed(channels, 1, stride)) if changes else None

    def forward(self, x):
        return npx.relu(self.body(x) + (self.beside(x) if self.beside else x))


def _grouped_stages(before, stages):
    """Each stage: how many bottlenecks, their inner channels, their channels, those of a group,
    and the first one's stride."""
    for count, inner, channels, width, stride in stages:
        for i in range(count):
            yield GroupedBottleneck(before, inner, channels, width, 1 if i else stride)
            before = channels


def regnet():
    """RegNetX of 400 million multiplications."""
    stages = ((1, 32, 2), (2, 64, 2), (7, 160, 2), (12, 400, 2))
    body = _grouped_stages(32, [(n, units, units, 16, stride) for n, units, stride in stages])
    first = [*_normed(32, 3, 2), nn.Activation("relu")]
    return _sequence(*first, *body, nn.GlobalAvgPool2D(), nn.Dense(1000))


def resnext():
    """ResNeXt-50 of 32 groups."""
    stages = ((3, 128, 256, 4, 1), (4, 256, 512, 8, 2), (6, 512, 1024, 16, 2))
    body = _grouped_stages(64, (*stages, (3, 1024, 2048, 32, 2)))
    first = [*_normed(64, 7, 2), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1)]
    return _sequence(*first, *body, nn.GlobalAvgPool2D(), nn.Dense(1000))


class ShuffleUnit(HybridBlock):
    """ShuffleNet's: channels in groups, shuffled between two convolutions of points."""

    def __init__(self, channels, groups):
        super().__init__()
        self.groups, few = groups, channels // 4
        self.narrow = _sequence(*_normed(few, 1, 1, groups), nn.Activation("relu"))
        self.wide = _sequence(*_normed(few, 3, 1, few), *_normed(channels, 1, 1, groups))

    def forward(self, x):
        narrow = self.narrow(x)
        images, channels, *space = narrow.shape
        parted = narrow.reshape(images, self.groups, channels // self.groups, *space)
        shuffled = parted.transpose(0, 2, 1, 3, 4).reshape(images, channels, *space)
        return npx.relu(x + self.wide(shuffled))


def shufflenet():
    """Six units of 240 channels in three groups."""
    return _sequence(
        nn.Conv2D(24, 3, 2, 1), nn.MaxPool2D(3, 2, 1), nn.Conv2D(240, 1),
        *[ShuffleUnit(240, 3) for _ in range(6)], nn.GlobalAvgPool2D(), nn.Dense(10),
    )  # fmt: skip


def _twice(channels):
    one = [layer for _ in range(2) for layer in (*_normed(channels, 3), nn.Activation("relu"))]
    return _sequence(*one)


class UNet(HybridBlock):
    """Down three times and up again, beside what was there on the way down."""

    def __init__(self, channels):
        super().__init__()
        widths = [channels * 2**i for i in range(4)]
        self.down = _sequence(*map(_twice, widths))
        self.up = _sequence(*[nn.Conv2DTranspose(w, 2, strides=2) for w in widths[-2::-1]])
        self.joined = _sequence(*map(_twice, widths[-2::-1]))
        self.pool, self.classes = nn.MaxPool2D(), nn.Conv2D(2, 1)

    def forward(self, x):
        seen = []
        for i, block in enumerate(self.down):
            x = block(self.pool(x) if i else x)
            seen.append(x)
        for up, joined, beside in zip(self.up, self.joined, seen[-2::-1]):
            x = joined(np.concatenate([up(x), beside], axis=1))
        return self.classes(x)


def generator():
    """DCGAN's, of images of 64 x 64."""
    layers = [nn.Conv2DTranspose(512, 4, use_bias=False), nn.BatchNorm(), nn.Activation("relu")]
    for channels in (256, 128, 64):
        up = nn.Conv2DTranspose(channels, 4, 2, 1, use_bias=False)
        layers += [up, nn.BatchNorm(), nn.Activation("relu")]
    return _sequence(*layers, nn.Conv2DTranspose(3, 4, 2, 1), nn.Activation("tanh"))


class Residual(HybridBlock):
    """Two convolutions with a normalisation behind each, added to their input."""

    def __init__(self, channels, norm):
        super().__init__()
        self.body = _sequence(
            nn.Conv2D(channels, 3, padding=1), norm(), nn.Activation("relu"),
            nn.Conv2D(channels, 3, padding=1), norm(),
        )  # fmt: skip

    def forward(self, x):
        return npx.relu(x + self.body(x))


def style():
    """A network that paints (Johnson and others, 2016), with three residual blocks."""

    def normed(layer):
        return layer, nn.InstanceNorm(), nn.Activation("relu")

    return _sequence(
        nn.ReflectionPad2D(4), *normed(nn.Conv2D(32, 9)), *normed(nn.Conv2D(64, 3, 2, 1)),
        *normed(nn.Conv2D(128, 3, 2, 1)), *[Residual(128, nn.InstanceNorm) for _ in range(3)],
        *normed(nn.Conv2DTranspose(64, 4, 2, 1)), *normed(nn.Conv2DTranspose(32, 4, 2, 1)),
        nn.Conv2D(3, 9, padding=4),
    )  # fmt: skip


def grouped_residual():
    """Four residual blocks of 64 channels, normalised in groups of eight."""
    blocks = [Residual(64, lambda: nn.GroupNorm(8)) for _ in range(4)]
    return _sequence(nn.Conv2D(64, 3, padding=1), *blocks, nn.GlobalAvgPool2D(), nn.Dense(10))


def autoencoder():
    """Three convolutions down, three up."""
    down = [nn.Conv2D(channels, 3, 2, 1, activation="relu") for channels in (16, 32, 64)]
    up = [nn.Conv2DTranspose(channels, 3, 2, 1, 1, activation="relu") for channels in (32, 16)]
    return _sequence(*down, *up, nn.Conv2DTranspose(3, 3, 2, 1, 1, activation="sigmoid"))


def video():
    """Three convolutions over time and space."""
    return _sequence(
        nn.Conv3D(32, 3, padding=1, activation="relu"), nn.MaxPool3D((1, 2, 2)),
        nn.Conv3D(64, 3, padding=1, activation="relu"), nn.MaxPool3D(2),
        nn.Conv3D(128, 3, padding=1, activation="relu"), nn.GlobalAvgPool3D(), nn.Dense(10),
    )  # fmt: skip


# -- sequences ------------------------------------------------------------------------------------


class DilatedBlock(HybridBlock):
    """Two convolutions over time with gaps between their taps, added to their input."""

    def __init__(self, channels, gap):
        super().__init__()
        self.first, self.second = (
            nn.Conv1D(channels, 3, dilation=gap, padding=gap, activation="relu") for _ in range(2)
        )

    def forward(self, x):
        return npx.relu(x + self.second(self.first(x)))


def temporal():
    """A temporal convolutional network of 64 channels."""
    blocks = [DilatedBlock(64, 2**i) for i in range(6)]
    return _sequence(nn.Conv1D(64, 1), *blocks, nn.Conv1D(10, 1))


class WaveNet(HybridBlock):
    """Eight gated convolutions over time, whose results are added up."""

    def __init__(self, channels, count):
        super().__init__()
        gaps = [2**i for i in range(count)]
        self.first, self.last = nn.Conv1D(channels, 1), nn.Conv1D(64, 1)
        self.filters, self.gates = (
            _sequence(*[nn.Conv1D(channels, 2, dilation=gap, padding=gap) for gap in gaps])
            for _ in range(2)
        )
        self.mixed = _sequence(*[nn.Conv1D(channels, 1) for _ in gaps])

    def forward(self, x):
        x, total, length = self.first(x), 0, x.shape[2]
        for filters, gate, mixed in zip(self.filters, self.gates, self.mixed):
            gated = np.tanh(filters(x)[:, :, :length]) * npx.sigmoid(gate(x)[:, :, :length])
            step = mixed(gated)
            x, total = x + step, total + step
        return self.last(npx.relu(total))


class LastState(HybridBlock):
    """A recurrent layer, and classes from its last output."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.classes = layer, nn.Dense(10)

    def forward(self, x):
        return self.classes(self.layer(x)[-1])


class TextCNN(HybridBlock):
    """Convolutions over words, three wide to five, and the largest of each filter."""

    def __init__(self, words, units):
        super().__init__()
        self.words = nn.Embedding(words, units)
        self.filters = _sequence(*[nn.Conv1D(100, width) for width in (3, 4, 5)])
        self.largest, self.classes = nn.GlobalMaxPool1D(), nn.Dense(2)

    def forward(self, x):
        words = self.words(x).transpose(0, 2, 1)
        found = [npx.relu(self.largest(filters(words))) for filters in self.filters]
        return self.classes(np.concatenate(found, axis=1))


# -- points, tables, dense layers -----------------------------------------------------------------


class PointNet(HybridBlock):
    """Dense layers for every point, the largest of all, and classes."""

    def __init__(self):
        super().__init__()
        layers = [
            layer
            for channels in (64, 64, 128, 1024)
            for layer in (nn.Conv1D(channels, 1), nn.BatchNorm(), nn.Activation("relu"))
        ]
        self.points = _sequence(*layers)
        self.classes = _sequence(
            nn.Dense(512, activation="relu"), nn.Dense(256, activation="relu"), nn.Dense(40)
        )

    def forward(self, x):
        return self.classes(self.points(x).max(axis=2))


class DeepFM(HybridBlock):
    """Factorization machines beside a small network (Guo and others, 2017)."""

    def __init__(self, values, units):
        super().__init__()
        self.vectors, self.weights = nn.Embedding(values, units), nn.Embedding(values, 1)
        hidden = [nn.Dense(width, activation="relu") for width in (30, 20, 10)]
        self.deep = _sequence(*hidden, nn.Dense(1))

    def forward(self, x):
        vectors = self.vectors(x)
        pairs = (vectors.sum(axis=1) ** 2 - (vectors**2).sum(axis=1)).sum(axis=1, keepdims=True)
        linear = self.weights(x).sum(axis=1)
        return npx.sigmoid(linear + 0.5 * pairs + self.deep(vectors.reshape(len(x), -1)))


def variational():
    """An encoder and a decoder of digits, by dense layers."""
    return _sequence(
        nn.Dense(400, activation="relu"), nn.Dense(40),
        nn.Dense(400, activation="relu"), nn.Dense(784, activation="sigmoid"),
    )  # fmt: skip


def normalized():
    """Three dense layers of 256, normalised by batches."""
    hidden = [
        layer for _ in range(3) for layer in (nn.Dense(256), nn.BatchNorm(), nn.LeakyReLU(0.1))
    ]
    return _sequence(*hidden, nn.Dense(10))


NETWORKS = {
    "vit": lambda: Patches(192, *[TransformerLayer(192, 3) for _ in range(12)]),
    "mixer": lambda: Patches(256, *[MixerLayer(196, 256) for _ in range(6)]),
    "writer": lambda: Writer(96, 64, 128, 4, 4),
    "wide_writer": lambda: Writer(1000, 256, 512, 8, 2),
    "attention": lambda: SelfAttention(256, 8),
    "convnext": convnext,
    "efficientnet": efficientnet,
    "regnet": regnet,
    "resnext": resnext,
    "shufflenet": shufflenet,
    "unet": lambda: UNet(32),
    "generator": generator,
    "style": style,
    "grouped_residual": grouped_residual,
    "autoencoder": autoencoder,
    "video": video,
    "temporal": temporal,
    "wavenet": lambda: WaveNet(32, 8),
    "bilstm": lambda: LastState(rnn.LSTM(256, 2, bidirectional=True)),
    "gru": lambda: LastState(rnn.GRU(256)),
    "textcnn": lambda: TextCNN(5000, 100),
    "pointnet": PointNet,
    "deepfm": lambda: DeepFM(10000, 20),
    "variational": variational,
    "normalized": normalized,
    "vgg11": lambda: vision.vgg11(),
    "alexnet": lambda: vision.alexnet(),
    "densenet121": lambda: vision.densenet121(),
    "squeezenet": lambda: vision.squeezenet1_1(),
    "inception": lambda: vision.inception_v3(),
    "mobilenet": lambda: vision.mobilenet1_0(),
    "resnet50v2": lambda: vision.resnet50_v2(),
}


def loaded(model, network):
    """The network of a model with the parameters that were written."""
    net = NETWORKS[network]()
    net.load_parameters(place(model + ".params"))
    return net


def _write(model, network, x):
    from heterosis.models import to_onnx

    np.random.seed(0)
    net, x = NETWORKS[network](), np.array(x, dtype=x.dtype)
    net.initialize(initializer.MSRAPrelu())
    net.hybridize()
    net(x)
    net.save_parameters(place(model + ".params"))
    to_onnx(net, place(model + ".onnx"), x)


def main(models):
    """Write what the benchmark needs of these models."""
    from more_models import CASES

    for model in models:
        _write(model, CASES[model].network, CASES[model].input())


if __name__ == "__main__":
    main(sys.argv[1:])
