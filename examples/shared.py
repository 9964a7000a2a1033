"""What the examples share: options, training of classifiers, and the report at the end."""

from __future__ import annotations

import argparse
import sys
import time

import numpy

from heterosis import autograd, gluon, metric, np


def options(description: str) -> argparse.Namespace:
    """The command line of an example."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="less data, a lower aim")
    parser.add_argument("--output", help="file for a picture of the curves, such as curve.png")
    return parser.parse_args()


class Report:
    """Prints what each epoch reached, and at the end whether it is enough."""

    def __init__(self, title: str, output: str | None):
        self.title, self.output = title, output
        self.curves: dict[str, list[float]] = {}
        self.started = time.perf_counter()

    def epoch(self, **values: float) -> None:
        """Note the values of one epoch."""
        for name, value in values.items():
            self.curves.setdefault(name.replace("_", " "), []).append(value)
        text = ", ".join(f"{name} {curve[-1]:.4f}" for name, curve in self.curves.items())
        number = max(map(len, self.curves.values()))
        print(f"epoch {number:2}, {time.perf_counter() - self.started:5.1f} s: {text}", flush=True)

    def finish(self, name: str, required: float, most: bool = False) -> None:
        """Compare the last value of `name` with what is required, at least, or at `most`."""
        reached = self.curves[name][-1]
        good = reached <= required if most else reached >= required
        bound = "at most" if most else "at least"
        print(f"{self.title}: {name} {reached:.4f}, required: {bound} {required:.4f}")
        if self.output:
            self._draw()
        if not good:
            sys.exit(f"{self.title}: missed what was required")

    def _draw(self) -> None:
        try:
            from matplotlib import pyplot
        except ImportError:
            print("no picture: pip install 'heterosis[plot]'")
            return
        figure, axes = pyplot.subplots()
        for name, curve in self.curves.items():
            axes.plot(range(1, len(curve) + 1), curve, marker="o", label=name)
        axes.set(title=self.title, xlabel="epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend()
        figure.savefig(self.output)
        print(f"curves: {self.output}")


def accuracy(net: gluon.Block, data: gluon.data.DataLoader) -> float:
    """The share of the data that a classifier gets right."""
    found = metric.Accuracy()
    for x, y in data:
        found.update([y], [net(x)])
    return found.get()[1]


def train_classifier(
    net: gluon.Block, train: tuple, test: tuple, epochs: int, batch_size: int, rate: float,
    report: Report,
) -> None:  # fmt: skip
    """Fit a network to (images, labels) with Adam, its rate falling to nothing."""
    batches, held_out = (
        gluon.data.DataLoader(
            gluon.data.ArrayDataset(np.array(x), np.array(y)), batch_size, shuffle=shuffle
        )
        for (x, y), shuffle in ((train, True), (test, False))
    )
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": rate})
    for epoch in range(epochs):
        trainer.set_learning_rate(rate * (1 - epoch / epochs))
        total = 0.0
        for x, y in batches:
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(x.shape[0])
            total += loss.mean().item()
        report.epoch(loss=total / len(batches), accuracy=accuracy(net, held_out))


SHAPES = ("disc", "square", "triangle", "ring", "cross", "star")


def draw_shape(
    image: numpy.ndarray, shape: str, centre: numpy.ndarray, radius: float,
    generator: numpy.random.Generator,
) -> numpy.ndarray:  # fmt: skip
    """Draw a shape of a random colour into an image (3, height, width); returns which pixels."""
    rows, columns = numpy.indices(image.shape[1:])
    offset = (columns - centre[0]) + 1j * (rows - centre[1])
    inside = _inside(shape, offset / radius)
    colour = generator.uniform(-1, 1, 3)
    colour *= 2 / numpy.abs(colour).max()
    image[:, inside] = colour[:, None] + 0.3 * image[:, inside]
    return inside


def _inside(shape: str, z: numpy.ndarray) -> numpy.ndarray:
    """Which complex numbers lie in a shape within the unit circle."""
    x, y, distance = numpy.abs(z.real), numpy.abs(z.imag), numpy.abs(z)
    if shape == "disc":
        return distance < 1
    if shape == "ring":
        return (distance < 1) & (distance > 0.6)
    if shape == "square":
        return numpy.maximum(x, y) < 0.707
    if shape == "cross":
        return (numpy.minimum(x, y) < 0.25) & (numpy.maximum(x, y) < 0.95)
    corners = 3 if shape == "triangle" else 5
    sector = numpy.angle(z) % (2 * numpy.pi / corners) - numpy.pi / corners
    if shape == "triangle":
        return distance * numpy.cos(sector) < 0.5
    return distance < 1 - 0.6 * (1 - numpy.abs(sector) * corners / numpy.pi)
