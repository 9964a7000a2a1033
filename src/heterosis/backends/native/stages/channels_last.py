"""Parts of networks keep their channels last, where their convolutions are faster so.

With channels last, a convolution is a matrix product that reads its rows as they lie, one in groups
has whole vectors of filters at every tap, and so have pooling and the tiles of 3 x 3 taps,
which take half the multiplications or less. With channels second, windows have to be gathered, and
elements sorted. Users see channels second: arrays are turned where they enter such a part of a
program, and where they leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod

import heterosis.backends.native.codegen.lowerings.channels_last  # noqa: F401 (the rows of its primitives)
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.kernels.channels_last import takes_groups
from heterosis.backends.native.codegen.kernels.convolution.tiles import FILTERS, TAPS, span
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.panels import TALLEST, rows_computed
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.lowerings.native import (
    CONVOLVE_LAST,
    GROUPED_LAST,
    TILES_LAST,
)
from heterosis.backends.native.codegen.lowerings.products import packed_right
from heterosis.backends.native.codegen.lowerings.windows import multiplications, transformed
from heterosis.ir import views
from heterosis.ir.primitives.families import Elementwise, Opaque, Reduction, Scan
from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.primitives.windows import CONVOLVE, Extents, windows_of
from heterosis.ir.program import ASSEMBLE, Node, Program, Value, apply, constant, with_inputs
from heterosis.ir.table_sizes import roughly
from heterosis.ir.types import TensorType, numpy_dtype
from heterosis.passes.preparation import Fixed

# What an element costs that is turned on its way in or out, in multiplications that go faster with
# channels last.
_TURNING = 200
# Which part of the multiplications these must be: windows of many channels may have faster ways.
_MOST = 0.9
# The same price where windows of many channels are compared with their fastest way, whose
# multiplications cost more, as windows are gathered there.
_TURNING_WINDOWS, _GATHERED = 50, 1.12
# What it takes to transform an element of a tile of 3 x 3 taps, and to fetch a weight, which may
# come from memory, in multiplications.
_TRANSFORM, _WEIGHT = 10, 6
# Such tiles need more memory and are less exact: by how much they must be cheaper.
_TILES_WORTH = 0.85


# -- convolutions with channels last ---------------------------------------------------------------


def _pointwise(x: Value, node: Node, machine: Machine) -> Value:
    """`x` and results are (images, positions, channels)."""
    images, positions, channels = x.shape
    rows = views.reshape(x, (images * positions, channels))
    columns = _columns(node.inputs[1])
    found = apply(MATMUL, (rows, columns), TensorType((rows.shape[0], columns.shape[1]), x.dtype))
    return views.reshape(found, (images, positions, found.shape[1]))


def _columns(a: Value) -> Value:
    """Filters (1, rows, channels, 1, *taps) as a right operand: rows for taps and channels."""
    _, rows, channels, _, *taps = a.shape
    last = views.transpose(views.reshape(a, (rows, channels, *taps)), (2, 3, 1, 0))
    return views.reshape(last, (prod(taps) * channels, rows))


def _windows(x: Value, node: Node, machine: Machine) -> Value:
    """Windows of several taps, or with steps between them."""
    w, extents, out = windows_of(node), node.inputs[0].shape[4:], node.types[0].shape[4:]
    around = []
    for n, kernel, stride, origin, count in zip(
        extents, w.kernel[1:], w.stride[1:], w.origin[1:], out, strict=True
    ):
        around.append((-origin, max(0, (count - 1) * stride + kernel + origin - n)))
    seen = _padded(views.reshape(x, (x.shape[0], *extents, x.shape[2])), around)
    packed = packed_right(_columns(node.inputs[1]), machine, one_block=True)
    return _applied(CONVOLVE_LAST, seen, packed, node, (0, 0))


def _padded(x: Value, around: list[tuple[int, int]]) -> Value:
    """Zeros before and behind the two axes of space."""
    if not any(map(any, around)):
        return x
    images, *extents, channels = x.shape
    whole = (b + n + a for n, (b, a) in zip(extents, around, strict=True))
    place = ((0, around[0][0], around[1][0], 0), (1,) * 4)
    type_ = TensorType((images, *whole, channels), x.dtype)
    return apply(ASSEMBLE, (constant(0, x.dtype), x), type_, places=(place,), filled=True)


def _grouped(x: Value, node: Node, machine: Machine) -> Value:
    """As many filters as channels in every group."""
    extents, a = node.inputs[0].shape[4:], node.inputs[1]
    seen = views.reshape(x, (x.shape[0], *extents, x.shape[2]))
    groups, filters, width, _, high, wide = a.shape
    taps = views.transpose(views.reshape(a, (groups * filters, width, high, wide)), (2, 1, 3, 0))
    columns = views.reshape(taps, (high * width * wide, groups * filters))
    packed = packed_right(columns, machine, one_block=True)
    return _applied(GROUPED_LAST, seen, packed, node, windows_of(node).origin[1:], width=width)


def _in_tiles(x: Value, node: Node, machine: Machine, m: int) -> Value:
    """Windows of 3 x 3 taps with no steps between them, in tiles of `m` x `m` results."""
    extents, a = node.inputs[0].shape[4:], node.inputs[1]
    seen = views.reshape(x, (x.shape[0], *extents, x.shape[2]))
    _, rows, channels, *_ = a.shape
    places = views.reshape(transformed(a, m), ((m + 2) ** 2, rows, channels))
    turned = views.transpose(places, (0, 2, 1))
    columns = views.reshape(turned, (turned.shape[0] * channels, rows))
    packed = packed_right(columns, machine, one_block=True)
    return _applied(TILES_LAST, seen, packed, node, windows_of(node).origin[1:], winograd=m)


def _applied(
    primitive: Opaque, x: Value, a: Value, node: Node, origin: Extents, **more: int
) -> Value:
    w = windows_of(node)
    images, groups, rows, _, *out = node.types[0].shape
    type_ = TensorType((images, prod(out), groups * rows), x.dtype)
    steps = dict(
        zip(("stride", "dilate", "origin"), (w.stride[1:], w.dilate[1:], origin), strict=True)
    )
    return apply(primitive, (x, a), type_, kernel=w.kernel[1:], out=tuple(out), **steps, **more)


# -- which convolutions ----------------------------------------------------------------------------

Way = Callable[[Value, Node, Machine], Value]


def _way(node: Node, known: Callable[[Value], bool], machine: Machine) -> Way | None:
    """How to compute a convolution with channels last; None if there is no good way."""
    x, a = node.inputs
    w, (_, groups, _, *out) = windows_of(node), node.types[0].shape
    if not known(a) or a.dtype not in ("float32", "float64"):
        return None
    if groups == 1 and w.kernel == w.stride == (1, 1, 1) and (*out,) == x.shape[3:]:
        return _pointwise
    flat = out[0] == x.shape[3] == w.kernel[0] == 1 and w.origin[0] == 0
    forwards = min(w.dilate) >= 1 and max(w.origin) <= 0
    if not (flat and forwards):
        return None
    if groups > 1:
        return _grouped if _is_in_vectors(a, machine) else None
    if w.dilate != (1, 1, 1):
        return None
    _, m = _least(node, machine)
    return partial(_in_tiles, m=m) if m else _windows


def _is_in_vectors(a: Value, machine: Machine) -> bool:
    """Whether every group has as many filters as channels, and vectors run along these."""
    groups, filters, width, *_ = a.shape
    lanes = machine.target.lanes(numpy_dtype(a.dtype).itemsize)
    in_vectors = groups * filters % lanes == 0 and takes_groups(width, machine.target, a.dtype)
    return filters == width and in_vectors


def _least(node: Node, machine: Machine) -> tuple[float, int]:
    """How many multiplications a convolution of one group takes here, or as good as takes, and the
    tiles that this is for: of so many results along a side, or 0 where windows are multiplied."""
    _, filters, channels, *_ = node.inputs[1].shape
    images, _, _, *out = map(roughly, node.types[0].shape)
    dtype, w = node.types[0].dtype, windows_of(node)
    shape = tile(machine.target, element(dtype, machine.target))
    tall = min(shape.rows, TALLEST)
    best = float(rows_computed(tall, images * prod(out)) + _WEIGHT) * prod(w.kernel), 0
    plain = w.kernel == (1, TAPS, TAPS) and w.stride == w.dilate == (1, 1, 1)
    if plain and dtype == "float32" and filters % shape.lanes == channels % shape.lanes == 0:
        around = 1 + _TRANSFORM / filters + _TRANSFORM / channels
        for m in FILTERS:
            tiles = rows_computed(tall, images * prod(-(-n // m) for n in out[1:]))
            best = min(best, (span(m) ** 2 * (tiles * around + _WEIGHT) / _TILES_WORTH, m))
    padded = -(-filters // shape.columns) * shape.columns
    return best[0] * padded * channels, best[1]


@dataclass
class _Part:
    """Convolutions with nothing between them but elementwise work, pooling and concatenation."""

    machine: Machine
    ways: dict[Node, Way | None] = field(default_factory=dict)
    turned: int = 0  # elements that enter or leave

    @cached_property
    def is_worth(self) -> bool:
        """Once all of the part is known, each of whose convolutions asks."""
        if None in self.ways.values():
            return False
        work = {node: roughly(_multiplications(node)) for node in self.ways}
        turned = roughly(self.turned)
        fast = sum(n for node, n in work.items() if self._is_fast(node))
        slow = sum(work.values()) - fast
        mostly = fast > _TURNING * turned and slow <= (1 - _MOST) * (fast + slow)
        return mostly or (
            _grouped not in self.ways.values()
            and sum(map(self._spared, self.ways)) > _TURNING_WINDOWS * turned
        )

    def _is_fast(self, node: Node) -> bool:
        """Whether nothing is gathered for it: rows are read as they lie, if with steps."""
        return self.ways[node] is _grouped or windows_of(node).kernel == (1, 1, 1)

    def _spared(self, node: Node) -> float:
        """How many multiplications fewer, or as good as fewer, a convolution takes."""
        return _GATHERED * multiplications(node, self.machine) - _least(node, self.machine)[0]


def _multiplications(node: Node) -> int:
    return node.types[0].size * prod(node.inputs[1].shape[2:])


def _is_plain(node: Node) -> bool:
    """Whether a node moves or computes elements with no regard to how its operands lie."""
    primitive = node.primitive
    return primitive in (views.RESHAPE, views.SLICE, ASSEMBLE) or isinstance(primitive, Elementwise)


def _is_over_space(node: Node) -> bool:
    """Whether a node reduces every plane to one element: channels may lie as they like."""
    primitive = node.primitive
    if not isinstance(primitive, Reduction) or isinstance(primitive, Scan):
        return False
    ndim = node.inputs[0].ndim
    return ndim > 2 and sorted(node.attributes["axes"]) == [*range(2, ndim)]


class _Parts:
    """The parts of a program, found by the values in them."""

    def __init__(self, program: Program, known: Callable[[Value], bool], machine: Machine):
        self._above: dict[
            Value, Value
        ] = {}  # another value of the same part; the top one's, itself
        self._parts: dict[Value, _Part] = {}
        self._machine = machine
        nodes = list(program.nodes())
        for node in nodes:
            self._connect(node)
        for node in nodes:
            if node.primitive is CONVOLVE:
                self.of(node.outputs[0]).ways[node] = _way(node, known, machine)
                self._count(node.outputs[0], [v for v in node.inputs[:1] if v not in self._above])
            elif node.outputs[0] not in self._above and not _is_over_space(node):
                self._leave(node.inputs)
        self._leave(program.outputs)

    def _leave(self, values: Collection[Value]) -> None:
        for value in values:
            if value in self._above:
                self._count(value, [value])

    def _count(self, value: Value, turned: Collection[Value]) -> None:
        """The part of `value` has to turn these."""
        self.of(value).turned += sum(v.size for v in turned)

    def _connect(self, node: Node) -> None:
        (value, *_) = node.outputs
        if node.primitive is CONVOLVE:
            inside = [v for v in node.inputs[:1] if v in self._above]
        elif _is_plain(node):
            inside = [v for v in node.inputs if v in self._above]
            if not inside:
                return
        else:
            return
        self._above[value] = value
        for other in inside:
            self._above[self._top(other)] = self._top(value)

    def _top(self, value: Value) -> Value:
        while self._above[value] != value:
            self._above[value] = self._above[self._above[value]]
            value = self._above[value]
        return value

    def of(self, value: Value) -> _Part:
        return self._parts.setdefault(self._top(value), _Part(self._machine))


def channels_last(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    """`program` with channels last inside the parts where that pays; the filters there depend on
    the inputs `fixed` alone."""
    known = Fixed(fixed)
    for node in program.nodes():
        known.is_fixed(node)
    parts = _Parts(program, known, machine)
    turning = _Turning(machine)
    for node in program.nodes():
        way = parts.of(node.outputs[0]).ways[node] if node.primitive is CONVOLVE else None
        worth = way is not None and parts.of(node.outputs[0]).is_worth
        turning.visit(node, way if worth else None)
    outputs = tuple(turning.made[value] for value in program.outputs)
    return program if outputs == program.outputs else Program(program.inputs, outputs, program.name)


class _Turning:
    """A program in the making: `made` has what became of a value, and `last`, of some, the same as
    (images, positions, channels)."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.made: dict[Value, Value] = {}
        self.last: dict[Value, Value] = {}

    def visit(self, node: Node, way: Way | None) -> None:
        (value, *_) = node.outputs
        if _is_over_space(node) and self._is_second(node.inputs[0]):
            self.made[value] = self._reduced(node)
            return
        found = self._found(node, way)
        if found is None:
            here = with_inputs(node, tuple(self.made[v] for v in node.inputs))
            self.made.update(zip(node.outputs, here.outputs, strict=True))
            return
        self.last[value] = found
        self.made[value] = views.reshape(views.transpose(found, (0, 2, 1)), value.shape)

    def _found(self, node: Node, way: Way | None) -> Value | None:
        """The result with channels last, if its operands are there so or the node has a `way`."""
        if way is not None:
            x, a = node.inputs
            images, groups, channels, *extents = x.shape
            lines = (images, prod(extents), groups * channels)
            here = with_inputs(node, (self.made[x], self.made[a]))
            return way(self._turned(x, lines), here, self.machine)
        inside = [v for v in node.inputs if v in self.last]
        if not inside:
            return None
        if node.primitive is views.RESHAPE:
            return self.last[node.inputs[0]]
        if node.primitive is views.SLICE:
            return self._sliced(node)
        if node.primitive is ASSEMBLE:
            return self._assembled(node)
        if not isinstance(node.primitive, Elementwise):
            return None
        shape = self.last[inside[0]].shape
        operands = [self._turned(v, shape) for v in node.inputs]
        type_ = TensorType(shape, node.types[0].dtype)
        return apply(node.primitive, operands, type_, **node.attributes)

    def _sliced(self, node: Node) -> Value | None:
        (x,) = node.inputs
        if not self._is_second(x):
            return None
        starts, steps = (_last(node.attributes[name]) for name in ("starts", "steps"))
        seen = views.reshape(self.last[x], _last(x.shape))
        return _in_lines(views.slice_(seen, starts, steps, _last(node.types[0].shape)))

    def _assembled(self, node: Node) -> Value | None:
        fill, parts = node.inputs[: node.attributes["filled"]], node.inputs
        parts = parts[len(fill) :]
        if not all(self._is_second(part) for part in parts if part in self.last):
            return None
        places = tuple((_last(starts), _last(steps)) for starts, steps in node.attributes["places"])
        turned = [
            views.reshape(
                self._turned(v, (v.shape[0], prod(v.shape[2:]), v.shape[1])), _last(v.shape)
            )
            for v in parts
        ]
        type_ = TensorType(_last(node.types[0].shape), node.types[0].dtype)
        whole = apply(
            ASSEMBLE, (*(self.made[v] for v in fill), *turned), type_,
            places=places, filled=bool(fill),
        )  # fmt: skip
        return _in_lines(whole)

    def _reduced(self, node: Node) -> Value:
        """What planes are reduced to, with channels last: (images, channels)."""
        lines = self.last[node.inputs[0]]
        return apply(node.primitive, (lines,), node.types[0], **node.attributes | {"axes": (1,)})

    def _is_second(self, value: Value) -> bool:
        """Whether a value has its images and channels as its first two axes, and is in `last`."""
        if value not in self.last:
            return False
        images, _, channels = self.last[value].shape
        return value.ndim > 2 and value.shape[:2] == (images, channels)

    def _turned(self, value: Value, shape: Extents) -> Value:
        """A value as (images, positions, channels)."""
        if value in self.last and self.last[value].shape == shape:
            return self.last[value]
        images, positions, channels = shape
        second = views.reshape(self.made[value], (images, channels, positions))
        return views.transpose(second, (0, 2, 1))


def _last(numbers: Extents) -> Extents:
    """Numbers for every axis, with the second axis last."""
    images, channels, *space = numbers
    return (images, *space, channels)


def _in_lines(value: Value) -> Value:
    """A value with its channels last as (images, positions, channels)."""
    images, *space, channels = value.shape
    return views.reshape(value, (images, prod(space), channels))
