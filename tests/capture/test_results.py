"""What hybridized functions return: containers as they are, anew by every call, or a refusal."""

import collections
import types
from typing import Any, NamedTuple

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.runtime.errors import AutogradError, CaptureError


class Named(list):
    def __init__(self, items=(), name="nobody"):
        super().__init__(items)
        self.name = name


class Pair(tuple):
    def __new__(cls, one, other):
        return super().__new__(cls, (one, other))


class Point(NamedTuple):
    x: Any
    y: Any


class Held:
    def __init__(self, array):
        self.array = array


class Slotted:
    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array


def _grouped(x):
    found = collections.defaultdict(list)
    found["twice"].append(x * 2)
    return found


CONTAINERS = [
    lambda x: Named([x, x * 2], "twice"),
    lambda x: Pair(x, x * 2),
    lambda x: Point(x, y=x * 2),
    lambda x: collections.OrderedDict(b=x, a=x * 2),
    _grouped,
]


def _shown(tree):
    """A result as text, of what it is made of and what it has besides."""
    if isinstance(tree, dict):
        items = [(key, _shown(item)) for key, item in tree.items()]
        return type(tree).__name__, items, getattr(tree, "default_factory", None)
    if isinstance(tree, tuple | list):
        return type(tree).__name__, [*map(_shown, tree)], getattr(tree, "__dict__", None)
    return tree.asnumpy().tolist()


@pytest.mark.parametrize("function", CONTAINERS)
def test_containers_of_derived_classes(function):
    compiled = heterosis.hybridize(function)
    for numbers in ([1.0, 2.0], [3.0, 4.0]):
        x = np.array(numbers)
        found = compiled(x)
        assert _shown(found) == _shown(function(x))
        assert found is not compiled(x)
    assert compiled.captures == 1


@pytest.mark.parametrize("function", CONTAINERS)
def test_as_arguments(function):
    """What is handed in is of its class, too, with its attributes."""
    seen = []

    @heterosis.hybridize
    def doubled(tree):
        seen.append((type(tree), getattr(tree, "name", ""), len(tree)))
        return [item[0] * 2 if isinstance(item, list) else item * 2 for item in _items(tree)]

    tree = function(np.array([1.0, 2.0]))
    found = [item.asnumpy().tolist() for item in doubled(tree)]
    assert seen == [(type(tree), getattr(tree, "name", ""), len(tree))]
    assert found[-1] == [4, 8]


def _items(tree):
    return list(tree.values()) if isinstance(tree, dict) else list(tree)


def test_attributes_of_containers_are_part_of_the_call():
    @heterosis.hybridize
    def scaled(given):
        return given[0] * len(given.name)

    x = np.array([1.0, 2.0])
    for name, captures in (("ab", 1), ("abc", 2), ("ab", 2)):
        assert scaled(Named([x], name)).asnumpy().tolist() == [len(name), 2 * len(name)]
        assert scaled.captures == captures


def test_classes_of_dictionaries_are_told_apart():
    @heterosis.hybridize
    def kind(given):
        return given["a"] * (2 if isinstance(given, collections.OrderedDict) else 3)

    x = np.array([1.0])
    assert kind({"a": x}).item() == 3
    assert kind(collections.OrderedDict(a=x)).item() == 2


def _closure(x):
    y = x * 2
    return lambda: y


OBJECTS = {
    "an object": lambda x: Held(x * 2),
    "an argument": lambda x: Held(x),
    "slots": lambda x: Slotted(x * 2),
    "a namespace": lambda x: types.SimpleNamespace(a=x * 2),
    "deque": lambda x: collections.deque([x * 2]),
    "a mapping": lambda x: types.MappingProxyType({"a": x * 2}),
    "values": lambda x: {"a": x * 2}.values(),
    "closure": _closure,
    "inside": lambda x: [x, (Held(x * 2),)],
    "an object in it": lambda x: Held(Held([x * 2])),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_that_hold_arrays_are_refused(name):
    compiled = heterosis.hybridize(OBJECTS[name])
    with pytest.raises(CaptureError, match="Return the arrays, and make the object of what"):
        compiled(np.ones((2,)))


ITERATORS = {
    "generator": lambda x: (x * i for i in range(2)),
    "list_iterator": lambda x: iter([x]),
    "zip": lambda x: zip([x], [x * 2], strict=True),
    "map": lambda x: [map(abs, [x])],
}


@pytest.mark.parametrize("kind", ITERATORS)
def test_iterators_are_refused(kind):
    """The second call would give the one that the first caller has used up."""
    with pytest.raises(CaptureError, match=f"returns an iterator, a {kind}"):
        heterosis.hybridize(ITERATORS[kind])(np.ones((2,)))


def test_objects_without_arrays_of_the_program():
    outside = Held(np.ones((2,)))
    compiled = heterosis.hybridize(lambda x: (x * 2, outside, len))
    for _ in range(2):
        _, found, same = compiled(np.ones((2,)))
        assert found is outside and same is len


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.argmax(x, axis=1).astype("float32"),
        lambda x: np.where(x > 1, 1.0, 0.0),
        lambda x: (x * 2).detach(),
        lambda x: np.ones(x.shape) + np.random.uniform(size=x.shape),
        lambda x: sum(row > 1 for row in x) * 2.0,
    ],
)
@pytest.mark.parametrize("hybrid", [False, True])
def test_no_gradient_goes_back_from_what_follows_from_no_variable(function, hybrid):
    x = np.array([[1.0, 2.0], [3.0, 1.0]])
    x.attach_grad()
    run = heterosis.hybridize(function) if hybrid else function
    with autograd.record():
        y = run(x)
    with pytest.raises(AutogradError, match="was not computed from variables"):
        y.backward()


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_gradient_goes_back_from_the_results_that_follow_from_it(hybrid):
    x = np.array([1.0, 2.0])
    x.attach_grad()

    def several(x):
        return x > 1, x.detach() * 3, x * x, np.floor(x)

    run = heterosis.hybridize(several) if hybrid else several
    with autograd.record():
        _, constant, square, step = run(x)
        total = (constant * square + step).sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [6, 24]


def test_objects_made_in_the_function_are_made_in_every_call():
    """What a caller does to them is not seen by the next one; those from outside stay the same."""
    known, table = {1}, numpy.zeros(2)

    def function(x):
        return {2}, bytearray(b"a"), numpy.ones(2), {"within": [{3}]}, known, table, x * 2

    compiled = heterosis.hybridize(function)
    for _ in range(3):
        given, letters, ones, found, *outside, _ = compiled(np.ones(2))
        assert (given, letters, ones.tolist()) == ({2}, bytearray(b"a"), [1, 1])
        assert found == {"within": [{3}]}
        assert outside[0] is known and outside[1] is table
        given.clear()
        letters.extend(b"b")
        ones[:] = 5
        found["within"][0].add(4)
