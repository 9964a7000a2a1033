"""Matrix products: one register-tiled micro-kernel, packing, and the loops around them."""

from heterosis.codegen.matmul.choose import FEW_ROWS, choose, choose_variant
from heterosis.codegen.matmul.prepack import PackedLayout, emit_pack_b, packed_b_layout
from heterosis.codegen.matmul.problem import Batch, Problem
from heterosis.codegen.matmul.product import emit_matmul, workspace_bytes

__all__ = [
    "FEW_ROWS",
    "Batch",
    "PackedLayout",
    "Problem",
    "choose",
    "choose_variant",
    "emit_matmul",
    "emit_pack_b",
    "packed_b_layout",
    "workspace_bytes",
]
