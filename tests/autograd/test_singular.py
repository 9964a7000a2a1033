"""Gradients where functions have corners, ties and poles: the same eagerly and hybridized."""

from math import inf, nan

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis import ndarray as nd
from heterosis import symbol as sym
from heterosis.runtime.errors import LinearAlgebraError

CASES = {
    # lengths at zero: their slope there counts as zero
    "norm": (np.linalg.norm, [0, 0, 0], [0, 0, 0]),
    "norm along": (lambda x: np.linalg.norm(x.reshape(1, 3), axis=1).sum(), [0, 0, 0], [0, 0, 0]),
    "norm 3": (lambda x: np.linalg.norm(x, ord=3), [0, 0, 0], [0, 0, 0]),
    "norm 1.5": (lambda x: np.linalg.norm(x, ord=1.5), [0, 4, 0], [0, 1, 0]),
    "norm 0.5": (lambda x: np.linalg.norm(x, ord=0.5), [0, 4, 0], [0, 1, 0]),
    "norm fro": (lambda x: np.linalg.norm(x.reshape(1, 3), ord="fro"), [0, 0, 0], [0, 0, 0]),
    "std": (np.std, [2, 2, 2], [0, 0, 0]),
    "hypot": (lambda x: np.hypot(x, x * 0).sum(), [0, 2, -3], [0, 1, -1]),
    "hypot far": (lambda x: np.hypot(x, 2).sum(), [inf, -inf, 1e30], [1, -1, 1]),
    "hypot beside infinity": (lambda x: np.hypot(inf, x).sum(), [0, 2, -1e30], [0, 0, 0]),
    "arctan2 near": (  # where squares are no numbers of float32
        lambda x: np.arctan2(x, np.array([1e-20, 1e30, 2])).sum(), [0, 0, inf], [1e20, 1e-30, 0]
    ),
    "arctan2 below": (
        lambda x: np.arctan2(np.array([1e-20, -1e30, inf]), x).sum(), [0, 0, 2], [-1e20, 1e-30, 0]
    ),
    "lp pooling": (
        lambda x: npx.pooling(x.reshape(1, 1, 3), (2,), pool_type="lp", p_value=2).sum(),
        [0, 0, 3],
        [0, 0, 1],
    ),
    # powers and products of zeros
    "x ** 0": (lambda x: (x**0).sum(), [0, 1, -2], [0, 0, 0]),
    "x ** y": (lambda x: (x ** np.array([0, 1, 2])).sum(), [0, 0, 0], [0, 1, 0]),
    "0 ** x": (lambda x: (np.zeros(3) ** x).sum(), [0, 1, 2], [0, 0, 0]),
    "x ** 0, small": (lambda x: (x ** np.zeros(3)).sum(), [1e-42, inf, 2], [0, 0, 0]),
    "0 ** x, x < 0": (lambda x: (np.zeros(3) ** x).sum(), [-1, -inf, 0.5], [-inf, -inf, 0]),
    "x ** y, x < 0": (  # which has no derivative with respect to y
        lambda y: (np.array([-1, -2, 0]) ** y).sum(), [2, 3, 2], [nan, nan, 0]
    ),
    "sqrt": (lambda x: np.sqrt(x).sum(), [0, 1, 4], [inf, 0.5, 0.25]),
    "prod": (np.prod, [0, 2, 3], [6, 0, 0]),
    "prod of zeros": (np.prod, [0, 0, 3], [0, 0, 0]),
    "cumprod": (lambda x: np.cumprod(x).sum(), [2, 0, 3], [1, 8, 0]),
    "frexp": (lambda x: np.frexp(x)[0].sum(), [0, 2, -3], [1, 0.25, 0.25]),
    # ties
    "max": (np.max, [3, 1, 3], [0.5, 0, 0.5]),
    "amin": (np.amin, [3, 3, 3], [1 / 3, 1 / 3, 1 / 3]),
    "max of a stack": (lambda x: np.max(np.stack([x, x])), [1, 3, 2], [0, 1, 0]),
    "max along": (lambda x: np.max(np.stack([x, x]), axis=0).sum(), [1, 3, 2], [1, 1, 1]),
    "ptp": (np.ptp, [1, 1, 1], [0, 0, 0]),
    "nd.max": (nd.max, [3, 1, 3], [0.5, 0, 0.5]),
    "max of halves": (  # more of them than float16 can count
        lambda x: np.max(np.zeros(2**17, "float16") + x.astype("float16")[0]), [2, 0, 0], [1, 0, 0]
    ),
    "sort": (lambda x: (np.sort(x) * np.array([1, 2, 3])).sum(), [2, 1, 2], [2, 1, 3]),
    "median": (np.median, [2, 1, 2], [1, 0, 0]),
    "relu": (lambda x: npx.relu(x).sum(), [0, 2, -3], [0, 1, 0]),
    "hard_sigmoid": (lambda x: npx.hard_sigmoid(x).sum(), [-2.5, 0, 2.5], [0, 0.2, 0]),
    "hard_sigmoid far": (lambda x: npx.hard_sigmoid(x).sum(), [-inf, inf, 3], [0, 0, 0]),
    "hardswish": (lambda x: npx.hardswish(x).sum(), [-3, 3, 0], [0, 1, 0.5]),
    "clip": (lambda x: np.clip(x, 0, 2).sum(), [0, 2, 3], [1, 1, 0]),
    "maximum": (lambda x: np.maximum(x, x).sum(), [0, 2, 3], [1, 1, 1]),
    "maximum with NaN": (  # which goes to the operand that is the result
        lambda x: np.maximum(x, np.array([1, 1, nan])).sum(), [nan, 2, 3], [1, 1, 0]
    ),
    "minimum with NaN": (
        lambda x: np.minimum(np.array([1, 1, nan]), x).sum(), [nan, 2, 3], [1, 0, 0]
    ),
    # values without a bound
    "sigmoid": (lambda x: npx.sigmoid(x).sum(), [0, 2000, -2000], [0.25, 0, 0]),
    "log_softmax": (lambda x: npx.log_softmax(x)[1], [0, 2000, -3], [0, 0, 0]),
    "logaddexp": (lambda x: np.logaddexp(x, -inf).sum(), [0, 2, -3], [1, 1, 1]),
    "logaddexp of a tie": (
        lambda x: np.logaddexp(x, 2).sum(), [2, 1, 3], [0.5, 0.268941, 0.731059]
    ),
    "logaddexp, the other": (
        lambda x: np.logaddexp(np.array([0, -3, 2]), x).sum(), [0, -3, inf], [0.5, 0.5, 1]
    ),
    "silu": (lambda x: npx.silu(x).sum(), [inf, -inf, 1e30], [1, 0, 1]),
    "silu in beta": (lambda b: npx.silu(np.array([inf, 0, -1e30]), b).sum(), [1, 2, 3], [0, 0, 0]),
    "mish": (lambda x: npx.mish(x).sum(), [inf, -inf, -1e30], [1, 0, 0]),
    "gelu": (lambda x: npx.gelu(x).sum(), [inf, -inf, -1e30], [1, 0, 0]),
    "gelu of the formula": (
        lambda x: npx.gelu(x, approximation="tanh").sum(), [inf, -1e30, 1e20], [1, 0, 1]
    ),
    "logaddexp of equals": (
        lambda x: np.logaddexp(x, np.array([0, 2, -3])).sum(), [0, 2, -3], [0.5, 0.5, 0.5]
    ),
    "logaddexp of equals, second": (
        lambda x: np.logaddexp(np.array([0, inf, -inf]), x).sum(), [0, inf, -inf], [0.5, 0.5, 0.5]
    ),
    "smooth_l1": (lambda x: npx.smooth_l1(x).sum(), [inf, -inf, 0.5], [1, -1, 0.5]),
    "smooth_l1 at its corners": (lambda x: npx.smooth_l1(x, 2).sum(), [0.25, -0.25, 0], [1, -1, 0]),
    "huber": (
        lambda x: gluon.loss.HuberLoss()(x.reshape(3, 1), np.zeros((3, 1))).sum(),
        [inf, -inf, 0.5],
        [1, -1, 0.5],
    ),
    "where": (lambda x: np.where(x > 0, x, 0 * x).sum(), [0, inf, -3], [0, 1, 0]),
    # how sorting is spelled
    "nd.sort": (
        lambda x: (nd.sort(x, is_ascend=False) * np.array([1, 2, 3])).sum(), [2, 1, 4], [2, 3, 1]
    ),
    "topk value": (
        lambda x: (npx.topk(x, k=2, ret_typ="value") * np.array([1, 2])).sum(), [2, 1, 4], [2, 0, 1]
    ),
    "topk both": (
        lambda x: (nd.topk(x, k=2, ret_typ="both")[0] * np.array([1, 2])).sum(),
        [2, 1, 4],
        [2, 0, 1],
    ),
    "topk ascending": (
        lambda x: npx.topk(x, k=1, ret_typ="value", is_ascend=True).sum(), [2, 1, 4], [0, 1, 0]
    ),
    "percentile": (lambda x: np.percentile(x, 75), [2, 1, 4], [0.5, 0, 0.5]),
    "quantile": (lambda x: np.quantile(x, np.array([0, 1])).sum(), [2, 1, 4], [0, 1, 1]),
    # in q there is no single slope at an element's place: it counts as 0 there
    "quantile in q": (
        lambda q: np.quantile(np.array([1, 2, 4, 8, 16]), q).sum(), [0, 0.25, 0.3], [0, 0, 8]
    ),
    "percentile in q": (
        lambda q: np.percentile(np.array([1, 2, 4, 8, 16]), q).sum(), [100, 75, 80], [0, 0, 0.32]
    ),
    "quantile lower": (lambda x: np.quantile(x, 0.9, method="lower"), [2, 1, 4], [1, 0, 0]),
}  # fmt: skip


