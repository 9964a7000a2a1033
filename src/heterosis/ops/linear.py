"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy

from heterosis.codegen import abi
from heterosis.codegen.builder import I64, PTR, Module
from heterosis.codegen.epilogue import Epilogue
from heterosis.codegen.kernel import KernelCode, Machine, Multiplied, Place
from heterosis.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.program import Node, Value, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops.adjoint import Cotangents, Step, adjoint
from heterosis.ops.elementwise import multiply
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_shapes, cast, result_type
from heterosis.ops.samples import NUMBERS, Case, Samples
from heterosis.runtime.errors import ShapeError

if TYPE_CHECKING:  # the functions below import it when the first product is planned
    from heterosis.codegen import matmul as code

_FLOPS_A_NANOSECOND = 50.0


def _kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    from heterosis.codegen import matmul as code

    a, b = (place.strided for place in inputs)
    packed = node.attributes.get("packed", False)
    if packed:  # its strides say nothing: the same panels for all batches
        b = Strided((a.shape[-1], outputs[0].strided.shape[-1]), (0, 0), b.offset)
    problem = replace(_problem(inputs[0].dtype, a, b, outputs[0].strided), b_packed=packed)
    finishes = not epilogue.is_empty
    actual = code.choose(problem, machine.target, machine.workers, epilogue=finishes)
    open_ = actual.generic()

    def emit(module: Module, target: Target, name: str) -> None:
        finish = epilogue if finishes else None
        code.emit_matmul(module, target, f"{name}.product", open_, finish)
        f = module.function(
            name, epilogue.parameters(("call", "a", "b"), ("c", "scratch"), open_.parameters())
        )
        (call, a, b, c, scratch, *numbers), words = epilogue.split(f.parameters, 3, 2)
        # Other kernels use the rest of the workspace.
        own = abi.with_workspace(f, call, scratch, words)
        f.call(f"{name}.product", [own, a, b, c, *numbers])
        f.ret()

    work = 2.0 * actual.batches * actual.m * actual.n * actual.k
    return KernelCode(
        key=f"{open_}{epilogue.key}",
        emit=emit,
        numbers=tuple(open_.arguments(actual)),
        scratch_bytes=code.workspace_bytes(actual, machine.target, machine.workers),
        nanoseconds=work / _FLOPS_A_NANOSECOND,
        product=Multiplied(actual, epilogue),
    )


def _problem(dtype: str, a: Strided, b: Strided, c: Strided) -> code.Problem:
    from heterosis.codegen.matmul import Problem

    (m, k), n = a.shape[-2:], b.shape[-1]
    return Problem(
        dtype, m=m, n=n, k=k,
        a_row=a.strides[-2], a_column=a.strides[-1],
        b_row=b.strides[-2], b_column=b.strides[-1],
        c_row=c.strides[-2],
        batch=_batch_axes(a, b, c),
    )  # fmt: skip


def _batch_axes(a: Strided, b: Strided, c: Strided) -> tuple[code.Batch, ...]:
    """The leading axes, without those of one element; what runs on in all three is merged."""
    from heterosis.codegen.matmul import Batch

    merged: list[tuple[int, int, int, int]] = []
    for axis in range(len(c.shape) - 2):
        count = c.shape[axis]
        own = (a.strides[axis], b.strides[axis] if axis < len(b.shape) - 2 else 0, c.strides[axis])
        if count == 1:
            continue
        if merged and all(o == i * count for o, i in zip(merged[-1][1:], own, strict=True)):
            count *= merged.pop()[0]
        merged.append((count, *own))
    return tuple(Batch(*axis) for axis in merged)


def _rows_and_columns(type_: TensorType) -> tuple[int, int, int]:
    return prod(type_.shape[:-2]), *type_.shape[-2:]


def _pack_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    from heterosis.codegen import matmul as code

    b = inputs[0].strided
    actual = _right_problem(b, inputs[0].dtype)
    open_ = actual.generic()

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_pack_b(module, target, f"{name}.panels", open_)
        labels = [(label, PTR) for label in ("call", "b", "panels", "scratch")]
        f = module.function(name, labels + [(label, I64) for label in _RIGHT])
        call, b, panels, _, *numbers = f.parameters
        f.call(f"{name}.panels", [call, b, panels, *numbers])
        f.ret()

    return KernelCode(
        key=f"pack right {open_}",
        emit=emit,
        numbers=tuple(getattr(actual, label) for label in _RIGHT),
        nanoseconds=prod(b.shape),
    )


_RIGHT = ("n", "k", "b_row", "b_column")


