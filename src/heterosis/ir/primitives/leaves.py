"""What has no operands: what a program is given, numbers written in it, and places counted."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives.expected import operands
from heterosis.ir.primitives.families import Leaf
from heterosis.ir.sizes import Extent, Size
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import TensorType, is_float, is_half, numpy_dtype
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def check_extent(size: Extent) -> Extent:
    """`size`, which must fit 64 bits where it is known."""
    if is_traced(size):
        return size
    if not isinstance(size, Size) and not (isinstance(size, int) and -(2**63) <= size < 2**63):
        raise ArgumentError(f"{size} in the arithmetic of sizes; expected a number of 64 bits.")
    return size


def _input_types(node: Node) -> tuple[TensorType, ...]:
    operands(node, 0)
    return (node.types[0],)


def _number_types(node: Node) -> tuple[TensorType, ...]:
    operands(node, 0)
    return (TensorType((), node.types[0].dtype, weak=True),)


def _constant_types(node: Node) -> tuple[TensorType, ...]:
    operands(node, 0)
    type_ = node.types[0]
    if type_.shape:
        raise ShapeError(f"constant: a number of shape {type_.shape}; expected the shape ().")
    if not is_float(type_.dtype):
        _check_whole(node.attributes["value"], type_.dtype)
    return (type_,)


def _check_whole(number: Any, dtype: str) -> None:
    first, last = (0, 1) if dtype == "bool" else _range(dtype)
    if not (isfinite(number) and number == int(number) and first <= number <= last):
        raise DTypeError(
            f"constant: {number} of {dtype}; expected a whole number from {first} to {last}."
        )


def _range(dtype: str) -> tuple[int, int]:
    limits = numpy.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _extent_types(node: Node) -> tuple[TensorType, ...]:
    operands(node, 0)
    check_extent(node.attributes["value"])
    return (TensorType((), "int64", weak=True),)


def _iota_types(node: Node) -> tuple[TensorType, ...]:
    operands(node, 0)
    return (TensorType(node.types[0].shape, "int64"),)


def _given(node: Node) -> Any:
    raise ArgumentError(
        f"{node.primitive}: it stands for what a program is given; evaluate it in a program that "
        "has it among its inputs."
    )


def _constant(node: Node) -> Any:
    dtype = node.types[0].dtype
    held = "float32" if is_half(dtype) else dtype  # as it is computed with
    return numpy.asarray(node.attributes["value"]).astype(numpy_dtype(held))


def _iota(node: Node) -> Any:
    return numpy.arange(node.types[0].size).reshape(node.types[0].shape)


INPUT = Leaf("input", types=_input_types, meaning=_given, about="An array that a program is given.")
NUMBER = Leaf(
    "number",
    types=_number_types,
    meaning=_given,
    about="A number that a program is given, which adapts to the type of its partner.",
)
CONSTANT = Leaf(
    "constant",
    types=_constant_types,
    meaning=_constant,
    attributes={"value": Real},
    about="A number written in the program.",
)
EXTENT = Leaf(
    "extent",
    types=_extent_types,
    meaning=lambda node: numpy.int64(node.attributes["value"]),
    attributes={"value": int},
    about="A number that follows from a shape, which code for any size takes as an argument.",
)
IOTA = Leaf(
    "iota",
    types=_iota_types,
    meaning=_iota,
    about="Each element's own place, counted row by row from 0.",
)
