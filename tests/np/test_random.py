"""Distributions by Kolmogorov-Smirnov and chi-square tests with fixed seeds; reproducibility."""

import math

import numpy
import pytest
from scipy import stats

import heterosis
from heterosis import ndarray as nd
from heterosis import np, npx
from heterosis.ops.random import draws as ops
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    DTypeError,
    ShapeError,
)

R = np.random
N = 20_000
# Seeds are fixed, so nothing varies but the last bits of floats: these levels cannot flake.
LEVEL = 1e-3

CONTINUOUS = {
    "uniform": (lambda **k: R.uniform(2, 4, N, **k), stats.uniform(2, 2)),
    "normal": (lambda **k: R.normal(1, 2, N, **k), stats.norm(1, 2)),
    "lognormal": (lambda **k: R.lognormal(0, 0.5, N, **k), stats.lognorm(0.5)),
    "logistic": (lambda **k: R.logistic(1, 2, N, **k), stats.logistic(1, 2)),
    "gumbel": (lambda **k: R.gumbel(1, 2, N, **k), stats.gumbel_r(1, 2)),
    "laplace": (lambda **k: R.laplace(1, 2, N, **k), stats.laplace(1, 2)),
    "exponential": (lambda **k: R.exponential(2, N, **k), stats.expon(scale=2)),
    "rayleigh": (lambda **k: R.rayleigh(2, N, **k), stats.rayleigh(scale=2)),
    "weibull": (lambda **k: R.weibull(2, N, **k), stats.weibull_min(2)),
    "pareto": (lambda **k: R.pareto(3, N, **k), stats.lomax(3)),
    "power": (lambda **k: R.power(3, N, **k), stats.powerlaw(3)),
    "triangular": (lambda **k: R.triangular(0, 1, 3, N, **k), stats.triang(1 / 3, 0, 3)),
    "cauchy": (lambda **k: R.standard_cauchy(N, **k), stats.cauchy()),
    "gamma 0.1": (lambda **k: R.gamma(0.1, 3, N, **k), stats.gamma(0.1, scale=3)),
    "gamma 1": (lambda **k: R.gamma(1, 3, N, **k), stats.gamma(1, scale=3)),
    "gamma 2.5": (lambda **k: R.gamma(2.5, 3, N, **k), stats.gamma(2.5, scale=3)),
    "gamma 100": (lambda **k: R.gamma(100, 3, N, **k), stats.gamma(100, scale=3)),
    "beta": (lambda **k: R.beta(2, 3, N, **k), stats.beta(2, 3)),
    "beta below 1": (lambda **k: R.beta(0.5, 0.3, N, **k), stats.beta(0.5, 0.3)),
    "chisquare": (lambda **k: R.chisquare(3, N, **k), stats.chi2(3)),
    "t": (lambda **k: R.standard_t(5, N, **k), stats.t(5)),
    "f": (lambda **k: R.f(5, 9, N, **k), stats.f(5, 9)),
}

DISCRETE = {
    "randint": (lambda: R.randint(2, 12, N), stats.randint(2, 12)),
    "poisson 0.1": (lambda: R.poisson(0.1, N), stats.poisson(0.1)),
    "poisson 9.9": (lambda: R.poisson(9.9, N), stats.poisson(9.9)),
    "poisson 10": (lambda: R.poisson(10, N), stats.poisson(10)),
    "poisson 300": (lambda: R.poisson(300, N), stats.poisson(300)),
    "binomial few": (lambda: R.binomial(100, 0.05, N), stats.binom(100, 0.05)),
    "binomial many": (lambda: R.binomial(100, 0.4, N), stats.binom(100, 0.4)),
    "binomial flipped": (lambda: R.binomial(1000, 0.9, N), stats.binom(1000, 0.9)),
    "binomial once": (lambda: R.binomial(1, 0.3, N), stats.binom(1, 0.3)),
    "negative binomial": (lambda: R.negative_binomial(5, 0.3, N), stats.nbinom(5, 0.3)),
    "geometric": (lambda: R.geometric(0.3, N), stats.geom(0.3)),
}


