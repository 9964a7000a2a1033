"""Convolution, deconvolution and pooling: what the registry's samples do not say."""

import itertools

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.autograd.reverse import cotangents
from heterosis.backends.native.compile import single
from heterosis.backends.native.compile.plans import machine
from heterosis.backends.native.stages.pipeline import for_processor
from heterosis.capture.attempts import capture
from heterosis.ir import views
from heterosis.ops.nn import window_references as references
from heterosis.ops.nn.convolution import convolution_data_gradient, convolution_weight_gradient
from heterosis.ops.nn.pooling import pooling_gradient
from heterosis.ops.record import Record
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

RANDOM = numpy.random.default_rng(7)


def drawn(*shape, dtype="float32"):
    return RANDOM.uniform(-1, 1, shape).astype(dtype)


def near(got, expected, digits=5):
    numpy.testing.assert_allclose(got.asnumpy(), expected, rtol=10**-digits, atol=10**-digits)


# -- against the reference, where panels, blocks and runs end -------------------------------------

# images, channels, filters, kernel, stride, pad, dilate, groups, height, width
SHAPES = [
    (1, 1, 1, 1, 1, 0, 1, 1, 1, 1),
    (3, 2, 7, 3, 1, 1, 1, 1, 3, 3),  # a panel holds several images
    (2, 70, 9, 3, 1, 1, 1, 1, 7, 7),  # more than one block of depth
    (1, 3, 65, 7, 2, 3, 1, 1, 30, 34),  # two loads a vector
    (2, 4, 6, 5, 3, 2, 2, 2, 21, 20),  # element by element
    (1, 5, 4, 3, 1, 2, 1, 1, 5, 50),
    (2, 6, 6, 3, 2, 1, 1, 6, 9, 13),  # one channel a group
    (2, 6, 12, 3, 1, 1, 1, 6, 9, 33),
    (1, 4, 4, 5, 1, 4, 2, 4, 6, 20),
    (1, 3, 5, 3, 1, 1, 1, 1, 40, 3),
    (17, 8, 20, 1, 1, 0, 1, 1, 1, 1),
    (2, 32, 40, 3, 1, 1, 1, 1, 28, 28),  # by tiles, for which filters are transformed
    (1, 70, 33, 3, 1, 2, 1, 1, 13, 17),
    (1, 96, 96, 3, 2, 1, 1, 1, 14, 14),  # rows are turned
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 7, 10, 13])
def test_windows_of_planes_whose_rows_are_no_vectors(width, dtype):
    """Two rows of a plane or more in each vector, and the end of an image in some; what lies around
    the planes is no number."""
    wide = numpy.full((3, 2, width + 3, width + 5), numpy.nan, dtype)
    inside = (slice(None), slice(None), slice(1, width + 1), slice(2, width + 2))
    wide[inside] = drawn(3, 2, width, width, dtype=dtype)
    ours = np.array(wide)[inside]
    for taps, stride, pad in itertools.product((1, 2, 3, 5), (1, 2), (0, 1, 2)):
        if taps > width + 2 * pad:
            continue
        weight = drawn(5, 2, taps, taps, dtype=dtype)
        facts = {"kernel": (taps, taps), "stride": (stride, stride), "pad": (pad, pad)}
        expected = references.convolution(wide[inside], weight, **facts)
        near(npx.convolution(ours, np.array(weight), no_bias=True, **facts), expected, 5)
        near(npx.convolution(ours.copy(), np.array(weight), no_bias=True, **facts), expected, 5)


@pytest.mark.parametrize(
    "shape, transforms", [((8, 32, 14, 14), True), ((8, 32, 7, 7), True), ((1, 32, 7, 7), False)]
)
def test_an_imperative_convolution_goes_the_cheapest_way(shape, transforms):
    def run(x, w):
        return npx.convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=64, no_bias=True)

    given = np.zeros(shape), np.zeros((64, 32, 3, 3))
    program = single.prepared(capture(run, given, {}).program, machine())
    assert ("pack_transformed" in str(program)) == transforms


