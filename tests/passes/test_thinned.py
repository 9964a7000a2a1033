"""What is read in part is computed in part, whatever lies between, and nothing else is."""

import random

import numpy
import pytest

from heterosis.ir import check, evaluate, parse, views
from heterosis.ir.primitives.elementwise import ADD, MAXIMUM, NEGATIVE
from heterosis.ir.primitives.windows import CONVOLVE
from heterosis.ir.program import INPUT, Program, Value, apply
from heterosis.ir.types import TensorType
from heterosis.passes.thinned import thinned


def windows(taps, stride, origin):
    return f"kernel=(1, {taps}, {taps}), stride={stride}, dilate=(1, 1, 1), origin={origin}"


# The end of a residual block, and the two convolutions of the next one that read it.
FILTERS = "%1: float32[1, 3, 3, 1, 3, 3], %2: float32[1, 4, 3, 1, 1, 1]"
BLOCK = f"""\
f(%0: float32[2, 3, 7, 5], {FILTERS}, %3: float32[3, 1, 1]):
  %4: float32[2, 1, 3, 1, 7, 5] = reshape(%0)
  %5: float32[2, 1, 3, 1, 7, 5] = convolve(%4, %1, {windows(3, (1, 1, 1), (0, -1, -1))})
  %6: float32[2, 3, 7, 5] = reshape(%5)
  %7: float32[2, 3, 7, 5] = broadcast(%3)
  %8: float32[2, 3, 7, 5] = add(%6, %7)
  %9: float32[2, 3, 7, 5] = add(%0, %8)
  %10: float32[2, 1, 3, 1, 7, 5] = reshape(%9)
  %11: float32[2, 1, 4, 1, 4, 3] = convolve(%10, %2, {windows(1, (1, 2, 2), (0, 0, 0))})
  %12: float32[2, 1, 4, 1, 4, 2] = convolve(%10, %2, {windows(1, (1, 2, 4), (0, 0, 0))})
  return RESULTS"""


def computed(program):
    """The shapes of what convolutions and additions give, and the convolutions' strides."""
    shapes = [node.types[0].shape for node in program.nodes() if node.primitive in (ADD, CONVOLVE)]
    strides = [n.attributes["stride"][1:] for n in program.nodes() if n.primitive is CONVOLVE]
    return shapes, strides


@pytest.mark.parametrize(
    "results, extents, strides",
    [
        ("%11", [(4, 3)] * 4, [(2, 2), (1, 1)]),
        ("%12", [(4, 2)] * 4, [(2, 4), (1, 1)]),
        ("%11, %12", [(4, 3)] * 4 + [(4, 2)], [(2, 2), (1, 1), (1, 2)]),
        ("%11, %9", [(7, 5)] * 3 + [(4, 3)], [(1, 1), (2, 2)]),
        ("%11, %8", [(7, 5)] * 2 + [(4, 3)] * 2, [(1, 1), (1, 1)]),
        ("%9", [(7, 5)] * 3, [(1, 1)]),
    ],
)
def test_the_end_of_a_block(results, extents, strides):
    program = parse(BLOCK.replace("RESULTS", results))
    check(program)
    found = thinned(program)
    check(found)
    shapes, found_strides = computed(found)
    assert sorted(shape[-2:] for shape in shapes) == sorted(extents)
    assert sorted(found_strides) == sorted(strides)
    assert thinned(found) is found
    same(program, found)


def same(program, found, seed=0):
    """Check that both give the same bits."""
    generator = numpy.random.default_rng(seed)
    given = [generator.normal(size=value.shape).astype(value.dtype) for value in program.inputs]
    for before, after in zip(evaluate(program, given), evaluate(found, given), strict=True):
        numpy.testing.assert_array_equal(before, after)


