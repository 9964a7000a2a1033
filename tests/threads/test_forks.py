"""A process that forks while its other threads are in the core."""

import os
import sys
import threading

import pytest

from heterosis import np
from heterosis.gluon import nn


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="a child of CPython 3.13t may wait for ever for the lock of an object, a closure's cell "
    "say, that another thread held when the process forked",
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_the_child_computes_whatever_other_threads_were_at():
    net = nn.Dense(64, in_units=64)
    net.initialize()
    net.hybridize()
    x, small = np.ones((32, 64)), np.ones(3)
    expected = net(x).asnumpy()
    done = threading.Event()

    def work():
        while not done.is_set():
            net(x)
            small + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            child = os.fork()
            if child == 0:
                good = (net(x).asnumpy() == expected).all() and (small + 1).sum().item() == 6
                os._exit(not good)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()