@pytest.mark.parametrize("shape", SHAPES)
def test_convolution_and_gradients_match_the_reference(shape):
    n, c, o, k, s, p, d, g, h, w = shape
    facts = {"stride": (s, s), "pad": (p, p), "dilate": (d, d), "num_group": g}
    x, weight, bias = drawn(n, c, h, w), drawn(o, c // g, k, k), drawn(o)
    expected = references.convolution(x, weight, bias, kernel=(k, k), **facts)
    ours = [np.array(a) for a in (x, weight, bias)]
    near(npx.convolution(*ours, kernel=(k, k), num_filter=o, **facts), expected, 4)
    dy = drawn(*expected.shape)
    of_data = references.convolution_data_gradient(dy, weight, x.shape, **facts)
    near(convolution_data_gradient(np.array(dy), ours[1], shape=x.shape, **facts), of_data, 4)
    of_weight = references.convolution_weight_gradient(dy, x, (k, k), **facts)
    near(convolution_weight_gradient(np.array(dy), ours[0], kernel=(k, k), **facts), of_weight, 4)


# images, channels, filters, kernel, height, width: the filters' gradient of data, which is small
FOLDED = [(3, 4, 16, (5, 5), 8, 8), (2, 3, 33, (3, 7), 4, 9), (1, 20, 50, (5, 5), 12, 12)]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", FOLDED, ids=str)
def test_gradients_of_small_images_are_added_up(shape, dtype, fixed):
    n, c, o, kernel, h, w = shape
    weight = drawn(o, c, *kernel, dtype=dtype)
    dy = drawn(n, o, h - kernel[0] + 1, w - kernel[1] + 1, dtype=dtype)
    expected = references.convolution_data_gradient(dy, weight, (n, c, h, w))
    ours = np.array(weight)

    def of_data(dy, weight):
        return convolution_data_gradient(dy, weight, shape=(n, c, h, w))

    net = heterosis.hybridize((lambda dy: of_data(dy, ours)) if fixed else of_data)
    given = [np.array(dy)] if fixed else [np.array(dy), ours]
    near(net(*given), expected, 4 if dtype == "float32" else 12)
    program = capture(net.function, given, {}).program
    inputs = program.inputs[1:] if fixed else ()
    assert "= fold(" in str(for_processor(program, inputs, machine()))


@pytest.mark.parametrize("images, folds", [(8, True), (512, False)])
def test_what_is_added_up_is_not_more_than_caches_hold(images, folds):
    def of_data(dy, weight):
        return convolution_data_gradient(dy, weight, shape=(images, 20, 12, 12))

    given = np.zeros((images, 50, 8, 8)), np.zeros((50, 20, 5, 5))
    program = capture(of_data, given, {}).program
    assert ("= fold(" in str(for_processor(program, (), machine()))) == folds


def test_operands_may_lie_in_any_way():
    x, weight, bias = drawn(2, 9, 8, 3), drawn(3, 3, 3, 5), drawn(10)
    turned = np.array(x).transpose(0, 3, 1, 2)
    filters = np.array(weight).transpose(3, 2, 0, 1)
    got = npx.convolution(turned, filters, np.array(bias)[::-2], kernel=(3, 3), num_filter=5)
    x, weight = x.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1)
    near(got, references.convolution(x, weight, bias[::-2], kernel=(3, 3)))
    part = npx.convolution(turned[:, :, ::2, 1:], filters, kernel=(3, 3), no_bias=True)
    near(part, references.convolution(x[:, :, ::2, 1:], weight, kernel=(3, 3)))


