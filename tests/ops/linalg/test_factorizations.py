"""Factorisations against what defines them, shapes and types, and errors in queued work."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.runtime.errors import ArgumentError, DTypeError, LinearAlgebraError, ShapeError

SHAPES = ((3, 5), (5, 3), (4, 4), (1, 1), (2, 3, 40), (2, 0, 4, 3))
SQUARE = ((4, 4), (1, 1), (33, 33), (2, 3, 5, 5), (0, 3, 3), (0, 0))


def matrix(shape, dtype="float64"):
    return numpy.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def definite(shape, dtype="float64"):
    a = matrix(shape, "float64")
    return (a @ a.swapaxes(-1, -2) + numpy.eye(shape[-1])).astype(dtype)


def close(got, expected, scale=1.0):
    got = got.asnumpy() if hasattr(got, "asnumpy") else got
    tolerance = 2e-4 if got.dtype == numpy.float32 else 1e-10
    numpy.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape, dtype):
    a = matrix(shape, dtype)
    u, s, vt = (x.asnumpy() for x in np.linalg.svd(np.array(a)))
    k = min(shape[-2:])
    assert u.shape == (*shape[:-1], k) and s.shape == (*shape[:-2], k)
    assert vt.shape == (*shape[:-2], k, shape[-1]) and u.dtype == dtype
    close((u * s[..., None, :]) @ vt, a)
    close(s, numpy.linalg.svd(a, compute_uv=False))
    close(np.linalg.svd(np.array(a), compute_uv=False), s)
    close(u.swapaxes(-1, -2) @ u, numpy.broadcast_to(numpy.eye(k), (*shape[:-2], k, k)))


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (2, 3, 0)])
def test_svd_with_full_matrices(shape):
    u, s, vt = (x.asnumpy() for x in np.linalg.svd(np.array(matrix(shape)), full_matrices=True))
    m, n = shape[-2:]
    full = numpy.zeros((*shape[:-2], m, n))
    full[..., range(min(m, n)), range(min(m, n))] = s
    close(u @ full @ vt, matrix(shape))
    close(u @ u.swapaxes(-1, -2), numpy.broadcast_to(numpy.eye(m), u.shape))
    close(vt @ vt.swapaxes(-1, -2), numpy.broadcast_to(numpy.eye(n), vt.shape))


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [*SHAPES, (3, 0), (0, 3)])
def test_qr(shape, mode):
    a = matrix(shape)
    got, expected = np.linalg.qr(np.array(a), mode), numpy.linalg.qr(a, mode)
    if mode == "r":
        assert got.shape == expected.shape
        close(got, numpy.triu(got.asnumpy()))
        close(abs(got.asnumpy()), abs(expected))
        return
    q, r = (x.asnumpy() for x in got)
    assert q.shape == expected[0].shape and r.shape == expected[1].shape
    close(q @ r, a)
    close(
        q.swapaxes(-1, -2) @ q,
        numpy.broadcast_to(numpy.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(shape, dtype):
    a = definite(shape, dtype)
    close(np.linalg.cholesky(np.array(a)), numpy.linalg.cholesky(a), 10)
    upper = np.linalg.cholesky(np.array(a), upper=True)
    close(upper, numpy.linalg.cholesky(a).swapaxes(-1, -2), 10)


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("shape", SQUARE)
def test_eigh_reads_one_triangle(shape, uplo):
    a = definite(shape)
    other = numpy.triu(a, 1) if uplo == "L" else numpy.tril(a, -1)
    values, vectors = (x.asnumpy() for x in np.linalg.eigh(np.array(a - 7 * other), UPLO=uplo))
    close((vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2), a, 100)
    close(values, numpy.linalg.eigvalsh(a), 100)
    close(np.linalg.eigvalsh(np.array(a - 7 * other), uplo), values, 100)


@pytest.mark.parametrize("shape", SQUARE)
def test_eig(shape):
    a = definite(shape) @ numpy.diag(numpy.arange(1.0, shape[-1] + 1))  # not symmetric, real values
    values, vectors = (x.asnumpy() for x in np.linalg.eig(np.array(a)))
    close(a @ vectors, vectors * values[..., None, :], 1e3)
    close(np.linalg.eigvals(np.array(a)), values, 1e3)


@pytest.mark.parametrize("layout", ["transposed", "strided", "broadcast"])
def test_strided_operands(layout):
    wide = matrix((4, 12, 12))
    wide[...] += 9 * numpy.eye(12)
    pick = {
        "transposed": lambda a: a.T,
        "strided": lambda a: a[1:, ::-2, 10::-2],
        "broadcast": lambda a: a[:1],
    }[layout]
    ours, theirs = pick(np.array(wide)), pick(wide)
    if layout == "transposed":
        ours, theirs = ours[:4, :, :], theirs[:4, :, :]
        ours, theirs = ours[:, :4], theirs[:, :4]
    right = matrix((theirs.shape[-1], 2))
    close(np.linalg.inv(ours), numpy.linalg.inv(theirs))
    close(np.linalg.solve(ours, np.array(right)), numpy.linalg.solve(theirs, right))
    close(np.linalg.det(ours), numpy.linalg.det(theirs))


def test_integers_become_float32():
    a = np.array([[2, 1], [1, 3]], dtype="int32")
    for result in (np.linalg.inv(a), np.linalg.det(a), np.linalg.svd(a)[1], np.linalg.norm(a)):
        assert result.dtype == numpy.float32
    close(np.linalg.inv(a), [[0.6, -0.2], [-0.2, 0.4]])


@pytest.mark.lengthy
def test_least_squares():
    for m, n, columns in ((6, 3, ()), (6, 3, (2,)), (3, 5, (2,)), (4, 4, ())):
        a, b = matrix((m, n)), matrix((m, *columns))
        got = np.linalg.lstsq(np.array(a), np.array(b))
        expected = numpy.linalg.lstsq(a, b)
        assert got[2] == expected[2]
        for i in (0, 1, 3):
            assert got[i].shape == expected[i].shape
            close(got[i], expected[i])
    singular = numpy.outer([1.0, 2, 3], [1.0, 1])
    x, distances, rank, _ = np.linalg.lstsq(
        np.array(singular), np.array([1.0, 2, 3], dtype="float64")
    )
    assert rank == 1 and distances.shape == (0,)
    close(x, [0.5, 0.5])
    with pytest.raises(ShapeError, match="rcond is an array of shape"):
        np.linalg.lstsq(np.array(singular), np.ones(3), rcond=np.ones(2))


@pytest.mark.lengthy
def test_pinv_of_a_singular_matrix():
    a = numpy.outer([1.0, 2, 3], [1.0, 1]).astype("float32")
    close(np.linalg.pinv(np.array(a)), numpy.linalg.pinv(a.astype("float64")))
    close(np.linalg.pinv(np.array(a), 1e-3), numpy.linalg.pinv(a.astype("float64")))
    assert np.linalg.matrix_rank(np.array(a)).item() == 1


@pytest.mark.parametrize("p", [None, 2, -2])
@pytest.mark.parametrize("wrap", [lambda f: f, heterosis.hybridize], ids=["eager", "hybridized"])
def test_the_condition_of_singular_matrices(wrap, p):
    for a in ([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]):
        with numpy.errstate(divide="ignore"):
            expected = numpy.linalg.cond(numpy.array(a, "float32"), p)
        assert wrap(lambda a: np.linalg.cond(a, p))(np.array(a)).item() == expected


@pytest.mark.parametrize("p", ["fro", 1, -1, numpy.inf, -numpy.inf])
@pytest.mark.parametrize("wrap", [lambda f: f, heterosis.hybridize], ids=["eager", "hybridized"])
def test_the_condition_of_matrices_without_an_inverse(wrap, p):
    singular, regular, unknown = [[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], numpy.nan
    zeros = numpy.zeros((2, 2)).tolist()
    a = numpy.array([singular, regular, zeros, [[1.0, unknown], [2.0, 4.0]]], "float32")
    found = wrap(lambda a: np.linalg.cond(a, p))
    numpy.testing.assert_allclose(found(np.array(a)).asnumpy(), numpy.linalg.cond(a, p), 1e-5)
    assert found(np.array(singular)).item() == numpy.inf


def test_norm_takes_infinity_by_name():
    a = np.array([[1.0, -5.0], [2.0, 3.0]])
    assert np.linalg.norm(a, "inf").item() == np.linalg.norm(a, np.inf).item() == 6.0
    assert np.linalg.norm(a, np.inf, axis=1).tolist() == [5.0, 3.0]
    assert np.linalg.norm(np.array([3.0, 4.0])).item() == 5.0


INFINITE = numpy.array([[numpy.inf, 1.0], [0.5, 2.0]])
FAILURES = {
    "inv": (lambda a: np.linalg.inv(a), numpy.zeros((2, 2)), "singular"),
    "solve": (lambda a: np.linalg.solve(a, np.array([1.0, 2.0])), numpy.ones((2, 2)), "singular"),
    "cholesky": (lambda a: np.linalg.cholesky(a), -numpy.eye(3), "positive definite"),
    "batch": (
        lambda a: np.linalg.inv(a),
        numpy.stack([numpy.eye(2), numpy.zeros((2, 2))]),
        "singular",
    ),
    "eig": (lambda a: np.linalg.eig(a)[0], numpy.array([[0.0, 1.0], [-1.0, 0.0]]), "complex"),
    "eigvals": (lambda a: np.linalg.eigvals(a), numpy.full((2, 2), numpy.nan), "NaN"),
    "svd": (lambda a: np.linalg.svd(a)[1], numpy.full((2, 2), numpy.nan), "converge"),
    "svd of an infinity": (lambda a: np.linalg.svd(a)[1], INFINITE, "converge"),
    "pinv of an infinity": (np.linalg.pinv, INFINITE.T, "converge"),
    "rank of an infinity": (np.linalg.matrix_rank, INFINITE, "converge"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_errors_are_raised_at_the_read(name):
    function, a, message = FAILURES[name]
    x = function(np.array(a))
    after = x + 1
    with pytest.raises(LinearAlgebraError, match=message):
        x.asnumpy()
    with pytest.raises(np.linalg.LinAlgError, match=message):
        after.asnumpy()
    with pytest.raises(numpy.linalg.LinAlgError):
        x.tolist()
    npx.waitall()  # the error has been seen
    close(np.linalg.inv(np.array(2 * numpy.eye(2))), numpy.eye(2) / 2)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: np.linalg.inv(np.array([1.0, 2.0])), ShapeError),
        (lambda: np.linalg.det(np.array([[1.0, 2.0]])), ShapeError),
        (lambda: np.linalg.solve(np.array([[1.0]]), np.array([1.0, 2.0])), ShapeError),
        (lambda: np.linalg.inv(np.array([[1.0]], dtype="float16")), DTypeError),
        (lambda: np.linalg.qr(np.array([[1.0]]), mode="full"), ArgumentError),
        (lambda: np.linalg.eigh(np.array([[1.0]]), UPLO="X"), ArgumentError),
        (lambda: np.linalg.norm(np.array([[1.0]]), ord="what"), ArgumentError),
        (lambda: np.linalg.norm(np.array([1.0]), ord="fro"), ArgumentError),
        (lambda: np.linalg.tensorinv(np.array([[1.0]]), ind=0), ArgumentError),
    ],
)
def test_wrong_arguments(call, error):
    with pytest.raises(error):
        call()


def test_many_factorisations_run_beside_each_other():
    arrays = [np.array(definite((60, 60)) + i * numpy.eye(60)) for i in range(20)]
    inverses = [np.linalg.inv(a) for a in arrays]
    for a, inverse in zip(arrays, inverses, strict=True):
        close(inverse.asnumpy() @ a.asnumpy(), numpy.eye(60), 10)
