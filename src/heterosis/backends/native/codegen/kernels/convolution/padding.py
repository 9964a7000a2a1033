"""Rows of an input copied to where zeros stand beside them."""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import Function, Size, Type, Value, constant
from heterosis.backends.native.codegen.target import Target


@dataclass(frozen=True)
class Plane:
    """Numbers in rows: where they begin, how far apart rows are, and elements of a row: `along`."""

    start: Value
    rows: Size
    width: Size
    across: Size
    along: Size


def copy_rows(
    f: Function, target: Target, vector: Type, plane: Plane,
    first: Size, count: Size, to: Value, pitch: Size,
) -> None:  # fmt: skip
    """Copy `count` rows from `first` on to `to`, `pitch` apart; those outside the plane are zeros.

    Vectors may write zeros behind a row, where nothing but zeros may be. If `plane.along` is a
    number, it is 1.
    """
    kind = vector.scalar
    with f.loop(0, count) as row:
        here = f.i64(f.add_size(first, row.index))
        into = f.offset(kind, to, f.mul_size(row.index, pitch))
        source = f.offset(kind, plane.start, f.mul_size(here, plane.across))

        def copied(source: Value = source, into: Value = into) -> None:
            _copy(f, target, vector, source, into, plane)

        def cleared(into: Value = into) -> None:
            with f.loop(0, plane.width) as at:
                f.store(constant(kind, 0), f.offset(kind, into, at.index))

        f.if_else(f.compare("ult", here, f.i64(plane.rows)), copied, cleared)


def _copy(
    f: Function, target: Target, vector: Type, source: Value, to: Value, plane: Plane
) -> None:
    kind, lanes = vector.scalar, vector.lanes
    whole: Size = 0
    beside = isinstance(plane.along, int)
    if beside:
        assert plane.along == 1
        whole = f.round_down(plane.width, lanes)
        with f.loop(0, whole, lanes) as at:
            f.store(f.load(vector, f.offset(kind, source, at.index)), f.offset(kind, to, at.index))
    if not beside or target.name not in ("avx512", "avx2"):
        with f.loop(whole, plane.width) as at:
            one = f.load(kind, f.offset(kind, source, f.mul_size(at.index, plane.along)))
            f.store(one, f.offset(kind, to, at.index))
        return
    # Behind the row there is padding: zero, as the mask leaves it.
    left = f.convert("trunc", f.i64(f.sub_size(plane.width, whole)), kind.as_integer)
    mask = f.compare("slt", lane_numbers(f, lanes, kind.as_integer), f.splat(left, lanes))
    value = f.masked_load(vector, f.offset(kind, source, whole), mask)
    f.store(value, f.offset(kind, to, whole))


__all__ = ["Plane", "copy_rows"]
