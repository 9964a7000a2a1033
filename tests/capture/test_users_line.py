"""Every refusal begins with the user's line, whoever notices; what it stands in comes behind."""

import operator
from typing import NamedTuple

import pytest

import heterosis
from heterosis import autograd, np
from heterosis.runtime.errors import CaptureError, UnsupportedError

X = (1.0, 2.0, 3.0)
COUNT = 0
SEEN: list[int] = []


class Pair(NamedTuple):
    first: object
    second: object


def another_shape_in_a_branch(x):
    if x.sum() > 0:  # noqa: SIM108
        y = x
    else:
        y = x[:2]
    return y  # here


def set_in_one_branch_alone(x):
    if x.sum() > 0:
        y = x
    return y  # here


def another_structure(x):
    return Pair(x, 1) if x.sum() > 0 else (x, x)  # here


def a_text_that_arrays_choose(x):
    mode = "a" if x.sum() > 0 else "b"  # here
    return x if mode == "a" else -x


def an_error_that_is_caught(x):
    try:
        if x.sum() > 0:
            raise ValueError("large")  # here
    except ValueError:
        return -x
    return x


def an_assert_that_is_caught(x):
    try:
        assert x.sum() < 0  # here
    except AssertionError:
        return -x
    return x


def caught_within_a_branch(x):
    if x.sum() > 0:
        try:
            if x.max() > 2:
                raise ValueError("large")  # here
        except ValueError:
            return -x
    return x


def identity_that_arrays_decide(x):
    y = x if x.sum() > 0 else x * 2
    return x * (2 if y is x else 3)  # here


def identity_by_a_function(x):
    y = x if x.sum() > 0 else x * 2
    return x * (2 if operator.is_(y, x) else 3)  # here


def identity_by_numbers(x):
    y = x if x.sum() > 0 else x * 2
    return x * (2 if id(y) == 3 else 3)  # here


def identity_within_a_generator(x):
    y = x if x.sum() > 0 else x * 2
    return x * (2 if any(y is one for one in [x]) else 3)  # here


def identity_behind_a_loop(x):
    y = x
    while y.sum() < 100:
        y = y * 2
    return x * (2 if y is x else 3)  # here


def a_list_that_a_branch_appends_to(x):
    if x.sum() > 0:
        SEEN.append(1)  # here
    return x


def a_global_that_a_loop_sets(x):
    global COUNT  # noqa: PLW0603
    while x.sum() < 100:
        x = x * 2
        COUNT += 1  # here
    return x


def a_named_expression(x):
    if x.sum() > 0 and (s := x.max()) > 2:  # here
        return x * s
    return x


def a_match(x):
    match x.sum():  # here
        case 6:
            return x
    return -x


def a_generator_that_goes_on_in_a_branch(x):
    numbers = (n for n in (2, 3))
    if x.sum() > 0:
        x = x * next(numbers)  # here
    return x * next(numbers)


def a_carried_shape(x):
    while x.sum() < 100:  # here
        x = np.concatenate([x, x])
    return x


def a_carried_object(x):
    y = None
    while x.sum() < 100:  # here
        x = y = x * 2
    return y


def for_ever(x):
    return x if x.sum() > 100 else for_ever(x * 2)  # here


def a_second_derivative(x):
    x.attach_grad()
    with autograd.record():
        y = x * 1
        while y.sum() < 100:
            y = y * x
        first = autograd.grad(y.sum(), [x], create_graph=True)[0]  # here
        second = (first * first).sum()
    second.backward()
    return x.grad


@pytest.mark.parametrize(
    "function",
    [
        another_shape_in_a_branch, set_in_one_branch_alone, another_structure,
        a_text_that_arrays_choose, an_error_that_is_caught, an_assert_that_is_caught,
        caught_within_a_branch, identity_that_arrays_decide, identity_by_a_function,
        identity_by_numbers, identity_within_a_generator, identity_behind_a_loop,
        a_list_that_a_branch_appends_to, a_global_that_a_loop_sets, a_named_expression, a_match,
        a_generator_that_goes_on_in_a_branch, a_carried_shape, a_carried_object, for_ever,
        a_second_derivative,
    ],
)  # fmt: skip
def test_a_refusal_begins_with_the_users_line(function):
    with pytest.raises((CaptureError, UnsupportedError)) as caught:
        heterosis.hybridize(function)(np.array(X))
    place, _, text = str(caught.value).partition("\n")
    file, line = place.split(" in ")[0].rsplit(":", 1)
    assert file == __file__
    with open(__file__, encoding="utf-8") as lines:
        assert lines.readlines()[int(line) - 1].rstrip().endswith("# here")
    assert place.split(" in ")[1].startswith(function.__name__)
    assert text.startswith("  ")
