"""NaN, infinities, zeros of both signs and the ends of every range: hybridized is eager, bit for
bit, alone and in chains; but for sums, which may be added up in another order."""

import inspect
import zlib
from itertools import cycle, islice

import pytest

import heterosis
from heterosis import np
from heterosis.ir.types import DTYPES, FLOATS, is_float
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, KEY, SEQUENCE
from heterosis.runtime.errors import HeterosisError
from tests.capture.special_values import same_bits, special, special_arguments
from tests.capture.sums import differ_in_sums_alone
from tests.choose import spread

pytestmark = pytest.mark.main_memory("XLA takes x + 0 for x, and its NaN have other signs")

_CASES = 3  # of an operation's samples

# Nothing is computed from an array without elements, and so nothing has the error of what made it.
_ERRORS_OF_EMPTY_ARRAYS = {"solve", "tensorsolve"}


def _sampled():
    """Each operation with two types of floats, and one more type in turn. Its turn follows from its
    name: further operations change nothing of what others are given."""
    for name, record in sorted(REGISTRY.items()):
        if not record.samples or KEY in record.uses or name in _ERRORS_OF_EMPTY_ARRAYS:
            continue
        turn = zlib.crc32(name.encode()) % 1000
        taken = [dtype for dtype in DTYPES if dtype in record.samples.dtypes]
        chosen = [d for d in ("float32", "float16", "bfloat16") if d in taken]
        others = [dtype for dtype in taken if dtype not in chosen]
        chosen += others[turn % len(others) :][:1] if others else []
        for dtype in chosen:
            yield pytest.param(name, dtype, turn, id=f"{name}-{dtype}")


def _each(tree, function):
    if isinstance(tree, list | tuple):
        return [_each(item, function) for item in tree]
    return function(tree) if isinstance(tree, np.ndarray) else tree


def _turned(x):
    return ~x if x.dtype == "bool" else -x


def _array(value):
    if isinstance(value, list):
        return [_array(item) for item in value]
    return np.array(value, dtype=value.dtype.name) if hasattr(value, "dtype") else value


def _found(function, *arguments):
    """What a call gives: its results, or the class of its error."""
    try:
        result = function(*arguments)
        _each(result, lambda x: x.wait_to_read())
        return result
    except HeterosisError as error:
        return type(error)


def _agree(found, wanted):
    if isinstance(wanted, type) or isinstance(found, type):
        return found == wanted
    return same_bits(found, wanted)


def _agree_but_for_sums(found, wanted, function, given):
    if isinstance(wanted, type) or isinstance(found, type):
        return False
    return differ_in_sums_alone(function, tuple(given), found, wanted)


# All together: for other instruction sets there is `HETEROSIS_TARGET=avx2 pytest` of this.
@pytest.mark.slow
@pytest.mark.parametrize("name, dtype, turn", list(_sampled()))
def test_operations(name, dtype, turn, release):
    record = REGISTRY[name]
    uses = zip(record.parameters, record.uses, strict=True)
    names = [p.name for p, use in uses if use in (ARRAY, SEQUENCE)]
    cases = list(enumerate(spread(record.samples.cases, _CASES)))
    for i, case in cases if release else cases[turn % len(cases) :][:1]:
        arrays, attributes = special_arguments(record, case, dtype, turn + i)

        def single(*given, attributes=attributes):
            return record.operation(**dict(zip(names, given, strict=False)), **attributes)

        def amid(*given, single=single):
            indices = record.samples.integer_arrays
            turned = [a if k in indices else _each(a, _turned) for k, a in enumerate(given)]
            return _each([single(*turned)], lambda x: np.absolute(_turned(x)))

        given = _array(arrays)
        for function in (single, amid):
            wanted = _found(function, *given)
            compiled = heterosis.hybridize(function)
            for _ in range(2):
                found = _found(compiled, *given)
                assert _agree(found, wanted) or _agree_but_for_sums(
                    found, wanted, function, given
                ), (case, function.__name__)


@pytest.mark.parametrize("found, agrees", [(0.0, True), (1.0, True), (2.0, False), (0.5, False)])
def test_another_order_explains_what_it_gives_and_nothing_else(found, agrees):
    x = np.array([1e9, 1.0, -1e9], dtype="float32")  # (1e9 + 1) - 1e9 is 0, (1e9 - 1e9) + 1 is 1
    wanted = np.zeros((), dtype="float32")
    given = np.full((), found, dtype="float32")
    assert differ_in_sums_alone(np.sum, (x,), given, wanted) == agrees
    assert differ_in_sums_alone(np.max, (x,), given, wanted) == (found == 0.0)


