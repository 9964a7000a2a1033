"""The kernels of matrix products, and right operands packed for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.costs import PRODUCT_FLOPS
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Module
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Multiplied, Place
from heterosis.backends.native.codegen.lowerings.native import MATMUL_PACKED, PACK_RIGHT
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.primitives.elementwise import MULTIPLY
from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.program import Node, Value, apply
from heterosis.ir.strided import Strided, moved
from heterosis.ir.types import TensorType

if TYPE_CHECKING:  # the functions below import it when the first product is planned
    from heterosis.backends.native.codegen.kernels import matmul as code


def _kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine,
    epilogue: Epilogue,
) -> KernelCode:  # fmt: skip
    from heterosis.backends.native.codegen.kernels import matmul as code

    a, b = (place.strided for place in inputs)
    packed = node.primitive is MATMUL_PACKED
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

    multiplied = Multiplied(actual, epilogue)
    return KernelCode(
        key=f"{open_}{epilogue.key}",
        emit=emit,
        numbers=tuple(open_.arguments(actual)),
        scratch_bytes=code.workspace_bytes(actual, machine.target, machine.workers),
        nanoseconds=2.0 * prod(multiplied.shape) / PRODUCT_FLOPS,
        product=multiplied,
    )


def _problem(dtype: str, a: Strided, b: Strided, c: Strided) -> code.Problem:
    from heterosis.backends.native.codegen.kernels.matmul import Problem

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
    from heterosis.backends.native.codegen.kernels.matmul import Batch

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
    *lead, rows, columns = type_.shape
    return prod(lead), rows, columns


def _pack_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    from heterosis.backends.native.codegen.kernels import matmul as code

    b = inputs[0].strided
    actual = _right_problem(b, inputs[0].dtype, one_block=node.attributes["one_block"])
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


def _right_problem(b: Strided, dtype: str, *, one_block: bool = False) -> code.Problem:
    """A product with the right operand `b`, which is to be packed."""
    from heterosis.backends.native.codegen.kernels.matmul import Problem

    (k, n), (row, column) = b.shape, b.strides
    return Problem(dtype, n=n, k=k, b_row=row, b_column=column, b_packed=True, one_block=one_block)


# With fewer rows or columns, operands are read as they lie.
_FEW = 4


def _packs(node: Node, fixed: Callable[[Value], bool], machine: Machine) -> Value | None:
    a, b = node.inputs
    m, n = node.types[0].shape[-2:]
    few = m <= _FEW or n <= _FEW or not b.size
    if few or b.ndim != 2 or b.dtype not in ("float32", "float64") or not fixed(b):
        return None
    if _is_of_rows(node, machine):
        return None
    return apply(MATMUL_PACKED, (a, packed_right(b, machine)), node.types[0])


def _is_of_rows(node: Node, machine: Machine) -> bool:
    """Whether the columns of the right operand are rows of what it shows, and so few that their dot
    products with the left one's beat packing."""
    from heterosis.backends.native.codegen.kernels import matmul as code

    a, b = node.inputs
    shown, moves = views.unviewed(b)
    right = moved(Strided.contiguous(shown.shape), moves)
    if right is None:
        return False
    left, result = (Strided.contiguous(shape) for shape in (a.shape, node.types[0].shape))
    problem = _problem(a.dtype, left, right, result)
    return code.choose(problem, machine.target, 1).variant == "dots_of_several"


def _is_tall(node: Node, inputs: tuple[Place, ...], machine: Machine) -> bool:
    """Whether vectors are of rows of the result, of which elementwise work knows nothing."""
    from heterosis.backends.native.codegen.kernels import matmul as code

    a, b = (place.strided for place in inputs)
    problem = _problem(inputs[0].dtype, a, b, Strided.contiguous(node.types[0].shape))
    return code.choose(problem, machine.target, 1).variant == "tall"


def packed_right(b: Value, machine: Machine, *, one_block: bool = False) -> Value:
    """A right operand (depth, columns) as kernels with packed ones take it."""
    from heterosis.backends.native.codegen.kernels.matmul import packed_b_layout

    problem = _right_problem(Strided.contiguous(b.shape), b.dtype, one_block=one_block)
    numbers = packed_b_layout(problem, machine.target).numbers
    return apply(PACK_RIGHT, (b,), TensorType((numbers,), b.dtype), one_block=one_block)


def packed_depth(depth: int, dtype: str, machine: Machine) -> int:
    """The depth of the blocks that an operand of `depth` is packed in."""
    from heterosis.backends.native.codegen.kernels.matmul import packed_b_layout

    problem = _right_problem(Strided.contiguous((depth, 1)), dtype)
    return packed_b_layout(problem, machine.target).depth


def _scaled(node: Node, factors: Value) -> Value:
    a, b = node.inputs
    weights = apply(MULTIPLY, (b, views.broadcast(factors, b.shape)), b.type)
    return apply(MATMUL, (a, weights), node.types[0])


KERNELS[MATMUL] = KernelLowering(
    _kernel, finishes=_rows_and_columns, spaced=True, alone=_is_tall, packs=_packs,
    scales=(2, _scaled),
)  # fmt: skip
KERNELS[MATMUL_PACKED] = KernelLowering(_kernel, finishes=_rows_and_columns, spaced=True)
KERNELS[PACK_RIGHT] = KernelLowering(_pack_kernel)