def test_padding_hides_what_lies_beside_an_image():
    """A view of a larger array: what is beside it must not leak in, not even a NaN."""
    wide = numpy.full((2, 2, 9, 12), numpy.nan, "float32")
    wide[:, :, 2:7, 3:8] = drawn(2, 2, 5, 5)
    weight = drawn(3, 2, 3, 3)
    inside = np.array(wide)[:, :, 2:7, 3:8]
    got = npx.convolution(inside, np.array(weight), kernel=(3, 3), pad=(1, 1), no_bias=True)
    near(got, references.convolution(wide[:, :, 2:7, 3:8], weight, kernel=(3, 3), pad=(1, 1)))


def test_halves_are_summed_in_single_precision():
    x, weight = numpy.ones((1, 3000, 1, 1), "float16"), numpy.ones((1, 3000, 1, 1), "float16")
    got = npx.convolution(
        np.array(x, dtype="float16"), np.array(weight, dtype="float16"), kernel=(1, 1), no_bias=True
    )
    assert got.dtype == "float16" and got.item() == 3000


# -- as MXNet 1.9.1 does: numbers that it gave ----------------------------------------------------

ONES = {"x": np.ones((1, 2, 5, 5)), "w": np.ones((2, 3, 3, 3)), "i": np.arange(49)}


def test_deconvolution_as_in_mxnet():
    x, w = ONES["x"], ONES["w"]
    plain = npx.deconvolution(x, w, kernel=(3, 3), num_filter=3)
    assert plain.shape == (1, 3, 7, 7) and plain[0, 0, 0, :4].tolist() == [2, 4, 6, 6]
    facts = {"kernel": (3, 3), "num_filter": 3, "stride": (2, 2), "pad": (1, 1)}
    for more in ({"adj": (1, 1)}, {"target_shape": (10, 10)}):
        longer = npx.deconvolution(x, w, **facts, **more)
        assert longer.shape == (1, 3, 10, 10) and longer[0, 0, 0, :4].tolist() == [2, 4, 2, 4]


def test_pooling_as_in_mxnet():
    y = ONES["i"].reshape(1, 1, 7, 7)
    full = npx.pooling(y, kernel=(2, 2), stride=(2, 2), pooling_convention="full")
    assert full[0, 0, 0].tolist() == [8, 10, 12, 13]
    facts = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg"}
    near(npx.pooling(y, **facts)[0, 0, 0], [16 / 9, 11 / 3, 5, 4])
    assert npx.pooling(y, **facts, count_include_pad=False)[0, 0, 0].tolist() == [4, 5.5, 7.5, 9]
    cut = npx.pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="avg", pooling_convention="full")
    assert cut[0, 0, 0].tolist() == [4, 6, 8, 9.5]
    near(npx.pooling(-y, kernel=(2, 2), pool_type="lp", p_value=3)[0, 0, 0, :1], [-9.494919])


def test_the_gradient_of_a_maximum_goes_to_the_first_of_equals():
    x = np.array([[1, 2, 2, 1], [2, 2, 2, 2], [0, 0, 0, 0], [0, 0, 0, 0.0]]).reshape(1, 1, 4, 4)
    dx = pooling_gradient(np.ones((1, 1, 4, 4)), x, kernel=(3, 3), pad=(1, 1))
    assert dx[0, 0].tolist() == [[0, 6, 2, 0], [2, 1, 1, 0], [2, 1, 1, 0], [0, 0, 0, 0]]


def test_not_a_number_is_pooled_as_numpy_does():
    x = np.array([[1, float("nan")], [3, 4]]).reshape(1, 1, 2, 2)
    assert numpy.isnan(npx.pooling(x, kernel=(2, 2)).item())
    near(pooling_gradient(np.ones((1, 1, 1, 1)), x, kernel=(2, 2))[0, 0], [[0, 1], [0, 0]])


# -- gradients of the primitives ------------------------------------------------------------------


