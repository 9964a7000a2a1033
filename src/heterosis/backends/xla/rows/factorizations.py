"""Factorisations of matrices, by LAPACK's conventions, as JAX calls LAPACK or what a machine has.

What JAX says with NaN is an error here, unless there was NaN or an infinity before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.evaluation import Failure
from heterosis.backends.xla.rows.products import PRECISION
from heterosis.backends.xla.tables import CHECKED_ROWS, ROWS
from heterosis.ir.primitives import factorizations as f

if TYPE_CHECKING:
    from heterosis.backends.xla.evaluation import Turn
    from heterosis.ir.program import Node

# Matrices that have no factorisation, for the reason that a check has found.
_NOT_POSITIVE = [[-1.0]]
_SINGULAR = [[0.0]]
_NOT_FINITE = [[numpy.nan]]
_TURNING = [[0.0, 1.0], [-1.0, 0.0]]


def _turned(a: Any) -> Any:
    return jnp.swapaxes(a, -1, -2)


def _diagonal(a: Any) -> Any:
    return jnp.diagonal(a, axis1=-2, axis2=-1)


def _check(turn: Turn, node: Node, failed: Any, *matrices: list[list[float]]) -> None:
    """Fail as `node` does for these matrices, if anything has `failed`."""
    dtype = node.inputs[0].dtype
    turn.check(Failure(node, tuple(numpy.array([m], dtype) for m in matrices)), jnp.any(failed))


# -- triangles ------------------------------------------------------------------------------------


def _cholesky(node: Node, turn: Turn, a: Any) -> Any:
    lower = jnp.tril(a)
    found = lax.linalg.cholesky(lower, symmetrize_input=False)
    was_finite = jnp.all(jnp.isfinite(lower), axis=(-2, -1))
    _check(turn, node, was_finite & jnp.any(jnp.isnan(found), axis=(-2, -1)), _NOT_POSITIVE)
    return jnp.tril(found) + jnp.triu(a, 1)


def _lu(node: Node, a: Any) -> Any:
    """Of the transpose, whose rows change places as the columns of `a` do."""
    packed, pivots, _ = lax.linalg.lu(_turned(a))
    return _turned(packed), pivots + numpy.int32(1)


def _solution(node: Node, turn: Turn, a: Any, columns: Any, *singular: list[list[float]]) -> Any:
    """x with `a @ x == columns`."""
    packed, _, order = lax.linalg.lu(a)
    _check(turn, node, _diagonal(packed) == 0, *singular)
    moved = jnp.take_along_axis(columns, order[..., None], axis=-2)
    lower = lax.linalg.triangular_solve(
        packed, moved, left_side=True, lower=True, unit_diagonal=True
    )
    return lax.linalg.triangular_solve(packed, lower, left_side=True, lower=False)


def _inverse(node: Node, turn: Turn, a: Any) -> Any:
    ones = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    return _solution(node, turn, a, ones, _SINGULAR)


def _solved(node: Node, turn: Turn, a: Any, right: Any) -> Any:
    return _turned(_solution(node, turn, a, _turned(right), _SINGULAR, [[1.0]]))


# -- eigenvalues ----------------------------------------------------------------------------------


def _symmetric(uplo: f.Triangle) -> Callable[..., Any]:
    def row(node: Node, a: Any) -> Any:
        read = jnp.tril(a) if uplo == "L" else _turned(jnp.triu(a))
        vectors, values = lax.linalg.eigh(read, lower=True, symmetrize_input=False)
        return values, _turned(vectors)

    return row


def _symmetric_values(uplo: f.Triangle) -> Callable[..., Any]:
    return lambda node, a: _symmetric(uplo)(node, a)[0]


def _general(node: Node, turn: Turn, a: Any) -> Any:
    with_vectors = len(node.types) > 1
    finite = jnp.all(jnp.isfinite(a))
    values, *vectors = lax.linalg.eig(
        a, compute_left_eigenvectors=False, compute_right_eigenvectors=with_vectors
    )
    _check(turn, node, ~finite, _NOT_FINITE)
    _check(turn, node, finite & jnp.any(jnp.imag(values) != 0), _TURNING)
    real = jnp.real(values)
    return (real, jnp.real(_turned(vectors[0]))) if with_vectors else real


# -- singular values, reflectors ------------------------------------------------------------------


def _without_infinities(a: Any) -> Any:
    """LAPACK looks for the vectors of infinities without end."""
    return jnp.where(jnp.isfinite(a), a, jnp.nan)


def _singular(full: bool) -> Callable[..., Any]:
    def row(node: Node, turn: Turn, a: Any) -> Any:
        u, values, vt = lax.linalg.svd(_without_infinities(a), full_matrices=full)
        _check(turn, node, jnp.isnan(values), _NOT_FINITE)
        return u, values, vt

    return row


def _singular_values(node: Node, turn: Turn, a: Any) -> Any:
    values = lax.linalg.svd(_without_infinities(a), compute_uv=False)
    _check(turn, node, jnp.isnan(values), _NOT_FINITE)
    return values


def _orthogonal(node: Node, a: Any) -> Any:
    packed, factors = jnp.linalg.qr(a, mode="raw")
    return _turned(packed), factors


def _reflectors(node: Node, packed: Any, factors: Any) -> Any:
    """The last reflector first: each is `1 - factor * outer(v, v)`."""
    rows, columns = packed.shape[-2], min(packed.shape[-2:])
    shape = (*packed.shape[:-1], columns)
    found = jnp.broadcast_to(jnp.eye(rows, columns, dtype=packed.dtype), shape)
    for i in reversed(range(factors.shape[-1])):
        one = jnp.zeros((rows,), packed.dtype).at[i].set(1)
        v = jnp.where(numpy.arange(rows) > i, packed[..., i], one)
        seen = jnp.einsum("br,brc->bc", v, found, precision=PRECISION)
        found = found - factors[:, i, None, None] * v[..., None] * seen[:, None]
    return jnp.concatenate([found, packed[..., columns:]], axis=-1)


ROWS[f.LU] = _lu
ROWS[f.ORTHOGONAL] = _orthogonal
ROWS[f.REFLECTORS] = _reflectors
ROWS[f.SYMMETRIC_L], ROWS[f.SYMMETRIC_U] = _symmetric("L"), _symmetric("U")
ROWS[f.SYMMETRIC_VALUES_L] = _symmetric_values("L")
ROWS[f.SYMMETRIC_VALUES_U] = _symmetric_values("U")
CHECKED_ROWS[f.CHOLESKY] = _cholesky
CHECKED_ROWS[f.INVERSE] = _inverse
CHECKED_ROWS[f.SOLVE] = _solved
CHECKED_ROWS[f.GENERAL] = _general
CHECKED_ROWS[f.GENERAL_VALUES] = _general
CHECKED_ROWS[f.SINGULAR] = _singular(full=False)
CHECKED_ROWS[f.SINGULAR_FULL] = _singular(full=True)
CHECKED_ROWS[f.SINGULAR_VALUES] = _singular_values
