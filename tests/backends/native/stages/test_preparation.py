"""What depends on parameters alone is split off, and computes the same."""

import numpy
import pytest

import heterosis
from heterosis import _core, np, npx
from heterosis.backends.native.compile.plans import machine
from heterosis.backends.native.compile.whole import compile_program
from heterosis.backends.native.stages.prepack import packed
from heterosis.backends.native.stages.scale_folding import folded
from heterosis.ir import views
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.windows import CONVOLVE
from heterosis.ir.program import INPUT, NUMBER, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY, eager
from heterosis.ops.nn import recurrence
from heterosis.ops.nn import window_references as references
from heterosis.passes.preparation import split
from heterosis.runtime.errors import CaptureError

exp, add, multiply, maximum, transpose = (
    REGISTRY[n].operation for n in ("exp", "add", "multiply", "maximum", "transpose")
)
normalise = REGISTRY["batch_norm"].operation
dense, convolution, deconvolution = (
    REGISTRY[n].operation for n in ("fully_connected", "convolution", "deconvolution")
)


def prepared(program, fixed, machine):
    """A program in two, as it stands: the pipeline's last two steps."""
    return split(packed(program, fixed, machine), fixed)


def array(*shape):
    return apply(INPUT, (), TensorType(shape, "float32"))


def run(program, arguments):
    layouts = tuple(Strided.contiguous(a.shape) for a in arguments)
    plan = eager.plan(program, layouts, None, views=True, freely=False)
    return list(_core.run_plan(plan, list(arguments)))


def both(program, found, arguments):
    """What the program gives whole, and in two parts."""
    done = run(found.preparation, arguments)
    return run(program, arguments), run(found.rest, [*own(found, arguments), *done])


def own(found, arguments):
    """Those of the arguments that the rest of a program takes itself."""
    return [arguments[i] for i in found.own]


def primitives(program):
    """The kernels of a program, whose nodes keep their rules."""
    nodes = [node for node in program.nodes() if isinstance(node.primitive, Opaque)]
    for node in nodes:
        assert node.primitive.types(node) == node.types
        assert node.attributes.keys() == node.primitive.attributes.keys()
    return {node.primitive.name for node in nodes}


def drawn(*shapes):
    generator = numpy.random.default_rng(0)
    return [np.array(generator.normal(size=shape).astype("float32")) for shape in shapes]


def test_what_depends_on_parameters_is_computed_ahead():
    x, w, b = inputs = [array(4, 5), array(5), array(5)]
    scale = multiply(exp(w), w)
    program = Program(tuple(inputs), (add(multiply(x, scale), b), scale))
    found = split(program, [w, b])
    assert found.fixed == (1,)  # b is used as it is
    assert found.own == (0, 2)
    assert [v.shape for v in found.preparation.outputs] == [(5,)]
    whole, parts = both(program, found, drawn((4, 5), (5,), (5,)))
    for one, other in zip(whole, parts, strict=True):
        numpy.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def test_nothing_to_prepare():
    x, w = inputs = [array(4, 5), array(4, 5)]
    assert split(Program(tuple(inputs), (multiply(exp(x), w),)), [w]) is None


@pytest.mark.parametrize("rows, depth, columns", [(9, 700, 33), (300, 40, 5), (5, 7, 6)])
def test_the_weights_of_a_product_are_packed_ahead(rows, depth, columns):
    x, w, b = inputs = [array(rows, depth), array(columns, depth), array(columns)]
    program = Program(tuple(inputs), (exp(dense(x, w, b)),))
    found = prepared(program, [w, b], machine())
    assert primitives(found.preparation) == {"pack_right"}
    assert primitives(found.rest) == {"matmul_packed"}
    assert found.own == (0, 2)  # what has been packed is not read again
    scaled = [a / depth for a in drawn((rows, depth), (columns, depth), (columns,))]
    (whole,), (parts,) = both(program, found, scaled)
    numpy.testing.assert_allclose(whole.asnumpy(), parts.asnumpy(), rtol=2e-6)


@pytest.mark.parametrize(
    "shape, filters, facts",
    [
        ((2, 6, 9, 11), (14, 3, 3, 3), {"pad": (1, 1), "num_group": 2}),
        ((1, 200, 9, 33), (33, 200, 3, 3), {"stride": (2, 2)}),
        ((3, 4, 6, 6), (8, 4, 1, 1), {}),
    ],
)
def test_filters_are_packed_ahead(shape, filters, facts):
    x, w, b = inputs = [array(*shape), array(*filters), array(filters[0])]
    y = convolution(x, w, b, kernel=filters[2:], **facts)
    program = Program(tuple(inputs), (exp(multiply(y, y)),))
    found = prepared(program, [w, b], machine())
    assert primitives(found.preparation) == {"pack_filters"}
    assert primitives(found.rest) == {"convolve_packed"}
    arguments = [a * 0.02 for a in drawn(shape, filters, (filters[0],))]
    (whole,), (parts,) = both(program, found, arguments)
    numpy.testing.assert_allclose(whole.asnumpy(), parts.asnumpy(), rtol=2e-6)


