"""`F`'s operators: what MXNet 1.9.1 gives for the same arrays, stored."""

import json
from pathlib import Path

import numpy
import pytest

from heterosis import autograd, np
from heterosis import ndarray as F
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.mxnet.operators import cases

STORED = json.loads((Path(__file__).parent / "mxnet_values.json").read_text())


@pytest.mark.parametrize("expression", cases.EXPRESSIONS)
def test_operator(expression):
    dtype, shape, numbers = cases.facts(expression, {"F": F, **cases.arrays(np.array)})
    expected_dtype, expected_shape, expected = STORED[expression]
    assert (dtype, shape) == (expected_dtype, expected_shape)
    numpy.testing.assert_allclose(numbers, expected, rtol=3e-5, atol=2e-6)


def test_out_and_name():
    x, out = np.array([1.0, -2.0]), np.zeros(2)
    assert F.relu(x, out=out, name="any") is out and out.asnumpy().tolist() == [1, 0]
    assert F.relu.__name__ == "relu" and F.linalg.gemm2 is F.linalg_gemm2
    assert F.random.uniform(0, 1, shape=(2, 2)).shape == (2, 2)
    assert F.sample_normal(np.zeros(3), np.ones(3), shape=4).shape == (3, 4)


def test_no_gradient_flows_through_block_grad():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = (F.BlockGrad(x) * x + F.SequenceLast(F.stack(x, x))).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 3]


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda x: F.contrib.gradientmultiplier(x, scalar=3.0), [3, 3]),
        (F.contrib.round_ste, [1, 1]),
        (F.contrib.sign_ste, [1, 1]),
        (lambda x: F.contrib.boolean_mask(x, np.array([0, 1])), [0, 1]),
        (lambda x: F.contrib.index_copy(x, np.array([1.0]), np.ones(1)), [1, 0]),
        (lambda x: F.contrib.AdaptiveAvgPooling2D(x.reshape(1, 1, 1, 2)), [0.5, 0.5]),
        (lambda x: F.contrib.BilinearResize2D(x.reshape(1, 1, 1, 2), width=3), [1.5, 1.5]),
    ],
)
def test_gradients_of_contrib(function, expected):
    x = np.array([1.25, -2.5])
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == expected


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: F.contrib.AdaptiveAvgPooling2D(np.ones((2, 3))), "expected \\(batch, channels"),
        (lambda: F.contrib.boolean_mask(np.ones((3, 2)), np.ones(2)), "a number for each row"),
        (lambda: F.contrib.index_copy(np.ones(3), np.ones(1), np.ones(2)), "a row for each index"),
        (lambda: F.contrib.interleaved_matmul_selfatt_qk(np.ones((2, 3, 4)), 2), "multiple of 6"),
    ],
)
def test_shapes_that_contrib_does_not_take(call, message):
    with pytest.raises(ShapeError, match=message):
        call()


@pytest.mark.parametrize("facts", [{"mode": "odd_scale"}, {"mode": "like"}, {"mode": "other"}])
def test_modes_of_resizing(facts):
    with pytest.raises(ArgumentError, match=f"mode='{facts['mode']}'; expected 'size'"):
        F.contrib.BilinearResize2D(np.ones((1, 1, 2, 2)), **facts)