@pytest.mark.each("name")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, dtype):
    draw, expected = CONTINUOUS[name]
    R.seed(11)
    x = draw(dtype=dtype)
    assert x.shape == (N,) and x.dtype == dtype
    x = x.asnumpy().astype("float64")
    assert numpy.isfinite(x).all()
    assert stats.kstest(x, expected.cdf).pvalue > LEVEL
    if name in ("cauchy", "pareto", "f"):  # whose moments say little
        return
    error = expected.std() / numpy.sqrt(N)
    assert abs(x.mean() - expected.mean()) < 4.5 * error
    assert abs(x.std() / expected.std() - 1) < 0.15


@pytest.mark.each("name")
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    draw, expected = DISCRETE[name]
    R.seed(12)
    x = draw()
    assert x.shape == (N,) and x.dtype == numpy.int64
    assert chi_square(x.asnumpy(), expected) > LEVEL


def chi_square(x, expected):
    """The p-value of the counts, those of the tails taken together."""
    low, high = int(expected.ppf(0.002)), int(expected.ppf(0.998))
    middle = numpy.arange(low + 1, high)
    seen = [(x <= low).sum(), *((x == k).sum() for k in middle), (x >= high).sum()]
    chances = [expected.cdf(low), *expected.pmf(middle), expected.sf(high - 1)]
    seen, wanted = numpy.array(seen), numpy.array(chances) * len(x)
    kept = wanted > 5
    return stats.chisquare(seen[kept], wanted[kept] * seen[kept].sum() / wanted[kept].sum()).pvalue


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_stays_below_its_upper_bound(dtype):
    R.seed(3)
    for low, high in ((0, 1), (1, 2), (-3, 5)):
        x = R.uniform(low, high, 100_000, dtype=dtype).asnumpy().astype("float64")
        assert low <= x.min() and x.max() < high
        assert abs(x.mean() - (low + high) / 2) < 0.01 * (high - low)


def test_bits_are_balanced_and_independent():
    """Each of 64 bits is set half of the time; neighbours and keys are not related."""
    R.seed(0)
    bits = R.randint(-(1 << 63), (1 << 63) - 1, 100_000).asnumpy().view("uint64")
    planes = (bits[:, None] >> numpy.arange(64, dtype="uint64")) & 1
    deviation = 0.5 / numpy.sqrt(len(bits))
    assert abs(planes.mean(0) - 0.5).max() < 5 * deviation
    related = (planes[1:] ^ planes[:-1]).mean(0)
    assert abs(related - 0.5).max() < 5 * deviation
    pairs = numpy.corrcoef(planes.T) - numpy.eye(64)
    assert abs(pairs).max() < 5 / numpy.sqrt(len(bits))
    other = R.randint(-(1 << 63), (1 << 63) - 1, 100_000).asnumpy().view("uint64")
    changed = numpy.unpackbits((bits ^ other).view("uint8")).mean()
    assert abs(changed - 0.5) < 5 * 0.5 / numpy.sqrt(64 * len(bits))


def test_known_numbers():
    """Philox 2x32-10: counter 0 and key 0 give the published words, whatever the processor."""
    from heterosis.ir.primitives.random_bits import RANDOM_BLOCK
    from heterosis.ir.program import apply
    from heterosis.ir.types import TensorType
    from heterosis.ops.math.elementwise import add
    from heterosis.ops.record import REGISTRY, operation

    if "philox_for_tests" not in REGISTRY:

        @operation(name="philox_for_tests", public=(), numpy=len, samples=None)
        def philox(counter, key):
            type_ = TensorType(counter.shape, "int64")
            return apply(RANDOM_BLOCK, (add(counter, 0), add(key, 0)), type_)

    run = REGISTRY["philox_for_tests"].operation
    zero = np.array([0], dtype="int64")
    words = int(run(zero, zero).item()) & (1 << 64) - 1
    assert (words >> 32, words & 0xFFFFFFFF) == (0xFF1DAE59, 0x6CD10DF2)
    REGISTRY.pop("philox_for_tests")


