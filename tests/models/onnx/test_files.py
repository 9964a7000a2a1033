"""Files that are broken, hostile, or hold what is not read: an error of ours, and nothing else."""

import contextlib
import os

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from heterosis import np
from heterosis.models import from_onnx
from heterosis.models.onnx import format as onnx_format
from heterosis.models.onnx import tensors
from heterosis.runtime.errors import FormatError, HeterosisError, MissingFileError, UnsupportedError

FLOAT = TensorProto.FLOAT


def value(name, shape=None, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, arrays=(), inputs=("x",), outputs=("y",), shape=None, **options):
    described = [value(name, shape) for name in inputs]
    graph = helper.make_graph(nodes, "net", described, [*map(value, outputs)], [*arrays])
    options.setdefault("opset_imports", [helper.make_opsetid("", 17)])
    return helper.make_model(graph, **options)


def dense():
    w = numpy_helper.from_array(numpy.arange(12, dtype="float32").reshape(3, 4), "w")
    b = helper.make_tensor("b", FLOAT, (4,), [1.0, 2.0, 3.0, 4.0])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Add", ["h", "b"], ["y"]),
    ]
    return model(nodes, [w, b])


def test_files_and_bytes(tmp_path):
    path = tmp_path / "dense.onnx"
    onnx.save(dense(), path)
    x = numpy.ones((2, 3), "float32")
    expected = x @ numpy.arange(12).reshape(3, 4) + [1, 2, 3, 4]
    for source in (path, str(path), path.read_bytes()):
        net = from_onnx(source)
        assert (net.inputs, net.outputs) == (["x"], ["y"])
        numpy.testing.assert_array_equal(net(np.array(x)).asnumpy(), expected)


def test_every_cut_and_every_changed_byte_is_an_error_of_ours_or_a_model():
    data = dense().SerializeToString()
    for end in range(len(data)):
        with pytest.raises((FormatError, UnsupportedError)):
            from_onnx(data[:end])(np.ones((2, 3)))
    random = numpy.random.default_rng(0)
    for _ in range(400):
        changed = bytearray(data)
        changed[random.integers(len(data))] = random.integers(256)
        with contextlib.suppress(HeterosisError):
            from_onnx(bytes(changed))(np.ones((2, 3))).wait_to_read()


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MissingFileError, match=r"none\.onnx"):
        from_onnx(tmp_path / "none.onnx")
    with pytest.raises(HeterosisError):
        from_onnx(tmp_path)
    with pytest.raises(HeterosisError):
        from_onnx(3)


@pytest.mark.parametrize("data", [b"", b"\x00", b"no model", b"\x08\xff\xff\xff", b"{}" * 50])
def test_what_is_no_model(data, tmp_path):
    with pytest.raises(FormatError, match="no ONNX model"):
        from_onnx(data)
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(FormatError, match=r"model\.onnx"):
        from_onnx(tmp_path / "model.onnx")


def test_messages_that_are_nested_too_deep():
    data = b""
    for _ in range(3000):  # graphs in nodes' attributes
        for key in (0x32, 0x2A, 0x0A):
            data = bytes([key]) + length(len(data)) + data
    with pytest.raises(FormatError, match="nested"):
        from_onnx(b"\x3a" + length(len(data)) + data)


def length(number):
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def test_arrays_that_are_not_as_they_say():
    for shape, kind, data, match in [
        ((2, 2), FLOAT, b"\0" * 12, "takes 16 bytes, and has 12"),
        ((10**10, 10**10), FLOAT, b"\0" * 12, "no machine has room"),
        ((0, 2**40, 2**40), FLOAT, b"", "no machine has room"),
        ((2**40,), FLOAT, b"\0" * 12, "bytes"),
        ((-1,), FLOAT, b"", "shape"),
        ((1,), 99, b"\0", "element type 99"),
    ]:
        array = TensorProto(name="w", dims=shape, data_type=kind, raw_data=data)
        with pytest.raises(FormatError, match=match):
            from_onnx(
                model([helper.make_node("Add", ["x", "w"], ["y"])], [array]).SerializeToString()
            )
    array = TensorProto(name="w", dims=(3,), data_type=FLOAT, float_data=[1.0])
    with pytest.raises(FormatError, match="3 elements by its shape, and 1"):
        from_onnx(model([helper.make_node("Add", ["x", "w"], ["y"])], [array]).SerializeToString())


