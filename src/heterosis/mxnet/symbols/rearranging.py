"""Steps that rearrange arrays or pick parts of them: how MXNet says the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from heterosis.mxnet.graph import Entry
from heterosis.mxnet.symbols.capturing import Arguments, Writer, plain, rule

Made = Sequence[Entry] | None

_MOST_TRANSPOSED = 6  # dimensions, in MXNet

# -- rearranging ----------------------------------------------------------------------------------


@rule("reshape", "ravel")
def _reshape(writer: Writer, a: Arguments) -> Made:
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


@rule("transpose")
def _transpose(writer: Writer, a: Arguments) -> Made:
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


@rule("split")
def _split(writer: Writer, a: Arguments) -> Made:
    sections = a["indices_or_sections"]
    parts = {"sections": sections, "indices": ()}
    if isinstance(sections, tuple | list):
        extent = a["ary"].shape[a["axis"]]
        starts = (min(max(i + extent if i < 0 else i, 0), extent) for i in sections)
        parts = {"sections": 0, "indices": (0, *starts)}
    return writer.single("_npi_split", a, a["ary"], **parts, axis=a["axis"])


@rule("expand_dims")
def _expand_dims(writer: Writer, a: Arguments) -> Made:
    entry, axes = [writer.entry(a["a"])], _listed(a["axis"])
    for axis in sorted(axis % a.results[0].ndim for axis in axes):
        name = a.name if len(axes) == 1 else f"{a.name}_{axis}"
        entry = writer.node("_npi_expand_dims", name, entry, {"axis": axis})
    return entry


@rule("flip")
def _flip(writer: Writer, a: Arguments) -> Made:
    rank = a["m"].ndim
    axes = range(rank) if a["axis"] is None else _listed(a["axis"])
    return writer.single("_npi_flip", a, a["m"], axis=tuple(axis % rank for axis in axes))


@rule("flip_left_right", "flip_top_bottom")
def _flip_image(writer: Writer, a: Arguments) -> Made:
    axis = a["data"].ndim - (2 if a.record.name == "flip_left_right" else 3)
    return writer.single("_npi_flip", a, a["data"], axis=(axis,))


@rule("concatenate")
def _concatenate(writer: Writer, a: Arguments) -> Made:
    if a["axis"] is None and len({value.shape for value in a["seq"]}) > 1:
        return None
    axis = {"axis": "None" if a["axis"] is None else a["axis"]}
    return writer.single("_npi_concatenate", a, *a["seq"], num_args=len(a["seq"]), **axis)


@rule("slice_axis")
def _slice_axis(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, end="None" if a["end"] is None else a["end"])


def _listed(axis: Any) -> tuple[int, ...]:
    return tuple(axis) if isinstance(axis, tuple | list) else (axis,)


@rule("pad")
def _pad(writer: Writer, a: Arguments) -> Made:
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


# -- parts of arrays ------------------------------------------------------------------------------


@rule("select_part")
def _select_part(writer: Writer, a: Arguments) -> Made:
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


@rule("assign_part")
def _assign_part(writer: Writer, a: Arguments) -> Made:
    base, number = writer.entry(a["a"]), a.number("value")
    if number is not None:
        attributes = {**_ends(a), "scalar": float(number)}
        return writer.node("_slice_assign_scalar", a.name, [base], attributes)
    value, counts = writer.entry(a["value"]), tuple(a["counts"])
    if a["value"].shape != tuple(a["shape"]):
        spread = {"shape": tuple(a["shape"])}
        value = writer.node("_npi_broadcast_to", f"{a.name}_value", [value], spread)[0]
    if tuple(a["shape"]) != counts:
        placed = {"newshape": counts}
        value = writer.node("_np_reshape", f"{a.name}_place", [value], placed)[0]
    return writer.node("_slice_assign", a.name, [base, value], _ends(a))


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


@rule("gather")
def _gather(writer: Writer, a: Arguments) -> Made:
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
