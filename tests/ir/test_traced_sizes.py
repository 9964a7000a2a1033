"""Sizes with the value of a call: what is computed of them holds wherever their conditions do."""

import functools
import math
import random

import numpy
import pytest

from heterosis.ir.sizes import named, parse_size
from heterosis.ir.slices import taken
from heterosis.ir.table_sizes import covering, divided, largest, roughly, smallest
from heterosis.ir.traced_sizes import (
    LEAST,
    Decisions,
    TracedSize,
    function_of,
    is_traced,
    only_looking,
    pieces,
    shown,
    untraced,
    value_of,
    written,
)

VALUES = range(LEAST, 60)


def traced(**values):
    """A size for each value, and what is decided by them."""
    decisions = Decisions(values)
    return [decisions.traced(named(name)) for name in values], decisions


def outcomes(function, n):
    """What `function` gives for a size of value `n`: an expression, and the conditions on it."""
    (size,), decisions = traced(n=n)
    found = function(size)
    return function_of(["n"], [written(found)]), decisions.conditions


def check(function, sizes=VALUES):
    """Wherever the conditions of one size hold, the outcome is that of Python's integers."""
    for n in list(sizes)[::7]:
        found, conditions = outcomes(function, n)
        holds = function_of(["n"], [" and ".join(conditions) or "True"])
        assert holds(n=n)[0]
        for other in sizes:
            if holds(n=other)[0]:
                assert found(n=other)[0] == function(other), (n, other, list(conditions))


