"""What the rules for result types ask of a node's operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heterosis.ir.types import TensorType, is_integer
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def no_operands(node: Node) -> None:
    """Raise unless `node` has none."""
    _check_count(node, 0)


def the_operand(node: Node) -> TensorType:
    """The type of the only operand."""
    _check_count(node, 1)
    return node.inputs[0].type


def the_stated(node: Node) -> TensorType:
    """The type that a node with one result says it has."""
    if len(node.types) != 1:
        raise ArgumentError(f"{node.primitive}: {len(node.types)} results; expected 1.")
    return node.types[0]


def check_indices(node: Node, indices: tuple[TensorType, ...], ndim: int) -> None:
    """Raise unless `indices` name rows of an array of `ndim` dimensions: integers of one shape."""
    if not 1 <= len(indices) <= ndim:
        raise ArgumentError(
            f"{node.primitive}: {len(indices)} indices of an array of {ndim} dimensions; expected "
            "one for each of its leading axes, and for the first at least."
        )
    for index in indices:
        if not is_integer(index.dtype):
            raise DTypeError(f"{node.primitive}: an index of {index.dtype}; expected integers.")
        if index.shape != indices[0].shape:
            raise ShapeError(
                f"{node.primitive}: indices of shapes {indices[0].shape} and {index.shape}; "
                "expected one shape."
            )


def _check_count(node: Node, count: int) -> None:
    if len(node.inputs) != count:
        raise ArgumentError(f"{node.primitive}: {len(node.inputs)} operands; expected {count}.")
