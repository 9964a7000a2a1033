"""Symbols as values: composed, asked for shapes, saved, read and run."""

from __future__ import annotations

import json

import numpy
import pytest

import heterosis
from heterosis import autograd, np, npx, optimizer
from heterosis import symbol as sym
from heterosis.gluon import nn
from heterosis.mxnet.attributes import decoded, encoded
from heterosis.runtime.errors import (
    ArgumentError,
    AutogradError,
    FormatError,
    HeterosisError,
    ShapeError,
    UnsupportedError,
)


def network() -> sym.Symbol:
    data = sym.var("data")
    hidden = sym.FullyConnected(data=data, num_hidden=3, name="fc")
    hidden = sym.BatchNorm(sym.Activation(hidden, act_type="relu", name="act"), name="bn")
    return sym.SoftmaxOutput(hidden, name="out")


def test_layers_make_variables_for_what_is_not_given():
    net = network()
    assert net.list_arguments() == [
        "data", "fc_weight", "fc_bias", "bn_gamma", "bn_beta", "out_label",
    ]  # fmt: skip
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.list_outputs() == ["out_output"]
    assert "fc_bias" not in sym.FullyConnected(sym.var("x"), num_hidden=2, no_bias=True,
                                               name="fc").list_arguments()  # fmt: skip


def test_older_names_and_names_of_files_are_the_same_operators():
    assert sym.Softmax(sym.var("x"), name="out").list_arguments() == ["x", "out_label"]
    for name in ("linalg_gelqf", "_linalg_gelqf"):
        assert len(getattr(sym, name)(sym.var("x"))) == 2
    net = sym.BatchNorm_v1(*map(sym.var, "abcde"), name="bn")
    assert net.list_auxiliary_states() == ["d", "e"]


def test_internals_are_found_by_name():
    part = network().get_internals()["act_output"]
    assert part.list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert part.get_children().list_outputs() == ["fc_output"]
    with pytest.raises(ArgumentError, match="0 outputs have the name 'no'"):
        network().get_internals()["no"]


def test_shapes_follow_from_the_data():
    net = network().get_internals()["bn_output"]
    arguments, outputs, states = net.infer_shape(data=(5, 4))
    assert arguments == [(5, 4), (3, 4), (3,), (3,), (3,)]
    assert outputs == [(5, 3)] and states == [(3,), (3,)]
    assert net.infer_shape_partial() == (None, None, None)
    with pytest.raises(ArgumentError, match=r"\['other'\] are no arguments"):
        net.infer_shape(other=(1,))


def test_shapes_that_do_not_fit_are_an_error():
    x, y = sym.var("x", shape=(2, 3)), sym.var("y", shape=(4,))
    with pytest.raises(ShapeError):
        (x + y).infer_shape()


X = sym.var("x")


def test_types():
    x = sym.var("x", shape=(2,), dtype="float64")
    arguments, outputs, states = (x > 1).infer_type()
    assert (arguments, outputs, states) == ([numpy.float64], [numpy.bool_], [])


# Symbols of `x`, `y`, the types that are given, and what follows: arguments, results and states.
Y = sym.var("y")
TYPES = [
    (X + Y, {"x": "float16"}, ["float16"] * 2, ["float16"], []),
    (sym.concat(X, Y, dim=1), {"y": "float64"}, ["float64"] * 2, ["float64"], []),
    (sym.FullyConnected(X, num_hidden=3), {"x": "float16"}, ["float16"] * 3, ["float16"], []),
    (sym.Convolution(X, kernel=(3, 3), num_filter=2), {"x": "float64"}, ["float64"] * 3,
     ["float64"], []),
    (sym.cast(X, dtype="int32"), {"x": "float16"}, ["float16"], ["int32"], []),
    (sym.Embedding(X, input_dim=3, output_dim=2), {"x": "int32"}, ["int32", "float32"],
     ["float32"], []),
    (sym.BatchNorm(X), {"x": "float16"}, ["float16", "float32", "float32"], ["float16"],
     ["float32"] * 2),
    (sym.SoftmaxOutput(X), {"x": "float16"}, ["float16"] * 2, ["float16"], []),
    (sym.split(X, num_outputs=2), {"x": "float16"}, ["float16"], ["float16"] * 2, []),
    (sym.split(X, num_outputs=7), {"x": "float16"}, ["float16"], ["float16"] * 7, []),
    (sym.dot(X, Y), {"x": "float64"}, ["float64"] * 2, ["float64"], []),
    (sym.shape_array(X), {"x": "float16"}, ["float16"], ["int64"], []),
    (sym.var("z", dtype="float16") * 2, {}, ["float16"], ["float16"], []),
    (sym.RNN(X, state_size=4, num_layers=1, mode="gru"), {"x": "float32"}, ["float32"] * 3,
     ["float32"], []),
    (sym.Flatten(sym.Pooling(sym.Convolution(X, kernel=(5, 5), num_filter=6), kernel=(2, 2))),
     {"x": "float32"}, ["float32"] * 3, ["float32"], []),
]  # fmt: skip


