"""Copies and changes of element type."""

from __future__ import annotations

from heterosis.ir import views
from heterosis.ir.primitives.conversions import COPY
from heterosis.ir.program import Value, apply
from heterosis.ir.types import DTYPES, TensorType
from heterosis.ops.record import operation
from heterosis.ops.rules import cast
from heterosis.runtime.errors import DTypeError


@operation()
def copy(a: Value) -> Value:
    """A new array with the same elements."""
    return apply(COPY, (a,), TensorType(a.shape, a.dtype))


@operation(casts_freely=True)
def assign(a: Value) -> Value:
    """The elements of `a`; with `out=`, written into an array that may be larger or of another
    element type."""
    return apply(COPY, (a,), TensorType(a.shape, a.dtype))


@operation()
def astype(a: Value, dtype: str) -> Value:
    """A new array with elements converted to `dtype`."""
    if dtype not in DTYPES:
        raise DTypeError(
            f"astype: {dtype!r} is no element type; expected one of {', '.join(DTYPES)}."
        )
    return cast(a, dtype) if dtype != a.dtype else apply(COPY, (a,), TensorType(a.shape, dtype))


@operation(public=(), views=True, stops_gradients=True)
def stop_gradient(a: Value) -> Value:
    """The same elements, which no gradient flows through."""
    return apply(views.RESHAPE, (a,), a.type)