def test_seeds_reproduce_and_calls_differ():
    def draw():
        return [R.normal(size=5), R.uniform(size=5), R.gamma(2.0, size=5), R.permutation(9)]

    R.seed(5)
    first = [x.tolist() for x in draw()]
    second = [x.tolist() for x in draw()]
    R.seed(5)
    assert [x.tolist() for x in draw()] == first
    assert all(a != b for a, b in zip(first, second, strict=True))
    npx.random.seed(6)
    assert R.normal(size=5).tolist() != first[0]
    drawn = []
    for seed, number in ((npx.random.seed, -1), (nd.random.seed, -1), (R.seed, 2**64 - 1)):
        seed(number)  # any integer, in MXNet
        drawn.append(R.normal(size=5).tolist())
    assert drawn[0] == drawn[1] == drawn[2]
    state = R.get_state()
    x = R.normal(size=3).tolist()
    R.set_state(state)
    assert R.normal(size=3).tolist() == x


@pytest.mark.lengthy
def test_longer_results_begin_alike():
    """Elements depend on their place, not on how many there are or how vectors divide them."""
    for draw in (
        R.uniform,
        R.normal,
        lambda size: R.poisson(20, size),
        lambda size: R.gamma(0.5, 1, size),
    ):
        R.seed(1)
        long = draw(size=1000).asnumpy()
        for size in (1, 3, 17, (4, 5)):
            R.seed(1)
            short = draw(size=size).asnumpy()
            numpy.testing.assert_array_equal(short.ravel(), long[: short.size])


def test_shapes_and_types():
    assert R.uniform().shape == () and R.uniform().dtype == numpy.float32
    assert R.normal(size=3).shape == (3,) and R.normal(size=(2, 0)).shape == (2, 0)
    assert R.rand(2, 3).shape == R.randn(2, 3).shape == (2, 3)
    assert R.random(4).shape == (4,)
    assert R.normal(np.array([[0.0], [1.0]]), np.array([1.0, 2.0, 3.0])).shape == (2, 3)
    assert R.normal(np.array([0.0, 1.0]), 1, (3, 2)).shape == (3, 2)
    assert R.randint(5, dtype="int32").dtype == numpy.int32
    assert R.gamma(np.array([1.0, 2.0])).shape == (2,)
    assert npx.random.normal_n(np.array([0.0, 1.0, 2.0]), 1, (4,)).shape == (4, 3)
    assert npx.random.uniform_n(0, 1, batch_shape=(2,)).shape == (2,)
    assert npx.random.bernoulli(prob=0.5, size=3, dtype="int32").dtype == numpy.int32


def test_array_parameters():
    R.seed(2)
    x = R.normal(np.array([0.0, 100.0]), np.array([1.0, 5.0]), (N, 2)).asnumpy()
    assert abs(x.mean(0) - [0, 100]).max() < 0.2
    assert abs(x.std(0) - [1, 5]).max() < 0.1
    counts = R.poisson(np.array([0.0, 2.0, 200.0]), (N, 3)).asnumpy()
    assert abs(counts.mean(0) - [0, 2, 200]).max() < 0.5
    odds = R.bernoulli(logit=np.array([-100.0, 0.0, 100.0]), size=(N, 3)).asnumpy()
    assert abs(odds.mean(0) - [0, 0.5, 1]).max() < 0.02


def test_out():
    x = np.array([9.0, 9.0, 9.0])
    assert R.uniform(0, 1, out=x) is x
    assert len(set(x.tolist())) == 3 and max(x.tolist()) < 1


def test_choice():
    R.seed(4)
    items = np.array([1.5, 2.5, 3.5])
    p = np.array([0.1, 0.2, 0.7])
    counts = numpy.bincount(R.choice(3, N, p=p).asnumpy(), minlength=3) / N
    assert abs(counts - [0.1, 0.2, 0.7]).max() < 0.02
    assert set(R.choice(items, 100).tolist()) == {1.5, 2.5, 3.5}
    assert R.choice(5).shape == () and R.choice(5, (2, 2)).shape == (2, 2)
    assert sorted(R.choice(6, 6, replace=False).tolist()) == list(range(6))
    assert len(set(R.choice(100, 20, replace=False).tolist())) == 20
    assert R.choice([0.0, 1.0, 0.0], 3, p=[0, 1, 0]).tolist() == [1.0] * 3
    weighted = numpy.stack(
        [R.choice(3, 2, replace=False, p=[0.1, 0.2, 0.7]).asnumpy() for _ in range(500)]
    )
    assert (weighted[:, 0] != weighted[:, 1]).all()
    assert abs((weighted[:, 0] == 2).mean() - 0.7) < 0.08
    even = R.choice(1000, N, p=np.array(numpy.full(1000, 1e-3))).asnumpy()
    assert stats.chisquare(numpy.bincount(even, minlength=1000)).pvalue > LEVEL


