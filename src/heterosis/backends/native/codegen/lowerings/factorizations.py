"""The kernels of factorisations, which call LAPACK."""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import lapack
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.ir.primitives import factorizations as primitives
from heterosis.ir.program import Node


def _sizes(node: Node) -> dict[str, int]:
    """What the table of factorisations calls by name, from the operands' shapes."""
    _, m, n = node.inputs[0].shape
    k = min(m, n)
    sizes = {"m": m, "n": n, "k": k, "lda": max(n, 1), "ldu": max(k, 1)}
    if node.primitive is primitives.SINGULAR_FULL:
        sizes["ldu"] = max(m, 1)
    elif node.primitive is primitives.SOLVE:
        sizes["k"] = node.inputs[1].shape[1]
    elif node.primitive is primitives.REFLECTORS:
        sizes["reflectors"] = node.inputs[1].shape[1]
    return sizes


def _kernel(what: lapack.Factorization) -> Callable[..., KernelCode]:
    def kernel(
        node: Node, inputs: tuple[Place, ...], outputs: tuple[Place, ...], machine: Machine
    ) -> KernelCode:
        return lapack.kernel(what, _sizes(node), inputs, outputs)

    return kernel


_FACTORIZATIONS = {
    primitives.CHOLESKY: lapack.CHOLESKY,
    primitives.LU: lapack.LU,
    primitives.INVERSE: lapack.INVERSE,
    primitives.SOLVE: lapack.SOLVE,
    primitives.SYMMETRIC_L: lapack.SYMMETRIC["L"],
    primitives.SYMMETRIC_U: lapack.SYMMETRIC["U"],
    primitives.SYMMETRIC_VALUES_L: lapack.SYMMETRIC_VALUES["L"],
    primitives.SYMMETRIC_VALUES_U: lapack.SYMMETRIC_VALUES["U"],
    primitives.GENERAL: lapack.GENERAL,
    primitives.GENERAL_VALUES: lapack.GENERAL_VALUES,
    primitives.SINGULAR_VALUES: lapack.SINGULAR_VALUES,
    primitives.SINGULAR: lapack.SINGULAR,
    primitives.SINGULAR_FULL: lapack.SINGULAR_FULL,
    primitives.ORTHOGONAL: lapack.ORTHOGONAL,
    primitives.REFLECTORS: lapack.REFLECTORS,
}
KERNELS.update((p, KernelLowering(_kernel(what))) for p, what in _FACTORIZATIONS.items())