# images, channels, height, width, filters, taps, stride, pad
WAYS = [
    ((1, 24, 30, 50, 20, 3, 1, 1), "winograd"),  # tiles end behind the result
    ((3, 33, 13, 17, 50, 3, 1, 1), "winograd"),  # bands of several images at a time
    ((2, 450, 14, 14, 40, 3, 1, 1), "winograd"),  # more than one block of depth
    ((1, 30, 11, 12, 30, 3, 1, 2), "winograd"),
    ((1, 40, 22, 24, 30, 3, 1, 0), "winograd"),
    ((1, 16, 130, 130, 20, 3, 1, 1), "winograd"),  # bands of an image
    ((1, 500, 7, 7, 70, 1, 1, 0), "turned"),
    ((2, 40, 6, 6, 96, 5, 1, 2), "turned"),
    ((1, 40, 6, 6, 100, 3, 2, 1), "turned"),
    ((1, 90, 1, 1, 70, 1, 1, 0), "turned"),
    ((2, 6, 9, 11, 14, 3, 2, 1), "packed"),
]


@pytest.mark.parametrize("facts, way", WAYS)
def test_the_way_to_convolve_follows_the_shape(facts, way):
    """Rounding grows by less than three bits in tiles, and not at all otherwise."""
    n, c, h, w, o, k, stride, pad = facts
    shapes = [(n, c, h, w), (o, c, k, k), (o,)]
    inputs = [array(*shape) for shape in shapes]
    facts = {"kernel": (k, k), "stride": (stride, stride), "pad": (pad, pad)}
    y = convolution(*inputs, **facts)
    program = Program(tuple(inputs), (maximum(y, 0.0),))
    found = prepared(program, inputs[1:], machine())
    (node,) = (n for n in found.rest.nodes() if n.primitive.name == "convolve_packed")
    if machine().target.name == "avx2":  # others have panels of other widths
        assert node.attributes[way]
    values = drawn(*shapes)
    (whole,), (parts,) = both(program, found, values)
    exact = references.convolution(*(a.asnumpy().astype("float64") for a in values), **facts)
    error, direct = (abs(y.asnumpy() - exact.clip(0)).max() for y in (parts, whole))
    assert error <= (8 if node.attributes["winograd"] else 1) * direct


# images, channels, depth, filters, taps in depth, stride, dilate, origin, and results in depth
DEPTHS = [
    (1, 16, 6, 24, 3, 1, 1, -1, 6),
    (3, 9, 4, 20, 3, 1, 1, -1, 4),  # bands of several planes and images at a time
    (2, 12, 7, 18, 2, 2, 1, 0, 3),
    (1, 14, 8, 16, 3, 1, 2, -2, 8),
    (2, 10, 5, 16, 3, 1, -1, 1, 5),  # against the input, as in gradients
    (1, 150, 3, 16, 5, 1, 1, -2, 3),  # more than one block of depth
    (1, 24, 3, 16, 1, 2, 1, 0, 2),
    (1, 24, 2, 16, 2, 1, 1, 3, 2),  # beyond the input
]


@pytest.mark.parametrize("facts", DEPTHS)
def test_a_plane_goes_in_tiles_wherever_taps_in_depth_lie(facts):
    n, c, d, o, taps, stride, dilate, origin, out = facts
    shapes = [(n, 1, c, d, 26, 27), (1, o, c, taps, 3, 3)]
    x, a = inputs = [array(*shape) for shape in shapes]
    windows = {"kernel": (taps, 3, 3), "stride": (stride, 1, 1), "dilate": (dilate, 1, 1)}
    type_ = TensorType((n, 1, o, out, 26, 27), "float32")
    y = apply(CONVOLVE, (x, a), type_, origin=(origin, -1, -1), **windows)
    program = Program(tuple(inputs), (maximum(y, 0.5),))
    found = prepared(program, [a], machine())
    (node,) = (n for n in found.rest.nodes() if n.primitive.name == "convolve_packed")
    if machine().target.name == "avx2":  # others have panels of other widths
        assert node.attributes["winograd"]
    (whole,), (parts,) = both(program, found, drawn(*shapes))
    numpy.testing.assert_allclose(parts.asnumpy(), whole.asnumpy(), rtol=1e-4, atol=5e-4)


