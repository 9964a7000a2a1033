"""How primitives are written with `jax.lax`: the kinds of rows in `rows`, and how one is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from heterosis.ir.primitives.families import Primitive
from heterosis.runtime.errors import UnsupportedError

if TYPE_CHECKING:
    from heterosis.backends.xla.evaluation import Turn
    from heterosis.ir.program import Node

# `row(node, *operands)` gives the result of a node, or a tuple of them, from jax arrays.
Row = Callable[..., Any]
# `row(node, turn, *operands)`: the same where something may fail, which `turn` is told of.
CheckedRow = Callable[..., Any]

ROWS: dict[Primitive, Row] = {}
CHECKED_ROWS: dict[Primitive, CheckedRow] = {}

_MODULES = (
    "boxes", "control", "counting", "checks", "elementwise", "factorizations", "leaves",
    "products", "random_bits", "random_loops", "real", "rearranging", "recurrent", "reductions",
    "rows", "sorting", "windows",
)  # fmt: skip


def elements(rows: Mapping[Any, Callable[..., Any]]) -> None:
    """Put rows of functions of the operands alone into the table."""
    ROWS.update((primitive, _of_operands(function)) for primitive, function in rows.items())


def _of_operands(function: Callable[..., Any]) -> Row:
    return lambda node, *operands: function(*operands)


def results(node: Node, turn: Turn, operands: list[Any]) -> tuple[Any, ...]:
    """The results of a node, by the row of its primitive."""
    primitive = node.primitive
    if primitive in CHECKED_ROWS:
        found = CHECKED_ROWS[primitive](node, turn, *operands)
    elif primitive in ROWS:
        found = ROWS[primitive](node, *operands)
    else:
        raise _missing(primitive)
    return found if isinstance(found, tuple) else (found,)


def has(primitive: Primitive) -> bool:
    """Whether there is a row."""
    return primitive in ROWS or primitive in CHECKED_ROWS


def _missing(primitive: Primitive) -> UnsupportedError:
    return UnsupportedError(
        f"{primitive.name}: the back end 'xla' cannot compute this primitive. Add a row to "
        "heterosis.backends.xla.rows, or hybridize for 'native'."
    )


def load() -> None:
    """Import all rows, and JAX with them."""
    for module in _MODULES:
        import_module(f"{__package__}.rows.{module}")
