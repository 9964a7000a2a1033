"""What back ends and derivatives there are for each primitive."""

from __future__ import annotations

from heterosis import backends
from heterosis.autograd.rules.absent import ABSENT
from heterosis.autograd.rules.table import is_piecewise_constant, rule_of
from heterosis.ir.listing import Column
from heterosis.ir.primitives.families import Primitive


def back_ends(primitive: Primitive) -> str:
    """The back ends that compute it, of those that are installed."""
    found = (name for name in backends.available() if backends.named(name).has(primitive))
    return ", ".join(found) or "none"


def derivative(primitive: Primitive) -> str:
    """What is known of its derivative."""
    if is_piecewise_constant(primitive):
        return "zero"
    return "yes" if rule_of(primitive) else ABSENT[primitive].word


COLUMNS: dict[str, Column] = {"back ends": back_ends, "derivative": derivative}
