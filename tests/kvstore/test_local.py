"""The key-value store in one process."""

import pytest

from heterosis import kvstore, np, optimizer
from heterosis.runtime.errors import ArgumentError, FormatError, UnsupportedError


def pulled(store, key=3):
    out = np.zeros(2)
    store.pull(key, out=out)
    return out.tolist()


def test_values_are_started_pushed_and_pulled():
    store = kvstore.create("device")
    store.init(3, np.ones(2))
    assert pulled(store) == [1, 1]
    store.push(3, [np.ones(2)] * 3)
    assert pulled(store) == [3, 3]
    store.init([5, "w"], [np.ones(2), np.zeros(2)])
    store.push([5, "w"], [np.full(2, 4.0), [np.ones(2), np.ones(2)]])
    assert pulled(store, 5) == [4, 4] and pulled(store, "w") == [2, 2]
    assert (store.rank, store.num_workers, store.type) == (0, 1, "device")
    assert store.is_capable("optimizer")


def test_pushpull_adds_up_over_all():
    store = kvstore.create()
    grads = [np.ones(2), np.full(2, 2.0)]
    store.pushpull(0, grads)
    assert [g.tolist() for g in grads] == [[3, 3], [3, 3]]
    outs = [np.zeros(2), np.zeros(2)]
    store.broadcast(1, np.full(2, 7.0), outs)
    assert outs[1].tolist() == [7, 7]
    store.pushpull(1, grads, out=outs)
    assert outs[0].tolist() == [6, 6]


def test_an_optimizer_in_the_store(tmp_path):
    store = kvstore.create()
    store.set_optimizer(optimizer.SGD(learning_rate=0.1, momentum=0.9))
    store.init(3, np.ones(2))
    store.push(3, np.ones(2))
    assert pulled(store) == pytest.approx([0.9, 0.9])
    file = str(tmp_path / "states")
    store.save_optimizer_states(file, dump_optimizer=True)
    other = kvstore.create()
    other.set_optimizer(optimizer.SGD(learning_rate=0.5, momentum=0.1))
    other.init(3, np.full(2, 0.9))
    other.load_optimizer_states(file)
    for one in (store, other):
        one.push(3, np.ones(2))
        assert pulled(one) == pytest.approx([0.71, 0.71])
    assert [p.name for p in tmp_path.iterdir()] == ["states"]


@pytest.mark.parametrize("length", [0, 7, 60, -1])
def test_truncated_states_are_refused(tmp_path, length):
    store = kvstore.create()
    store.set_optimizer(optimizer.SGD(momentum=0.9))
    store.init(3, np.ones(2))
    store.push(3, np.ones(2))
    file = tmp_path / "states"
    store.save_optimizer_states(str(file))
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(FormatError, match=r"states: .*cut off.*Nothing has been loaded"):
        store.load_optimizer_states(str(file))


def test_a_crash_while_writing_leaves_the_old_states(tmp_path, monkeypatch):
    def crash(handle):
        raise KeyboardInterrupt

    store = kvstore.create()
    store.set_optimizer(optimizer.SGD(momentum=0.9))
    file = tmp_path / "states"
    file.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        store.save_optimizer_states(str(file))
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("states", b"old")]


def test_a_store_of_ones_own():
    @kvstore.KVStoreBase.register
    class Mine(kvstore.KVStoreBase):
        pass

    assert isinstance(kvstore.create("mine"), Mine)
    with pytest.raises(NotImplementedError, match="Mine has to define"):
        kvstore.create("mine").pushpull(0, np.ones(2))


BAD = {
    "unknown": (lambda: kvstore.create("globe"), ArgumentError, "known are"),
    "sparse": (lambda: kvstore.create().row_sparse_pull(0), UnsupportedError, "sparse"),
    "compress": (lambda: kvstore.create().set_gradient_compression({}), UnsupportedError, "one"),
    "not started": (lambda: kvstore.create().push(0, np.ones(2)), ArgumentError, "init"),
    "no optimizer": (
        lambda: kvstore.create().save_optimizer_states("x"),
        ArgumentError,
        "set_optimizer",
    ),
    "lists": (lambda: kvstore.create().init([0, 1], [np.ones(2)]), ArgumentError, "2 keys"),
    "arrays": (lambda: kvstore.create().init(0, 1.0), ArgumentError, "holds arrays"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        make()