@pytest.mark.parametrize("symbol, given, arguments, results, states", TYPES)
def test_types_follow_from_types(symbol, given, arguments, results, states):
    expected = [
        [numpy.dtype(name).type for name in names] for names in (arguments, results, states)
    ]
    assert list(symbol.infer_type(**given)) == expected


def test_types_that_do_not_follow():
    assert (X + Y).infer_type() == (None, None, None)
    assert sym.reshape(X, shape=(3, 11)).infer_type(x="float32")[1] == [None]


def test_shapes_of_recurrent_parameters_follow():
    net = sym.RNN(X, state_size=4, num_layers=2, mode="lstm", bidirectional=True, name="rnn")
    assert net.infer_shape(x=(5, 2, 3))[0][1:] == [(736,), (4, 2, 4), (4, 2, 4)]


def test_several_arrays_of_no_shape_are_an_error_that_says_so():
    with pytest.raises(ArgumentError, match=r"shapes of \['x'\] do not tell enough"):
        sym.concat(X, Y).infer_shape(x=(2, 3))


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda x: 2 * x + 1, lambda a: 2 * a + 1),
        (lambda x: 3 - x / 2, lambda a: 3 - a / 2),
        (lambda x: -(2**x), lambda a: -(2**a)),
        (lambda x: (x > 1) * x, lambda a: (a > 1) * a),
        (lambda x: sym.maximum(x, 2) - sym.minimum(1, x), lambda a: numpy.maximum(a, 2) - 1),
        (lambda x: x.reshape((-1,)).sum(axis=0), lambda a: a.sum()),
        (lambda x: sym.Concat(x, x, dim=0), lambda a: numpy.concatenate([a, a])),
        (lambda x: x + sym.ones((2, 1)), lambda a: a + 1),
        (lambda x: x.split(num_outputs=3, axis=1)[1], lambda a: a[:, 1:2]),
        (lambda x: abs(x.astype("int32")), lambda a: a.astype("int32")),
    ],
)
def test_operators_compute(make, expected):
    a = numpy.array([[1, 2, 3], [4, 5, 6]], "float32")
    (found,) = make(sym.var("x")).eval(x=np.array(a))
    numpy.testing.assert_allclose(found.asnumpy(), expected(a), rtol=1e-6)


def test_groups_and_calls_put_symbols_together():
    x, z = sym.var("x"), sym.var("z")
    both = sym.Group([x + 1, x * 2])
    assert len(both) == 2
    composed = both(x=z * 10)
    assert composed.list_arguments() == ["z"]
    assert [a.item() for a in composed.eval(z=np.ones(1))] == [11, 20]
    assert both.list_arguments() == ["x"]  # as it was


def test_executors_give_gradients_and_keep_states():
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    net = sym.BatchNorm(sym.var("x"), name="bn", momentum=0.5) * 2
    run = net.simple_bind(x=(2, 2))
    run.copy_params_from({"bn_gamma": np.ones(2)}, {"bn_moving_var": np.ones(2)})
    (predicted,) = run.forward(x=x)
    numpy.testing.assert_allclose(predicted.asnumpy(), 2 * x.asnumpy(), rtol=2e-3)
    run.forward(is_train=True)
    run.backward(np.ones((2, 2)))
    numpy.testing.assert_allclose(run.aux_dict["bn_moving_mean"].asnumpy(), [1, 1.75])
    numpy.testing.assert_allclose(run.grad_dict["bn_beta"].asnumpy(), [4, 4])
    assert not autograd.is_recording()


