"""The files themselves: arrays beside them, limits, the command line, what came from files."""

import numpy
import onnx
import pytest

import heterosis
from heterosis import np
from heterosis.cli import main
from heterosis.gluon import SymbolBlock, nn
from heterosis.models import from_onnx, to_onnx
from heterosis.models.onnx import format as onnx_format
from heterosis.runtime.errors import ArgumentError, UnsupportedError
from tests.models.onnx.written import check_same, read_again, written

X = numpy.random.default_rng(0).normal(size=(2, 40)).astype("float32")


@pytest.fixture
def net():
    made = nn.HybridSequential()
    made.add(nn.Dense(50, activation="relu"), nn.Dense(30))
    made.initialize()
    made.hybridize()
    made(np.array(X))
    return made


def result(net):
    return [net(np.array(X)).asnumpy()]


def test_arrays_beside_the_file(net, tmp_path):
    path, beside = tmp_path / "net.onnx", tmp_path / "net.onnx.data"
    model = written(net, path, weights="file")
    assert beside.stat().st_size >= 4 * 40 * 50 and beside.stat().st_size % 4096 == 0
    assert path.stat().st_size < 4096
    onnx.checker.check_model(str(path))  # which looks at the other file too
    assert len(model.graph.initializer) == 4
    check_same(read_again(path, [X]), result(net))


def test_files_beyond_the_format_are_refused(net, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_format, "_MOST_BYTES", 10_000)
    (tmp_path / "net.onnx").write_bytes(b"before")
    with pytest.raises(UnsupportedError, match="weights='file'"):
        to_onnx(net, tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").read_bytes() == b"before"
    to_onnx(net, tmp_path / "net.onnx", weights="file")
    check_same(read_again(tmp_path / "net.onnx", [X]), result(net))


def test_options_are_checked(net, tmp_path):
    with pytest.raises(ArgumentError, match="expected one of inside, file"):
        to_onnx(net, tmp_path / "net.onnx", weights="somewhere")
    with pytest.raises(ArgumentError, match="there is no argument 'y'"):
        to_onnx(net, tmp_path / "net.onnx", dynamic={"y": [0]})


def test_a_file_that_was_read_is_written_again(net, tmp_path):
    to_onnx(net, tmp_path / "one.onnx", np.array(X), dynamic={"x": [0]})
    again = from_onnx(str(tmp_path / "one.onnx"))
    again.hybridize()
    model = written(again, tmp_path / "two.onnx", np.array(X), dynamic={"x": [0]})
    assert {"Gemm", "Relu"} <= {node.op_type for node in model.graph.node}
    check_same(read_again(tmp_path / "two.onnx", [X[:1]]), [result(net)[0][:1]])


def test_what_mxnet_wrote(net, tmp_path):
    names = net.export(str(tmp_path / "net"))
    block = SymbolBlock.imports(names[0], ["data"], names[1])
    written(block, tmp_path / "net.onnx", np.array(X))
    check_same(read_again(tmp_path / "net.onnx", [X]), result(net))


def test_from_the_command_line(net, tmp_path, capsys):
    saved = str(tmp_path / "saved")
    net.save_program(saved, np.array(X))
    assert main(["export", saved, "--format", "onnx"]) == 0
    assert capsys.readouterr().out.strip() == f"{saved}.onnx"
    check_same(read_again(f"{saved}.onnx", [X]), result(net))


def test_arguments_that_are_written_to_are_results(tmp_path):
    def fill(x, y):
        x[:, 0] = y
        return x.sum()

    function = heterosis.hybridize(fill)
    model = written(function, tmp_path / "net.onnx", np.array(X), np.ones(2))
    assert [v.name for v in model.graph.output] == ["output", "x after"]
    after = X.copy()
    after[:, 0] = 3
    got = read_again(tmp_path / "net.onnx", [X, numpy.full(2, 3, "float32")])
    check_same(got, [after.sum(dtype="float32"), after], 64, 64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_networks_of_other_types(net, dtype, tmp_path):
    net.cast(dtype)
    x = np.array(X).astype(dtype)
    net(x)
    model = written(net, tmp_path / "net.onnx", x)
    kinds = {array.data_type for array in model.graph.initializer if len(array.dims) == 2}
    assert kinds == {getattr(onnx.TensorProto, {"float64": "DOUBLE"}.get(dtype, dtype.upper()))}
    check_same(read_again(tmp_path / "net.onnx", [x.asnumpy()]), [net(x).asnumpy()])
