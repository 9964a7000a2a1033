"""A step of which every process writes a trace: python -m tests.kvstore.overlapping FOLDER"""

import sys

from heterosis import autograd, gluon, kvstore, np, npx, profiler
from heterosis.gluon import nn


def main():
    store = kvstore.create("mpi")
    net = nn.HybridSequential()
    for _ in range(6):
        net.add(nn.Dense(1024, in_units=1024, use_bias=False))
    net.initialize()
    for block in net:  # a program each: their gradients are there one after the other
        block.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4}, kvstore=store)
    x = np.ones((256, 1024))

    def step():
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(512)

    for _ in range(2):
        step()
    store.barrier()
    profiler.set_config(filename=f"{sys.argv[1]}/{store.rank}.json")
    profiler.set_state("run")
    step()
    npx.waitall()
    profiler.dump()


if __name__ == "__main__":
    main()
