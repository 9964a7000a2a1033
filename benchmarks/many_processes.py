"""What joining processes costs a step: mpiexec -n 2 python benchmarks/many_processes.py

Each process has a batch of its own, of the same size however many there are. Timed in turns are a
step alone, one that adds up gradients over all processes when the backward pass has ended, and one
that does so as they come; the time is the median over them, of the slowest process. Messages and
bytes are those that one process hands to MPI in a step. With --gbit, sums take as long as on a wire
of so many gigabits a second, and the rest of that time no processor works for them.

With `--engine xla`, a step alone and one of all processes are programs of XLA's, and messages are
the collectives in the latter; the comparison before each run, of 24 bytes, is not among them.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import time

import numpy

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


def training(case: Case, store, engine: str = "mpi", waits: bool = False):
    """A function that does one step, alone without a store. If it `waits`, it sends nothing before
    all is computed."""
    np.random.seed(3)
    net = NETWORKS[case.network]()
    net.initialize(heterosis.init.Xavier())
    for block in net if case.network == "layers" else [net]:
        block.hybridize()
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
        if waits:
            npx.waitall()
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


def by_mpi(case: Case, store: CountingStore, turns: int) -> tuple[list[float], int, int]:
    """Seconds of a step alone, of one that sends at the end, and of one that sends as gradients
    come; messages and bytes of the last."""
    steps = training(case, None), training(case, store, waits=True), training(case, store)
    found, messages, size = timed(steps, store, turns)
    return found, messages // turns // 2, size // turns // 2  # two of the steps send


def by_xla(case: Case, store: CountingStore, turns: int) -> tuple[list[float], int, int]:
    """Seconds of a step alone and of one of all processes; messages and bytes of the latter."""
    steps = training(case, None, "xla"), training(case, store, "xla")
    found, _, _ = timed(steps, store, turns)
    return found, *collectives(steps[1].step.texts[-1])


ENGINES = {
    "mpi": (by_mpi, ("alone", "sums at the end", "as they come")),
    "xla": (by_xla, ("alone", "together")),
}


def timed(steps, store: CountingStore, turns: int) -> tuple[list[float], int, int]:
    """Seconds of each step, and what all of them have sent by MPI."""
    for step in steps * 3:
        seconds(step)
    times = [[] for _ in steps]
    before = store.counted.messages, store.counted.bytes
    for _ in range(turns):
        for step, found in zip(steps, times, strict=True):
            store.counted.Barrier()
            found.append(seconds(step))
    slowest = [max(store.counted.allgather(statistics.median(found))) for found in times]
    return slowest, store.counted.messages - before[0], store.counted.bytes - before[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="*", default=list(CASES))
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--engine", choices=ENGINES, default="mpi")
    parser.add_argument("--gbit", type=float, default=float("inf"))
    given = parser.parse_args()
    store = CountingStore(given.gbit)
    measured, ways = ENGINES[given.engine]
    if given.engine == "xla":
        distributed.initialize()
    if store.rank == 0:
        columns = [f"{store.num_workers} processes", *ways, "messages", "kB"]
        print("|", " | ".join(columns), "|", flush=True)
        print("|" + "---|" * len(columns))
    for name in given.models:
        found, messages, size = measured(CASES[name], store, given.turns)
        if store.rank == 0:
            times = " | ".join(f"{1e3 * one:.3g} ms" for one in found)
            print(f"| {CASES[name].title} | {times} | {messages} | {size / 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main()
