"""What back ends and derivatives there are for each primitive."""

from __future__ import annotations

from heterosis import backends
from heterosis.ir.listing import Column
from heterosis.ir.primitives.families import Leaf, Primitive
from heterosis.ops.adjoint import is_piecewise_constant, rule_of


def back_ends(primitive: Primitive) -> str:
    """The back ends that compute it."""
    found = (name for name in backends.names() if backends.named(name).has(primitive))
    return ", ".join(found) or "none"


def derivative(primitive: Primitive) -> str:
    """What is known of its derivative."""
    if isinstance(primitive, Leaf):
        return "-"
    if is_piecewise_constant(primitive):
        return "zero"
    return "yes" if rule_of(primitive) else "none"


COLUMNS: dict[str, Column] = {"back ends": back_ends, "derivative": derivative}
