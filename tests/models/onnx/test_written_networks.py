"""Networks written as ONNX: layers as ONNX's own operators, open sizes, control flow, refusals."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.gluon import nn, rnn
from heterosis.gluon.model_zoo import vision
from heterosis.models import from_onnx, to_onnx
from heterosis.runtime.errors import (
    ArgumentError,
    HeterosisError,
    UninitializedError,
    UnsupportedError,
)
from tests.models.onnx.written import check_same, evaluated, listed, read_again, written

RANDOM = numpy.random.default_rng(0)


def drawn(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def tokens(*shape):
    return RANDOM.integers(0, 20, shape)


def sequential(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


class Attending(nn.HybridBlock):
    """A decoder of one layer: positions, a causal mask, heads."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(12, 16)
        self.norm = nn.LayerNorm()
        self.project, self.out = nn.Dense(48, flatten=False), nn.Dense(20, flatten=False)

    def forward(self, x):
        rows, steps = x.shape
        h = self.words(x) + self.places(np.arange(steps))
        parts = np.split(self.project(self.norm(h)), 3, axis=-1)
        q, k, v = (p.reshape(rows, steps, 2, 8).transpose(0, 2, 1, 3) for p in parts)
        scores = np.matmul(q, k.swapaxes(2, 3)) / 8**0.5
        scores = np.where(np.tril(np.ones((steps, steps))) > 0, scores, -1e9)
        mixed = np.matmul(npx.softmax(scores), v).swapaxes(1, 2).reshape(rows, steps, 16)
        return self.out(npx.gelu(h + mixed))


