"""The view primitives: results whose elements are those of the operand, standing elsewhere.

Each names the method of `ir.strided.Strided` that does the same to offset and strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives.expected import operands
from heterosis.ir.primitives.families import View
from heterosis.ir.sizes import are_equal_if_exact
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Shape = tuple[int, ...]


def _typed(x: TensorType, shape: Shape) -> TensorType:
    return TensorType(shape, x.dtype, x.weak)


def _operand(node: Node) -> TensorType:
    """The type of the only operand."""
    (x,) = operands(node, 1)
    return x


def _result_shape(node: Node) -> Shape:
    return node.types[0].shape


def _check_inside(x: TensorType, extent: int, first: int, last: int) -> None:
    """Operations check their arguments; what slips through must not read other memory."""
    try:
        inside = 0 <= first < extent and 0 <= last < extent
    except TypeError:  # sizes have no order: looked at again when they are known
        return
    if not inside:
        raise ShapeError(
            f"elements {first} to {last} of an extent of {extent}, in an array of shape {x.shape}; "
            "expected places inside of it."
        )


def _check_axes(x: TensorType, axes: Sequence[int], wanted: str) -> None:
    if len(set(axes)) != len(axes) or not all(0 <= axis < x.ndim for axis in axes):
        raise ShapeError(f"axes {tuple(axes)} of an array of shape {x.shape}; expected {wanted}.")


def _check_count(x: TensorType, wanted: int, **given: Sequence[int]) -> None:
    """Raise unless all that is `given` has one item for each of the `wanted` dimensions."""
    for name, items in given.items():
        if len(items) != wanted:
            raise ShapeError(
                f"{name}={tuple(items)} of an array of shape {x.shape}; expected {wanted} numbers."
            )


# -- the same elements in the same order ----------------------------------------------------------


def reshaped(x: TensorType, shape: Shape) -> TensorType:
    """The same elements in the same order.

    Of open extents, a part is a quotient: that it is exact is a condition of whoever uses the
    program, since the shape of the call at hand was found to be one.
    """
    if prod(shape) != x.size and not are_equal_if_exact(prod(shape), x.size):
        raise ShapeError(f"cannot give {x.size} elements of shape {x.shape} the shape {shape}.")
    return _typed(x, shape)


RESHAPE = View(
    "reshape",
    lambda node: ("reshape", (_result_shape(node),)),
    types=lambda node: (reshaped(_operand(node), _result_shape(node)),),
    meaning=lambda node, x: numpy.reshape(x, _result_shape(node)),
    about="The same elements, row by row, under the shape of the result.",
)


# -- repeated -------------------------------------------------------------------------------------


def repeated(x: TensorType, shape: Shape) -> TensorType:
    """Extents of 1 and new leading dimensions as `shape` says."""
    pairs = zip(reversed(x.shape), reversed(shape), strict=False)
    if x.ndim > len(shape) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(f"an array of shape {x.shape} does not broadcast to shape {shape}.")
    return _typed(x, shape)


BROADCAST = View(
    "broadcast",
    lambda node: ("broadcast", (_result_shape(node),)),
    types=lambda node: (repeated(_operand(node), _result_shape(node)),),
    meaning=lambda node, x: numpy.broadcast_to(x, _result_shape(node)),
    about="The operand repeated along extents of 1 and new leading dimensions.",
)


# -- dimensions in another order ------------------------------------------------------------------


def transposed(x: TensorType, axes: tuple[int, ...]) -> TensorType:
    """Dimension `i` of the result is dimension `axes[i]` of `x`."""
    if len(axes) != x.ndim:
        _check_count(x, x.ndim, axes=axes)
    _check_axes(x, axes, "each of its dimensions once")
    return _typed(x, tuple(x.shape[a] for a in axes))


TRANSPOSE = View(
    "transpose",
    lambda node: ("transpose", (node.attributes["axes"],)),
    types=lambda node: (transposed(_operand(node), node.attributes["axes"]),),
    meaning=lambda node, x: numpy.transpose(x, node.attributes["axes"]),
    attributes={"axes": tuple[int, ...]},
    about="Dimension i of the result is dimension axes[i] of the operand.",
)


# -- some of the elements -------------------------------------------------------------------------


def sliced(x: TensorType, starts: Shape, steps: Shape, shape: Shape) -> TensorType:
    """`shape[d]` elements from `starts[d]` on, `steps[d]` apart, along every dimension."""
    _check_count(x, x.ndim, starts=starts, steps=steps, shape=shape)
    if all(shape):
        for extent, start, step, count in zip(x.shape, starts, steps, shape, strict=True):
            _check_inside(x, extent, start, start + step * (count - 1))
    return _typed(x, shape)


def _slice_types(node: Node) -> tuple[TensorType, ...]:
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    return (sliced(_operand(node), starts, steps, _result_shape(node)),)


def _sliced(node: Node, x: Any) -> Any:
    return x[places_of(node.attributes["starts"], node.attributes["steps"], _result_shape(node))]


def places_of(starts: Shape, steps: Shape, shape: Shape) -> tuple[Any, ...]:
    """NumPy's index of the elements from `starts` on, `steps` apart."""
    lines = (s + step * numpy.arange(n) for s, step, n in zip(starts, steps, shape, strict=True))
    return numpy.ix_(*lines)