def test_orders():
    R.seed(8)
    x = np.array(numpy.arange(60.0).reshape(20, 3))
    R.shuffle(x)
    rows = x.asnumpy()
    assert sorted(rows[:, 0].tolist()) == list(range(0, 60, 3)) and rows[0, 0] + 2 == rows[0, 2]
    assert rows[:, 0].tolist() != sorted(rows[:, 0].tolist())
    view = np.array(numpy.arange(12.0))[::2]
    R.shuffle(view)
    assert sorted(view.tolist()) == [0, 2, 4, 6, 8, 10]
    assert sorted(R.permutation(10).tolist()) == list(range(10))
    orders = numpy.stack([R.permutation(4).asnumpy() for _ in range(2000)])
    for place in range(4):
        assert stats.chisquare(numpy.bincount(orders[:, place])).pvalue > LEVEL


@pytest.mark.lengthy
def test_vectors():
    R.seed(9)
    p = [0.2, 0.3, 0.4, 0.1, 0.0]
    counts = R.multinomial(10, p, size=N).asnumpy()
    assert counts.shape == (N, 5) and counts.dtype == numpy.int64
    assert (counts.sum(1) == 10).all()
    assert abs(counts.mean(0) - 10 * numpy.array(p)).max() < 0.05
    assert abs(numpy.cov(counts.T)[0, 1] + 10 * 0.2 * 0.3) < 0.05
    assert R.multinomial(5, [0.5, 0.5]).shape == (2,)
    cov = numpy.array([[2.0, 0.3], [0.3, 0.9]])
    x = R.multivariate_normal(np.array([1.0, 2.0]), np.array(cov), size=N).asnumpy()
    assert abs(x.mean(0) - [1, 2]).max() < 0.05 and abs(numpy.cov(x.T) - cov).max() < 0.06
    singular = R.multivariate_normal(
        np.array([0.0, 0.0]), np.array([[1.0, 1.0], [1.0, 1.0]]), size=9
    )
    numpy.testing.assert_allclose(singular.asnumpy()[:, 0], singular.asnumpy()[:, 1], atol=1e-3)
    shares = R.dirichlet(np.array([1.0, 2.0, 7.0]), N).asnumpy()
    assert abs(shares.mean(0) - [0.1, 0.2, 0.7]).max() < 0.01


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: R.normal(0, -1), ArgumentError),
        (lambda: R.gamma(-1.0), ArgumentError),
        (lambda: R.pareto(0.0), ArgumentError),
        (lambda: R.randint(0), ArgumentError),
        (lambda: R.randint(5, 2), ArgumentError),
        (lambda: R.randint(2.7), ArgumentError),
        (lambda: R.randint(300, dtype="uint8"), ArgumentError),
        (lambda: R.randint(5, dtype="float32"), DTypeError),
        (lambda: R.uniform(dtype="int32"), DTypeError),
        (lambda: R.uniform(np.array([0.0, 1.0]), 1, size=3), ShapeError),
        (lambda: R.uniform(size=-1), ArgumentError),
        (lambda: R.normal(size=1.5), ArgumentTypeError),  # which was cut off
        (lambda: R.randint(3, size=(2, 2.9)), ArgumentTypeError),
        (lambda: R.gamma(1.0, size="12"), ArgumentTypeError),
        (lambda: R.choice(5, 6, replace=False), ArgumentError),
        (lambda: R.choice(3, 2, replace=False, p=[1, 0, 0]).wait_to_read(), ArgumentError),
        (lambda: R.poisson(1e30), ArgumentError),
        (lambda: R.choice(0, 1), ArgumentError),
        (lambda: R.choice(np.ones((2, 2))), ValueError),
        (lambda: R.choice([[1, 2]], 3, p=[1]), ValueError),
        (lambda: R.seed(-1), ValueError),
        (lambda: R.seed(2**64), ValueError),
        (lambda: R.seed(1.5), TypeError),
        (lambda: R.seed(numpy.float32(3)), TypeError),
        (lambda: npx.random.seed(1.5), TypeError),
        (lambda: nd.random.seed(1.5), ValueError),
        (lambda: R.choice(5, 1, p=np.array([0.5, 0.5])), ArgumentError),
        (lambda: R.multinomial(5, [0.9, 0.5, 0.0]), ArgumentError),
        (lambda: R.shuffle([1, 2, 3]), DTypeError),
        (lambda: npx.random.bernoulli(prob=0.5, logit=0.0), ArgumentError),
    ],
)
def test_wrong_arguments(call, error):
    with pytest.raises(error):
        call()


