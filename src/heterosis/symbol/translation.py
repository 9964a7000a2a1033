"""Steps that are not one operator with the record's own attributes: how MXNet says the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from heterosis.symbol.capturing import Arguments, Writer, graph_of, plain, rule
from heterosis.symbol.graph import Entry, Node

Made = Sequence[Entry] | None

_MOST_TRANSPOSED = 6  # dimensions, in MXNet

# -- copies and element types ---------------------------------------------------------------------


@rule("copy", "assign", "positive")
def _copy(writer: Writer, a: Arguments) -> Made:
    (operand,) = (a[parameter] for parameter in a.uses)
    return writer.single("_np_copy", a, operand)


@rule("astype", "cast")
def _cast(writer: Writer, a: Arguments) -> Made:
    (operand, dtype) = (a[parameter] for parameter in a.uses)
    return writer.single("Cast", a, operand, dtype=dtype)


@rule("stop_gradient")
def _stop_gradient(writer: Writer, a: Arguments) -> Made:
    return writer.single("BlockGrad", a, a["a"])


# -- layers ---------------------------------------------------------------------------------------


@rule("fully_connected")
def _fully_connected(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, num_hidden=a["weight"].shape[0])


@rule("convolution")
def _convolution(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, num_filter=a.results[0].shape[_channels(a)])


@rule("deconvolution")
def _deconvolution(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, num_filter=a.results[0].shape[_channels(a)])


def _channels(a: Arguments) -> int:
    layout = a["layout"] or "NC"
    return layout.index("C")


@rule("embedding")
def _embedding(writer: Writer, a: Arguments) -> Made:
    count, width = a["weight"].shape
    return plain(writer, a, input_dim=count, output_dim=width, dtype=a["weight"].dtype)


@rule("dropout")
def _dropout(writer: Writer, a: Arguments) -> Made:
    # A program is written as it predicts: what draws numbers there, always does.
    return plain(writer, a, mode="always")


@rule("rnn")
def _rnn(writer: Writer, a: Arguments) -> Made:
    for state in ("state", "state_cell"):
        if a[state] is not None:
            writer.entries[a[state]] = _of_any_batch(writer.entry(a[state]))
    return plain(writer, a)


def _of_any_batch(entry: Entry) -> Entry:
    """Zeros to begin with, whose batch MXNet infers, in place of zeros for one batch."""
    node = entry.node
    if node.operator != "_npi_zeros":
        return entry
    layers, _, units = node.attributes["shape"].strip("()").split(", ")
    attributes = node.attributes | {"shape": f"({layers}, -1, {units})"}
    return Entry(Node(node.operator, node.name, attributes))


# -- making arrays --------------------------------------------------------------------------------


@rule("zeros", "ones")
def _zeros(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, dtype=a.results[0].dtype)


@rule("full")
def _full(writer: Writer, a: Arguments) -> Made:
    number, result = a.number("fill_value"), a.results[0]
    if number is None:
        return None
    return writer.single("_npi_full", a, shape=result.shape, value=number, dtype=result.dtype)


@rule("zeros_like", "ones_like")
def _like(writer: Writer, a: Arguments) -> Made:
    number = int(a.record.name == "ones_like")
    if a["shape"] is not None:
        operator = ("_npi_zeros", "_npi_ones")[number]
        return writer.single(operator, a, shape=a["shape"], dtype=a.results[0].dtype)
    return writer.single("_npi_full_like", a, a["a"], fill_value=number, dtype=a["dtype"])


@rule("arange")
def _arange(writer: Writer, a: Arguments) -> Made:
    start, step, count = a.number("start"), a.number("step"), a["num"]
    if start is None or step is None:
        return None
    stop = start + (count - 0.5) * step  # well between two numbers
    return writer.single(
        "_npi_arange", a, start=start, stop=stop, step=step, dtype=a.results[0].dtype
    )


@rule("logical_and", "logical_or", "logical_xor")
def _logical(writer: Writer, a: Arguments) -> Made:
    if a.number("x1") is not None or a.number("x2") is not None:
        return None
    truths = [_truth(writer, a, parameter) for parameter in ("x1", "x2")]
    found = writer.node(f"broadcast_{a.record.name}", f"{a.name}_number", truths, {})
    return writer.node("Cast", a.name, found, {"dtype": "bool"})


def _truth(writer: Writer, a: Arguments, parameter: str) -> Entry:
    """0 or 1 as float32: the operators take operands of one type, and no truth values."""
    entry = writer.entry(a[parameter])
    if a[parameter].dtype != "bool":
        facts = {"scalar": 0, "is_int": True}
        entry = writer.node("_npi_not_equal_scalar", f"{a.name}_{parameter}", [entry], facts)[0]
    return writer.node("Cast", f"{a.name}_{parameter}_number", [entry], {"dtype": "float32"})[0]


@rule("outer")
def _outer(writer: Writer, a: Arguments) -> Made:
    if a["a"].ndim != 1 or a["b"].ndim != 1:
        return None
    return writer.single("_npi_tensordot_int_axes", a, a["a"], a["b"], axes=0)


@rule("linspace")
def _linspace(writer: Writer, a: Arguments) -> Made:
    ends = {p: a.number(p) for p in ("start", "stop")}
    if None in ends.values() or a["axis"]:
        return None
    facts = {"num": a["num"], "endpoint": a["endpoint"], "dtype": a.results[0].dtype}
    return writer.single("_npi_linspace", a, **ends, **facts)


@rule("random_uniform", "random_normal")
def _random(writer: Writer, a: Arguments) -> Made:
    attributes = {p: a.number(p) for p in list(a.uses)[:2]}
    if None in attributes.values():
        return None
    kind = a.record.name.removeprefix("random_")
    result = a.results[0]
    return writer.single(f"_npi_{kind}", a, **attributes, size=result.shape, dtype=result.dtype)


# -- choosing -------------------------------------------------------------------------------------


@rule("where")
def _where(writer: Writer, a: Arguments) -> Made:
    x, y = a.number("x"), a.number("y")
    if a.number("condition") is not None:
        return None
    if x is None and y is None:
        return writer.single("_npi_where", a, a["condition"], a["x"], a["y"])
    if x is not None and y is not None:
        return writer.single("_npi_where_scalar2", a, a["condition"], x=float(x), y=float(y))
    if x is not None:
        return writer.single("_npi_where_lscalar", a, a["condition"], a["y"], scalar=float(x))
    return writer.single("_npi_where_rscalar", a, a["condition"], a["x"], scalar=float(y))


@rule("clip")
def _clip(writer: Writer, a: Arguments) -> Made:
    bounds = []
    for name, short, none in (("a_min", "min", -float("inf")), ("a_max", "max", float("inf"))):
        given = short if a[name] is None else name
        bounds.append(none if a[given] is None else a.number(given))
    if None in bounds:
        return None
    return writer.single("_npi_clip", a, a["a"], a_min=bounds[0], a_max=bounds[1])


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


@rule("norm")
def _norm(writer: Writer, a: Arguments) -> Made:
    if a["ord"] not in (None, 2) or not (a["axis"] is None or isinstance(a["axis"], int)):
        return None
    flag = -2 if a["axis"] is None else -1  # which of MXNet's norms it is
    facts = {"ord": 2, "axis": a["axis"], "keepdims": a["keepdims"], "flag": flag}
    return writer.single("_npi_norm", a, a["x"], **facts)


@rule("split")
def _split(writer: Writer, a: Arguments) -> Made:
    sections = a["indices_or_sections"]
    parts = {"sections": sections, "indices": ()}
    if isinstance(sections, tuple | list):
        parts = {"sections": 0, "indices": (0, *sections)}
    return writer.single("_npi_split", a, a["ary"], **parts, axis=a["axis"])


@rule("tensordot")
def _tensordot(writer: Writer, a: Arguments) -> Made:
    axes = a["axes"]
    if isinstance(axes, int):
        return writer.single("_npi_tensordot_int_axes", a, a["a"], a["b"], axes=axes)
    summed = [(ax,) if isinstance(ax, int) else tuple(ax) for ax in axes]
    return writer.single(
        "_npi_tensordot", a, a["a"], a["b"], a_axes_summed=summed[0], b_axes_summed=summed[1]
    )


@rule("expand_dims")
def _expand_dims(writer: Writer, a: Arguments) -> Made:
    axis = a["axis"]
    if isinstance(axis, tuple | list):
        if len(axis) != 1:
            return None
        (axis,) = axis
    return writer.single("_npi_expand_dims", a, a["a"], axis=axis)


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


__all__ = ["graph_of"]
