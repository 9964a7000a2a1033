"""Operators that combine elements along axes, and put them in order."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.conversions import converted
from heterosis.mxnet.operators.shapes import in_a_row
from heterosis.mxnet.operators.table import Run, axes_of, operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, plain, writes
from heterosis.runtime.errors import ArgumentError

# -- sums, products, means ------------------------------------------------------------------------


def _reduction(run: Run) -> Run:
    def reduce(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Any:
        return run(data, axis=axes_of(axis, data.ndim, exclude), keepdims=keepdims)

    return reduce


_ALIASES = {"sum": ("sum_axis",), "max": ("max_axis",), "min": ("min_axis",)}
for _name in ("sum", "mean", "prod", "nansum", "nanprod", "max", "min"):
    operator(_name, *_ALIASES.get(_name, ()), method=True)(_reduction(getattr(np, _name)))


@writes("sum", "prod")
def _write_sum(writer: Writer, a: Arguments) -> Made:
    if a["where"] is not None or (a["initial"] is not None and a.number("initial") is None):
        return None
    entry, dtype = writer.entry(a["a"]), a["dtype"]
    if dtype not in (None, a["a"].dtype):  # MXNet would convert the sum, and not what is summed
        entry = converted(writer, f"{a.name}_cast", entry, dtype)
    facts = {"axis": a["axis"], "dtype": dtype, "keepdims": a["keepdims"]}
    facts["initial"] = a.number("initial")
    return writer.node(a.record.names["mxnet"], a.name, [entry], facts)


@writes("max", "min", "mean", "any", "all")
def _write_reduced(writer: Writer, a: Arguments) -> Made:
    return None if a["where"] is not None else plain(writer, a)


@operator(results=2)
def moments(data: Any, axes: Any = None, keepdims: bool = False) -> list[Any]:
    """Mean and variance along axes."""
    along = axes_of(axes, data.ndim)
    return [
        np.mean(data, axis=along, keepdims=keepdims),
        np.var(data, axis=along, keepdims=keepdims),
    ]


@stored("_npi_average", results=lambda a: 2 if a.get("returned") else 1)
def _average(
    a: Any, weights: Any = None, axis: Any = None, returned: bool = False, weighted: bool = True
) -> Any:
    return np.average(a, axis, weights, returned)


@writes("average")
def _write_average(writer: Writer, a: Arguments) -> Made:
    if a["keepdims"] or a["returned"]:
        return None
    weights = [] if a["weights"] is None else [a["weights"]]
    facts = {"axis": a["axis"], "weighted": bool(weights)}
    return writer.single("_npi_average", a, a["a"], *weights, **facts)


@stored("_npi_percentile")
def _percentile(
    a: Any, q: Any = None, axis: Any = None, interpolation: str = "linear", keepdims: bool = False,
    q_scalar: float | None = None,
) -> Any:  # fmt: skip
    q = q_scalar if q is None else q
    return np.percentile(a, q, axis, interpolation=interpolation, keepdims=keepdims)


@writes("percentile", "quantile")
def _write_percentile(writer: Writer, a: Arguments) -> Made:
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


@stored("_histogram", "_npi_histogram", results=2, symbol="histogram")
def _histogram(data: Any, bins: Any = None, bin_cnt: int = 10, range: Any = None) -> Any:
    return np.histogram(data, bin_cnt if bins is None else bins, range)


@operator()
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Running sums along `axis`."""
    return np.cumsum(a, axis=axis, dtype=dtype)


@writes("cumsum")
def _write_cumsum(writer: Writer, a: Arguments) -> Made:
    axis = None if a["axis"] is None else a["axis"] % a["a"].ndim
    return plain(writer, a, axis=axis)


@operator()
def all_finite(data: Any, init_output: bool = True) -> Any:
    """1 if no element is infinite or nan, else 0."""
    return np.all(np.isfinite(data)).astype("float32").reshape(1)


