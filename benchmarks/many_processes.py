"""What joining processes costs a step: mpiexec -n 2 python benchmarks/many_processes.py

Each process has a batch of its own, of the same size however many there are. A step alone, and one
that adds up gradients over all processes, are timed in turns; the time is the median over them, of
the slowest process. Messages and bytes are those that one process hands to MPI in a step.

With `--engine xla`, both steps are programs of XLA's, and messages are the collectives in the one
of all processes; the comparison before each run, of 24 bytes, is not among them.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import sys
import time

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))
import heterosis
from heterosis import autograd, distributed, gluon, np, npx
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


# A collective in HLO, with the types of what it gives.
COLLECTIVE = re.compile(
    r"= (.*?) (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\("
)
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "s32": 4, "s64": 8, "u32": 4, "u64": 8, "pred": 1}


def collectives(text: str) -> tuple[int, int]:
    """How many messages a program of XLA's sends, and of how many bytes."""
    found = COLLECTIVE.findall(text)
    types = [pair for one in found for pair in re.findall(r"(\w+)\[([\d,]*)\]", one)]
    sizes = (BYTES[name] * math.prod(map(int, filter(None, s.split(",")))) for name, s in types)
    return len(found), sum(sizes)


def training(case: Case, store, engine: str = "mpi"):
    """A function that does one step: alone without a store."""
    np.random.seed(3)
    net = NETWORKS[case.network]()
    net.initialize(heterosis.init.Xavier())
    net.hybridize()
    x = np.array(case.input())
    net(x)
    y = np.array(numpy.random.default_rng(2).integers(0, 2, len(x)))
    settings = {"learning_rate": 1e-4, "momentum": 0.9}
    exchange = store if engine == "mpi" else None
    trainer = gluon.Trainer(net.collect_params(), "sgd", settings, kvstore=exchange)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    if engine == "xla":
        return of_xla(net, trainer, loss_of, (x, y), is_together=store is not None)
    samples = len(x) * (store.num_workers if store else 1)

    def step():
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(samples)

    return step


def of_xla(net, trainer, loss_of, batch, *, is_together: bool):
    """The same as one program: of this process alone, or of all."""
    if is_together:
        distributed.broadcast_parameters(net.collect_params())
    sharding = distributed.Sharding() if is_together else None

    @heterosis.hybridize(backend="xla", sharding=sharding)
    def step(x, y):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(x))

    def run():
        step(*batch)

    run.step = step
    return run


def seconds(step) -> float:
    begun = time.perf_counter()
    step()
    npx.waitall()
    return time.perf_counter() - begun


def measured(
    case: Case, store: CountingStore, turns: int, engine: str
) -> tuple[float, float, int, int]:
    """Seconds of a step alone and of one together; messages and bytes of the latter."""
    steps = training(case, None, engine), training(case, store, engine)
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
    if engine == "xla":
        return *slowest, *collectives(steps[1].step.texts[-1])
    messages = (store.counted.messages - before[0]) // turns
    return slowest[0], slowest[1], messages, (store.counted.bytes - before[1]) // turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(CASES))
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--engine", choices=("mpi", "xla"), default="mpi")
    given = parser.parse_args()
    store = CountingStore()
    if given.engine == "xla":
        distributed.initialize()
    if store.rank == 0:
        print(f"| {store.num_workers} processes | alone | together | messages | kB |", flush=True)
        print("|---|---|---|---|---|")
    for name in given.models:
        alone, together, messages, size = measured(CASES[name], store, given.turns, given.engine)
        if store.rank == 0:
            times = f"{1e3 * alone:.3g} ms | {1e3 * together:.3g} ms"
            print(f"| {CASES[name].title} | {times} | {messages} | {size / 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main()