SLICE = View(
    "slice",
    lambda node: (
        "slice",
        (node.attributes["starts"], node.attributes["steps"], _result_shape(node)),
    ),
    types=_slice_types,
    meaning=_sliced,
    attributes={"starts": tuple[int, ...], "steps": tuple[int, ...]},
    about="Along every dimension, the elements from starts on, steps apart, as many as fit the "
    "result.",
)


def along_diagonal(
    x: TensorType, axes: tuple[int, int], start: tuple[int, int], length: int
) -> TensorType:
    """The diagonal through `start` of the two `axes`, as the last dimension."""
    _check_count(x, 2, axes=axes, start=start)
    _check_axes(x, axes, "two of its dimensions")
    if length:
        for axis, first in zip(axes, start, strict=True):
            _check_inside(x, x.shape[axis], first, first + length - 1)
    kept = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    return _typed(x, (*kept, length))


def _diagonal_types(node: Node) -> tuple[TensorType, ...]:
    x, shape = _operand(node), _result_shape(node)
    length = shape[-1] if shape else 0
    return (along_diagonal(x, node.attributes["axes"], node.attributes["start"], length),)


def _diagonal(node: Node, x: Any) -> Any:
    along = numpy.arange(_result_shape(node)[-1])
    first, second = (start + along for start in node.attributes["start"])
    return numpy.moveaxis(x, node.attributes["axes"], (-2, -1))[..., first, second]


DIAGONAL = View(
    "diagonal",
    lambda node: (
        "diagonal",
        (*node.attributes["axes"], _result_shape(node)[-1], node.attributes["start"]),
    ),
    types=_diagonal_types,
    meaning=_diagonal,
    attributes={"axes": tuple[int, int], "start": tuple[int, int]},
    about="The diagonal of two axes that begins at start, as the last dimension.",
)


def windowed(x: TensorType, kernel: Shape, steps: Shape) -> TensorType:
    """Every window of `kernel` elements over the last axes, `steps` apart: (..., counts,
    kernel)."""
    _check_count(x, len(kernel), steps=steps)
    lead = x.ndim - len(kernel)
    if lead < 0 or not all(n > 0 for n in (*kernel, *steps)):
        raise ShapeError(
            f"windows of {kernel}, {steps} apart, over an array of shape {x.shape}; expected "
            "numbers from 1 on, for as many axes as there are at most."
        )
    pairs = zip(x.shape[lead:], kernel, steps, strict=True)
    counts = tuple((n - k) // step + 1 for n, k, step in pairs)
    return _typed(x, (*x.shape[:lead], *counts, *kernel))


def _windows_types(node: Node) -> tuple[TensorType, ...]:
    return (windowed(_operand(node), node.attributes["kernel"], node.attributes["steps"]),)


def _windows(node: Node, x: Any) -> Any:
    kernel, steps = node.attributes["kernel"], node.attributes["steps"]
    rank = len(kernel)
    counts = _result_shape(node)[x.ndim - rank : x.ndim]
    begins = numpy.ix_(*map(numpy.arange, (*counts, *kernel)))
    places = (begins[i] * steps[i] + begins[rank + i] for i in range(rank))
    windows = (..., *places)
    return x[windows]


WINDOWS = View(
    "windows",
    lambda node: ("windows", (node.attributes["kernel"], node.attributes["steps"])),
    types=_windows_types,
    meaning=_windows,
    attributes={"kernel": tuple[int, ...], "steps": tuple[int, ...]},
    about="Every window of kernel elements over the last axes, steps apart, as further dimensions.",
)