def test_executors_have_no_gradients_where_none_are_asked_for():
    net = sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc")
    run = net.simple_bind(x=(2, 4), grad_req={"x": "null", "fc_weight": "write"})
    assert {name: array is None for name, array in run.grad_dict.items()} == {
        "x": True, "fc_weight": False, "fc_bias": True,
    }  # fmt: skip
    assert [array is None for array in run.grad_arrays] == [True, False, True]


def test_executors_go_back_as_often_as_wanted():
    run = (sym.var("x") * 2).simple_bind(x=(2,), grad_req="add")
    run.forward(is_train=True)
    run.backward(np.ones(2))
    run.backward(np.ones(2))
    assert run.grad_dict["x"].asnumpy().tolist() == [4, 4]
    assert [array.shape for array in run.output_dict.values()] == [(2,)]


def test_executors_of_other_shapes_share_arrays():
    net = sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc")
    run = net.simple_bind(x=(4, 3), grad_req={"x": "null", "fc_weight": "add", "fc_bias": "write"})
    smaller = run.reshape(x=(2, 3))
    run.arg_dict["x"][:] = np.arange(12).reshape(4, 3)
    run.arg_dict["fc_weight"][:] = 1
    assert smaller.forward(is_train=True)[0].tolist() == [[3, 3], [12, 12]]
    smaller.backward(np.ones((2, 2)))
    smaller.backward(np.ones((2, 2)))
    assert run.grad_dict["fc_weight"].tolist() == [[6, 10, 14]] * 2
    assert smaller.grad_dict["x"] is None and smaller.arg_dict["fc_bias"] is run.arg_dict["fc_bias"]
    larger = run.reshape(allow_up_sizing=True, x=(5, 3))
    assert larger.forward()[0].shape == (5, 2)
    narrower = run.reshape(partial_shaping=True, x=(4, 2))
    run.arg_dict["fc_weight"][:] = 5
    assert narrower.arg_dict["fc_weight"].tolist() == [[5, 5]] * 2


def test_executors_of_other_shapes_share_states():
    run = sym.BatchNorm(sym.var("x"), name="bn").simple_bind(x=(4, 3))
    smaller = run.reshape(x=(2, 3))
    run.aux_dict["bn_moving_mean"][:] = 7
    assert smaller.aux_dict["bn_moving_mean"].tolist() == [7, 7, 7]


def test_executors_of_other_shapes_are_no_accident():
    run = sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc").simple_bind(x=(4, 3))
    for shapes, message in (
        ({"x": (5, 3)}, "'x' of shape .4, 3. cannot hold .5, 3."),
        ({"x": (4, 2)}, "'fc_weight' has the shape .2, 3., and these shapes ask for .2, 2."),
        ({"y": (4, 2)}, "'y'. are no arguments"),
    ):
        with pytest.raises(ArgumentError if "y" in shapes else ShapeError, match=message):
            run.reshape(**shapes)


def test_executors_have_arrays_of_the_types_asked_for():
    net = sym.BatchNorm(sym.FullyConnected(sym.var("x"), num_hidden=1))
    run = net.simple_bind(x=(2, 3), type_dict={"x": "float64"})
    arrays = [*run.arg_arrays, *run.aux_arrays, *run.grad_arrays]
    assert {array.dtype.name for array in arrays} == {"float64"}


@pytest.mark.parametrize(
    "output, options, shape",
    [
        (sym.SoftmaxOutput, {}, (5,)),
        (sym.SoftmaxOutput, {"preserve_shape": True}, (5,)),
        (sym.LinearRegressionOutput, {}, (5, 4)),
        (sym.MAERegressionOutput, {}, (5, 4)),
    ],
)
def test_shapes_of_labels_follow_from_the_data(output, options, shape):
    net = output(sym.FullyConnected(sym.var("x"), num_hidden=4), name="out", **options)
    arguments, results, _ = net.infer_shape(x=(5, 3))
    assert arguments[-1] == shape and results == [(5, 4)]
    with pytest.raises(ShapeError, match=r"a label of shape \(6,\) for data of shape \(5, 4\)"):
        net.infer_shape(x=(5, 3), out_label=(6,))


