"""The kernels of recurrent layers, and their weights packed.

Where the inputs' part is a product with weights that are fixed too, one kernel computes both.
"""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.costs import RECURRENT_FLOPS
from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import recurrent as code
from heterosis.backends.native.codegen.lowerings.native import (
    MATMUL_PACKED,
    PACK_RIGHT,
    RECURRENT_JOINED,
    RECURRENT_PACKED,
)
from heterosis.backends.native.codegen.lowerings.products import packed_right
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD
from heterosis.ir.primitives.recurrent import BACK, FORWARD
from heterosis.ir.program import ASSEMBLE, Node, Value, apply, apply_many
from heterosis.ir.types import TensorType

_NANOSECONDS = 2.0  # a number of the pass


def _kernel(
    mode: str, *, back: bool, packed: bool = False, joined: bool = False
) -> Callable[..., KernelCode]:
    cell = code.CELLS[mode]

    def kernel(
        node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
    ) -> KernelCode:
        steps, rows = (node.types[0] if joined else node.inputs[1]).shape[:2]
        units = node.types[-1 if back else 0].shape[-1]
        wide = cell.gates * units
        keep = not back and node.attributes["keep"]
        loop, actual, layout = code.plan(
            cell, inputs[0].dtype, back, keep, rows, units, machine,
            packed=packed, joined=joined,
        )  # fmt: skip

        def emit(module: Module, target: Target, name: str) -> None:
            code.emit_recurrence(module, target, name, loop)

        _, n, k = actual.extents
        work = 2.0 * rows * n * k / RECURRENT_FLOPS
        return KernelCode(
            key=loop.key,
            emit=emit,
            numbers=code.numbers(
                loop, actual, layout, steps, rows, units, node.attributes["reverse"]
            ),
            scratch_bytes=layout.total,
            nanoseconds=steps * (work + rows * wide * _NANOSECONDS),
            meetings=1 if loop.by_rows else 2 * steps,
        )

    return kernel


def _packs(mode: str) -> Callable[..., Value | None]:
    def packs(node: Node, fixed: Callable[[Value], bool], machine: Machine) -> Value | None:
        weights, given, *states = node.inputs
        few = given.shape[1] <= code.FEW_ROWS or not weights.size
        if few or not fixed(weights):
            return None
        part = _part_of_inputs(given)
        if part is not None and _joins(mode, node, *part, machine):
            return _joined(mode, node, *part, machine)
        operands = (packed_right(views.transpose(weights, (1, 0)), machine), given, *states)
        found, *_ = apply_many(RECURRENT_PACKED[mode], operands, node.types, **node.attributes)
        return found

    return packs


def _part_of_inputs(given: Value) -> tuple[Value, Value, Value] | None:
    """Inputs, weights (depth, columns) and bias, where `given` is `inputs @ weights + bias` and the
    weights have been packed."""
    total = given.node
    if total.primitive is views.RESHAPE:
        total = total.inputs[0].node
    if total.primitive is not ADD or len(total.types[0].shape) != 2:
        return None
    product, bias = (value.node for value in total.inputs)
    if bias.primitive is MATMUL_PACKED:
        product, bias = bias, product
    if product.primitive is not MATMUL_PACKED or bias.primitive is not views.BROADCAST:
        return None
    (inputs, packed), (row,) = product.inputs, bias.inputs
    if packed.node.primitive is not PACK_RIGHT or len(row.shape) != 1:
        return None
    return inputs, packed.node.inputs[0], row


def _joins(
    mode: str, node: Node, inputs: Value, weights: Value, bias: Value, machine: Machine
) -> bool:
    """Whether the layer is to compute the product of its inputs, too."""
    steps, rows, units = node.types[0].shape
    fits = inputs.shape == (steps * rows, units) and bias.shape == weights.shape[1:]
    if mode not in RECURRENT_JOINED or not fits:
        return False
    return code.joins(mode, weights.dtype, rows, units, machine)


def _joined(
    mode: str, node: Node, inputs: Value, above: Value, bias: Value, machine: Machine
) -> Value:
    weights, _, *states = node.inputs
    units, wide = above.shape
    both = apply(
        ASSEMBLE,
        (above, views.transpose(weights, (1, 0))),
        TensorType((2 * units, wide), weights.dtype),
        places=(((0, 0), (1, 1)), ((units, 0), (1, 1))),
        filled=False,
    )
    operands = (packed_right(both, machine, one_block=True), inputs, bias, *states)
    found, *_ = apply_many(RECURRENT_JOINED[mode], operands, node.types, **node.attributes)
    return found


for _mode in code.CELLS:
    KERNELS[FORWARD[_mode]] = KernelLowering(
        _kernel(_mode, back=False), gapless=True, packs=_packs(_mode)
    )
    KERNELS[RECURRENT_PACKED[_mode]] = KernelLowering(
        _kernel(_mode, back=False, packed=True), gapless=True
    )
    if _mode in RECURRENT_JOINED:
        KERNELS[RECURRENT_JOINED[_mode]] = KernelLowering(
            _kernel(_mode, back=False, packed=True, joined=True), gapless=True
        )
    KERNELS[BACK[_mode]] = KernelLowering(_kernel(_mode, back=True), gapless=True)
