"""Factorisations of matrices: compiled, they give what they mean."""

import numpy
import pytest

from heterosis.ir.primitives import factorizations
from heterosis.ir.program import Node
from heterosis.runtime.errors import ArgumentError, DTypeError, LinearAlgebraError, ShapeError
from tests.ir.primitives.kernel_checks import (
    WIDE,
    compiled,
    drawn,
    epsilon,
    failure_of,
    inputs,
    meant,
    node,
    types_of,
)

# -- factorisations -------------------------------------------------------------------------------


def factorized(primitive, *arrays):
    """What the kernel gives and what the primitive means: results of the same types."""
    bare = Node(primitive, inputs(*map(types_of, arrays)), {}, ())
    whole = Node(primitive, bare.inputs, {}, primitive.types(bare))
    return compiled(whole, arrays), meant(whole, arrays)


def near(got, want, dtype, scale=1.0):
    near = 300 * epsilon(dtype) * scale
    numpy.testing.assert_allclose(got, want, rtol=near, atol=near)


def square(dtype, count=2, n=5, *, symmetric=False):
    a = drawn((count, n, n), "float64", low=-1, high=1)
    if symmetric:
        a = a @ a.swapaxes(1, 2) + numpy.eye(n)
    return a.astype(dtype)


def wide(*arrays):
    return [a.astype("float64") for a in arrays]


SIZES = [(2, 5), (1, 1), (3, 17), (0, 3), (2, 0)]
sizes = pytest.mark.parametrize("count, n", SIZES)
floats = pytest.mark.parametrize("dtype", WIDE)


@sizes
@floats
@pytest.mark.parametrize(
    "name", ["CHOLESKY", "INVERSE", "SYMMETRIC_VALUES_L", "SYMMETRIC_VALUES_U"]
)
def test_factorisations_that_are_unique(name, dtype, count, n):
    a = square(dtype, count, n, symmetric=True)
    got, want = factorized(getattr(factorizations, name), a)
    near(*got, *want, dtype, scale=max(n, 1))


@sizes
@floats
def test_systems_of_equations(dtype, count, n):
    a, b = square(dtype, count, n, symmetric=True), drawn((count, 3, n), dtype, seed=1)
    (got,), (want,) = factorized(factorizations.SOLVE, a, b)
    near(got, want, dtype, scale=max(n, 1))


@sizes
@floats
def test_triangular_factors(dtype, count, n):
    a = square(dtype, count, n)
    for packed, pivots in factorized(factorizations.LU, a):
        for one, own, places in zip(a, packed, pivots, strict=True):
            product = numpy.tril(own) @ (numpy.triu(own, 1) + numpy.eye(n))
            for i in reversed(range(n)):
                product[:, [i, places[i] - 1]] = product[:, [places[i] - 1, i]]
            near(product, one, dtype)


@sizes
@floats
@pytest.mark.parametrize("name", ["SYMMETRIC_L", "SYMMETRIC_U"])
def test_eigenvectors_of_symmetric_matrices(name, dtype, count, n):
    a = square(dtype, count, n, symmetric=True)
    got, want = factorized(getattr(factorizations, name), a)
    near(got[0], want[0], dtype, scale=n)
    for values, rows in (wide(*got), wide(*want)):
        near(rows.swapaxes(1, 2) @ (values[..., None] * rows), a, dtype, scale=n)
        near(rows @ rows.swapaxes(1, 2), numpy.broadcast_to(numpy.eye(n), a.shape), dtype)


@sizes
@floats
def test_eigenvectors_of_any_matrices(dtype, count, n):
    a = (numpy.triu(square("float64", count, n), 1) + numpy.diag(numpy.arange(n) + 1)).astype(dtype)
    for values, rows in factorized(factorizations.GENERAL, a):
        near(rows @ a.swapaxes(1, 2), values[..., None] * rows, dtype, scale=n)
    for (values,) in factorized(factorizations.GENERAL_VALUES, a):
        near(numpy.sort(values), numpy.broadcast_to(numpy.arange(n) + 1, values.shape), dtype)


