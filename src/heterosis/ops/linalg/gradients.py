"""Gradients of linear algebra: formulas for whole matrices in place of LAPACK's steps."""

from __future__ import annotations

from typing import Any

from heterosis.ir import views
from heterosis.ir.program import Value, constant
from heterosis.ops.linalg import factorizations
from heterosis.ops.linalg.factorizations import identity, transposed
from heterosis.ops.linalg.matmul import matmul
from heterosis.ops.math import elementwise as e
from heterosis.ops.math.reductions import sum as total
from heterosis.ops.math.reductions import summed_to
from heterosis.ops.record import gradient_of
from heterosis.ops.rules import cast
from heterosis.runtime.errors import UnsupportedError


def _half(x: Value) -> Value:
    return e.multiply(x, constant(0.5, "float64", weak=True))


def _symmetric(x: Value) -> Value:
    return _half(e.add(x, transposed(x)))


def _column(x: Value) -> Value:
    """A vector as a matrix of one column."""
    return views.reshape(x, (*x.shape, 1))


def _row(x: Value) -> Value:
    return views.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _number_for_each(x: Value) -> Value:
    """One number a matrix, ready to be multiplied with it."""
    return views.reshape(x, (*x.shape, 1, 1))


def _below(x: Value, *, diagonal: float) -> Value:
    """The lower triangle, its diagonal multiplied by a number."""
    return e.subtract(
        factorizations.lower_triangle(x),
        e.multiply(
            e.multiply(x, identity(x.shape[:-2], x.shape[-1], x.dtype)),
            constant(1.0 - diagonal, "float64", weak=True),
        ),
    )


def _apart(values: Value) -> Value:
    """`1 / (values[j] - values[i])` at (i, j), and 0 on the diagonal."""
    distance = e.subtract(_row(values), _column(values))
    same = cast(identity(values.shape[:-1], values.shape[-1], values.dtype), "bool")
    one, zero = (constant(n, "float64", weak=True) for n in (1.0, 0.0))
    return e.select(same, zero, e.true_divide(one, e.select(same, one, distance)))


@gradient_of(factorizations.inv)
def _inv(g: Value, y: Value, a: Value) -> Value:
    turned = transposed(y)
    return e.negative(matmul(matmul(turned, g), turned))


@gradient_of(factorizations.det)
def _det(g: Value, y: Value, a: Value) -> Value:
    return e.multiply(_number_for_each(g), factorizations.cofactors(a, y))


@gradient_of(factorizations.cofactors)
def _cofactors(g: Value, y: Value, a: Value, determinant: Value) -> tuple[Value, Value]:
    turned = transposed(factorizations.inv(a))
    inner = matmul(matmul(turned, transposed(g)), turned)
    of_determinant = total(e.multiply(g, turned), (-2, -1))
    return e.negative(e.multiply(_number_for_each(determinant), inner)), of_determinant


@gradient_of(factorizations.slogdet)
def _slogdet(g: tuple[Value, Value], y: Any, a: Value) -> Value:
    return e.multiply(_number_for_each(g[1]), transposed(factorizations.inv(a)))


@gradient_of(factorizations.solve)
def _solve(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    if b.ndim == 1:
        g, y = _column(g), _column(y)
    own = factorizations.solve(transposed(a), g)
    left = e.negative(matmul(own, transposed(y)))
    right = views.reshape(own, own.shape[:-1]) if b.ndim == 1 else own
    return summed_to(left, a.shape), summed_to(right, b.shape)


@gradient_of(factorizations.cholesky)
def _cholesky(g: Value, y: Value, a: Value, upper: bool) -> Value:
    if upper:
        g, y = transposed(g), transposed(y)
    inner = _below(matmul(transposed(y), g), diagonal=0.5)
    outer = factorizations.solve(transposed(y), inner)  # L^-T P
    return _symmetric(transposed(factorizations.solve(transposed(y), transposed(outer))))


@gradient_of(factorizations.eigh)
def _eigh(g: tuple[Value, Value], y: tuple[Value, Value], a: Value, uplo: str) -> Value:
    (values, vectors), (of_values, of_vectors) = y, g
    turning = e.multiply(_apart(values), matmul(transposed(vectors), of_vectors))
    n = values.shape[-1]
    own = e.multiply(identity(values.shape[:-1], n, values.dtype), _row(of_values))
    inner = e.add(own, turning)
    return _symmetric(matmul(matmul(vectors, inner), transposed(vectors)))


@gradient_of(factorizations.eigvalsh)
def _eigvalsh(g: Value, y: Value, a: Value, uplo: str) -> Value:
    _, vectors = factorizations.eigh(a, uplo)
    return matmul(e.multiply(vectors, _row(g)), transposed(vectors))


@gradient_of(factorizations.svd)
def _svd(g: Any, y: Any, a: Value, full_matrices: bool, compute_uv: bool) -> Value:
    if not compute_uv:
        u, s, vt = factorizations.svd(a)
        return matmul(e.multiply(u, _row(g)), vt)
    if full_matrices and a.shape[-1] != a.shape[-2]:
        raise UnsupportedError(
            "svd: with full_matrices=True, only square matrices have a gradient; use "
            "full_matrices=False."
        )
    (gu, gs, gvt), (u, s, vt) = g, y
    apart = _apart(e.square(s))
    left, right = (
        e.multiply(apart, e.subtract(x, transposed(x)))
        for x in (matmul(transposed(u), gu), matmul(vt, transposed(gvt)))
    )
    own = e.multiply(identity(s.shape[:-1], s.shape[-1], s.dtype), _row(gs))
    inner = e.add(own, e.add(e.multiply(left, _row(s)), e.multiply(_column(s), right)))
    total = matmul(matmul(u, inner), vt)
    if u.shape[-2] > u.shape[-1]:  # what lies outside of the columns of U
        gu = e.true_divide(gu, _row(s))
        total = e.add(total, matmul(e.subtract(gu, matmul(u, matmul(transposed(u), gu))), vt))
    if vt.shape[-1] > vt.shape[-2]:
        gvt = e.true_divide(gvt, _column(s))
        outside = e.subtract(gvt, matmul(matmul(gvt, transposed(vt)), vt))
        total = e.add(total, matmul(u, outside))
    return total


@gradient_of(factorizations.qr)
def _qr(g: Any, y: Any, a: Value, mode: str) -> Value:
    if mode != "reduced" or a.shape[-2] < a.shape[-1]:
        raise UnsupportedError(
            f"qr: a gradient exists for mode='reduced' and at least as many rows as columns, not "
            f"for mode={mode!r} and matrices of shape {a.shape[-2:]}."
        )
    (gq, gr), (q, r) = g, y
    m = e.subtract(matmul(r, transposed(gr)), matmul(transposed(gq), q))
    folded = e.add(_below(m, diagonal=1.0), transposed(_below(m, diagonal=0.0)))
    inner = e.add(gq, matmul(q, folded))
    return transposed(factorizations.solve(r, transposed(inner)))
