"""Initialisers: by a parameter's name, from JSON, and how their numbers are spread."""

import math

import numpy
import pytest

from heterosis import init, initializer, np, npx
from heterosis.gluon import nn
from heterosis.runtime.errors import ArgumentError, ShapeError
from tests.train.cases import INITIALIZERS
from tests.train.stored import answers


@pytest.mark.parametrize("name", INITIALIZERS)
def test_values_as_in_mxnet(name):
    kind, arguments, parameter, shape = INITIALIZERS[name]
    array = np.full(shape, 7.0)
    init.create(kind, **arguments)(init.InitDesc(parameter), array)
    expected = answers("initializers")[name]
    numpy.testing.assert_allclose(array.asnumpy().ravel(), expected, 1e-6)


def filled(initializer_, shape, dtype="float32", name="a_weight"):
    npx.random.seed(3)
    array = np.full(shape, 7.0, dtype=dtype)
    initializer_(init.InitDesc(name), array)
    return array.asnumpy().astype("float64")


SPREADS = {  # the standard deviation, and the largest number if there is one
    "uniform": (init.Uniform(0.3), 0.3 / math.sqrt(3), 0.3),
    "normal": (init.Normal(0.2), 0.2, None),
    "xavier": (init.Xavier(), math.sqrt(2 / 150), math.sqrt(6 / 150)),
    "xavier in": (init.Xavier("gaussian", "in", 2), math.sqrt(2 / 100), None),
    "xavier out": (init.Xavier("uniform", "out", 3), math.sqrt(1 / 50), math.sqrt(3 / 50)),
    "msra": (init.MSRAPrelu("in", 0.0), math.sqrt(2 / 100), None),
}