@pytest.mark.parametrize(
    "output, expected",
    [
        (lambda x, y: F.Softmax(x, y, grad_scale=2.0, normalization="batch"),
         [[0.5, -0.5], [-0.5, 0.5]]),
        (lambda x, y: F.SoftmaxOutput(x, y, grad_scale=2.0, normalization="batch"),
         [[0.5, -0.5], [-0.5, 0.5]]),
        (lambda x, y: F.SoftmaxOutput(x, y, use_ignore=True, ignore_label=0.0),
         [[0.5, -0.5], [0.0, 0.0]]),
        (lambda x, y: F.LinearRegressionOutput(x, F.stack(y, y, axis=1)),
         [[-0.5, -0.5], [0.0, 0.0]]),
        (lambda x, y: F.MAERegressionOutput(x, F.stack(y, y, axis=1)), [[-0.5, -0.5]] * 2),
        (lambda x, y: F.make_loss(x + y), [[1, 1], [1, 1]]),
        (lambda x, y: F.MakeLoss(x + y, grad_scale=3.0), [[3, 3], [3, 3]]),
        (lambda x, y: F.MakeLoss(x + y, grad_scale=3.0, normalization="batch"),
         [[1.5, 1.5], [1.5, 1.5]]),
        (lambda x, y: F.MakeLoss(x + y - 3, grad_scale=3.0, normalization="valid",
                                 valid_thresh=-2.5), [[1.5, 1.5], [1.5, 1.5]]),
    ],
)  # fmt: skip
def test_output_layers_have_their_losses_gradient(output, expected):
    x, label = np.zeros((2, 2)), np.array([1.0, 0.0])
    x.attach_grad()
    with autograd.record():
        y = output(x, label) * 7  # what comes from behind does not matter
    y.backward()
    assert x.grad.asnumpy().tolist() == expected


def test_labels_that_are_no_classes_count_as_the_nearest():
    x = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 0.0]])
    found = []
    for labels in ([-5, 7], [0, 2]):
        x.attach_grad()
        with autograd.record():
            y = F.softmax_cross_entropy(x, np.array(labels))
        y.backward()
        found.append((y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_random_operators():
    classes, logs = F.sample_multinomial(np.array([[0.0, 1.0]]), shape=5, get_prob=True)
    assert classes.asnumpy().tolist() == [[1] * 5] and logs.asnumpy().tolist() == [[0] * 5]
    assert classes.dtype == numpy.int32
    counts = F.sample_poisson(np.array([1.0, 1000.0]), shape=(50,))
    assert counts.shape == (2, 50) and abs(counts[1].mean().item() - 1000) < 50
    assert F.sample_exponential(np.ones(2), shape=3).shape == (2, 3)
    assert F.shuffle(np.arange(5)).sum().item() == 10


def test_wrong_arguments():
    with pytest.raises(ShapeError, match="broadcast_add repeats"):
        F.elemwise_add(np.ones((2, 3)), np.ones((1, 3)))
    with pytest.raises(ArgumentError, match="two numbers for each"):
        F.pad(np.ones((2, 2)), "constant", (1, 1))
    with pytest.raises(ArgumentError, match="norm: ord is 3; expected 1 or 2"):
        F.norm(np.ones(2), ord=3)
    with pytest.raises(ShapeError, match="elemwise_add: shapes"):
        F.add_n(np.ones((2, 3)), np.ones((1, 3)))
    with pytest.raises(ArgumentTypeError, match=r"^abs: too many positional arguments"):
        F.abs(np.ones(2), np.ones(2))
    with pytest.raises(ArgumentTypeError, match=r"^slice: missing a required argument: 'begin'"):
        F.slice(np.ones(2))


def test_wrong_arguments_of_up_sampling():
    image = np.ones((1, 1, 2, 2))
    with pytest.raises(ShapeError, match=r"\(3, 3\) do not divide the size \(4, 4\)"):
        F.UpSampling(image, np.ones((1, 1, 3, 3)), scale=2, sample_type="nearest")
    with pytest.raises(ShapeError, match="elemwise_add: shapes"):
        F.UpSampling(image, np.ones((1, 2, 2, 2)), scale=2, multi_input_mode="sum")
    with pytest.raises(ArgumentError, match="'concat' or 'sum'"):
        F.UpSampling(image, image, scale=2, multi_input_mode="mean")
    with pytest.raises(ArgumentError, match="scale=0"):
        F.UpSampling(image, scale=0)
    with pytest.raises(ArgumentTypeError, match="missing a required argument: 'scale'"):
        F.UpSampling(image, 2, "nearest")
    with pytest.raises(ArgumentTypeError, match="scale is 'two'; expected an integer"):
        F.UpSampling(image, scale="two")
    with pytest.raises(ArgumentError, match=r"init.Bilinear"):
        F.UpSampling(np.ones((1, 1, 2, 2)), scale=2, sample_type="bilinear")
