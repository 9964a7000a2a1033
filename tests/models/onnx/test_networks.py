"""Networks that are read can all that other networks can: sizes, gradients, files, control flow."""

import copy

import numpy
import pytest
from onnx import TensorProto, helper, numpy_helper

from heterosis import autograd, gluon, np
from heterosis.backends.heterosis_library import Library, LibraryError
from heterosis.cli import main
from heterosis.models import from_onnx
from heterosis.runtime.errors import DTypeError, HeterosisError, ShapeError, UnsupportedError
from tests.models.onnx.test_files import FLOAT, model, value

RANDOM = numpy.random.default_rng(0)
W, B = RANDOM.normal(size=(6, 5)).astype("float32"), RANDOM.normal(size=5).astype("float32")


def ints(name, *numbers):
    return numpy_helper.from_array(numpy.array(numbers, "int64"), name)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def loaded(nodes, arrays=(), **options):
    return from_onnx(model(nodes, arrays, **options).SerializeToString())


def by_rows():
    """x of (rows, 2, 3): the sums of a dense layer, whose input's shape is computed."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "rows", axis=0),
        node("Unsqueeze", "rows first", "rows1"),
        node("Concat", "rows1 rest", "flat", axis=0),
        node("Reshape", "x flat", "x2"),
        node("Gemm", "x2 w b", "h"),
        node("Relu", "h", "y"),
    ]
    arrays = [numpy_helper.from_array(W, "w"), numpy_helper.from_array(B, "b")]
    arrays += [numpy_helper.from_array(numpy.array(0), "zero"), ints("first", 0), ints("rest", -1)]
    return loaded(nodes, arrays)


def expected(x):
    return numpy.maximum(x.reshape(len(x), -1) @ W + B, 0)


def drawn(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def close(got, wanted):
    numpy.testing.assert_allclose(got.asnumpy(), wanted, rtol=2e-5, atol=1e-6)


def test_shapes_that_are_computed_stay_open():
    net = by_rows()
    net.hybridize()
    for rows in (1, 2, 3, 4, 7, 20):
        x = drawn(rows, 2, 3)
        close(net(np.array(x)), expected(x))
    assert net._compiled.captures <= 3, list(net._compiled.captures_why)


def test_gradients_and_training():
    net = by_rows()
    assert sorted(net.collect_params()) == ["b", "w"]
    x = drawn(4, 2, 3)
    results = []
    for hybridized in (False, True):
        net.hybridize(hybridized)
        with autograd.record():
            loss = net(np.array(x)).sum()
        loss.backward()
        results.append(net.collect_params()["w"].grad().asnumpy())
    wanted = x.reshape(4, -1).T @ (expected(x) > 0)
    for found in results:
        numpy.testing.assert_allclose(found, wanted, rtol=1e-5)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    before = net.collect_params()["b"].data().asnumpy()
    trainer.step(4)
    assert (net.collect_params()["b"].data().asnumpy() != before).any()


def test_statistics_are_not_trained():
    arrays = [numpy_helper.from_array(numpy.ones(3, "float32"), name) for name in "sbmv"]
    net = loaded([node("BatchNormalization", "x s b m v", "y")], arrays)
    required = {name: p.grad_req for name, p in net.collect_params().items()}
    assert required == {"s": "write", "b": "write", "m": "null", "v": "null"}


def test_parameters_in_files(tmp_path):
    net, x = by_rows(), drawn(2, 2, 3)
    net.collect_params()["b"].set_data(np.zeros(5))
    changed = net(np.array(x)).asnumpy()
    net.save_parameters(str(tmp_path / "net.params"))
    other = by_rows()
    other.load_parameters(str(tmp_path / "net.params"))
    numpy.testing.assert_array_equal(other(np.array(x)).asnumpy(), changed)


def test_without_python(tmp_path):
    net, x = by_rows(), drawn(2, 2, 3)
    net.hybridize()
    net(np.array(x))
    net.export(str(tmp_path / "net"), format="native")
    with Library(str(tmp_path / "libnet.so")) as library:
        numpy.testing.assert_allclose(library(x), expected(x), rtol=2e-5, atol=1e-6)


def test_a_file_becomes_a_library_by_a_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = [node("Add", "a b", "c"), node("ReduceSum", "c", "d", keepdims=0)]
    data = model(nodes, inputs=("a", "b"), outputs=("c", "d"), shape=("rows", 3))
    (tmp_path / "sums.onnx").write_bytes(data.SerializeToString())
    assert main(["export", "sums.onnx"]) == 0
    assert capsys.readouterr().out.split() == ["libsums.so", "sums.h"]
    with Library("libsums.so") as library:
        for rows in (1, 2, 30):
            a, b = drawn(rows, 3), drawn(rows, 3)
            c, d = library(a, b)
            numpy.testing.assert_array_equal(c, a + b)
            numpy.testing.assert_allclose(d, (a + b).sum(), rtol=1e-5)
    assert main(["export", "sums.onnx", "--size", "rows=2", "--output", "two"]) == 0
    with Library("libtwo.so") as library, pytest.raises(LibraryError):
        library(drawn(3, 3), drawn(3, 3))
    assert main(["export", "sums.onnx", "--size", "columns=2"]) == 1
    assert "open ones with the names ['rows']" in capsys.readouterr().err
    (tmp_path / "open.onnx").write_bytes(model(nodes, inputs=("a", "b")).SerializeToString())
    assert main(["export", "open.onnx"]) == 1
    assert "does not tell the shape" in capsys.readouterr().err


def test_inputs_and_outputs_by_their_order():
    nodes = [node("Sub", "a b", "c"), node("Neg", "c", "d")]
    net = loaded(nodes, inputs=("a", "b"), outputs=("d", "c"))
    d, c = net(np.array([[3.0, 1.0, 1.0]]), np.array([[1.0, 1.0, 1.0]]))
    assert (d.tolist(), c.tolist()) == ([[-2.0, 0.0, 0.0]], [[2.0, 0.0, 0.0]])


def graph(nodes, inputs, outputs, arrays=()):
    kinds = {"i": TensorProto.INT64, "go": TensorProto.BOOL, "goes": TensorProto.BOOL}
    described = [
        [value(name, None, kinds.get(name, FLOAT)) for name in names.split()]
        for names in (inputs, outputs)
    ]
    return helper.make_graph(nodes, "inner", *described, list(arrays))


def test_branches_by_what_is_computed():
    then = graph([node("Mul", "x w", "then")], "", "then")  # w is outside
    other = graph([node("Neg", "x", "other")], "", "other")
    nodes = [
        node("ReduceSum", "x", "sum", keepdims=0),
        node("Greater", "sum zero", "positive"),
        node("If", "positive", "y", then_branch=then, else_branch=other),
    ]
    arrays = [
        helper.make_tensor("zero", FLOAT, (), [0.0]),
        helper.make_tensor("w", FLOAT, (), [3.0]),
    ]
    net = loaded(nodes, arrays)
    for hybridized in (False, True):
        net.hybridize(hybridized)
        for x in (np.ones((2, 3)), -np.ones((2, 3)), np.ones((2, 3))):
            assert set(net(x).asnumpy().ravel().tolist()) == {3.0 if x[0, 0].item() > 0 else 1.0}


def test_branches_by_what_came_with_the_file():
    """A branch that is taken by it may hand on an array that came with the file, too."""
    then, other = (
        graph([node("Identity", name, f"{name}_too")], "", f"{name}_too") for name in ("w", "x")
    )
    nodes = [
        node("Greater", "threshold zero", "positive"),
        node("If", "positive", "y", then_branch=then, else_branch=other),
    ]
    threshold, zero = (
        helper.make_tensor(name, FLOAT, (1,), [number])
        for name, number in (("threshold", 1.0), ("zero", 0.0))
    )
    net = loaded(nodes, [threshold, zero, helper.make_tensor("w", FLOAT, (2,), [3.0, 4.0])])
    for hybridized in (False, True):
        net.hybridize(hybridized)
        assert net(np.ones((2,))).tolist() == [3.0, 4.0]


def doubling(truth):
    return graph(
        [node("Add", "s s", "after"), *truth, node("Mul", "s step", "row")],
        "i go s",
        "goes after row",
        [helper.make_tensor("step", FLOAT, (), [10.0])],
    )


@pytest.mark.parametrize("turns", [3, 20])
def test_loops_of_as_many_turns_as_are_known(turns):
    body = doubling([node("Identity", "go", "goes")])
    nodes = [node("Loop", "turns  x".replace("  ", " - "), "y rows", body=body)]
    nodes[0].input[1] = ""
    net = loaded(nodes, [ints("turns", turns)], outputs=("y", "rows"))
    x = drawn(2, 3)
    for hybridized in (False, True):
        net.hybridize(hybridized)
        y, rows = net(np.array(x))
        close(y, x * 2.0**turns)
        close(rows, numpy.stack([x * 2.0**i * 10 for i in range(turns)]))


def test_loops_until_what_is_computed():
    body = graph(
        [node("Add", "s s", "after"), node("ReduceMax", "after", "most", keepdims=0),
         node("Less", "most bound", "goes")],
        "i go s", "goes after",
    )  # fmt: skip
    nodes = [node("Loop", "turns go x", "y", body=body)]
    arrays = [ints("turns", 50), helper.make_tensor("bound", FLOAT, (), [100.0])]
    arrays += [helper.make_tensor("go", TensorProto.BOOL, (), [True])]
    net = loaded(nodes, arrays)
    for hybridized in (False, True):
        net.hybridize(hybridized)
        for start, end in ((1.0, 128.0), (70.0, 140.0), (3.0, 192.0)):
            assert set(net(np.full((1, 3), start)).asnumpy().ravel().tolist()) == {end}


def test_loops_that_stack_rows_as_long_as_what_is_computed_asks():
    truth = [node("ReduceMax", "after", "most", keepdims=0), node("Less", "most bound", "goes")]
    nodes = [node("Loop", "turns go x", "y rows", body=doubling(truth))]
    arrays = [ints("turns", 50), helper.make_tensor("bound", FLOAT, (), [100.0])]
    arrays += [helper.make_tensor("go", TensorProto.BOOL, (), [True])]
    net = loaded(nodes, arrays, outputs=("y", "rows"))
    y, rows = net(np.full((1, 3), 20.0))
    assert (y.asnumpy().max(), rows.shape) == (160.0, (3, 1, 3))
    net.hybridize()
    with pytest.raises(UnsupportedError, match="it stacks rows, and how many"):
        net(np.full((1, 3), 20.0))


def test_functions_of_the_file():
    function = helper.make_function(
        "own", "Scaled", ["a"], ["c"],
        [
            helper.make_node("Constant", [], ["s"], value_float=1.0),
            node("Add", "a s", "b"),
            helper.make_node("LeakyRelu", ["b"], ["c"]),
        ],
        [helper.make_opsetid("", 17)], ["alpha"],
    )  # fmt: skip
    reference = function.node[2].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "alpha", "alpha", 1
    nodes = [helper.make_node("Scaled", ["x"], ["y"], domain="own", alpha=0.5)]
    net = loaded(
        nodes,
        functions=[function],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
    )
    close(net(np.array([[1.0, -3.0, 0.0]])), [[2.0, -1.0, 1.0]])


def test_shapes_that_follow_from_values_are_refused_hybridized():
    nodes = [node("Cast", "sizes", "shape", to=TensorProto.INT64), node("Reshape", "x shape", "y")]
    net = loaded(nodes, inputs=("x", "sizes"))
    assert net(np.ones((2, 3)), np.array([3.0, 2.0])).shape == (3, 2)
    net.hybridize()
    with pytest.raises(HeterosisError):
        net(np.ones((2, 3)), np.array([3.0, 2.0]))


def test_arrays_without_elements_are_no_parameters():
    """As what a Resize leaves out is often written."""
    empty = numpy_helper.from_array(numpy.zeros(0, "float32"), "roi")
    scales = numpy_helper.from_array(numpy.array([1, 2], "float32"), "scales")
    net = loaded([node("Resize", "x roi scales", "y")], [empty, scales])
    assert "roi" not in net.collect_params()
    assert net(np.array([[1.0, 2.0]])).asnumpy().tolist() == [[1, 1, 2, 2]]


def test_inputs_of_other_types_and_shapes_are_refused():
    net = loaded([node("Relu", "x", "y")], shape=("rows", 3))
    assert net(np.ones((5, 3), dtype="float16")).dtype == "float16"
    with pytest.raises(DTypeError, match=r"'x' is of type int64; expected float32"):
        net(np.ones((2, 3), dtype="int64"))
    for shape in ((2, 4), (3,), (1, 2, 3)):
        with pytest.raises(ShapeError, match=r"expected \(rows, 3\)"):
            net(np.ones(shape))


def test_a_copy_has_parameters_of_its_own():
    net = by_rows()
    other, x = copy.deepcopy(net), drawn(2, 2, 3)
    other.collect_params()["w"].set_data(np.zeros((6, 5)))
    close(net(np.array(x)), expected(x))
    close(other(np.array(x)), numpy.maximum(numpy.broadcast_to(B, (2, 5)), 0))


def test_what_is_changed_is_changed_in_what_follows_from_it():
    large = numpy.arange(40 * 40, dtype="float32").reshape(40, 40)  # not carried beside
    nodes = [node("Transpose", "w", "t", perm=[1, 0]), node("Gemm", "x t", "y")]
    net = loaded(nodes, [numpy_helper.from_array(large, "w")])
    for hybridized in (False, True):
        net.hybridize(hybridized)
        x = drawn(2, 40)
        for factor in (1, 2):
            net.collect_params()["w"].set_data(np.array(large * factor))
            close(net(np.array(x)), x @ large.T * factor)
