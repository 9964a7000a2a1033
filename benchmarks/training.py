"""One step of training beside PyTorch and MXNet, all imperative: python benchmarks/training.py

A step is the forward pass, the loss, the backward pass and an update by SGD, and it is waited for.
All start from the same weights; the loss after a few steps must be the same.
"""

from __future__ import annotations

import numpy
import runner

_BATCH = 64
_STEPS, _SEQUENCES, _UNITS, _WORDS = 35, 32, 256, 256
_RATE = 0.05
_STEPS_COMPARED = 3


class Gluon:
    """The three networks in Gluon: ours and MXNet's differ in what is imported."""

    def __init__(self, package, np, npx, gluon, autograd):
        self.np, self.wait, self.gluon, self.autograd = np, npx.waitall, gluon, autograd
        self.version = package.__version__

    def perceptron(self):
        nn = self.gluon.nn
        net = nn.HybridSequential()
        net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
        return net

    def lenet(self):
        nn = self.gluon.nn
        net = nn.HybridSequential()
        net.add(
            nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(2, 2),
            nn.Conv2D(50, 5, activation="relu"), nn.MaxPool2D(2, 2),
            nn.Dense(500, activation="relu"), nn.Dense(10),
        )  # fmt: skip
        return net

    def lstm(self):
        nn = self.gluon.nn
        net = nn.HybridSequential()
        net.add(self.gluon.rnn.LSTM(_UNITS, input_size=_UNITS), nn.Dense(_WORDS, flatten=False))
        return net

    def stepper(self, name, x, y):
        """A function that makes a step and returns the loss."""
        net = getattr(self, name)()
        net.initialize()
        x, y = self.np.array(x), self.np.array(y)
        net(x)
        parameters = net.collect_params()
        for parameter, value in _values(parameters.values()):
            parameter.set_data(self.np.array(value))
        loss_of = self.gluon.loss.SoftmaxCrossEntropyLoss()
        trainer = self.gluon.Trainer(parameters, "sgd", {"learning_rate": _RATE})
        count = y.size

        def step():
            with self.autograd.record():
                scores = net(x)
                loss = loss_of(scores.reshape((count, scores.shape[-1])), y)
            loss.backward()
            trainer.step(count)
            self.wait()
            return loss

        return step


def _heterosis():
    import heterosis
    from heterosis import autograd, gluon, np, npx

    return Gluon(heterosis, np, npx, gluon, autograd)


def _mxnet():
    numpy.bool = numpy.bool_  # MXNet 1.9.1 asks for it, NumPy 1.23 warns of it
    import mxnet

    mxnet.npx.set_np()
    return Gluon(mxnet, mxnet.np, mxnet.npx, mxnet.gluon, mxnet.autograd)


class Torch:
    """The same networks in PyTorch."""

    def __init__(self):
        import torch

        self.torch, self.nn, self.version = torch, torch.nn, torch.__version__

    def perceptron(self):
        nn = self.nn
        return nn.Sequential(
            nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)
        )

    def lenet(self):
        nn = self.nn
        return nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
        )  # fmt: skip

    def lstm(self):
        lstm, decoder = self.nn.LSTM(_UNITS, _UNITS), self.nn.Linear(_UNITS, _WORDS)
        net = self.nn.ModuleList([lstm, decoder])
        net.forward = lambda x: decoder(lstm(x)[0])
        return net

    def stepper(self, name, x, y):
        """A function that makes a step and returns the loss."""
        torch, net = self.torch, getattr(self, name)()
        x, y = torch.from_numpy(x), torch.from_numpy(y.astype("int64"))
        with torch.no_grad():
            for parameter, value in _values(net.parameters()):
                parameter.copy_(torch.from_numpy(value))
        loss_of = self.nn.CrossEntropyLoss(reduction="none")
        optimizer = torch.optim.SGD(net.parameters(), lr=_RATE)
        count = y.numel()

        def step():
            optimizer.zero_grad()
            scores = net(x)
            loss = loss_of(scores.reshape(count, scores.shape[-1]), y)
            loss.mean().backward()
            optimizer.step()
            return loss.detach()

        return step


LIBRARIES = {"heterosis": _heterosis, "torch": Torch, "mxnet": _mxnet}


def _values(parameters):
    """Pairs of a parameter and its first value: the order of parameters is the same in all."""
    generator = numpy.random.default_rng(0)
    for parameter in parameters:
        yield parameter, generator.normal(0, 0.05, tuple(parameter.shape)).astype("float32")


def cases():
    """(title, name of the network, inputs, labels)."""
    generator = numpy.random.default_rng(1)

    def normal(*shape):
        return generator.normal(size=shape).astype("float32")

    def labels(classes, count):
        return generator.integers(0, classes, count).astype("float32")

    yield "MLP 512-256-128-2, batch 64", "perceptron", normal(_BATCH, 512), labels(2, _BATCH)
    yield "LeNet, batch 64", "lenet", normal(_BATCH, 1, 28, 28), labels(10, _BATCH)
    sequences = normal(_STEPS, _SEQUENCES, _UNITS)
    yield "LSTM, 35 x 32 x 256", "lstm", sequences, labels(_WORDS, _STEPS * _SEQUENCES)


def measure(contender: str) -> dict:
    """Seconds a step and the loss after some steps, for every case."""
    library = LIBRARIES[contender]()
    found = {}
    for title, name, x, y in cases():
        step = library.stepper(name, x, y)
        losses = [step() for _ in range(_STEPS_COMPARED)]
        loss = float(losses[-1].mean())
        found[title] = runner.seconds_a_call(step, lambda: None), loss
    return {"version": library.version, "cases": found}


if __name__ == "__main__":
    runner.main(__file__, measure, contenders=tuple(LIBRARIES), threads=(1,))
