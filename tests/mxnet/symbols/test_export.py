"""Blocks to files and back, and files that MXNet wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy
import pytest

from heterosis import autograd, gluon, np, npx
from heterosis import symbol as sym
from heterosis.gluon import SymbolBlock, nn, rnn
from heterosis.runtime.errors import (
    ArgumentError,
    FormatError,
    UninitializedError,
    UnsupportedError,
)
from tests.capture.test_sizes import LAYERS, block
from tests.mxnet.symbols import peer
from tests.mxnet.symbols.stored import STORED

DATA = Path(__file__).with_name("data")


def small() -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(3, 3, padding=1, activation="relu"), nn.BatchNorm(), nn.Dropout(0.5))
        net.add(nn.Dense(2))
    net.initialize()
    return net


def exported(net, to, *inputs):
    net.hybridize()
    net(*inputs)
    return net.export(str(to / "model"))


X = np.array(peer.numbers((2, 2, 4, 4)))


def test_both_files_are_named_and_read_back(tmp_path):
    net = small()
    files = exported(net, tmp_path, X)
    assert files == (str(tmp_path / "model-symbol.json"), str(tmp_path / "model-0000.params"))
    assert net.export(str(tmp_path / "model"), epoch=12)[1].endswith("model-0012.params")
    read = SymbolBlock.imports(files[0], ["data"], files[1])
    for _ in range(2):
        numpy.testing.assert_allclose(read(X).asnumpy(), net(X).asnumpy(), rtol=1e-5)
        read.hybridize()
    assert set(read.collect_params()) == set(net.collect_params())


def test_nodes_and_parameters_are_named_after_their_blocks(tmp_path):
    files = exported(small(), tmp_path, X)
    names = [n["name"] for n in json.loads(Path(files[0]).read_text())["nodes"]]
    assert [n for n in names if n.endswith("fwd")] == [
        "net_conv0_fwd", "net_conv0_relu_fwd", "net_batchnorm0_fwd", "net_dropout0_fwd",
        "net_dense0_fwd",
    ]  # fmt: skip
    kinds = {name: name.partition(":")[0] for name in npx.load(files[1])}
    assert kinds["aux:net_batchnorm0_running_mean"] == "aux"
    assert kinds["arg:net_conv0_weight"] == "arg"


def test_other_batches_run_too(tmp_path):
    files = exported(small(), tmp_path, X)
    read = SymbolBlock.imports(files[0], "data", files[1])
    assert read(np.ones((5, 2, 4, 4))).shape == (5, 2)


@pytest.mark.lengthy
@pytest.mark.parametrize("name", LAYERS)
def test_blocks_whose_extents_are_open_run_at_every_size(name, tmp_path):
    make, shape = LAYERS[name]
    net = block(make, shape(4))
    inputs = {n: np.array(peer.numbers(shape(n))) for n in (4, 1, 8, 64, 3)}
    expected = {n: net(x).asnumpy() for n, x in inputs.items()}
    net.hybridize()
    for n in (4, 8, 3):
        net(inputs[n])
    symbol, parameters = net.export(str(tmp_path / "model"))
    read = SymbolBlock.imports(symbol, ["data"], parameters)
    for _ in range(2):
        for n, x in inputs.items():
            numpy.testing.assert_allclose(read(x).asnumpy(), expected[n], rtol=2e-5, atol=2e-6)
        read.hybridize()
    for n, x in inputs.items():
        numpy.testing.assert_allclose(read(x).asnumpy(), expected[n], rtol=2e-5, atol=2e-6)
    assert read._compiled.captures <= 4, list(read._compiled.captures_why)


def test_a_block_that_was_only_trained_is_exported_as_it_predicts(tmp_path):
    net = small()
    net.hybridize()
    with autograd.record():
        net(X)
    files = net.export(str(tmp_path / "model"))
    read = SymbolBlock.imports(files[0], "data", files[1])
    numpy.testing.assert_allclose(read(X).asnumpy(), net(X).asnumpy(), rtol=1e-5)


def test_what_was_read_can_be_trained(tmp_path):
    files = exported(small(), tmp_path, X)
    read = SymbolBlock.imports(files[0], "data", files[1])
    read.hybridize()
    mean = read.params["net_batchnorm0_running_mean"].data().asnumpy()
    trainer = gluon.Trainer(read.collect_params(), "sgd", {"learning_rate": 0.003})
    losses = []
    for _ in range(5):
        with autograd.record():
            loss = np.square(read(X) - 1).sum()
        loss.backward()
        trainer.step(1)
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert abs(read.params["net_batchnorm0_running_mean"].data().asnumpy() - mean).max() > 0


def test_what_was_read_is_exported_again(tmp_path):
    files = exported(small(), tmp_path, X)
    read = SymbolBlock.imports(files[0], "data", files[1])
    again = read.export(str(tmp_path / "again"))
    assert Path(again[0]).read_bytes() == Path(files[0]).read_bytes()
    assert set(npx.load(again[1])) == set(npx.load(files[1]))


def test_parameters_can_be_left_out_and_initialised(tmp_path):
    read = SymbolBlock.imports(exported(small(), tmp_path, X)[0], ["data"])
    read.initialize()
    assert numpy.isfinite(read(X).asnumpy()).all()


def test_shapes_that_the_symbol_does_not_tell_are_completed():
    net = sym.FullyConnected(sym.BatchNorm(sym.var("data"), name="bn"), num_hidden=3, name="fc")
    block = SymbolBlock(net, sym.var("data"))
    block.initialize()
    assert block(np.ones((2, 4))).shape == (2, 3)
    assert block.params["fc_weight"].shape == (3, 4)


def test_internals_become_blocks_that_share_parameters(tmp_path):
    net = small()
    outputs = sym.load(exported(net, tmp_path, X)[0]).get_internals()
    chosen = [outputs["net_conv0_relu_fwd_output"], outputs["net_dense0_fwd_output"]]
    block = SymbolBlock(chosen, sym.var("data"), params=net.collect_params())
    features, result = block(X)
    assert features.shape == (2, 3, 4, 4)
    numpy.testing.assert_allclose(result.asnumpy(), net(X).asnumpy(), rtol=1e-5)
    assert block.params["net_conv0_weight"] is net[0].weight


def test_several_inputs_and_results(tmp_path):
    class Pair(gluon.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return [x + y, (x * 2, y[:, 1:])]

    x, y = np.ones((2, 3)), np.full((2, 3), 2.0)
    net = Pair()
    files = exported(net, tmp_path, x, y)
    found = SymbolBlock.imports(files[0], ["data0", "data1"])(x, y)
    assert [a.shape for a in found] == [(2, 3), (2, 3), (2, 2)]


def test_arrays_that_are_no_parameters_travel_along(tmp_path):
    table = np.array([[1.0, 2.0, 3.0]])
    net = nn.HybridLambda(lambda F, x: x + table)
    files = exported(net, tmp_path, np.zeros((2, 3)))
    read = SymbolBlock.imports(files[0], "data", files[1])
    assert read(np.zeros((1, 3))).asnumpy().tolist() == [[1, 2, 3]]


# -- what cannot be written -----------------------------------------------------------------------


def test_a_block_without_a_program_says_what_to_do(tmp_path):
    net = small()
    net(X)
    with pytest.raises(UninitializedError, match=r"call hybridize\(\) on it, run it once"):
        net.export(str(tmp_path / "model"))
    assert not list(tmp_path.iterdir())


def test_all_operations_without_an_operator_are_listed(tmp_path):
    net = nn.HybridLambda(lambda F, x: F.np.cross(F.np.fmod(x, 2), x // 3))
    with pytest.raises(
        UnsupportedError, match=r"3 operations .* cross, floor_divide, fmod"
    ) as told:
        exported(net, tmp_path, np.ones((2, 3)))
    assert "hybridlambda" not in str(told.value)
    assert not list(tmp_path.iterdir())


def test_writes_to_arrays_from_outside_are_refused(tmp_path):
    count = np.zeros(3)

    class Counting(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            count[:] += x
            return x

    with pytest.raises(UnsupportedError, match="writes to arrays from outside"):
        exported(Counting(), tmp_path, np.ones(3))


def test_a_failed_export_leaves_older_files_whole(tmp_path):
    files = exported(small(), tmp_path, X)
    before = [Path(name).read_bytes() for name in files]
    with pytest.raises(UnsupportedError):
        exported(nn.HybridLambda(lambda F, x: x // 2), tmp_path, X)
    assert [Path(name).read_bytes() for name in files] == before


# -- what cannot be read --------------------------------------------------------------------------


def test_files_that_are_cut_off_load_nothing(tmp_path):
    files = [Path(name) for name in exported(small(), tmp_path, X)]
    for file in files:
        whole = file.read_bytes()
        for length in (0, len(whole) // 3, len(whole) - 2):
            file.write_bytes(whole[:length])
            with pytest.raises(FormatError):
                SymbolBlock.imports(files[0], "data", files[1])
        file.write_bytes(whole)
    assert SymbolBlock.imports(files[0], "data", files[1])(X).shape == (2, 2)


def test_files_that_do_not_fit_each_other_are_refused(tmp_path):
    files = exported(small(), tmp_path, X)
    arrays = npx.load(files[1])
    arrays["arg:net_dense0_bias"] = np.ones(7)
    del arrays["arg:net_conv0_bias"]
    npx.save(files[1], arrays)
    with pytest.raises(
        ArgumentError, match=r"nothing was loaded(.|\n)*conv0_bias(.|\n)*dense0_bias"
    ):
        SymbolBlock.imports(files[0], "data", files[1])


def test_inputs_must_be_variables_of_the_symbol(tmp_path):
    files = exported(small(), tmp_path, X)
    with pytest.raises(ArgumentError, match=r"\['image'\] are no variables"):
        SymbolBlock.imports(files[0], "image", files[1])
    read = SymbolBlock.imports(files[0], "data", files[1])
    with pytest.raises(ArgumentError, match="2 inputs; expected 1"):
        read(X, X)


# -- what MXNet wrote -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", STORED, ids=lambda case: case[0])
@pytest.mark.parametrize("hybridized", [False, True], ids=["eager", "hybridized"])
def test_networks_from_mxnet_give_the_same_results(case, hybridized):
    name, _, shape = case
    read = SymbolBlock.imports(DATA / f"{name}-symbol.json", ["data"], DATA / f"{name}-0000.params")
    read.hybridize(hybridized)
    with numpy.load(DATA / f"{name}.npz") as stored:
        expected = stored["arr_0"]
    found = read(np.array(peer.numbers(shape))).asnumpy()
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_we_write_what_mxnet_writes(tmp_path):
    name, expression, shape = STORED[0]
    net = peer.made(expression, gluon)
    net.initialize()
    ours = json.loads(Path(exported(net, tmp_path, np.array(peer.numbers(shape)))[0]).read_text())
    theirs = json.loads((DATA / f"{name}-symbol.json").read_text())
    assert [n["op"] for n in ours["nodes"]] == [n["op"] for n in theirs["nodes"]]
    for own, other in zip(ours["nodes"], theirs["nodes"], strict=True):
        assert [e[:2] for e in own["inputs"]] == [e[:2] for e in other["inputs"]]
        texts = {
            k: v for k, v in other.get("attrs", {}).items() if k not in ("__shape__", "cudnn_off")
        }
        assert {k: own["attrs"].get(k) for k in texts} == texts
    assert ours["node_row_ptr"] == theirs["node_row_ptr"]
    assert ours["arg_nodes"] == theirs["arg_nodes"]
    for added in ("heterosis_export", "heterosis_checksum"):
        assert ours["attrs"].pop(added)[0] == "str"
    assert ours["attrs"] == theirs["attrs"]


def test_the_first_format_of_all_is_read():
    net = sym.load(DATA / "first_format.json")
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.infer_shape(data=(2, 4), softmax_label=(2,))[1] == [(2, 3)]


def test_recurrent_layers_of_networks_serve_any_batch(tmp_path):
    net = nn.HybridSequential()
    net.add(rnn.LSTM(3, num_layers=2), nn.Dense(2, flatten=False))
    net.initialize()
    files = exported(net, tmp_path, np.ones((4, 2, 3)))
    read = SymbolBlock.imports(files[0], "data", files[1])
    assert read(np.ones((4, 5, 3))).shape == (4, 5, 2)
    shutil.rmtree(tmp_path)  # nothing is read later
    numpy.testing.assert_allclose(
        read(np.ones((4, 2, 3))).asnumpy(), net(np.ones((4, 2, 3))).asnumpy(), rtol=1e-5
    )


# -- two files, one unit ---------------------------------------------------------------------------


def _dense(width, prefix="same_"):
    net = nn.Dense(width, prefix=prefix)
    net.initialize()
    return net


def _pair(tmp_path, name, net, epoch=0):
    net.hybridize()
    net(np.ones((2, 4)))
    return net.export(str(tmp_path / name), epoch)


def test_files_of_different_exports_are_refused_by_name(tmp_path):
    one, other = _pair(tmp_path, "one", _dense(3)), _pair(tmp_path, "other", _dense(3, "other_"))
    message = f"{one[0]} and {other[1]} do not belong together"
    with pytest.raises(FormatError, match=message):
        SymbolBlock.imports(one[0], ["data"], other[1])
    for pair in (one, other):
        assert SymbolBlock.imports(pair[0], ["data"], pair[1])(np.ones((2, 4))).shape == (2, 3)


def test_parameters_of_another_epoch_go_with_the_symbol(tmp_path):
    net = _dense(3)
    _, first = _pair(tmp_path, "net", net)
    net.weight.set_data(net.weight.data() * 2)
    symbol, second = _pair(tmp_path, "net", net, epoch=7)
    x = np.ones((2, 4))
    found = [SymbolBlock.imports(symbol, ["data"], file)(x).asnumpy() for file in (first, second)]
    numpy.testing.assert_allclose(found[0] * 2, found[1], rtol=1e-6)


def test_files_without_a_mark_go_with_any(tmp_path):
    symbol, arrays = _pair(tmp_path, "net", _dense(3))
    plain = tmp_path / "plain"
    npx.save(plain, npx.load(arrays))
    assert SymbolBlock.imports(symbol, ["data"], str(plain)).params["same_weight"].shape == (3, 4)
    sym.load(symbol).save(str(plain) + ".json")
    SymbolBlock.imports(str(plain) + ".json", ["data"], arrays)


@pytest.mark.parametrize("mark", [3, ["str", "no number"], ["str"], ["str", 5]])
def test_a_mark_that_is_none_is_refused(mark, tmp_path):
    symbol, arrays = _pair(tmp_path, "net", _dense(3))
    found = json.loads(Path(symbol).read_text())
    found["attrs"]["heterosis_export"] = mark
    Path(symbol).write_text(json.dumps(found))
    with pytest.raises(FormatError, match="hexadecimal"):
        SymbolBlock.imports(symbol, ["data"], arrays)


def test_a_failed_export_changes_neither_file(tmp_path, monkeypatch):
    before = [Path(file).read_bytes() for file in _pair(tmp_path, "net", _dense(3))]
    net = _dense(5)
    net.hybridize()
    net(np.ones((2, 4)))
    synced = []

    def full(*arguments):
        synced.append(arguments)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr("os.fsync", full)
        net.export(str(tmp_path / "net"))
    files = sorted(tmp_path.iterdir())
    assert synced and [file.name for file in files] == ["net-0000.params", "net-symbol.json"]
    assert [file.read_bytes() for file in reversed(files)] == before
