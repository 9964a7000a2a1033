"""Layers of neural networks that are a few steps of mathematics, without random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant
from heterosis.ir.types import FLOATS
from heterosis.ops.array.indexing import gathered
from heterosis.ops.bounds import bounded
from heterosis.ops.linalg.matmul import product
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.math.cast import astype
from heterosis.ops.record import default, operation
from heterosis.ops.rules import cast, floating, iota, warn_of_wider_data
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.context import Context, check_context
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axis

_NETWORK = ("npx",)
_PRECISE = ("float32", "float64")


def _smooth_reference(data: Any, scalar: Any = 1.0) -> Any:
    size, square = abs(data), scalar * scalar
    return numpy.where(size < 1 / square, 0.5 * square * data * data, size - 0.5 / square)


@operation(
    numpy=_smooth_reference,
    public=_NETWORK,
    names={"mxnet": "smooth_l1"},
    samples=Samples(
        [Case(((3, 37),)), Case(((5,),), {"scalar": 2.0})], dtypes=("int32", *_PRECISE), ulps=8
    ),
)
def smooth_l1(data: Value, scalar: Value = default(1.0)) -> Value:
    """The absolute value, rounded off to a parabola within `1 / scalar**2` of zero."""
    x = cast(data, floating(data.dtype))
    square = e.square(cast(scalar, x.dtype))
    half, size = constant(0.5, x.dtype), e.absolute(x)
    is_near = e.less(size, r.reciprocal(square))
    # The parabola sees no number that is far: it may overflow there, and its derivative too.
    inside = e.select(is_near, x, constant(0.0, x.dtype))
    near = e.multiply(e.multiply(e.square(inside), square), half)
    far = e.subtract(size, e.true_divide(half, square))
    return e.select(is_near, near, far)


# -- products and tables --------------------------------------------------------------------------


def _rows(x: Value, flatten: bool) -> Value:
    """Vectors to multiply, one a row."""
    lead = x.shape[:1] if flatten else x.shape[:-1]
    width = math.prod(x.shape[1:]) if flatten else x.shape[-1]
    return views.reshape(x, (math.prod(lead), width))


def _dense_reference(
    data: Any, weight: Any, bias: Any = None, flatten: Any = True, **_: Any
) -> Any:
    x = data.reshape(len(data), math.prod(data.shape[1:])) if flatten else data
    return x @ weight.T + (0 if bias is None else bias)


@operation(
    numpy=_dense_reference,
    public=_NETWORK,
    names={"mxnet": "FullyConnected"},
    samples=Samples(
        (
            Case(((3, 4), (5, 4), (5,))),
            Case(((3, 2, 4), (5, 8), (5,)), {"num_hidden": 5}),
            Case(((3, 2, 4), (5, 4), (5,)), {"flatten": False}),
            Case(((4,), (5, 4)), {"flatten": False, "no_bias": True}),
            Case(((0, 4), (5, 4), (5,))),
        ),
        dtypes=("int32", "bfloat16", *_PRECISE),
        ulps=8,
        absolute=200,
    ),
)
def fully_connected(
    data: Value,
    weight: Value,
    bias: Value | None = None,
    num_hidden: int | None = None,
    no_bias: bool = False,
    flatten: bool = True,
) -> Value:
    """`data @ weight.T + bias`, over all dimensions but the first, or, without `flatten`, over the
    last. `weight` is (outputs, inputs); `num_hidden`, if given, is the number of outputs."""
    if not data.ndim:
        raise ShapeError("fully_connected: data of shape (); expected at least one dimension.")
    x, outputs = _rows(data, flatten), weight.shape[0] if weight.ndim else 0
    if weight.shape != (num_hidden or outputs, x.shape[1]):
        raise ShapeError(
            f"fully_connected: weight of shape {weight.shape} for data of shape {data.shape}; "
            f"expected ({num_hidden or 'outputs'}, {x.shape[1]})."
        )
    warn_of_wider_data("fully_connected", data, weight)
    result = product("fully_connected", x, views.transpose(weight, (1, 0)))
    if not no_bias:
        result = e.add(result, _checked_bias(bias, outputs))
    return views.reshape(result, (*(data.shape[:1] if flatten else data.shape[:-1]), outputs))


def _checked_bias(bias: Value | None, outputs: int) -> Value:
    if bias is None or bias.shape != (outputs,):
        given = "no bias" if bias is None else f"a bias of shape {bias.shape}"
        raise ShapeError(f"fully_connected: {given}; expected shape ({outputs},), or no_bias=True.")
    return bias


@operation(
    numpy=lambda data: data.reshape(len(data), -1),
    public=_NETWORK,
    names={"mxnet": "Flatten"},
    samples=Samples([Case(((2, 3, 4),)), Case(((3, 2),))], dtypes=("int32", "float32")),
    views=True,
)
def batch_flatten(data: Value) -> Value:
    """All dimensions but the first merged into one."""
    if not data.ndim:
        raise ShapeError("batch_flatten: data of shape (); expected at least one dimension.")
    return _rows(data, True)


@operation(
    numpy=lambda data, weight: weight[numpy.clip(data.astype("int64"), 0, len(weight) - 1)],
    public=_NETWORK,
    names={"mxnet": "Embedding"},
    samples=Samples(
        [Case(((5,), (4, 3))), Case(((2, 3), (7, 2))), Case(((), (4, 3))), Case(((0,), (4, 3)))],
        ((-2, 9), (-4, 4)),
        dtypes=("int32", "float16", *_PRECISE),
    ),
)
def embedding(
    data: Value,
    weight: Value,
    input_dim: int | None = None,
    output_dim: int | None = None,
    dtype: str | None = None,
    sparse_grad: bool = False,
) -> Value:
    """The rows of `weight` that `data` numbers; numbers outside mean the nearest row.

    `input_dim` and `output_dim`, if given, are the extents of `weight`. `dtype` and `sparse_grad`
    are accepted and change nothing: the result has the weights' type, and gradients are dense.
    """
    wanted = (input_dim, output_dim)
    if weight.ndim != 2 or any(
        w not in (None, n) for w, n in zip(wanted, weight.shape, strict=True)
    ):
        expected = tuple(n or "any" for n in wanted)
        raise ShapeError(f"embedding: weight of shape {weight.shape}; expected {expected}.")
    place = bounded("embedding", data, weight.shape[0], "clip", 0, weight.shape)
    return gathered(weight, [place])


# -- sequences ------------------------------------------------------------------------------------


def _counted_like(
    data: Any, start: Any = 0.0, step: Any = 1.0, repeat: Any = 1, axis: Any = None
) -> Any:
    shape = data.shape if axis is None else (data.shape[axis],)
    found = start + step * (numpy.arange(math.prod(shape)) // repeat)
    return found.reshape(shape).astype(data.dtype)


@operation(
    numpy=_counted_like,
    public=_NETWORK,
    names={"mxnet": "_contrib_arange_like"},
    samples=Samples(
        (
            Case(((2, 3),)),
            Case(((),)),
            Case(((2, 3),), {"axis": -1}),
            Case(((2, 3),), {"start": 2.0, "step": 0.5, "repeat": 2}),
            Case(((0, 3),)),
        ),
        dtypes=("int32", *FLOATS),
    ),
)
def arange_like(
    data: Value,
    start: Value = default(0.0),
    step: Value = default(1.0),
    repeat: int = 1,
    ctx: Context | None = None,
    axis: int | None = None,
) -> Value:
    """Numbers from `start` on, `step` apart, each `repeat` times: as many as `data` has elements,
    in its shape, or as it has along `axis`."""
    check_context(ctx or None)
    if repeat < 1:
        raise ArgumentError(f"arange_like: repeat={repeat}; expected 1 or more.")
    shape = (
        data.shape if axis is None else (data.shape[check_axis("arange_like", axis, data.ndim)],)
    )
    wide = "float32" if data.dtype in ("float16", "bfloat16", "float32") else "float64"
    place = iota(math.prod(shape))
    if repeat > 1:
        place = e.floor_divide(place, constant(repeat, "int64"))
    found = e.add(e.multiply(cast(place, wide), cast(step, wide)), cast(start, wide))
    return views.reshape(cast(found, data.dtype), shape)


def _masked_reference(
    data: Any,
    sequence_length: Any = None,
    use_sequence_length: Any = False,
    value: Any = 0.0,
    axis: Any = 0,
) -> Any:
    if not use_sequence_length:
        return data
    result = numpy.moveaxis(data.copy(), axis, 0)
    for b, length in enumerate(sequence_length):
        result[int(numpy.ceil(length)) :, b] = value
    return numpy.moveaxis(result, 0, axis)


@operation(
    numpy=_masked_reference,
    public=_NETWORK,
    names={"mxnet": "SequenceMask"},
    samples=Samples(
        (
            Case(((4, 3, 2),)),
            Case(((4, 3, 2), (3,)), {"use_sequence_length": True, "value": -1.0}),
            Case(((3, 4), (3,)), {"use_sequence_length": True, "axis": 1}),
        ),
        ((-4, 4), (0, 5)),
        dtypes=("int32", "float16", "float32"),
        integer_arrays=(1,),
    ),
)
def sequence_mask(
    data: Value,
    sequence_length: Value | None = None,
    use_sequence_length: bool = False,
    value: Value = default(0.0),
    axis: int = 0,
) -> Value:
    """`data` with `value` behind the end of each sequence. `axis`, 0 or 1, counts the steps and the
    other one the sequences; without `use_sequence_length`, `data` as it is."""
    if not use_sequence_length:
        return astype(data, data.dtype)
    if axis not in (0, 1) or data.ndim < 2:
        raise ArgumentError(
            f"sequence_mask: axis={axis} and data of shape {data.shape}; expected axis 0 or 1 of "
            "(steps, batch, ...) or (batch, steps, ...)."
        )
    steps, batch = data.shape[axis], data.shape[1 - axis]
    if sequence_length is None or sequence_length.shape != (batch,):
        given = None if sequence_length is None else sequence_length.shape
        raise ShapeError(f"sequence_mask: sequence_length of shape {given}; expected ({batch},).")
    place, length = [
        views.reshape(v, tuple(v.size if a == at else 1 for a in range(data.ndim)))
        for v, at in ((iota(steps), axis), (sequence_length, 1 - axis))
    ]
    return e.select(e.less(place, length), data, cast(value, data.dtype))


@operation(
    name="cast",
    numpy=lambda data, dtype: data.astype(dtype),
    public=_NETWORK,
    names={"mxnet": "Cast"},
    samples=Samples([Case(((3, 4),), {"dtype": d}) for d in ("int32", "float64", "bool")]),
)
def cast_to(data: Value, dtype: str) -> Value:
    """A new array with elements converted to `dtype`."""
    return astype(data, dtype)
