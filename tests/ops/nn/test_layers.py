"""Layers of networks beyond what the registry's samples say: state, random draws, faults."""

import math

import numpy
import pytest

from heterosis import autograd, np, npx
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, HeterosisError, ShapeError


@pytest.fixture
def training():
    with modes.switched(training=True):
        yield


# -- activations ----------------------------------------------------------------------------------


def test_activations_of_special_values():
    x = np.array([-numpy.inf, -200.0, 0.0, 200.0, numpy.inf, numpy.nan])
    for kind, expected in {
        "relu": [0, 0, 0, 200, math.inf, math.nan],
        "softrelu": [0, 0, math.log(2), 200, math.inf, math.nan],
        "sigmoid": [0, 0, 0.5, 1, 1, math.nan],
    }.items():
        numpy.testing.assert_allclose(npx.activation(x, kind).asnumpy(), expected, rtol=1e-6)
    elu = npx.leaky_relu(x, act_type="elu", slope=0.5).asnumpy()
    numpy.testing.assert_allclose(elu, [-0.5, -0.5, 0, 200, math.inf, math.nan])


def test_activations_refuse_what_they_do_not_know():
    x = np.ones((2, 3))
    with pytest.raises(ArgumentError, match="softrelu"):
        npx.activation(x, act_type="swish")
    with pytest.raises(ArgumentError, match="prelu"):
        npx.leaky_relu(x, act_type="relu")
    with pytest.raises(ArgumentError, match="gamma"):
        npx.leaky_relu(x, act_type="prelu")
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        npx.leaky_relu(x, np.ones(2), act_type="prelu")


def test_random_slopes_in_training(training):
    y = npx.leaky_relu(-np.ones(2000), act_type="rrelu", lower_bound=0.1, upper_bound=0.3).asnumpy()
    assert -0.3 <= y.min() < -0.29 and -0.11 < y.max() <= -0.1
    assert abs(y.mean() + 0.2) < 0.005
    with modes.switched(training=False):
        y = npx.leaky_relu(-np.ones(2), act_type="rrelu", lower_bound=0.1, upper_bound=0.3)
    numpy.testing.assert_allclose(y.asnumpy(), -0.2, rtol=1e-6)


# -- products and tables --------------------------------------------------------------------------


def test_fully_connected_says_which_shape_it_wants():
    x = np.ones((2, 3, 4))
    with pytest.raises(ShapeError, match=r"expected \(5, 12\)"):
        npx.fully_connected(x, np.ones((5, 4)), np.ones(5), num_hidden=5)
    with pytest.raises(ShapeError, match=r"expected \(6, 4\)"):
        npx.fully_connected(x, np.ones((5, 4)), np.ones(5), num_hidden=6, flatten=False)
    with pytest.raises(ShapeError, match="no_bias"):
        npx.fully_connected(x, np.ones((5, 12)))


def test_embedding_takes_fractions_and_checks_its_table():
    table = np.arange(8).reshape(4, 2)
    assert npx.embedding(np.array([1.7, -3, 99]), table, 4, 2).tolist() == [[2, 3], [0, 1], [6, 7]]
    with pytest.raises(ShapeError, match=r"\(5, 2\)"):
        npx.embedding(np.array([1]), table, 5, 2)


def test_nonzero_gives_rows_of_indices():
    assert npx.nonzero(np.array([[1, 0], [0, 2]])).tolist() == [[0, 0], [1, 1]]
    assert npx.nonzero(np.array(3.0)).tolist() == [[0]]
    assert npx.nonzero(np.zeros((2, 2))).shape == (0, 2)


# -- batch normalisation --------------------------------------------------------------------------


def batch():
    rng = numpy.random.default_rng(3)
    return rng.normal(2, 3, (8, 3, 4)).astype("float32")


def statistics():
    return np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])


def test_batch_norm_in_training_moves_the_statistics(training):
    x, (mean, variance) = batch(), statistics()
    own_mean, own_variance = x.mean((0, 2)), x.var((0, 2))
    y = npx.batch_norm(np.array(x), np.ones(3), np.zeros(3), mean, variance, momentum=0.5)
    expected = (x - own_mean[:, None]) / numpy.sqrt(own_variance[:, None] + 1e-3)
    numpy.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-4, atol=1e-5)
    moved = numpy.array([0.1, 0.2, 0.3]) * 0.5 + own_mean * 0.5
    numpy.testing.assert_allclose(mean.asnumpy(), moved, rtol=1e-5)
    moved = numpy.array([1, 2, 3]) * 0.5 + own_variance * 0.5
    numpy.testing.assert_allclose(variance.asnumpy(), moved, rtol=1e-5)


