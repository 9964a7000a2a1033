"""What every process does in the tests of stores that join them: python -m tests.kvstore.joined"""

import os
from unittest import mock

import numpy
from mpi4py import MPI

from heterosis import autograd, gluon, hybridize, kvstore, np
from heterosis.gluon import nn
from heterosis.kvstore import buckets
from heterosis.runtime.errors import (
    ArgumentError,
    CaptureError,
    CommunicationError,
    LinearAlgebraError,
)
from tests.processes import raises

STORE = kvstore.create("mpi")
RANK, COUNT = STORE.rank, STORE.num_workers
ALL = COUNT * (COUNT + 1) // 2  # the sum of rank + 1

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8")


def names():
    for name in ("dist_sync", "horovod", "dist_device_sync"):
        store = kvstore.create(name)
        assert (store.type, store.rank, store.num_workers) == (name, RANK, COUNT)
        assert store.is_capable("optimizer")


def numbers_are_added_up():
    assert STORE.sum([RANK + 1, 0.5]) == [ALL, 0.5 * COUNT]
    assert STORE.sum([]) == []


def one_message_holds_all_types_and_shapes():
    shapes = [(3,), (), (2, 0), (4, 5)]
    arrays = [np.full(s, RANK + 1, dtype=d) for d in DTYPES for s in shapes]
    STORE.exchange(list(range(len(arrays))), [[a] for a in arrays])
    for array in arrays:
        assert (array.asnumpy().astype("float32") == ALL).all(), (array.dtype, array)


def views_and_lists_are_summed():
    base = np.full((4, 6), RANK + 1.0)
    turned = base.T[1:3]
    second = np.ones((2, 4))
    STORE.exchange(["w"], [[turned, second]])
    assert (turned.asnumpy() == ALL + COUNT).all() and (second.asnumpy() == ALL + COUNT).all()
    assert (base[:, 0].asnumpy() == RANK + 1).all()


def buckets_are_used_again_only_when_read():
    found = []
    for number in range(20):
        array = np.full(10000, float(number * (RANK + 1)))
        STORE.exchange(["w"], [[array]])
        found.append(array)
    for number, array in enumerate(found):
        assert (array.asnumpy() == number * ALL).all()


def large_arrays_are_messages_of_their_own():
    large = [np.full((1 << 19, 2), RANK + 1.0) for _ in range(2)]
    halves = [np.full(1 << 19, RANK + 2.0) for _ in range(3)]
    narrow = np.full((1 << 21,), RANK + 1, dtype="float16")
    turned = np.full((1 << 10, 1 << 10), RANK + 1.0).T
    arrays = [*large, *halves, narrow, turned]
    keys, lists = list(range(len(arrays))), [[a] for a in arrays]

    def turns():
        return [3, 1, 2, 9, 0, 4, 5]

    for turn in range(3):
        arrays[0][...] = RANK + turn  # written before, and read behind, in the order of the program
        STORE.exchange(keys, lists, turns)
        seen = arrays[0] + 0
        arrays[0][...] = 0
        assert (seen.asnumpy() == ALL + COUNT * (turn - 1)).all()
        assert (halves[0].asnumpy() == (ALL + COUNT) * COUNT**turn).all()
        assert (turned.asnumpy() == ALL * COUNT**turn).all()
        assert (narrow.asnumpy() == ALL * COUNT**turn).all()
    (messages,) = STORE._plans[turns].values()
    assert len(messages) == 6 and messages[0].places == (1,)


def exchanges_do_not_wait():
    """Process 1 comes only when the others have gone on."""
    array = np.full(3, RANK + 1.0)
    STORE.exchange(["late"], [[np.ones(3)]])
    if RANK == 1:
        MPI.COMM_WORLD.Barrier()
    STORE.exchange(["late"], [[array]])
    later = array * 2
    if RANK != 1:
        assert not later._ready
        MPI.COMM_WORLD.Barrier()
    assert later.tolist() == [2 * ALL] * 3


def errors_of_one_are_told_to_all():
    matrix = np.zeros((2, 2)) if RANK == 1 else np.eye(2)
    STORE.exchange(["inverse"], [[np.ones((2, 2))]])
    inverse = np.linalg.inv(matrix)
    own = LinearAlgebraError if RANK == 1 else CommunicationError
    if not STORE._messages.beside:
        raises(CommunicationError, "singular", lambda: STORE.exchange(["inverse"], [[inverse]]))
        return
    STORE.exchange(["inverse"], [[inverse]])
    raises(own, "singular", lambda: (inverse + 1).asnumpy())
    raises(CommunicationError, "process 1 has met an error", lambda: STORE.sum([1]))
    assert STORE.sum([1]) == [COUNT]


def a_failed_exchange_sends_no_more():
    arrays = [np.ones(1 << 20), np.ones(1 << 20)]
    STORE.exchange(["a", "b"], [[a] for a in arrays])

    def exchange():
        STORE.exchange(["a", "b"], [[a] for a in arrays])

    if RANK or not STORE._messages.beside:
        call = (lambda: STORE.sum([1])) if RANK else exchange
        raises(CommunicationError, "process 0 exchange, part 1 of 2", call)
    else:
        exchange()
        for array in arrays:
            raises(CommunicationError, "Issued at", array.wait_to_read)
        raises(CommunicationError, "do not do the same", lambda: STORE.sum([1]))
    assert STORE.sum([1]) == [COUNT]  # all are at the same call again


