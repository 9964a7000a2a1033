"""Calls at several sizes under way together compute in blocks that sizes and programs share."""

import threading

import numpy
import pytest

from heterosis import _core, np
from heterosis.gluon import nn

SIZES = (9, 2, 30, 3, 17)


@pytest.fixture(params=[0, 10**12], ids=["queued", "at once"])
def dispatched(request):
    """All calls are queued, or none is."""
    before = _core.inline_nanoseconds()
    _core.set_inline_nanoseconds(request.param)
    yield
    _core.set_inline_nanoseconds(before)


def network(width):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(width, 3, padding=1), nn.BatchNorm(), nn.Conv2D(8, 3, padding=1))
    net.add(nn.Dense(10))
    net.initialize()
    return net


@pytest.mark.lengthy
@pytest.mark.usefixtures("dispatched")
def test_a_block_is_lent_to_one_call_alone():
    networks = [network(4), network(16)]
    images = numpy.random.default_rng(0).normal(size=(max(SIZES), 3, 24, 24)).astype("float32")
    inputs = {n: np.array(images[:n]) for n in SIZES}
    alone = {(i, n): net(inputs[n]).asnumpy() for i, net in enumerate(networks) for n in SIZES}
    for net in networks:
        net.hybridize(dynamic=True)
    wrong = []

    def work(first):
        for turn in range(15):
            keys = [((first + k) % 2, SIZES[(first + turn * k) % len(SIZES)]) for k in range(1, 5)]
            found = [networks[i](inputs[n]) for i, n in keys]  # all under way before one is read
            for key, one in zip(keys, found, strict=True):
                if not numpy.allclose(one.asnumpy(), alone[key], rtol=1e-4, atol=1e-5):
                    wrong.append(key)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