def _right_problem(b: Strided, dtype: str) -> code.Problem:
    """A product with the right operand `b`, which is to be packed."""
    from heterosis.codegen.matmul import Problem

    (k, n), (row, column) = b.shape, b.strides
    return Problem(dtype, n=n, k=k, b_row=row, b_column=column, b_packed=True)


# A right operand (depth, columns) as the code for one processor reads it.
_PACK = Opaque("pack_right", _pack_kernel)
# With fewer rows or columns, operands are read as they lie.
_FEW = 4


def _packs(node: Node, fixed: Callable[[Value], bool], machine: Machine) -> Value | None:
    a, b = node.inputs
    m, n = node.types[0].shape[-2:]
    few = m <= _FEW or n <= _FEW or not b.size
    if few or b.ndim != 2 or b.dtype not in ("float32", "float64") or not fixed(b):
        return None
    return apply(_MATMUL, (a, packed_right(b, machine)), node.types[0], packed=True)


def packed_right(b: Value, machine: Machine) -> Value:
    """A right operand (depth, columns) as kernels with packed ones take it."""
    from heterosis.codegen.matmul import packed_b_layout

    problem = _right_problem(Strided.contiguous(b.shape), b.dtype)
    numbers = packed_b_layout(problem, machine.target).numbers
    return apply(_PACK, (b,), TensorType((numbers,), b.dtype))


def packed_depth(depth: int, dtype: str, machine: Machine) -> int:
    """The depth of the blocks that an operand of `depth` is packed in."""
    from heterosis.codegen.matmul import packed_b_layout

    problem = _right_problem(Strided.contiguous((depth, 1)), dtype)
    return packed_b_layout(problem, machine.target).depth


def _scaled(node: Node, factors: Value) -> Value:
    a, b = node.inputs
    return apply(_MATMUL, (a, multiply(b, factors)), node.types[0])


_MATMUL = Opaque("matmul", _kernel, finishes=_rows_and_columns, packs=_packs, scales=(2, _scaled))


@adjoint(_MATMUL)
def _pull_matmul(step: Step) -> Cotangents:
    (a, b), g = step.inputs, step.cotangent
    return _received(a, g, _turned(b)), _received(b, _turned(a), g)


def _received(operand: Value, left: Value, right: Value) -> Value:
    """`left @ right`, which `operand` receives. Of a transposed matrix, the transposed product: it
    is written as the matrix itself lies."""
    node, last = operand.node, operand.ndim - 1
    turned = (*range(last - 1), last, last - 1)
    if node.primitive is views.TRANSPOSE and node.attributes["axes"] == turned:
        return _turned(_multiplied(_turned(right), _turned(left)))
    return _multiplied(left, right)


def _turned(x: Value) -> Value:
    """Every matrix transposed."""
    return views.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _multiplied(a: Value, b: Value) -> Value:
    type_ = TensorType((*a.shape[:-1], b.shape[-1]), a.dtype)
    return apply(_MATMUL, (a, b), type_)


def product(name: str, a: Value, b: Value) -> Value:
    """Batches of matrices `a @ b`, both at least two-dimensional, batch axes repeated as needed."""
    dtype = result_type(a, b)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{name}: the inner dimensions differ: {a.shape} @ {b.shape}, "
            f"{a.shape[-1]} != {b.shape[-2]}. Transpose an operand or check which one was meant."
        )
    lead = broadcast_shapes(name, (a.shape[:-2], b.shape[:-2]))
    a = views.broadcast(cast(a, dtype), lead + a.shape[-2:])
    b = views.broadcast(cast(b, dtype), lead + b.shape[-2:])
    return apply(_MATMUL, (a, b), TensorType((*lead, a.shape[-2], b.shape[-1]), dtype))


_MATMUL_CASES = tuple(
    Case(pair)
    for pair in (
        ((3, 4), (4, 5)),
        ((1, 70), (70, 33)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((0, 4), (4, 3)),
        ((3, 0), (0, 2)),
    )
)


@operation(
    numpy=numpy.matmul,
    names={"mxnet": "_npi_matmul", "onnx": "MatMul"},
    samples=Samples(_MATMUL_CASES, dtypes=NUMBERS, ulps=8, absolute=200),
)
def matmul(a, b):
    """The matrix product; stacks of matrices broadcast."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"matmul: operands of shapes {a.shape} and {b.shape}; both need at least one "
            "dimension. Multiply by a number with '*'."
        )
    left = views.reshape(a, (1, *a.shape)) if a.ndim == 1 else a
    right = views.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
    result = product("matmul", left, right)
    rows = () if a.ndim == 1 else result.shape[-2:-1]
    columns = () if b.ndim == 1 else result.shape[-1:]
    return views.reshape(result, (*result.shape[:-2], *rows, *columns))
