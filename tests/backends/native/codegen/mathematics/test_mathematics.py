"""Vector mathematics against wider precision: within the stated ulps, special values exact."""

from __future__ import annotations

import re

import numpy
import pytest

from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.mathematics import ULPS
from heterosis.backends.native.codegen.mathematics.frequent_powers import FREQUENT
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, NEON, TARGETS
from heterosis.backends.native.compile import compiler
from tests.backends.native import usable_targets
from tests.backends.native.codegen.mathematics.harness import (
    REFERENCES,
    Kernel,
    kernel,
    same,
    samples,
    special_values,
    ulps,
    write_kernel,
)

DTYPES = ("float32", "float64")
HERE = [target.name for target in usable_targets.HERE]
BEST = HERE[0]

# Where each function is sampled densely, for float32 and float64; one entry stands for both.
DOMAINS = {
    "exp": (((-104, 89), (-1, 1), (-190, -104)), ((-746, 710), (-1, 1), (-1500, -746))),
    "exp2": (((-151, 129), (-1, 1), (-260, -151)), ((-1076, 1025), (-1, 1), (-2100, -1076))),
    "expm1": (((-20, 89), (-1, 1)), ((-40, 710), (-1, 1))),
    "log": (((0, 2), (0, 1e5)),),
    "log2": (((0, 2), (0, 1e5)),),
    "log10": (((0, 2), (0, 1e5)),),
    "log1p": (((-1, 1), (0, 1e5)),),
    "sqrt": (((0, 4),),),
    "rsqrt": (((0, 4),),),
    "cbrt": (((-9, 9),),),
    "sigmoid": (((-105, 20), (-2, 2), (-190, -105)), ((-750, 40), (-2, 2), (-1500, -750))),
    "tanh": (((-10, 10), (-1, 1)), ((-20, 20), (-1, 1))),
    "sinh": (((-90, 90), (-2, 2)), ((-711, 711), (-2, 2))),
    "cosh": (((-90, 90), (-2, 2)), ((-711, 711), (-2, 2))),
    "arcsinh": (((-10, 10), (-1, 1)),),
    "arccosh": (((1, 10), (1, 1.1)),),
    "arctanh": (((-1, 1),),),
    "sin": (((-10, 10), (-1e5, 1e5)), ((-10, 10), (-2e6, 2e6))),
    "cos": (((-10, 10), (-1e5, 1e5)), ((-10, 10), (-2e6, 2e6))),
    "tan": (((-10, 10), (-1e5, 1e5)), ((-10, 10), (-2e6, 2e6))),
    "arcsin": (((-1, 1),),),
    "arccos": (((-1, 1),),),
    "arctan": (((-10, 10), (-1, 1)),),
    "erf": (((-4, 4), (-1, 1)), ((-6, 6), (-1, 1))),
    "erfc": (((-1, 10.1), (-1, 1)), ((-1, 27), (-1, 1))),
    "erfinv": (((-1, 1), (0.99, 1), (0.99999, 1)), ((-1, 1), (0.99, 1), (0.9999999, 1))),
    "gamma": (((0, 9), (-42, 35)), ((0, 9), (-180, 171))),
    "gammaln": (((0, 9), (-42, 1e4)), ((0, 9), (0, 1e4))),
}
BINARY = ("power", "hypot", "arctan2")
EXACT = ("rint", "floor", "ceil", "trunc", "spacing")
EXACT_BINARY = ("fmod", "mod", "floor_divide", "nextafter")
SLOW_REFERENCE = {"erf", "erfc", "erfinv", "gamma", "gammaln"}  # mpmath, for float64

every_target = pytest.mark.parametrize(
    "target", [pytest.param(name, marks=() if name == BEST else pytest.mark.slow) for name in HERE]
)
both_precisions = pytest.mark.parametrize("dtype", DTYPES)


