"""The loops of convolutions in groups with channels last."""

from __future__ import annotations

import pytest

from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.kernels.channels_last import (
    Problem,
    emit_grouped,
    takes_groups,
)
from heterosis.backends.native.codegen.kernels.channels_last.problem import NUMBERS
from heterosis.backends.native.codegen.target import AVX2, AVX512
from heterosis.backends.native.compile import compiler
from tests.backends.native.codegen.kernels.matmul_harness import loops_of, vector_spills


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("kernel, stride", [(3, 1), (3, 2), (5, 1)])
@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda t: t.name)
def test_the_loops_over_taps_spill_nothing(target, kernel, stride, width):
    sizes = dict.fromkeys(NUMBERS, 1) | {"kernel_h": kernel, "kernel_w": kernel}
    sizes |= {"stride_h": stride, "stride_w": stride}
    problem = Problem("float32", tuple(sizes[name] for name in NUMBERS), width)
    assert takes_groups(width, target, "float32")
    module = Module()
    emit_grouped(module, target, "grouped", problem, None)
    loops = loops_of(compiler.assembly(module.text(), target))
    multiplying = [loop for loop in loops if loop.count("vfmadd") > kernel]
    assert multiplying and not any(vector_spills(target, loop) for loop in multiplying)
