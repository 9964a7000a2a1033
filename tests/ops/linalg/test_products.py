"""Products over axes: faults, einsum's notation, and results that are written where they belong."""

import numpy
import pytest

from heterosis import np, npx
from heterosis.runtime.errors import ArgumentError, ShapeError

A, B = (
    numpy.random.default_rng(5).random((2, 3, 4)).astype("float32"),
    numpy.eye(4, 5, 1, "float32"),
)

EINSUMS = [
    ("...ij,jk", (A, B)),
    ("ij...->...ij", (A,)),
    ("bij,bkj->b", (A, A)),
    ("bij->jb", (A,)),
    ("bii->bi", (A[:, :, :3],)),
    ("i...,i...", (A, A)),
    ("bij,jk,bik->ik", (A, B, A @ B)),
    ("ij, jk -> ki", (A[0], B)),
    ("bi,b", (A[:, 0], A[:, 0, 0])),
    (",i", (numpy.float32(2), A[0, 0])),
    ("ij,ij->ij", (A[0], A[0, :1])),
]


@pytest.mark.parametrize("text, operands", EINSUMS, ids=[t for t, _ in EINSUMS])
def test_einsum(text, operands):
    got = np.einsum(text, *(np.array(x) for x in operands)).asnumpy()
    numpy.testing.assert_allclose(got, numpy.einsum(text, *operands), rtol=1e-5)


FAULTS = [
    (
        lambda a, b: np.dot(a, a),
        ShapeError,
        r"inner dimensions differ: \(3, 4\) @ \(3, 4\), 4 != 3",
    ),
    (lambda a, b: np.inner(a, np.ones(3)), ShapeError, "4 != 3"),
    (lambda a, b: np.vdot(a, b), ShapeError, "numbers of elements"),
    (lambda a, b: np.tensordot(a, b, axes=2), ShapeError, "inner dimensions differ"),
    (lambda a, b: npx.batch_dot(a, b), ShapeError, "stacks"),
    (lambda a, b: npx.batch_dot(np.ones((2, 3, 4)), np.ones((2, 3, 4))), ShapeError, "4 != 3"),
    (lambda a, b: np.einsum("ij,jk", a, a), ShapeError, "'j' has extents 4 and 3"),
    (lambda a, b: np.einsum("ij", a, b), ArgumentError, "describes 1 operands"),
    (lambda a, b: np.einsum("ijk", a), ShapeError, "3 labels"),
    (lambda a, b: np.einsum("ij->ik", a), ArgumentError, "'k'"),
    (lambda a, b: np.einsum("i1", a), ArgumentError, "labels are letters"),
    (lambda a, b: np.cross(a, b), ShapeError, "both need three"),
]


@pytest.mark.parametrize("fault, error, message", FAULTS)
def test_faults(fault, error, message):
    with pytest.raises(error, match=message):
        fault(np.array(A[0]), np.array(B))


def test_products_into_an_array():
    out = np.zeros((3, 5))
    assert np.dot(np.array(A[0]), np.array(B), out=out) is out
    numpy.testing.assert_allclose(out.asnumpy(), A[0] @ B, rtol=1e-5)


def test_a_product_into_its_own_operand():
    x = np.array(A[0, :, :3])
    np.dot(x, x, out=x)
    numpy.testing.assert_allclose(x.asnumpy(), A[0, :, :3] @ A[0, :, :3], rtol=1e-5)
