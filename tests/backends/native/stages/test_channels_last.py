"""Parts of a program that keep their channels last compute the same."""

import numpy
import pytest

from heterosis import _core, np
from heterosis.backends.native.codegen.kernel import OpaqueCall
from heterosis.backends.native.codegen.kernels.channels_last import takes_groups
from heterosis.backends.native.codegen.kernels.channels_last import tiles as code
from heterosis.backends.native.codegen.kernels.convolution.tiles import FILTERS
from heterosis.backends.native.codegen.lowerings import channels_last as lowering
from heterosis.backends.native.compile.plans import machine
from heterosis.backends.native.compile.whole import compile_program
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.backends.native.stages import channels_last
from heterosis.backends.native.stages.pipeline import in_parts
from heterosis.ir import views
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.program import INPUT, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY, eager
from heterosis.passes.pipeline import optimized

add, multiply, relu, tanh, exp, reshape, concatenate, mean, transpose, pooling, convolution = (
    REGISTRY[n].operation
    for n in ("add", "multiply", "relu", "tanh", "exp", "reshape", "concatenate", "mean")
    + ("transpose", "pooling", "convolution")
)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Small programs too: turning costs nothing."""
    monkeypatch.setattr(channels_last, "_TURNING", 0)


class Network:
    """A program in the making: its input, and parameters as they are asked for."""

    def __init__(self, *shape, dtype="float32"):
        self.dtype, self.inputs = dtype, []
        self.x = self.array(*shape)

    def array(self, *shape):
        self.inputs.append(apply(INPUT, (), TensorType(shape, self.dtype)))
        return self.inputs[-1]

    def convolve(self, x, filters, kernel=(1, 1), groups=1, bias=True, **attributes):
        w = self.array(filters, x.shape[1] // groups, *kernel)
        b = [self.array(filters)] if bias else []
        return convolution(
            x, w, *b, kernel=kernel, num_filter=filters, num_group=groups, no_bias=not bias,
            **attributes,
        )  # fmt: skip

    def alone(self, x, kernel=(3, 3), **attributes):
        """Every channel by itself."""
        return self.convolve(x, x.shape[1], kernel, groups=x.shape[1], **attributes)

    def grouped(self, x, width, kernel=(3, 3), **attributes):
        """Every `width` channels by themselves."""
        return self.convolve(x, x.shape[1], kernel, groups=x.shape[1] // width, **attributes)

    def program(self, *outputs):
        return Program(tuple(self.inputs), outputs)

    def turned(self, *outputs):
        before = optimized(self.program(*outputs))
        return before, channels_last.channels_last(before, self.inputs[1:], machine())


def kernels(program):
    """The kernels of a program, whose nodes keep their rules."""
    nodes = [node for node in program.nodes() if isinstance(node.primitive, Opaque)]
    for node in nodes:
        assert node.primitive.types(node) == node.types
        assert node.attributes.keys() == node.primitive.attributes.keys()
    return {node.primitive.name for node in nodes}


def check(network, *outputs, expected):
    before, after = network.turned(*outputs)
    assert kernels(after) - {"pack_right", "transform_filters"} == expected
    generator = numpy.random.default_rng(0)
    arguments = [
        np.array(generator.normal(size=v.shape), dtype=network.dtype) for v in network.inputs
    ]
    layouts = tuple(Strided.contiguous(a.shape) for a in arguments)
    near = 1e-4 if network.dtype == "float32" else 1e-12
    plans = (
        eager.plan(before, layouts, None, views=True, freely=False),
        eager.plan(after, layouts, None, views=True, freely=False),
        compile_program(network.program(*outputs), layouts, range(1, len(arguments))),
    )
    wanted, *found = ([y.asnumpy() for y in _core.run_plan(p, arguments)] for p in plans)
    for results in found:
        for got, want in zip(results, wanted, strict=True):
            numpy.testing.assert_allclose(got, want, rtol=near, atol=near * abs(want).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("filters", [16, 24, 10, 1])
@pytest.mark.parametrize("shape", [(1, 16, 7, 7), (2, 8, 5, 9), (3, 48, 1, 1), (1, 3, 13, 2)])
def test_single_positions(shape, filters, dtype):
    n = Network(*shape, dtype=dtype)
    y = relu(n.convolve(n.x, filters))
    check(n, relu(n.convolve(y, 20)), expected={"matmul"})


SINGLE_CHANNELS = pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((3, 3), {"pad": (1, 1)}),
        ((3, 3), {"pad": (1, 1), "stride": (2, 2)}),
        ((3, 3), {}),
        ((5, 5), {"pad": (2, 2)}),
        ((3, 5), {"pad": (0, 2), "stride": (1, 3)}),
        ((3, 3), {"pad": (2, 2), "dilate": (2, 2)}),
        ((2, 1), {"pad": (1, 1), "stride": (3, 2), "dilate": (3, 1)}),
        ((1, 1), {"pad": (3, 1)}),
    ],
)


@SINGLE_CHANNELS
@pytest.mark.parametrize(
    "images, vectors, space", [(1, 2, (9, 15)), (2, 3, (8, 5)), (1, 8, (31, 40))]
)
def test_single_channels(images, vectors, space, kernel, attributes):
    n = Network(images, vectors * machine().target.lanes(4), *space)
    y = relu(n.alone(n.x, kernel, **attributes))
    check(n, n.convolve(y, 12, bias=False), expected={"matmul", "grouped_last"})


# Channels of a group, and as many as three vectors of either type, or some more groups.
WIDTHS = [(2, 48), (4, 48), (8, 48), (16, 48), (24, 48), (32, 96), (48, 96), (64, 128), (128, 256)]


@SINGLE_CHANNELS
@pytest.mark.parametrize("width, channels", WIDTHS[1::3])
def test_windows_of_groups(width, channels, kernel, attributes):
    n = Network(2, channels, 8, 21)
    y = relu(n.grouped(n.x, width, kernel, **attributes))
    check(n, n.convolve(y, 12, bias=False), expected=in_groups(width))


@pytest.mark.parametrize("width, channels", WIDTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_groups(dtype, width, channels):
    """Some to a vector, some vectors to one, and groups that are more than a panel of filters."""
    n = Network(1, channels, 7, 16, dtype=dtype)
    y = relu(n.grouped(n.x, width, pad=(1, 1), stride=(2, 1)))
    check(n, n.convolve(y, 12, bias=False), expected=in_groups(width, dtype))


def in_groups(width, dtype="float32"):
    """The kernels of convolutions with some of single positions."""
    taken = takes_groups(width, machine().target, dtype)
    return {"matmul", "grouped_last"} if taken else {"convolve"}


@pytest.mark.parametrize("width, channels", WIDTHS)
def test_a_product_gives_groups_their_input(width, channels, monkeypatch):
    monkeypatch.setattr(lowering, "_KEPT", 0)
    n = Network(1, 16, 9, 15)
    x = relu(n.convolve(n.x, 20))
    y = relu(n.grouped(relu(n.convolve(x, channels)), width, pad=(1, 1)))
    y = n.convolve(y, 12, bias=False)
    assert joined(inference(n, y)) == takes_groups(width, machine().target, "float32")
    check(n, y, expected=in_groups(width))


def test_groups_of_other_filters_than_channels_stay_in_windows():
    n = Network(2, 64, 5, 6)
    y = n.convolve(n.x, 32, (3, 3), groups=2, pad=(1, 1))
    check(n, n.convolve(y, 12), expected={"convolve"})


def joined(program):
    """How many kernels do the work of two."""
    layouts = [Strided.contiguous(v.shape) for v in program.inputs]
    outputs = [None] * len(program.outputs)
    found = schedule(program, layouts, outputs, machine(), views=True)
    calls = [kernel.code.key for kernel in found.kernels if isinstance(kernel, OpaqueCall)]
    return sum(" behind " in key for key in calls)


def inference(network, *outputs):
    """What runs in inference."""
    _, after = network.turned(*outputs)
    return in_parts(after, network.inputs[1:], machine()).rest


@SINGLE_CHANNELS
@pytest.mark.parametrize(
    "shape, vectors", [((1, 16, 9, 15), 4), ((2, 24, 8, 5), 4), ((1, 8, 31, 40), 3)]
)
def test_a_product_gives_single_channels_their_input(
    shape, vectors, kernel, attributes, monkeypatch
):
    monkeypatch.setattr(lowering, "_KEPT", 0)
    n = Network(*shape)
    x = relu(n.convolve(n.x, 20))
    channels = vectors * machine().target.lanes(4)
    y = relu(n.alone(relu(n.convolve(x, channels)), kernel, **attributes))
    y = n.convolve(y, 12, bias=False)
    assert joined(inference(n, y)) == 1
    check(n, y, expected={"matmul", "grouped_last"})


@pytest.mark.lengthy
def test_a_product_gives_a_large_input_only():
    n = Network(1, 16, 90, 100)
    x = relu(n.convolve(n.x, 20))
    small, large = (n.alone(relu(n.convolve(x, c)), pad=(1, 1)) for c in (16, 64))
    assert joined(inference(n, small)) == 0
    assert joined(inference(n, large)) == 1
    check(n, large, expected={"matmul", "grouped_last"})


@pytest.mark.lengthy
def test_what_others_need_is_in_memory(monkeypatch):
    monkeypatch.setattr(lowering, "_KEPT", 0)
    n = Network(1, 16, 9, 9)
    y = relu(n.convolve(relu(n.convolve(n.x, 16)), 32))
    outputs = n.convolve(add(n.alone(y, pad=(1, 1)), y), 16), n.alone(exp(y))
    assert joined(inference(n, *outputs)) == 0
    check(n, *outputs, expected={"matmul", "grouped_last"})


@pytest.mark.lengthy
def test_a_plane_too_large_for_one_band():
    n = Network(1, 16, 70, 80)
    y = n.alone(n.x, pad=(1, 1), stride=(2, 1))
    check(n, relu(n.convolve(y, 8)), expected={"matmul", "grouped_last"})


def test_no_band_holds_even_one_line():
    n = Network(1, 16, 4, 3000)
    check(n, n.convolve(n.alone(n.x, pad=(1, 1)), 8), expected={"matmul", "grouped_last"})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("filters", [32, 17, 24, 48])
@pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((3, 3), {"stride": (2, 2), "pad": (1, 1)}),
        ((3, 2), {"stride": (1, 2), "pad": (2, 0)}),
        ((1, 1), {"stride": (2, 3)}),
    ],
)
def test_few_windows_of_several_taps(kernel, attributes, filters, dtype):
    n = Network(2, 3, 21, 18, dtype=dtype)
    y = n.convolve(n.x, filters, kernel, **attributes)
    for _ in range(8):
        y = relu(n.convolve(y, 80))
    check(n, y, expected={"matmul", "convolve_last"})


@pytest.fixture
def windows_too(monkeypatch):
    """Windows of many channels too, even where tiles take fewer multiplications."""
    monkeypatch.setattr(channels_last, "_TURNING_WINDOWS", -1e9)
    monkeypatch.setattr(channels_last, "FILTERS", {})


WINDOWS = pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((3, 3), {"pad": (1, 1)}),
        ((5, 5), {"pad": (2, 2)}),
        ((3, 3), {"stride": (2, 2), "pad": (1, 1)}),
        ((1, 3), {"stride": (1, 2)}),
        ((2, 4), {"pad": (0, 3), "stride": (3, 1)}),
    ],
)


@WINDOWS
@pytest.mark.parametrize("filters, dtype", [(64, "float32"), (17, "float64")])
@pytest.mark.parametrize("shape", [(3, 5, 3, 4), (2, 40, 13, 7), (1, 130, 3, 3)])
def test_windows_of_many_channels(shape, filters, dtype, kernel, attributes, windows_too):
    n = Network(*shape, dtype=dtype)
    y = relu(n.convolve(n.x, filters, kernel, **attributes))
    check(n, n.convolve(y, 20), expected={"matmul", "convolve_last"})


@pytest.fixture(params=[2, 4])
def tiles(request, monkeypatch, windows_too):
    """Convolutions of 3 x 3 taps in tiles of so many results, wherever that is possible."""
    monkeypatch.setattr(channels_last, "FILTERS", {request.param: FILTERS[request.param]})
    monkeypatch.setattr(channels_last, "_TILES_WORTH", 1e6)


@pytest.mark.parametrize(
    "shape, filters, pad",
    [
        ((1, 16, 8, 8), 16, (1, 1)),  # a tile or four
        ((2, 32, 14, 13), 48, (1, 1)),  # tiles that are cut off, and half a panel
        ((3, 32, 5, 6), 32, (0, 0)),  # an input that is smaller than a tile
        ((1, 16, 3, 12), 64, (2, 3)),  # results that see nothing but zeros
        ((1, 272, 7, 9), 32, (1, 1)),  # two blocks of depth
        ((1, 16, 70, 61), 16, (1, 0)),
    ],
)
def test_tiles(shape, filters, pad, tiles):
    n = Network(*shape)
    y = relu(n.convolve(n.x, filters, (3, 3), pad=pad))
    check(n, n.convolve(y, 20), expected={"matmul", "tiles_last"})


def test_many_groups_of_tiles(tiles, monkeypatch):
    """And further operands of what ends the kernel, and results between those of others."""
    monkeypatch.setattr(code, "_GROUP_NUMBERS", 1)
    monkeypatch.setattr(code, "_GROUP_ROWS", 1)
    n = Network(2, 32, 29, 26)
    y = add(relu(n.convolve(n.x, 32, (3, 3), pad=(1, 1))), n.x)
    z = add(n.convolve(y, 32, (3, 3), pad=(1, 1)), y)
    joined = concatenate((tanh(n.convolve(z, 16, (3, 3), pad=(1, 1))), z), 1)
    check(n, relu(joined), n.convolve(z, 8), expected={"matmul", "tiles_last"})


def test_channels_that_are_no_vectors_stay_in_windows(tiles):
    n = Network(1, 18, 9, 9)
    y = relu(n.convolve(n.x, 16, (3, 3), pad=(1, 1)))
    check(n, n.convolve(y, 22, (3, 3)), expected={"convolve_last"})


@pytest.mark.lengthy
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize(
    "pool",
    [
        {"kernel": (3, 3), "stride": (1, 1), "pad": (1, 1)},
        {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"},
        {"kernel": (2, 3), "stride": (2, 1), "pool_type": "avg", "pad": (1, 1)},
    ],
)
def test_pooling_and_joined_branches(images, pool, windows_too):
    n = Network(images, 8, 9, 8)
    x = relu(n.convolve(n.x, 20, (3, 3), pad=(1, 1)))
    pooled = pooling(x, **pool)
    branches = n.convolve(pooled, 7), n.convolve(pooled, 33, (3, 3), pad=(1, 1)), pooled
    joined = relu(concatenate(branches, 1))
    check(n, n.convolve(joined, 12), joined, expected={"matmul", "convolve_last"})


@pytest.mark.lengthy
def test_other_ways_to_join_and_to_cut(windows_too):
    """Along images and space, with an operand from elsewhere, and what is cut out of it."""
    n = Network(2, 8, 6, 5)
    x = relu(n.convolve(n.x, 8, (3, 3), pad=(1, 1)))
    along = [concatenate((x, n.x, exp(x)), axis) for axis in range(4)]
    cuts = [(1, 1, 4), (3, 2, 8), (17, -1, 18), (2, 3, 3)]  # where each begins, its step and length
    for axis, (start, step, length) in enumerate(cuts):
        shape = list(along[axis].shape)
        starts, steps, shape[axis] = [0] * 4, [1] * 4, length
        starts[axis], steps[axis] = start, step
        along.append(views.slice_(along[axis], tuple(starts), tuple(steps), tuple(shape)))
    outputs = [n.convolve(y, 6) for y in along]
    check(n, *outputs, expected={"matmul", "convolve_last"})


def test_windows_are_compared_with_their_fastest_way(monkeypatch):
    """Channels last where all windows are gathered otherwise, not where only windows would be, and
    tiles are faster."""
    monkeypatch.undo()
    for kernel, channels, expected in (((5, 5), 64, "convolve_last"), ((3, 3), 50, "convolve")):
        n = Network(1, channels, 24, 24)
        y = n.x
        for _ in range(3):
            y = relu(n.convolve(y, channels, kernel, pad=(kernel[0] // 2,) * 2))
        _, after = n.turned(y)
        assert kernels(after) - {"pack_right"} == {expected}


@pytest.mark.lengthy
def test_one_axis_of_space():
    n = Network(2, 16, 19)
    y = relu(n.alone(n.x, (3,), pad=(1,)))
    check(n, n.convolve(y, 24, (1,)), expected={"matmul", "grouped_last"})


@pytest.mark.lengthy
def test_what_lies_between_and_beside():
    """Sums of branches, numbers for each channel, and a value that others need with its channels
    second."""
    n = Network(2, 16, 6, 7)
    y = relu(n.convolve(n.x, 32))
    z = add(n.alone(y, pad=(1, 1)), y)
    weight = exp(reshape(mean(z, (2, 3)), (2, 32, 1, 1)))
    last = n.convolve(multiply(z, weight), 16)
    turned = transpose(y, (0, 2, 1, 3))
    outputs = [add(last, n.x), turned, mean(last, 1), concatenate((last, n.x), 1)]
    check(n, *outputs, expected={"matmul", "grouped_last"})


@pytest.mark.lengthy
def test_what_stays_as_it_is():
    few = Network(1, 10, 6, 6)  # channels that are no whole vectors
    check(few, few.convolve(few.alone(few.x, pad=(1, 1)), 8), expected={"convolve"})
    deep = Network(1, 18, 8, 8)  # most of the work is in windows of many channels
    y = deep.convolve(deep.convolve(deep.x, 18), 18, (3, 3))
    check(deep, y, expected={"convolve"})
    space = Network(1, 16, 3, 4, 5)
    check(space, space.convolve(space.x, 8, (1, 1, 1)), expected={"matmul"})
    changing = Network(1, 16, 5, 5)
    w = add(mean(changing.x), changing.array(8, 16, 1, 1))
    y = convolution(changing.x, w, kernel=(1, 1), num_filter=8, no_bias=True)
    check(changing, y, expected={"convolve"})


@pytest.mark.parametrize("axes, channels_stay", [((2, 3), False), ((3, 2), False), ((1,), True)])
def test_planes_that_are_reduced_need_not_be_turned(axes, channels_stay, monkeypatch):
    """Squeezing to one number a channel costs a part nothing, unlike the sums of other axes."""
    monkeypatch.setattr(channels_last, "_TURNING", 40)
    n = Network(2, 16, 7, 7)
    y = relu(n.alone(n.convolve(n.x, 16), pad=(1, 1)))
    squeezed = mean(multiply(y, y), axes)
    few = n.array(2, 16, 1, 1)
    weight = add(few, reshape(squeezed, (2, 16, 1, 1)) if len(axes) == 2 else mean(squeezed))
    found = mean(n.convolve(multiply(y, weight), 32), (2, 3))
    expected = {"convolve"} if channels_stay else {"matmul", "grouped_last"}
    check(n, found, expected=expected)


def test_turning_must_be_worth_it(monkeypatch):
    monkeypatch.undo()
    n = Network(1, 16, 8, 8)
    before, after = n.turned(n.convolve(n.x, 16))
    assert str(after) == str(before)


def test_the_printed_program():
    n = Network(1, 8, 2, 2)
    y = relu(n.convolve(n.x, 32, bias=False))
    _, after = n.turned(n.alone(y, pad=(1, 1), bias=False))
    lines = [line.strip() for line in str(optimized(after)).splitlines()]
    assert lines == [
        "program(%0: float32[1, 8, 2, 2], %1: float32[32, 8, 1, 1], %2: float32[32, 1, 3, 3]):",
        "%3: float32[1, 8, 4] = reshape(%0)",
        "%4: float32[1, 4, 8] = transpose(%3, axes=(0, 2, 1))",
        "%5: float32[4, 8] = reshape(%4)",
        "%6: float32[1, 1, 8, 32] = transpose(%1, axes=(2, 3, 1, 0))",
        "%7: float32[8, 32] = reshape(%6)",
        "%8: float32[4, 32] = matmul(%5, %7)",
        "%9: float32[1, 4, 32] = reshape(%8)",
        "%10: float32[1, 4, 32] = broadcast(0.0)",
        "%11: float32[1, 4, 32] = maximum(%9, %10)",
        "%12: float32[1, 2, 2, 32] = reshape(%11)",
        "%13: float32[3, 1, 3, 32] = transpose(%2, axes=(2, 1, 3, 0))",
        "%14: float32[9, 32] = reshape(%13)",
        "%15: float32[288] = pack_right(%14, one_block=True)",
        (
            "%16: float32[1, 4, 32] = grouped_last(%12, %15, kernel=(3, 3), out=(2, 2), "
            "stride=(1, 1), dilate=(1, 1), origin=(-1, -1), width=1)"
        ),
        "%17: float32[1, 32, 4] = transpose(%16, axes=(0, 2, 1))",
        "%18: float32[1, 32, 2, 2] = reshape(%17)",
        "return %18",
    ]  # fmt: skip
