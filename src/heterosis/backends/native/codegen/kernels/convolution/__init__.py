"""Convolutions: windows of the input gathered into the panels of the matrix product.

A module's kernels of one kind differ in nothing but numbers: they share the code.
"""

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernels.convolution.choose import (
    choose,
    choose_for_weights,
)
from heterosis.backends.native.codegen.kernels.convolution.depthwise import emit_depthwise
from heterosis.backends.native.codegen.kernels.convolution.filters import (
    FILTER_NUMBERS,
    emit_pack_transformed,
    emit_transform_filters,
    pack_transformed_scratch_bytes,
    packed_transformed_numbers,
)
from heterosis.backends.native.codegen.kernels.convolution.fold import FOLD_NUMBERS, emit_fold
from heterosis.backends.native.codegen.kernels.convolution.forward import (
    emit_forward,
    emit_pack_filters,
    packed_numbers,
    scratch_bytes,
)
from heterosis.backends.native.codegen.kernels.convolution.plane_weights import (
    emit_plane_weights,
    plane_weights_scratch_bytes,
)
from heterosis.backends.native.codegen.kernels.convolution.planes import planes_scratch_bytes
from heterosis.backends.native.codegen.kernels.convolution.problem import NUMBERS, Problem
from heterosis.backends.native.codegen.kernels.convolution.tiles import span
from heterosis.backends.native.codegen.kernels.convolution.turned import (
    emit_turned,
    turned_scratch_bytes,
)
from heterosis.backends.native.codegen.kernels.convolution.weights import (
    POINTERS,
    emit_weights,
    weights_scratch_bytes,
)
from heterosis.backends.native.codegen.kernels.convolution.winograd import (
    emit_winograd,
    winograd_scratch_bytes,
)
from heterosis.backends.native.codegen.kernels.convolution.winograd_weights import (
    emit_winograd_weights,
    winograd_weights_scratch_bytes,
)
from heterosis.backends.native.codegen.kernels.matmul.finish import finish_runs
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import finish, product_kernel
from heterosis.backends.native.codegen.target import Target

# The ways to convolve: what emits the code, what it needs of memory, and what ends its results.
_FORWARD = {
    "product": (emit_forward, scratch_bytes, finish),
    "depthwise": (emit_depthwise, planes_scratch_bytes, finish_runs),
    "turned": (emit_turned, turned_scratch_bytes, finish_runs),
    "winograd": (emit_winograd, winograd_scratch_bytes, finish_runs),
}
# The same of the gradient of filters.
_WEIGHTS = {
    "product": (emit_weights, weights_scratch_bytes),
    "planes": (emit_plane_weights, plane_weights_scratch_bytes),
    "winograd": (emit_winograd_weights, winograd_weights_scratch_bytes),
}


def _way(problem: Problem) -> str:
    if problem.winograd:
        return "winograd"
    kinds = (kind for kind in ("depthwise", "turned", "planes") if getattr(problem, kind))
    return next(kinds, "product")


def emit_convolve(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue
) -> None:
    """Define `@name(call, x, a, the epilogue's operands..., y, scratch, numbers...)`."""
    ended = None if epilogue.is_empty else epilogue
    emit, _, end = _FORWARD[_way(problem)]
    core, own = f"convolve.{problem.key}", {}
    if problem.depthwise and ended:  # so little work that results are ended in registers
        core, own = f"{core}.{ended.digest}", {"epilogue": ended}
    if not module.defines(core):
        emit(module, target, core, problem, **own)
    labels = epilogue.parameters(("call", "x", "a"), ("y", "scratch"), problem.parameters())
    f = module.function(name, labels)
    (call, x, a, y, scratch, *numbers), words = epilogue.split(f.parameters, 3, 2)
    call = abi.with_workspace(f, call, abi.workspace(f, call), words)
    ending = end(product_kernel(module, target, problem.dtype), ended)
    f.call(core, [*numbers, call, x, a, y, scratch, ending])
    f.ret()


def emit_correlate(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(call, a, x, y, scratch, numbers...)`."""
    core = f"correlate.{problem.key}"
    if not module.defines(core):
        emit, _ = _WEIGHTS[_way(problem)]
        emit(module, target, core, problem)
    f = module.function(name, POINTERS + problem.parameters())
    pointers, numbers = f.parameters[: len(POINTERS)], f.parameters[len(POINTERS) :]
    f.call(core, [*numbers, *pointers])
    f.ret()


def convolve_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    return _FORWARD[_way(problem)][1](problem, target, workers)


def correlate_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    return _WEIGHTS[_way(problem)][1](problem, target, workers)


__all__ = [
    "FILTER_NUMBERS",
    "FOLD_NUMBERS",
    "NUMBERS",
    "Problem",
    "choose",
    "choose_for_weights",
    "convolve_scratch_bytes",
    "correlate_scratch_bytes",
    "emit_convolve",
    "emit_correlate",
    "emit_fold",
    "emit_pack_filters",
    "emit_pack_transformed",
    "emit_transform_filters",
    "pack_transformed_scratch_bytes",
    "packed_numbers",
    "packed_transformed_numbers",
    "span",
]
