"""The gradient of 3 x 3 filters by Winograd's tiles, against sums in double precision."""

from __future__ import annotations

import functools

import numpy
import pytest

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Module
from heterosis.backends.native.codegen.kernels.convolution import (
    NUMBERS,
    Problem,
    choose_for_weights,
    correlate_scratch_bytes,
    emit_correlate,
)
from heterosis.backends.native.codegen.target import AVX2, Target
from tests.backends.native.codegen.kernels.matmul_harness import (
    WORKERS,
    call_with_workspace,
    compile_text,
    guarded,
    strides,
)
from tests.backends.native.usable_targets import HERE

generator = numpy.random.default_rng(5)


@functools.cache
def compiled(target: Target, key: Problem):
    module = Module()
    emit_correlate(module, target, "sums", key)
    f = module.function("start", [("call", PTR), ("numbers", PTR)], linkage="external")
    call, numbers = f.parameters
    pointers = [f.load(PTR, f.offset(I64, numbers, i)) for i in range(3)]
    sizes = [f.load(I64, f.offset(I64, numbers, 3 + i)) for i in range(len(NUMBERS))]
    f.call("sums", [call, *pointers, abi.workspace(f, call), *sizes])
    f.ret()
    return compile_text(target, module.text())


def summed(target: Target, m: int, dy, x, pad: int, chunks: int):
    """The gradient of filters, and how much memory it took; `x` may lie in any way."""
    images, rows, out_h, out_w = dy.shape
    _, channels, in_h, in_w = x.shape
    x_image, x_channel, x_h, x_w = strides(x)
    a_image, a_row, *_ = strides(dy)
    known = dict.fromkeys(NUMBERS, 1) | {
        "images": images, "rows": rows, "channels": channels, "chunks": chunks,
        "kernel_h": 3, "kernel_w": 3, "out_h": out_h, "out_w": out_w, "in_h": in_h, "in_w": in_w,
        "x_image": x_image, "x_channel": x_channel, "x_h": x_h, "x_w": x_w,
        "origin_d": 0, "origin_h": -pad, "origin_w": -pad, "a_image": a_image, "a_row": a_row,
    }  # fmt: skip
    step = 1 if x_w == 1 else 0
    problem = Problem("float32", step, tuple(known[n] for n in NUMBERS), winograd=m)
    size = correlate_scratch_bytes(problem, target, WORKERS)
    y = guarded(numpy.full((chunks, rows, channels, 3, 3), numpy.nan, "float32"))
    _, entry = compiled(target, Problem("float32", step, (), winograd=m))
    arrays = [array.ctypes.data for array in (dy, x, y)]
    call_with_workspace(entry, [*arrays, *problem.sizes], size)
    return y, size


def exact(dy, x, pad: int, chunks: int):
    x = numpy.pad(x.astype("float64"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    images, _, high, wide = dy.shape
    found = numpy.zeros((chunks, dy.shape[1], x.shape[1], 3, 3))
    for chunk in range(chunks):
        some = slice(images * chunk // chunks, images * (chunk + 1) // chunks)
        for i, j in numpy.ndindex(3, 3):
            seen = x[some, :, i : i + high, j : j + wide]
            found[chunk, :, :, i, j] = numpy.einsum("nfhw,nchw->fc", dy[some], seen)
    return found


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
        dy = generator.standard_normal((images, rows, high, wide)).astype("float32")
        shape = (images, channels, high + 2 - 2 * pad, wide + 2 - 2 * pad)
        x = generator.standard_normal(shape if beside else shape[::-1]).astype("float32")
        x = guarded(x) if beside else guarded(x).transpose()
        found, _ = summed(target, m, guarded(dy), x, pad, chunks)
        want = exact(dy, x, pad, chunks)
        assert abs(found - want).max() <= 4e-6 * max(1, abs(want).max()), (shape, rows)


def test_memory_does_not_grow_with_the_images():
    few, many = (
        summed(HERE[0], 4, numpy.ones((n, 16, 12, 12), "float32"),
               numpy.ones((n, 16, 12, 12), "float32"), 1, 1)[1]
        for n in (20, 60)
    )  # fmt: skip
    assert few == many


@pytest.mark.parametrize("images, rows, channels, size, tiles", [
    (8, 64, 64, 56, 4), (8, 512, 512, 7, 4), (1, 20, 2, 20, 0), (8, 2048, 2048, 14, 0),
    (1, 512, 512, 2, 0), (2, 64, 64, 8, 0),
])  # fmt: skip
def test_tiles_are_taken_where_they_pay(images, rows, channels, size, tiles):
    facts = ("float32", images, rows, channels, (1, 3, 3), (1, size, size), AVX2)
    assert choose_for_weights(*facts, small_steps=True) == tiles
    assert choose_for_weights(*facts, small_steps=False) == 0
    assert choose_for_weights("float64", *facts[1:], small_steps=True) == 0
