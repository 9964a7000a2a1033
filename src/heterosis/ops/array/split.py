"""Operations that cut an array into parts; the parts are views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value
from heterosis.ir.slices import bound
from heterosis.ops.array.shape import as_tuple, samples
from heterosis.ops.record import operation
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axis

Sections: TypeAlias = "int | tuple[int, ...]"
_MOST_EMPTY = 4096  # parts, where there are fewer elements


def part(x: Value, axis: int, start: int, stop: int) -> Value:
    """The elements from `start` up to `stop` along `axis`."""
    starts = tuple(start if a == axis else 0 for a in range(x.ndim))
    shape = tuple(max(stop - start, 0) if a == axis else n for a, n in enumerate(x.shape))
    return views.slice_(x, starts, (1,) * x.ndim, shape)


def _bounds(name: str, extent: int, sections: Any, equal: bool) -> Sequence[tuple[int, int]]:
    """Where the parts of `extent` elements begin and end."""
    if isinstance(sections, tuple | list):
        cuts = [bound(c, extent) for c in as_tuple(sections)]
        return list(zip([0, *cuts], [*cuts, extent], strict=True))
    (count,) = as_tuple(sections)
    if count < 1:
        raise ArgumentError(f"{name}: {count} sections; expected one or more.")
    if count > max(extent, _MOST_EMPTY):
        raise ArgumentError(
            f"{name}: {count} sections of {extent} elements; expected at most {extent}, or "
            f"{_MOST_EMPTY} where some of them may be empty."
        )
    size, more = divmod(extent, count)
    if not more:  # of an open extent, too: all parts are as long as the first
        more = 0
    elif equal:
        raise ShapeError(
            f"{name}: array split does not result in an equal division: {extent} elements into "
            f"{count} sections. See np.array_split, or give the places to cut at."
        )
    ends = [(i + 1) * size + min(i + 1, more) for i in range(count)]
    return list(zip([0, *ends], ends, strict=False))


def _parts(name: str, x: Value, sections: Any, axis: int, equal: bool) -> tuple[Value, ...]:
    axis = check_axis(name, axis, x.ndim)
    return tuple(part(x, axis, *b) for b in _bounds(name, x.shape[axis], sections, equal))


_WIDE: list[tuple[Any, dict[str, Any]]] = [
    ((4, 6), {"indices_or_sections": 2}),
    ((4, 6), {"indices_or_sections": (1, 3), "axis": 1}),
    ((4, 6), {"indices_or_sections": 3, "axis": -1}),
]


@operation(
    numpy=numpy.split,
    public=(),
    names={"mxnet": "_npi_split"},
    samples=samples(*_WIDE, ((6,), {"indices_or_sections": (-2, 9)})),
    views=True,
)
def split(ary: Value, indices_or_sections: Sections, axis: int = 0) -> tuple[Value, ...]:
    """Equal parts, or the parts between the given places, along `axis`."""
    return _parts("split", ary, indices_or_sections, axis, equal=True)


@operation(
    numpy=numpy.array_split,
    public=(),
    samples=samples(*_WIDE, ((7,), {"indices_or_sections": 3})),
    views=True,
)
def array_split(ary: Value, indices_or_sections: Sections, axis: int = 0) -> tuple[Value, ...]:
    """Parts as `split` makes them; the first ones are longer where they cannot be equal."""
    return _parts("array_split", ary, indices_or_sections, axis, equal=False)


@operation(
    numpy=numpy.hsplit,
    public=(),
    samples=samples(((4, 6), {"indices_or_sections": 2}), ((4,), {"indices_or_sections": (1,)})),
    views=True,
)
def hsplit(ary: Value, indices_or_sections: Sections) -> tuple[Value, ...]:
    """Parts along the second dimension, or the only one."""
    return _parts("hsplit", ary, indices_or_sections, int(ary.ndim > 1), equal=True)


@operation(
    numpy=numpy.vsplit,
    public=(),
    samples=samples(((4, 6), {"indices_or_sections": 2})),
    views=True,
)
def vsplit(ary: Value, indices_or_sections: Sections) -> tuple[Value, ...]:
    """Parts along the first of at least two dimensions."""
    return _parts("vsplit", _deep("vsplit", ary, 2), indices_or_sections, 0, equal=True)


@operation(
    numpy=numpy.dsplit,
    public=(),
    samples=samples(((2, 3, 4), {"indices_or_sections": 2})),
    views=True,
)
def dsplit(ary: Value, indices_or_sections: Sections) -> tuple[Value, ...]:
    """Parts along the third dimension."""
    return _parts("dsplit", _deep("dsplit", ary, 3), indices_or_sections, 2, equal=True)


def _deep(name: str, x: Value, ndim: int) -> Value:
    if x.ndim < ndim:
        raise ShapeError(f"{name}: needs at least {ndim} dimensions, and got shape {x.shape}.")
    return x