def test_batch_norm_by_moving_statistics_leaves_them(training):
    x, (mean, variance) = np.array(batch()), statistics()
    fixed = npx.batch_norm(x, np.ones(3), np.zeros(3), mean, variance, use_global_stats=True)
    with modes.switched(training=False):
        found = npx.batch_norm(x, np.ones(3) * 9, np.zeros(3), mean, variance, output_mean_var=True)
    numpy.testing.assert_array_equal(fixed.asnumpy(), found[0].asnumpy())
    assert mean.tolist() == found[1].tolist() and variance.tolist() == [1, 2, 3]
    numpy.testing.assert_allclose(
        found[2].asnumpy(), 1 / numpy.sqrt([1.001, 2.001, 3.001]), rtol=1e-6
    )


def test_batch_norm_of_half_precision_keeps_its_type(training):
    x = np.array(batch()).astype("float16")
    y, mean, _ = npx.batch_norm(x, np.ones(3), np.zeros(3), *statistics(), output_mean_var=True)
    assert y.dtype == "float16" and mean.dtype == "float32"


def test_normalisation_checks_its_parameters():
    x = np.ones((2, 3, 4))
    with pytest.raises(ShapeError, match=r"beta of shape \(4,\).*expected \(3,\)"):
        npx.batch_norm(x, np.ones(3), np.ones(4), np.ones(3), np.ones(3))
    with pytest.raises(ShapeError, match=r"gamma of shape \(3,\)"):
        npx.layer_norm(x, np.ones(3), np.ones(4))


def test_batch_norm_is_differentiated_through_the_batch_and_not_its_statistics():
    x, (mean, variance) = np.array(batch()), statistics()
    gamma, beta = np.ones(3), np.zeros(3)
    for v in (x, gamma, beta):
        v.attach_grad()
    with autograd.record():
        y = npx.batch_norm(x, gamma, beta, mean, variance)
        (y * y).sum().backward()
    assert not gamma.grad.any()  # it is fixed
    numpy.testing.assert_allclose(beta.grad.asnumpy(), 0, atol=1e-4)
    numpy.testing.assert_allclose(x.grad.asnumpy(), 0, atol=1e-3)  # no change of scale is seen
    assert mean.tolist() != [0.1, 0.2, 0.3]


# -- dropout --------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean_and_drops_the_share(training):
    np.random.seed(5)
    y = npx.dropout(np.ones(20_000), p=0.25).asnumpy()
    assert set(numpy.unique(y).tolist()) == {0.0, numpy.float32(4 / 3).item()}
    assert abs((y == 0).mean() - 0.25) < 0.01
    np.random.seed(5)
    numpy.testing.assert_array_equal(npx.dropout(np.ones(20_000), p=0.25).asnumpy(), y)


def test_dropout_along_axes_and_at_its_ends(training):
    y = npx.dropout(np.ones((40, 50)), p=0.5, axes=(0,)).asnumpy()
    assert (y == y[0]).all() and 0 < (y[0] == 0).sum() < 50
    assert npx.dropout(np.ones(9), p=1).tolist() == [0] * 9
    assert npx.dropout(np.ones(9), p=0).tolist() == [1] * 9
    half = npx.dropout(np.ones(9, dtype="float16"), p=0.5)
    assert half.dtype == "float16"


def test_dropout_passes_gradients_where_it_passed_numbers():
    for p in (0.5, 1.0):
        x = np.ones(99)
        x.attach_grad()
        with autograd.record():
            y = npx.dropout(x, p)
        y.backward()
        assert (x.grad == y).all()


def test_dropout_in_prediction_copies():
    x = np.ones(9)
    y = npx.dropout(x, p=0.5)
    y += 1
    assert x.tolist() == [1] * 9
    assert 0 in npx.dropout(np.ones(999), p=0.5, mode="always").tolist()
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        npx.dropout(x, p=1.5)
    with pytest.raises(ArgumentError, match="'always'"):
        npx.dropout(x, mode="sometimes")


# -- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: npx.sequence_mask(np.ones((3, 2)), np.ones(3), True),
        lambda: npx.sequence_mask(np.ones((3, 2)), np.ones(2), True, axis=2),
        lambda: npx.arange_like(np.ones(3), repeat=0),
        lambda: npx.batch_flatten(np.array(1.0)),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(HeterosisError):
        call()


@pytest.mark.parametrize("eps", [1e39, 1e308])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_attributes_beyond_the_largest_number_of_a_type(eps, dtype):
    """They are infinite there, as after a conversion."""
    x = np.array([[1.0, 2.0, 3.0]], dtype=dtype)
    ones = np.ones(3, dtype=dtype)
    found = npx.layer_norm(x, ones, ones, eps=eps)
    numpy.testing.assert_allclose(found.asnumpy(), 1.0)