@pytest.mark.parametrize("dtype", tensors.NAMES.values())
def test_arrays_of_every_type(dtype):
    values = numpy.array([0, 1, 0, 1]).astype(tensors.numpy_dtype(dtype))
    kind = next(number for number, name in tensors.NAMES.items() if name == dtype)
    bits = values.view("uint16") if dtype in ("float16", "bfloat16") else values
    listed = helper.make_tensor("w", kind, (4,), values.astype("float64"))
    raw = TensorProto(name="w", dims=(4,), data_type=kind, raw_data=bits.tobytes())
    for array in (listed, raw):
        data = model([helper.make_node("Relu", ["x"], ["y"])], [array]).SerializeToString()
        found = onnx_format.read(data).graph.arrays["w"]
        assert found.dtype == values.dtype
        numpy.testing.assert_array_equal(found, values)


def test_arrays_in_files_of_their_own(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(dense(), path, save_as_external_data=True, location="weights", size_threshold=0)
    expected = from_onnx(dense().SerializeToString())(np.ones((2, 3)))
    numpy.testing.assert_array_equal(from_onnx(path)(np.ones((2, 3))).asnumpy(), expected.asnumpy())
    with pytest.raises(FormatError, match="the name of the model's file"):
        from_onnx(path.read_bytes())
    os.truncate(tmp_path / "weights", 10)
    with pytest.raises(FormatError, match="weights has no"):
        from_onnx(path)
    (tmp_path / "weights").unlink()
    with pytest.raises(MissingFileError, match="weights"):
        from_onnx(path)


@pytest.mark.parametrize("where", ["../secret", "/etc/passwd", "a/../../secret"])
def test_arrays_outside_of_the_models_folder_are_not_read(tmp_path, where):
    (tmp_path / "secret").write_bytes(b"\0" * 12)
    (tmp_path / "inside").mkdir()
    array = TensorProto(name="w", dims=(3,), data_type=FLOAT, data_location=1)
    array.external_data.add(key="location", value=where)
    path = tmp_path / "inside" / "model.onnx"
    path.write_bytes(
        model([helper.make_node("Add", ["x", "w"], ["y"])], [array]).SerializeToString()
    )
    with pytest.raises(FormatError, match="outside"):
        from_onnx(path)


def test_operators_that_are_not_done_are_all_named():
    nodes = [
        helper.make_node("Strange", ["x"], ["a"]),
        helper.make_node("Odd", ["a"], ["b"], domain="some.where"),
        helper.make_node("Strange", ["b"], ["y"]),
    ]
    with pytest.raises(
        UnsupportedError, match=r"2 operators .* Strange \(2\), some.where.Odd \(1\)"
    ):
        from_onnx(model(nodes).SerializeToString())


def test_versions_that_are_not_known_yet():
    later = [helper.make_opsetid("", 1000)]
    data = model([helper.make_node("Relu", ["x"], ["y"])], opset_imports=later).SerializeToString()
    with pytest.raises(UnsupportedError, match=r"version 1000 .* up to \d+"):
        from_onnx(data)


def test_functions_that_call_themselves():
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    node = helper.make_node("Again", ["x"], ["y"], domain="own")
    function = helper.make_function("own", "Again", ["x"], ["y"], [node], versions)
    data = model([node], functions=[function], opset_imports=versions).SerializeToString()
    with pytest.raises(FormatError, match=r"own\.Again calls itself"):
        from_onnx(data)


def test_nodes_that_are_wrong():
    for node, error, match in [
        (helper.make_node("Relu", ["x"], ["y"], slope=2), UnsupportedError, "'slope'"),
        (helper.make_node("Relu", ["x", "x"], ["y"]), FormatError, "has 2 inputs"),
        (helper.make_node("Add", ["x"], ["y"]), FormatError, "has 1 inputs"),
        (helper.make_node("Concat", ["x"], ["y"]), FormatError, r"lacks \['axis'\]"),
    ]:
        with pytest.raises(error, match=match):
            from_onnx(model([node]).SerializeToString())


def test_what_nothing_computes():
    late = [helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Relu", ["x"], ["a"])]
    with pytest.raises(FormatError, match="'a' is read, which nothing before it computes"):
        from_onnx(model(late).SerializeToString())(np.ones((2, 3)))
    with pytest.raises(FormatError, match="the graph's outputs: 'y' is read"):
        from_onnx(model([helper.make_node("Relu", ["x"], ["z"])]).SerializeToString())(np.ones(3))


def test_errors_name_the_node():
    net = from_onnx(dense().SerializeToString())
    with pytest.raises(HeterosisError, match=r"\(ONNX: MatMul 'product'\)"):
        net(np.ones((2, 5)))
    with pytest.raises(HeterosisError, match="2 inputs; expected 1"):
        net(np.ones((2, 3)), np.ones((2, 3)))
