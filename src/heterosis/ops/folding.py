"""Scales and shifts behind a product with parameters move into the parameters.

Normalisation in inference is `(y - mean) * scale + beta`, one number each for every channel: the
weights take the scale, and one shift is left. Results differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD, MULTIPLY, SUBTRACT
from heterosis.ir.primitives.families import Opaque, View
from heterosis.ir.program import CONSTANT, Node, Program, Value, with_inputs
from heterosis.ir.strided import Strided
from heterosis.ir.types import is_float
from heterosis.ops.elementwise import add, multiply, negative, subtract
from heterosis.passes.epilogues import Uses
from heterosis.passes.preparation import Fixed


def folded(program: Program, fixed: Collection[Value]) -> Program:
    """`program` with every scale and shift of a product that depends on the inputs `fixed` alone
    as part of its weights, and of one shift."""
    uses, known = Uses(program), Fixed(fixed)
    ends: dict[Value, _Chain] = {}
    for node in program.nodes():
        known.tells_of(node)
    for node in program.nodes():
        if isinstance(node.primitive, Opaque) and node.primitive.scales and known(node.inputs[1]):
            chain = _chain(node, uses, known)
            if chain.worth:
                ends[chain.end] = chain
    made: dict[Value, Value] = {}
    for node in program.nodes():
        here = with_inputs(node, tuple(made[value] for value in node.inputs))
        made.update(zip(node.outputs, here.outputs, strict=True))
        (end, *_) = node.outputs
        if end in ends:
            made[end] = ends[end].rebuilt(made)
    return Program(program.inputs, tuple(made[v] for v in program.outputs), program.name)


@dataclass
class _Chain:
    """A product, times `scale`, plus `shift`, which have a number for each of its channels."""

    product: Node
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
        axis, scaled = node.primitive.scales
        value = Value(node) if self.scale is None else scaled(node, self.scale)
        if self.shift is not None:
            shape = node.primitive.finishes(value.type)
            beside = tuple(n if a == axis else 1 for a, n in enumerate(shape))
            flat = views.reshape(value, shape)
            value = add(flat, views.broadcast(views.reshape(self.shift, beside), shape))
        return views.reshape(value, self.end.shape)


def _chain(product: Node, uses: Uses, known: Callable[[Value], bool]) -> _Chain:
    """Follow what is done to a product while nothing else needs it."""
    chain = _Chain(product, Value(product))
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
    vector = _channels(other, chain.product)
    if vector is None:
        return False
    if node.primitive is MULTIPLY:
        chain.scale = _combined(multiply, chain.scale, vector)
        chain.shift = None if chain.shift is None else multiply(chain.shift, vector)
    elif node.primitive is ADD:
        chain.shift = _combined(add, chain.shift, vector)
    else:
        before = chain.shift
        chain.shift = negative(vector) if before is None else subtract(before, vector)
    chain.steps += 1
    return True


def _combined(operation: Callable[..., Value], before: Value | None, vector: Value) -> Value:
    return vector if before is None else operation(before, vector)


def _channels(value: Value, product: Node) -> Value | None:
    """The numbers of an operand, if there is one for each channel of the product."""
    axis, _ = product.primitive.scales
    shape = product.primitive.finishes(product.types[0])
    base, moves = value, []
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
