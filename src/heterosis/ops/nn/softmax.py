"""Softmax and its relatives: composites that become one loop nest."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant
from heterosis.ops.math.elementwise import less, multiply, negative, select, subtract, true_divide
from heterosis.ops.math.real import NETWORK, exp, log
from heterosis.ops.math.reductions import max, sum
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_shapes, cast, floating, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ShapeError, check_axis

_CASES = (
    Case(((37,),)),
    Case(((3, 70),), {"axis": -1}),
    Case(((5, 7),), {"axis": 0, "temperature": 2.0}),
    Case(((2, 3, 4),), {"axis": 1}),
    Case(((3, 0),)),
)
_MASKED = (
    Case(((4, 6), (4,)), {"use_length": True}),
    Case(((2, 3, 5), (2, 5)), {"axis": 1, "use_length": True}),
)


def _softmax(
    x: Any, length: Any = None, axis: Any = -1, temperature: Any = 1.0, use_length: Any = False
) -> Any:
    inside = numpy.ones(x.shape, bool)
    if use_length:
        places = numpy.arange(x.shape[axis])
        places = places.reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])
        inside = places < numpy.expand_dims(length, axis)
    found = _log_softmax(numpy.where(inside, x, -numpy.inf), axis, temperature)
    return numpy.where(inside, numpy.exp(found), 0)


def _log_softmax(x: Any, axis: Any = -1, temperature: Any = 1.0) -> Any:
    x = x / temperature
    with numpy.errstate(invalid="ignore", divide="ignore"):
        x = x - x.max(axis, keepdims=True, initial=-numpy.inf)
        return x - numpy.log(numpy.exp(x).sum(axis, keepdims=True))


def _pull_softmax(
    g: Value, y: Value, data: Value, length: Value | None, axis: int, temperature: Any, *rest: Any
) -> Any:
    weighted = multiply(g, y)
    change = subtract(weighted, multiply(y, _total(weighted, axis)))
    return (_back(change, data, temperature), *(() if length is None else (None,)))


def _pull_log_softmax(
    g: Value, y: Value, data: Value, axis: int, temperature: Any, dtype: Any
) -> Value:
    change = subtract(g, multiply(exp(y), _total(g, axis)))
    return _back(change, data, temperature)


def _back(change: Value, data: Value, temperature: float | None) -> Value:
    """What the data receive, for what the data over the temperature receive."""
    if temperature is not None:
        change = true_divide(change, constant(temperature, change.dtype))
    return cast(change, data.dtype)


@operation(
    numpy=_softmax,
    gradient=_pull_softmax,
    public=NETWORK,
    names={"mxnet": "softmax", "onnx": "Softmax"},
    samples=Samples(
        (*_CASES, *_MASKED), ((-4, 4), (0, 4)), ("float16", "float32"), ulps=8, integer_arrays=(1,)
    ),
)
def softmax(
    data: Value,
    length: Value | None = None,
    axis: int = -1,
    temperature: float | None = None,
    use_length: bool = False,
    dtype: str | None = None,
) -> Value:
    """`exp(data)` scaled to a sum of 1 along `axis`.

    With `use_length`, just the first `length` elements count, and the others become 0.
    """
    x, axis = _ready("softmax", data, axis, temperature, dtype)
    if not x.size:
        return x
    if not use_length:
        e = exp(subtract(x, _largest(x, axis)))
        return _over(e, _total(e, axis))
    return _softmax_inside(x, _inside(x, length, axis), axis)


def _softmax_inside(x: Value, inside: Value, axis: int) -> Value:
    """Softmax of what is inside; 0 elsewhere, and so where nothing is."""
    least = constant(float("-inf"), x.dtype)
    e = exp(subtract(x, _largest(select(inside, x, least), axis)))
    zero = constant(0.0, x.dtype)
    total = _total(select(inside, e, zero), axis)
    return select(inside, _over(e, total), zero)


def _masked_softmax(x: Any, mask: Any, axis: Any = -1, temperature: Any = 1.0) -> Any:
    mask = numpy.broadcast_to(mask, x.shape)
    with numpy.errstate(invalid="ignore"):
        found = _log_softmax(numpy.where(mask, x, -numpy.inf), axis, temperature)
    return numpy.where(mask, numpy.exp(found), 0)


def _pull_masked_softmax(
    g: Value, y: Value, data: Value, mask: Value, axis: int, temperature: Any
) -> Any:
    (change,) = _pull_softmax(g, y, data, None, axis, temperature)
    return change, None


@operation(
    numpy=_masked_softmax,
    gradient=_pull_masked_softmax,
    public=("npx",),
    samples=Samples(
        (
            Case(((3, 70), (3, 70))),
            Case(((2, 4, 6), (4, 1)), {"axis": 1}),
            Case(((2, 3, 5), (2, 1, 5)), {"temperature": 2.0}),
            Case(((3, 0), (3, 0))),
        ),
        ((-4, 4), (0, 2)),
        ("float16", "float32", "float64"),
        ulps=8,
        integer_arrays=(1,),
    ),
)
def masked_softmax(
    data: Value, mask: Value, axis: int = -1, temperature: float | None = None
) -> Value:
    """`softmax` of the elements whose `mask`, which is repeated to the shape of `data`, is true (or
    not 0); the others become 0, and so does all where nothing is true."""
    if not data.ndim:
        raise ShapeError("masked_softmax: data of shape (); expected at least one dimension.")
    x, axis = _ready("masked_softmax", data, axis, temperature, None)
    if broadcast_shapes("masked_softmax", (x.shape, mask.shape)) != x.shape:
        raise ShapeError(
            f"masked_softmax: a mask of shape {mask.shape} for data of shape {x.shape}; expected "
            "one that broadcasts to the data."
        )
    inside = views.broadcast(cast(mask, "bool"), x.shape)
    return _softmax_inside(x, inside, axis) if x.size else x


@operation(
    numpy=_log_softmax,
    gradient=_pull_log_softmax,
    public=NETWORK,
    names={"mxnet": "log_softmax", "onnx": "LogSoftmax"},
    samples=Samples(_CASES, dtypes=("float32", "float64"), ulps=8, absolute=16),
)
def log_softmax(
    data: Value, axis: int = -1, temperature: float | None = None, dtype: str | None = None
) -> Value:
    """The logarithm of `softmax`, without overflow."""
    x, axis = _ready("log_softmax", data, axis, temperature, dtype)
    if not x.size:
        return x
    x = subtract(x, _largest(x, axis))
    return subtract(x, log(_total(exp(x), axis)))


@operation(
    numpy=lambda x, **attributes: _softmax(-x, **attributes),
    public=NETWORK,
    names={"mxnet": "softmin"},
    samples=Samples(_CASES, dtypes=("float32",), ulps=8),
)
def softmin(
    data: Value, axis: int = -1, temperature: float | None = None, dtype: str | None = None
) -> Value:
    """`softmax` of the negative."""
    return softmax(negative(data), None, axis, temperature, False, dtype)


def _ready(
    name: str, x: Value, axis: int, temperature: float | None, dtype: str | None
) -> tuple[Value, int]:
    """Floats, divided by the temperature, and the axis counted from the front."""
    if x.ndim or axis not in (0, -1):  # which are an array's without dimensions, too
        axis = check_axis(name, axis, x.ndim)
    x = cast(x, dtype or floating(x.dtype))
    if temperature is not None:
        x = true_divide(x, constant(temperature, x.dtype))
    return x, axis


def _total(x: Value, axis: int) -> Value:
    """The sum along `axis`, which stays; of a number, the number."""
    return sum(x, axis, None, True) if x.ndim else x


def _over(e: Value, total: Value) -> Value:
    """`e / total`. Dividing once a row makes up for one rounding more, except in 16 bits, where the
    inverse of a large total is too small for all of its digits."""
    if e.dtype in ("float16", "bfloat16"):
        return true_divide(e, total)
    return multiply(e, true_divide(constant(1.0, e.dtype), total))


def _largest(x: Value, axis: int) -> Value:
    return max(x, axis, True) if x.ndim else x


def _inside(x: Value, length: Value | None, axis: int) -> Value:
    """Where the position along `axis` is below `length`."""
    if not x.ndim:
        raise ShapeError("softmax: use_length needs data of one dimension or more; got a number.")
    outer = tuple(n for a, n in enumerate(x.shape) if a != axis)
    if length is None or length.shape != outer:
        given = None if length is None else length.shape
        raise ShapeError(
            f"softmax: use_length needs a length of shape {outer} for data of shape {x.shape} and "
            f"axis {axis}; got {given}."
        )
    places = views.reshape(
        iota(x.shape[axis]), tuple(n if a == axis else 1 for a, n in enumerate(x.shape))
    )
    length = views.reshape(length, tuple(1 if a == axis else n for a, n in enumerate(x.shape)))
    return less(places, length)
