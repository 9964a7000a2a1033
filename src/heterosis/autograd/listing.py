"""What back ends and derivatives there are for each primitive."""

from __future__ import annotations

from heterosis.autograd.rules.absent import ABSENT
from heterosis.autograd.rules.table import is_piecewise_constant, rule_of
from heterosis.backends.native.codegen.lowerings import tables
from heterosis.ir.listing import Column
from heterosis.ir.primitives.families import Control, Elementwise, Opaque, Primitive, Reduction
from heterosis.runtime.errors import UnsupportedError


def back_ends(primitive: Primitive) -> str:
    """The back ends that compute it."""
    return "native" if _is_native(primitive) else "none"


def _is_native(primitive: Primitive) -> bool:
    """Whether the native back end has a row for it, where its family has rows."""
    try:
        match primitive:
            case Elementwise():
                tables.element(primitive)
            case Reduction():
                tables.reducer(primitive)
            case Opaque():
                tables.kernel(primitive)
    except UnsupportedError:
        return False
    return not isinstance(primitive, Control)


def derivative(primitive: Primitive) -> str:
    """What is known of its derivative."""
    if is_piecewise_constant(primitive):
        return "zero"
    return "yes" if rule_of(primitive) else ABSENT[primitive].word


COLUMNS: dict[str, Column] = {"back ends": back_ends, "derivative": derivative}
