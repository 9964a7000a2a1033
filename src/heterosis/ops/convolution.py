"""Convolution, its gradients, and deconvolution, in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from heterosis.codegen import convolution as code
from heterosis.codegen.builder import Module
from heterosis.codegen.kernel import KernelCode, Machine, Place
from heterosis.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, Node, Opaque, Value, apply, constant
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, result_type
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

_FLOPS_A_NANOSECOND = 50.0
Extents = tuple[int, ...]


# -- the primitives: windows of an input of shape (images, groups, channels, depth, height, width) ----


def _sizes(
    node: Node, x: Place, rows: int, out: Extents, left: Sequence[int], bias_row: int = 0
) -> tuple[int, ...]:
    """The numbers of `code.NUMBERS`; `left` is how the left operand lies."""
    images, groups, channels, *extents = x.strided.shape
    facts = node.attributes
    return (
        images, groups, rows, channels, *facts["kernel"], *out, *extents, *x.strided.strides,
        *facts["stride"], *facts["dilate"], *facts["origin"], *left, bias_row,
    )  # fmt: skip


def _step(node: Node, x: Place) -> int:
    step = x.strided.strides[-1] * node.attributes["stride"][-1]
    return step if step in (1, 2) and x.strided.strides[-1] == 1 else 0


def _convolve_kernel(
    node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
) -> KernelCode:
    x, a, *bias = inputs
    images, _, rows, *out = outputs[0].strided.shape
    apart = bias[0].strided.strides[0] if bias else 0
    sizes = _sizes(node, x, rows, tuple(out), (0, *a.strided.strides), apart)
    problem = code.Problem(x.dtype, _step(node, x), sizes, bool(bias))

    def emit(module: Module, target: Target, name: str) -> None:
        code.emit_forward(module, target, name, problem)

    work = 2.0 * images * prod(out) * a.strided.shape[0] * rows * a.strided.shape[2]
    return KernelCode(
        key=f"forward {problem.key}",
        emit=emit,
        numbers=problem.sizes,
        scratch_bytes=code.scratch_bytes(problem, machine.target, machine.workers),
        nanoseconds=work / _FLOPS_A_NANOSECOND,
    )


_CONVOLVE = Opaque("convolve", _convolve_kernel)


def _convolve(
    x: Value, a: Value, bias: Value | None, out: Extents, **windows: Extents
) -> Value:
    """Filters `a` (groups, rows, channels * taps) on the windows of `x`, of six dimensions.

    Output position p and tap t meet at input position p * stride + t * dilate + origin.
    """
    operands = (x, a) if bias is None else (x, a, bias)
    shape = (*x.shape[:2], a.shape[1], *out)
    if 0 in shape:
        return views.broadcast(constant(0, x.dtype), shape)
    return apply(_CONVOLVE, operands, TensorType(shape, x.dtype), **windows)
