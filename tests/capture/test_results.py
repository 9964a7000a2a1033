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


OUTSIDE = {"numbers": [1, 2], "arrays": [np.ones((2,))]}


def _keeps(x, given):
    """What is returned, and what of it is to be one and the same object as something else."""
    total = -x if x.sum() > 2 else x
    fresh = list(given)
    return total, {"given": given}, given["in"], OUTSIDE["numbers"], OUTSIDE["arrays"], fresh


def _sames(found, given):
    _, made, inner, numbers, arrays, fresh = found
    return (
        made["given"] is given, inner is given["in"], given["in"][0] is inner[0],
        numbers is OUTSIDE["numbers"], arrays is OUTSIDE["arrays"], fresh == ["in"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "item", [3, np.ones((2,)), numpy.ones((2,))], ids=["int", "ours", "NumPy's"]
)
@pytest.mark.parametrize(
    "how", [{}, {"dynamic": True}, {"dynamic": False}, {"check": True}], ids=str
)
def test_containers_that_were_there_before(item, how):
    """The caller's lists and dictionaries come back, and those from outside: who changes one of
    them changes what the others see."""
    compiled = heterosis.hybridize(_keeps, **how)
    for count in (2, 2, 3, 4, 2):
        given = {"in": [item]}
        found = compiled(np.ones((count,)), given)
        assert all(_sames(found, given)), _sames(found, given)
        assert found[1] is not compiled(np.ones((count,)), given)[1]


@pytest.mark.parametrize("how", [{}, {"dynamic": True}, {"check": True}], ids=str)
def test_one_container_in_two_places(how):
    def twice(x):
        count = 0
        while x.sum() > count:
            count += 1
        made = [x * 2, x.shape[0]]
        return made, {"made": made}, (made, count), [x * 2]

    compiled = heterosis.hybridize(twice, **how)
    for count in (2, 2, 3, 4):
        one, named, (again, _), other = compiled(np.ones((count,)))
        assert one is named["made"] and one is again and one is not other
        assert one[1] == count


@pytest.mark.filterwarnings("ignore::heterosis.runtime.errors.CaptureWarning")
def test_a_container_that_the_function_fills():
    """It is told of, and the caller's stays as it is: so what is returned is another one."""

    def filled(x, given):
        given.append(x * 2)
        return given

    compiled, given = heterosis.hybridize(filled), []
    for _ in range(2):
        assert [one.tolist() for one in compiled(np.ones((1,)), given)] == [[2]]
    assert given == []


class Counter:
    def __init__(self):
        self.count, self.seen, self.outside = 0, [], OUTSIDE


@pytest.mark.parametrize("how", [{}, {"dynamic": True}, {"check": True}], ids=str)
def test_every_call_makes_its_own_object(how):
    def counting(x):
        made = Counter()
        return x, made, [made]

    compiled = heterosis.hybridize(counting, **how)
    _, one, (same,) = compiled(np.ones((2,)))
    one.count += 1
    one.seen.append(3)
    _, other, _ = compiled(np.ones((2,)))
    assert one is same and one is not other
    assert (other.count, other.seen) == (0, [])
    assert one.outside is OUTSIDE and other.outside is OUTSIDE


def test_an_object_that_cannot_be_made_again():
    class Lonely:
        def __deepcopy__(self, known):
            raise RuntimeError("there is one")

    with pytest.raises(CaptureError, match=r"type Lonely is returned.*\(there is one\)"):
        heterosis.hybridize(lambda x: (x, Lonely()))(np.ones((2,)))


@pytest.mark.parametrize(
    "made", [lambda n: {n}, lambda n: types.SimpleNamespace(n=n), lambda n: frozenset([n])]
)
def test_sizes_in_objects(made):
    """An object would have the size of the capture, and as what stands for it there."""
    compiled = heterosis.hybridize(lambda x: made(x.shape[0]), dynamic=True)
    for count in (2, 3, 4, 3):
        found = compiled(np.ones((count,)))
        assert found == made(count)
        assert type(next(iter(getattr(found, "__dict__", {0: 0}).values()))) is int


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


@pytest.mark.parametrize("dynamic", [True, "auto"])
@pytest.mark.filterwarnings("ignore::heterosis.runtime.errors.CaptureWarning")
def test_sizes_in_keys(dynamic):
    """A dictionary that is returned, or outside, finds what is put there by plain numbers."""
    known, shapes = {}, set()

    def keyed(x):
        count = x.shape[0]
        known[count] = known[x.shape, "shape"] = count
        shapes.add(x.shape)
        return {count: x * 2, x.shape: [{(count, 1): count}]}

    compiled = heterosis.hybridize(keyed, dynamic=dynamic)
    for count in (2, 3, 4, 3):
        found = compiled(np.ones((count,)))
        assert found[count].tolist() == [2] * count
        assert found[(count,)] == [{(count, 1): count}]
        assert [*map(type, found)] == [int, tuple] and type([*found][1][0]) is int
        assert known[count] == known[(count,), "shape"] == count and (count,) in shapes
