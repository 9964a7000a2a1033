"""The tables of what is written how: primitives, and operations that ONNX has itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from heterosis.ir.calls import Call
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import CONSTANT, Value
from heterosis.ir.types import is_float
from heterosis.ops.record import REGISTRY

if TYPE_CHECKING:
    from heterosis.ir.program import Node
    from heterosis.models.onnx.writing.programs import ProgramWriter

# `row(writer, node)` adds what computes a node, and gives the names of its results.
Row: TypeAlias = "Callable[[ProgramWriter, Node], str | tuple[str, ...]]"
# `row(given)` looks at the arguments of a call. It gives what adds nodes that compute its results,
# or None: then the call is written by its primitives.
Emit: TypeAlias = "Callable[[ProgramWriter], str | tuple[str, ...]]"
CallRow: TypeAlias = "Callable[[Given], Emit | None]"

ROWS: dict[Primitive, Row] = {}
CALLS: dict[str, CallRow] = {}

_MODULES = (
    "rows.control", "rows.conversions", "rows.counting", "rows.elementwise", "rows.leaves",
    "rows.products", "rows.real", "rows.rearranging", "rows.recurrent", "rows.reductions",
    "rows.rows", "rows.sorting", "rows.windows", "calls", "recurrent_layers",
)  # fmt: skip


@cache
def load() -> None:
    """Import all rows."""
    for module in _MODULES:
        import_module(f"{__package__}.{module}")


def row(*primitives: Primitive) -> Callable[[Row], Row]:
    """Enter a function as what writes these primitives."""

    def enter(function: Row) -> Row:
        ROWS.update(dict.fromkeys(primitives, function))
        return function

    return enter


def call(*operations: str) -> Callable[[CallRow], CallRow]:
    """Enter a function as what writes calls of these operations."""

    def enter(function: CallRow) -> CallRow:
        CALLS.update(dict.fromkeys(operations, function))
        return function

    return enter


class Given:
    """The arguments of a call by the names of its record's parameters."""

    def __init__(self, call: Call):
        record = REGISTRY[call.operation]
        given = record.arguments(call.operands, call.attributes)
        self.call = call
        self.arguments: Mapping[str, Any] = {p.name: value for p, _, value in given}

    def __getitem__(self, parameter: str) -> Any:
        return self.arguments[parameter]

    def number(self, parameter: str) -> float | None:
        """The number that an operand is in the program; None if it is computed, or not given."""
        value = self.arguments[parameter]
        if isinstance(value, Value) and value.node.primitive is CONSTANT:
            found: float = value.node.attributes["value"]
            return found
        return value if isinstance(value, int | float) else None

    @property
    def result(self) -> Value:
        """The first result."""
        return self.call.results[0]

    @property
    def is_plain(self) -> bool:
        """Whether all floats are float32: attributes of ONNX are, and narrower ones are computed in
        it."""
        arrays = (v for v in (*self.call.inputs, *self.call.results) if not v.type.weak)
        return {v.dtype for v in arrays if is_float(v.dtype)} == {"float32"}