def test_padding_and_several_taps_read_all():
    for attributes in (
        "kernel=(1, 1, 1), stride=(1, 2, 2), dilate=(1, 1, 1), origin=(0, -1, 0)",
        "kernel=(1, 2, 1), stride=(1, 2, 2), dilate=(1, 1, 1), origin=(0, 0, 0)",
    ):
        taps = attributes[11:12]
        program = parse(
            f"""\
f(%0: float32[1, 1, 3, 1, 7, 5], %1: float32[1, 4, 3, 1, {taps}, 1]):
  %2: float32[1, 1, 3, 1, 7, 5] = negative(%0)
  %3: float32[1, 1, 4, 1, 3, 3] = convolve(%2, %1, {attributes})
  return %3"""
        )
        check(program)
        (shape,) = [n.types[0].shape for n in thinned(program).nodes() if n.primitive is NEGATIVE]
        assert shape[-2:] == (7, 3)  # along the axis with one tap and nothing around alone
        same(program, thinned(program))


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    program = drawn(random.Random(seed))
    check(program)
    found = thinned(program)
    check(found)
    assert thinned(found) is found
    same(program, found, seed)


def drawn(draw):
    """A program of steps that pass positions on, and of some that do not."""
    x = apply(INPUT, (), TensorType((2, 3, draw.randint(3, 9), draw.randint(3, 9)), "float32"))
    inputs, values = [x], [x]
    for _ in range(draw.randint(3, 12)):
        value = draw.choice(values[-3:])
        step = draw.choice((elementwise, strided, strided, turned, flattened, repeated, convolved))
        values.append(step(draw, value, inputs))
    outputs = (values[-1], *draw.sample(values, draw.choice((0, 0, 1))))
    return Program(tuple(inputs), outputs, "f")


def elementwise(draw, x, inputs):
    if draw.random() < 0.5:
        return apply(NEGATIVE, (x,), x.type)
    other = apply(INPUT, (), x.type)
    inputs.append(other)
    return apply(draw.choice((ADD, MAXIMUM)), (x, other), x.type)


def strided(draw, x, inputs):
    places = []
    for n in x.shape:
        step = draw.choice((1, 2, 2, 3)) * draw.choice((1, 1, 1, -1))
        start = draw.choice((0, 0, 0, min(1, n - 1))) if step > 0 else n - 1
        most = (n - 1 - start) // step + 1 if step > 0 else (n - 1) // -step + 1
        places.append((start, step, draw.choice((most, most, max(1, most - 1)))))
    return views.slice_(x, *zip(*places, strict=True))


def turned(draw, x, inputs):
    axes = list(range(x.ndim))
    draw.shuffle(axes)
    return views.transpose(x, tuple(axes))


def flattened(draw, x, inputs):
    at = draw.randrange(x.ndim - 1)
    if draw.random() < 0.5:
        return views.reshape(x, (*x.shape[:at], 1, *x.shape[at:]))
    return views.reshape(x, (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :]))


def repeated(draw, x, inputs):
    one = apply(INPUT, (), TensorType((*x.shape[1:-1], 1), "float32"))
    inputs.append(one)
    return apply(ADD, (x, views.broadcast(one, x.shape)), x.type)


def convolved(draw, x, inputs):
    """Of what x has, as two axes of space behind two channels."""
    shape = [1, 1, 2, 1, 1, 1]
    if x.size % 2 or x.size < 8:
        return x
    shape[4:] = max((h, x.size // 2 // h) for h in (1, 2, 3, 4) if x.size // 2 % h == 0)
    seen = views.reshape(x, tuple(shape))
    kernel = [draw.choice((1, 1, 3)) for _ in range(2)]
    stride = [draw.choice((1, 2)) for _ in range(2)]
    origin = [0 if k == 1 else -1 for k in kernel]
    filters = apply(INPUT, (), TensorType((1, 3, 2, 1, *kernel), "float32"))
    inputs.append(filters)
    extents = [-(-n // step) for n, step in zip(shape[4:], stride, strict=True)]
    found = apply(
        CONVOLVE, (seen, filters), TensorType((1, 1, 3, 1, *extents), "float32"),
        kernel=(1, *kernel), stride=(1, *stride), dilate=(1, 1, 1), origin=(0, *origin),
    )  # fmt: skip
    assert isinstance(found, Value)
    return views.reshape(found, (3, *extents))