def check(name: str, dtype: str, target: str, *arrays: numpy.ndarray) -> None:
    """Within the stated bound, and scalar code gives what vector code does."""
    function = kernel(name, dtype, len(arrays), target)
    result, exact = function(*arrays), REFERENCES[name](dtype, *arrays)
    error = ulps(result, exact)
    worst = int(error.argmax())
    assert error[worst] <= ULPS[name][DTYPES.index(dtype)], (
        f"{error[worst]} ulps at {[a[worst] for a in arrays]!r}: "
        f"{result[worst]!r}, not {exact[worst]!r}"
    )
    if name not in SLOW_REFERENCE:  # whose references have no negative zeros
        wrong = (exact == 0) & (result == 0) & (numpy.signbit(result) != numpy.signbit(exact))
        assert not wrong.any(), [a[wrong][:5] for a in arrays]
    check_scalar(function, *arrays)


def check_scalar(function, *arrays: numpy.ndarray) -> None:
    single = [function(*(a[i : i + 1] for a in arrays)) for i in range(120)]
    assert numpy.all(same(numpy.concatenate(single), function(*arrays)[:120]))


def arrays_of(name: str, dtype: str, count: int) -> numpy.ndarray:
    x = samples(dtype, DOMAINS[name][-1 if dtype == "float64" else 0], count)
    if name == "gammaln" and dtype == "float64":
        x = x[(x > 0) | numpy.isnan(x)]
    if name in SLOW_REFERENCE and dtype == "float64":
        pytest.importorskip("mpmath")
    return x


@every_target
@both_precisions
@pytest.mark.parametrize("name", DOMAINS)
def test_within_stated_ulps(name, dtype, target):
    slow = name in SLOW_REFERENCE and dtype == "float64"
    check(name, dtype, target, arrays_of(name, dtype, 200 if slow else 20_000))


@pytest.mark.slow
@both_precisions
@pytest.mark.parametrize("name", DOMAINS)
def test_within_stated_ulps_densely(name, dtype):
    slow = name in SLOW_REFERENCE and dtype == "float64"
    check(name, dtype, BEST, arrays_of(name, dtype, 2_000 if slow else 300_000))


@every_target
@both_precisions
@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_gates_of_recurrent_cells(name, dtype, target):
    """Within three ulps; the smallest results of a sigmoid are still normal numbers."""
    x = arrays_of(name, dtype, 20_000)
    result, exact = kernel(f"gate_{name}", dtype, 1, target)(x), REFERENCES[name](dtype, x)
    least = numpy.finfo(dtype).tiny
    smallest = (name == "sigmoid") & (exact < 2 * least)
    assert numpy.all((least <= result[smallest]) & (result[smallest] < 2 * least))
    assert ulps(result, exact)[~smallest].max() <= 3