def test_one_number_a_row_has_labels_of_one_dimension():
    net = sym.LinearRegressionOutput(sym.var("x"), name="out")
    assert net.infer_shape(x=(5, 1))[0] == [(5, 1), (5,)]
    run = net.simple_bind(x=(5, 1), out_label=(5, 1))
    assert run.forward(is_train=True, x=np.ones((5, 1)))[0].shape == (5, 1)


RANDOM = [
    lambda: sym.random.uniform(2, 3, shape=(5, 4)),
    lambda: sym.random.normal(2, 0.1, (5, 4), name="noise"),
    lambda: sym.random.gamma(2, shape=(5, 4)),
    lambda: sym.random.exponential(scale=2.0, shape=(5, 4)),
    lambda: sym.random.poisson(90, shape=(5, 4)),
    lambda: sym.random.negative_binomial(20, 0.3, shape=(5, 4)),
    lambda: sym.random.generalized_negative_binomial(20, 0.3, shape=(5, 4)),
    lambda: sym.random.randint(0, 1000, shape=(5, 4)),
    lambda: sym.random.randn(5, 4),
    lambda: sym.random_uniform(shape=(5, 4), dtype=numpy.float32),
    lambda: sym.normal(shape=(5, 4)),
    lambda: sym.random.uniform(X, X + 1, shape=4),
    lambda: sym.random.exponential(X, shape=4),
    lambda: sym.random.multinomial(sym.ones((5, 99)) / 99, shape=4),
    lambda: sym.random.shuffle(sym.arange(0, 20)).reshape((5, 4)),
]


@pytest.mark.parametrize("make", RANDOM)
def test_random_numbers_are_drawn_at_each_run(make):
    symbol = make()
    again = sym.load_json(symbol.tojson())
    run = symbol.bind(args={"x": np.ones(5)} if symbol.list_arguments() else {})
    first, second, third = run.forward()[0], run.forward()[0], again.eval(x=np.ones(5))[0]
    assert first.shape == third.shape == (5, 4)
    assert not (first == second).all() and not (first == third).all()


def test_random_numbers_of_mixed_parameters_are_refused():
    for low in (np.zeros(2), sym.var("x")):
        with pytest.raises(ArgumentError, match=r"random.uniform: .*expected numbers, or symbols"):
            sym.random.uniform(low, 1)


def test_modules_of_operators_compose():
    x = sym.var("x")
    assert sym.linalg.gemm2(x, x, transpose_b=True).eval(x=np.ones((1, 3)))[0].tolist() == [[3]]
    assert sym.contrib.arange_like(x).eval(x=np.ones(3))[0].tolist() == [0, 1, 2]
    scores = sym.contrib.interleaved_matmul_selfatt_qk(x, heads=2, name="scores")
    assert scores.list_outputs() == ["scores_output"]
    assert scores.infer_shape(x=(5, 3, 12))[1] == [(6, 5, 5)]
    resized = sym.load_json(sym.contrib.BilinearResize2D(x, height=2, width=3).tojson())
    assert resized.eval(x=np.ones((1, 2, 5, 5)))[0].shape == (1, 2, 2, 3)
    assert sym.cast(x, dtype=numpy.int32).eval(x=np.ones(3))[0].dtype == numpy.int32

    @heterosis.hybridize
    def function(a):
        return sym.contrib.arange_like(a), sym.linalg.gemm2(a, a), sym.random.uniform(shape=(2,))

    assert function(np.ones((1, 1)))[0].tolist() == [[0]]


def test_what_tells_too_little_of_shapes():
    net = sym.FullyConnected(sym.var("x"), num_hidden=4)
    with pytest.raises(ArgumentError, match=r"infer_shape: the shapes of .* do not tell enough"):
        net.infer_shape()


