"""The DataLoader: what comes, in which order, from how many workers, and what goes wrong."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy
import pytest

from heterosis import np
from heterosis.gluon import data
from heterosis.gluon.data import batchify, transport
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    WorkerError,
    WorkerTimeoutError,
)

pytestmark = pytest.mark.main_memory("processes that fetch batches have no GPU")

ROOT = Path(__file__).parents[3]
COUNT, BATCH = 23, 4
X = numpy.random.default_rng(0).normal(size=(COUNT, 30, 20)).astype("float32")
Y = numpy.arange(COUNT, dtype="int32")
WORKERS = [{"num_workers": 0}, {"num_workers": 1}, {"num_workers": 3}]
WORKERS += [{"num_workers": 2, "thread_pool": True}, {"num_workers": 2, "prefetch": 0}]


def arrays():
    return data.ArrayDataset(np.array(X), np.array(Y))


def check_epoch(loader, factor=1):
    count = 0
    for i, (x, y) in enumerate(loader):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        assert isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        assert (x.asnumpy() == factor * X[rows]).all() and (y.asnumpy() == Y[rows]).all()
        count += 1
    assert count == len(loader) == 6


@pytest.mark.parametrize("options", WORKERS)
def test_batches(options):
    loader = data.DataLoader(arrays().transform_first(lambda x: 2 * x), BATCH, **options)
    for _ in range(3):
        check_epoch(loader, factor=2)


@pytest.mark.parametrize("options", WORKERS[:2])
def test_plain_arrays(options):
    check_epoch(data.DataLoader(arrays(), BATCH, **options))
    batches = list(data.DataLoader(np.array(X), BATCH, **options))
    assert (np.concatenate(batches).asnumpy() == X).all()
    labels = list(data.DataLoader(list(range(6)), 4, last_batch="discard", **options))
    assert [b.tolist() for b in labels] == [[0, 1, 2, 3]]


def test_a_subclass_is_not_taken_for_its_base():
    class Doubled(data.ArrayDataset):
        def __getitem__(self, idx):
            return 2 * super().__getitem__(idx)

    (batch,) = data.DataLoader(Doubled(np.array(X)), COUNT)
    assert (batch.asnumpy() == 2 * X).all()


def test_shuffled_orders_follow_the_seed():
    loaders = [data.DataLoader(list(range(20)), 5, shuffle=True, **o) for o in WORKERS[:3]]
    orders = []
    for loader in loaders:
        np.random.seed(11)
        orders.append([[b.tolist() for b in loader] for _ in range(2)])
    assert orders[0] == orders[1] == orders[2]
    assert orders[0][0] != orders[0][1]
    assert sorted(n for batch in orders[0][0] for n in batch) == list(range(20))


def noisy(x):
    return x, numpy.random.rand(), random.random(), np.random.uniform().item()


def test_random_numbers_depend_on_the_batch_and_not_on_the_worker():
    found = []
    for count in (1, 3):
        np.random.seed(4)
        loader = data.DataLoader(data.SimpleDataset(list(range(12))).transform(noisy), 2,
                                 num_workers=count)  # fmt: skip
        found.append([[[b.tolist() for b in batch] for batch in loader] for _ in range(2)])
    assert found[0] == found[1]
    for kind in (1, 2, 3):
        drawn = [n for epoch in found[0] for batch in epoch for n in batch[kind]]
        assert len(set(drawn)) == len(drawn)


def everything(samples):
    return {
        "list": [np.array(X[:2]), X[0], numpy.arange(3)],
        "tuple": (np.array([1, 2], dtype="bfloat16"), np.zeros((0, 2)), "text", None),
        "large": np.array(X.astype("float16")).astype("bfloat16"),
        "halves": numpy.arange(9000, dtype="int16").reshape(3, 3000)[:, ::2],
        "truth": np.array(X > 0),
    }


def test_any_structure_comes_back():
    for _ in range(2):
        (batch,) = data.DataLoader([1], 1, batchify_fn=everything, num_workers=1)
        expected = everything(None)
        assert list(batch) == list(expected)
        assert type(batch["list"]) is list and type(batch["tuple"]) is tuple
        assert batch["tuple"][2:] == ("text", None) and batch["tuple"][1].shape == (0, 2)
        for got, wanted in [
            *zip(batch["list"], expected["list"]),
            (batch["tuple"][0], expected["tuple"][0]),
            *((batch[k], expected[k]) for k in ("large", "halves", "truth")),
        ]:
            assert type(got) is type(wanted) and got.dtype == wanted.dtype
            assert (numpy.asarray(got) == numpy.asarray(wanted)).all()


@pytest.mark.lengthy
def test_large_messages():
    text = "x" * 100_000
    loader = data.DataLoader([text] * 8, 2, batchify_fn=batchify.AsList(), num_workers=2)
    assert list(loader) == [[text, text]] * 4
    everything_at_once = data.DataLoader(np.arange(50_000), 50_000, num_workers=1)
    (batch,) = everything_at_once
    assert (batch == np.arange(50_000)).all()


def test_shared_memory_is_used_again_and_kept_while_it_is_needed():
    loader = data.DataLoader(data.SimpleDataset(list(X)), 1, num_workers=1, prefetch=1)
    kept = list(loader)
    for i, batch in enumerate(kept):
        assert (batch[0].asnumpy() == X[i]).all()
    derived = [batch * 2 for batch in kept]
    del kept, batch
    gc.collect()
    for _ in range(3):
        for _batch in loader:
            pass
    assert all((d[0].asnumpy() == 2 * X[i]).all() for i, d in enumerate(derived))
    shelf = len(loader._pool._workers[0].receiver._memory)
    for _batch in loader:
        pass
    assert len(loader._pool._workers[0].receiver._memory) == shelf


def test_a_shelf_lets_go_of_what_it_does_not_need():
    shelf = transport.Shelf()
    for size in range(1, 40):
        stored, memory = shelf.make((size, 4096), "float32")
        memory[...] = size
        shelf.take_back([stored.segment])
    new, files, dropped = shelf.news()
    assert len(new) - len(dropped) <= 9
    for file in set(files):
        os.close(file) if file in {s.file for s in shelf._free} else None


@pytest.mark.parametrize("options", WORKERS[2:4])
def test_several_iterators_at_once(options):
    loader = data.DataLoader(list(range(12)), 3, **options)
    pairs = [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)]
    assert [a for a, b in pairs] == [b for a, b in pairs] == numpy.arange(12).reshape(4, 3).tolist()
    next(iter(loader))  # and one that is given up
    assert len(list(loader)) == 4


def test_auto_reload():
    loader = data.DataLoader(list(range(6)), 2, num_workers=1, auto_reload=True)
    for _ in range(3):
        assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5]]
    loader.refresh()
    loader.clean()
    assert len(list(loader)) == 3


def test_arguments():
    with pytest.raises(ArgumentError, match="batch_size"):
        data.DataLoader([1])
    with pytest.raises(ArgumentError, match="shuffle"):
        data.DataLoader([1], 1, shuffle=True, sampler=data.SequentialSampler(1))
    with pytest.raises(ArgumentError, match="batch_sampler"):
        data.DataLoader([1], 1, batch_sampler=data.BatchSampler(data.SequentialSampler(1), 1))
    with pytest.raises(ArgumentError, match="timeout=0"):
        data.DataLoader([1], 1, timeout=0)
    batches = data.BatchSampler(data.SequentialSampler(3), 2)
    assert len(list(data.DataLoader([1, 2, 3], batch_sampler=batches, pin_memory=True))) == 2


SAMPLERS = [[3, 1, 2], (3, 1, 2), numpy.array([3, 1, 2]), {3: 0, 1: 0, 2: 0}.keys()]
SAMPLED_BATCHES = [[[3, 1], [2]], ((3, 1), (2,)), [range(3, 4), numpy.array([1, 2])]]


@pytest.mark.parametrize("options", WORKERS[::3])
def test_any_sequence_gives_the_order(options):
    dataset = data.ArrayDataset(np.arange(10))
    for sampler in SAMPLERS:
        loader = data.DataLoader(dataset, 2, sampler=sampler, **options)
        for _ in range(2):
            assert [batch.tolist() for batch in loader] == [[3, 1], [2]] and len(loader) == 2
    for batches in SAMPLED_BATCHES:
        loader = data.DataLoader(dataset, batch_sampler=batches, **options)
        for _ in range(2):
            expected = [list(batch) for batch in batches]
            assert [batch.tolist() for batch in loader] == expected and len(loader) == 2


@pytest.mark.parametrize("name", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("given", [iter([1]), 5, "12"])
def test_what_gives_no_order_twice_is_refused(name, given):
    with pytest.raises(ArgumentTypeError, match=f"{name} is"):
        data.DataLoader([1, 2, 3], **{name: given})


# -- what goes wrong ------------------------------------------------------------------------------


class Refused(Exception):
    def __init__(self, first, second):  # cannot be made from its message alone
        super().__init__(f"{first} {second}")


def fails(n):
    if n == 17:
        raise ValueError("seventeen")
    return n


def refuses(n):
    raise Refused("not", "this")


def test_an_error_comes_with_its_traceback_and_sample():
    loader = data.DataLoader(data.SimpleDataset(list(range(20))).transform(fails), 5, num_workers=2)
    batches = iter(loader)
    assert [next(batches).tolist() for _ in range(3)] == numpy.arange(15).reshape(3, 5).tolist()
    with pytest.raises(ValueError, match="seventeen") as caught:
        next(batches)
    cause = caught.value.__cause__
    assert isinstance(cause, WorkerError)
    assert "at sample 17" in str(cause) and 'raise ValueError("seventeen")' in str(cause)
    assert next(iter(loader)).tolist() == [0, 1, 2, 3, 4]  # the workers live on


def test_errors_that_cannot_travel():
    loader = data.DataLoader(data.SimpleDataset([1]).transform(refuses), 1, num_workers=1)
    with pytest.raises(WorkerError, match=r"(?s)at sample 1?0?.*Refused: not this"):
        list(loader)
    results = data.DataLoader([1], 1, batchify_fn=lambda s: threading.Lock(), num_workers=1)
    with pytest.raises(TypeError, match="lock"):
        list(results)
    shapes = data.DataLoader([numpy.ones(1), numpy.ones(2)], 2, num_workers=1)
    with pytest.raises(ValueError, match="number 1 has") as caught:
        list(shapes)
    assert "samples [0, 1]" in str(caught.value.__cause__)


def killed(n):
    if n == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def test_a_killed_worker_is_reported():
    dataset = list(range(12))
    loader = data.DataLoader(data.SimpleDataset(dataset).transform(killed), 3, num_workers=2)
    with pytest.raises(WorkerError, match=r"killed by SIGKILL.*samples \[6, 7, 8\]"):
        list(loader)
    dataset[7] = 0
    assert len(list(loader)) == 4


def test_a_worker_that_exits():
    loader = data.DataLoader(data.SimpleDataset([1]).transform(lambda n: os._exit(3)), 1,
                             num_workers=1)  # fmt: skip
    with pytest.raises(WorkerError, match="exited with code 3"):
        list(loader)


@pytest.mark.parametrize("threads", [False, True])
def test_a_late_batch(threads):
    wait = threading.Event() if threads else None
    slow = data.SimpleDataset([1]).transform(lambda n: wait.wait(2) if wait else time.sleep(20))
    loader = data.DataLoader(slow, 1, num_workers=1, timeout=0.2, thread_pool=threads)
    started = time.monotonic()
    with pytest.raises(WorkerTimeoutError, match=r"samples \[0\] did not come in time"):
        list(loader)
    if wait:
        wait.set()
    del loader
    assert time.monotonic() - started < 5


@pytest.mark.lengthy
def test_workers_end_with_their_loader():
    loader = data.DataLoader(list(range(8)), 2, num_workers=2)
    next(iter(loader))
    processes = [w.process for w in loader._pool._workers]
    assert all(p.is_alive() for p in processes)
    del loader
    gc.collect()
    assert not any(p.is_alive() for p in processes)
    assert not [p for p in multiprocessing.active_children() if p.name.startswith("loader-")]


_PROGRAM = """
import os, sys, time
from heterosis.gluon import data
def slow(n):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)
loader = data.DataLoader(data.SimpleDataset([1] * 9).transform(slow), 1, num_workers=2, prefetch=2)
"""


def start(program):
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM + textwrap.dedent(program)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def gone(pid, within=15):
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.lengthy
def test_ctrl_c_ends_parent_and_workers():
    with start("list(loader)") as process:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=30)
    assert process.returncode in (1, 130, -signal.SIGINT) and "KeyboardInterrupt" in errors
    assert errors.count("Traceback") == 1  # the workers say nothing
    assert all(gone(pid) for pid in pids)


def test_workers_do_not_outlive_a_killed_parent():
    program = """
    quick = data.DataLoader([1, 2], 1, num_workers=2)
    list(quick)
    print(*(w.process.pid for w in quick._pool._workers), flush=True)
    time.sleep(60)
    """
    with start(program) as process:
        pids = [int(p) for p in process.stdout.readline().split()]
        process.kill()
        process.communicate(timeout=30)
    assert len(pids) == 2 and all(gone(pid) for pid in pids)


@pytest.mark.lengthy
def test_the_program_ends_with_batches_under_way():
    with start("iterator = iter(loader)\nimport itertools\nloader.refresh()") as process:
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert all(gone(int(pid)) for pid in out.split())


def test_a_worker_whose_answers_nobody_read_ends_quietly():
    loader = data.DataLoader(list(range(20)), 2, num_workers=1, prefetch=6)
    iterator = iter(loader)
    next(iterator)
    (worker,) = loader._pool._workers
    time.sleep(0.2)  # answers arrive
    worker.connection.close()
    worker.process.join(10)
    assert worker.process.exitcode == 0


@pytest.mark.parametrize("options", WORKERS[:2])
@pytest.mark.parametrize("auto_reload", [False, True])
@pytest.mark.parametrize("last_batch", data.sampler.LAST_BATCH)
def test_a_loader_goes_on_where_another_was(options, auto_reload, last_batch):
    def made():
        return data.DataLoader(
            np.array(X), BATCH, True, last_batch=last_batch, auto_reload=auto_reload, **options
        )

    loader = made()
    for _ in range(2):
        list(loader)
    loader_state, drawn = loader.state(), np.random.get_state()
    expected = [batch.asnumpy() for batch in loader]
    np.random.seed(5)
    other = made()
    next(iter(other))
    other.restore(loader_state)
    np.random.set_state(drawn)
    for mine, theirs in zip(other, expected, strict=True):
        numpy.testing.assert_array_equal(mine.asnumpy(), theirs)


# -- datasets that end, and processes that are forked ---------------------------------------------


@pytest.mark.parametrize("options", WORKERS)
def test_a_stop_iteration_of_a_dataset_does_not_end_the_epoch(options):
    def ends(n):
        return next(iter([n] if n != 9 else []))

    loader = data.DataLoader(
        data.SimpleDataset(list(range(COUNT))).transform(ends), BATCH, **options
    )
    with pytest.raises(WorkerError, match="has raised StopIteration"):
        list(loader)


def in_a_fork(function):
    """Check that `function` holds in a child, while this process waits for it."""
    child = os.fork()
    if not child:
        done = False
        try:
            done = function()
        finally:
            os._exit(0 if done else 1)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("options", WORKERS[1:4])
@pytest.mark.parametrize("auto_reload", [False, True])
def test_a_forked_child_has_workers_of_its_own(options, auto_reload):
    loader = data.DataLoader(arrays(), BATCH, auto_reload=auto_reload, **options)
    iterator = iter(loader)
    next(iterator)

    def child():
        with pytest.raises(WorkerError, match=f"those of process {os.getppid()}"):
            next(iterator)
        check_epoch(loader)
        check_epoch(loader)
        return True

    assert in_a_fork(child)()
    assert len(list(iterator)) == 5
    check_epoch(loader)


def test_batches_of_a_forked_child_do_not_change():
    """They were memory that workers wrote other batches to, and that both processes wrote to."""
    loader = data.DataLoader(data.SimpleDataset(list(X)), 1, num_workers=1, prefetch=1)
    iterator = iter(loader)
    held = [next(iterator), next(iterator)]
    written, may_write = os.pipe()
    is_read, may_read = os.pipe()

    def child():
        held[1][:] = 7
        held[1].wait_to_read()
        os.write(may_write, b"1")
        os.read(is_read, 1)  # when the parent has seen all other batches
        return bool((held[0].asnumpy()[0] == X[0]).all() and (held[1].asnumpy() == 7).all())

    holds = in_a_fork(child)
    os.read(written, 1)
    assert (held[1].asnumpy()[0] == X[1]).all()
    held[1][:] = 5
    held.pop(1).wait_to_read()
    held.clear()
    for i, batch in enumerate(iterator, 2):
        assert (batch.asnumpy()[0] == X[i]).all()
    os.write(may_read, b"1")
    assert holds()
    receiver = loader._pool._workers[0].receiver
    del batch
    gc.collect()
    list(loader)
    assert not receiver._forked  # the worker has let go of them
    for end in (written, may_write, is_read, may_read):
        os.close(end)
