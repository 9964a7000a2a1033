"""Operators that pick elements out, by bounds or by index, and that write to such places."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.shapes import Extents, in_a_row, reshaped
from heterosis.mxnet.operators.table import as_sequence, operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, plain, writes
from heterosis.runtime.errors import ArgumentError

# -- parts between bounds -------------------------------------------------------------------------


@operator("slice", "crop", stored=("_npi_slice", "_npx_slice"), method=True)
def slice_(data: Any, begin: int | Sequence, end: int | Sequence, step: int | Sequence = ()) -> Any:
    """The elements from `begin` to `end`, `step` apart, along the leading dimensions."""
    return npx.slice(data, as_sequence(begin), as_sequence(end), as_sequence(step) or None)


@writes("select_part")
def _write_select_part(writer: Writer, a: Arguments) -> Made:
    entry = writer.entry(a["a"])
    if not _is_whole(a):
        entry = writer.node("slice", f"{a.name}_slice", [entry], _ends(a))[0]
    counts, shape = tuple(a["counts"]), tuple(a["shape"])
    dropped, new = _dropped_and_new(counts, shape, a["a"].shape)
    if dropped:
        squeezed = {"axis": dropped}
        entry = writer.node("_np_squeeze", f"{a.name}_squeeze", [entry], squeezed)[0]
    for axis in new:
        expanded = {"axis": axis}
        entry = writer.node("_npi_expand_dims", f"{a.name}_expand{axis}", [entry], expanded)[0]
    return [entry]


def _is_whole(a: Arguments) -> bool:
    part = zip(a["starts"], a["steps"], a["counts"], a["a"].shape, strict=True)
    return all(start == 0 and step == 1 and n == extent for start, step, n, extent in part)


def _ends(a: Arguments) -> dict[str, Any]:
    """Where a part begins and ends along each axis; None at an end of the array itself."""
    rows = list(zip(a["starts"], a["steps"], a["counts"], a["a"].shape, strict=True))
    return {
        "begin": tuple(_begin(*row) for row in rows),
        "end": tuple(_end(*row) for row in rows),
        "step": tuple(step for _, step, _, _ in rows),
    }


def _begin(start: int, step: int, count: int, extent: int) -> int | None:
    return None if start == (0 if step > 0 else extent - 1) else start


def _end(start: int, step: int, count: int, extent: int) -> int | None:
    end = start + step * count
    return None if end < 0 or end >= extent else end


def _dropped_and_new(
    counts: tuple[int, ...], shape: tuple[int, ...], whole: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Axes of 1 that an integer has taken away, and new ones, by their places in the result.

    Of several readings that give the shape, one that drops no axis that was taken whole.
    """
    ones = [axis for axis, n in enumerate(counts) if n == 1]
    readings = []
    for chosen in product((False, True), repeat=len(ones)):
        dropped = tuple(axis for axis, drop in zip(ones, chosen, strict=True) if drop)
        left = [n for axis, n in enumerate(counts) if axis not in dropped]
        new = _inserted(left, shape)
        if new is not None:
            cost = sum(whole[axis] == 1 for axis in dropped)
            readings.append((len(new), cost, dropped, new))
    _, _, dropped, new = min(readings)
    return dropped, new


