"""Operations that give an array another shape or its dimensions another order; nearly all views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value
from heterosis.ir.traced_sizes import index
from heterosis.ops.record import Operands, operation
from heterosis.ops.rules import broadcast_all
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    ShapeError,
    check_axes,
    check_axis,
)

Axis: TypeAlias = "int | tuple[int, ...] | None"

# Rearranging is the same for all types of one width; these meet every width and bool.
MOVED = ("bool", "float16", "float32", "int64")


def samples(*cases: tuple[Any, dict[str, Any]], **facts: Any) -> Samples:
    """Samples from pairs: the shapes of the arrays, or of the one array, and the attributes."""
    made = [Case(s if s and not isinstance(s[0], int) else (s,), a) for s, a in cases]
    return Samples(made, dtypes=facts.pop("dtypes", MOVED), **facts)


def as_tuple(given: Any) -> tuple[int, ...]:
    """A number or a sequence of numbers as a tuple of integers."""
    items = given if isinstance(given, tuple | list) else (given,)
    return tuple(map(index, items))


def move_axes(name: str, x: Value, source: tuple[int, ...], destination: tuple[int, ...]) -> Value:
    """`x` with its dimensions `source` standing at `destination`, the others in their order."""
    if len(source) != len(destination):
        raise ArgumentError(
            f"{name}: {len(source)} axes to move and {len(destination)} places to move them to; "
            "give as many of both."
        )
    sources = [check_axis(name, a, x.ndim) for a in source]
    places = [check_axis(name, a, x.ndim) for a in destination]
    if len(set(sources)) < len(sources) or len(set(places)) < len(places):
        raise AxisError(f"{name}: {source} to {destination} names an axis twice.")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return views.transpose(x, tuple(order))


# -- another shape --------------------------------------------------------------------------------


def inferred_shape(name: str, shape: tuple[int, ...], wanted: Any) -> tuple[int, ...]:
    """`wanted` with its -1, if there is one, replaced by the extent that all elements need."""
    try:
        new = as_tuple(wanted)
    except TypeError:
        raise ArgumentTypeError(f"{name}: a shape consists of integers; got {wanted!r}.") from None
    known = math.prod(n for n in new if n != -1)
    size = math.prod(shape)
    if new.count(-1) == 1 and known > 0 and size % known == 0:
        new = tuple(size // known if n == -1 else n for n in new)
    if any(n < 0 for n in new) or math.prod(new) != size:
        raise ShapeError(
            f"{name}: cannot give {size} elements of shape {shape} the shape {new}; its extents "
            "must multiply to the same number, and one of them may be -1."
        )
    return new


def _reversed(x: Value) -> Value:
    return views.transpose(x, tuple(reversed(range(x.ndim))))


def _check_order(name: str, order: str) -> bool:
    """Whether elements are taken column by column."""
    if order not in ("C", "F", "A", "K"):
        raise ArgumentError(f"{name}: order={order!r}; expected 'C' or 'F'.")
    return order == "F"


_RESHAPES: list[tuple[Any, dict[str, Any]]] = [
    ((2, 6), {"newshape": (3, 4)}),
    ((2, 6), {"newshape": -1}),
    ((2, 6), {"newshape": (2, -1, 3)}),
    ((), {"newshape": (1, 1)}),
    ((0, 3), {"newshape": (3, 0)}),
    ((1, 4, 1), {"newshape": (2, 2)}),
]


@operation(
    numpy=lambda a, newshape, order="C": numpy.reshape(a, newshape, order),
    names={"mxnet": "_np_reshape", "onnx": "Reshape"},
    samples=samples(*_RESHAPES, ((2, 3), {"newshape": (3, 2), "order": "F"})),
    views=True,
)
def reshape(a: Value, newshape: Any, order: str = "C") -> Value:
    """The same elements under another shape; one extent may be -1 and is inferred."""
    shape = inferred_shape("reshape", a.shape, newshape)
    if _check_order("reshape", order):
        return _reversed(views.reshape(_reversed(a), tuple(reversed(shape))))
    return views.reshape(a, shape)


@operation(
    numpy=numpy.ravel,
    public=("np", "ndarray"),
    samples=samples(((2, 3), {}), ((), {}), ((0, 2), {}), ((2, 3), {"order": "F"})),
    views=True,
)
def ravel(a: Value, order: str = "C") -> Value:
    """All elements in one dimension; a copy only where they do not stand in that order."""
    return views.reshape(_reversed(a) if _check_order("ravel", order) else a, (a.size,))


@operation(
    name="reshape_coded",
    public=("npx",),
    aliases=("reshape",),
    numpy=lambda a, newshape, **_: numpy.reshape(a, (a.shape[0], -1)),
    names={"mxnet": "_npx_reshape"},
    samples=samples(
        ((2, 3, 4), {"newshape": (-2, -1)}),
        ((2, 3, 4), {"newshape": (-2, -5)}),
        ((2, 1, 12), {"newshape": (-2, -3, -4)}),
        ((6, 12), {"newshape": (-1, 12)}),
        ((3, 2, 2), {"newshape": (-1, -5), "reverse": True}),
    ),
    views=True,
)
def coded_reshape(a: Value, newshape: Any, reverse: bool = False, order: str = "C") -> Value:
    """A reshape with codes: -1 infers, -2 keeps an extent, -3 drops a 1, -4 keeps all that follow,
    -5 multiplies two, -6 splits one into the next two numbers; `reverse` matches from the right."""
    codes = as_tuple(newshape)
    old = a.shape
    if reverse:
        old, codes = old[::-1], _reversed_codes(codes)
    shape = _decoded(old, codes)
    return views.reshape(a, inferred_shape("reshape", a.shape, shape[::-1] if reverse else shape))


_INFER, _KEEP, _DROP, _REST, _MERGE, _SPLIT = -1, -2, -3, -4, -5, -6


def _reversed_codes(codes: tuple[int, ...]) -> tuple[int, ...]:
    """The codes from right to left; the two numbers of a split stay behind it."""
    groups: list[tuple[int, ...]] = []
    at = 0
    while at < len(codes):
        length = 3 if codes[at] == _SPLIT else 1
        group = codes[at : at + length]
        groups.insert(0, (group[0], *reversed(group[1:])))
        at += length
    return tuple(code for group in groups for code in group)


def _decoded(old: Sequence[int], codes: tuple[int, ...]) -> tuple[int, ...]:
    rest, pending, new = list(old), list(codes), []
    try:
        while pending:
            new += _decode_one(pending.pop(0), pending, rest)
    except IndexError:
        raise ShapeError(f"reshape: the codes {codes} do not fit the shape {tuple(old)}.") from None
    return tuple(new)


def _decode_one(code: int, pending: list[int], rest: list[int]) -> list[int]:
    if code == _KEEP:
        return [rest.pop(0)]
    if code == _DROP:
        if rest.pop(0) != 1:
            raise ShapeError("reshape: -3 drops a dimension of extent 1, and there is another.")
        return []
    if code == _REST:
        kept, rest[:] = list(rest), []
        return kept
    if code == _MERGE:
        return [rest.pop(0) * rest.pop(0)]
    if code == _SPLIT:
        whole, parts = rest.pop(0), [pending.pop(0), pending.pop(0)]
        other = math.prod(n for n in parts if n != _INFER)
        return [whole // max(other, 1) if n == _INFER else n for n in parts]
    if rest:
        rest.pop(0)
    return [code]


# -- dimensions of extent 1 -----------------------------------------------------------------------


@operation(
    numpy=numpy.expand_dims,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_expand_dims", "onnx": "Unsqueeze"},
    samples=samples(((2, 3), {"axis": 0}), ((2, 3), {"axis": -1}), ((3,), {"axis": (0, 2)})),
    views=True,
)
def expand_dims(a: Value, axis: Axis) -> Value:
    """A new dimension of extent 1 at `axis`."""
    added = as_tuple(axis)
    axes = check_axes("expand_dims", added, a.ndim + len(added))
    rest = iter(a.shape)
    shape = tuple(1 if i in axes else next(rest) for i in range(a.ndim + len(axes)))
    return views.reshape(a, shape)


@operation(
    numpy=numpy.squeeze,
    public=("np", "ndarray"),
    names={"mxnet": "_np_squeeze", "onnx": "Squeeze"},
    samples=samples(((1, 3, 1), {}), ((1, 3, 1), {"axis": (0, -1)}), ((2, 1), {"axis": 1})),
    views=True,
)
def squeeze(a: Value, axis: Axis = None) -> Value:
    """Without the dimensions of extent 1, or without those that `axis` names."""
    axes = check_axes("squeeze", axis, a.ndim)
    long = [i for i in axes if a.shape[i] != 1]
    if axis is not None and long:
        raise ShapeError(
            f"squeeze: axis {long[0]} of shape {a.shape} has extent {a.shape[long[0]]}; "
            "only dimensions of extent 1 can go."
        )
    gone = [i for i in axes if i not in long]
    return views.reshape(a, tuple(n for i, n in enumerate(a.shape) if i not in gone))


def at_least(x: Value, ndim: int) -> Value:
    """`x` with dimensions of extent 1 added as NumPy's `atleast_1d`, `_2d` and `_3d` do."""
    if x.ndim >= ndim:
        return x
    front = (1,) * (ndim - x.ndim) if ndim < 3 else (1,) * (x.ndim < 2)
    return views.reshape(x, (*front, *x.shape, *(1,) * (ndim - x.ndim - len(front))))


