"""The primitives under convolution: filters on windows, and sums of products over windows.

Inputs have six dimensions: images, groups, channels, and three of space. Along each of those,
output position p and tap t meet at input position p * stride + t * dilate + origin; `dilate` may
be negative, and what lies outside the input is zero. Each primitive's gradients are made of the
same two primitives: see `convolve_gradient` and `correlate_gradient`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod

from heterosis.codegen import convolution as code
from heterosis.codegen.builder import Module
from heterosis.codegen.kernel import KernelCode, Machine, Place
from heterosis.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, Node, Opaque, Value, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops import reductions
from heterosis.ops.join import joined

Extents = tuple[int, ...]

_FLOPS_A_NANOSECOND = 50.0
# With fewer columns the images are cut into chunks, whose sums are then added. Their number does
# not depend on the number of threads, so neither does the result.
_FEW_COLUMNS, _CHUNKS = 512, 8


@dataclass(frozen=True)
class Windows:
    """How windows lie in an input; three numbers each."""

    kernel: Extents
    stride: Extents
    dilate: Extents
    origin: Extents


def _windows(node: Node) -> Windows:
    facts = node.attributes
    return Windows(facts["kernel"], facts["stride"], facts["dilate"], facts["origin"])


# -- kernels --------------------------------------------------------------------------------------


def _problem(node: Node, x: Place, rows: int, out: Extents, bias: bool, **left: int):
    """`left` is how the left operand lies."""
    images, groups, channels, *extents = x.strided.shape
    w = _windows(node)
    sizes = (
        images, groups, rows, channels, *w.kernel, *out, *extents, *x.strided.strides,
        *w.stride, *w.dilate, *w.origin,
    )  # fmt: skip
    last = ("a_image", "a_group", "a_row", "a_column", "bias_row", "chunks")
    sizes += tuple(left.get(name, 0) for name in last)
    beside = x.strided.strides[-1] == 1 and w.stride[-1] <= 2
    return code.Problem(x.dtype, w.stride[-1] if beside else 0, sizes, bias)


def _convolve_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    x, a, *bias = inputs
    rows, *out = outputs[0].strided.shape[2:]
    problem = _problem(
        node, x, rows, tuple(out), bool(bias),
        **dict(zip(("a_group", "a_row", "a_column"), a.strided.strides, strict=True)),
        bias_row=bias[0].strided.strides[0] if bias else 0,
    )  # fmt: skip

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_forward(module, target, name, problem)

    work = 2.0 * prod(outputs[0].strided.shape) * a.strided.shape[2]
    return KernelCode(
        key=f"convolve {problem.key}",
        emit=emit,
        numbers=problem.sizes,
        scratch_bytes=code.scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=work / _FLOPS_A_NANOSECOND,
    )


def _correlate_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    a, x = inputs
    chunks, _, rows, columns = outputs[0].strided.shape
    strides = dict(
        zip(("a_image", "a_group", "a_row", "a_column"), a.strided.strides, strict=True)
    )
    problem = _problem(node, x, rows, node.attributes["out"], False, **strides, chunks=chunks)

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_weights(module, target, name, problem)

    work = 2.0 * prod(a.strided.shape) * columns
    return KernelCode(
        key=f"correlate {problem.key}",
        emit=emit,
        numbers=problem.sizes,
        scratch_bytes=code.weights_scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=work / _FLOPS_A_NANOSECOND,
    )


# Operands (input, filters[, bias]); the filters are (groups, rows, channels * taps).
CONVOLVE = Opaque("convolve", _convolve_kernel)
# Operands (left, input), left being (images, groups, rows, positions); results
# (chunks of images, groups, rows, channels * taps).
CORRELATE = Opaque("correlate", _correlate_kernel)


# -- applying them --------------------------------------------------------------------------------


def convolve(x: Value, a: Value, bias: Value | None, out: Extents, windows: Windows) -> Value:
    """Filters `a` (groups, rows, channels * taps) on windows of `x`, and their `bias` added."""
    shape = (*x.shape[:2], a.shape[1], *out)
    if 0 in shape or 0 in x.shape or 0 in a.shape:
        return _nothing_but(bias, x.dtype, shape)
    operands = (x, a) if bias is None else (x, a, bias)
    return apply(CONVOLVE, operands, TensorType(shape, x.dtype), **asdict(windows))


def _nothing_but(bias: Value | None, dtype: str, shape: Extents) -> Value:
    if bias is None:
        return views.broadcast(constant(0, dtype), shape)
    return views.broadcast(views.reshape(bias, (shape[1], shape[2], 1, 1, 1)), shape)


def correlate(a: Value, x: Value, out: Extents, windows: Windows) -> Value:
    """Sums of `a` (images, groups, rows, positions) times the windows of `x` there: (groups,
    rows, channels * taps)."""
    images, groups, rows, _ = a.shape
    columns = x.shape[2] * prod(windows.kernel)
    if 0 in a.shape or 0 in x.shape or not columns:
        return views.broadcast(constant(0, x.dtype), (groups, rows, columns))
    chunks = 1 if columns * groups >= _FEW_COLUMNS else min(images, _CHUNKS)
    type_ = TensorType((chunks, groups, rows, columns), x.dtype)
    parts = apply(CORRELATE, (a, x), type_, out=out, **asdict(windows))
    return reductions.sum(parts, 0) if chunks > 1 else views.reshape(parts, type_.shape[1:])


def transposed(
    dy: Value, a: Value, bias: Value | None, extents: Extents, windows: Windows
) -> Value:
    """What `convolve` does to an input of `extents`, turned round: each element of `dy` times
    its filters, added where their windows lie. This is the gradient with respect to the input.

    Every phase of the strides meets taps of its own, and is a convolution with stride 1.
    """
    images, groups, rows = dy.shape[:3]
    channels = a.shape[2] // prod(windows.kernel)
    shape = (images, groups, channels, *extents)
    if 0 in shape:
        return views.broadcast(constant(0, dy.dtype), shape)
    taps = views.reshape(a, (groups, rows, channels, *windows.kernel))
    taps = views.transpose(taps, (0, 2, 1, 3, 4, 5))
    axes = zip(extents, *asdict(windows).values(), strict=True)
    parts, places = [], []
    for phases in itertools.product(*(_phases(*axis) for axis in axes)):
        parts.append(_one_phase(dy, taps, bias, phases))
        first = (0, 0, 0, *(p.first for p in phases))
        places.append((first, (1, 1, 1, *(p.every for p in phases))))
    if len(parts) == 1:
        return parts[0]
    return apply(ASSEMBLE, parts, TensorType(shape, dy.dtype), places=tuple(places), filled=False)


class _Phase:
    """Input positions `first`, `first + every`, ... of one axis, and the taps that reach them."""

    def __init__(self, first: int, extent: int, kernel: int, stride: int, dilate: int, origin: int):
        common = math.gcd(stride, dilate)
        self.first, self.every, self.apart = first, stride, stride // common
        self.out = -(-(extent - first) // stride)
        reach = range(min(self.apart, kernel))
        meeting = (t for t in reach if (first - origin - t * dilate) % stride == 0)
        self.tap = next(meeting, kernel)
        self.kernel = len(range(self.tap, kernel, self.apart))
        self.dilate = -(dilate // common)
        self.origin = (first - origin - self.tap * dilate) // stride


def _phases(extent: int, kernel: int, stride: int, dilate: int, origin: int) -> list[_Phase]:
    count = min(stride, extent)
    return [_Phase(first, extent, kernel, stride, dilate, origin) for first in range(count)]


def _one_phase(dy: Value, taps: Value, bias: Value | None, phases: Sequence[_Phase]) -> Value:
    groups, channels, rows, *all_ = taps.shape
    kernel = tuple(p.kernel for p in phases)
    starts = tuple(min(p.tap, n - 1) for p, n in zip(phases, all_, strict=True))
    steps = tuple(p.apart for p in phases)
    some = taps
    if kernel != tuple(all_):
        shape = (groups, channels, rows, *kernel)
        some = views.slice_(taps, (0, 0, 0, *starts), (1, 1, 1, *steps), shape)
    a = views.reshape(some, (groups, channels, rows * prod(kernel)))
    dilate, origin = tuple(p.dilate for p in phases), tuple(p.origin for p in phases)
    windows = Windows(kernel, (1, 1, 1), dilate, origin)
    return convolve(dy, a, bias, tuple(p.out for p in phases), windows)


# -- gradients ------------------------------------------------------------------------------------


def convolve_gradient(node: Node, dy: Value) -> tuple[Value, ...]:
    """The gradients of a `CONVOLVE` node's operands, given its result's."""
    x, a, *bias = node.inputs
    windows = _windows(node)
    dx = transposed(dy, a, None, x.shape[3:], windows)
    da = correlate(_positions_last(dy), x, dy.shape[3:], windows)
    if not bias:
        return dx, da
    return dx, da, views.reshape(reductions.sum(dy, (0, 3, 4, 5)), bias[0].shape)


def correlate_gradient(node: Node, dy: Value) -> tuple[Value, Value]:
    """The gradients of a `CORRELATE` node's operands, given its result's."""
    a, x = node.inputs
    windows, out = _windows(node), node.attributes["out"]
    chunks, images = dy.shape[0], a.shape[0]
    bounds = [images * c // chunks for c in range(chunks + 1)]
    of_a, of_x = [], []
    for chunk, (first, last) in enumerate(itertools.pairwise(bounds)):
        filters = views.reshape(_rows(dy, chunk, chunk + 1), dy.shape[1:])
        left = views.reshape(_rows(a, first, last), (last - first, *a.shape[1:3], *out))
        of_a.append(convolve(_rows(x, first, last), filters, None, out, windows))
        of_x.append(transposed(left, filters, None, x.shape[3:], windows))
    da, dx = (parts[0] if chunks == 1 else joined("correlate", parts, 0) for parts in (of_a, of_x))
    return _positions_last(da), dx


def _positions_last(x: Value) -> Value:
    return views.reshape(x, (*x.shape[:3], prod(x.shape[3:])))


def _rows(x: Value, first: int, last: int) -> Value:
    """Elements `first` to `last` along the first axis."""
    if last - first == x.shape[0]:
        return x
    starts = (first,) + (0,) * (x.ndim - 1)
    return views.slice_(x, starts, (1,) * x.ndim, (last - first, *x.shape[1:]))