@pytest.mark.parametrize("name", SPREADS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_spread(name, dtype):
    made, deviation, largest = SPREADS[name]
    found = filled(made, (50, 100), dtype)
    assert abs(found.mean()) < 0.06 * deviation and abs(found.std() / deviation - 1) < 0.05
    assert largest is None or numpy.abs(found).max() <= largest * 1.001


def test_kernels_count_with_their_area():
    found = filled(init.Xavier(), (20, 10, 5, 5))
    assert abs(found.std() / math.sqrt(2 / (30 * 25)) - 1) < 0.05


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_orthogonal(shape, kind):
    found = filled(init.Orthogonal(2.0, kind), shape).reshape(shape[0], -1)
    small = found @ found.T if found.shape[0] <= found.shape[1] else found.T @ found
    numpy.testing.assert_allclose(small, 4 * numpy.eye(len(small)), atol=1e-5)


@pytest.mark.parametrize("mode, gates", [("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_fused_rnn_fills_part_by_part(mode, gates, bidirectional):
    hidden, inputs, layers, directions = 3, 5, 2, 1 + bidirectional
    rows = gates * hidden * directions
    weights = rows * (inputs + hidden) + rows * (hidden * directions + hidden)
    made = init.FusedRNN(init.One(), hidden, layers, mode, bidirectional, forget_bias=2.0)
    found = filled(made, (weights + rows * 2 * layers,))
    assert (found[:weights] == 1).all()
    biases = found[weights:].reshape(-1, gates, hidden)
    expected = numpy.zeros_like(biases)
    if mode == "lstm":
        expected[:, 1] = 2.0
    numpy.testing.assert_array_equal(biases, expected)


def test_an_initializer_of_the_parameters_own():
    array = np.zeros(3)
    init.Xavier()(init.InitDesc("a_bias", {"__init__": "ones"}), array)
    assert array.tolist() == [1, 1, 1]
    init.Xavier()(init.InitDesc("a_bias", {"__init__": init.Constant(4).dumps()}), array)
    assert array.tolist() == [4, 4, 4]


@initializer.register
class FiveOrNone(initializer.Initializer):
    """One of the user's own, as books write it."""

    def _init_weight(self, name, data):
        data[:] = np.random.uniform(-10, 10, data.shape)
        data[:] *= np.abs(data) >= 5


def test_initializers_of_ones_own():
    found = filled(init.create("FiveOrNone"), (9, 9))
    assert ((found == 0) | (numpy.abs(found) >= 5)).all() and (found == 0).any()


@pytest.mark.parametrize(
    "made",
    [init.Zero(), init.Xavier("gaussian", "in", 2), init.MSRAPrelu(slope=0.5), init.Constant(2)],
)
def test_json_makes_the_same(made):
    assert init.create(made.dumps()) == made
    assert init.create(made) is made


def test_constants_of_arrays():
    for value in (np.array([1, 2, 3]), [1, 2, 3], numpy.array([1, 2, 3])):
        made = init.Constant(value)
        assert filled(made, (3,)).tolist() == [1, 2, 3] and "[1" in made.dumps()
    assert filled(init.Constant(5), ()).item() == 5


def test_mixed_and_load():
    made = init.Mixed(["a", ".*bias", ".*"], [init.One(), init.Zero(), init.Constant(3)])
    assert filled(made, (2,), name="a_weight").tolist() == [1, 1]
    assert filled(made, (2,), name="b_bias").tolist() == [0, 0]
    assert filled(made, (2,), name="b_weight").tolist() == [3, 3]
    loaded = init.Load({"arg:a_weight": np.array([4.0, 5.0])}, init.One())
    assert filled(loaded, (2,)).tolist() == [4, 5]
    assert filled(loaded, (2,), name="b_weight").tolist() == [1, 1]


def parameters_filled(made, **options):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(1, in_units=2, **options), nn.BatchNorm(in_channels=1), nn.Dense(1))
    net.initialize(made)
    net(np.ones((1, 2)))
    parameters = net.collect_params().items()
    return {name.removeprefix("net_"): p.data().tolist() for name, p in parameters}


def test_networks_are_initialised_by_patterns():
    found = parameters_filled(init.Mixed(["net_dense1.*", ".*"], [init.Constant(2), "ones"]))
    assert found["dense0_weight"] == [[1, 1]] and found["dense1_weight"] == [[2]]
    assert found["dense0_bias"] == found["dense1_bias"] == [0]  # "zeros" of their own
    assert found["batchnorm0_gamma"] == [1] and found["batchnorm0_running_var"] == [1]
    own = init.Mixed(["nothing", ".*"], [init.Zero(), init.Constant(3)])
    assert parameters_filled(init.One(), weight_initializer=own)["dense0_weight"] == [[3, 3]]
    assert init.create(own.dumps()) == own != init.Mixed([".*"], ["ones"])


def test_networks_are_initialised_from_arrays():
    loaded = init.Load({"arg:net_dense0_weight": np.array([[4.0, 5.0]])}, init.One())
    found = parameters_filled(loaded)
    assert found["dense0_weight"] == [[4, 5]] and found["dense1_weight"] == [[1]]
    assert filled(init.create(loaded.dumps()), (1, 2), name="net_dense0_weight").tolist() == [
        [4, 5]
    ]
    own = init.Load({}, init.Constant(3))
    assert parameters_filled(init.One(), bias_initializer=own)["dense0_bias"] == [3]


def test_initialisers_of_arrays_are_compared():
    one, same, other = (init.Constant(np.array(values)) for values in ([1, 2], [1, 2], [1, 3]))
    assert one == same != other


def test_verbosity_is_logged(caplog):
    with caplog.at_level("INFO"):
        filled(init.One().set_verbosity(True), (2,))
        filled(init.One().set_verbosity(True, lambda array: f"{array.size} numbers"), (2,))
    assert "a_weight as weight: 1.0" in caplog.text and "2 numbers" in caplog.text


def call(made, name="a_weight", shape=(2,)):
    return lambda: made(name, np.zeros(shape))


BAD = {
    "name": (call(init.One(), "a_thing"), ArgumentError, "a_thing"),
    "vector": (call(init.Xavier()), ShapeError, "two dimensions"),
    "bilinear": (call(init.Bilinear()), ShapeError, "four dimensions"),
    "type": (lambda: init.Xavier("cubic"), ArgumentError, "rnd_type='cubic'"),
    "unknown": (lambda: init.create("xavierr"), ArgumentError, "known are"),
    "no class": (lambda: init.register(int), ArgumentError, "derive it from"),
    "patterns": (lambda: init.Mixed(["a"], []), ArgumentError, "1 patterns and 0"),
    "no pattern": (call(init.Mixed(["b"], [init.One()])), ArgumentError, "no pattern"),
    "missing": (call(init.Load({})), ArgumentError, "no default_init"),
    "shape": (call(init.Load({"a_weight": np.ones(3)})), ShapeError, "a_weight"),
    "mode": (lambda: init.FusedRNN(None, 3, 1, "mgu"), ArgumentError, "lstm"),
    "length": (call(init.FusedRNN("one", 3, 1, "gru"), shape=(7,)), ShapeError, "3 hidden"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        make()
