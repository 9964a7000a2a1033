"""How primitives are lowered: the kinds of rows in `lowerings`, and how a row is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from heterosis.ir.primitives import subject_of
from heterosis.ir.primitives.families import Elementwise, Opaque, Reduction
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import UnsupportedError

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.builder import Value as EmittedValue
    from heterosis.backends.native.codegen.emit.reducers import Reducer
    from heterosis.ir.program import Node, Value


P = TypeVar("P")  # a primitive
R = TypeVar("R")  # its row


@dataclass(frozen=True)
class ElementLowering:
    """One vector of results: `emit(function, dtype, *values)`, where `dtype` names the first
    operand's element type; and the price in units of one addition."""

    emit: Callable[..., EmittedValue]
    cost: float = 1.0


@dataclass(frozen=True)
class KernelLowering:
    """A kernel of its own: `kernel(node, inputs, outputs, machine)` describes it.

    With `gapless`, it sees its operands row by row in memory, copied there if they stand otherwise.
    `by_rows(node)` says of which operands it loads vectors along the last axis: they are copied if
    neighbours there stand far apart.
    With `finishes`, which says how many (batches, rows, columns) a result of a type has, it does
    elementwise work on its one result before it is stored: `kernel` takes a
    `codegen.epilogue.Epilogue` too, whose operands come behind its own. If that is `spaced`, rows
    of its result may stand any distance apart. What `alone(node, inputs, machine)` holds of takes
    less time if that work comes behind it, by itself.

    `packs(node, fixed, machine)` gives the first result of a node for the same from operands of
    which some, those that `fixed` tells of, are packed by primitives of their own, once for many
    runs; or None.
    `scales` has the axis of `finishes` that its second operand's weights belong to, and a function
    `(node, factors)` that gives the result with every place along that axis scaled.
    """

    kernel: Callable[..., Any]
    gapless: bool = False
    by_rows: Callable[[Node], tuple[int, ...]] | None = None
    finishes: Callable[[TensorType], tuple[int, int, int]] | None = None
    spaced: bool = False
    alone: Callable[..., bool] | None = None
    packs: Callable[[Node, Callable[[Value], bool], Any], Value | None] | None = None
    scales: tuple[int, Callable[[Node, Value], Value]] | None = None


# What is looked up is imported when something is first compiled, not by `import heterosis`. Who
# comes while another thread is at it waits for its import.
ELEMENTS: dict[Elementwise, ElementLowering] = {}
KERNELS: dict[Opaque, KernelLowering] = {}
REDUCERS: dict[Reduction, Reducer] = {}

# Modules of `ir.primitives` whose kernels stand in a module of `lowerings` that has the same name.
_SUBJECTS = (
    "boxes",
    "checks",
    "counting",
    "factorizations",
    "products",
    "recurrent",
    "shuffling",
    "sorting",
    "windows",
)


def element(primitive: Elementwise) -> ElementLowering:
    """How elements are computed."""
    if primitive not in ELEMENTS:
        import heterosis.backends.native.codegen.lowerings.elementwise  # noqa: F401
    return _row(ELEMENTS, primitive)


_CHEAP = 8.0  # what an operation costs that is no function by polynomials


def is_dear(primitive: Elementwise) -> bool:
    """Whether an element takes longer to compute than to write and read."""
    return element(primitive).cost > _CHEAP


def cost(primitives: Iterable[Elementwise]) -> float:
    """The price of an element that takes them all."""
    return sum(element(primitive).cost for primitive in primitives)


def kernel(primitive: Opaque) -> KernelLowering:
    """The kernel of a primitive that has one."""
    if primitive not in KERNELS:
        _import_subject(primitive)
    return _row(KERNELS, primitive)


def reducer(primitive: Reduction) -> Reducer:
    """How partial results are combined."""
    if primitive not in REDUCERS:
        import heterosis.backends.native.codegen.lowerings.reducers  # noqa: F401
    return _row(REDUCERS, primitive)


def _row(table: dict[P, R], primitive: P) -> R:
    if primitive not in table:
        import heterosis.backends.native.codegen.lowerings.rows  # noqa: F401
    if primitive not in table:
        raise _missing(primitive)
    return table[primitive]


def _import_subject(primitive: Opaque) -> None:
    """Import the kernels of the module that `primitive` stands in: those of another subject are
    much code that a program may never need."""
    subject = subject_of(primitive)
    if subject in _SUBJECTS:
        import_module(f"{__package__}.lowerings.{subject}")


def _missing(primitive: Any) -> UnsupportedError:
    return UnsupportedError(
        f"{primitive.name}: the native back end has no code for this primitive; "
        "add a row to heterosis.backends.native.codegen.lowerings."
    )
