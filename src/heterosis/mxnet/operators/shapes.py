"""Operators that rearrange elements, repeat them, join and split arrays.

A number stands for a sequence of one, as in MXNet.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

from heterosis import np, npx
from heterosis.ir import views
from heterosis.ir.program import Value
from heterosis.mxnet.graph import Entry
from heterosis.mxnet.operators.table import (
    Attributes,
    as_sequence,
    of_record,
    one_or_list,
    operator,
    stored,
)
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, follows, plain, writes
from heterosis.np.members import decoded_shape
from heterosis.runtime.errors import ArgumentError

Extents: TypeAlias = int | Sequence[int]

_MOST_TRANSPOSED = 6  # dimensions, in MXNet

# -- other shapes ---------------------------------------------------------------------------------


@operator("reshape", "Reshape", method=True)
def reshape(data: Any, shape: Extents = (), reverse: bool = False) -> Any:
    """Another shape, in codes: 0 keeps an extent, -1 is inferred, -2 keeps the rest, -3 multiplies
    two, -4 splits one. With `reverse` the codes are read from the right."""
    codes, old = as_sequence(shape), data.shape
    if reverse:
        return np.reshape(data, decoded_shape(old[::-1], codes[::-1])[::-1])
    return np.reshape(data, decoded_shape(old, codes))


@writes("reshape", "ravel")
def _write_reshape(writer: Writer, a: Arguments) -> Made:
    if a["order"] != "C":
        return None
    shape = a["newshape"] if a.record.name == "reshape" else -1
    return writer.single("_npx_reshape", a, a["a"], newshape=_with_kept(a["a"].shape, shape))


def _with_kept(old: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    """The new shape, where leading extents that stay are told as such: batches may differ."""
    shape = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    kept = 0
    while kept < min(len(old), len(shape)) and shape[kept] == old[kept]:
        kept += 1
    return (-2,) * kept + shape[kept:]


@follows(views.RESHAPE)
def _follow_reshape(writer: Writer, value: Value) -> Entry:
    return reshaped(writer, "reshape", writer.entry(value.node.inputs[0]), value.shape)


def reshaped(writer: Writer, name: str, entry: Entry, shape: tuple[int, ...]) -> Entry:
    """An entry in another shape."""
    return writer.node("_np_reshape", name, [entry], {"newshape": shape})[0]


def in_a_row(
    writer: Writer, a: Arguments, value: Value, axis: int | None, along: int = -1
) -> tuple[Entry, int]:
    """An array and an axis of it: where none is given, all its elements in a row."""
    entry = writer.entry(value)
    if axis is not None:
        return entry, axis
    return reshaped(writer, f"{a.name}_row", entry, (-1,)), along


@operator("flatten", "Flatten", method=True)
def flatten(data: Any) -> Any:
    """All dimensions but the first made one."""
    return npx.batch_flatten(data)


@operator("reshape_like", method=True)
def reshape_like(
    lhs: Any, rhs: Any, lhs_begin: int | None = None, lhs_end: int | None = None,
    rhs_begin: int | None = None, rhs_end: int | None = None,
) -> Any:  # fmt: skip
    """`lhs` in the shape of `rhs`, or some of its dimensions in the place of some of those."""
    return npx.reshape_like(lhs, rhs, lhs_begin, lhs_end, rhs_begin, rhs_end)


@operator(method=True)
def expand_dims(data: Any, axis: int) -> Any:
    """A new dimension of extent 1."""
    return np.expand_dims(data, axis)


@writes("expand_dims")
def _write_expand_dims(writer: Writer, a: Arguments) -> Made:
    entry, axes = [writer.entry(a["a"])], _listed(a["axis"])
    for axis in sorted(axis % a.results[0].ndim for axis in axes):
        name = a.name if len(axes) == 1 else f"{a.name}_{axis}"
        entry = writer.node("_npi_expand_dims", name, entry, {"axis": axis})
    return entry


@operator(method=True)
def squeeze(data: Any, axis: Any = None) -> Any:
    """Without dimensions of extent 1."""
    return np.squeeze(data, axis)


@operator(method=True)
def shape_array(data: Any) -> Any:
    """The shape, as an array of int64."""
    return npx.shape_array(data)


@operator(method=True)
def size_array(data: Any) -> Any:
    """The number of elements, as an array of one int64."""
    return data.size_array()


# -- another order --------------------------------------------------------------------------------


@operator(method=True)
def transpose(data: Any, axes: Extents = ()) -> Any:
    """The dimensions in another order, reversed by default."""
    return np.transpose(data, as_sequence(axes) or None)


@writes("transpose")
def _write_transpose(writer: Writer, a: Arguments) -> Made:
    shape, axes = a["a"].shape, a["axes"]
    if len(shape) <= _MOST_TRANSPOSED:
        return plain(writer, a)
    order = [axis % len(shape) for axis in axes or reversed(range(len(shape)))]
    return _moved_one_by_one(writer, a, list(shape), order)


def _moved_one_by_one(writer: Writer, a: Arguments, shape: list[int], order: list[int]) -> Made:
    """MXNet transposes few dimensions. So each axis moves alone, all between them seen as one."""
    entry, here = [writer.entry(a["a"])], list(range(len(shape)))
    for to, axis in enumerate(order):
        at = here.index(axis)
        if at == to:
            continue
        blocks = (prod(shape[:to]), prod(shape[to:at]), shape[at], prod(shape[at + 1 :]))
        name = f"{a.name}_axis{axis}"
        entry = writer.node("_np_reshape", f"{name}_reshape", entry, {"newshape": blocks})
        entry = writer.node("_np_transpose", name, entry, {"axes": (0, 2, 1, 3)})
        here.insert(to, here.pop(at))
        shape.insert(to, shape.pop(at))
    return writer.node("_np_reshape", a.name, entry, {"newshape": tuple(shape)})


@follows(views.TRANSPOSE)
def _follow_transpose(writer: Writer, value: Value) -> Entry:
    axes = {"axes": value.node.attributes["axes"]}
    return writer.node("_np_transpose", "transpose", [writer.entry(value.node.inputs[0])], axes)[0]


@operator("swapaxes", "SwapAxis", method=True)
def swapaxes(data: Any, dim1: int = 0, dim2: int = 0) -> Any:
    """Two dimensions in each other's place."""
    return np.swapaxes(data, dim1, dim2)


