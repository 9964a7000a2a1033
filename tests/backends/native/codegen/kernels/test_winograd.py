"""Convolutions of 3 x 3 taps by Winograd's tiles, against sums in double precision."""

from __future__ import annotations

import functools

import numpy
import pytest

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Module
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernels.convolution import (
    FILTER_NUMBERS,
    NUMBERS,
    Problem,
    convolve_scratch_bytes,
    emit_convolve,
    emit_pack_transformed,
    pack_transformed_scratch_bytes,
    packed_transformed_numbers,
)
from heterosis.backends.native.codegen.target import Target
from tests.backends.native.codegen.kernels.matmul_harness import (
    FILL,
    WORKERS,
    call_with_workspace,
    compile_text,
    guarded,
    strides,
)
from tests.backends.native.usable_targets import HERE

generator = numpy.random.default_rng(6)


def _entry(target: Target, emit, pointers: int, numbers: int):
    """The function `f` that `emit(module)` defines, called with what an array of numbers holds."""
    module = Module()
    emit(module)
    f = module.function("start", [("call", PTR), ("numbers", PTR)], linkage="external")
    call, given = f.parameters
    arrays = [f.load(PTR, f.offset(I64, given, i)) for i in range(pointers)]
    sizes = [f.load(I64, f.offset(I64, given, pointers + i)) for i in range(numbers)]
    f.call("f", [call, *arrays, abi.workspace(f, call), *sizes])
    f.ret()
    return compile_text(target, module.text())


@functools.cache
def _packing(target: Target, m: int):
    def emit(module: Module) -> None:
        emit_pack_transformed(module, target, "f", m)

    return _entry(target, emit, 2, len(FILTER_NUMBERS))


@functools.cache
def _convolution(target: Target, problem: Problem):
    def emit(module: Module) -> None:
        emit_convolve(module, target, "f", problem, Epilogue())

    return _entry(target, emit, 3, len(NUMBERS))


def _packed(target: Target, m: int, a, turned: bool):
    """Filters (rows, channels, 3, 3), which may lie in any way."""
    rows, channels = a.shape[:2]
    row, channel, h, w = strides(a)
    first = 0
    if turned:
        first, h, w = 2 * (h + w), -h, -w
    count = packed_transformed_numbers(rows, channels, m, target)
    packed = guarded(numpy.full(count, FILL, "uint32").view("float32"))
    numbers = [a.ctypes.data, packed.ctypes.data, rows, channels, first, row, channel, h, w]
    size = pack_transformed_scratch_bytes(target, WORKERS)
    call_with_workspace(_packing(target, m)[1], numbers, size)
    return packed


def _convolved(target: Target, m: int, x, a, pad: int, turned: bool):
    """Of images (images, channels, depth, height, width)."""
    images, channels, in_d, in_h, in_w = x.shape
    rows, inputs = a.shape[:2]
    deep, out_h, out_w = inputs // channels, in_h + 2 * pad - 2, in_w + 2 * pad - 2
    out_d = in_d - deep + 1
    known = dict.fromkeys(NUMBERS, 1) | {
        "images": images, "rows": rows, "channels": channels, "kernel_d": deep, "kernel_h": 3,
        "kernel_w": 3, "out_d": out_d, "out_h": out_h, "out_w": out_w, "in_d": in_d, "in_h": in_h,
        "in_w": in_w, "origin_d": 0, "origin_h": -pad, "origin_w": -pad,
    }  # fmt: skip
    known |= dict(zip(("x_image", "x_channel", "x_d", "x_h", "x_w"), strides(x), strict=True))
    step = 1 if known["x_w"] == 1 else 0
    problem = Problem("float32", step, tuple(known[n] for n in NUMBERS), winograd=m)
    size = convolve_scratch_bytes(problem, target, WORKERS)
    y = guarded(numpy.full((images, rows, out_d, out_h, out_w), numpy.nan, "float32"))
    packed = _packed(target, m, a, turned)
    _, entry = _convolution(target, Problem("float32", step, (), winograd=m))
    call_with_workspace(entry, [*(b.ctypes.data for b in (x, packed, y)), *problem.sizes], size)
    return y


def _exact(x, a, pad: int):
    beside = (pad, pad)
    x = numpy.pad(x.astype("float64"), ((0, 0), (0, 0), (0, 0), beside, beside))
    rows, inputs = a.shape[:2]
    channels, deep = x.shape[1], inputs // x.shape[1]
    a = a.reshape(rows, channels, deep, 3, 3)
    depth, high, wide = x.shape[2] - deep + 1, x.shape[3] - 2, x.shape[4] - 2
    y = numpy.zeros((x.shape[0], rows, depth, high, wide))
    for d, i, j in numpy.ndindex(deep, 3, 3):
        seen = x[:, :, d : d + depth, i : i + high, j : j + wide]
        y += numpy.einsum("fc,nczhw->nfzhw", a[:, :, d, i, j], seen)
    return y


# images, channels, rows, taps in depth, planes, height and width, padding
SHAPES = [
    (1, 1, 1, 1, 1, 1, 1, 1),  # a tile that is mostly padding
    (37, 3, 5, 1, 1, 3, 4, 1),  # bands of a tile each, many to a vector
    (9, 5, 15, 1, 1, 7, 7, 1),  # bands that end within a vector
    (3, 33, 29, 1, 1, 13, 17, 1),
    (8, 40, 14, 1, 1, 28, 28, 1),  # several bands to a group, and several groups
    (2, 450, 17, 1, 1, 6, 5, 1),  # more than one block of depth
    (1, 16, 20, 1, 1, 130, 131, 1),  # bands of an image, the last one short
    (1, 3, 2, 1, 1, 5, 900, 1),  # a row of tiles is more than a group should be
    (2, 7, 8, 1, 1, 12, 11, 0),
    (2, 7, 8, 1, 1, 9, 10, 2),
    (2, 6, 9, 3, 5, 9, 10, 1),  # with depth
    (0, 4, 3, 1, 1, 8, 8, 1),
]


@pytest.mark.parametrize("beside", [True, False], ids=["beside", "apart"])
@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_results(target, m, beside):
    for images, channels, rows, deep, planes, high, wide, pad in SHAPES:
        shape, filters = (images, channels, planes, high, wide), (rows, channels * deep, 3, 3)
        x, a = (
            generator.standard_normal(s if beside else s[::-1]).astype("float32")
            for s in (shape, filters)
        )
        x, a = (guarded(b) if beside else guarded(b).transpose() for b in (x, a))
        want = _exact(x, a, pad)
        for turned in (False, True):
            ends = a[:, :, ::-1, ::-1] if turned else a
            found = _convolved(target, m, x, ends if turned else a, pad, turned)
            bound = 3e-6 * max(1, abs(want).max(initial=0)) * (8 if m == 4 else 1)
            assert abs(found - want).max(initial=0) <= bound, (shape, rows, turned)
