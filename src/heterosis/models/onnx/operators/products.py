"""Products of matrices, and what is computed from them."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.models.onnx.operators.table import operator
from heterosis.models.onnx.values import kind
from heterosis.runtime.errors import ShapeError, UnsupportedError


@operator("MatMul")
def _matmul(a: Any, b: Any) -> Any:
    return np.matmul(a, b)


@operator("Gemm", since=7)
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """The product of two matrices, with a third one added, both times numbers."""
    alpha, beta = _factor(a, alpha), _factor(a, beta)
    a = np.transpose(a) if transA else a
    if transB and alpha == 1 and kind(a) == "f":
        if c is not None and beta == 1 and tuple(c.shape) == (b.shape[0],):
            return npx.fully_connected(a, b, c, num_hidden=b.shape[0], no_bias=False)
        product = npx.fully_connected(a, b, num_hidden=b.shape[0], no_bias=True)
    else:
        product = np.matmul(a, np.transpose(b) if transB else b)
    product = product if alpha == 1 else product * alpha
    if c is None or beta == 0:
        return product
    return product + (c if beta == 1 else c * beta)


@operator("Gemm")
def _gemm_up_to_6(
    a: Any,
    b: Any,
    c: Any,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    found = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    if not broadcast and tuple(found.shape) != tuple(c.shape):
        raise ShapeError(
            f"Gemm adds an array of shape {tuple(c.shape)} to one of {tuple(found.shape)}: without "
            "its attribute `broadcast` they must be equal up to version 6."
        )
    return found


def _factor(a: Any, factor: float) -> float:
    if kind(a) == "f" or factor == 1:
        return factor
    if factor != int(factor):
        raise UnsupportedError(f"Gemm of {a.dtype} with a factor of {factor}.")
    return int(factor)


@operator("MatMulInteger", since=10)
def _matmul_of_integers(a: Any, b: Any, a_zero_point: Any = None, b_zero_point: Any = None) -> Any:
    a, b = a.astype("int32"), b.astype("int32")
    if a_zero_point is not None:
        zero = a_zero_point.astype("int32")
        rows = len(zero.shape) == 1 and zero.shape[0] != 1  # one for each
        a = a - (np.reshape(zero, (zero.shape[0], 1)) if rows else zero)
    if b_zero_point is not None:
        b = b - b_zero_point.astype("int32")
    return np.matmul(a, b)


@operator("Einsum", since=12)
def _einsum(*inputs: Any, equation: str) -> Any:
    return np.einsum(equation.replace(" ", ""), *inputs)


@operator("Det", since=11)
def _det(x: Any) -> Any:
    return np.linalg.det(x)