def _gradient(function, values):
    x = np.array(values, dtype="float32")
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy()


@pytest.mark.parametrize("name", CASES)
def test_gradient(name):
    function, values, expected = CASES[name]
    for f in (function, heterosis.hybridize(function)):
        numpy.testing.assert_allclose(_gradient(f, values), expected, 1e-5, 1e-6)


@pytest.mark.parametrize("hybrid", [False, True])
def test_logaddexp_has_a_second_derivative_where_operands_are_equal(hybrid):
    def slope(x, y):
        x.attach_grad()
        with autograd.record():
            (found,) = autograd.grad(np.logaddexp(x, y).sum(), [x], create_graph=True)
            found.sum().backward()
        return x.grad

    slope = heterosis.hybridize(slope) if hybrid else slope
    found = slope(np.array([0, 2, inf, 1e3]), np.array([0, 2, inf, -1e3]))
    numpy.testing.assert_allclose(found.asnumpy(), [0.25, 0.25, 0, 0], 1e-5)


MATRICES = {  # of all ranks, and their cofactors
    "rank 2": ([[1, 2], [3, 4]], [[4, -3], [-2, 1]]),
    "rank 1": ([[1, 2], [2, 4]], [[4, -2], [-2, 1]]),
    "rank 0": ([[0, 0], [0, 0]], [[0, 0], [0, 0]]),
    "a first column of zeros": ([[0, 1], [0, 0]], [[0, 0], [-1, 0]]),
    "3 of rank 2": ([[1, 2, 3], [2, 4, 6], [1, 1, 2]], [[2, 2, -2], [-1, -1, 1], [0, 0, 0]]),
    "3 of rank 1": ([[1, 1, 1]] * 3, [[0, 0, 0]] * 3),
    "a number": ([[0]], [[1]]),
    "a stack": ([[[1, 2], [2, 4]], [[1, 0], [0, 2]]], [[[4, -2], [-2, 1]], [[2, 0], [0, 1]]]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_determinants(name):
    values, expected = MATRICES[name]
    function = lambda x: np.linalg.det(x).sum()  # noqa: E731
    for f in (function, heterosis.hybridize(function)):
        numpy.testing.assert_allclose(_gradient(f, values), expected, 1e-5, 1e-5)


@pytest.mark.parametrize("hybrid", [False, True])
def test_the_logarithm_of_no_determinant_has_no_gradient(hybrid):
    function = lambda x: np.linalg.slogdet(x)[1]  # noqa: E731
    with pytest.raises(LinearAlgebraError, match="the matrix is singular"):
        _gradient(heterosis.hybridize(function) if hybrid else function, [[1, 2], [2, 4]])


@pytest.mark.parametrize("hybrid", [False, True])
def test_determinants_twice(hybrid):
    det = heterosis.hybridize(np.linalg.det) if hybrid else np.linalg.det
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    x.attach_grad()
    with autograd.record():
        (slope,) = autograd.grad(det(x), x, create_graph=True)
        y = (slope * np.array([[1, 2], [3, 4]])).sum()
    y.backward()
    numpy.testing.assert_allclose(x.grad.asnumpy(), [[4, -3], [-2, 1]], 1e-4, 1e-4)


@pytest.mark.parametrize(
    "make, values, expected",
    [
        (lambda x: sym.sort(x, axis=0), [2, 1, 4], [20, 10, 30]),
        (lambda x: sym.topk(x, axis=0, k=3, ret_typ="value"), [2, 1, 4], [20, 30, 10]),
        (lambda x: sym.max(x), [4, 1, 4], [5, 0, 5]),
    ],
)
def test_symbols(make, values, expected):
    gradient = np.zeros(3)
    x = np.array(values, dtype="float32")
    executor = make(sym.Variable("x")).bind(heterosis.cpu(), {"x": x}, args_grad={"x": gradient})
    (y,) = executor.forward(is_train=True)
    executor.backward(np.array([10, 20, 30])[: y.size].reshape(y.shape))
    assert gradient.tolist() == expected


def test_what_integers_hold_has_no_gradient():
    x = np.array([3.0, 1.0, 2.0])
    x.attach_grad()
    for f in (np.argsort, lambda x: npx.topk(x, dtype="int32"), np.argmax, lambda x: x > 1):
        with autograd.record():
            assert f(x)._autograd is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_are_added_where_that_is_asked_for(dtype, hybrid):
    def function(x):
        return (np.sort(x) * x).sum() + np.max(x)

    x = np.array([3, 1, 3], dtype=dtype)
    x.attach_grad("add")
    f = heterosis.hybridize(function) if hybrid else function
    for times in (1, 2):
        with autograd.record():
            y = f(x)
        y.backward()
        assert x.grad.dtype == dtype
        assert x.grad.asnumpy().astype("float64").tolist() == [2.5 * times, 6 * times, 6.5 * times]


# -- what only a branch or a turn uses that is not taken ------------------------------------------


def _one_of(root, x, flag):
    return root * 2 if flag.sum() > 0 else x * 3


def _sum_of_two(root, x, flag):
    one, other = (root * 2, x) if flag.sum() > 0 else (x * 3, x * 4)
    return one.sum() + other.sum()


def _last_of_two(root, x, flag):
    """What reaches `root` goes through one of two results of a choice, and another choice."""
    one, other = (x * 2, root * 3) if flag.sum() > 5 else (root * 3, x * 2)
    return other.sum() if flag.sum() > 0 else one.sum() + other.sum()


def _behind_two(root, x, flag):
    y = (root if flag.sum() > 0 else x * x) if flag.sum() > -2 else x
    return y * x


def _in_two(root, x, flag):
    """It may be used in one of two choices, or in both."""
    y = root if flag.sum() > 0 else x
    return y.sum() + (root if flag.sum() > 5 else x * 2)


def _as_long_as(root, x, flag):
    """There may be no turn."""
    y = x
    while y.sum() < 10 * flag.sum():
        y = y * root + 1
    return y


def _in_turns(root, x, flag):
    """What a turn carries on may be of the root, and of the root of that."""
    y, z = x + 1, x
    while y.sum() < 100:
        z = np.sqrt(z) + root if flag.sum() > 0 else y * 2
        y = y * 2
    return y + z


def _over_rows(root, x, flag):
    y = x
    for row in np.arange(12.0).reshape(4, 3):
        y = y + (root * row if row.sum() + 10 * flag.sum() > 40 else x * row)
    return y


def _over_roots(root, x, flag):
    y = x
    for row in np.stack([root, root * 2]):
        y = y * 2 + (row if flag.sum() > 0 else x)
    return y


def _row_or_state(root, x, flag):
    """The rows that a loop makes are used, or the last state, whose slopes are finite."""
    rows, last = npx.foreach(lambda row, s: (np.sqrt(s) * row, s * 2 + row), np.zeros((4, 3)), x)
    return rows.sum() if flag.sum() > 0 else (last * 2).sum()


_CHOICES = [_one_of, _sum_of_two, _last_of_two, _behind_two, _in_two]
_LOOPS = [_as_long_as, _in_turns, _over_rows, _over_roots, _row_or_state]


def _parts(function):
    """The same in ways that differ in what is one program, and what is recorded where."""
    hybrid = heterosis.hybridize(function)

    def whole(x, flag):
        return function(np.sqrt(x), x, flag)

    def around(x, flag):
        return hybrid(np.sqrt(x), x, flag)

    return {"eager": whole, "hybrid": heterosis.hybridize(whole), "behind a root": around}


def _first_gradient(function, x, flag):
    with autograd.record():
        y = function(x, flag)
    y.backward()


def _second_gradient(function, x, flag):
    with autograd.record():
        (slope,) = autograd.grad(function(x, flag), x, create_graph=True)
        y = (slope * x).sum()
    y.backward()


def _gradient_of(function, flag, backward):
    x = np.array([0.0, 1.0, 4.0])
    x.attach_grad()
    backward(function, x, flag)
    return x.grad.tolist()


def _gradient_inside(function, flag, backward):
    """The same where a program records and goes back by itself."""
    x = np.array([0.0, 1.0, 4.0])
    x.attach_grad()

    @heterosis.hybridize
    def step(flag):
        backward(function, x, flag)
        return np.copy(x.grad)

    step(flag)
    return step(flag).tolist()


def _check_ways(function, way, inside, backward):
    """A way gives what is imperative, whatever the flag; the root is used with some of them."""
    gradient = _gradient_inside if inside else _gradient_of
    finite = 0
    for number in (-3.0, -1.0, 1.0, 6.0):
        flag = np.array([number])
        expected = _gradient_of(_parts(function)["eager"], flag, backward)
        found = gradient(_parts(function)[way], flag, backward)
        numpy.testing.assert_allclose(found, expected)
        finite += expected[0] < inf
    assert 0 < finite < 4, "the root is used with some of the numbers"


@pytest.mark.parametrize("function", _CHOICES + _LOOPS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("way", ["eager", "hybrid", "behind a root"])
@pytest.mark.parametrize("inside", [False, True])
def test_branches_and_turns_that_are_not_taken_add_nothing(function, way, inside):
    _check_ways(function, way, inside, _first_gradient)


def _cubes(root, x, flag):
    """No slope of a slope, with one of the flags, is that of the root."""
    return root * 2 * x if flag.sum() > 0 else x**3


@pytest.mark.parametrize(
    "function",
    [_cubes, *_CHOICES, _over_rows, _over_roots, _row_or_state],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize("way", ["eager", "hybrid", "behind a root"])
@pytest.mark.parametrize("inside", [False, True])
def test_nor_do_they_to_gradients_of_gradients(function, way, inside):
    _check_ways(function, way, inside, _second_gradient)


@pytest.mark.parametrize("hybrid", [False, True])
def test_results_that_receive_nothing_add_nothing(hybrid):
    """Not zero times an infinite slope, in a program of several results either."""

    def function(x):
        return (x * 2).sum(), np.log(x).sum(), np.sqrt(x)

    f = heterosis.hybridize(function) if hybrid else function
    x = np.array([0.0, 1.0])
    x.attach_grad()
    for wanted, expected in ((0, [2, 2]), (1, [inf, 1]), (2, [inf, 0.5]), (0, [2, 2])):
        with autograd.record():
            y = f(x)[wanted]
        y.backward()
        assert x.grad.tolist() == expected
    with autograd.record():
        (slope,) = autograd.grad(f(x)[0], x, create_graph=True)
        y = (slope * x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("hybrid", [False, True])
def test_results_of_one_operation_that_receive_nothing_add_nothing(hybrid):
    y, f = np.array([0.0, 2.0]), heterosis.hybridize(np.divmod) if hybrid else np.divmod
    y.attach_grad()
    with autograd.record():
        quotient, _ = f(np.array([3.0, 5.0]), y)
        z = np.where(y > 0, quotient, 0) + y
    z.backward()
    assert y.grad.tolist() == [1, 1]


def _dear(x):
    """More work for each element, so that the same sums in one nest with it go in other steps."""
    return np.tanh(np.exp(x) ** 2.5 * 1.5)


def _where_the_sum_is_largest(x):
    sums = np.abs(x).sum(1)
    return np.where((sums == sums.max())[:, None], _dear(x), 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 17), (8, 100), (3, 1000)])
def test_one_of_some_sums_is_the_largest_whatever_rounds_them(shape, dtype):
    rng = numpy.random.default_rng(3)
    chosen = heterosis.hybridize(_where_the_sum_is_largest)
    norm = heterosis.hybridize(lambda x: np.linalg.norm(_dear(x), ord=inf))
    for _ in range(10):
        x = np.array(rng.uniform(-1, 1, shape), dtype=dtype)
        assert chosen(x).asnumpy().any(1).sum() == 1
        x.attach_grad()
        for function in (norm, lambda x: np.linalg.norm(_dear(x), ord=inf)):
            with autograd.record():
                y = function(x)
            y.backward()
            assert x.grad.asnumpy().any(1).sum() == 1


@pytest.mark.parametrize("order", [1, inf])
def test_the_condition_of_a_matrix_has_the_gradient_of_both_norms(order):
    rng, h = numpy.random.default_rng(4), 1e-6
    for _ in range(10):
        a = rng.uniform(-1, 1, (4, 4))
        x = np.array(a, dtype="float64")
        x.attach_grad()
        with autograd.record():
            y = np.linalg.cond(x, order)
        y.backward()
        steps = numpy.eye(16).reshape(16, 4, 4) * h
        up, down = (numpy.linalg.cond(a + sign * steps, order) for sign in (1, -1))
        expected = (up - down).reshape(4, 4) / (2 * h)
        numpy.testing.assert_allclose(x.grad.asnumpy(), expected, 1e-4, 1e-4 * abs(expected).max())
