"""Derivatives of filters on windows, and of sums of products over windows: made of the same two."""

from __future__ import annotations

from math import prod

from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir import views
from heterosis.ir.primitives.windows import CONVOLVE, CORRELATE, chunks_of, windows_of
from heterosis.ir.program import Value
from heterosis.ops.array.join import joined
from heterosis.ops.nn.windowed import convolve, correlate, transposed


@adjoint(CONVOLVE)
def _convolve(step: Step) -> Cotangents:
    x, a = step.inputs
    windows, dy = windows_of(step), step.cotangent
    dx = transposed(dy, a, None, x.shape[3:], windows)
    da = views.reshape(correlate(_positions_last(dy), x, dy.shape[3:], windows), a.shape)
    return dx, da


@adjoint(CORRELATE)
def _correlate(step: Step) -> Cotangents:
    a, x = step.inputs
    windows, out, dy = windows_of(step), step.attributes["out"], step.cotangent
    chunks, images = dy.shape[0], a.shape[0]
    of_a, of_x = [], []
    for chunk, (first, last) in enumerate(chunks_of(images, chunks)):
        filters = _rows(dy, chunk, chunk + 1)
        filters = views.reshape(filters, (*dy.shape[1:3], x.shape[2], *windows.kernel))
        left = views.reshape(_rows(a, first, last), (last - first, *a.shape[1:3], *out))
        of_a.append(convolve(_rows(x, first, last), filters, None, out, windows))
        of_x.append(transposed(left, filters, None, x.shape[3:], windows))
    da, dx = (parts[0] if chunks == 1 else joined("correlate", parts, 0) for parts in (of_a, of_x))
    return _positions_last(da), dx


def _positions_last(x: Value) -> Value:
    return views.reshape(x, (*x.shape[:3], prod(x.shape[3:])))


def _rows(x: Value, first: int, last: int) -> Value:
    """Elements `first` to `last` along the first axis."""
    if last - first == x.shape[0]:
        return x
    starts = (first,) + (0,) * (x.ndim - 1)
    return views.slice_(x, starts, (1,) * x.ndim, (last - first, *x.shape[1:]))
