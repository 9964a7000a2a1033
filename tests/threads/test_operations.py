"""Operations called by several threads, on arrays that they share."""

import subprocess
import sys
import sysconfig
import threading

import numpy
import pytest

from heterosis import _core, np, npx
from heterosis.runtime.errors import ShapeError
from tests.threads.together import THREADS, together

# Run under the lock, run beside other threads, and queued.
SIZES = (3, 20_000, 1_000_000)
# Sizes that no other test has: the first calls come together, too.
_odd = iter(range(101, 10_000, 2))


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a Python with the lock"
)
def test_importing_does_not_take_the_lock_back():
    program = "import sys, heterosis; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-X", "gil=0", "-W", "error", "-c", program], check=True)
    automatic = "import sys, heterosis._core; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-W", "error", "-c", automatic], check=True)


@pytest.mark.parametrize("size", SIZES)
def test_reading_shared_arrays(size):
    x = np.arange(size, dtype="float32") / size
    given = x.asnumpy()

    def run(number):
        for _ in range(20):
            y = np.exp(x * number) - x
        return y.asnumpy()

    for number, found in enumerate(together(run)):
        numpy.testing.assert_allclose(found, numpy.exp(given * number) - given, rtol=1e-5)


def test_first_calls_at_once():
    for _ in range(10):
        n = next(_odd)
        x = np.ones((n, 3), dtype="float32")
        found = together(lambda number, x=x: (np.cumsum(x, axis=0) + number)[-1].asnumpy())
        for number, row in enumerate(found):
            assert row.tolist() == [n + number] * 3


def test_new_attributes_at_once():
    x = np.arange(4 * 3 * 2).reshape(4, 3, 2)
    axes = (None, 0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2))

    def run(number):
        order = axes[number:] + axes[:number]
        return {axis: np.max(x * 2, axis=axis, keepdims=True).asnumpy() for axis in order}

    for found in together(run):
        for axis in axes:
            expected = numpy.max(x.asnumpy() * 2, axis=axis, keepdims=True)
            numpy.testing.assert_array_equal(found[axis], expected)


@pytest.mark.parametrize("size", SIZES)
def test_writes_into_one_array_are_all_done(size):
    x = np.zeros(size, dtype="float32")
    rounds = 200 if size < SIZES[-1] else 20

    def run(_):
        nonlocal x
        for _ in range(rounds):
            x += 1

    together(run)
    assert x.min().item() == x.max().item() == THREADS * rounds


@pytest.mark.parametrize("size", SIZES)
def test_an_operation_reads_whole_writes(size):
    """Each read finds what one of the writes has left, never parts of two."""
    x = np.zeros(size, dtype="float32")
    rounds = 200 if size < SIZES[-1] else 20

    def run(number):
        if number % 2:
            for step in range(rounds):
                x[:] = number * rounds + step
            return []
        return [x.copy() for _ in range(rounds)]

    for copies in together(run):
        for found in copies:
            assert found.min().item() == found.max().item()


def test_exchanges_between_arrays_are_in_order():
    """Every step is one operation on two arrays that threads take in different orders."""
    a, b = np.zeros(20_000), np.zeros(20_000)

    def run(number):
        one, other = (a, b) if number % 2 else (b, a)
        for _ in range(100):
            one += 1 + other * 0

    together(run)
    assert (a + b).min().item() == (a + b).max().item() == THREADS * 100
    npx.waitall()


def test_lists_that_others_change():
    parts = [np.full((2,), float(i)) for i in range(4)]
    changing = list(parts)
    done = threading.Event()

    def change():
        while not done.is_set():
            changing.append(changing.pop(0))
            changing[:] = changing[:3]
            changing.append(parts[0])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for found in together(lambda _: [np.concatenate(changing) for _ in range(200)]):
            assert all(one.shape[0] in (4, 6, 8, 10) for one in found)
    finally:
        done.set()
        thread.join()


def test_no_random_key_is_drawn_twice():
    np.random.seed(3)
    drawn = together(lambda _: [_core.random_key() for _ in range(1000)])
    assert len({key for keys in drawn for key in keys}) == THREADS * 1000
    assert _core.random_state() == (3, THREADS * 1000)


def test_errors_go_to_the_thread_that_made_them():
    x = np.ones((3, 4))

    def run(number):
        for _ in range(50):
            if number % 2:
                with pytest.raises(ShapeError):
                    x @ x
            else:
                assert (x @ x.T)[0, 0].item() == 4

    together(run)


@pytest.mark.parametrize("size", SIZES)
def test_numpy_reads_what_is_computed_and_not_exchanged(size):
    """Who has the address of an array keeps its memory, whatever is written to it."""
    x = np.zeros(size, dtype="float32")

    def run(number):
        for step in range(20):
            if number % 2:
                x[:] = step
            else:
                with memoryview(x) as view:
                    assert 0 <= view[0] < 20 and 0 <= view[size - 1] < 20

    together(run)


def test_views_of_one_array():
    x = np.zeros((THREADS, 1000))

    def run(number):
        for _ in range(200):
            x[number] += 1
            assert x[number].T.shape == (1000,)
        return x[number].sum().item()

    assert together(run) == [200 * 1000] * THREADS
