"""One hybridized network called by several threads: python benchmarks/threads.py

Threads call one network, each with inputs of its own, for a while. The calls a second of all of
them are compared with those of one thread. With Python's interpreter lock, a thread that waits for
queued work lets others go on, and no other; free-threaded Python (3.13t) has none.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time

from heterosis import np, npx
from heterosis.gluon import nn

# The layers, and the rows of a call: from one that is mostly overhead to one that is all kernel.
_NETWORKS = {
    "512-256-128-2, 1 row": ((256, 128, 2), 512, 1),
    "512-256-128-2, 64 rows": ((256, 128, 2), 512, 64),
    "1024-1024-1024-10, 64 rows": ((1024, 1024, 10), 1024, 64),
}


def network(sizes: tuple[int, ...], inputs: int) -> nn.HybridSequential:
    """A hybridized perceptron of layers of these sizes."""
    net = nn.HybridSequential()
    for before, size in zip((inputs, *sizes), sizes):
        net.add(nn.Dense(size, activation="relu", in_units=before))
    net.initialize()
    net.hybridize()
    return net


def calls(net: nn.HybridSequential, x: np.ndarray, threads: int, seconds: float) -> float:
    """Calls a second of so many threads."""
    counts, start, end = [0] * threads, threading.Barrier(threads + 1), threading.Event()

    def run(number: int) -> None:
        own, count = x.copy(), 0
        net(own).wait_to_read()
        start.wait()
        while not end.is_set():
            net(own).wait_to_read()
            count += 1
        counts[number] = count

    workers = [threading.Thread(target=run, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    time.sleep(seconds)
    end.set()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements, in turn")
    given = parser.parse_args()
    npx.settings.intra_op_threads = 1  # what processors share are the calls
    lock = "with" if getattr(sys, "_is_gil_enabled", lambda: True)() else "without"
    processors = len(os.sched_getaffinity(0))
    print(f"Python {sys.version.split()[0]} {lock} the interpreter lock, {processors} processors")
    print("| network | threads | calls/s | beside one thread |")
    print("|---|---:|---:|---:|")
    for name, (sizes, inputs, rows) in _NETWORKS.items():
        net, x = network(sizes, inputs), np.random.normal(size=(rows, inputs))
        found: dict[int, list[float]] = {count: [] for count in given.threads}
        for _ in range(given.rounds):
            for count, rates in found.items():
                rates.append(calls(net, x, count, given.seconds))
        first = found[given.threads[0]]
        for count, rates in found.items():
            ratio = statistics.median(a / b for a, b in zip(rates, first))
            print(f"| {name} | {count} | {statistics.median(rates):,.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
