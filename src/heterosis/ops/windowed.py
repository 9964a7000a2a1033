"""The primitives under convolution: filters on windows, and sums of products over windows.

Inputs have six dimensions: images, groups, channels, and three of space. Along each of those,
output position p and tap t meet at input position p * stride + t * dilate + origin; `dilate` may
be negative, and what lies outside the input is zero. Each primitive's gradients are made of the
same two primitives.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod

from heterosis.codegen import convolution as code
from heterosis.codegen.builder import Module
from heterosis.codegen.epilogue import Epilogue
from heterosis.codegen.kernel import KernelCode, Machine, Place
from heterosis.codegen.lowerings.products import packed_right
from heterosis.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.program import ASSEMBLE, Node, Value, apply, constant
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import reductions
from heterosis.ops.adjoint import Cotangents, Step, adjoint
from heterosis.ops.elementwise import add, multiply
from heterosis.ops.join import joined

Extents = tuple[int, ...]

_FLOPS_A_NANOSECOND = 50.0
# With fewer columns the images are cut into chunks, whose sums are then added. Their number does
# not depend on the number of threads, so neither does the result.
_FEW_COLUMNS, _CHUNKS = 512, 8
# With so few positions in an image, all images are one, so that the product is deep enough.
_FEW_POSITIONS = 16
# So few filters on a single channel are too little for tiles of a matrix product.
_FEW_ROWS = 4


@dataclass(frozen=True)
class Windows:
    """How windows lie in an input; three numbers each."""

    kernel: Extents
    stride: Extents
    dilate: Extents
    origin: Extents


def windows_of(node: Node | Step) -> Windows:
    facts = node.attributes
    return Windows(facts["kernel"], facts["stride"], facts["dilate"], facts["origin"])


# -- kernels --------------------------------------------------------------------------------------


_PACKED = ("packed", "turned", "winograd")  # attributes of a node whose filters are packed
_LEFT = (
    ("a_image", "a_group", "a_row", "a_column", "a_channel", "a_d", "a_h", "a_w")
    + ("chunks",)
)  # fmt: skip


def _problem(node: Node, x: Place, rows: int, out: Extents, left: dict[str, int], **kinds: int):
    """`left` says how the left operand lies."""
    images, groups, channels, *extents = x.strided.shape
    w = windows_of(node)
    sizes = (
        images, groups, rows, channels, *w.kernel, *out, *extents, *x.strided.strides,
        *w.stride, *w.dilate, *w.origin, *(left.get(name, 0) for name in _LEFT),
    )  # fmt: skip
    beside = x.strided.strides[-1] == 1 and w.stride[-1] <= 2
    return code.Problem(x.dtype, w.stride[-1] if beside else 0, sizes, **kinds)


def _convolve_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    x, a = inputs
    rows, *out = outputs[0].strided.shape[2:]
    packed = {name: node.attributes[name] for name in _PACKED if name in node.attributes}
    left, kinds = ({}, packed) if packed else _filters(a.strided)
    problem = _problem(node, x, rows, tuple(out), left, **kinds)

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_convolve(module, target, name, problem, epilogue)

    depth = x.strided.shape[2] * prod(windows_of(node).kernel)
    return KernelCode(
        key=f"convolve {problem.key}{epilogue.key}",
        emit=emit,
        numbers=problem.sizes,
        scratch_bytes=code.convolve_scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=2 * prod(outputs[0].strided.shape) * depth / _FLOPS_A_NANOSECOND,
    )


def _filters(a: Strided) -> tuple[dict[str, int], dict[str, bool]]:
    """How filters lie, and what kinds of a problem that makes."""
    strides = ("a_group", "a_row", "a_channel", "a_d", "a_h", "a_w")
    column = _column_stride(a)
    left = dict(zip(strides, a.strides, strict=True)) | {"a_column": column or 0}
    depthwise = _is_depthwise(a.shape)
    return left, {"depthwise": depthwise, "scattered": column is None and not depthwise}


def _is_depthwise(shape: Extents) -> bool:
    return shape[2] == 1 and shape[1] <= _FEW_ROWS


def _column_stride(a: Strided) -> int | None:
    """How far apart the columns of the filters are, if all are equally far."""
    flat = a.reshape((*a.shape[:2], prod(a.shape[2:])))
    return None if flat is None else flat.strides[2]


def _correlate_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    a, x = inputs
    chunks, _, rows, columns = outputs[0].strided.shape
    strides = ("a_image", "a_group", "a_row", "a_column")
    left = dict(zip(strides, a.strided.strides, strict=True)) | {"chunks": chunks}
    depthwise = x.strided.shape[2] == 1 and rows <= _FEW_ROWS and left["a_column"] == 1
    problem = _problem(node, x, rows, node.attributes["out"], left, depthwise=depthwise)

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_correlate(module, target, name, problem)

    return KernelCode(
        key=f"correlate {problem.key}",
        emit=emit,
        numbers=problem.sizes,
        scratch_bytes=code.correlate_scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=2 * prod(a.strided.shape) * columns / _FLOPS_A_NANOSECOND,
    )


def _packed_problem(a: Value, left: dict[str, int]) -> code.Problem:
    """A problem with the filters `a` and one position."""
    groups, rows, channels, *kernel = a.shape
    sizes = dict.fromkeys(code.NUMBERS, 1) | left
    sizes |= {"groups": groups, "rows": rows, "channels": channels}
    sizes |= {f"kernel_{axis}": taps for axis, taps in zip("dhw", kernel, strict=True)}
    return code.Problem(a.dtype, 1, tuple(sizes[name] for name in code.NUMBERS), packed=True)


def _pack_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    (a,) = inputs
    problem = _packed_problem(node.inputs[0], _filters(a.strided)[0])

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_pack_filters(module, target, name, problem)

    return KernelCode(
        key=f"pack filters {problem.key}",
        emit=emit,
        numbers=problem.sizes,
        nanoseconds=prod(outputs[0].strided.shape),
    )


# Filters (groups, rows, channels, *taps) as the code for one processor reads them.
_PACK = Opaque("pack_filters", _pack_kernel, gapless=True)


def _packs(node: Node, fixed: Callable[[Value], bool], machine: Machine) -> Value | None:
    """Filters that change from call to call are packed by their kernel, but transformed here where
    that pays."""
    x, a = node.inputs
    narrow = a.dtype not in ("float32", "float64")
    if narrow or any(name in node.attributes for name in _PACKED) or _is_depthwise(a.shape):
        return None
    windows = windows_of(node)
    upright = _upright(windows)
    kinds = _cheapest(node, upright, machine, each_call=not fixed(a))
    if "winograd" in kinds:
        filters = transformed(a, kinds["winograd"], turned=upright != windows)
        windows = upright
    elif fixed(a):
        filters = a
    else:
        return None
    packed = _packed_filters(filters, kinds, machine)
    return apply(CONVOLVE, (x, packed), node.types[0], **asdict(windows), **kinds)


def _upright(w: Windows) -> Windows:
    """The same windows with taps that go the way of the input, where they go the other way along
    the last two axes."""
    if w.dilate[1:] != (-1, -1):
        return w
    origin = tuple(o - t + 1 for o, t in zip(w.origin[1:], w.kernel[1:], strict=True))
    first = 1 if w.kernel[0] == 1 else w.dilate[0]
    return replace(w, dilate=(first, 1, 1), origin=(w.origin[0], *origin))


def _cheapest(node: Node, w: Windows, machine: Machine, *, each_call: bool) -> dict[str, int]:
    """The way to convolve, as attributes of the node."""
    x, a = node.inputs
    groups, rows, channels, *kernel = a.shape
    if groups > 1:
        return {"packed": True}
    out = node.types[0].shape[3:]
    whole = all(
        n - 2 * first == positions + taps - 1 and first <= 0
        for n, first, positions, taps in zip(x.shape[3:], w.origin, out, kernel, strict=True)
    )
    small = w.stride == w.dilate == (1, 1, 1) and whole
    return code.choose(
        a.dtype, x.shape[0], rows, channels, tuple(kernel), out, machine.target,
        small_steps=small, each_call=each_call,
    )  # fmt: skip


def _packed_filters(a: Value, kinds: dict[str, int], machine: Machine) -> Value:
    if "turned" in kinds:
        columns = views.reshape(a, (a.shape[1], prod(a.shape[2:])))
        return packed_right(views.transpose(columns, (1, 0)), machine)
    numbers = code.packed_numbers(_packed_problem(a, {}), machine.target)
    return apply(_PACK, (a,), TensorType((numbers,), a.dtype))


def transformed(a: Value, m: int, *, turned: bool = False) -> Value:
    """Filters of 3 x 3 taps, for tiles of `m` x `m` results: (places in a tile, rows, channels, 1,
    1, 1). If `turned`, the taps are in reverse order."""
    _, rows, channels, *_ = a.shape
    shape = (1, rows, channels)
    lines = code.FILTERS[m]

    def tap(h: int, w: int) -> Value:
        h, w = (2 - h, 2 - w) if turned else (h, w)
        one = views.slice_(a, (0, 0, 0, 0, h, w), (1,) * 6, (*shape, 1, 1, 1))
        return views.reshape(one, shape)

    halves = [[_weighted(line, [tap(h, w) for h in range(3)]) for w in range(3)] for line in lines]
    parts = [_weighted(line, half) for half in halves for line in lines]
    return views.reshape(joined("winograd", parts, 0), (len(parts), rows, channels, 1, 1, 1))


def _weighted(weights: Sequence[float], values: Sequence[Value]) -> Value:
    """The sum of `values`, each times its weight."""
    terms = [
        value
        if weight == 1
        else multiply(value, views.broadcast(constant(weight, value.dtype), value.shape))
        for weight, value in zip(weights, values, strict=True)
        if weight
    ]
    return functools.reduce(add, terms)


def _scaled(node: Node, factors: Value) -> Value:
    x, a = node.inputs
    spread = views.reshape(factors, (*a.shape[:2], 1, 1, 1, 1))
    return apply(CONVOLVE, (x, multiply(a, spread)), node.types[0], **node.attributes)


def _filters_and_positions(type_: TensorType) -> tuple[int, int, int]:
    images, groups, rows, *out = type_.shape
    return images, groups * rows, prod(out)


# Operands (input, filters); the filters are (groups, rows, channels, *taps).
CONVOLVE = Opaque(
    "convolve", _convolve_kernel, finishes=_filters_and_positions, packs=_packs, scales=(1, _scaled)
)
# Operands (left, input), left being (images, groups, rows, positions); results
# (chunks of images, groups, rows, channels * taps).
CORRELATE = Opaque("correlate", _correlate_kernel)


# -- applying them --------------------------------------------------------------------------------


def convolve(x: Value, a: Value, bias: Value | None, out: Extents, windows: Windows) -> Value:
    """Filters `a` (groups, rows, channels, *taps) on windows of `x`, and their `bias` added."""
    shape = (*x.shape[:2], a.shape[1], *out)
    if 0 in shape or 0 in x.shape or 0 in a.shape:
        y = views.broadcast(constant(0, x.dtype), shape)
    else:
        y = apply(CONVOLVE, (x, a), TensorType(shape, x.dtype), **asdict(windows))
    if bias is None:
        return y
    return add(y, views.broadcast(views.reshape(bias, (*shape[1:3], 1, 1, 1)), shape))


def correlate(a: Value, x: Value, out: Extents, windows: Windows) -> Value:
    """Sums of `a` (images, groups, rows, positions) times the windows of `x` there: (groups,
    rows, channels * taps)."""
    images, groups, rows, positions = a.shape
    columns = x.shape[2] * prod(windows.kernel)
    if 0 in a.shape or 0 in x.shape or not columns:
        return views.broadcast(constant(0, x.dtype), (groups, rows, columns))
    flat = (
        x.shape[2] > 1 == x.shape[3] == out[0] == windows.kernel[0] == 1 and windows.origin[0] == 0
    )
    if flat and images > 1 and positions <= _FEW_POSITIONS and columns * groups >= _FEW_COLUMNS:
        return correlate(
            *_one_image(a, x), (images, *out[1:]), replace(windows, stride=(1, *windows.stride[1:]))
        )
    chunks = 1 if columns * groups >= _FEW_COLUMNS else min(images, _CHUNKS)
    type_ = TensorType((chunks, groups, rows, columns), x.dtype)
    parts = apply(CORRELATE, (a, x), type_, out=out, **asdict(windows))
    return reductions.sum(parts, 0) if chunks > 1 else views.reshape(parts, type_.shape[1:])


def _one_image(a: Value, x: Value) -> tuple[Value, Value]:
    """Both with the images along the first axis of space."""
    images, groups, rows, positions = a.shape
    a = views.reshape(views.transpose(a, (1, 2, 0, 3)), (1, groups, rows, images * positions))
    x = views.transpose(x, (3, 1, 2, 0, 4, 5))
    return a, x


def transposed(
    dy: Value, a: Value, bias: Value | None, extents: Extents, windows: Windows
) -> Value:
    """What `convolve` does to an input of `extents`, turned round: each element of `dy` times
    its filters, added where their windows lie. This is the gradient with respect to the input.

    Every phase of the strides meets taps of its own, and is a convolution with stride 1.
    """
    shape = (dy.shape[0], a.shape[0], a.shape[2], *extents)
    if 0 in shape:
        return views.broadcast(constant(0, dy.dtype), shape)
    taps = views.transpose(a, (0, 2, 1, 3, 4, 5))
    axes = zip(extents, *asdict(windows).values(), strict=True)
    parts, places = [], []
    for some in itertools.product(*(phases(*axis) for axis in axes)):
        parts.append(_one_phase(dy, taps, bias, some))
        first = (0, 0, 0, *(p.first for p in some))
        places.append((first, (1, 1, 1, *(p.every for p in some))))
    if len(parts) == 1:
        return parts[0]
    return apply(ASSEMBLE, parts, TensorType(shape, dy.dtype), places=tuple(places), filled=False)


class Phase:
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


def phases(extent: int, kernel: int, stride: int, dilate: int, origin: int) -> list[Phase]:
    """An axis of the input, cut into positions that meet the same taps."""
    count = min(stride, extent)
    return [Phase(first, extent, kernel, stride, dilate, origin) for first in range(count)]


def _one_phase(dy: Value, taps: Value, bias: Value | None, axes: Sequence[Phase]) -> Value:
    groups, channels, rows, *all_ = taps.shape
    kernel = tuple(p.kernel for p in axes)
    starts = tuple(min(p.tap, n - 1) for p, n in zip(axes, all_, strict=True))
    steps = tuple(p.apart for p in axes)
    some = taps
    if kernel != tuple(all_):
        shape = (groups, channels, rows, *kernel)
        some = views.slice_(taps, (0, 0, 0, *starts), (1, 1, 1, *steps), shape)
    dilate, origin = tuple(p.dilate for p in axes), tuple(p.origin for p in axes)
    windows = Windows(kernel, (1, 1, 1), dilate, origin)
    return convolve(dy, some, bias, tuple(p.out for p in axes), windows)


# -- gradients ------------------------------------------------------------------------------------


@adjoint(CONVOLVE)
def _pull_convolve(step: Step) -> Cotangents:
    x, a = step.inputs
    windows, dy = windows_of(step), step.cotangent
    dx = transposed(dy, a, None, x.shape[3:], windows)
    da = views.reshape(correlate(_positions_last(dy), x, dy.shape[3:], windows), a.shape)
    return dx, da


@adjoint(CORRELATE)
def _pull_correlate(step: Step) -> Cotangents:
    a, x = step.inputs
    windows, out, dy = windows_of(step), step.attributes["out"], step.cotangent
    chunks, images = dy.shape[0], a.shape[0]
    bounds = [images * c // chunks for c in range(chunks + 1)]
    of_a, of_x = [], []
    for chunk, (first, last) in enumerate(itertools.pairwise(bounds)):
        filters = _rows(dy, chunk, chunk + 1)
        filters = views.reshape(filters, (*dy.shape[1:3], x.shape[2], *windows.kernel))
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
