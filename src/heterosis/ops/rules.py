"""What operations share: promotion of element types, broadcasting, elementwise steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heterosis.ir import views
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.primitives.families import Elementwise, View
from heterosis.ir.program import CONSTANT, EXTENT, IOTA, Value, apply, constant
from heterosis.ir.types import (
    DEFAULT_FLOAT,
    TensorType,
    highest,
    is_float,
    is_integer,
    lowest,
    promote,
)
from heterosis.runtime.errors import ArgumentError, ShapeError
from heterosis.runtime.warning import warn_user


def cast(x: Value, dtype: str, operation: str = "") -> Value:
    """`x` with elements of `dtype`; a number stays a number but no longer adapts, and must be one
    that integers of `dtype` hold."""
    if side(x, dtype):
        raise ArgumentError(
            f"{operation}{': ' * bool(operation)}the number {_number(x)} beside elements of "
            f"{dtype}, which are from {lowest(dtype)} to {highest(dtype)}; convert the array "
            f"first, for instance with .astype('{'float64' if dtype == 'uint64' else 'int64'}')."
        )
    if x.dtype == dtype and not x.type.weak:
        return x
    if x.dtype == dtype:
        return _strong(x)
    return apply(conversion(dtype), (x,), TensorType(x.shape, dtype))


def side(x: Value, dtype: str) -> int:
    """Where a whole number that adapts lies: -1 below all integers of `dtype`, 1 above them, else
    0. Of numbers that come with a call, those that the types of its arrays hold stay unknown to
    the program; see `sign` in operation_type.cpp."""
    number = _number(x) if is_integer(dtype) else None
    if number is None:
        return 0
    # It fits 64 bits itself: a number that follows from sizes would note what always holds.
    if highest(dtype) < highest("int64") and number > highest(dtype):
        return 1
    return -1 if lowest(dtype) > lowest("int64") and number < lowest(dtype) else 0


def _number(x: Value) -> int | None:
    """The whole number that adapts and is written in the program, repeated or not; else None."""
    while isinstance(x.node.primitive, View):
        (x,) = x.node.inputs
    written = x.node.primitive in (CONSTANT, EXTENT) and x.type.weak and x.dtype == "int64"
    return x.node.attributes["value"] if written else None


def comparable(x1: Value, x2: Value) -> tuple[Value, Value]:
    """Both as they are compared: a number beyond all integers of the other one's type is as far
    from each of them as infinity."""
    dtype = result_type(x1, x2)
    ready = [weak(side(x, dtype) * math.inf) if side(x, dtype) else x for x in (x1, x2)]
    return ready[0], ready[1]


def _strong(x: Value) -> Value:
    return apply(conversion(x.dtype), (x,), TensorType(x.shape, x.dtype))


def warn_of_wider_data(name: str, data: Value, weight: Value) -> None:
    """Tell who hands NumPy's float64 to a layer of float32 what it costs. It is said while code is
    made, once for each kind of arguments; Python shows it once for each line."""
    if (data.dtype, weight.dtype) == ("float64", "float32") and not data.type.weak:
        warn_user(
            f"{name}: data of float64 and weights of float32 give float64, in at least twice the "
            "time. NumPy's arrays are of float64 unless told otherwise: convert them with "
            "x.astype('float32'), or the layer with net.cast('float64')."
        )


def weak(value: float) -> Value:
    """A number of whatever float type it meets."""
    return constant(value, "float64", weak=True)


def zeros(like: Value, shape: tuple[int, ...] | None = None) -> Value:
    """Zeros of the element type of `like`."""
    return numbers_like(like, 0.0, shape)


def numbers_like(like: Value, number: float, shape: tuple[int, ...] | None = None) -> Value:
    """The number, in the element type of `like`, for each element."""
    one = cast(weak(number), like.dtype)
    return views.broadcast(one, like.shape if shape is None else shape)


def iota(count: int) -> Value:
    """0, 1, ..., count - 1."""
    return apply(IOTA, (), TensorType((count,), "int64"))


def result_type(*values: Value) -> str:
    """The type that all operands are converted to. Python numbers adapt where they can."""
    strong = [v.dtype for v in values if not v.type.weak]
    weak = [v.dtype for v in values if v.type.weak]
    found = strong[0] if strong else "bool"
    for dtype in strong[1:]:
        found = promote(found, dtype)
    for dtype in weak:
        if dtype == "float64" and not is_float(found):
            found = DEFAULT_FLOAT
        elif dtype == "int64" and found == "bool":
            found = "int64"
    return found


def floating(dtype: str) -> str:
    """The float type for a function of real numbers on elements of `dtype`."""
    return dtype if is_float(dtype) else DEFAULT_FLOAT


def wide(dtype: str) -> str:
    """The float type to sum elements of `dtype` in: those of 16 bits end counting early."""
    return "float64" if dtype == "float64" else "float32"


def broadcast_shapes(operation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all operands are repeated to."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        common = 1
        for extent in (s[axis] for s in shapes if len(s) >= -axis):
            if common == 1:
                common = extent
            elif extent not in (1, common):
                raise _no_common_shape(operation, shapes, axis)
        result.append(common)
    return tuple(result)


def _no_common_shape(operation: str, shapes: Sequence[tuple[int, ...]], axis: int) -> ShapeError:
    given = " and ".join(str(s) for s in shapes)
    extents = sorted({s[axis] for s in shapes if len(s) >= -axis} - {1})
    return ShapeError(
        f"{operation}: shapes {given} do not broadcast: axis {axis} has extents {extents}. Extents "
        "must be equal or 1; see np.expand_dims and np.reshape."
    )


def broadcast_all(operation: str, values: Sequence[Value]) -> list[Value]:
    """All operands repeated to their common shape."""
    shape = broadcast_shapes(operation, [v.shape for v in values])
    return [views.broadcast(v, shape) for v in values]


def elementwise(
    primitive: Elementwise,
    values: Sequence[Value],
    operand_dtype: str,
    result_dtype: str | None = None,
) -> Value:
    """Apply `primitive` to operands converted to one type and repeated to one shape."""
    ready = broadcast_all(primitive.name, [cast(v, operand_dtype, primitive.name) for v in values])
    type_ = TensorType(ready[0].shape, result_dtype or operand_dtype)
    return apply(primitive, ready, type_)