# -- chains of elementwise operations -------------------------------------------------------------


def _unary(dtype):
    """Operations from an array to one of its shape and type."""
    x = np.array(special(dtype), dtype=dtype)
    for name, record in sorted(REGISTRY.items()):
        required = (
            [p for p in record.parameters if p.default is inspect.Parameter.empty]
            if record.samples
            else []
        )
        if not record.samples or KEY in record.uses or len(required) != 1:
            continue
        if dtype not in record.samples.dtypes or record.uses[0] != ARRAY or record.in_place:
            continue
        found = _found(record.operation, x)
        if isinstance(found, np.ndarray) and (found.shape, found.dtype) == (x.shape, x.dtype):
            yield name


def _chains(dtype):
    """Three operations after one another, each in each place, with changing neighbours."""
    names = list(_unary(dtype))
    for step in (7, 11):
        rotated = (islice(cycle(names), k * step, k * step + len(names)) for k in range(3))
        yield from zip(*rotated, strict=True)


def _binary(x, y):
    return [x + y, x - y, x * y, x / y, np.maximum(x, y), np.where(x < y, x, y), x * 0, y - y]


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", [d for d in DTYPES if is_float(d) or d in ("int8", "int64")])
def test_chains(dtype):
    x = np.array(special(dtype), dtype=dtype)
    for some in spread(list(_chains(dtype)), 60):
        first, second, third = (REGISTRY[name].operation for name in some)

        def chain(x, first=first, second=second, third=third):
            y = second(first(x))
            return [y, third(y), third(y) * x]

        assert same_bits(heterosis.hybridize(chain)(x), chain(x)), some


@pytest.mark.parametrize("dtype", FLOATS)
def test_pairs(dtype):
    """All pairs of special values through arithmetic, comparison and choice, in one program."""
    values = np.array(special(dtype), dtype=dtype)
    x, y = values.reshape(-1, 1), values.reshape(1, -1)

    def arithmetic(x, y):
        once = _binary(x, y)
        return [*once, *(z for a in once[:5] for z in _binary(a, y))]

    assert same_bits(heterosis.hybridize(arithmetic)(x, y), arithmetic(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "number", [0, 1, -1, 2, 0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), float("nan"), -float("nan")]
)
def test_numbers(number, dtype):
    """What could be simplified for finite numbers is computed for all others too."""
    x = np.array(special(dtype), dtype=dtype)

    def arithmetic(x):
        left = [x + number, x - number, x * number, x / number, x**number, x // number, x % number]
        right = [number + x, number - x, number * x, number / x, number**x, number // x, number % x]
        chosen = [np.maximum(x, number), np.minimum(number, x), np.where(x == number, number, x)]
        compared = [x < number, x == number, x != number, x >= number]
        return [*left, *right, *chosen, *compared, (x * number) * number, (x + number) - number]

    assert same_bits(heterosis.hybridize(arithmetic)(x), arithmetic(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_operand_twice(dtype):
    x = np.array(special(dtype), dtype=dtype)

    def twice(x):
        y = x * 1
        found = [x - x, x / x, x * 0, 0 * x, np.maximum(x, x), np.minimum(x, y), x**0, 1**x, x % x]
        compared = [x == x, x != x, x < x, x <= y, np.where(x == x, x, 0), np.where(True, x, x)]  # noqa: PLR0124
        return [
            *found,
            *compared,
            np.negative(-x),
            abs(-x),
            x + 0 - 0,
            (x - x) * x,
            x * (y - x),
            -(x - x),
        ]

    assert same_bits(heterosis.hybridize(twice)(x), twice(x))


# -- products with narrow integers, and what follows them -----------------------------------------


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not is_float(d)])
def test_integer_products_wrap_before_what_follows(dtype):
    bits = 90 if dtype != "bool" else 2
    a, b, c = (
        np.arange(m * n).reshape(m, n).astype("int64") % bits
        for m, n in ((30, 40), (40, 50), (30, 50))
    )
    a, b, c = (x.astype(dtype) for x in (a, b, c))

    def after(a, b, c):
        inner = [a @ b + c, np.maximum(a @ b, c), (a @ b) >> 1, (a @ b) // 3, (a @ b) > c]
        return [*inner, np.absolute(_turned(a @ b))]

    assert same_bits(heterosis.hybridize(after)(a, b, c), after(a, b, c))