def pairs(dtype: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Every pair of special values, random bits, moderate numbers and whole ones."""
    random = numpy.random.default_rng(11)
    table = numpy.meshgrid(special_values(dtype), special_values(dtype))
    count = 30_000
    noise = random.permutation(samples(dtype, (), count))
    moderate, whole = random.normal(size=(2, count)) * 9, random.integers(-30, 30, (2, count))
    parts = (table, (noise[:count], noise[-count:]), moderate, whole)
    first, second = (
        numpy.concatenate([numpy.asarray(part[i]).astype(dtype).ravel() for part in parts])
        for i in (0, 1)
    )
    return first, second


@every_target
@both_precisions
@pytest.mark.parametrize("name", BINARY)
def test_binary_within_stated_ulps(name, dtype, target):
    check(name, dtype, target, *pairs(dtype))


@every_target
@both_precisions
def test_angles_of_points_across_the_range(dtype, target):
    """Points near a diagonal, ones whose angle is below the normal numbers, and far ones."""
    random = numpy.random.default_rng(6)
    least = numpy.log10(float(numpy.finfo(dtype).tiny))
    diagonal = 1 + random.uniform(-1e-3, 1e-3, (2, 50_000))
    low = 10 ** random.uniform((least - 1, 0), (least + 4, 9), (50_000, 2)).T
    far = random.uniform(-1, 1, (2, 50_000)) * float(numpy.finfo(dtype).max)
    y, x = numpy.concatenate([diagonal, low, far], axis=1).astype(dtype)
    check("arctan2", dtype, target, y, x)
    if dtype == "float32":
        normal = slice(50_000)
        function = kernel("arctan2", dtype, 2, target)
        exact = REFERENCES["arctan2"](dtype, y[normal], x[normal])
        assert ulps(function(y, x)[normal], exact).max() <= 1.1


@every_target
@both_precisions
def test_power_of_results_across_the_range(dtype, target):
    """Bases near one with great exponents, and anything whose power is finite."""
    random = numpy.random.default_rng(5)
    limit = 150 if dtype == "float32" else 1080
    base = numpy.exp2(random.uniform(-120, 120, 50_000)).astype(dtype)
    near = (1 + random.uniform(-1e-3, 1e-3, 50_000)).astype(dtype)
    less_near = (1 + random.uniform(-0.05, 0.05, 50_000)).astype(dtype)
    x = numpy.concatenate([base, near, less_near])
    with numpy.errstate(divide="ignore", over="ignore"):
        y = (random.uniform(-limit, limit, x.size) / numpy.log2(x.astype("float64"))).astype(dtype)
    check("power", dtype, target, x, y)


@every_target
@both_precisions
def test_power_with_few_special_cases_in_a_vector(dtype, target):
    """Special cases are computed where a vector has any: one among ordinary lanes, and none."""
    random = numpy.random.default_rng(8)
    special = numpy.array(numpy.meshgrid(special_values(dtype), special_values(dtype)))
    special = special.reshape(2, -1)
    x, y = random.uniform((0.1, -9), (9, 9), (20 * special.shape[1], 2)).astype(dtype).T
    x[::20], y[::20] = special
    check("power", dtype, target, x, y)


@every_target
@both_precisions
def test_frequent_exponents(dtype, target):
    """Within the stated bound, and the same bits whatever exponents stand beside them."""
    random = numpy.random.default_rng(9)
    x = samples(dtype, ((-9, 9), (-1e4, 1e4)), 20_000)
    function = kernel("power", dtype, 2, target)
    found = {}
    for exponent in (*FREQUENT, 1.7):
        y = numpy.full(x.shape, exponent, dtype)
        check("power", dtype, target, x, y)
        found[exponent] = function(x, y)
    which = random.integers(0, len(found), x.size)
    mixed = numpy.array(list(found), dtype)[which]
    assert numpy.all(same(function(x, mixed), numpy.choose(which, list(found.values()))))


@every_target
@both_precisions
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_next_to_multiples_of_a_right_angle(name, dtype, target):
    """Where nearly all bits cancel: the floats nearest to n * pi / 2, small and huge."""
    n = numpy.concatenate([numpy.arange(1, 20_000), numpy.arange(1, 2**24, 999)])
    turns = (n * (numpy.pi / 2)).astype(dtype)
    neighbours = [numpy.nextafter(turns, numpy.asarray(side, dtype)) for side in (0, numpy.inf)]
    # The double that comes nearest of all, and a lane of each size side by side.
    nearest = 6381956970095103.0 * 2.0**797 if dtype == "float64" else 2.0**120
    hard = numpy.array([nearest, 1e22, 0.7, 2.0**120, 5e5, 1e-3], dtype)
    check(name, dtype, target, numpy.concatenate([hard, hard[::-1], turns, *neighbours]))


@every_target
@both_precisions
@pytest.mark.parametrize("name", EXACT)
def test_exact(name, dtype, target):
    x = samples(dtype, ((-5, 5), (-1e5, 1e5)), 20_000)
    with numpy.errstate(all="ignore"):
        expected = getattr(numpy, name)(x)
    function = kernel(name, dtype, 1, target)
    wrong = ~same(function(x), expected)
    assert not wrong.any(), (x[wrong][:5], function(x)[wrong][:5], expected[wrong][:5])
    check_scalar(function, x)


@every_target
@both_precisions
@pytest.mark.parametrize("name", EXACT_BINARY)
def test_exact_binary(name, dtype, target):
    a, b = pairs(dtype)
    with numpy.errstate(all="ignore"):
        expected = getattr(numpy, name)(a, b)
    function = kernel(name, dtype, 2, target)
    result = function(a, b)
    wrong = ~same(result, expected)
    assert not wrong.any(), (a[wrong][:5], b[wrong][:5], result[wrong][:5], expected[wrong][:5])
    check_scalar(function, a, b)


@every_target
@both_precisions
def test_digamma(dtype, target):
    """Next to its zeros only the absolute error is small."""
    pytest.importorskip("mpmath")
    random = numpy.random.default_rng(3)
    x = numpy.concatenate([random.uniform(-9, 9, 500), random.uniform(0, 1e4, 100)]).astype(dtype)
    function, exact = kernel("digamma", dtype, 1, target), REFERENCES["digamma"](dtype, x)
    error = numpy.abs(function(x) - exact)
    assert numpy.all(error <= 8 * numpy.finfo(dtype).eps * (1 + numpy.abs(exact)))
    edges = function([numpy.inf, 0.0, -0.0, -1.0, -numpy.inf, numpy.nan])
    numpy.testing.assert_array_equal(edges, [numpy.inf, -numpy.inf, numpy.inf] + 3 * [numpy.nan])


@every_target
def test_gammaln_left_of_zero(target):
    pytest.importorskip("mpmath")
    x = numpy.random.default_rng(3).uniform(-30, 0, 500)
    exact = REFERENCES["gammaln"]("float64", x)
    error = numpy.abs(kernel("gammaln", "float64", 1, target)(x) - exact)
    assert numpy.all(error <= 2 * numpy.finfo("float64").eps * (1 + numpy.abs(exact)))


@every_target
@both_precisions
def test_gamma_of_whole_numbers_is_whole(dtype, target):
    factorials = numpy.cumprod(numpy.arange(1.0, 19.0))
    result = kernel("gamma", dtype, 1, target)(numpy.arange(2.0, 20.0))
    numpy.testing.assert_array_equal(result, factorials.astype(dtype))


CALL = re.compile(r"^\s+(?:callq?|bl)\s+(\S+)", re.MULTILINE)
NAMES = {
    **dict.fromkeys((*DOMAINS, *EXACT, "digamma"), 1),
    **dict.fromkeys((*BINARY, *EXACT_BINARY), 2),
}


@pytest.mark.slow
@both_precisions
@pytest.mark.parametrize("target", [AVX512, AVX2, FALLBACK, NEON], ids=lambda target: target.name)
def test_no_library_is_called(dtype, target):
    """One module holds every function, for each target: all it calls is its own."""
    module = Module(target=target)
    for name, arity in NAMES.items():
        write_kernel(module, name, dtype, arity)
    called = set(CALL.findall(compiler.assembly(module.text(), target)))
    assert {name.removesuffix("@PLT") for name in called} == {"exact_angle_reduction"}


@pytest.mark.slow
@both_precisions
@pytest.mark.parametrize("lanes", [2, 32])
@pytest.mark.parametrize("name", NAMES)
def test_any_vector_width(name, lanes, dtype):
    arity = NAMES[name]
    arrays = [a[:192] for a in (pairs(dtype) if arity == 2 else (samples(dtype, (), 100),))]
    expected = kernel(name, dtype, arity, BEST)(*arrays)
    assert numpy.all(same(Kernel(name, dtype, arity, TARGETS[BEST], lanes)(*arrays), expected))


def test_every_bound_is_tested():
    assert set(ULPS) == {*DOMAINS, *BINARY}
