"""Convolutions: windows of the input gathered into the panels of the matrix product."""

from collections.abc import Callable

from heterosis.codegen.builder import Module, Type
from heterosis.codegen.convolution.depthwise import (
    depthwise_scratch_bytes,
    emit_depthwise,
    emit_depthwise_weights,
)
from heterosis.codegen.convolution.forward import emit_forward, pointers, scratch_bytes
from heterosis.codegen.convolution.problem import Problem
from heterosis.codegen.convolution.weights import (
    POINTERS,
    emit_weights,
    weights_scratch_bytes,
)
from heterosis.codegen.target import Target


def emit_convolve(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(call, x, a, [bias,] y, scratch, numbers...)`."""
    emit = emit_depthwise if problem.depthwise else emit_forward
    _emit_shared(module, target, name, f"convolve.{problem.key}", problem, emit, pointers(problem))


def emit_correlate(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(call, a, x, y, scratch, numbers...)`."""
    emit = emit_depthwise_weights if problem.depthwise else emit_weights
    _emit_shared(module, target, name, f"correlate.{problem.key}", problem, emit, POINTERS)


def _emit_shared(
    module: Module, target: Target, name: str, core: str, problem: Problem,
    emit: Callable[[Module, Target, str, Problem], None], operands: list[tuple[str, Type]],
) -> None:  # fmt: skip
    """A module's kernels of one kind differ in nothing but numbers: they share the code."""
    if not module.defines(core):
        emit(module, target, core, problem)
    f = module.function(name, operands + problem.parameters())
    f.call(core, f.parameters)
    f.ret()


def convolve_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    size = depthwise_scratch_bytes if problem.depthwise else scratch_bytes
    return size(problem, target, workers)


def correlate_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    size = depthwise_scratch_bytes if problem.depthwise else weights_scratch_bytes
    return size(problem, target, workers)


__all__ = [
    "Problem",
    "convolve_scratch_bytes",
    "correlate_scratch_bytes",
    "emit_convolve",
    "emit_correlate",
]
