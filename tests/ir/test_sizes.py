"""Sizes: their normal form, their text, their values, and the types that have them."""

import random

import pytest

from heterosis.ir.sizes import Size, are_equal_if_exact, named, parse_size
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ProgramError, ShapeError, UnsupportedError

n, m = named("n"), named("m")

FORMS = {
    "n": n,
    "2*n + 1": n + n + 1,
    "m + n": n + m,
    "-n - 3": -n - 3,
    "3 - n": "-n + 3",
    "n//2": n // 2,
    "3*(n//2) - 1": (n // 2) * 3 - 1,
    "(n + 1)//2": (n + 1) // 2,
    "-(n//2)": -(n // 2),
    "(4*n + 6)//4": "n + 1",
    "(2*n + 1)//4": "n//2",
    "n//2//3": "n//6",
    "(5*n)//3": "n + (2*n)//3",
    "(n - 3)//2 + 1": "(n + 1)//2 - 1",
    "n//1": "n",
    "0*n": "0",
    "n - n + 4": "4",
    "((n + 1)//2 + m)//3": ((n + 1) // 2 + m) // 3,
    "m*n": n * m,
    "2*m*n + 3*n": n * (2 * m + 3),
    "(n + 1)*(n - 1)": "n*n - 1",
    "-m*n": -n * m,
    "m*(n//2)": (n // 2) * m,
    "(6*m*n)//4": "m*n + (m*n)//2",
    "(6*m*n)//(2*m)": "3*n",
    "(m*n + m)//m": "n + 1",
}


@pytest.mark.parametrize("text, expected", FORMS.items(), ids=FORMS)
def test_equal_sizes_have_one_form(text, expected):
    expected = parse_size(expected) if isinstance(expected, str) else expected
    assert parse_size(text) == expected
    assert hash(parse_size(text)) == hash(expected)


@pytest.mark.parametrize("text", FORMS)
def test_texts_are_read_again(text):
    size = parse_size(text)
    assert parse_size(str(size)) == size


def _any_size(chance, depth):
    if depth == 0:
        return chance.choice(["n", "m", str(chance.randint(-4, 9))])
    a, b = (_any_size(chance, depth - 1) for _ in range(2))
    return chance.choice(
        [f"({a}) + ({b})", f"({a}) - ({b})", f"{chance.randint(-3, 5)}*({a})",
         f"({a})//{chance.randint(1, 6)}", f"-({a})", f"({a})*({b})"]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_values_are_those_of_whole_numbers(seed):
    chance = random.Random(seed)
    text = _any_size(chance, 4)
    size = parse_size(text)
    assert parse_size(str(size)) == size
    for _ in range(8):
        values = {"n": chance.randint(-50, 50), "m": chance.randint(-50, 50)}
        expected = eval(text, dict(values))
        assert (size.at(values) if isinstance(size, Size) else size) == expected
        half_way = size.at({"n": values["n"]}) if isinstance(size, Size) else size
        assert (half_way.at(values) if isinstance(half_way, Size) else half_way) == expected


def test_remainders_follow():
    assert (2 * n + 5) % 2 == 1
    assert (n % 3).at({"n": 11}) == 2


def test_names_are_those_within_quotients_too():
    assert set(((n + 1) // 2 + m).names()) == {"n", "m"}


ISOLATED = {
    "n - m": ("m", "n"),
    "3 - n": ("n", "3"),
    "n + (m + 1)//2": ("n", "-((m + 1)//2)"),
    "n - (n + 1)//2 + m": ("m", "(n + 1)//2 - n"),
    "2*n - (m + 1)//2": ("(m + 1)//2", "2*n"),
    "2*n - 2*m": None,
    "m*n + m": None,
    "m*n + 2*m": None,
    "n - n//2": ("n//2", "n"),
}


@pytest.mark.parametrize("text, expected", ISOLATED.items(), ids=ISOLATED)
def test_what_a_factor_must_be_for_a_size_to_be_nothing(text, expected):
    found = parse_size(text).isolated()
    assert (found and tuple(map(str, found))) == expected


IF_EXACT = [
    ("6*n", "48*(n//8)", True),
    ("n*m", "4*(n//2)*(m//2)", True),
    ("n", "6*((n//2)//3)", True),
    ("n + 1", "2*((n + 1)//2)", True),
    ("6*n", "6*n", True),
    ("6*n", "40*(n//8)", False),
    ("n", "2*(n//2) + 1", False),
    ("n", "2*(m//2)", False),
]


@pytest.mark.parametrize("one, other, expected", IF_EXACT)
def test_what_is_equal_where_quotients_leave_no_rest(one, other, expected):
    assert are_equal_if_exact(parse_size(one), parse_size(other)) is expected
    assert are_equal_if_exact(6, 6) and not are_equal_if_exact(parse_size(one), 6)


def test_one_unknown_follows_from_a_value():
    assert (2 * n + 1).solved(7) == {"n": 3}
    assert (5 - n).solved(3) == {"n": 2}
    assert (2 * n + 1).solved(6) == (n + m).solved(6) == (n // 2).solved(3) == {}


WRONG = [
    "",
    "n m",
    "1.5",
    "n**2",
    "f(n)",
    "n % 2",
    "n/2",
    "n.a",
    "True",
    "'n'",
    "n//0",
    "n//m",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ProgramError, match="is no size; expected"):
        parse_size(text)


def test_what_sizes_cannot_be_is_refused():
    with pytest.raises(UnsupportedError, match="one of their factors"):
        (n + 1) // m
    with pytest.raises(UnsupportedError, match="divided by 1, 2, 3"):
        n // -2


def test_types_have_sizes():
    type_ = TensorType((n, 2 * n + 1, 3), "float32")
    assert str(type_) == "float32[n, 2*n + 1, 3]"
    assert type_ == TensorType((named("n"), 1 + n * 2, 3), "float32")
    assert type_ != TensorType((n, 2 * n, 3), "float32")
    assert TensorType((n, 4), "int8").size == 4 * n


def test_known_extents_beside_sizes_are_looked_at():
    with pytest.raises(ShapeError, match="no array has the shape"):
        TensorType((n, -1), "float32")
