"""What joining processes costs a step: mpiexec -n 2 python benchmarks/many_processes.py

Each process has a batch of its own, of the same size however many there are. A step alone, and one
that adds up gradients over all processes, are timed in turns; the time is the median over them, of
the slowest process. Messages and bytes are those that one process hands to MPI in a step.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))
import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.kvstore.mpi import MPIStore

heterosis.install_as_mxnet()
from networks import Case
from networks_gluon import NETWORKS

CASES = {
    "mlp": Case("MLP 512-256-128-2, batch 64", "perceptron", (64, 512)),
    "lenet": Case("LeNet, batch 64", "lenet", (64, 1, 28, 28)),
    "resnet18": Case("ResNet-18, batch 4, 96 x 96", "resnet18", (4, 3, 96, 96)),
}


class Counted:
    """A communicator that counts what is sent through it."""

    def __init__(self, world):
        self._world, self.messages, self.bytes = world, 0, 0

    def __getattr__(self, name):
        return getattr(self._world, name)

    def Allreduce(self, send, receive, **settings):  # noqa: N802 - mpi4py's name
        self.messages, self.bytes = self.messages + 1, self.bytes + receive.nbytes
        self._world.Allreduce(send, receive, **settings)


class CountingStore(MPIStore):
    """The store of the processes, with its messages counted."""

    def __init__(self):
        super().__init__()
        self._world = self.counted = Counted(self._world)


def training(case: Case, store):
    """A function that does one step."""
    np.random.seed(3)
    net = NETWORKS[case.network]()
    net.initialize(heterosis.init.Xavier())
    net.hybridize()
    x = np.array(case.input())
    net(x)
    y = np.array(numpy.random.default_rng(2).integers(0, 2, len(x)))
    settings = {"learning_rate": 1e-4, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings, kvstore=store)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    samples = len(x) * (store.num_workers if store else 1)

    def step():
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(samples)

    return step


def seconds(step) -> float:
    begun = time.perf_counter()
    step()
    npx.waitall()
    return time.perf_counter() - begun


def measured(case: Case, store: CountingStore, turns: int) -> tuple[float, float, int, int]:
    """Seconds of a step alone and of one together; messages and bytes of the latter."""
    steps = training(case, None), training(case, store)
    for step in steps * 3:
        seconds(step)
    alone, together = [], []
    before = store.counted.messages, store.counted.bytes
    for _ in range(turns):
        store.counted.Barrier()
        alone.append(seconds(steps[0]))
        store.counted.Barrier()
        together.append(seconds(steps[1]))
    slowest = [max(store.counted.allgather(statistics.median(t))) for t in (alone, together)]
    messages = (store.counted.messages - before[0]) // turns
    return slowest[0], slowest[1], messages, (store.counted.bytes - before[1]) // turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(CASES))
    parser.add_argument("--turns", type=int, default=30)
    given = parser.parse_args()
    store = CountingStore()
    if store.rank == 0:
        print(f"| {store.num_workers} processes | alone | together | messages | kB |", flush=True)
        print("|---|---|---|---|---|")
    for name in given.models:
        alone, together, messages, size = measured(CASES[name], store, given.turns)
        if store.rank == 0:
            times = f"{1e3 * alone:.3g} ms | {1e3 * together:.3g} ms"
            print(f"| {CASES[name].title} | {times} | {messages} | {size / 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main()