FUNCTIONS = {
    "affine": lambda n: 3 * n - 2 + n,
    "product": lambda n: (n + 1) * (n - 1),
    "quotient": lambda n: (n * 6 + 5) // 4,
    "negative divisor": lambda n: n // -3,
    "rest": lambda n: n % 5 + (-n) % 7,
    "by itself": lambda n: (n * n * 4) // (n * 2),
    "by another": lambda n: (n * 3 + 1) // (n + 1),
    "both": lambda n: divmod(n, 3)[0] * divmod(n, 3)[1],
    "power": lambda n: n**3 + 2**n % 5,
    "absolute": lambda n: abs(7 - n),
    "greater": lambda n: 1 if n > 9 else n,
    "between": lambda n: n if 5 <= n < 20 else 0,
    "equal": lambda n: 5 if n == 16 else n + 1,
    "not equal": lambda n: 5 if n != 16 else n + 1,
    "truth": lambda n: n if n - 9 else 7,
    "rest decides": lambda n: n // 2 if n % 2 == 0 else 3 * n + 1,
    "turns": lambda n: sum(range(n)),
    "text": lambda n: len(str(n)) + n,
    "list": lambda n: len([0] * n),
    "minimum": lambda n: min(n, 12) + max(n, 30),
    "extremum": lambda n: smallest(n, 12) + largest(n * 2, 30) * 2,
    "in": lambda n: n in (3, 16),
    "in a set": lambda n: n in {3, 16, 30},
    "in a dictionary": lambda n: {9: 1, 16: 2, 23: 3}.get(n, 4),
    "set of shapes": lambda n: len({(n, 3), (9, 3), (16, 3)}),
    "bits": lambda n: (n & 6) + (n | 1) + (n ^ 3) + (n << 2) + (n >> 1) + ~n + (1 << n % 3),
    "item": lambda n: [4, 5, 6][n % 3],
    "float": lambda n: math.floor(n * 1.5) + math.ceil(n / 4),
    "float decides": lambda n: n if n * 0.5 > 7.25 else 1,
    "with a float": lambda n: n if n < 20.5 else 2,
    "whole float": lambda n: n if n <= 20.0 else 2,
    "infinite": lambda n: n if n < math.inf else 2,
    "root": lambda n: math.floor(n**0.5 * 10),
    "int of a float": lambda n: int(n / 3),
    "slice": lambda n: taken(slice(2, -1, 3), n)[2],
    "slice from the end": lambda n: taken(slice(-5, None), n)[0],
    "slice backwards": lambda n: taken(slice(None, None, -1), n)[2],
    "slice to a size": lambda n: taken(slice(n // 2, n + 3), n)[2],
    "numpy": lambda n: numpy.int64(3) * n + n * numpy.int32(2),
    "array": lambda n: int(numpy.zeros(n).size),
    "format": lambda n: len(f"{n:>3}"),
    "sum": lambda n: sum([n, 1, n]) + math.prod([n, 2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_outcomes_hold_wherever_their_conditions_do(name):
    check(FUNCTIONS[name])


def _made(chance, depth):
    """A random expression of `n` in Python."""
    if depth == 0:
        return chance.choice(["n", "n", "n", str(chance.randint(-4, 9))])
    a, b = (_made(chance, depth - 1) for _ in range(2))
    return chance.choice(
        [
            f"({a}) + ({b})", f"({a}) - ({b})", f"({a}) * ({b})",
            f"({a}) // {chance.randint(1, 6)}", f"({a}) % {chance.randint(1, 6)}",
            f"max({a}, {b})", f"smallest({a}, {b})", f"(({a}) if ({a}) < ({b}) else ({b}))",
            f"(({a}) if ({a}) == ({b}) else 3)", f"floor(({a}) * 0.37)", f"abs({a})",
        ]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(80))
def test_random_expressions(seed):
    text = _made(random.Random(seed), 3)
    names = {"smallest": smallest, "floor": math.floor}
    check(eval(f"lambda n: {text}", names), range(LEAST, 40))


def test_what_all_sizes_have_in_common_is_no_condition():
    (n,), decisions = traced(n=9)
    assert n >= 2 and n > 0 and n != 0 and n + 3 != 1 and n * 4 >= 8 and not n < 1
    assert n + n == 2 * n and n * 2 > n and (n + 1) * 2 - 2 * n == 2
    assert max(n, 1) is n and (n * 4) % 4 == 0
    assert not decisions.conditions


def test_conditions_name_the_line():
    (n,), decisions = traced(n=9)
    assert n > 3
    assert list(decisions.conditions) == ["-n < -3"]
    assert "test_traced_sizes.py:" in decisions.conditions["-n < -3"]


def test_looking_decides_nothing():
    (n,), decisions = traced(n=9)
    with only_looking():
        assert n > 3 and list(range(n))[-1] == 8
    assert not decisions.conditions


def test_two_sizes():
    (n, m), decisions = traced(n=9, m=4)
    assert untraced(n * m // m) == named("n")
    assert n > m and not decisions.conditions.keys() - {"m - n < 0"}
    assert isinstance(n, int) and type(n) is TracedSize and is_traced(n)


def test_sizes_of_two_captures_are_not_one():
    (n,), _ = traced(n=9)
    (other,), _ = traced(n=9)
    assert n != other and len({n, other, n + 0}) == 2


def test_messages_have_the_numbers_of_the_call():
    (n,), _ = traced(n=9)
    text = f"shape {shown((n, 3))}, {shown((n,))} and {shown(4)}"
    texts, numbers = pieces(text)
    found = [str(number) for number in function_of(["n"], numbers)(n=12)]
    message = "".join(part for pair in zip(texts, [*found, ""], strict=True) for part in pair)
    assert message == "shape (12, 3), (12,) and 4"


def test_quotients_of_tables_are_no_decisions():
    for value in VALUES:
        decisions = Decisions({"n": value})
        n = decisions.traced(named("n"))
        divisor = largest(8, n)
        found = divided(n * 3 + 40, divisor)
        assert not decisions.conditions
        for other in VALUES:
            (there,) = function_of(["n"], [written(found)])(n=other)
            assert there == (other * 3 + 40) // max(8, other)
    assert divided(17, 5) == 3


LONG = {
    "sum": lambda x: sum((x * k for k in range(400)), start=0.0),
    "product": lambda x: functools.reduce(lambda a, k: a * (1 + x / (k + 9)) / 2, range(400), x),
    "differences": lambda x: functools.reduce(lambda a, k: k - a, range(400), x),
    "quotients": lambda x: functools.reduce(lambda a, k: 1 / (a + k), range(1, 400), x),
    "squares": lambda x: functools.reduce(lambda a, _: a * a / 2 + 0.5, range(60), x / 1e3),
}


@pytest.mark.parametrize("name", LONG)
def test_floats_of_any_length_are_read_again(name):
    decisions = Decisions({}, {"f": 0.375})
    found = LONG[name](decisions.number("f"))
    assert value_of(found) == LONG[name](0.375)
    holds = function_of(["f"], [" and ".join(decisions.conditions) or "True"])
    assert holds(0.375)[0]
    for other in (0.25, 0.7, 3.5):
        if holds(other)[0]:
            assert function_of(["f"], [written(found)])(other)[0] == LONG[name](other)
    assert (name in ("sum", "product")) == (not decisions.conditions)


def test_what_follows_from_conditions_is_none():
    decisions = Decisions({"n": 40})
    n = decisions.traced(named("n"))
    assert n > 32
    assert (n >= 20, n == 7, n // 2 > 15, n * n > 1000, -n > -3) == (True, False, True, True, False)
    assert written(smallest(n * 4, 96)) == "96"
    assert list(decisions.conditions) == ["-n < -32"]
    assert n <= 64
    assert (n < 65, n // 8 > 8, 130 - 2 * n > 0) == (True, False, True)
    assert written(smallest(n, 96)) == "n"
    assert list(decisions.conditions) == ["-n < -32", "-n >= -64"]
    with only_looking():
        assert n < 50
    assert not n >= 45
    assert list(decisions.conditions) == ["-n < -32", "-n >= -64", "n < 45"]
    assert n != 40 or list(decisions.conditions)[-1] == "n == 40"


def test_what_covers_numbers_is_no_decision_and_stays_short():
    for value in VALUES:
        decisions = Decisions({"n": value})
        n = decisions.traced(named("n"))
        assert written(covering(n * 64 + 100, n * 10 + 640)) == "64*n + 640"
        numbers = [n * 640, 6400, (n // 2) * 128 - n // 3 + 17, smallest(n * 320, 9600) * 2 + 64]
        covered = numbers[0]
        for turn in range(40):
            covered = covering(covered, numbers[turn % 4]) + numbers[(turn + 1) % 4]
        assert not decisions.conditions
        assert len(written(covered)) < 200
        assert value_of(covered) == function_of(["n"], [written(covered)])(n=value)[0]
        for other in VALUES:
            found = function_of(["n"], map(written, [covered, *numbers]))(n=other)
            assert found[0] >= 10 * sum(found[1:])  # each was added ten times
    assert covering(17, 5) == 17


def test_rough_numbers_are_the_same_over_ranges():
    assert roughly(7) == 7
    for value, rough in ((2, 2), (3, 4), (8, 8), (9, 32), (32, 32), (33, 64), (1000, 64)):
        decisions = Decisions({"n": value})
        assert roughly(decisions.traced(named("n"))) == rough
        holds = function_of(["n"], [" and ".join(decisions.conditions) or "True"])
        alike = [n for n in range(2, 200) if holds(n)[0]]
        assert alike
        for n in alike:
            assert roughly(Decisions({"n": n}).traced(named("n"))) == rough


def test_equal_extents_are_one_in_the_program():
    decisions = Decisions({"n": 7, "m": 4, "k": 2})
    n, m, k = (decisions.traced(named(name)) for name in "nmk")
    assert (n + 1) // 2 == m
    assert decisions.extent(m * k) == parse_size("((n + 1)//2)*k")
    assert k * 2 == m
    assert decisions.extent(m) == parse_size("2*k")
    assert list(decisions.conditions) == ["(n + 1)//2 - m == 0", "-((n + 1)//2) + 2*k == 0"]
    assert m == 4
    assert [decisions.extent(size) for size in (m, (n + 1) // 2, k + 1)] == [4, 4, 3]
    assert list(decisions.conditions)[2:] == ["k == 2", "m == 4", "(n + 1)//2 == 4"]
