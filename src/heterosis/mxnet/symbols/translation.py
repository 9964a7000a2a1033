"""Steps that are not one operator with the record's own attributes: how MXNet says the same."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir.program import Value
from heterosis.mxnet.graph import Entry, Node
from heterosis.mxnet.symbols import rearranging as _rearranging  # noqa: F401 - more rules
from heterosis.mxnet.symbols.capturing import Arguments, Writer, graph_of, plain, rule

Made = Sequence[Entry] | None

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


@rule("batch_norm")
def _batch_norm(writer: Writer, a: Arguments) -> Made:
    # MXNet's operator returns other results in training, and writes to its operands.
    return None if a["training"] and not a["use_global_stats"] else plain(writer, a)


@rule("adjust_lighting")
def _adjust_lighting(writer: Writer, a: Arguments) -> Made:
    return None  # MXNet's numbers are attributes, and ours an array


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
        return _between(writer, a)
    return writer.single("_npi_clip", a, a["a"], a_min=bounds[0], a_max=bounds[1])


def _between(writer: Writer, a: Arguments) -> Made:
    """Bounds that are arrays."""
    entry = [writer.entry(a["a"])]
    for name, short, better in (("a_min", "min", "maximum"), ("a_max", "max", "minimum")):
        bound, number = a[name], a.number(name)
        bound, number = (a[short], a.number(short)) if bound is None else (bound, number)
        if number is not None:
            facts = {"scalar": number, "is_int": isinstance(number, int)}
            entry = writer.node(f"_npi_{better}_scalar", f"{a.name}_{better}", entry, facts)
        elif bound is not None:
            both = [*entry, writer.entry(bound)]
            entry = writer.node(f"_npi_{better}", f"{a.name}_{better}", both, {})
    return entry


# -- sums and orders ----------------------------------------------------------------------------


@rule("norm")
def _norm(writer: Writer, a: Arguments) -> Made:
    if a["ord"] not in (None, 2) or not (a["axis"] is None or isinstance(a["axis"], int)):
        return None
    flag = -2 if a["axis"] is None else -1  # which of MXNet's norms it is
    facts = {"ord": 2, "axis": a["axis"], "keepdims": a["keepdims"], "flag": flag}
    return writer.single("_npi_norm", a, a["x"], **facts)


@rule("tensordot")
def _tensordot(writer: Writer, a: Arguments) -> Made:
    axes = a["axes"]
    if isinstance(axes, int):
        return writer.single("_npi_tensordot_int_axes", a, a["a"], a["b"], axes=axes)
    summed = [(ax,) if isinstance(ax, int) else tuple(ax) for ax in axes]
    return writer.single(
        "_npi_tensordot", a, a["a"], a["b"], a_axes_summed=summed[0], b_axes_summed=summed[1]
    )


@rule("sum", "prod")
def _sum(writer: Writer, a: Arguments) -> Made:
    if a["where"] is not None or (a["initial"] is not None and a.number("initial") is None):
        return None
    entry, dtype = [writer.entry(a["a"])], a["dtype"]
    if dtype not in (None, a["a"].dtype):  # MXNet would convert the sum, and not what is summed
        entry = writer.node("Cast", f"{a.name}_cast", entry, {"dtype": dtype})
    facts = {"axis": a["axis"], "dtype": dtype, "keepdims": a["keepdims"]}
    facts["initial"] = a.number("initial")
    return writer.node(a.record.names["mxnet"], a.name, entry, facts)


@rule("max", "min", "mean", "any", "all")
def _reduced(writer: Writer, a: Arguments) -> Made:
    return None if a["where"] is not None else plain(writer, a)


@rule("average")
def _average(writer: Writer, a: Arguments) -> Made:
    if a["keepdims"] or a["returned"]:
        return None
    weights = [] if a["weights"] is None else [a["weights"]]
    facts = {"axis": a["axis"], "weighted": bool(weights)}
    return writer.single("_npi_average", a, a["a"], *weights, **facts)


@rule("percentile", "quantile")
def _percentile(writer: Writer, a: Arguments) -> Made:
    number = a.number("q")
    hundred = 1 if a.record.name == "percentile" else 100
    kind = a["method"] or a["interpolation"]
    if (number is None and hundred > 1) or kind not in _INTERPOLATIONS:
        return None
    facts = {"axis": a["axis"], "interpolation": kind, "keepdims": a["keepdims"]}
    if number is None:
        return writer.single("_npi_percentile", a, a["a"], a["q"], **facts)
    return writer.single("_npi_percentile", a, a["a"], **facts, q_scalar=float(number) * hundred)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@rule("argsort")
def _argsort(writer: Writer, a: Arguments) -> Made:
    entry, axis = _in_a_row(writer, a, a["a"], a["axis"])
    facts = {"axis": axis, "is_ascend": True, "dtype": "int64"}
    return writer.node("_npi_argsort", a.name, entry, facts)


@rule("sort")
def _sort(writer: Writer, a: Arguments) -> Made:
    entry, axis = _in_a_row(writer, a, a["a"], a["axis"])
    return writer.node("_npi_sort", a.name, entry, {"axis": axis, "is_ascend": True})


@rule("take")
def _take(writer: Writer, a: Arguments) -> Made:
    entry, axis = _in_a_row(writer, a, a["a"], a["axis"], 0)
    # Negative indices count from the end, and others are inside: that is what 'wrap' means then.
    facts = {"axis": axis, "mode": "wrap" if a["mode"] == "raise" else a["mode"]}
    return writer.node("_npi_take", a.name, [*entry, writer.entry(a["indices"])], facts)


def _in_a_row(
    writer: Writer, a: Arguments, value: Value, axis: int | None, along: int = -1
) -> tuple[list[Entry], int]:
    """An array and an axis of it: where none is given, all its elements in a row."""
    if axis is not None:
        return [writer.entry(value)], axis
    row = {"newshape": (-1,)}
    return writer.node("_np_reshape", f"{a.name}_row", [writer.entry(value)], row), along


@rule("cumsum")
def _cumsum(writer: Writer, a: Arguments) -> Made:
    axis = None if a["axis"] is None else a["axis"] % a["a"].ndim
    return plain(writer, a, axis=axis)


@rule("pinv")
def _pinv(writer: Writer, a: Arguments) -> Made:
    number = a.number("rcond")
    if number is None:
        return plain(writer, a)
    facts = {"rcond": number, "hermitian": a["hermitian"]}
    return writer.single("_npi_pinv_scalar_rcond", a, a["a"], **facts)


__all__ = ["graph_of"]