@pytest.mark.parametrize(
    "make",
    [
        sym.SoftmaxOutput,
        sym.LinearRegressionOutput,
        lambda x: sym.reshape(x, shape=(2, 3)),
        lambda x: sym.UpSampling(x, scale=2, sample_type="nearest"),
        lambda x: sym.elemwise_add(x, x),
        lambda x: sym.Crop(x, h_w=(2, 2)),
    ],
)
def test_data_of_no_shape_is_an_error_that_says_so(make):
    net = make(sym.var("x"))
    assert net.infer_shape_partial() == (None, None, None)
    with pytest.raises(ArgumentError, match=r"infer_shape: the shapes of \[\] do not tell enough"):
        net.infer_shape()


# Functions of two symbols or arrays.
FUNCTIONS = [
    lambda a, b: np.add(a, b) * np.exp(a),
    lambda a, b: np.subtract(1, np.maximum(a, 0.5)),
    lambda a, b: np.concatenate([a, b, a], axis=1),
    lambda a, b: np.where(np.greater(a, b), a, b),
    lambda a, b: np.sum(a, axis=1, keepdims=True) + np.mean(b),
    lambda a, b: np.transpose(np.reshape(a, (-1, 1)), (1, 0)),
    lambda a, b: np.clip(np.matmul(a, b), -1, 1),
    lambda a, b: np.einsum("ij,jk->ik", a, b),
    lambda a, b: np.linalg.inv(a),
    lambda a, b: npx.softmax(npx.relu(a), axis=0),
    lambda a, b: npx.fully_connected(a, b, num_hidden=3, no_bias=True),
    lambda a, b: npx.batch_dot(np.expand_dims(a, 0), np.expand_dims(b, 0), transpose_b=True),
    lambda a, b: npx.topk(a, k=2, ret_typ="value"),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_np_and_npx_compose_symbols(function):
    arrays = {name: np.random.normal(size=(3, 3)) for name in "ab"}
    symbol = function(sym.var("a"), sym.var("b"))
    assert isinstance(symbol, sym.Symbol)
    again = sym.load_json(symbol.tojson())
    given = {name: arrays[name] for name in symbol.list_arguments()}
    expected = function(*arrays.values()).asnumpy()
    for made in (symbol, again):
        numpy.testing.assert_allclose(made.eval(**given)[0].asnumpy(), expected, rtol=1e-5)
    assert symbol.infer_shape(**dict.fromkeys(given, (3, 3)))[1] == [expected.shape]


@pytest.mark.parametrize(
    "compose, message",
    [
        (lambda x: np.outer(x, x), "outer: .* no operator that does the same"),
        (lambda x: np.linalg.norm(x), "norm: .* no operator that does the same"),
        (lambda x: np.add(x, x, dtype="float64"), "add: .* no operator that takes dtype"),
        (lambda x: np.matmul(x, np.ones((2, 2))), "b is an array, and others are symbols"),
        (lambda x: np.concatenate([x, np.ones(2)]), "is an array, and others are symbols"),
        (lambda x: np.add(x, np.ones(2)), "beside a symbol"),
        (lambda x: npx.fully_connected(x, np.ones((2, 2)), no_bias=True), "hybridize it, call it"),
    ],
)
def test_what_symbols_cannot_be_composed_of(compose, message):
    with pytest.raises(HeterosisError, match=message):
        compose(sym.var("x"))


@pytest.mark.parametrize(
    "make, missing",
    [
        (lambda x: sym.FullyConnected(x), "num_hidden"),
        (lambda x: sym.Convolution(x, num_filter=3), "kernel"),
        (lambda x: sym.Convolution(x, kernel=(1, 1)), "num_filter"),
        (lambda x: sym.Deconvolution(x, kernel=(1, 1)), "num_filter"),
        (lambda x: sym.Embedding(x), "input_dim and output_dim"),
    ],
)
def test_numbers_that_shapes_follow_from_must_be_given(make, missing):
    with pytest.raises(ArgumentError, match=f"{missing} must be given"):
        make(sym.var("x")).infer_shape(x=(1, 2, 4, 4))


@pytest.mark.parametrize(
    "symbol, expected",
    [
        (sym.full((2,), 3), [3, 3]),
        (sym.full((2,), val=3), [3, 3]),
        (sym.arange(2, 6, 2), [2, 4]),
        (sym.arange(3), [0, 1, 2]),
        (sym.arange(0, 2, repeat=2), [0, 0, 1, 1]),
        (sym.linspace(0, 1, 3), [0, 0.5, 1]),
    ],
)
def test_symbols_that_make_arrays(symbol, expected):
    assert symbol.eval()[0].asnumpy().tolist() == expected
    assert sym.load_json(symbol.tojson()).eval()[0].asnumpy().tolist() == expected


def test_a_symbol_survives_its_file(tmp_path):
    net = network()
    net.save(tmp_path / "net.json")
    read = sym.load(tmp_path / "net.json")
    assert read.tojson() == net.tojson()
    assert read.debug_str() == net.debug_str()
    assert sym.load_json(net.tojson()).attr_dict()["fc"] == {"num_hidden": "3"}


@pytest.mark.parametrize(
    "value", [True, None, 3, 0.25, (1,), (1, 2), (), "relu", ((0, 1), (2, None))]
)
def test_attributes_survive_as_texts(value):
    assert decoded(encoded(value)) == value


def test_what_is_said_of_training_has_two_names():
    x = sym.var("x", lr_mult=2.0, attr={"wd_mult": "0.5", "mine": "1"})
    assert (x.attr("lr_mult"), x.attr("__lr_mult__"), x.attr("__wd_mult__")) == (
        "2.0",
        "2.0",
        "0.5",
    )
    assert (x.attr("mine"), x.attr("__mine__")) == ("1", None)
    net = sym.load_json(sym.FullyConnected(x, num_hidden=3, attr={"lr_mult": "3"}).tojson())
    rates = {name: facts["lr_mult"] for name, facts in net.attr_dict().items()}
    assert list(rates.values()) == ["2.0", "3", "3", "3"]  # the data, weights and layer
    made = optimizer.SGD(sym=net)
    assert made.lr_mult == {name: float(rates[name]) for name in net.list_arguments()}
    assert made.wd_mult["x"] == 0.5


def test_a_symbol_has_no_values():
    x = sym.var("x")
    with pytest.raises(UnsupportedError, match="no values"):
        x.asnumpy()
    with pytest.raises(ArgumentError, match="neither true nor false"):
        bool(x > 1)
    with pytest.raises(AttributeError, match="no operator"):
        getattr(sym, "NoSuchOperator")  # noqa: B009


def node(op="null", name="x", inputs=(), **more):
    return {"op": op, "name": name, "inputs": list(inputs), **more}


def text(*nodes, heads=((0, 0, 0),)):
    return json.dumps({"nodes": nodes, "heads": heads})


@pytest.mark.parametrize(
    "given, where",
    [
        ("", "no JSON.*expected a symbol file. Was it cut off"),
        (text(node())[:-9], "cut off"),
        ("[" * 100_000, "nested too deeply.*expected a symbol file"),
        ("[]", "the top"),
        (text(3), r"nodes\[0\]: expected an object"),
        (text(node(op=1)), "must be texts"),
        (text(node(inputs=[[0, 0, 0]])), "empty for a variable"),
        (text(node("relu", inputs=[[0, 0, 0]])), r"nodes\[0\].*node 0 does not come before"),
        (text(node(), node("relu", "r", [[0, 5, 0]])), "'x' has no result 5"),
        (text(node(), node("relu", "r", [[-1, 0]])), "node -1 does not come"),
        (text(node(), node("relu", "r", ["x"])), r"expected \[node, result, version\]"),
        (text(node(), heads=[[1, 0, 0]]), r"heads\[0\]: node 1"),
        (text(node(), heads=[]), "the list is empty"),
        (text(node(attrs={"a": 1})), "object of texts"),
        (text(node("SliceChannel", attrs={"num_outputs": str(10**12)})), "results; expected 1 to"),
        (text(node("SliceChannel", attrs={"num_outputs": "((" * 999})), "no list of numbers"),
        (
            text(node(), node(), node("broadcast_add", "s", [[0, 0], [1, 0]]), heads=[[2, 0]]),
            "two variables have the name 'x'",
        ),
    ],
)
def test_bad_files_say_where(given, where):
    with pytest.raises(FormatError, match=where):
        sym.load_json(given)


def test_all_unknown_operators_are_listed():
    read = sym.load_json(text(node(), node("Nix", "a", [[0, 0]]), node("Nought", "b", [[1, 0]]),
                              heads=[[2, 0]]))  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"2 operators .* Nix \(of 'a'\), Nought \(of 'b'\)"):
        read.eval(x=np.ones(1))