of_record("_npi_swapaxes", renamed={"axis1": "dim1", "axis2": "dim2"})


@operator("reverse", "flip", method="flip")
def reverse(data: Any, axis: Any) -> Any:
    """Elements in reverse order along `axis`."""
    return np.flip(data, axis)


@writes("flip")
def _write_flip(writer: Writer, a: Arguments) -> Made:
    rank = a["m"].ndim
    axes = range(rank) if a["axis"] is None else _listed(a["axis"])
    return writer.single("_npi_flip", a, a["m"], axis=tuple(axis % rank for axis in axes))


def _listed(axis: Any) -> tuple[int, ...]:
    return tuple(axis) if isinstance(axis, tuple | list) else (axis,)


@operator(method=True)
def depth_to_space(data: Any, block_size: int) -> Any:
    """Channels moved into blocks of pixels."""
    return data.depth_to_space(block_size)


@operator(method=True)
def space_to_depth(data: Any, block_size: int) -> Any:
    """Blocks of pixels moved into channels."""
    return data.space_to_depth(block_size)


# -- joined and split ------------------------------------------------------------------------------


@operator("concat", "Concat")
def concat(*data: Any, dim: int = 1, num_args: int | None = None) -> Any:
    """Arrays joined along `dim`."""
    return np.concatenate(data, axis=dim)


@stored("_npi_concatenate")
def _concatenate(*data: Any, axis: int | None = 0, dim: int | None = None) -> Any:
    return np.concatenate(data, axis if dim is None else dim)


@writes("concatenate")
def _write_concatenate(writer: Writer, a: Arguments) -> Made:
    if a["axis"] is None and len({value.shape for value in a["seq"]}) > 1:
        return None
    axis = {"axis": "None" if a["axis"] is None else a["axis"]}
    return writer.single("_npi_concatenate", a, *a["seq"], num_args=len(a["seq"]), **axis)


@stored("_rnn_param_concat", "_npi_rnn_param_concat")
def _joined(*data: Any, dim: int = 0) -> Any:
    return np.concatenate(data, dim)


@operator()
def stack(*data: Any, axis: int = 0, num_args: int | None = None) -> Any:
    """Arrays joined along a new dimension."""
    return np.stack(data, axis=axis)


def _equal_parts(attributes: Attributes) -> int:
    return attributes.get("num_outputs") or 1


@operator("split", "SliceChannel", results=_equal_parts, method=True)
def split(data: Any, num_outputs: int, axis: int = 1, squeeze_axis: bool = False) -> Any:
    """Equal parts along `axis`; without it if `squeeze_axis`."""
    parts = np.split(data, num_outputs, axis=axis)
    return one_or_list(np.squeeze(part, axis) if squeeze_axis else part for part in parts)