def test_filters_that_lie_apart_are_transformed():
    """The weight is a view, the input has its channels last."""
    x, w = inputs = [array(1, 20, 20, 24), array(3, 3, 24, 30)]
    y = convolution(transpose(x, (0, 3, 1, 2)), transpose(w, (3, 2, 0, 1)), kernel=(3, 3),
                    no_bias=True)  # fmt: skip
    program = Program(tuple(inputs), (y,))
    found = prepared(program, [w], machine())
    (whole,), (parts,) = both(program, found, drawn((1, 20, 20, 24), (3, 3, 24, 30)))
    numpy.testing.assert_allclose(whole.asnumpy(), parts.asnumpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "operation, pad, tiles",
    [(convolution, 1, True), (deconvolution, 1, True), (deconvolution, 2, True),
     (convolution, 1, False)],
)  # fmt: skip
@pytest.mark.parametrize("dimensions", [2, 3])
def test_filters_that_change_are_transformed_where_that_pays(operation, pad, tiles, dimensions):
    """As in training: a gradient with respect to the input is a deconvolution."""
    images, size = (4, 28) if tiles else (1, 4)
    deep, taps = ((), ()) if dimensions == 2 else ((4,), (3,))
    shapes = [(images, 32, *deep, size, size), (32, 32, *taps, 3, 3)]
    inputs = [array(*shape) for shape in shapes]
    facts = {"kernel": (*taps, 3, 3), "stride": (1,) * dimensions, "pad": (pad,) * dimensions}
    facts |= {"no_bias": True}
    y = operation(*inputs, num_filter=32, **facts)
    program = Program(tuple(inputs), (maximum(y, 0.0),))
    found = packed(program, (), machine())
    (node,) = (n for n in found.nodes() if n.primitive.name.startswith("convolve"))
    assert bool(node.attributes.get("winograd")) == tiles
    values = drawn(*shapes)
    (whole,), (parts,) = run(program, values), run(found, values)
    numpy.testing.assert_allclose(whole.asnumpy(), parts.asnumpy(), rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_relu", "rnn_tanh"])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_weights_of_a_recurrence_are_packed_ahead(mode, reverse):
    steps, rows, units = 5, 9, 20
    wide = recurrence.GATES[mode] * units
    shapes = [(wide, units), (steps, rows, wide), (rows, units)]
    shapes += {"lstm": [(rows, units)], "gru": [(units,)]}.get(mode, [])
    weights, given, *states = inputs = [array(*shape) for shape in shapes]
    outputs = recurrence.recurrence(mode, weights, given, states, reverse, False)
    program = Program(tuple(inputs), tuple(exp(y) for y in outputs))
    found = prepared(program, [weights], machine())
    assert primitives(found.preparation) == {"pack_right"}
    whole, parts = both(program, found, [a * 0.1 for a in drawn(*shapes)])
    for one, other in zip(whole, parts, strict=True):
        numpy.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)


def test_few_rows_and_single_channels_stay_as_they_are():
    x, w = inputs = [array(1, 64), array(32, 64)]
    program = Program(tuple(inputs), (dense(x, w, no_bias=True),))
    assert prepared(program, [w], machine()) is None
    x, w = inputs = [array(1, 4, 8, 8), array(4, 1, 3, 3)]
    y = convolution(x, w, kernel=(3, 3), num_group=4, no_bias=True)
    assert prepared(Program(tuple(inputs), (y,)), [w], machine()) is None


