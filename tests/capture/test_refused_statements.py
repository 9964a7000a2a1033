"""What is refused of plain `if`, `while` and `for` that arrays decide, and in which words."""

import traceback
from collections import OrderedDict
from typing import NamedTuple

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.runtime.errors import CaptureError

X = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)


def one_branch_only(x):
    if x.sum() > 0:
        y = x * 2
    return y


def other_shapes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x[0]
    return y + 1


def nothing_returned(x):
    if x.sum() > 0:
        return x


def text(x):
    name = "a"
    if x.sum() > 0:
        name = "b"
    return x * len(name)


def growing(x):
    while x.shape[0] < 100 and x.sum() < 100:
        x = np.concatenate([x, x])
    return x


def of_lists(x):
    found = []
    while x.sum() < 10:
        x = x + 1
        found = [*found, x]
    return found


def list_outside(x):
    found = []
    if x.sum() > 0:
        found.append(x)
    return x


class Counter:
    count = 0


def attribute(x):
    for row in x:
        if row.sum() > 0:
            Counter.count += 1
    return x


def item(x):
    found = {"a": 1}
    while x.sum() < 3:
        x = x + 1
        found["a"] += 1
    return x * found["a"]


def shape_changes_beside_a_break(x):
    while x.sum() < 100:
        if x.max() > 50:
            break
        x = np.stack([x * 2, x])
    return x


def keys_in_another_order(x):
    if x.sum() > 0:
        return {"a": x, "b": x * 2}
    return {"b": x, "a": x * 2}


def keys_of_another_kind(x):
    if x.sum() > 0:
        found = {1: x}
    else:
        found = {True: x * 2}
    return found


def dictionaries_of_two_classes(x):
    found = OrderedDict(a=x)
    if x.sum() > 0:
        found = {"a": x * 2}
    return found


class Tagged(list):
    """A list that has a tag."""


def tags(x):
    one, other = Tagged([x]), Tagged([x * 2])
    one.tag, other.tag = 1, 2
    if x.sum() > 0:
        one = other
    return one[0] * one.tag


class Pair(NamedTuple):
    first: object
    second: object


def a_named_tuple_or_a_pair(x):
    return Pair(x, 1) if x.sum() > 0 else (x * 2, 1)


REFUSED = [
    (
        shape_changes_beside_a_break,
        r"x is float32\[2, 3\] in .*, and float32\[2, 2, 3\] in the\s+other.*The loop at",
    ),
    (list_outside, "an object of type list is changed at .*, within a branch"),
    (attribute, "an object of type type is changed at"),
    (item, "an object of type dict is changed at"),
    (one_branch_only, r"y is float32\[2, 3\] in one branch .* and not set in the\s+other"),
    (other_shapes, r"y is float32\[2, 3\] in one branch .* and float32\[3\] in the other"),
    (
        nothing_returned,
        r"what is returned is float32\[2, 3\] in one branch .* and None in the other",
    ),
    (
        keys_in_another_order,
        r"what is returned is a dict in one .* another dict, with its keys in another\s+order",
    ),
    (keys_of_another_kind, "found is a dict in one branch .* another dict in the\\s+other"),
    (dictionaries_of_two_classes, "found is a dict in one branch .* and a OrderedDict in the"),
    (tags, "one is a Tagged in one branch .* and another Tagged in the\\s+other"),
    (a_named_tuple_or_a_pair, r"give Pair\(first='an array', .*and\s+\('an array'"),
    (text, r"name is 'b' in one branch .* and 'a' in the other"),
    (
        growing,
        r"x is float32\[2, 3\] before the loop at .*, and float32\[4, 3\] .* made at .*:\d+",
    ),
    (of_lists, r"found is \[\] before the loop .*and .* behind a turn"),
]


@pytest.mark.parametrize("function, message", REFUSED, ids=lambda v: getattr(v, "__name__", ""))
def test_refusals(function, message):
    with pytest.raises(CaptureError, match=f"(?s){message}") as caught:
        heterosis.hybridize(function)(np.array(X + 0.3))
    assert f"{function.__code__.co_filename}:" in str(caught.value)


def test_lines_are_the_users():
    def fails(x):
        if x.sum() > 0:
            return x @ np.ones((7, 7))
        return x

    with pytest.raises(heterosis.runtime.errors.ShapeError) as caught:
        heterosis.hybridize(fails)(np.array(X))
    frames = traceback.extract_tb(caught.tb)
    lines = [frame.lineno for frame in frames if frame.name == "fails"]
    first = fails.__code__.co_firstlineno
    assert lines == [first + 1, first + 2]


def test_what_has_no_source():
    namespace = {}
    exec("def f(x):\n    if x.sum() > 0:\n        return x\n    return -x", namespace)  # noqa: S102
    with pytest.raises(CaptureError, match="An if that cannot become a choice"):
        heterosis.hybridize(namespace["f"])(np.array(X))


def test_errors_that_python_decides():
    def function(x, limit):
        if limit < 0:
            raise ValueError("a negative limit")
        if x.sum() > limit:
            return x
        return -x

    with pytest.raises(ValueError, match="a negative limit"):
        heterosis.hybridize(function)(np.array(X), -1)
    assert heterosis.hybridize(function)(np.array(X), 1).shape == (2, 3)