@pytest.mark.parametrize("operator", ["_npx_load", "_npx_save"])
def test_a_symbol_reads_and_writes_no_files(operator, tmp_path):
    path = tmp_path / "x"
    read = sym.load_json(text(node(operator, "r", attrs={"file": str(path), "arr": "()"})))
    with pytest.raises(UnsupportedError, match=f"{operator} .*of 'r'"):
        read.eval()
    assert not path.exists()


@pytest.mark.parametrize("index", [1, 9])
def test_a_result_that_is_not_there_is_refused(index):
    read = sym.load_json(text(node(), node("relu", "r", [[0, 0]]), heads=[[1, index]]))
    with pytest.raises(ArgumentError, match=f"result {index} of 'r', and operator relu gives 1"):
        read.eval(x=np.ones(1))


@pytest.mark.parametrize("axis", ["1" + "0" * 400, "9", "(1, (2,))", "nan"])
def test_attributes_of_any_size_are_refused(axis):
    facts = {"axis": axis, "num_outputs": "2"}
    with pytest.raises(HeterosisError):
        read = sym.load_json(text(node(), node("SliceChannel", "r", [[0, 0]], attrs=facts),
                                  heads=[[1, 0]]))  # fmt: skip
        read.eval(x=np.ones((2, 2)))


