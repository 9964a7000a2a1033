"""Gradients of filters by one way of summing them up, on guarded memory, and the exact sums."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Module
from heterosis.backends.native.codegen.kernels.convolution import (
    NUMBERS,
    Problem,
    correlate_scratch_bytes,
    emit_correlate,
)
from heterosis.backends.native.codegen.target import Target
from tests.backends.native.codegen.kernels.matmul_harness import (
    WORKERS,
    call_with_workspace,
    compile_text,
    guarded,
    strides,
)


@dataclass(frozen=True)
class Taps:
    """How windows lie: so many taps along each axis, `dilate` apart, every `stride` positions,
    beginning `pad` before the input."""

    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilate: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (1, 1)

    def inside(self, out: tuple[int, int]) -> tuple[int, ...]:
        """The extents of an input with padding behind it as before."""
        axes = zip(out, self.kernel, self.stride, self.dilate, self.pad, strict=True)
        return tuple((n - 1) * s + (k - 1) * d + 1 - 2 * p for n, k, s, d, p in axes)


@functools.cache
def _compiled(target: Target, key: Problem):
    module = Module()
    emit_correlate(module, target, "sums", key)
    f = module.function("start", [("call", PTR), ("numbers", PTR)], linkage="external")
    call, numbers = f.parameters
    pointers = [f.load(PTR, f.offset(I64, numbers, i)) for i in range(3)]
    sizes = [f.load(I64, f.offset(I64, numbers, 3 + i)) for i in range(len(NUMBERS))]
    f.call("sums", [call, *pointers, abi.workspace(f, call), *sizes])
    f.ret()
    return compile_text(target, module.text())


def summed(target: Target, dy, x, taps: Taps, chunks: int, **kind: int):
    """The gradient of filters, (chunks, groups, rows, channels, taps...), and how much memory it
    took; `dy` and `x` are (images, groups, planes, height, width), and `x` may lie in any way."""
    images, groups, rows, out_h, out_w = dy.shape
    channels, in_h, in_w = x.shape[2:]
    x_image, x_group, x_channel, x_h, x_w = strides(x)
    a_image, a_group, a_row, *_ = strides(dy)
    (k_h, k_w), (s_h, s_w), (d_h, d_w), (p_h, p_w) = (
        taps.kernel, taps.stride, taps.dilate, taps.pad,
    )  # fmt: skip
    known = dict.fromkeys(NUMBERS, 1) | {
        "images": images, "groups": groups, "rows": rows, "channels": channels, "chunks": chunks,
        "kernel_h": k_h, "kernel_w": k_w, "out_h": out_h, "out_w": out_w, "in_h": in_h,
        "in_w": in_w, "x_image": x_image, "x_group": x_group, "x_channel": x_channel, "x_h": x_h,
        "x_w": x_w, "stride_h": s_h, "stride_w": s_w, "dilate_h": d_h, "dilate_w": d_w,
        "origin_d": 0, "origin_h": -p_h, "origin_w": -p_w,
        "a_image": a_image, "a_group": a_group, "a_row": a_row,
    }  # fmt: skip
    step = s_w if x_w == 1 and s_w <= 2 else 0
    dtype = dy.dtype.name
    problem = Problem(dtype, step, tuple(known[n] for n in NUMBERS), **kind)
    size = correlate_scratch_bytes(problem, target, WORKERS)
    y = guarded(numpy.full((chunks, groups, rows, channels, k_h, k_w), numpy.nan, dtype))
    _, entry = _compiled(target, Problem(dtype, step, (), **kind))
    arrays = [array.ctypes.data for array in (dy, x, y)]
    call_with_workspace(entry, [*arrays, *problem.sizes], size)
    return y, size


def exact(dy, x, taps: Taps, chunks: int):
    """The same in double precision."""
    (p_h, p_w), (s_h, s_w), (d_h, d_w) = taps.pad, taps.stride, taps.dilate
    x = numpy.pad(x.astype("float64"), ((0, 0), (0, 0), (0, 0), (p_h, p_h), (p_w, p_w)))
    images, groups, rows, high, wide = dy.shape
    found = numpy.zeros((chunks, groups, rows, x.shape[2], *taps.kernel))
    for chunk in range(chunks):
        some = slice(images * chunk // chunks, images * (chunk + 1) // chunks)
        for i, j in numpy.ndindex(*taps.kernel):
            down = slice(i * d_h, i * d_h + (high - 1) * s_h + 1, s_h)
            across = slice(j * d_w, j * d_w + (wide - 1) * s_w + 1, s_w)
            seen = x[some, ..., down, across]
            found[chunk, ..., i, j] = numpy.einsum("ngfhw,ngchw->gfc", dy[some], seen)
    return found
