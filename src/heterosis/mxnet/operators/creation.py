"""Operators that make arrays of numbers that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np
from heterosis.mxnet.graph import Entry, Node
from heterosis.mxnet.operators.table import Run, of_record, operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, plain, writes
from heterosis.ops.unsized import UNKNOWN, Unsized

_NOT_THERE = {"order": None, "ctx": None}


def extents_of(shape: Any) -> tuple[int, ...]:
    """A shape, for which a number alone stands too."""
    return (shape,) if isinstance(shape, int) else tuple(shape or ())


# -- one number everywhere ------------------------------------------------------------------------


@operator()
def zeros(shape: Any, ctx: Any = None, dtype: Any = None, **options: Any) -> Any:
    """Zeros."""
    return np.zeros(extents_of(shape), dtype, ctx=ctx)


@operator()
def ones(shape: Any, ctx: Any = None, dtype: Any = None, **options: Any) -> Any:
    """Ones."""
    return np.ones(extents_of(shape), dtype or "float32", ctx=ctx)


def _filled(make: Callable[[tuple[int, ...], Any], Any]) -> Run:
    def fill(shape: Any = (), dtype: str | None = "float32") -> Any:
        extents = shape if isinstance(shape, tuple) else (shape,)
        if UNKNOWN not in extents:
            return make(extents, dtype)
        return Unsized("an array of the symbol", extents, lambda known: make(known, dtype))

    return fill


stored(
    "_npi_zeros", "_zeros", "_zeros_without_dtype",
    symbol="zeros", creates=True, zero_is_unknown=True, renamed=_NOT_THERE,
)(_filled(np.zeros))  # fmt: skip
stored(
    "_npi_ones", "_ones",
    symbol="ones", creates=True, zero_is_unknown=True, renamed=_NOT_THERE,
)(_filled(np.ones))  # fmt: skip


@writes("zeros", "ones")
def _write_zeros(writer: Writer, a: Arguments) -> Made:
    return plain(writer, a, dtype=a.results[0].dtype)


def of_any_batch(entry: Entry) -> Entry:
    """Zeros to begin with, whose batch MXNet infers, in place of zeros for one batch."""
    node = entry.node
    if node.operator != "_npi_zeros":
        return entry
    layers, _, units = node.attributes["shape"].strip("()").split(", ")
    attributes = node.attributes | {"shape": f"({layers}, -1, {units})"}
    return Entry(Node(node.operator, node.name, attributes))


@operator()
def full(shape: Any, val: float, ctx: Any = None, dtype: Any = "float32") -> Any:
    """One number everywhere."""
    return np.full(extents_of(shape), val, dtype, ctx=ctx)


@stored("_npi_full", "_full", symbol="full", creates=True, zero_is_unknown=True)
def _full(shape: Any, value: float, dtype: str | None = "float32") -> Any:
    return np.full(shape, value, dtype=dtype)


@writes("full")
def _write_full(writer: Writer, a: Arguments) -> Made:
    number, result = a.number("fill_value"), a.results[0]
    if number is None:
        return None
    return writer.single("_npi_full", a, shape=result.shape, value=number, dtype=result.dtype)


of_record("_npi_full_like", renamed=_NOT_THERE | {"shape": None})


@writes("zeros_like", "ones_like")
def _write_like(writer: Writer, a: Arguments) -> Made:
    number = int(a.record.name == "ones_like")
    if a["shape"] is not None:
        named = ("_npi_zeros", "_npi_ones")[number]
        return writer.single(named, a, shape=a["shape"], dtype=a.results[0].dtype)
    return writer.single("_npi_full_like", a, a["a"], fill_value=number, dtype=a["dtype"])


@operator()
def empty(shape: Any, ctx: Any = None, dtype: Any = None) -> Any:
    """Whatever the memory held."""
    return np.empty(extents_of(shape), dtype, ctx=ctx)


@operator()
def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> Any:
    """An array from numbers, lists or arrays; of float32, also from NumPy's arrays of others."""
    own = source_array.dtype if isinstance(source_array, np.ndarray) else "float32"
    return np.array(source_array, dtype or own, ctx)


# -- rows of numbers, and diagonals ---------------------------------------------------------------


@operator()
def arange(
    start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1,
    infer_range: bool | None = None, ctx: Any = None, dtype: Any = "float32",
) -> Any:  # fmt: skip
    """Numbers from `start` up to `stop`, each `repeat` times."""
    numbers = np.arange(start, stop, step, dtype, ctx)
    return np.repeat(numbers, repeat) if repeat > 1 else numbers


@stored("_npi_arange", "_arange", symbol="arange", creates=True)
def _arange(
    start: float = 0, stop: float | None = None, step: float = 1, repeat: int = 1,
    infer_range: bool = False, dtype: str = "float32",
) -> Any:  # fmt: skip
    made = np.arange(start, stop, step, dtype=dtype)
    return np.repeat(made, repeat) if repeat != 1 else made


@writes("arange")
def _write_arange(writer: Writer, a: Arguments) -> Made:
    start, step, count = a.number("start"), a.number("step"), a["num"]
    if start is None or step is None:
        return None
    stop = start + (count - 0.5) * step  # well between two numbers
    return writer.single(
        "_npi_arange", a, start=start, stop=stop, step=step, dtype=a.results[0].dtype
    )


@stored("_linspace", "_npi_linspace", symbol="linspace", creates=True)
def _linspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: str = "float32",
    step: float | None = None, repeat: int = 1, infer_range: bool = False,
) -> Any:  # fmt: skip
    return np.linspace(start, stop, num, endpoint, dtype=dtype)


@writes("linspace")
def _write_linspace(writer: Writer, a: Arguments) -> Made:
    ends = {p: a.number(p) for p in ("start", "stop")}
    if None in ends.values() or a["axis"]:
        return None
    facts = {"num": a["num"], "endpoint": a["endpoint"], "dtype": a.results[0].dtype}
    return writer.single("_npi_linspace", a, **ends, **facts)


@operator()
def eye(N: int, M: int = 0, k: int = 0, ctx: Any = None, dtype: Any = "float32") -> Any:
    """Ones on a diagonal."""
    return np.eye(N, M or None, k, dtype)


of_record("_npi_eye", symbol="eye", creates=True)
