"""Scales and shifts behind a product with parameters move into the parameters.

Normalisation in inference is `(y - mean) * scale + beta`, one number each for every channel: the
weights take the scale, and one shift is left. Results differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from heterosis.backends.native.codegen.tables import kernel
from heterosis.backends.native.schedule.epilogues import Uses
from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD, MULTIPLY, NEGATIVE, SUBTRACT
from heterosis.ir.primitives.families import Opaque, Primitive, View
from heterosis.ir.program import CONSTANT, Node, Program, Value, apply, with_inputs
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType, is_float
from heterosis.passes.preparation import Fixed


def folded(program: Program, fixed: Collection[Value]) -> Program:
    """`program` with every scale and shift of a product that depends on the inputs `fixed` alone
    as part of its weights, and of one shift."""
    if not fixed:
        return program
    uses, known = Uses(program), Fixed(fixed)
    ends: dict[Value, _Chain] = {}
    for node in program.nodes():
        known.is_fixed(node)
    for node in program.nodes():
        scaling = _scaling(node)
        if scaling and known(node.inputs[1]):
            chain = _chain(node, scaling, uses, known)
            if chain.worth:
                ends[chain.end] = chain
    if not ends:
        return program
    made: dict[Value, Value] = {}
    for node in program.nodes():
        here = with_inputs(node, tuple(made[value] for value in node.inputs))
        made.update(zip(node.outputs, here.outputs, strict=True))
        (end, *_) = node.outputs
        if end in ends:
            made[end] = ends[end].rebuilt(made)
    return Program(program.inputs, tuple(made[v] for v in program.outputs), program.name)


class _Scaling(NamedTuple):
    """The axis of a product's channels, the product with a scale for each of them in its weights,
    and its (batches, rows, columns)."""

    axis: int
    scaled: Callable[[Node, Value], Value]
    shape: tuple[int, int, int]


def _scaling(node: Node) -> _Scaling | None:
    """How a product takes scales; None if it is none, or takes no scales."""
    lowering = kernel(node.primitive) if isinstance(node.primitive, Opaque) else None
    if lowering is None or lowering.scales is None:
        return None
    assert lowering.finishes is not None, f"{node.primitive} has scales along no axis"
    return _Scaling(*lowering.scales, lowering.finishes(node.types[0]))


@dataclass
class _Chain:
    """A product, times `scale`, plus `shift`, which have a number for each of its channels."""

    product: Node
    scaling: _Scaling
    end: Value
    scale: Value | None = None
    shift: Value | None = None
    steps: int = 0

    @property
    def worth(self) -> bool:
        return self.steps > 1 or self.scale is not None

    def rebuilt(self, made: dict[Value, Value]) -> Value:
        """The end of the chain from the product with other weights."""
        node = made[Value(self.product)].node
        axis, scaled, shape = self.scaling
        value = Value(node) if self.scale is None else scaled(node, self.scale)
        if self.shift is not None:
            beside = tuple(n if a == axis else 1 for a, n in enumerate(shape))
            flat = views.reshape(value, shape)
            shift = views.broadcast(views.reshape(self.shift, beside), shape)
            value = _applied(ADD, flat, shift)
        return views.reshape(value, self.end.shape)


def _chain(product: Node, scaling: _Scaling, uses: Uses, known: Callable[[Value], bool]) -> _Chain:
    """Follow what is done to a product while nothing else needs it."""
    chain = _Chain(product, scaling, Value(product))
    while chain.end not in uses.outputs and len(uses.of(chain.end)) == 1:
        (node,) = uses.of(chain.end)
        if node.primitive is not views.RESHAPE and not _take(chain, node, known):
            break
        (chain.end,) = node.outputs
    return chain


def _take(chain: _Chain, node: Node, known: Callable[[Value], bool]) -> bool:
    """Add one step to the chain, if it is one."""
    if node.primitive not in (ADD, SUBTRACT, MULTIPLY) or not is_float(node.types[0].dtype):
        return False
    first, second = node.inputs
    turned = first != chain.end
    other = first if turned else second
    if other == chain.end or not known(other) or (turned and node.primitive is SUBTRACT):
        return False
    vector = _channels(other, chain.scaling)
    if vector is None:
        return False
    if node.primitive is MULTIPLY:
        chain.scale = _combined(MULTIPLY, chain.scale, vector)
        chain.shift = None if chain.shift is None else _applied(MULTIPLY, chain.shift, vector)
    elif node.primitive is ADD:
        chain.shift = _combined(ADD, chain.shift, vector)
    else:
        before = chain.shift
        operands = (vector,) if before is None else (before, vector)
        chain.shift = _applied(NEGATIVE if before is None else SUBTRACT, *operands)
    chain.steps += 1
    return True


def _combined(primitive: Primitive, before: Value | None, vector: Value) -> Value:
    return vector if before is None else _applied(primitive, before, vector)


def _applied(primitive: Primitive, *operands: Value) -> Value:
    """An elementwise primitive on operands of one type."""
    return apply(primitive, operands, TensorType(operands[0].shape, operands[0].dtype))


def _channels(value: Value, product: _Scaling) -> Value | None:
    """The numbers of an operand, if there is one for each channel of the product."""
    axis, _, shape = product
    base = value
    moves: list[tuple[str, tuple[Any, ...]]] = []
    while isinstance(base.node.primitive, View):
        moves.insert(0, base.node.primitive.move(base.node))
        base = base.node.inputs[0]
    if base.size != shape[axis] or base.node.primitive is CONSTANT:
        return None
    strided: Strided | None = Strided.contiguous(base.shape)
    for name, arguments in (*moves, ("reshape", (shape,))):
        strided = getattr(strided, name)(*arguments) if strided else None
    if strided is None or strided.offset:
        return None
    wanted = tuple(1 if a == axis else 0 for a in range(3))
    fits = all(n == 1 or s == w for n, s, w in zip(shape, strided.strides, wanted, strict=True))
    return views.reshape(base, (base.size,)) if fits else None
