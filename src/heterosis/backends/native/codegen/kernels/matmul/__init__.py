"""Matrix products: one register-tiled micro-kernel, packing, and the loops around them."""

from heterosis.backends.native.codegen.kernels.matmul.choose import choose
from heterosis.backends.native.codegen.kernels.matmul.prepack import (
    PackedLayout,
    emit_pack_b,
    packed_b_layout,
)
from heterosis.backends.native.codegen.kernels.matmul.problem import Batch, Problem
from heterosis.backends.native.codegen.kernels.matmul.product import emit_matmul, workspace_bytes

__all__ = [
    "Batch",
    "PackedLayout",
    "Problem",
    "choose",
    "emit_matmul",
    "emit_pack_b",
    "packed_b_layout",
    "workspace_bytes",
]
