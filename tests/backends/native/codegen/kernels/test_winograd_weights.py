"""The gradient of 3 x 3 filters by Winograd's tiles, against sums in double precision."""

from __future__ import annotations

import numpy
import pytest

from heterosis.backends.native.codegen.kernels.convolution import choose_for_weights
from heterosis.backends.native.codegen.target import AVX2
from tests.backends.native.codegen.kernels.matmul_harness import guarded
from tests.backends.native.codegen.kernels.weights_harness import Taps, exact, summed
from tests.backends.native.usable_targets import HERE

generator = numpy.random.default_rng(5)

# images, rows, channels, height and width of the results, padding, chunks
SHAPES = [
    (1, 1, 16, 1, 1, 1, 1),  # a tile that is mostly padding
    (2, 6, 16, 8, 8, 1, 1),
    (3, 7, 17, 9, 13, 1, 1),  # tiles end behind the result, panels behind the planes
    (1, 20, 33, 7, 40, 0, 1),
    (2, 13, 20, 11, 6, 2, 1),
    (5, 3, 19, 14, 14, 1, 2),
    (2, 5, 16, 6, 6, 1, 4),  # some chunks have no image
    (0, 4, 16, 8, 8, 1, 3),
    (2, 130, 24, 10, 12, 1, 1),  # several blocks of rows
    (2, 9, 18, 60, 70, 1, 1),  # several groups of lines
    (1, 4, 16, 5, 300, 1, 1),  # a line is more than a group should be
]


@pytest.mark.parametrize("beside", [True, False], ids=["beside", "apart"])
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_sums(target, m, beside):
    for images, rows, channels, high, wide, pad, chunks in SHAPES:
        dy = generator.standard_normal((images, 1, rows, high, wide)).astype("float32")
        taps = Taps(pad=(pad, pad))
        shape = (images, 1, channels, *taps.inside((high, wide)))
        x = generator.standard_normal(shape if beside else shape[::-1]).astype("float32")
        x = guarded(x) if beside else guarded(x).transpose()
        found, _ = summed(target, guarded(dy), x, taps, chunks, winograd=m)
        want = exact(dy, x, taps, chunks)
        assert abs(found - want).max() <= 4e-6 * max(1, abs(want).max()), (shape, rows)


def test_memory_does_not_grow_with_the_images():
    ones = (numpy.ones((n, 1, 16, 12, 12), "float32") for n in (20, 60))
    few, many = (summed(HERE[0], a, a, Taps(), 1, winograd=4)[1] for a in ones)
    assert few == many


@pytest.mark.parametrize("images, rows, channels, size, kind", [
    (8, 64, 64, 56, {"winograd": 4}), (8, 512, 512, 7, {"winograd": 4}), (1, 20, 2, 20, {}),
    (8, 2048, 2048, 14, {}), (1, 512, 512, 2, {}), (2, 64, 64, 8, {}),
])  # fmt: skip
def test_tiles_are_taken_where_they_pay(images, rows, channels, size, kind):
    facts = ("float32", images, rows, channels, (1, 3, 3), (1, size, size), AVX2)
    assert choose_for_weights(*facts, small_steps=True, tasks=1) == kind
    assert choose_for_weights(*facts, small_steps=False, tasks=1) == {}
    assert choose_for_weights("float64", *facts[1:], small_steps=True, tasks=1) == {}
