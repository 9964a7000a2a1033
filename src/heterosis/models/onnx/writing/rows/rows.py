"""Reading and writing rows at computed places, which are inside, and parts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heterosis.ir.primitives.elementwise import ADD, MAXIMUM, MINIMUM, MULTIPLY
from heterosis.ir.primitives.rows import ASSEMBLE, GATHER, SCATTER, joined_axis
from heterosis.ir.program import Node, Value
from heterosis.ir.sizes import Size
from heterosis.models.onnx.writing.programs import ProgramWriter, computed_type
from heterosis.models.onnx.writing.rows.elementwise import chosen, wide_integer
from heterosis.models.onnx.writing.rows.rearranging import reshaped, sliced
from heterosis.models.onnx.writing.sizes import Extent
from heterosis.models.onnx.writing.tables import row
from heterosis.runtime.errors import UnsupportedError

Place = tuple[Sequence[Extent], Sequence[int]]  # where a part begins, and its steps

_REDUCED = {ADD: "add", MULTIPLY: "mul", MAXIMUM: "max", MINIMUM: "min"}


def _places(writer: ProgramWriter, indices: Sequence[Value]) -> str:
    """The indices of each row behind one another, along a new last axis."""
    parts = []
    for index in indices:
        name = _whole(writer, index)
        parts.append(writer.node("Unsqueeze", name, writer.graph.whole(index.ndim)))
    return parts[0] if len(parts) == 1 else writer.node("Concat", *parts, axis=-1)


def _whole(writer: ProgramWriter, index: Value) -> str:
    name = writer.name(index)
    return name if index.dtype == "int64" else writer.cast(name, "int64")


@row(GATHER)
def _gathered(writer: ProgramWriter, node: Node) -> str:
    x, *indices = node.inputs
    if len(indices) == 1:
        return writer.node("Gather", writer.name(x), _whole(writer, indices[0]), axis=0)
    return writer.node("GatherND", writer.name(x), _places(writer, indices))


@row(SCATTER)
def _scattered(writer: ProgramWriter, node: Node) -> str:
    x, *indices, update = node.inputs
    combine = node.attributes["combine"]
    places = _places(writer, indices)
    if combine is None:
        return _written_in_order(writer, node, places)
    if combine not in _REDUCED:
        raise UnsupportedError(
            f"scatter: rows combined by {combine}, which ONNX cannot; it can by "
            f"{', '.join(map(repr, _REDUCED))}."
        )
    names, dtype = [writer.name(x), writer.name(update)], node.types[0].dtype
    reduction, wide = _REDUCED[combine], wide_integer(computed_type(dtype))
    if dtype == "bool":  # whether one is true, or all are
        reduction, wide = {"add": "max", "mul": "min"}.get(reduction, reduction), "int32"
    if wide != dtype:
        names = [writer.cast(name, wide) for name in names]
    found = writer.node("ScatterND", names[0], places, names[1], reduction=reduction)
    return found if wide == dtype else writer.cast(found, dtype)


def _written_in_order(writer: ProgramWriter, node: Node, places: str) -> str:
    """Of rows for one place the last one stays: ONNX leaves open which. So each place is told the
    number of its last row, and that row is written by all."""
    x, *indices, update = node.inputs
    count, shape = len(indices), indices[0].shape
    total = prod(shape)
    if not isinstance(total, Size) and total <= 1:
        return writer.node("ScatterND", writer.name(x), places, writer.name(update))
    flat = reshaped(writer, places, (*shape, count), (total, count))
    rows = reshaped(writer, writer.name(update), update.shape, (total, *x.shape[count:]))
    none = writer.node("Expand", writer.array(-1, "int64"), writer.sizes.shape(x.shape[:count]))
    last = writer.node("ScatterND", none, flat, writer.places(total), reduction="max")
    chosen = writer.node("Gather", rows, writer.node("GatherND", last, flat), axis=0)
    return writer.node("ScatterND", writer.name(x), flat, chosen)


# -- parts ----------------------------------------------------------------------------------------


@row(ASSEMBLE)
def _assembled(writer: ProgramWriter, node: Node) -> str:
    shape, names = node.types[0].shape, writer.operands(node)
    values, fill = list(node.inputs), ""
    if node.attributes["filled"]:
        fill, names, values = names[0], names[1:], values[1:]
    triples = [
        (name, value.shape, place)
        for name, value, place in zip(names, values, node.attributes["places"], strict=True)
        if 0 not in value.shape
    ]
    axis = joined_axis(shape, [(extents, place) for _, extents, place in triples])
    if axis is not None:
        parts = [name for name, _, _ in triples]
        return parts[0] if len(parts) == 1 else writer.node("Concat", *parts, axis=axis)
    dtype = node.types[0].dtype
    fill = fill or writer.array(0, dtype)
    found = writer.node("Expand", fill, writer.sizes.shape(shape))
    for number, (name, extents, place) in enumerate(triples):
        part, lows, shape_there = _spread(writer, name, extents, place, fill)
        whole = _padded(writer, part, shape, lows, shape_there, fill)
        if number == 0 and set(place[1]) <= {1}:
            found = whole
        else:
            mask = _mask(writer, shape, extents, place)
            found = chosen(writer, dtype, mask, whole, found)
    return found


def _mask(
    writer: ProgramWriter, shape: Sequence[Extent], extents: Sequence[Extent], place: Place
) -> str:
    """Where a part stands."""
    one, zero = writer.array(1.0, "float32"), writer.array(0.0, "float32")
    ones = writer.node("Expand", one, writer.sizes.shape(extents))
    part, lows, there = _spread(writer, ones, extents, place, zero)
    return writer.cast(_padded(writer, part, shape, lows, there, zero), "bool")


def _spread(
    writer: ProgramWriter, name: str, extents: Sequence[Extent], place: Place, fill: str
) -> tuple[str, list[Extent], list[Extent]]:
    """A part with gaps between its elements, as its steps say, and in ascending order; where it
    begins, and its extents."""
    lows, shape = list(place[0]), list(extents)
    for axis, step in enumerate(place[1]):
        count = shape[axis]
        if count == 1 or step == 1:
            continue
        if step < 0:
            backwards = [-1 if d == axis else 1 for d in range(len(shape))]
            firsts = [count - 1 if d == axis else 0 for d in range(len(shape))]
            name = sliced(writer, name, shape, firsts, backwards, shape)
            lows[axis] = lows[axis] + step * (count - 1)
        gap = abs(step)
        if gap > 1:  # gaps behind each element, but for the last one
            pads = [0] * (2 * len(shape) + 2)
            pads[len(shape) + 1 + axis + 1] = gap - 1
            wide = [*shape[:axis], count * gap, *shape[axis + 1 :]]
            name = writer.node("Unsqueeze", name, writer.graph.whole(axis + 1))
            name = writer.node("Pad", name, writer.graph.whole(*pads), fill)
            name = reshaped(writer, name, (*shape[: axis + 1], gap, *shape[axis + 1 :]), wide)
            shape[axis] = (count - 1) * gap + 1
            name = sliced(writer, name, wide, [0] * len(shape), [1] * len(shape), shape)
    return name, lows, shape


def _padded(
    writer: ProgramWriter, name: str, shape: Sequence[Extent], starts: Sequence[Extent],
    extents: Sequence[Extent], fill: str,
) -> str:  # fmt: skip
    """A part amid what fills the rest."""
    ends = [n - s - m for n, s, m in zip(shape, starts, extents, strict=True)]
    if not any(extent != 0 for extent in (*starts, *ends)):
        return name
    return writer.node("Pad", name, writer.sizes.shape((*starts, *ends)), fill)
