"""Convolutions: windows of the input gathered into the panels of the matrix product."""

from collections.abc import Callable

from heterosis.codegen.builder import Module
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
    _emit_shared(module, target, name, f"convolve.{problem.key}", problem, emit_forward)


def emit_correlate(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(call, a, x, y, scratch, numbers...)`."""
    _emit_shared(module, target, name, f"correlate.{problem.key}", problem, emit_weights)


def _emit_shared(
    module: Module, target: Target, name: str, core: str, problem: Problem, emit: Callable
) -> None:
    """A module's kernels of one kind differ in nothing but numbers: they share the code."""
    if not module.defines(core):
        emit(module, target, core, problem)
    labels = POINTERS if emit is emit_weights else pointers(problem)
    f = module.function(name, labels + problem.parameters())
    f.call(core, f.parameters)
    f.ret()


__all__ = [
    "Problem",
    "emit_convolve",
    "emit_correlate",
    "scratch_bytes",
    "weights_scratch_bytes",
]