def test_unknown_attributes_are_not_passed_over():
    read = sym.load_json(
        text(node(), node("relu", "r", [[0, 0]], attrs={"slope": "2"}), heads=[[1, 0]])
    )
    with pytest.raises(ArgumentError, match="'slope' is not known"):
        read.eval(x=np.ones(1))


def test_attributes_that_are_missing_are_an_error():
    read = sym.load_json(text(node(), node("Activation", "a", [[0, 0]]), heads=[[1, 0]]))
    with pytest.raises(ArgumentError, match=r"operator Activation: .*act_type"):
        read.eval(x=np.ones(1))


def test_deep_graphs_need_no_recursion():
    x = sym.var("x")
    for _ in range(3000):
        x = x + 1
    read = sym.load_json(x.tojson())
    assert len(read.get_internals()) == 3001


def test_what_arrays_have_and_symbols_have_not():
    layer = nn.Dense(2)
    layer.initialize()
    with pytest.raises(AttributeError, match=r"a Symbol has no shape.*hybridize it"):
        layer(sym.var("data"))
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        sym.var("data").colour  # noqa: B018


def test_recorded_operations_have_a_symbol():
    x, scale = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        parts = np.split(np.exp(x) * scale + 1, 2, axis=1)
        y = np.concatenate([parts[1], x.sum(axis=1, keepdims=True) * 2], axis=1) / x
    history = autograd.get_symbol(y)
    assert history.list_arguments() == ["var0", "var1"]  # x, though used three times, and scale
    (again,) = history.eval(var0=x + 1, var1=scale)
    z = x.asnumpy() + 1
    first = numpy.exp(z[:, 1:]) * 3 + 1
    wanted = numpy.concatenate([first, z.sum(1, keepdims=True) * 2], 1) / z
    numpy.testing.assert_allclose(again.asnumpy(), wanted, 1e-6)


def test_what_has_no_recorded_symbol():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    net = nn.Dense(2, in_units=2, flatten=False)
    net.initialize()
    net.hybridize()
    with autograd.record():
        y, whole = x * x, net(x)
    with pytest.raises(UnsupportedError, match="export it"):
        autograd.get_symbol(whole)
    y.backward()
    with pytest.raises(AutogradError, match="retain_graph"):
        autograd.get_symbol(y)
    with pytest.raises(AutogradError, match="no result of recorded operations"):
        autograd.get_symbol(x)