def _parts(attributes: Attributes) -> int:
    sections = attributes.get("sections") or 0
    indices = attributes.get("indices") or ()
    return sections or (len(indices) if isinstance(indices, tuple) else 1) or 1


@stored("_npi_split", "_npi_hsplit", "_npi_dsplit", results=_parts)
def _split(
    data: Any, indices: Any = (), axis: int = 0, squeeze_axis: bool = False, sections: int = 0
) -> Any:
    return np.split(data, sections or _starts(indices), axis)


def _starts(indices: Any) -> list[int]:
    """Where parts begin behind the first, which MXNet names too."""
    return [i for i in (indices if isinstance(indices, tuple) else (indices,)) if i != 0]


@writes("split")
def _write_split(writer: Writer, a: Arguments) -> Made:
    sections = a["indices_or_sections"]
    parts = {"sections": sections, "indices": ()}
    if isinstance(sections, tuple | list):
        extent = a["ary"].shape[a["axis"]]
        starts = (min(max(i + extent if i < 0 else i, 0), extent) for i in sections)
        parts = {"sections": 0, "indices": (0, *starts)}
    return writer.single("_npi_split", a, a["ary"], **parts, axis=a["axis"])


@operator(method=True)
def split_v2(ary: Any, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """The parts between indices, or equal parts, along `axis`."""
    return one_or_list(ary.split_v2(indices_or_sections, axis, squeeze_axis))


@stored("_split_v2", results=_parts, symbol="split_v2")
def _split_between(
    data: Any, indices: Any = (), axis: int = 0, squeeze_axis: bool = False, sections: int = 0
) -> Any:
    return split_v2(data, sections or _starts(indices), axis, squeeze_axis)


# -- repeated, and with a border -------------------------------------------------------------------


@operator(method=True)
def tile(data: Any, reps: Any) -> Any:
    """`data` repeated as a whole, `reps` times along each axis."""
    return np.tile(data, reps)


@operator(method=True)
def repeat(data: Any, repeats: int, axis: int | None = None) -> Any:
    """Each element repeated."""
    return np.repeat(data, repeats, axis)


@operator(method=True)
def broadcast_to(data: Any, shape: Extents) -> Any:
    """Repeated to `shape`, where 0 keeps an extent."""
    return np.broadcast_to(
        data, tuple(n or own for n, own in zip(as_sequence(shape), data.shape, strict=True))
    )


@operator("broadcast_axis", "broadcast_axes", method="broadcast_axes")
def broadcast_axis(data: Any, axis: Any = (), size: Any = ()) -> Any:
    """Repeated `size` times along axes of extent 1."""
    return data.broadcast_axes(axis, size)


@operator(method=True)
def broadcast_like(lhs: Any, rhs: Any, lhs_axes: Any = None, rhs_axes: Any = None) -> Any:
    """`lhs` repeated to the shape of `rhs`."""
    return lhs.broadcast_like(rhs, lhs_axes, rhs_axes)


@operator("pad", "Pad", method=True)
def pad(data: Any, mode: str, pad_width: Sequence[int], constant_value: float = 0.0) -> Any:
    """A border around the data; `pad_width` has two numbers for each axis."""
    if mode not in ("constant", "edge", "reflect") or len(pad_width) != 2 * data.ndim:
        raise ArgumentError(
            f"pad: mode={mode!r}, pad_width={tuple(pad_width)} for {data.ndim} dimensions; "
            "expected 'constant', 'edge' or 'reflect', and two numbers for each dimension."
        )
    pairs = tuple(zip(pad_width[::2], pad_width[1::2], strict=True))
    values = {"constant_values": constant_value} if mode == "constant" else {}
    return np.pad(data, pairs, mode=mode, **values)


of_record(
    "_npi_pad",
    renamed={"constant_values": "constant_value", "end_values": None, "reflect_type": None},
)


@writes("pad")
def _write_pad(writer: Writer, a: Arguments) -> Made:
    value = a["constant_values"]
    if a["mode"] not in ("constant", "edge", "reflect", "symmetric", "maximum", "minimum"):
        return None
    if not isinstance(value, int | float) or a["reflect_type"] != "even":
        return None
    width = a["pad_width"]
    width = width if isinstance(width, tuple) else (width, width)
    width = width if isinstance(width[0], tuple) else (width,)
    rank = a["x"].ndim
    width = width * rank if len(width) == 1 else width
    attributes = {"constant_value": value} if a["mode"] == "constant" else {}
    return writer.single("_npi_pad", a, a["x"], pad_width=width, mode=a["mode"], **attributes)
