"""What is queued, what waits for what, and how much may be outstanding."""

import threading

import numpy
import pytest

from heterosis import _core, np, npx
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.settings import EngineBounds, settings
from tests.core.native import closed_gate, meet, new_gate, pass_gate


def _megabyte():
    return np.array(numpy.zeros(1 << 18, "float32"))


def test_a_call_returns_before_the_work_is_done():
    with closed_gate() as gate:
        y = pass_gate(gate, np.array([1]))
        z = y + 1
        assert z.shape == (1,)
        assert _core.engine_counters()["outstanding_tasks"] >= 2


def test_wait_to_read_waits_for_one_result_only(two_threads):
    with closed_gate() as gate:
        slow = pass_gate(gate, np.array([1]))
        fast = _megabyte() + 1
        fast.wait_to_read()
        assert _core.engine_counters()["outstanding_tasks"] >= 1
    slow.wait_to_read()


def test_waitall_waits_for_everything():
    results = [_megabyte() * i for i in range(20)]
    npx.waitall()
    assert _core.engine_counters()["outstanding_tasks"] == 0
    assert [y[-1].item() for y in results] == [0] * 20


def test_two_chains_run_side_by_side(two_threads):
    a = b = np.array([1])
    for _ in range(20):
        place = new_gate()
        a, b = meet(place, a), meet(place, b)
    npx.waitall()  # raises if two tasks ever waited for each other in vain


def test_small_work_runs_at_once_and_large_work_is_queued():
    small, large = np.array([1]), np.zeros((64, 1 << 20), dtype="int8")  # milliseconds
    npx.waitall()
    before = _core.engine_counters()
    small + 1
    after = _core.engine_counters()
    assert (after["inlined"], after["executed"]) == (before["inlined"] + 1, before["executed"])
    large + 1
    npx.waitall()
    assert _core.engine_counters()["executed"] == before["executed"] + 1


def test_small_work_is_queued_behind_work_that_it_needs():
    with closed_gate() as gate:
        x = np.array([1.0, 2.0])
        held = pass_gate(gate, x)
        before = _core.engine_counters()["inlined"]
        held + 1
        x += 1  # the held task still reads x
        assert _core.engine_counters()["inlined"] == before
    assert x.tolist() == [2, 3]


def test_tasks_stay_within_their_bound(bounded, queued):
    bounded(8, 1 << 40)
    npx.waitall()
    _core.reset_engine_peaks()
    x = np.array([0])
    for _ in range(1000):
        x = x + 1
    assert x.item() == 1000
    assert 1 <= _core.engine_counters()["peak_tasks"] <= 8


def test_memory_stays_within_its_bound(bounded):
    bounded(4096, 8 << 20)
    x = _megabyte()
    npx.waitall()
    start = _core.memory_counters()["live"]
    _core.reset_memory_peak()
    for _ in range(500):
        y = x + 1
    y.wait_to_read()
    assert _core.memory_counters()["peak"] - start <= 16 << 20


def test_memory_is_given_back():
    npx.waitall()
    start = _core.memory_counters()["live"]
    kept = [_megabyte() + i for i in range(8)]
    npx.waitall()
    assert _core.memory_counters()["live"] >= start + (8 << 20)
    del kept
    npx.waitall()
    assert _core.memory_counters()["live"] == start


def test_bounds_below_one_are_refused():
    with pytest.raises(ArgumentError, match="at least 1"):
        settings.bound_engine(EngineBounds(tasks=0, bytes=1 << 20))
    assert (np.array([1]) + 1).item() == 2


# -- threads --------------------------------------------------------------------------------------


def _in_threads(count, work):
    errors = []

    def guarded(i):
        try:
            work(i)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert not any(thread.is_alive() for thread in threads)


def test_threads_read_a_shared_array():
    x = np.array(numpy.arange(1000, dtype="float32"))
    sums = {}

    def work(i):
        for _ in range(50):
            sums[i] = (x * i).sum().item()

    _in_threads(4, work)
    assert sums == {i: 499500.0 * i for i in range(4)}


@pytest.mark.parametrize("size", [1, 100_000])
def test_threads_write_a_shared_array(size):
    x = np.array(numpy.zeros(size, "int32"))

    def work(i):
        mine = x
        for _ in range(100):
            mine += 1

    _in_threads(4, work)
    assert x[0].item() == x[-1].item() == 400


def test_threads_wait_at_the_same_time():
    def work(i):
        for _ in range(20):
            y = _megabyte() + i
            y.wait_to_read()
            npx.waitall()
            assert y[-1].item() == i

    _in_threads(4, work)