def _normalised(y, mean, variance, gamma, beta):
    return normalise(y, gamma, beta, mean, variance, eps=1e-3, fix_gamma=False)


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_normalisation_becomes_part_of_the_filters(groups):
    shapes = [(2, 8, 6, 7), (8, 8 // groups, 3, 3), *[(8,)] * 5]
    x, w, b, *statistics = inputs = [array(*shape) for shape in shapes]
    y = convolution(x, w, b, kernel=(3, 3), num_group=groups)
    program = Program(tuple(inputs), (exp(_normalised(y, *statistics)),))
    other = folded(program, inputs[1:])
    found = prepared(other, inputs[1:], machine())
    assert "subtract" not in {node.primitive.name for node in found.rest.nodes()}
    arguments = [np.abs(a) * 0.5 + 0.1 for a in drawn(*shapes)]
    (whole,) = run(program, arguments)
    _, (parts,) = both(program, found, arguments)
    numpy.testing.assert_allclose(whole.asnumpy(), parts.asnumpy(), rtol=2e-5)


def test_a_scaled_dense_layer_takes_the_scale():
    x, w, b, s = inputs = [array(9, 20), array(7, 20), array(7), array(7)]
    program = Program(tuple(inputs), (multiply(dense(x, w, b), s),))
    found = prepared(folded(program, inputs[1:]), inputs[1:], machine())
    (whole,), (parts,) = both(program, found, drawn((9, 20), (7, 20), (7,), (7,)))
    numpy.testing.assert_allclose(whole.asnumpy(), parts.asnumpy(), rtol=2e-5, atol=1e-6)


def test_what_others_need_is_not_folded():
    x, w, s = inputs = [array(9, 20), array(7, 20), array(7)]
    y = dense(x, w, no_bias=True)
    program = Program(tuple(inputs), (multiply(y, s), exp(y)))
    other = folded(program, inputs[1:])
    assert [str(node.primitive) for node in other.nodes()].count("multiply") == 1
    arguments = [a * 0.2 for a in drawn((9, 20), (7, 20), (7,))]
    for one, two in zip(run(program, arguments), run(other, arguments), strict=True):
        numpy.testing.assert_array_equal(one.asnumpy(), two.asnumpy())


def test_results_made_of_parameters_are_arrays_of_their_own():
    x, w = inputs = [array(3, 4), array(4)]
    y = exp(w)
    program = Program(tuple(inputs), (views.reshape(y, (2, 2)), add(x, y)))
    found = split(program, [w])
    arguments = drawn((3, 4), (4,))
    (kept,) = run(found.preparation, arguments)
    first, _ = run(found.rest, [*own(found, arguments), kept])
    first[:] = 0
    numpy.testing.assert_allclose(kept.asnumpy(), numpy.exp(arguments[1].asnumpy()), rtol=1e-6)


def test_inference_with_parameters_prepared():
    x, w, b, s = inputs = [array(9, 20), array(7, 20), array(7), array(7)]
    program = Program(tuple(inputs), (multiply(dense(x, w, b), s),))
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    plan = compile_program(program, layouts, (1, 2, 3))
    for seed in (1, 2):
        arguments = [a * seed for a in drawn((9, 20), (7, 20), (7,), (7,))]
        (result,) = _core.run_plan(plan, arguments)
        x, w, b, s = (a.asnumpy() for a in arguments)
        numpy.testing.assert_allclose(result.asnumpy(), (x @ w.T + b) * s, rtol=1e-4, atol=1e-5)


def test_what_is_taken_is_counted_among_arrays():
    x, w, b = array(9, 20), array(7, 20), array(7)
    number = apply(NUMBER, (), TensorType((), "float64", weak=True))
    inputs = (number, w, x, b)
    program = Program(inputs, (multiply(dense(x, w, b), number),))
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    plan = compile_program(program, layouts, (1, 3))
    w, x, b = arguments = drawn((7, 20), (9, 20), (7,))
    (result,) = _core.run_plan(plan, [3.0, *arguments])
    expected = (x.asnumpy() @ w.asnumpy().T + b.asnumpy()) * 3
    numpy.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("again", [False, True])
def test_what_is_prepared_of_an_unreadable_array_is_unreadable(again):
    """The plan itself takes what was made of it, and nothing of the array."""
    x, w = inputs = [array(9, 20), array(7, 20)]
    program = Program(tuple(inputs), (dense(x, w, no_bias=True),))
    plan = compile_program(program, [Strided.contiguous(v.shape) for v in inputs], (1,))
    x, w = drawn((9, 20), (7, 20))
    if again:
        _core.run_plan(plan, [x, w])
    w[:] = _core.unreadable("float32", (7, 20), "The weights were never made.")
    (result,) = _core.run_plan(plan, [x, w])
    with pytest.raises(CaptureError, match="were never made"):
        result.asnumpy()
    w[:] = 1
    (result,) = _core.run_plan(plan, [x, w])
    expected = numpy.repeat(x.asnumpy().sum(axis=1, keepdims=True), 7, axis=1)
    numpy.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-4, atol=1e-5)


def _pooled_before_a_write(x, factor):
    pooled = npx.pooling(x, kernel=(1,), stride=(1,), pool_type="avg")
    lifted = np.cosh(np.tanh(pooled))
    result = np.log(np.exp(lifted).sum(axis=-2)) @ factor
    lifted[[0, 1]] = 2
    return result


@pytest.mark.parametrize(
    "function, factor, x",
    [
        (lambda x, factor: x * factor + (np.arange(9) + 1), np.array(2.0), np.ones(9)),
        (lambda x, factor: x * factor + np.eye(8) * 2, np.array(2.0), np.ones((8, 8))),
        (lambda x, factor: x * factor + np.linalg.det(np.eye(3) * 2), np.array(2.0), np.ones(3)),
        (_pooled_before_a_write, np.ones((4, 3)), np.ones((2, 3, 4))),
    ],
    ids=["arange", "eye", "det", "pooling"],
)
def test_work_on_no_array_at_all_is_done_ahead(function, factor, x):
    compiled = heterosis.hybridize(lambda x: function(x, factor))
    for _ in range(2):
        wanted = function(x, factor)
        numpy.testing.assert_allclose(compiled(x).asnumpy(), wanted.asnumpy(), rtol=1e-5)