@operator()
def multi_all_finite(*data: Any, num_arrays: int = 1, init_output: bool = True) -> Any:
    """1 if no element of any array is infinite or nan, else 0."""
    return np.min(np.stack([all_finite(array) for array in data]), axis=0)


@operator()
def multi_sum_sq(*data: Any, num_arrays: int = 1) -> Any:
    """The sum of squares of each array."""
    return np.stack([np.sum(np.square(array)) for array in data])


# -- norms ----------------------------------------------------------------------------------------


@operator(method=True)
def norm(
    data: Any, ord: int = 2, axis: Any = None, keepdims: bool = False, out_dtype: Any = None
) -> Any:
    """The sum of absolute values (`ord=1`) or the root of the sum of squares (2) along axes."""
    axes = axes_of(axis, data.ndim)
    if ord not in (1, 2):
        raise ArgumentError(f"norm: ord is {ord!r}; expected 1 or 2. Others: np.linalg.norm.")
    if ord == 1:
        found = np.sum(np.abs(data), axis=axes, keepdims=keepdims)
    else:
        found = np.sqrt(np.sum(np.square(data), axis=axes, keepdims=keepdims))
    return found if out_dtype is None else found.astype(out_dtype)


@stored("_npi_norm")
def _norm(
    data: Any, ord: float = 2, axis: Any = None, keepdims: bool = False, flag: int = -1
) -> Any:
    return np.linalg.norm(data, None if flag in (-2, 1) else ord, axis, keepdims)


@writes("norm")
def _write_norm(writer: Writer, a: Arguments) -> Made:
    if a["ord"] not in (None, 2) or not (a["axis"] is None or isinstance(a["axis"], int)):
        return None
    flag = -2 if a["axis"] is None else -1  # which of MXNet's norms it is
    facts = {"ord": 2, "axis": a["axis"], "keepdims": a["keepdims"], "flag": flag}
    return writer.single("_npi_norm", a, a["x"], **facts)


# -- places and orders ----------------------------------------------------------------------------


def _place(run: Run) -> Run:
    """Indices as float32, which is what these operators give."""

    def find(data: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        found = run(data, axis=axis).astype("float32")
        return np.expand_dims(found, axis) if keepdims and axis is not None else found

    return find


operator("argmax", method=True)(_place(np.argmax))
operator("argmin", method=True)(_place(np.argmin))


@operator(method=True)
def argmax_channel(data: Any) -> Any:
    """The index of the largest element along axis 1, as float32."""
    return data.argmax_channel()


@operator(stored=("_npi_argsort",), method=True)
def argsort(data: Any, axis: int = -1, is_ascend: bool = True, dtype: Any = "float32") -> Any:
    """The indices that sort along `axis`, as `dtype`."""
    return np.argsort(data if is_ascend else -data, axis=axis).astype(dtype)


@writes("argsort")
def _write_argsort(writer: Writer, a: Arguments) -> Made:
    entry, axis = in_a_row(writer, a, a["a"], a["axis"])
    facts = {"axis": axis, "is_ascend": True, "dtype": "int64"}
    return writer.node("_npi_argsort", a.name, [entry], facts)


@operator(stored=("_npi_sort",), method=True)
def sort(data: Any, axis: int = -1, is_ascend: bool = True) -> Any:
    """Elements in order along `axis`."""
    ordered = np.sort(data, axis=axis)
    return ordered if is_ascend else np.flip(ordered, axis)


@writes("sort")
def _write_sort(writer: Writer, a: Arguments) -> Made:
    entry, axis = in_a_row(writer, a, a["a"], a["axis"])
    return writer.node("_npi_sort", a.name, [entry], {"axis": axis, "is_ascend": True})


@operator(results=lambda a: 2 if a.get("ret_typ") == "both" else 1, method=True)
def topk(data: Any, **options: Any) -> Any:
    """The `k` largest elements along an axis; see `npx.topk`."""
    return npx.topk(data, **options)
