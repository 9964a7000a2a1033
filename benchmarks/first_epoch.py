"""A script's first epoch, imperative LeNet from the import on: python benchmarks/first_epoch.py

Each process has an empty cache of compiled code: what it compiles counts, unless the installed
package has brought it. An epoch is of 6,400 images in batches of 64.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import pairwise

import numpy
import runner

_BATCH, _BATCHES = 64, 100


def heterosis_trainer():
    """The version, and a function that learns from a batch."""
    import heterosis
    from heterosis import autograd, gluon, init, np

    heterosis.install_as_mxnet()
    from networks_gluon import lenet

    net = lenet()
    net.initialize(init.Xavier())
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

    def learn(x, y):
        x, y = np.array(x), np.array(y)
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(x))
        return float(loss.mean())

    return heterosis.__version__, learn


def torch_trainer():
    """The version, and a function that learns from a batch."""
    import torch
    from networks_torch import lenet

    net = lenet()
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def learn(x, y):
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return float(loss)

    return torch.__version__, learn


def measure(contender: str) -> dict:
    """Seconds until a network is there, for the first batch, for the others, and in all."""
    generator = numpy.random.default_rng(0)
    x = generator.normal(size=(_BATCHES, _BATCH, 1, 28, 28)).astype("float32")
    y = generator.integers(0, 10, (_BATCHES, _BATCH))
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HETEROSIS_CACHE"] = cache
        times = [time.perf_counter()]
        version, learn = {"heterosis": heterosis_trainer, "torch": torch_trainer}[contender]()
        times.append(time.perf_counter())
        losses = [learn(x[0], y[0])]
        times.append(time.perf_counter())
        losses += [learn(*batch) for batch in zip(x[1:], y[1:], strict=True)]
        times.append(time.perf_counter())
    assert numpy.isfinite(losses).all(), losses
    parts = [end - begin for begin, end in pairwise(times)]
    cases = dict(zip(("import and network", "first batch", "99 more"), parts, strict=True))
    cases["first epoch"] = sum(parts)
    return {"version": version, "cases": {name: (s, None) for name, s in cases.items()}}


if __name__ == "__main__":
    runner.main(__file__, measure, contenders=("heterosis", "torch"), rounds=5, threads=(1, 2))
