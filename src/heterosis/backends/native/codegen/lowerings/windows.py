"""The kernels of convolution, and filters packed for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from math import prod
from typing import Any

from heterosis.backends.native.codegen.costs import PRODUCT_FLOPS
from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import convolution as code
from heterosis.backends.native.codegen.lowerings.native import (
    CONVOLVE_PACKED,
    FOLD,
    PACK_FILTERS,
    PACK_TRANSFORMED,
    TRANSFORM_FILTERS,
)
from heterosis.backends.native.codegen.lowerings.products import packed_right
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.primitives.elementwise import MULTIPLY
from heterosis.ir.primitives.windows import CONVOLVE, CORRELATE, Extents, Windows, windows_of
from heterosis.ir.program import Node, Value, apply
from heterosis.ir.strided import Strided
from heterosis.ir.table_sizes import roughly
from heterosis.ir.types import TensorType

# So few filters on a single channel are too little for tiles of a matrix product.
_FEW_ROWS = 4

# What it takes to add a product up elsewhere, in multiplications; by how much doing so must be
# cheaper, since it goes by way of memory; and how many bytes of it that may be.
_FOLDING, _FOLDING_WORTH, _MOST_FOLDED = 6, 0.8, 1 << 25

# Attributes of a node whose filters are packed: of `Problem`, one of which is not false.
_WAYS: dict[str, int] = {"packed": False, "turned": False, "winograd": 0}
_LEFT = (
    ("a_image", "a_group", "a_row", "a_column", "a_channel", "a_d", "a_h", "a_w")
    + ("chunks",)
)  # fmt: skip


def _problem(
    node: Node, x: Place, rows: int, out: Extents, left: dict[str, int], **kinds: Any
) -> code.Problem:
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
    left, kinds = _packed_or_not(node, a.strided)
    problem = _problem(node, x, rows, tuple(out), left, **kinds)

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_convolve(module, target, name, problem, epilogue)

    depth = x.strided.shape[2] * prod(windows_of(node).kernel)
    return KernelCode(
        key=f"convolve {problem.key}{epilogue.key}",
        emit=emit,
        numbers=problem.sizes,
        scratch_bytes=code.convolve_scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=2 * prod(outputs[0].strided.shape) * depth / PRODUCT_FLOPS,
    )


def _packed_or_not(node: Node, a: Strided) -> tuple[dict[str, int], dict[str, Any]]:
    """How the filters of a node lie, and what kinds of a problem that makes."""
    if node.primitive is CONVOLVE_PACKED:
        return {}, {name: node.attributes[name] for name in _WAYS}
    return _filters(a)


def _filters(a: Strided) -> tuple[dict[str, int], dict[str, Any]]:
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
    kinds = _ways_for_weights(node, x, rows, chunks, left["a_column"], machine)
    problem = _problem(node, x, rows, node.attributes["out"], left, **kinds)

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_correlate(module, target, name, problem)

    return KernelCode(
        key=f"correlate {problem.key}",
        emit=emit,
        numbers=problem.sizes,
        scratch_bytes=code.correlate_scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=2 * prod(a.strided.shape) * columns / PRODUCT_FLOPS,
    )


def _ways_for_weights(
    node: Node, x: Place, rows: int, chunks: int, a_column: int, machine: Machine
) -> dict[str, Any]:
    """What kinds of a problem the gradient of filters makes, whose positions lie so far apart."""
    images, groups, channels, *extents = x.strided.shape
    if a_column != 1:
        return {}
    if channels == 1 and rows <= _FEW_ROWS:
        return {"planes": True}
    w, out = windows_of(node), node.attributes["out"]
    flat = groups == extents[0] == 1 and w.origin[0] == 0
    small = flat and _in_small_steps(w, tuple(extents), out)
    return code.choose_for_weights(
        x.dtype, images, rows, channels, w.kernel, out, machine.target,
        small_steps=small, tasks=chunks * groups,
    )  # fmt: skip


def _in_small_steps(w: Windows, extents: Extents, out: Extents) -> bool:
    """Whether windows and their taps are one apart in a plane, and padding is the same before and
    behind."""
    plane = zip(extents[1:], w.origin[1:], out[1:], w.kernel[1:], strict=True)
    whole = all(n - 2 * o == positions + taps - 1 and o <= 0 for n, o, positions, taps in plane)
    return w.stride[1:] == w.dilate[1:] == (1, 1) and whole


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


def _packs(node: Node, fixed: Callable[[Value], bool], machine: Machine) -> Value | None:
    """Filters that change from call to call are packed by their kernel, but transformed here where
    that pays."""
    x, a = node.inputs
    narrow = a.dtype not in ("float32", "float64")
    if narrow or _is_depthwise(a.shape):
        return None
    windows = windows_of(node)
    upright = _upright(windows)
    kinds, least = _cheapest(node, upright, machine, each_call=not fixed(a))
    if _folds(node, windows) and _folding_pays(product := _products(node), least, machine):
        return _folded(node, _packs(product.node, fixed, machine) or product)
    if "winograd" in kinds:
        packed = _packed_transformed(a, kinds["winograd"], upright != windows, machine)
        windows = upright
    elif fixed(a) or "turned" in kinds:
        packed = _packed_filters(a, kinds, machine)
    else:
        return None
    attributes = asdict(windows) | _WAYS | kinds
    return apply(CONVOLVE_PACKED, (x, packed), node.types[0], **attributes)


def _folds(node: Node, w: Windows) -> bool:
    """Whether each element of the input gives its share to the whole window in front of it."""
    (groups, *_), out, inside = node.inputs[1].shape, node.types[0].shape[3:], node.inputs[0].shape
    whole = all(n == m + t - 1 for n, m, t in zip(out, inside[3:], w.kernel, strict=True))
    plain = w.stride == (1, 1, 1) and w.origin == (0, 0, 0) and w.dilate[1:] == (-1, -1)
    return groups == 1 and w.kernel[0] == inside[3] == 1 and whole and plain


def _folding_pays(product: Value, others: float, machine: Machine) -> bool:
    """Whether it is cheaper than so many multiplications to compute a `product` and add it up."""
    _, own = _cheapest(product.node, windows_of(product.node), machine, each_call=True)
    own += _FOLDING * float(prod(map(roughly, product.shape)))
    return own < _FOLDING_WORTH * others and product.type.nbytes <= _MOST_FOLDED


def _folded(node: Node, product: Value) -> Value:
    """A convolution with taps that go against the input as products of each of its elements with
    each tap, added up where they belong."""
    return apply(FOLD, (product,), node.types[0], kernel=node.attributes["kernel"][1:])


def _products(node: Node) -> Value:
    """A plane of products for each row and tap."""
    x, a = node.inputs
    _, rows, channels, *kernel = a.shape
    places = (0, 1, 3, 4, 5, 2)
    filters = views.reshape(views.transpose(a, places), (1, rows * prod(kernel), channels, 1, 1, 1))
    type_ = TensorType((x.shape[0], 1, rows * prod(kernel), *x.shape[3:]), a.dtype)
    ones = (1, 1, 1)
    return apply(
        CONVOLVE, (x, filters), type_, kernel=ones, stride=ones, dilate=ones, origin=(0, 0, 0)
    )


def _upright(w: Windows) -> Windows:
    """The same windows with taps that go the way of the input, where they go the other way along
    the last two axes."""
    if w.dilate[1:] != (-1, -1):
        return w
    origin = tuple(o - t + 1 for o, t in zip(w.origin[1:], w.kernel[1:], strict=True))
    return replace(w, dilate=(w.dilate[0], 1, 1), origin=(w.origin[0], *origin))


def multiplications(node: Node, machine: Machine) -> float:
    """How many a convolution with packed filters takes, those counted that padding adds."""
    return _cheapest(node, _upright(windows_of(node)), machine, each_call=False)[1]


def _cheapest(
    node: Node, w: Windows, machine: Machine, *, each_call: bool
) -> tuple[dict[str, int], float]:
    """The way to convolve, as attributes of the node, and how many multiplications it takes."""
    x, a = node.inputs
    groups, rows, channels, *kernel = a.shape
    if groups > 1:
        return {"packed": True}, float(node.types[0].size * channels * prod(kernel))
    out = node.types[0].shape[3:]
    small = _in_small_steps(w, x.shape[3:], out)
    return code.choose(
        a.dtype, x.shape[0], rows, channels, tuple(kernel), out, machine.target,
        small_steps=small, each_call=each_call,
    )  # fmt: skip


def _packed_filters(a: Value, kinds: dict[str, int], machine: Machine) -> Value:
    if "turned" in kinds:
        columns = views.reshape(a, (a.shape[1], prod(a.shape[2:])))
        return packed_right(views.transpose(columns, (1, 0)), machine)
    numbers = code.packed_numbers(_packed_problem(a, {}), machine.target)
    return apply(PACK_FILTERS, (a,), TensorType((numbers,), a.dtype))


def transformed(a: Value, m: int) -> Value:
    """Filters of 3 x 3 taps, and any number in depth, for tiles of `m` x `m` results: (places in a
    tile, rows, channels * depth, 1, 1, 1)."""
    flat = _flat(a)
    type_ = TensorType((code.span(m) ** 2, *flat.shape[1:3], 1, 1, 1), a.dtype)
    return apply(TRANSFORM_FILTERS, (flat,), type_, winograd=m)


def _packed_transformed(a: Value, m: int, turned: bool, machine: Machine) -> Value:
    """The same packed for a convolution. If `turned`, the taps of a plane are in reverse order."""
    flat = _flat(a)
    _, rows, channels, *_ = flat.shape
    numbers = code.packed_transformed_numbers(rows, channels, m, machine.target)
    type_ = TensorType((numbers,), a.dtype)
    return apply(PACK_TRANSFORMED, (flat,), type_, winograd=m, turned=turned)


def _flat(a: Value) -> Value:
    """Filters of 3 x 3 taps and some in depth, which count as channels."""
    _, rows, channels, deep, *taps = a.shape
    return views.reshape(a, (1, rows, channels * deep, 1, *taps))


def _transform_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    m, dtype = node.attributes["winograd"], node.types[0].dtype

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_transform_filters(module, target, name, dtype, m)

    return KernelCode(
        key=f"transform filters {dtype} {m}",
        emit=emit,
        numbers=_filter_numbers(node, inputs[0]),
        nanoseconds=prod(outputs[0].strided.shape),
    )


def _pack_transformed_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    m = node.attributes["winograd"]

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_pack_transformed(module, target, name, m)

    return KernelCode(
        key=f"pack transformed filters {m}",
        emit=emit,
        numbers=_filter_numbers(node, inputs[0]),
        scratch_bytes=code.pack_transformed_scratch_bytes(machine.target, machine.workers),
        nanoseconds=prod(outputs[0].strided.shape),
    )


def _filter_numbers(node: Node, a: Place) -> tuple[int, ...]:
    """The sizes of filters of 3 x 3 taps, where the first tap is, and strides."""
    _, rows, channels, *_ = a.strided.shape
    _, row, channel, _, h, w = a.strided.strides
    first = 0
    if node.attributes.get("turned"):
        first, h, w = 2 * (h + w), -h, -w
    return rows, channels, first, row, channel, h, w


def _fold_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    (x,), dtype = inputs, node.types[0].dtype
    down, across = node.attributes["kernel"]
    images, _, planes, _, height, width = x.strided.shape

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_fold(module, target, name, dtype)

    return KernelCode(
        key=f"fold {dtype}",
        emit=emit,
        numbers=(images * planes // (down * across), down, across, height, width),
        nanoseconds=prod(x.strided.shape) / 4,
    )


def _scaled(node: Node, factors: Value) -> Value:
    x, a = node.inputs
    spread = views.broadcast(views.reshape(factors, (*a.shape[:2], 1, 1, 1, 1)), a.shape)
    filters = apply(MULTIPLY, (a, spread), a.type)
    return apply(CONVOLVE, (x, filters), node.types[0], **node.attributes)


def _read_by_rows(node: Node) -> tuple[int, ...]:
    """The image, unless it is read once, for tiles, or windows are too far apart for vectors."""
    tiles = bool(node.attributes.get("winograd"))
    return () if tiles or windows_of(node).stride[-1] > 2 else (0,)


def _filters_and_positions(type_: TensorType) -> tuple[int, int, int]:
    images, groups, rows, *out = type_.shape
    return images, groups * rows, prod(out)


KERNELS[CONVOLVE] = KernelLowering(
    _convolve_kernel,
    by_rows=_read_by_rows,
    finishes=_filters_and_positions,
    packs=_packs,
    scales=(1, _scaled),
)
KERNELS[CONVOLVE_PACKED] = KernelLowering(
    _convolve_kernel, by_rows=_read_by_rows, finishes=_filters_and_positions
)
KERNELS[CORRELATE] = KernelLowering(_correlate_kernel, by_rows=lambda node: (0, 1))
KERNELS[PACK_FILTERS] = KernelLowering(_pack_kernel, gapless=True)
KERNELS[TRANSFORM_FILTERS] = KernelLowering(_transform_kernel)
KERNELS[PACK_TRANSFORMED] = KernelLowering(_pack_transformed_kernel)
KERNELS[FOLD] = KernelLowering(_fold_kernel, gapless=True)