def test_the_gradient_of_windows():
    """What `windows` repeats is added up: products with operand and gradient agree."""

    def both(x, dy):
        every = views.windows(x, (3, 2), (2, 3))
        return every, *cotangents((every,), (dy,), (x,), ())

    x, dy = drawn(2, 3, 8, 10), drawn(2, 3, 3, 3, 3, 2)
    every, dx = Record("windows", both).operation(np.array(x), np.array(dy))
    expected = numpy.lib.stride_tricks.sliding_window_view(x, (3, 2), (2, 3))[:, :, ::2, ::3]
    numpy.testing.assert_array_equal(every.asnumpy(), expected)
    numpy.testing.assert_allclose(
        numpy.vdot(x, dx.asnumpy()), numpy.vdot(expected, dy), rtol=1e-4, atol=1e-4
    )


# -- bad input ------------------------------------------------------------------------------------

X, W, B = np.ones((1, 2, 5, 5)), np.ones((3, 2, 3, 3)), np.ones(3)
FAULTS = [
    (ShapeError, "weight of shape", lambda: npx.convolution(X, np.ones((3, 2, 2, 3)), B, (3, 3))),
    (ShapeError, "bias of shape", lambda: npx.convolution(X, W, np.ones(2), (3, 3))),
    (ArgumentError, "no kernel", lambda: npx.convolution(X, W, B)),
    (ArgumentError, "no bias", lambda: npx.convolution(X, W, kernel=(3, 3))),
    (ArgumentError, "no_bias=True", lambda: npx.convolution(X, W, B, (3, 3), no_bias=True)),
    (ArgumentError, "stride", lambda: npx.convolution(X, W, B, (3, 3), stride=(0, 1))),
    (ArgumentError, "pad", lambda: npx.convolution(X, W, B, (3, 3), pad=(-1, 0))),
    (ShapeError, "2 numbers", lambda: npx.convolution(X, W, B, (3, 3), stride=(1,))),
    (ShapeError, "spans", lambda: npx.convolution(X, W, B, (3, 3), dilate=(3, 3))),
    (ShapeError, "do not divide", lambda: npx.convolution(X, W, B, (3, 3), num_group=2)),
    (ArgumentError, "layout", lambda: npx.convolution(X, W, B, (3, 3), layout="NCW")),
    (ShapeError, "dimensions", lambda: npx.convolution(X[0, 0], W, B, (3, 3))),
    (DTypeError, "int32", lambda: npx.convolution(X.astype("int32"), W.astype("int32"), None,
                                                  (3, 3), no_bias=True)),
    (ArgumentError, "adj", lambda: npx.deconvolution(X, np.ones((2, 3, 3, 3)), None, (3, 3),
                                                     adj=(1, 1))),
    (ShapeError, "target_shape", lambda: npx.deconvolution(X, np.ones((2, 3, 3, 3)), None, (3, 3),
                                                           target_shape=(9, 9))),
    (ArgumentError, "pool_type", lambda: npx.pooling(X, (2, 2), "min")),
    (ArgumentError, "below kernel", lambda: npx.pooling(X, (2, 2), pad=(2, 2))),
    (ShapeError, "larger than", lambda: npx.pooling(X, (9, 9))),
    (ArgumentError, "p_value", lambda: npx.pooling(X, (2, 2), "lp")),
    (DTypeError, "int32", lambda: npx.pooling(X.astype("int32"), (2, 2))),
    (ArgumentError, "pooling_convention", lambda: npx.pooling(X, (2, 2), pooling_convention="?")),
]  # fmt: skip


@pytest.mark.parametrize("error, text, call", FAULTS)
def test_bad_input_is_told(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_gradients_refuse_what_the_convolution_does_not_give():
    """What is too large for the data would be read from beyond them."""
    x, dy, w = np.ones((2, 3, 8)), np.ones((3, 4, 7)), np.ones((4, 3, 2))
    with pytest.raises(ShapeError, match=r"got \(3, 4, 7\).*expected \(2, 4, 7\)"):
        convolution_weight_gradient(dy, x, kernel=(2,))
    with pytest.raises(ShapeError, match=r"got \(3, 4, 7\).*expected \(2, 4, 7\)"):
        convolution_data_gradient(dy, w, shape=(2, 3, 8))
