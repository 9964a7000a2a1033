"""What the type rules of primitives ask of operands, with errors that say what was given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Shape = tuple[int, ...]


def operands(node: Node, count: int) -> tuple[TensorType, ...]:
    """The types of the operands, of which there must be `count`."""
    if len(node.inputs) != count:
        raise ArgumentError(f"{node.primitive}: {len(node.inputs)} operands; expected {count}.")
    return tuple(value.type for value in node.inputs)


def element_type(node: Node, position: int, allowed: Collection[str]) -> str:
    """The element type of an operand, which must be one of `allowed`."""
    dtype = node.inputs[position].dtype
    if dtype not in allowed:
        raise DTypeError(
            f"{node.primitive}: operand {position} has elements of type {dtype}; "
            f"expected {' or '.join(allowed)}."
        )
    return dtype


def common_element_type(node: Node, allowed: Collection[str]) -> str:
    """The element type that all operands must share, one of `allowed`."""
    dtype = element_type(node, 0, allowed)
    for position in range(1, len(node.inputs)):
        element_type(node, position, (dtype,))
    return dtype


def ranks(node: Node, *expected: int) -> None:
    """Operands must have so many dimensions."""
    if tuple(value.ndim for value in node.inputs) != expected:
        raise ShapeError(
            f"{node.primitive}: operands of shapes {_shapes(node)}; "
            f"expected {', '.join(map(str, expected))} dimensions."
        )


def shapes(node: Node, *expected: Shape) -> None:
    """Operands must have these shapes."""
    if tuple(value.shape for value in node.inputs) != expected:
        raise ShapeError(
            f"{node.primitive}: operands of shapes {_shapes(node)}; "
            f"expected {', '.join(map(str, expected))}."
        )


def result_shape(node: Node, *parts: int | None) -> Shape:
    """The shape of the first result where operands leave some extents open: those that are None."""
    shape = node.types[0].shape if node.types else ()
    fits = len(shape) == len(parts) and all(
        part in (None, extent) for part, extent in zip(parts, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if part is None else str(part) for part in parts)
        raise ShapeError(f"{node.primitive}: a result of shape {shape}; expected ({wanted}).")
    return shape


def axes(node: Node, ndim: int) -> Sequence[int]:
    """The attribute `axes`: one or more dimensions counted from the front, rising."""
    found: tuple[int, ...] = node.attributes["axes"]
    if not found or list(found) != sorted(set(found) & set(range(ndim))):
        raise ShapeError(
            f"{node.primitive}: axes {found} of {ndim} dimensions; expected one or more "
            f"rising numbers from 0 to {ndim - 1}."
        )
    return found


def holds(node: Node, condition: bool, expectation: str) -> None:
    """The attributes must be as `expectation` says."""
    if not condition:
        raise ArgumentError(
            f"{node.primitive}: attributes {node.attributes}; expected {expectation}."
        )


def _shapes(node: Node) -> str:
    return ", ".join(str(value.shape) for value in node.inputs)