def forks_wait_for_what_is_queued():
    arrays = [np.full(1 << 20, RANK + 1.0) for _ in range(4)]
    STORE.exchange(list("abcd"), [[a] for a in arrays])
    child = os.fork()
    if child == 0:
        os._exit(0 if all(a[-1].item() == ALL for a in arrays) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert arrays[3][0].item() == ALL


def values_of_process_0_are_the_first():
    out = [np.zeros(2), np.zeros(2)]
    STORE.broadcast("b", np.full(2, RANK + 7.0), out)
    assert [o.tolist() for o in out] == [[7, 7], [7, 7]]
    half = np.zeros(3, dtype="bfloat16")
    STORE.broadcast("h", np.full(3, RANK + 0.5, dtype="bfloat16"), half)
    assert half.astype("float32").tolist() == [0.5] * 3


def pushes_are_added_up():
    store, out = kvstore.create("mpi"), np.zeros(2)
    store.init("w", np.full(2, RANK + 3.0))
    store.pull("w", out)
    assert out.tolist() == [3, 3]
    given = np.full(2, RANK + 1.0)
    store.push("w", given)
    store.pull("w", out)
    assert out.tolist() == [ALL, ALL] and given.tolist() == [RANK + 1] * 2
    store.pushpull("new", given)
    assert given.tolist() == [ALL, ALL]
    store.barrier()


def an_optimizer_in_the_store():
    store, out = kvstore.create("dist_sync"), np.zeros(2)
    from heterosis import optimizer

    store.set_optimizer(optimizer.SGD(learning_rate=0.5))
    store.init("w", np.ones(2))
    store.push("w", np.full(2, RANK + 1.0))
    store.pull("w", out)
    numpy.testing.assert_allclose(out.asnumpy(), 1 - 0.5 * ALL)


def other_calls_are_refused_by_all():
    array = np.ones(2 + RANK)
    raises(CommunicationError, "do not do the same", lambda: STORE.exchange(["w"], [[array]]))
    call = (lambda: STORE.sum([1])) if RANK else STORE.barrier
    raises(CommunicationError, "process 0 barrier", call)
    assert STORE.sum([1]) == [COUNT]  # and all can go on


def no_part_of_a_program():
    array = np.ones(2)

    def step(x):
        STORE.exchange(["w"], [[x]])
        return x

    raises(CaptureError, "outside", lambda: hybridize(step)(array))


def trained(rank, count, steps=4, programs="one", **settings):
    """A network after some steps on this process's part of batches, of which the last is short."""
    data = numpy.random.default_rng(0).standard_normal((22, 5)).astype("float32")
    numbers = numpy.random.default_rng(1).standard_normal((22, 1)).astype("float32")
    np.random.seed(11 + rank)  # process 0's values count
    net = nn.HybridSequential()
    net.add(nn.Dense(7, activation="tanh", in_units=5), nn.Dense(1, in_units=7))
    net.initialize()
    for block in {"one": [net], "each": net, "none": []}[programs]:
        block.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, **settings)
    sampler = gluon.data.SharedBatchSampler(22, 8, rank, count, seed=5)
    dataset = gluon.data.ArrayDataset(np.array(data), np.array(numbers))
    loader = gluon.data.DataLoader(dataset, batch_sampler=sampler)
    for _ in range(steps):
        for number, (x, y) in enumerate(loader):
            with autograd.record():
                loss = gluon.loss.L2Loss()(net(x), y)
            loss.backward()
            trainer.step([8, 8, 6][number])
    return numpy.concatenate([p.data().asnumpy().ravel() for p in net.collect_params().values()])


def training_is_that_of_one_process():
    expected = trained(0, 1)
    for enough, programs in ((buckets.ENOUGH, "one"), (8, "each"), (64, "none")):
        with mock.patch.object(buckets, "ENOUGH", enough):
            found = trained(RANK, COUNT, programs=programs, kvstore=kvstore.create("mpi"))
        numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        every = STORE.sum(found.tolist())
        assert numpy.array_equal(numpy.array(every) / COUNT, found), "processes hold other values"


def networks_of_the_first_pass():
    """Unknown shapes: values that the first pass draws must be those of process 0."""

    def step(seed):
        np.random.seed(seed)
        net = nn.Dense(3)
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=STORE)
        with autograd.record():
            loss = net(np.ones((2, 4))).sum()
        loss.backward()
        trainer.step(2)

    step(3)
    text = "first forward" if RANK else "other processes"
    raises(ArgumentError, text, lambda: step(3 + RANK))


def stale_gradients_are_told_of():
    net = nn.Dense(3, in_units=4)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=STORE)
    raises(UserWarning, "since the last step", lambda: trainer.step(1))
    raises(NotImplementedError, "ignore_stale_grad", lambda: trainer.step(1, True))
    with autograd.record():
        loss = net(np.full((1, 4), RANK + 1.0)).sum()
    loss.backward()
    trainer.allreduce_grads()
    assert net.weight.grad().tolist() == [[ALL] * 4] * 3
    trainer.update(1)


CASES = [
    names,
    numbers_are_added_up,
    one_message_holds_all_types_and_shapes,
    views_and_lists_are_summed,
    buckets_are_used_again_only_when_read,
    large_arrays_are_messages_of_their_own,
    errors_of_one_are_told_to_all,
    a_failed_exchange_sends_no_more,
    forks_wait_for_what_is_queued,
    values_of_process_0_are_the_first,
    pushes_are_added_up,
    an_optimizer_in_the_store,
    other_calls_are_refused_by_all,
    no_part_of_a_program,
    training_is_that_of_one_process,
    networks_of_the_first_pass,
    stale_gradients_are_told_of,
]
if STORE._messages.beside:
    CASES.append(exchanges_do_not_wait)


def main():
    for case in CASES:
        case()
        STORE.barrier()
    if RANK == 0:
        print("passed", len(CASES), flush=True)


if __name__ == "__main__":
    main()