@operation(
    name="atleast_nd",
    public=(),
    numpy=lambda a, ndim: getattr(numpy, f"atleast_{ndim}d")(a),
    samples=samples(*[(s, {"ndim": n}) for s in ((), (3,), (2, 3)) for n in (1, 2, 3)]),
    views=True,
)
def atleast_nd(a: Value, ndim: int) -> Value:
    """At least `ndim` dimensions."""
    return at_least(a, ndim)


# -- repeated along dimensions --------------------------------------------------------------------


def repeated(name: str, x: Value, shape: tuple[int, ...]) -> Value:
    """`x` broadcast to just `shape`."""
    pairs = zip(reversed(x.shape), reversed(shape), strict=False)
    if len(x.shape) > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(
            f"{name}: shape {x.shape} does not broadcast to {shape}: counted from the last, "
            "extents must be equal or 1."
        )
    return views.broadcast(x, shape)


@operation(
    numpy=numpy.broadcast_to,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_broadcast_to", "onnx": "Expand"},
    samples=samples(((3, 1), {"shape": (2, 3, 4)}), ((), {"shape": (2,)}), ((3,), {"shape": 3})),
)
def broadcast_to(array: Value, shape: Any) -> Value:
    """A new array that repeats `array` along extents of 1 and new dimensions in front."""
    return repeated("broadcast_to", array, as_tuple(shape))


