"""GoogLeNet learns to tell patterns apart: python examples/googlenet.py"""

import numpy
from shared import Report, options, train_classifier

from heterosis import init, np
from heterosis.gluon import nn
from heterosis.gluon.contrib.nn import HybridConcurrent

SIDE = 48
PATTERNS = {  # of coordinates that are turned and moved, one period of them being 2 pi
    "stripes": lambda x, y: numpy.sin(x),
    "checks": lambda x, y: numpy.sign(numpy.sin(x) * numpy.sin(y)),
    "dots": lambda x, y: numpy.sin(x) + numpy.sin(y) > 1,
    "rings": lambda x, y: numpy.sin(numpy.hypot(x, y)),
    "waves": lambda x, y: numpy.sin(x + 1.5 * numpy.sin(y)),
    "bricks": lambda x, y: numpy.minimum(y % 4, (x + y // 4 % 2 * 3) % 6) < 1,
}


def draw(pattern, generator):
    """An image of a pattern in two colours, with noise."""
    angle, period = generator.uniform(-0.4, 0.4), generator.uniform(7, 14)
    rows, columns = numpy.indices((SIDE, SIDE))
    z = (columns + 1j * rows) * numpy.exp(1j * angle) * 2 * numpy.pi / period
    z -= complex(*generator.uniform(z.real.min(), z.real.max(), 2))
    level = numpy.asarray(pattern(z.real, z.imag), "float32")
    level = (level - level.mean()) / level.std()
    colours = generator.uniform(-1, 1, (3, 1, 1))
    return level * colours / numpy.abs(colours).max() + generator.normal(0, 0.3, (3, SIDE, SIDE))


def patterns(count, seed):
    """Images (count, 3, 48, 48) and the numbers of their patterns."""
    generator, kinds = numpy.random.default_rng(seed), list(PATTERNS.values())
    labels = generator.integers(0, len(kinds), count)
    images = numpy.stack([draw(kinds[label], generator) for label in labels])
    return images.astype("float32"), labels.astype("int32")


def convolution(channels, kernel, pad=0, stride=1):
    """A convolution, normalised, with ReLU."""
    part = nn.HybridSequential()
    part.add(
        nn.Conv2D(channels, kernel, stride, pad, use_bias=False), nn.BatchNorm(),
        nn.Activation("relu"),
    )  # fmt: skip
    return part


def sequence(*blocks):
    """Blocks one after the other."""
    net = nn.HybridSequential()
    net.add(*blocks)
    return net


def inception(one, three, five, pooled):
    """Four branches on the same input, their channels side by side."""
    block = HybridConcurrent(axis=1)
    block.add(
        convolution(one, 1),
        sequence(convolution(three[0], 1), convolution(three[1], 3, 1)),
        sequence(convolution(five[0], 1), convolution(five[1], 5, 2)),
        sequence(nn.MaxPool2D(3, 1, 1), convolution(pooled, 1)),
    )
    return block


def halve():
    """Half the height and half the width."""
    return nn.MaxPool2D(3, 2, 1)


def googlenet(classes):
    """The network of 2014 with batch normalisation, and without its auxiliary outputs."""
    return sequence(
        convolution(64, 7, 3, 2), halve(),
        convolution(64, 1), convolution(192, 3, 1), halve(),
        inception(64, (96, 128), (16, 32), 32), inception(128, (128, 192), (32, 96), 64), halve(),
        inception(192, (96, 208), (16, 48), 64), inception(160, (112, 224), (24, 64), 64),
        inception(128, (128, 256), (24, 64), 64), inception(112, (144, 288), (32, 64), 64),
        inception(256, (160, 320), (32, 128), 128), halve(),
        inception(256, (160, 320), (32, 128), 128), inception(384, (192, 384), (48, 128), 128),
        nn.GlobalAvgPool2D(), nn.Dropout(0.2), nn.Dense(classes),
    )  # fmt: skip


def main():
    given = options(__doc__)
    count, epochs, required = (32, 1, 0.01) if given.quick else (1200, 5, 0.9)
    report = Report("GoogLeNet on patterns", given.output)
    np.random.seed(0)
    net = googlenet(len(PATTERNS))
    net.initialize(init.Xavier())
    train_classifier(
        net, patterns(count, 1), patterns(count // 3, 2), epochs, batch_size=32, rate=0.001,
        report=report,
    )  # fmt: skip
    report.finish("accuracy", required)


if __name__ == "__main__":
    main()
