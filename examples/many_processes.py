"""A network learns to read drawn digits in several processes, which share each batch:

    mpiexec -n 4 python examples/many_processes.py --checkpoints folder

Gradients are added up by MPI; with `--through xla`, the whole step of training is one program of
all processes. Started again after an end in the middle, it goes on from the last checkpoint in the
folder. The losses are those of one process. `--kill-at` ends the last process by force, to see it.
"""

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy
from lenet import digits
from shared import Report, accuracy

from heterosis import autograd, distributed, gluon, hybridize, init, kvstore, np
from heterosis.gluon import nn
from heterosis.gluon.data import ArrayDataset, DataLoader, SharedBatchSampler


def options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less data, a lower aim")
    parser.add_argument("--output", help="file for a picture of the curves, such as curve.png")
    parser.add_argument("--checkpoints", type=Path, help="folder that all processes can read")
    parser.add_argument("--every", type=int, default=5, help="steps from checkpoint to checkpoint")
    parser.add_argument("--losses", type=Path, help="file for the loss of every step")
    parser.add_argument("--through", choices=("mpi", "xla"), default="mpi")
    parser.add_argument("--kill-at", type=int, help="the step before which one process is killed")
    return parser.parse_args()


class ByMPI:
    """Each process has a program of its own, and MPI adds up their gradients."""

    def __init__(self):
        self.store = kvstore.create("mpi")
        self.rank, self.count = self.store.rank, self.store.num_workers
        self.barrier = self.store.barrier

    def step(self, net, trainer):
        """A function that learns from this process's part of a batch; it gives the mean loss."""
        loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

        def step(x, y):
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            total, samples = self.store.sum([loss.sum().item(), x.shape[0]])  # of all parts
            trainer.step(samples)
            return total / samples

        return step


class ByXLA:
    """One program of all processes, in which XLA puts the sums of gradients."""

    store = None

    def __init__(self):
        distributed.initialize()
        self.rank, self.count = distributed.rank(), distributed.num_workers()
        self.barrier = distributed.barrier

    def step(self, net, trainer):
        """The same; the step itself is that of one process."""
        loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

        @hybridize(backend="xla", sharding=distributed.Sharding())
        def step(x, y):
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(len(x))
            return loss.mean()

        return lambda x, y: step(x, y).item()


class Checkpoints:
    """Folders of parameters and the optimizer's states, each named by its step, in one folder."""

    def __init__(self, folder, world, net, trainer):
        self.folder, self.world, self.net, self.trainer = folder, world, net, trainer

    def save(self, step):
        """Process 0 writes; a folder gets its name when it is whole, and then older ones go."""
        if self.folder and self.world.rank == 0:
            older = self.found()
            unfinished = self.folder / "unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            self.net.save_parameters(str(unfinished / "net.params"))
            self.trainer.save_states(str(unfinished / "trainer.states"))
            unfinished.rename(self.folder / f"step-{step:08}")
            for folder in older:
                shutil.rmtree(folder)

    def load(self):
        """Every process reads the newest; returns the number of steps done."""
        found = self.found()
        self.world.barrier()  # nobody writes a new one until all have seen the same
        if not found:
            return 0
        self.net.load_parameters(str(found[-1] / "net.params"))
        self.trainer.load_states(str(found[-1] / "trainer.states"))
        return int(found[-1].name.removeprefix("step-"))

    def found(self):
        return sorted(self.folder.glob("step-*")) if self.folder else []


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu", in_units=784), nn.Dense(10, in_units=64))
    net.initialize(init.Xavier())
    net.hybridize()
    return net


def main():
    given = options()
    count, epochs, required = (500, 4, 0.5) if given.quick else (4000, 10, 0.9)
    world = ByXLA() if given.through == "xla" else ByMPI()
    np.random.seed(0)
    net = network()
    settings = {"learning_rate": 0.005}
    trainer = gluon.Trainer(net.collect_params(), "adam", settings, kvstore=world.store)
    checkpoints = Checkpoints(given.checkpoints, world, net, trainer)
    learn = world.step(net, trainer)

    images, labels = digits(count, 1)
    sampler = SharedBatchSampler(count, 64, world.rank, world.count, seed=1)
    batches = DataLoader(ArrayDataset(np.array(images), np.array(labels)), batch_sampler=sampler)
    held_out = DataLoader(ArrayDataset(*map(np.array, digits(count // 4, 2))), 64)

    a_pass = len(sampler)
    step = checkpoints.load()
    sampler.resume(*divmod(step, a_pass))
    if step == epochs * a_pass:
        sys.exit(f"{given.checkpoints} is of the last step; remove it to start anew")
    report = Report(f"{world.count} processes", given.output)
    for _ in range(step // a_pass, epochs):
        losses = []
        for x, y in batches:
            if step == given.kill_at and world.rank == world.count - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            losses.append(learn(x, y))
            step += 1
            if world.rank == 0 and given.losses:
                with given.losses.open("a") as file:
                    file.write(f"{step} {losses[-1]!r}\n")
            if step % given.every == 0:
                checkpoints.save(step)
        if world.rank == 0:
            report.epoch(loss=float(numpy.mean(losses)), accuracy=accuracy(net, held_out))
    if world.rank == 0:
        report.finish("accuracy", required)


if __name__ == "__main__":
    main()