@operation(
    public=(),
    numpy=lambda args: numpy.broadcast_arrays(*args),
    samples=Samples([Case(([(3, 1), (4,), ()],))], dtypes=("float32",)),
)
def broadcast_arrays(args: Operands) -> tuple[Value, ...]:
    """All arrays repeated to their common shape."""
    return tuple(broadcast_all("broadcast_arrays", args))


# -- dimensions in another order ------------------------------------------------------------------


@operation(
    numpy=numpy.transpose,
    aliases=("permute_dims",),
    names={"mxnet": "_np_transpose", "onnx": "Transpose"},
    samples=samples(
        ((2, 3, 4), {}), ((2, 3, 4), {"axes": (1, 0, 2)}), ((2, 3), {"axes": (-1, 0)}), ((), {})
    ),
    views=True,
)
def transpose(a: Value, axes: Any = None) -> Value:
    """The dimensions in the order `axes`; reversed without one."""
    if axes is None:
        return _reversed(a)
    axes = as_tuple(axes)
    order = tuple(check_axis("transpose", i, a.ndim) for i in axes)
    if sorted(order) != list(range(a.ndim)):
        raise AxisError(
            f"transpose: axes {axes} for an array of {a.ndim} dimensions; name each of them once."
        )
    return views.transpose(a, order)