def _inserted(left: list[int], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Where axes of 1 make `left` the shape; None if they do not."""
    new, waiting = [], list(left)
    for axis, n in enumerate(shape):
        if waiting and waiting[0] == n:
            waiting.pop(0)
        elif n == 1:
            new.append(axis)
        else:
            return None
    return None if waiting else tuple(new)


@stored("_slice_assign")
def _slice_assign(lhs: Any, rhs: Any, begin: Any, end: Any, step: Any = ()) -> Any:
    result = np.copy(lhs)
    result[_slices(begin, end, step)] = rhs
    return result


@stored("_slice_assign_scalar")
def _slice_assign_number(data: Any, begin: Any, end: Any, step: Any = (), scalar: float = 0) -> Any:
    return _slice_assign(data, scalar, begin, end, step)


def _slices(begin: Any, end: Any, step: Any) -> tuple[slice, ...]:
    steps = step or (None,) * len(begin)
    return tuple(slice(*ends) for ends in zip(begin, end, steps, strict=True))


@writes("assign_part")
def _write_assign_part(writer: Writer, a: Arguments) -> Made:
    base, number = writer.entry(a["a"]), a.number("value")
    if number is not None:
        attributes = {**_ends(a), "scalar": float(number)}
        return writer.node("_slice_assign_scalar", a.name, [base], attributes)
    value, counts = writer.entry(a["value"]), tuple(a["counts"])
    if a["value"].shape != tuple(a["shape"]):
        spread = {"shape": tuple(a["shape"])}
        value = writer.node("_npi_broadcast_to", f"{a.name}_value", [value], spread)[0]
    if tuple(a["shape"]) != counts:
        value = reshaped(writer, f"{a.name}_place", value, counts)
    return writer.node("_slice_assign", a.name, [base, value], _ends(a))


@operator(method=True)
def slice_axis(data: Any, axis: int, begin: int, end: int | None) -> Any:
    """The elements from `begin` to `end` along one axis."""
    return npx.slice_axis(data, axis, begin, end)


@writes("slice_axis")
def _write_slice_axis(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, end="None" if a["end"] is None else a["end"])


@operator(method=True)
def slice_like(data: Any, shape_like: Any, axes: Any = ()) -> Any:
    """As many elements along `axes` as `shape_like` has."""
    return npx.slice_like(data, shape_like, axes)


@operator(method=True)
def diag(data: Any, k: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal, or a matrix with the elements on its diagonal."""
    return np.diag(data, k) if data.ndim == 1 else np.diagonal(data, k, axis1, axis2)


# -- elements by index ----------------------------------------------------------------------------


@operator(method=True)
def take(a: Any, indices: Any, axis: int = 0, mode: str = "clip") -> Any:
    """The rows of `a` that `indices` name along `axis`."""
    return np.take(a, indices.astype("int64"), axis=axis, mode=mode)


@writes("take")
def _write_take(writer: Writer, a: Arguments) -> Made:
    entry, axis = in_a_row(writer, a, a["a"], a["axis"], 0)
    # Negative indices count from the end, and others are inside: that is what 'wrap' means then.
    facts = {"axis": axis, "mode": "wrap" if a["mode"] == "raise" else a["mode"]}
    return writer.node("_npi_take", a.name, [entry, writer.entry(a["indices"])], facts)


@writes("gather")
def _write_gather(writer: Writer, a: Arguments) -> Made:
    if len(a["indices"]) != 1:
        return None
    (index,) = a["indices"]
    entries = [writer.entry(a["a"]), writer.entry(index)]
    name = f"{a.name}_take" if a["position"] else a.name
    # Negative indices count from the end, and others are inside: that is what 'wrap' means then.
    taken = writer.node("_npi_take", name, entries, {"axis": 0, "mode": "wrap"})
    if not a["position"] or not index.ndim:
        return taken
    here = tuple(range(index.ndim))
    there = tuple(a["position"] + axis for axis in here)
    moved = {"source": here, "destination": there}
    return writer.node("_np_moveaxis", a.name, taken, moved)


@operator()
def batch_take(a: Any, indices: Any) -> Any:
    """One element of each row."""
    return npx.pick(a, indices)


@operator("pick", "choose_element_0index", method=True)
def pick(data: Any, index: Any, axis: int = -1, keepdims: bool = False, mode: str = "clip") -> Any:
    """One element for each position off `axis`."""
    return npx.pick(data, index, axis, keepdims, mode)


@operator()
def fill_element_0index(lhs: Any, mhs: Any, rhs: Any) -> Any:
    """`lhs` with, in each row, the element that `rhs` names replaced by that of `mhs`."""
    places = np.arange(lhs.shape[1])
    here = np.expand_dims(rhs, 1) == places
    return np.where(here, np.expand_dims(mhs, 1), lhs)


@operator()
def reset_arrays(*data: Any, num_arrays: int = 1) -> None:
    """Set all elements of all arrays to 0, in place."""
    for array in data:
        array[...] = 0


@operator(method=True)
def one_hot(
    indices: Any, depth: int, on_value: float = 1.0, off_value: float = 0.0,
    dtype: Any = "float32",
) -> Any:  # fmt: skip
    """A new last dimension with `on_value` at each index."""
    return npx.one_hot(indices, depth, on_value, off_value, dtype)


@operator()
def gather_nd(data: Any, indices: Any) -> Any:
    """The elements at places given by the first dimension of `indices`."""
    return data[tuple(indices.astype("int64"))]


@operator()
def scatter_nd(data: Any, indices: Any, shape: Extents) -> Any:
    """Zeros of `shape` with `data` at places given by the first dimension of `indices`."""
    made = np.zeros(as_sequence(shape), data.dtype)
    made[tuple(indices.astype("int64"))] = data
    return made


@operator()
def unravel_index(data: Any, shape: Extents) -> Any:
    """The index along each axis, for places counted through the whole array."""
    found = np.unravel_index(data.astype("int64"), as_sequence(shape))
    return np.stack(found).astype(data.dtype)


@operator()
def ravel_multi_index(data: Any, shape: Extents) -> Any:
    """Places counted through the whole array, for indices along each axis."""
    place = data[0]
    for axis, extent in enumerate(as_sequence(shape)[1:], 1):
        place = place * extent + data[axis]
    return place


# -- sequences: steps along the first axis, examples along the second -----------------------------


@operator("SequenceMask")
def sequence_mask(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False,
    value: float = 0.0, axis: int = 0,
) -> Any:  # fmt: skip
    """`value` behind the end of each sequence."""
    return npx.sequence_mask(data, sequence_length, use_sequence_length, value, axis)


@operator("SequenceLast")
def sequence_last(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0
) -> Any:
    """The last step of each sequence."""
    steps = np.moveaxis(data, axis, 0)
    if not use_sequence_length:
        return steps[-1]
    return steps[sequence_length.astype("int64") - 1, np.arange(steps.shape[1], dtype="int64")]


@operator("SequenceReverse")
def sequence_reverse(
    data: Any, sequence_length: Any = None, use_sequence_length: bool = False, axis: int = 0
) -> Any:
    """The steps of each sequence in reverse; those behind its end stay."""
    if axis != 0:
        raise ArgumentError(f"SequenceReverse: axis={axis}; steps are along axis 0.")
    if not use_sequence_length:
        return np.flip(data, 0)
    step = np.arange(data.shape[0], dtype="int64").reshape(-1, 1)
    length = sequence_length.astype("int64").reshape(1, -1)
    place = np.where(step < length, length - 1 - step, step)
    return data[place, np.arange(data.shape[1], dtype="int64").reshape(1, -1)]
