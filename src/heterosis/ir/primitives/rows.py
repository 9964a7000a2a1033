"""Reading and writing rows at computed places, and parts side by side in one result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives.expected import operands
from heterosis.ir.primitives.families import Assemble, Elementwise, Gather, Scatter
from heterosis.ir.primitives.rearranging import places_of, sliced
from heterosis.ir.types import TensorType, as_type, is_integer, numpy_dtype
from heterosis.runtime.errors import ArgumentError, DTypeError, IndexingError, ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Types = tuple[TensorType, ...]


def _check_within(node: Node, rows: tuple[int, ...], indices: tuple[Any, ...]) -> None:
    """Raise unless all places are inside: NumPy would count negative ones from the end."""
    for axis, (extent, index) in enumerate(zip(rows, indices, strict=False)):
        if numpy.any((index < 0) | (index >= extent)):
            raise IndexingError(
                f"{node.primitive}: a place outside of the {extent} along axis {axis}."
            )


def _check_indices(node: Node, indices: tuple[TensorType, ...], ndim: int) -> None:
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


# -- gather ---------------------------------------------------------------------------------------


def _gather_types(node: Node) -> Types:
    x, *indices = (value.type for value in node.inputs)
    _check_indices(node, tuple(indices), x.ndim)
    return (TensorType((*indices[0].shape, *x.shape[len(indices) :]), x.dtype),)


def _gathered(node: Node, x: Any, *indices: Any) -> Any:
    _check_within(node, x.shape, indices)
    return x[indices]


GATHER = Gather(
    "gather",
    types=_gather_types,
    meaning=_gathered,
    about="Rows of the first operand, found by one index for each of its leading axes.",
)


# -- scatter --------------------------------------------------------------------------------------


def _scatter_types(node: Node) -> Types:
    if len(node.inputs) < 3:
        raise ArgumentError(f"scatter: {len(node.inputs)} operands; expected 3 at least.")
    x, *indices, update = (value.type for value in node.inputs)
    _check_indices(node, tuple(indices), x.ndim)
    rows = (*indices[0].shape, *x.shape[len(indices) :])
    if update.shape != rows:
        raise ShapeError(f"scatter: rows of shape {update.shape}; expected {rows}.")
    return (TensorType(x.shape, x.dtype),)


def _scattered(node: Node, x: Any, *given: Any) -> Any:
    *indices, update = given
    _check_within(node, x.shape, tuple(indices))
    extents, row = x.shape[: len(indices)], x.shape[len(indices) :]
    found = x.reshape(math.prod(extents), *row).copy()  # -1 would not do for empty rows
    rows = as_type(update, node.types[0].dtype).reshape(indices[0].size, *row)
    places = numpy.ravel_multi_index([index.ravel() for index in indices], extents)
    combine = node.attributes["combine"]
    for turn in _turns(places):
        at = places[turn]
        new = rows[turn]
        found[at] = new if combine is None else _combined(node, combine, found[at], new)
    return found.reshape(x.shape)


def _turns(places: Any) -> list[Any]:
    """Positions in `places`, in groups without equal places; equal ones in their order."""
    order = numpy.argsort(places, kind="stable")
    ordered = places[order]
    begins = numpy.flatnonzero(numpy.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else order
    counts = numpy.diff(numpy.r_[begins, len(order)])
    number = numpy.arange(len(order)) - numpy.repeat(begins, counts)
    return [order[number == turn] for turn in range(max(counts, default=0))]


def _combined(node: Node, combine: Elementwise, old: Any, new: Any) -> Any:
    from heterosis.ir.program import INPUT, apply

    type_ = TensorType(old.shape, node.types[0].dtype)
    step = apply(combine, (apply(INPUT, (), type_), apply(INPUT, (), type_)), type_).node
    (found,) = combine.evaluate(step, old, new)
    return found


SCATTER = Scatter(
    "scatter",
    types=_scatter_types,
    meaning=_scattered,
    attributes={"combine": Elementwise | None},
    about="The first operand with the rows of the last one at the places that indices name, in "
    "order: in place of what was there, or combined with it.",
)


# -- assemble -------------------------------------------------------------------------------------


def _assemble_types(node: Node) -> Types:
    filled, places = _filled_and_places(node)
    parts, whole = operands(node, len(places) + filled), node.types[0]
    for part in parts:
        if part.dtype != whole.dtype:
            raise DTypeError(f"assemble: a part of {part.dtype} in a result of {whole.dtype}.")
    if filled and parts[0].shape:
        raise ShapeError(f"assemble: filled with shape {parts[0].shape}; expected the shape ().")
    for part, (starts, steps) in zip(parts[filled:], places, strict=True):
        sliced(whole, starts, steps, part.shape)
    return (TensorType(whole.shape, whole.dtype),)


def _filled_and_places(node: Node) -> tuple[bool, Any]:
    return node.attributes["filled"], node.attributes["places"]


def _assembled(node: Node, *given: Any) -> Any:
    filled, places = _filled_and_places(node)
    found = numpy.zeros(node.types[0].shape, numpy_dtype(node.types[0].dtype))
    if filled:
        found[...] = given[0]
    for part, (starts, steps) in zip(given[filled:], places, strict=True):
        found[places_of(starts, steps, part.shape)] = part
    return found


ASSEMBLE = Assemble(
    "assemble",
    types=_assemble_types,
    meaning=_assembled,
    attributes={
        "places": tuple[tuple[tuple[int, ...], tuple[int, ...]], ...],
        "filled": bool,
    },
    about="Operands side by side: places has (starts, steps) for each, later ones lie over earlier "
    "ones. Where filled is true, the first operand is a number for the gaps.",
)


def joined_axis(
    shape: Sequence[int], parts: Sequence[tuple[Sequence[int], tuple[Sequence[int], Sequence[int]]]]
) -> int | None:
    """The axis along which parts of these extents, at these places, stand one behind the other and
    make up the whole, if they do."""
    for axis, extent in enumerate(shape):
        end = 0
        for extents, (starts, steps) in parts:
            wanted = [end if d == axis else 0 for d in range(len(shape))]
            pairs = enumerate(zip(extents, shape, strict=True))
            fits = all(n == m for d, (n, m) in pairs if d != axis)
            if list(starts) != wanted or set(steps) - {1} or not fits:
                break
            end = end + extents[axis]
        else:
            if end == extent and parts:
                return axis
    return None