@operation(
    numpy=numpy.swapaxes,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_swapaxes"},
    samples=samples(((2, 3, 4), {"axis1": 0, "axis2": -1}), ((2, 3), {"axis1": 1, "axis2": 1})),
    views=True,
)
def swapaxes(a: Value, axis1: int, axis2: int) -> Value:
    """Two dimensions exchanged."""
    first, second = check_axis("swapaxes", axis1, a.ndim), check_axis("swapaxes", axis2, a.ndim)
    order = list(range(a.ndim))
    order[first], order[second] = second, first
    return views.transpose(a, tuple(order))


@operation(
    numpy=numpy.moveaxis,
    names={"mxnet": "_np_moveaxis"},
    samples=samples(
        ((2, 3, 4), {"source": 0, "destination": -1}),
        ((2, 3, 4), {"source": (0, 1), "destination": (-1, 0)}),
    ),
    views=True,
)
def moveaxis(a: Value, source: Any, destination: Any) -> Value:
    """The dimensions `source` at the places `destination`; the others keep their order."""
    return move_axes("moveaxis", a, as_tuple(source), as_tuple(destination))


@operation(
    numpy=numpy.rollaxis,
    samples=samples(
        ((2, 3, 4), {"axis": 2}),
        *[((2, 3, 4), {"axis": a, "start": s}) for a, s in ((0, 3), (0, -1), (2, -2), (1, -3))],
    ),
    views=True,
)
def rollaxis(a: Value, axis: int, start: int = 0) -> Value:
    """Dimension `axis` moved to stand before dimension `start`."""
    axis = check_axis("rollaxis", axis, a.ndim)
    # A negative start counts from the dimensions that there are, and one more is behind the last.
    start = start if start == a.ndim else check_axis("rollaxis", start, a.ndim)
    return move_axes("rollaxis", a, (axis,), (start - (axis < start),))


# -- the other way round --------------------------------------------------------------------------


def flipped(x: Value, axes: Sequence[int]) -> Value:
    """`x` from last to first along `axes`."""
    back = [i in axes and n > 0 for i, n in enumerate(x.shape)]
    starts = tuple(n - 1 if b else 0 for n, b in zip(x.shape, back, strict=True))
    return views.slice_(x, starts, tuple(-1 if b else 1 for b in back), x.shape)


@operation(
    numpy=numpy.flip,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_flip"},
    samples=samples(((2, 3), {}), ((2, 3, 4), {"axis": (0, -1)}), ((0, 2), {"axis": 0})),
    views=True,
)
def flip(m: Value, axis: Axis = None) -> Value:
    """The elements from last to first along `axis`."""
    return flipped(m, check_axes("flip", axis, m.ndim))


@operation(numpy=numpy.flipud, samples=samples(((2, 3), {}), ((3,), {})), views=True)
def flipud(m: Value) -> Value:
    """Upside down: from last to first along the first dimension."""
    return flipped(m, check_axes("flipud", 0, m.ndim))


@operation(numpy=numpy.fliplr, samples=samples(((2, 3), {})), views=True)
def fliplr(m: Value) -> Value:
    """Left for right: from last to first along the second dimension."""
    return flipped(m, check_axes("fliplr", 1, m.ndim))


@operation(
    numpy=numpy.rot90,
    names={"mxnet": "_npi_rot90"},
    samples=samples(*[((2, 3), {"k": k}) for k in range(-1, 4)], ((2, 3, 4), {"axes": (1, 2)})),
    views=True,
)
def rot90(m: Value, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Value:
    """Turned by 90 degrees `k` times, from the first of `axes` towards the second."""
    first, second = (check_axis("rot90", a, m.ndim) for a in axes)
    if first == second:
        raise AxisError(f"rot90: axes {axes} name one dimension; a plane has two.")
    turns = k % 4
    if turns in (0, 2):
        return flipped(m, (first, second) if turns else ())
    order = list(range(m.ndim))
    order[first], order[second] = second, first
    if turns == 1:
        return views.transpose(flipped(m, (second,)), tuple(order))
    return flipped(views.transpose(m, tuple(order)), (second,))
