"""Networks whose convolutions mix channels or positions, but not both, keep their channels last.

With channels last, a convolution of single positions is a matrix product that reads its rows as they
lie, and one of single channels has whole vectors of them at every tap. Users see channels second:
arrays are turned where they enter such a part of a program, and where they leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from heterosis.codegen import abi
from heterosis.codegen import channels_last as code
from heterosis.codegen.builder import I64, PTR, Module
from heterosis.codegen.epilogue import Epilogue
from heterosis.codegen.kernel import KernelCode, Machine, Multiplied, Place
from heterosis.codegen.lowerings.products import packed_depth, packed_right
from heterosis.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.primitives.families import Elementwise, Opaque
from heterosis.ir.primitives.windows import CONVOLVE, windows_of
from heterosis.ir.program import ASSEMBLE, Node, Program, Value, apply, constant, with_inputs
from heterosis.ir.types import TensorType, numpy_dtype
from heterosis.ops.linear import product
from heterosis.passes.preparation import Fixed

if TYPE_CHECKING:
    from heterosis.codegen.matmul import Problem as Product

_FLOPS_A_NANOSECOND = 50.0
# What an element costs that is turned on its way in or out, in multiplications that go faster with
# channels last.
_TURNING = 200
# Bytes of a result that are still in the second-level cache when the next kernel reads them.
_KEPT = 1 << 20
# Which part of the multiplications these must be: windows of many channels have faster ways.
_MOST = 0.9

Extents = tuple[int, ...]


# -- kernels --------------------------------------------------------------------------------------


def _problem(node: Node) -> code.Problem:
    images, in_h, in_w, channels = node.inputs[0].shape
    filters = node.types[0].shape[-1]
    facts = node.attributes
    pairs = (facts["kernel"], facts["out"], (in_h, in_w), *(facts[name] for name in _STEPS))
    return code.Problem(
        node.types[0].dtype, (images, channels, filters, *(n for pair in pairs for n in pair))
    )


_STEPS = ("stride", "dilate", "origin")


def _product_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    problem = _problem(node)
    depth = prod(node.attributes["kernel"]) * node.inputs[0].shape[-1]
    return KernelCode(
        key=f"convolve last {problem.dtype}{epilogue.key}",
        emit=_emission(code.emit_product, problem, epilogue, scratch=False),
        numbers=problem.sizes,
        nanoseconds=2 * node.types[0].size * depth / _FLOPS_A_NANOSECOND,
    )


def _depthwise_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    problem = _problem(node)
    taps = prod(node.attributes["kernel"])
    return KernelCode(
        key=f"depthwise last {problem.dtype} {problem.windows()}{epilogue.key}",
        emit=_emission(code.emit_depthwise, problem, epilogue, scratch=True),
        numbers=problem.sizes,
        scratch_bytes=code.depthwise_scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=2 * node.types[0].size * taps / _FLOPS_A_NANOSECOND,
        behind=partial(_behind, problem, epilogue, machine),
    )


def _emission(
    emit_core: Callable[..., None], problem: code.Problem, epilogue: Epilogue, *, scratch: bool
) -> Callable[[Module, Target, str], None]:
    """What defines `@name`, which hands on to the core what that takes."""

    def emit(module: Module, target: Target, name: str) -> None:
        ended = None if epilogue.is_empty else epilogue
        emit_core(module, target, f"{name}.product", problem, ended)
        labels = epilogue.parameters(("call", "x", "a"), ("y", "scratch"), problem.parameters())
        f = module.function(name, labels)
        (call, x, a, y, room, *numbers), words = epilogue.split(f.parameters, 3, 2)
        call = abi.with_workspace(f, call, abi.workspace(f, call), words)
        f.call(f"{name}.product", [call, x, a, y, *([room] if scratch else []), *numbers])
        f.ret()

    return emit


def _behind(
    problem: code.Problem, epilogue: Epilogue, machine: Machine, own: KernelCode, other: KernelCode
) -> KernelCode | None:
    """A convolution of single channels that asks the product before it for its input, line by
    line: where that is large, it would be gone from the cache when it is read."""
    before, sizes = other.product, problem.known()
    if before is None or not _is_by_panels(before.problem, problem.dtype):
        return None
    product = dict(zip(before.labels, other.numbers, strict=False))
    positions = sizes["images"] * sizes["in_h"] * sizes["in_w"]
    shape = (positions, sizes["channels"], sizes["channels"])
    whole = (product["m"], product["n"], product["c_row"]) == shape
    large = positions * sizes["channels"] * numpy_dtype(problem.dtype).itemsize > _KEPT
    panels = sizes["channels"] % code.panel_columns(problem, machine.target) == 0
    deep = product["k"] <= packed_depth(product["k"], problem.dtype, machine)
    if not (whole and large and panels and deep):
        return None

    def emit(module: Module, target: Target, name: str) -> None:
        _emit_behind(module, target, name, problem, epilogue, before)

    return KernelCode(
        key=f"{own.key} behind {other.key}",
        emit=emit,
        numbers=other.numbers + own.numbers,
        scratch_bytes=own.scratch_bytes,
        nanoseconds=other.nanoseconds + own.nanoseconds,
    )


def _is_by_panels(product: Product, dtype: str) -> bool:
    """Whether it is a single product that reads a row as it lies, whenever it is asked."""
    return product.variant == "panels" and not product.batch and product.dtype == dtype


def _emit_behind(
    module: Module, target: Target, name: str, problem: code.Problem, epilogue: Epilogue,
    before: Multiplied,
) -> None:  # fmt: skip
    """Define `@name`, which takes the pointers of both kernels, then the numbers of both."""
    ended, first = (None if e.is_empty else e for e in (epilogue, before.epilogue))
    code.emit_depthwise(module, target, f"{name}.product", problem, ended, code.Before(first))
    theirs = before.epilogue.parameters(("x", "panels"), (), [(n, I64) for n in before.labels])
    mine = epilogue.parameters(("a",), ("y", "scratch"), problem.parameters())
    both = [(f"before_{label}", type_) for label, type_ in theirs] + mine
    labels = [("call", PTR), *sorted(both, key=lambda parameter: parameter[1] != PTR)]
    f = module.function(name, labels)
    found = {label: value for (label, _), value in zip(labels, f.parameters, strict=True)}
    (x, panels, *numbers), words = before.epilogue.split(
        [found[f"before_{label}"] for label, _ in theirs], 2, 0
    )
    product = dict(zip(before.labels, numbers, strict=True))
    (a, y, scratch, *numbers), own = epilogue.split([found[label] for label, _ in mine], 1, 2)
    workspace = abi.workspace(f, found["call"])
    call, call_before = (
        abi.with_workspace(f, found["call"], workspace, some) for some in (own, words)
    )
    needed = [call_before, x, panels, product["a_row"], product["k"]]
    f.call(f"{name}.product", [call, x, a, y, scratch, *numbers, *needed])
    f.ret()


def _one_matrix(type_: TensorType) -> tuple[int, int, int]:
    return 1, prod(type_.shape[:-1]), type_.shape[-1]


# Operands: an input (images, height, width, channels) with its padding, and filters as the right
# operand of a product, packed. Results (images, positions, filters).
_WINDOWS = Opaque("convolve_last", _product_kernel, gapless=True, finishes=_one_matrix)
# Operands: an input (images, height, width, channels), and weights as such an operand: rows for taps.
_DEPTHWISE = Opaque("depthwise_last", _depthwise_kernel, gapless=True, finishes=_one_matrix)


# -- convolutions with channels last ---------------------------------------------------------------


def _pointwise(x: Value, node: Node, machine: Machine) -> Value:
    """`x` and results are (images, positions, channels)."""
    images, positions, channels = x.shape
    rows = views.reshape(x, (images * positions, channels))
    found = product("convolution", rows, _columns(node.inputs[1]))
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
    packed = packed_right(_columns(node.inputs[1]), machine)
    return _applied(_WINDOWS, seen, packed, node, (0, 0))


def _padded(x: Value, around: list[tuple[int, int]]) -> Value:
    """Zeros before and behind the two axes of space."""
    if not any(map(any, around)):
        return x
    images, *extents, channels = x.shape
    whole = (b + n + a for n, (b, a) in zip(extents, around, strict=True))
    place = ((0, around[0][0], around[1][0], 0), (1,) * 4)
    type_ = TensorType((images, *whole, channels), x.dtype)
    return apply(ASSEMBLE, (constant(0, x.dtype), x), type_, places=(place,), filled=True)


def _depthwise(x: Value, node: Node, machine: Machine) -> Value:
    extents, a = node.inputs[0].shape[4:], node.inputs[1]
    seen = views.reshape(x, (x.shape[0], *extents, x.shape[2]))
    taps = views.transpose(views.reshape(a, (a.shape[0], prod(a.shape[3:]))), (1, 0))
    return _applied(
        _DEPTHWISE, seen, packed_right(taps, machine), node, windows_of(node).origin[1:]
    )


def _applied(primitive: Opaque, x: Value, a: Value, node: Node, origin: Extents) -> Value:
    w = windows_of(node)
    images, groups, rows, _, *out = node.types[0].shape
    type_ = TensorType((images, prod(out), groups * rows), x.dtype)
    steps = dict(zip(_STEPS, (w.stride[1:], w.dilate[1:], origin), strict=True))
    return apply(primitive, (x, a), type_, kernel=w.kernel[1:], out=tuple(out), **steps)


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
    if not (flat and forwards and _is_one_block(node, machine)):
        return None
    if groups > 1:
        lanes = machine.target.lanes(numpy_dtype(a.dtype).itemsize)
        return _depthwise if a.shape[1:3] == (1, 1) and groups % lanes == 0 else None
    return _windows if w.dilate == (1, 1, 1) else None


def _is_one_block(node: Node, machine: Machine) -> bool:
    """Whether the filters are packed in one block of depth: the kernels here know no others."""
    a = node.inputs[1]
    deep = prod(a.shape[2:])
    return deep <= packed_depth(deep, a.dtype, machine)


@dataclass
class _Part:
    """Convolutions with nothing but elementwise work between them."""

    ways: dict[Node, Way | None] = field(default_factory=dict)
    turned: int = 0  # elements that enter or leave

    @property
    def is_worth(self) -> bool:
        work = {node: _multiplications(node) for node in self.ways}
        fast = sum(n for node, n in work.items() if self.ways[node] in (_pointwise, _depthwise))
        slow = sum(work.values()) - fast
        return None not in self.ways.values() and (
            fast > _TURNING * self.turned and slow <= (1 - _MOST) * (fast + slow)
        )


def _multiplications(node: Node) -> int:
    return node.types[0].size * prod(node.inputs[1].shape[2:])


class _Parts:
    """The parts of a program, found by the values in them."""

    def __init__(self, program: Program, known: Callable[[Value], bool], machine: Machine):
        self._above: dict[
            Value, Value
        ] = {}  # another value of the same part; the top one's, itself
        self._parts: dict[Value, _Part] = {}
        nodes = list(program.nodes())
        for node in nodes:
            self._connect(node)
        for node in nodes:
            if node.primitive is CONVOLVE:
                self.of(node.outputs[0]).ways[node] = _way(node, known, machine)
                self._count(node.outputs[0], [v for v in node.inputs[:1] if v not in self._above])
            elif node.outputs[0] not in self._above:
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
        elif node.primitive is views.RESHAPE or isinstance(node.primitive, Elementwise):
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
        return self._parts.setdefault(self._top(value), _Part())


def channels_last(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    """`program` with channels last inside the parts where that pays; the filters there depend on
    the inputs `fixed` alone."""
    known = Fixed(fixed)
    for node in program.nodes():
        known.tells_of(node)
    parts = _Parts(program, known, machine)
    turning = _Turning(machine)
    for node in program.nodes():
        way = parts.of(node.outputs[0]).ways[node] if node.primitive is CONVOLVE else None
        worth = way is not None and parts.of(node.outputs[0]).is_worth
        turning.visit(node, way if worth else None)
    outputs = tuple(turning.made[value] for value in program.outputs)
    return Program(program.inputs, outputs, program.name)


class _Turning:
    """A program in the making: `made` has what became of a value, and `last`, of some, the same as
    (images, positions, channels)."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.made: dict[Value, Value] = {}
        self.last: dict[Value, Value] = {}

    def visit(self, node: Node, way: Way | None) -> None:
        (value, *_) = node.outputs
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
            shape = (images, prod(extents), groups * channels)
            here = with_inputs(node, (self.made[x], self.made[a]))
            return way(self._turned(x, shape), here, self.machine)
        inside = [v for v in node.inputs if v in self.last]
        if not inside:
            return None
        if node.primitive is views.RESHAPE:
            return self.last[node.inputs[0]]
        if not isinstance(node.primitive, Elementwise):
            return None
        shape = self.last[inside[0]].shape
        operands = [self._turned(v, shape) for v in node.inputs]
        type_ = TensorType(shape, node.types[0].dtype)
        return apply(node.primitive, operands, type_, **node.attributes)

    def _turned(self, value: Value, shape: Extents) -> Value:
        """A value as (images, positions, channels)."""
        if value in self.last and self.last[value].shape == shape:
            return self.last[value]
        images, positions, channels = shape
        second = views.reshape(self.made[value], (images, channels, positions))
        return views.transpose(second, (0, 2, 1))