@floats
@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 3, 5), (2, 4, 4), (0, 2, 3), (2, 1, 1)])
@pytest.mark.parametrize("name", ["SINGULAR", "SINGULAR_FULL"])
def test_singular_vectors(name, dtype, shape):
    a, k = drawn(shape, dtype), min(shape[1:])
    (values,) = factorized(factorizations.SINGULAR_VALUES, a)[1]
    for u, s, vt in factorized(getattr(factorizations, name), a):
        near(s, values, dtype, scale=10)
        near(u[:, :, :k] * s[:, None] @ vt[:, :k], a, dtype, scale=10)
        for own in (u.swapaxes(1, 2) @ u, vt @ vt.swapaxes(1, 2)):
            near(own, numpy.broadcast_to(numpy.eye(own.shape[1]), own.shape), dtype)
    (got,) = factorized(factorizations.SINGULAR_VALUES, a)[0]
    near(got, values, dtype, scale=10)


@floats
@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 3, 5), (2, 4, 4), (0, 2, 3), (2, 1, 1)])
def test_reflectors(dtype, shape):
    a = drawn(shape, dtype)
    got, want = factorized(factorizations.ORTHOGONAL, a)
    for one, other in zip(got, want, strict=True):  # no sign is free
        near(one, other, dtype, scale=10)
    (got_q,), (want_q,) = factorized(factorizations.REFLECTORS, *want)
    near(got_q, want_q, dtype)
    k = min(shape[1:])
    near(want_q[:, :, :k] @ numpy.triu(want[0])[:, :k], a, dtype, scale=10)


@floats
@pytest.mark.parametrize("primitive, matrix", [
    (factorizations.CHOLESKY, [[1.0, 2.0], [2.0, 1.0]]),
    (factorizations.INVERSE, [[1.0, 1.0], [1.0, 1.0]]),
    (factorizations.GENERAL, [[0.0, 1.0], [-1.0, 0.0]]),
    (factorizations.GENERAL_VALUES, [[0.0, 1.0], [-1.0, 0.0]]),
    (factorizations.GENERAL, [[0.0, 1.0], [numpy.nan, 0.0]]),
    (factorizations.GENERAL_VALUES, [[0.0, numpy.inf], [1.0, 0.0]]),
], ids=str)  # fmt: skip
def test_matrices_without_a_factorisation(primitive, matrix, dtype):
    a = numpy.array([numpy.eye(2), matrix], dtype)
    shapes = [(2, 2), (2, 2, 2)] if primitive is factorizations.GENERAL else [a.shape]
    shapes = [(2, 2)] if primitive is factorizations.GENERAL_VALUES else shapes
    given = node(primitive, [types_of(a)], [(shape, dtype) for shape in shapes])
    assert primitive.types(given) == given.types
    assert failure_of(given, [a]) is LinearAlgebraError


def test_systems_without_a_solution():
    a, b = numpy.ones((1, 2, 2)), numpy.ones((1, 3, 2))
    given = node(factorizations.SOLVE, [types_of(a), types_of(b)], [types_of(b)])
    assert failure_of(given, [a, b]) is LinearAlgebraError


@pytest.mark.parametrize("name", [n for n in dir(factorizations) if isinstance(
    getattr(factorizations, n), factorizations.Opaque)])  # fmt: skip
def test_matrices_that_do_not_fit(name):
    primitive = getattr(factorizations, name)
    right = [((2, 3, 3), "float32")]
    right += {"SOLVE": [((2, 1, 3), "float32")], "REFLECTORS": [((2, 3), "float32")]}.get(name, [])
    given = node(primitive, right, [])
    assert {t.shape[0] for t in primitive.types(given)} == {2}
    with pytest.raises(DTypeError):
        primitive.types(node(primitive, [(shape, "int32") for shape, _ in right], []))
    with pytest.raises(ShapeError):
        primitive.types(node(primitive, [((3, 3), "float32"), *right[1:]], []))
    with pytest.raises(ArgumentError):
        primitive.types(node(primitive, [*right, *right, *right], []))
