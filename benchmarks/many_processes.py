"""What joining processes costs a step: mpiexec -n 2 python benchmarks/many_processes.py

Each process has a batch of its own, of the same size however many there are. Timed in turns are a
step alone, one that adds up gradients over all processes when the backward pass has ended, and one
that does so as they come; the time is the median over them, of the slowest process. Messages and
bytes are those that one process hands to MPI in a step. With --gbit, sums take as long as on a wire
of so many gigabits a second, and the rest of that time no processor works for them.
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
    "wide": Case("6 x Dense 1024, batch 256, one program", "wide", (256, 1024)),
    "layers": Case("the same, a program a layer", "layers", (256, 1024)),
}


def wide():
    """Six layers with 25 MB of parameters."""
    net = gluon.nn.HybridSequential()
    for _ in range(6):
        net.add(gluon.nn.Dense(1024, activation="relu"))
    return net


NETWORKS |= {"wide": wide, "layers": wide}


class Counted:
    """A communicator that counts what is sent through it, as if by a wire of so many gigabits."""

    def __init__(self, world, gbit):
        self._world, self.messages, self.bytes = world, 0, 0
        self._wire = 2 * (world.size - 1) / world.size * 8e-9 / gbit  # seconds a byte

    def __getattr__(self, name):
        return getattr(self._world, name)

    def Allreduce(self, send, receive, **settings):  # noqa: N802 - mpi4py's name
        self.messages, self.bytes = self.messages + 1, self.bytes + receive.nbytes
        begun = time.perf_counter()
        self._world.Allreduce(send, receive, **settings)
        time.sleep(max(self._wire * receive.nbytes + begun - time.perf_counter(), 0))

    def Iallreduce(self, send, receive, **settings):  # noqa: N802 - mpi4py's name
        self.messages, self.bytes = self.messages + 1, self.bytes + receive.nbytes
        return self._world.Iallreduce(send, receive, **settings)


class CountingStore(MPIStore):
    """The store of the processes, with its messages counted."""

    def __init__(self, gbit):
        super().__init__()
        self._messages.world = self.counted = Counted(self._messages.world, gbit)


def training(case: Case, store, waits: bool = False):
    """A function that does one step, and sends nothing before all is computed if it `waits`."""
    np.random.seed(3)
    net = NETWORKS[case.network]()
    net.initialize(heterosis.init.Xavier())
    for block in net if case.network == "layers" else [net]:
        block.hybridize()
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
        if waits:
            npx.waitall()
        trainer.step(samples)

    return step


def seconds(step) -> float:
    begun = time.perf_counter()
    step()
    npx.waitall()
    return time.perf_counter() - begun


def measured(case: Case, store: CountingStore, turns: int) -> tuple[list[float], int, int]:
    """Seconds of a step alone, of one that sends at the end, and of one that sends as gradients
    come; messages and bytes of the last."""
    steps = training(case, None), training(case, store, waits=True), training(case, store)
    for step in steps * 3:
        seconds(step)
    times = [[] for _ in steps]
    before = store.counted.messages, store.counted.bytes
    for _ in range(turns):
        for step, found in zip(steps, times, strict=True):
            store.counted.Barrier()
            found.append(seconds(step))
    slowest = [max(store.counted.allgather(statistics.median(found))) for found in times]
    messages = (store.counted.messages - before[0]) // turns // 2  # two of the steps send
    return slowest, messages, (store.counted.bytes - before[1]) // turns // 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(CASES))
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--gbit", type=float, default=float("inf"))
    given = parser.parse_args()
    store = CountingStore(given.gbit)
    if store.rank == 0:
        columns = "alone | sums at the end | as they come | messages | kB"
        print(f"| {store.num_workers} processes | {columns} |", flush=True)
        print("|---|---|---|---|---|---|")
    for name in given.models:
        found, messages, size = measured(CASES[name], store, given.turns)
        if store.rank == 0:
            times = " | ".join(f"{1e3 * one:.3g} ms" for one in found)
            print(f"| {CASES[name].title} | {times} | {messages} | {size / 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main()
