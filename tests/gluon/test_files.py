"""Saving and loading: what fits is loaded, what does not is listed and changes nothing."""

import json
from pathlib import Path

import pytest

from heterosis import np, npx
from heterosis.gluon import nn, rnn
from heterosis.runtime.errors import ArgumentError, HeterosisError


def network(*units, inputs=3):
    net = nn.HybridSequential()
    with net.name_scope():
        for n in units:
            net.add(nn.Dense(n, in_units=inputs))
            inputs = n
    return net


@pytest.fixture
def saved(tmp_path):
    net = network(4, 2)
    net.initialize()
    net.save_parameters(str(tmp_path / "net.params"))
    return net, str(tmp_path / "net.params")


def values(net):
    return [p.data().asnumpy().tolist() for p in net.collect_params().values()]


def test_round_trip(saved):
    net, path = saved
    assert list(npx.load(path)) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    fresh = network(4, 2)
    fresh.load_parameters(path)
    assert values(fresh) == values(net)
    deferred = network(4, 2, inputs=0)
    deferred.load_parameters(path)
    assert values(deferred) == values(net)


def test_all_that_does_not_fit_is_listed_and_nothing_is_loaded(saved):
    _, path = saved
    net = network(5, 2, 7)
    net.initialize()
    before = values(net)
    with pytest.raises(ArgumentError) as caught:
        net.load_parameters(path)
    message = str(caught.value)
    assert "missing: '2.weight', '2.bias'" in message
    assert "'0.weight': shape (4, 3), expected (5, 3)" in message
    assert "'0.bias': shape (4,), expected (5,)" in message and "'1.weight'" in message
    assert values(net) == before
    small = network(4)
    with pytest.raises(ArgumentError, match=r"not in the network: '1\.weight', '1\.bias'"):
        small.load_parameters(path)
    small.load_parameters(path, ignore_extra=True)


def test_missing_parameters_can_be_left_as_they_are(saved):
    net, path = saved
    larger = network(4, 2, 3)
    larger.initialize()
    last = larger[2].weight.data().asnumpy().tolist()
    larger.load_parameters(path, allow_missing=True)
    assert values(larger)[:4] == values(net) and values(larger)[4] == last


def test_element_types(saved):
    net, path = saved
    double = network(4, 2)
    double.cast("float64")
    with pytest.raises(ArgumentError, match=r"dtype float32, expected float64.*cast_dtype"):
        double.load_parameters(path)
    double.load_parameters(path, cast_dtype=True)
    assert double[0].weight.data().dtype.name == "float64"
    double.load_parameters(path, cast_dtype=True, dtype_source="saved")
    assert double[0].weight.data().dtype.name == "float32" and values(double) == values(net)


def test_names_instead_of_places(tmp_path):
    net = network(4, 2)
    net.initialize()
    path = str(tmp_path / "named.params")
    net.collect_params().save(path, strip_prefix=net.prefix)
    fresh = network(4, 2)
    fresh.load_parameters(path)
    assert values(fresh) == values(net)
    npx.save(path, {f"arg:{name}": p.data() for name, p in net.collect_params().items()})
    net.initialize(force_reinit=True)
    net.load_parameters(path)
    assert values(net) == values(fresh)


def test_shared_parameters_are_saved_once(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=2))
    net.add(nn.Dense(2, in_units=2, params=net[0].collect_params()))
    net.initialize()
    path = str(tmp_path / "shared.params")
    net.save_parameters(path, deduplicate=True)
    assert len(npx.load(path)) == 2
    net.load_parameters(path)


def test_layers_and_stacks_of_cells_read_each_other(tmp_path):
    layer = rnn.LSTM(3, 2, bidirectional=True, input_size=2)
    layer.initialize()
    path = str(tmp_path / "lstm.params")
    layer.save_parameters(path)
    assert list(npx.load(path))[:2] == [
        "_unfused.0.l_cell.i2h_weight", "_unfused.0.l_cell.h2h_weight",
    ]  # fmt: skip
    stack = layer._unfuse()
    assert {id(p) for p in stack.collect_params().values()} == {
        id(p) for p in layer.collect_params().values()
    }


def test_whole_models(tmp_path):
    net = network(4, 2)
    net.initialize()
    net.save(str(tmp_path / "m"))
    names = json.loads((tmp_path / "m-model.json").read_text())
    assert names["hybridsequential0"]["dense1"]["orig_name"] == "hybridsequential0_dense0"
    fresh = network(4, 2)
    fresh.load(str(tmp_path / "m"))
    assert list(fresh.collect_params()) == list(net.collect_params())
    assert values(fresh) == values(net) and fresh[1].name == "hybridsequential0_dense1"
    with pytest.raises(ArgumentError, match="in the same way"):
        nn.Dense(2).load(str(tmp_path / "m"))


def test_damaged_files_leave_the_network_alone(saved, tmp_path):
    net, path = saved
    before = values(net)
    data = Path(path).read_bytes()
    for cut in (0, 10, len(data) // 2, len(data) - 1):
        broken = tmp_path / "broken.params"
        broken.write_bytes(data[:cut])
        with pytest.raises((HeterosisError, ValueError)):
            net.load_parameters(str(broken))
    assert values(net) == before
    with pytest.raises(FileNotFoundError):
        net.load_parameters(str(tmp_path / "none.params"))


def test_uninitialised_parameters_cannot_be_saved(tmp_path):
    with pytest.raises(RuntimeError, match="has not been initialized"):
        network(2).save_parameters(str(tmp_path / "x.params"))
    assert not (tmp_path / "x.params").exists()


def test_a_list_of_arrays_has_no_names(tmp_path):
    path = str(tmp_path / "list.params")
    npx.save(path, [np.ones(2)])
    with pytest.raises(ArgumentError, match="without names"):
        network(2).load_parameters(path)