OUT_OF_RANGE = {
    "normal": lambda a: np.random.normal(0, -a),
    "gamma": lambda a: np.random.gamma(-a),
    "poisson": lambda a: np.random.poisson(-a),
    "poisson of more than can be counted": lambda a: np.random.poisson(a * 1e30),
    "exponential": lambda a: np.random.exponential(a * math.nan),
    "weibull": lambda a: np.random.weibull(a * 0),
    "binomial": lambda a: np.random.binomial(5, a * 1.5),
    "geometric": lambda a: np.random.geometric(a * 0),
    "beta": lambda a: np.random.beta(1.0, -a),
    "dirichlet": lambda a: np.random.dirichlet(-a),
    "triangular": lambda a: np.random.triangular(a * 3, a * 2, a),
    "choice": lambda a: np.random.choice(3, size=2, p=a * 0.5),
    "choice without replacement": lambda a: np.random.choice(3, 2, False, p=a * 0.5),
    "choice of more than there are": lambda a: np.random.choice(
        3, 2, False, p=a * np.array([1, 0, 0])
    ),
    "choice of less than nothing": lambda a: np.random.choice(3, 2, p=a * np.array([-1, 1, 1])),
    "multinomial": lambda a: np.random.multinomial(5, a * 0.6),
}


@pytest.mark.parametrize("draw", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
@pytest.mark.parametrize("prepare", [lambda f: f, heterosis.hybridize], ids=["eager", "hybridized"])
def test_elements_out_of_range(draw, prepare):
    with pytest.raises(ArgumentError, match=r"expected|add up to 1|more than 1"):
        prepare(draw)(np.ones(3)).wait_to_read()


# Distributions that NumPy draws from, with arguments that it refuses, and what it says.
DRAWN_BY_NUMPY = [
    (lambda: R.wald(-1, -1), ArgumentError, r"^np\.random\.wald: mean <= 0"),
    (lambda: R.vonmises(0.0, -1.0), ArgumentError, "kappa < 0"),
    (lambda: R.zipf(np.array([0.5])), ArgumentError, "a <= 1"),
    (lambda: R.hypergeometric(-1, 1, 1), ArgumentError, "ngood"),
    (lambda: R.logseries(2.0), ArgumentError, "p >= 1"),
    (lambda: R.noncentral_chisquare(1.0, -1.0), ArgumentError, "nonc < 0"),
    (lambda: R.wald(1.0, 1.0, size=-1), ArgumentError, "negative"),
    (lambda: R.vonmises(0.5), ArgumentTypeError, "at least 2 positional"),
]


@pytest.mark.parametrize("draw, error, message", DRAWN_BY_NUMPY)
def test_errors_of_numpy_are_ours(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


def test_numpy_draws_nothing_inside_a_program():
    draw = heterosis.hybridize(lambda x: x * R.wald(1.0, 1.0))
    with pytest.raises(CaptureError, match=r"np\.random\.wald draws numbers in Python"):
        draw(np.ones(2))


def test_numbers_need_no_new_code():
    plans = ops.normal.plans
    for i in range(5):
        R.normal(i, i + 1, (3,))
        R.normal(float(i), 1.5 + i, (3,))
    assert ops.normal.plans <= plans + 1
