"""LeNet learns to read digits that are drawn here: python examples/lenet.py"""

import numpy
from shared import Report, options, train_classifier

from heterosis import init, np
from heterosis.gluon import nn

# The strokes of each digit, as points in a square with y downwards.
STROKES = [
    [(0.5, 0), (0.9, 0.25), (0.9, 0.75), (0.5, 1), (0.1, 0.75), (0.1, 0.25), (0.5, 0)],
    [(0.25, 0.25), (0.55, 0), (0.55, 1)],
    [(0.1, 0.25), (0.4, 0), (0.85, 0.2), (0.8, 0.45), (0.1, 1), (0.9, 1)],
    [(0.1, 0.1), (0.6, 0), (0.85, 0.25), (0.4, 0.45), (0.9, 0.7), (0.6, 1), (0.1, 0.9)],
    [(0.7, 1), (0.7, 0), (0.1, 0.65), (0.95, 0.65)],
    [(0.85, 0), (0.2, 0), (0.15, 0.45), (0.7, 0.45), (0.9, 0.7), (0.6, 1), (0.1, 0.95)],
    [(0.75, 0), (0.25, 0.4), (0.1, 0.75), (0.5, 1), (0.9, 0.75), (0.5, 0.5), (0.15, 0.65)],
    [(0.1, 0), (0.9, 0), (0.4, 1)],
    [(0.5, 0.45), (0.15, 0.2), (0.5, 0), (0.85, 0.2), (0.5, 0.45), (0.9, 0.75), (0.5, 1),
     (0.1, 0.75), (0.5, 0.45)],
    [(0.85, 0.35), (0.5, 0.5), (0.1, 0.25), (0.5, 0), (0.9, 0.25), (0.8, 0.65), (0.3, 1)],
]  # fmt: skip
SIDE = 28


def draw(digit, generator):
    """An image of a digit: slanted, turned, scaled, moved, in a pen of some width, with noise."""
    angle, slant = generator.uniform(-0.25, 0.25, 2)
    turn = numpy.array(
        [[numpy.cos(angle), -numpy.sin(angle)], [numpy.sin(angle), numpy.cos(angle)]]
    )
    points = numpy.array(STROKES[digit]) - 0.5 + generator.normal(0, 0.03, (len(STROKES[digit]), 2))
    points = points @ [[1, 0], [slant, 1]] @ turn * generator.uniform(12, 20, 2)
    points += SIDE / 2 + generator.uniform(-2, 2, 2)
    grid = numpy.stack(numpy.meshgrid(*[numpy.arange(SIDE)] * 2), -1)[:, :, None]
    start, along = points[:-1], numpy.diff(points, axis=0)
    nearest = (((grid - start) * along).sum(-1) / (along**2).sum(-1)).clip(0, 1)
    distance = numpy.linalg.norm(grid - start - nearest[..., None] * along, axis=-1).min(-1)
    ink = 1 / (1 + numpy.exp(3 * (distance - generator.uniform(0.7, 1.6))))
    return ink + generator.normal(0, 0.15, ink.shape)


def digits(count, seed):
    """Images (count, 1, 28, 28) and their labels."""
    generator = numpy.random.default_rng(seed)
    labels = generator.integers(0, 10, count)
    images = numpy.stack([draw(label, generator) for label in labels])
    return images[:, None].astype("float32"), labels.astype("int32")


def lenet():
    """Two convolutions with pooling, and two dense layers."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(2, 2),
        nn.Conv2D(50, 5, activation="relu"), nn.MaxPool2D(2, 2),
        nn.Dense(500, activation="relu"), nn.Dense(10),
    )  # fmt: skip
    return net


def main():
    given = options(__doc__)
    count, epochs, required = (600, 3, 0.6) if given.quick else (4000, 5, 0.98)
    report = Report("LeNet on drawn digits", given.output)
    np.random.seed(0)
    net = lenet()
    net.initialize(init.Xavier())
    train_classifier(
        net, digits(count, 1), digits(count // 4, 2), epochs, batch_size=64, rate=0.002,
        report=report,
    )  # fmt: skip
    report.finish("accuracy", required)


if __name__ == "__main__":
    main()
