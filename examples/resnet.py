"""ResNet-18 learns to name coloured shapes on noise: python examples/resnet.py"""

import numpy
from shared import SHAPES, Report, draw_shape, options, train_classifier

from heterosis import init, np
from heterosis.gluon import nn

SIDE = 32


def shapes(count, seed):
    """Images (count, 3, 32, 32) with one shape each, and the shapes' numbers."""
    generator = numpy.random.default_rng(seed)
    labels = generator.integers(0, len(SHAPES), count).astype("int32")
    images = generator.normal(0, 0.2, (count, 3, SIDE, SIDE)).astype("float32")
    for image, label in zip(images, labels, strict=True):
        radius = generator.uniform(9, 14)
        centre = generator.uniform(radius, SIDE - radius, 2)
        draw_shape(image, SHAPES[label], centre, radius, generator)
    return images, labels


class Residual(nn.HybridBlock):
    """Two convolutions, added to what goes in; a stride halves the image."""

    def __init__(self, channels, stride=1, **kwargs):
        super().__init__(**kwargs)
        self.body = nn.HybridSequential()
        self.body.add(
            nn.Conv2D(channels, 3, stride, 1, use_bias=False), nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(channels, 3, 1, 1, use_bias=False), nn.BatchNorm(),
        )  # fmt: skip
        self.shortcut = nn.HybridSequential()
        if stride != 1:
            self.shortcut.add(nn.Conv2D(channels, 1, stride, use_bias=False), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        return F.npx.relu(self.body(x) + self.shortcut(x))


def resnet18(classes):
    """A stem, eight residual blocks, and a dense layer on the mean over the image."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(64, 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"),
        nn.MaxPool2D(3, 2, 1),
    )  # fmt: skip
    for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        net.add(Residual(channels, stride), Residual(channels))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(classes))
    return net


def main():
    given = options(__doc__)
    count, epochs, required = (64, 1, 0.01) if given.quick else (2400, 3, 0.9)
    report = Report("ResNet-18 on coloured shapes", given.output)
    np.random.seed(0)
    net = resnet18(len(SHAPES))
    net.initialize(init.Xavier())
    train_classifier(
        net, shapes(count, 1), shapes(count // 4, 2), epochs, batch_size=32, rate=0.001,
        report=report,
    )  # fmt: skip
    report.finish("accuracy", required)


if __name__ == "__main__":
    main()