class Deciding(nn.HybridBlock):
    """A loop, a choice, and rows taken one by one."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(8)

    def forward(self, x):
        while np.abs(x).sum() > 1.0:
            x = np.tanh(self.dense(x)) * 0.5
        x = x + 1 if x.sum() > 0 else x - 1
        state, rows = np.zeros(8), []
        for row in x:
            state = state * 0.5 + row
            rows.append(state)
        return np.stack(rows), state


def convolutions():
    return sequential(
        nn.Conv2D(8, 3, strides=2, padding=1, use_bias=False), nn.BatchNorm(), nn.LeakyReLU(0.1),
        nn.Conv2D(8, 3, padding=1, groups=8), nn.ELU(), nn.MaxPool2D(3, 2, 1), nn.AvgPool2D(2, 2),
        nn.Conv2DTranspose(4, 3, strides=2, padding=1, output_padding=1), nn.GlobalAvgPool2D(),
        nn.Flatten(), nn.Dense(5),
    )  # fmt: skip


# Each network with its sample, further inputs, what stays open for those, and operators that the
# file must have.
NETWORKS = {
    "dense": (
        lambda: sequential(nn.Dense(8, activation="relu"), nn.Dropout(0.5), nn.Dense(3)),
        (drawn(2, 4),), [(drawn(1, 4),), (drawn(7, 4),)], {"x": [0]}, {"Gemm", "Relu"},
    ),
    "convolutions": (
        convolutions, (drawn(2, 3, 32, 32),), [(drawn(3, 3, 48, 40),), (drawn(1, 3, 33, 35),)],
        {"x": [0, 2, 3]},
        {"Conv", "BatchNormalization", "LeakyRelu", "Elu", "MaxPool", "AveragePool",
         "ConvTranspose", "GlobalAveragePool", "Gemm"},
    ),
    "one and three dimensions": (
        lambda: sequential(
            nn.Conv1D(6, 5, padding=2, activation="softrelu"), nn.MaxPool1D(2, 2, ceil_mode=True),
            nn.Conv1D(4, 3, dilation=2), nn.GlobalMaxPool1D(),
        ),
        (drawn(2, 3, 17),), [], None, {"Conv", "Softplus", "MaxPool", "GlobalMaxPool"},
    ),
    "normalisation": (
        lambda: sequential(
            nn.Dense(6, flatten=False), nn.LayerNorm(), nn.PReLU(), nn.SELU(), nn.GELU(), nn.Swish()
        ),
        (drawn(4, 5, 7),), [(drawn(2, 9, 7),)], {"x": [0, 1]}, {"LayerNormalization", "Selu"},
    ),
    "instances": (
        lambda: sequential(nn.InstanceNorm(), nn.GroupNorm(2), nn.Conv2D(3, 1)),
        (drawn(2, 4, 5, 6),), [(drawn(2, 4, 5, 9),)], {"x": [0, 3]}, {"InstanceNormalization"},
    ),
    "lstm": (
        lambda: rnn.LSTM(6, 2), (drawn(5, 3, 4),), [(drawn(7, 2, 4),), (drawn(1, 1, 4),)],
        {"inputs": [0, 1]}, {"LSTM"},
    ),
    "gru": (
        lambda: rnn.GRU(6, 2, bidirectional=True, layout="NTC"), (drawn(3, 5, 4),),
        [(drawn(2, 7, 4),)], {"inputs": [0, 1]}, {"GRU"},
    ),
    "rnn": (lambda: rnn.RNN(6, activation="relu"), (drawn(5, 3, 4),), [], None, {"RNN"}),
    "projected": (lambda: rnn.LSTM(6, projection_size=3), (drawn(5, 3, 4),), [], None, {"Scan"}),
    "attention": (
        Attending, (tokens(2, 7),), [(tokens(3, 11),), (tokens(1, 5),), (tokens(2, 1),)],
        {"x": [0, 1]}, {"LayerNormalization", "Softmax", "MatMul", "Gather"},
    ),
    "control flow": (Deciding, (drawn(3, 8),), [], None, {"Loop", "If"}),
}  # fmt: skip


def ready(make, *arrays):
    net = make()
    net.initialize()
    net.hybridize()
    net(*map(np.array, arrays))
    return net


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, tmp_path):
    make, sample, others, dynamic, operators = NETWORKS[name]
    net, path = ready(make, *sample), tmp_path / "net.onnx"
    for opened in (None, dynamic) if dynamic else (None,):
        model = written(net, path, *map(np.array, sample), dynamic=opened)
        assert operators <= {node.op_type for node in model.graph.node}
        for arrays in (sample, *(others if opened else ())):
            wanted = [r.asnumpy() for r in listed(net(*map(np.array, arrays)))]
            check_same(read_again(path, arrays), wanted, 64, 64)
            got = evaluated(model, arrays)
            if got is not None:
                check_same(got, wanted, 64, 64)


def test_parameters_keep_their_names(tmp_path):
    net = ready(convolutions, drawn(1, 3, 16, 16))
    model = written(net, tmp_path / "net.onnx")
    held = {array.name for array in model.graph.initializer}
    assert {p.name for p in net.collect_params().values()} <= held
    labels = [node.name for node in model.graph.node]
    assert f"{net[0].prefix}Conv" in labels
    assert [v.name for v in model.graph.input] == ["x"]


def test_a_network_of_the_zoo(tmp_path):
    net = vision.get_model("mobilenetv2_0.25", classes=10)
    net.initialize()
    net.hybridize()
    x = drawn(1, 3, 64, 64)
    wanted = net(np.array(x)).asnumpy()
    written(net, tmp_path / "net.onnx")
    check_same(read_again(tmp_path / "net.onnx", [x]), [wanted], 256, 256)


# -- sizes ----------------------------------------------------------------------------------------


def choosing(x):
    if x.shape[0] > 4:
        return x * 2
    return x + 1


def test_sizes_for_which_the_program_is_another_are_refused(tmp_path):
    """The file fails rather than computing what another program would."""
    function = heterosis.hybridize(choosing)
    path = tmp_path / "net.onnx"
    with pytest.warns(UserWarning, match="n0 < -4"):
        model = written(function, path, np.ones((6, 3)), dynamic={"x": [0]})
    large, small = drawn(9, 3), drawn(3, 3)
    check_same(evaluated(model, [large]), [large * 2])
    with pytest.raises(ValueError, match="reshape"):
        evaluated(model, [small])
    with pytest.raises(HeterosisError, match="expects"):
        read_again(path, [small])
    facts = {fact.key: fact.value for fact in model.metadata_props}
    assert "-n0 < -4" in facts["the program holds for"]


def test_open_extents_have_the_names_that_are_given(tmp_path):
    function, path = heterosis.hybridize(scaled), tmp_path / "net.onnx"
    x = np.ones((6, 3))
    model = written(function, path, x, dynamic={"x": {0: "rows"}})
    dims = [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in (*model.graph.input, *model.graph.output)]  # fmt: skip
    assert dims == [["rows", 3], ["3*rows"]]
    assert "rows >= 3" in model.metadata_props[0].value
    check_same(evaluated(model, [drawn(1, 3) * 0]), [numpy.zeros(3, "float32")])
    both = heterosis.hybridize(lambda x, y: x.sum() + y)
    names = {"x": {0: "n"}, "y": {0: "n"}}
    with pytest.raises(ArgumentError, match="two extents are called 'n'"):
        to_onnx(both, path, x, np.ones(4), dynamic=names)
    with pytest.raises(ArgumentError, match="called 'a row'; expected letters"):
        to_onnx(both, path, x, np.ones(4), dynamic={"x": {0: "a row"}})


def squeezing(x):
    return x.sum(0) if x.shape[0] == 1 else x.max(0)


def test_another_program_for_extents_of_one(tmp_path):
    function = heterosis.hybridize(squeezing)
    model = written(function, tmp_path / "net.onnx", np.ones((6, 3)), dynamic={"x": [0]})
    for rows in (1, 2, 5):
        x = drawn(rows, 3)
        wanted = [function(np.array(x)).asnumpy()]
        check_same(evaluated(model, [x]), wanted)
        check_same(read_again(tmp_path / "net.onnx", [x]), wanted)


def test_programs_for_extents_of_one_hold_arrays_of_their_own(tmp_path):
    one, many, both = (np.array(drawn(3)) for _ in range(3))

    def chooses(x):
        return x * (one if x.shape[0] == 1 else many) + both

    function = heterosis.hybridize(chooses)
    model = written(function, tmp_path / "net.onnx", np.ones((6, 3)), dynamic={"x": [0]})
    for rows in (1, 2, 5):
        x = drawn(rows, 3)
        wanted = [chooses(np.array(x)).asnumpy()]
        check_same(evaluated(model, [x]), wanted)
        check_same(read_again(tmp_path / "net.onnx", [x]), wanted)


def scaled(x):
    rows, columns = x.shape
    return (x.reshape(columns, rows) * (1.0 / rows) + np.arange(rows) * rows).reshape(-1)


def test_numbers_that_follow_from_sizes(tmp_path):
    function = heterosis.hybridize(scaled)
    model = written(function, tmp_path / "net.onnx", np.ones((6, 3)), dynamic={"x": [0]})
    for rows in (1, 5, 10):
        x = drawn(rows, 3)
        wanted = [function(np.array(x)).asnumpy()]
        check_same(evaluated(model, [x]), wanted)
        check_same(read_again(tmp_path / "net.onnx", [x]), wanted)


# -- what programs check --------------------------------------------------------------------------


def test_an_index_outside_fails(tmp_path):
    function = heterosis.hybridize(lambda x, i: x[i])
    x, path = drawn(4, 2), tmp_path / "net.onnx"
    function(np.array(x), np.array([0, -1], dtype="int64"))
    model = written(function, path)
    inside = numpy.array([3, -4])
    check_same(evaluated(model, [x, inside]), [x[inside]])
    for outside in (4, -5):
        with pytest.raises(IndexError):
            evaluated(model, [x, numpy.array([0, outside])])


def test_a_condition_of_elements_fails(tmp_path):
    function = heterosis.hybridize(lambda x, w: np.average(x, weights=w))
    x, path = drawn(4), tmp_path / "net.onnx"
    function(np.array(x), np.ones(4))
    model = written(function, path)
    weights = numpy.arange(4, dtype="float32")
    check_same(evaluated(model, [x, weights]), [numpy.average(x, weights=weights)])
    with pytest.raises(ValueError, match="reshape"):
        evaluated(model, [x, numpy.zeros(4, "float32")])


# -- sorting --------------------------------------------------------------------------------------

INFINITE = [numpy.inf, -numpy.inf, numpy.nan, 0.0, -0.0, 1.0, 1.0, numpy.nan, numpy.inf, -1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "int64"])
@pytest.mark.parametrize("turned", [False, True])
def test_orders(dtype, turned, tmp_path):
    """With NaN behind infinities, and equal elements as they came."""
    x = numpy.array([INFINITE, INFINITE[::-1]])
    x = x.astype(dtype) if dtype.startswith("float") else RANDOM.integers(0, 5, x.shape, dtype)

    def order(x):
        if turned:
            return npx.topk(x, k=7, axis=1, ret_typ="both", dtype="int32")
        return np.sort(x, axis=1), np.argsort(x, axis=1)

    function = heterosis.hybridize(order)
    wanted = [r.asnumpy() for r in function(np.array(x, dtype=x.dtype))]
    model = written(function, tmp_path / "net.onnx")
    check_same(evaluated(model, [x]), wanted)
    check_same(read_again(tmp_path / "net.onnx", [x]), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_places(dtype, tmp_path):
    """NaN is the largest, and the smallest, and there may be infinities before it."""
    x = numpy.tile(numpy.array(INFINITE), (4, 16))
    x[1, :30], x[2] = 1, numpy.nan_to_num(x[2])
    x = (
        x.astype(dtype)
        if dtype.startswith("float")
        else (RANDOM.random(x.shape) > 0.5).astype(dtype)
    )

    def places(x):
        row = np.sort(x[3])
        found = np.searchsorted(row, x[0]), np.searchsorted(row, x[0], side="right")
        return x.argmax(axis=1), x.argmin(axis=1), *found

    function = heterosis.hybridize(places)
    wanted = [r.asnumpy() for r in function(np.array(x, dtype=x.dtype))]
    model = written(function, tmp_path / "net.onnx")
    check_same(read_again(tmp_path / "net.onnx", [x]), wanted)
    got = evaluated(model, [x])
    if got is not None:
        check_same(got, wanted)


# -- refusals -------------------------------------------------------------------------------------


def test_what_onnx_cannot_is_refused_at_once(tmp_path):
    function = heterosis.hybridize(lambda x: np.linalg.inv(x) + npx.gamma(x) + npx.gamma(x + 1))
    with pytest.raises(UnsupportedError, match=r"2 primitives .*: gamma \(2\), inverse \(1\)\."):
        to_onnx(function, tmp_path / "net.onnx", np.ones((2, 2)))
    assert not list(tmp_path.iterdir())


def test_draws_are_refused(tmp_path):
    function = heterosis.hybridize(lambda x: x + np.random.uniform(size=(3,)))
    with pytest.raises(UnsupportedError, match=r"random_block"):
        to_onnx(function, tmp_path / "net.onnx", np.ones(3))


def test_calls_of_several_kinds_need_samples(tmp_path):
    net = ready(lambda: sequential(nn.Dense(2)), drawn(1, 4))
    net(np.ones((1, 4)).astype("float64").astype("float32"))
    function = heterosis.hybridize(lambda x: x + 1)
    with pytest.raises(UninitializedError, match="no program yet"):
        to_onnx(function, tmp_path / "net.onnx")
    function(np.ones(3))
    function(np.ones((2, 2), dtype="int32"))
    with pytest.raises(ArgumentError, match="2 kinds of arguments"):
        to_onnx(function, tmp_path / "net.onnx")
    to_onnx(function, tmp_path / "net.onnx", np.ones(3))
    assert from_onnx(str(tmp_path / "net.onnx")).inputs == ["x"]
