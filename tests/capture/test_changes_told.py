"""Whatever a function changes outside of itself while it is captured is told of, wherever the code
stands that does: in generators, classes, contexts, decorators, callbacks."""

import collections
import contextlib
import copy
import functools
import heapq
import itertools
import warnings

import numpy
import pytest

import heterosis
from heterosis import gluon, metric, np
from heterosis.runtime.errors import CaptureError, CaptureWarning

ITEMS: list = []
TABLE: dict = {}
GROUPS: collections.defaultdict = collections.defaultdict(list)
NUMBERS = numpy.zeros(3)
TOTAL = 0


class Box:
    n = 0


BOX = Box()


def in_a_generator(x):
    def rows():
        for i in range(2):
            ITEMS.append(i)
            yield x + i

    return sum(rows())


def an_attribute_in_a_generator(x):
    def rows():
        BOX.n = BOX.n + 1
        yield x

    return sum(rows())


def a_global_in_a_generator(x):
    def rows():
        global TOTAL  # noqa: PLW0603
        TOTAL += 1
        yield x

    return sum(rows())


def by_what_a_generator_calls(x):
    def note():
        ITEMS.append(1)

    def rows():
        note()
        yield x

    return sum(rows())


def in_a_generator_of_a_generator(x):
    def inner():
        TABLE["a"] = 1
        yield x

    def rows():
        yield from inner()

    return sum(rows())


def in_a_generator_that_goes_on(x):
    def rows():
        while True:
            GROUPS["turns"] += [1]
            if len(GROUPS["turns"]) % 2:
                yield x
            else:
                return

    return sum(rows())


@contextlib.contextmanager
def counted():
    ITEMS.append(1)
    yield


def in_a_context(x):
    with counted():
        return x + 1


def by_globals(x):
    globals()["_made"] = 1
    return x + 1


def by_vars(x):
    vars(BOX).update(n=2)
    return x + 1


def past_its_class(x):
    object.__setattr__(BOX, "n", 4)
    return x + 1


def by_its_slot(x):
    BOX.__setattr__("n", 4)
    return x + 1


def by_a_look(x):
    GROUPS[len(GROUPS)]
    return x + 1


def by_a_look_and_a_method(x):
    GROUPS[len(GROUPS)].append(1)
    return x + 1


def by_a_ufunc(x):
    numpy.add(NUMBERS, 1, out=NUMBERS)
    return x + 1


def by_a_ufunc_without_a_name(x):
    numpy.add(NUMBERS, 1, NUMBERS)
    return x + 1


def by_a_ufunc_at_places(x):
    numpy.add.at(NUMBERS, 0, 1)
    return x + 1


def by_a_copy(x):
    numpy.copyto(NUMBERS, 1.0)
    return x + 1


def in_a_class(x):
    class Here:
        ITEMS.append(1)
        n = 2

    return x + Here.n


def in_a_condition_of_a_class(x):
    class Here:
        n = 2
        if n > 1:
            ITEMS.append(n)

    return x + Here.n


def by_a_sort(x):
    def key(i):
        ITEMS.append(i)
        return -i

    rows = [1, 2, 3]
    rows.sort(key=key)
    return x + rows[0]


def by_accumulating(x):
    def add(a, b):
        ITEMS.append(a)
        return a + b

    return x + list(itertools.accumulate([1, 2, 3], add))[-1]


def by_the_largest(x):
    def key(i):
        ITEMS.append(i)
        return i

    return x + heapq.nlargest(1, [1, 2, 3], key)[0]


class Filled:
    def __init__(self, n):
        ITEMS.append(n)
        self.n = n


class Derived(Filled):
    def __init__(self):
        super().__init__(2)


class Made:
    def __new__(cls):
        ITEMS.append(1)
        return object.__new__(cls)


def by_a_constructor(x):
    return x + Filled(1).n


def by_the_constructor_before(x):
    return x + Derived().n


def by_what_makes_an_object(x):
    Made()
    return x + 1


class Late:
    @functools.cached_property
    def n(self):
        ITEMS.append(1)
        return 1


def by_a_property_that_is_kept(x):
    return x + Late().n


def by_a_decorator(x):
    def noted(function):
        ITEMS.append(1)
        return function

    @noted
    def one():
        return 1

    return x + one()


def by_a_default(x):
    def one(n=ITEMS.append(1)):  # noqa: B008
        return 1

    return x + one()


PROGRAMS = [
    in_a_generator, an_attribute_in_a_generator, a_global_in_a_generator,
    by_what_a_generator_calls, in_a_generator_of_a_generator, in_a_generator_that_goes_on,
    in_a_context, by_globals, by_vars, past_its_class, by_its_slot, by_a_look,
    by_a_look_and_a_method, by_a_ufunc, by_a_ufunc_without_a_name, by_a_ufunc_at_places, by_a_copy,
    in_a_class, in_a_condition_of_a_class, by_a_sort, by_accumulating, by_the_largest,
    by_a_constructor, by_the_constructor_before, by_what_makes_an_object,
    by_a_property_that_is_kept, by_a_decorator, by_a_default,
]  # fmt: skip


@pytest.fixture(autouse=True)
def as_before():
    yield
    ITEMS.clear()
    TABLE.clear()
    GROUPS.clear()
    NUMBERS[:] = 0
    vars(BOX).clear()
    globals().pop("_made", None)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_told(program):
    x = np.array([1.0, 2.0])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = heterosis.hybridize(program)(x)
    told = [w for w in seen if issubclass(w.category, CaptureWarning)]
    assert told and all(w.filename == __file__ for w in told)
    assert all("while the hybridized function is captured" in str(w.message) for w in told)
    numpy.testing.assert_array_equal(found.asnumpy(), program(x).asnumpy())


def in_a_branch(x):
    y = x
    if x.sum() > 0:
        y = in_a_generator(x)
    return y


def in_a_context_of_a_branch(x):
    if x.sum() > 0:
        with counted():
            y = x + 1
    else:
        y = x
    return y


def by_a_constructor_in_a_branch(x):
    y = x
    if x.sum() > 0:
        y = x * Filled(2).n
    return y


@pytest.mark.parametrize(
    "program", [in_a_branch, in_a_context_of_a_branch, by_a_constructor_in_a_branch]
)
def test_in_a_branch_it_is_refused(program):
    with pytest.raises(CaptureError, match=r"an object of type list is changed at .*, within"):
        heterosis.hybridize(program)(np.ones(2))


# -- what is the function's own is not told of -----------------------------------------------------


class Pair:
    def __init__(self, a, b):
        self.a, self.b, self.rows = a, b, []
        self.rows.append(a)


def own(x):
    class Here:
        rows: list
        n: int = 2

        def doubled(self, y):
            return y * self.n

    def rows():
        found = []
        for i in range(3):
            found.append(x * i)
            yield found[-1]

    @contextlib.contextmanager
    def doubled():
        held = [x * 2]
        held.append(1)
        yield held[0]

    groups = collections.defaultdict(list)
    groups["a"].append(x)
    with doubled() as y:
        pair = Pair(x, y)
    assert Here.__annotations__.keys() == {"rows", "n"}
    return sum(rows()) + pair.b + Here().doubled(groups["a"][0]) + copy.copy(pair).rows[0]


def test_what_a_function_makes_it_may_change():
    x = np.array([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CaptureWarning)
        found = heterosis.hybridize(own)(x)
    numpy.testing.assert_array_equal(found.asnumpy(), own(x).asnumpy())


def own_in_a_branch(x):
    def rows():
        found = [x.sum()]
        found.append(x.max())
        yield from found

    @contextlib.contextmanager
    def scope():
        yield 3

    y = x
    if x.sum() > 0:
        for row in rows():
            y = y + row
        with scope() as n:
            y = y * n
    return y


def test_generators_run_in_branches():
    compiled = heterosis.hybridize(own_in_a_branch)
    for sign in (1, -1):
        x = np.array([1.0, 2.0]) * sign
        numpy.testing.assert_array_equal(compiled(x).asnumpy(), own_in_a_branch(x).asnumpy())


def test_generators_may_go_on_when_the_capture_has_ended():
    kept = []

    def counting():
        for i in range(4):
            kept.append(i)
            yield i

    going = []

    @heterosis.hybridize
    def program(x):
        rows = counting()
        going.append(rows)
        return x + next(rows)

    with pytest.warns(CaptureWarning):
        assert program(np.zeros(1)).item() == 0
    assert list(going[0]) == [1, 2, 3] and kept == [0, 1, 2, 3]


# -- classes that are named ------------------------------------------------------------------------


class Settings:
    scale = 2

    def scaled(self, x):
        return x * Other.scale


class Other:
    scale = 3


SETTINGS = {"kind": Settings}


@pytest.mark.parametrize(
    "program, kind",
    [
        (lambda x: x * Settings.scale, Settings),
        (lambda x: x * Settings().scale, Settings),
        (lambda x: x * SETTINGS["kind"].scale, Settings),
        (lambda x: Settings().scaled(x), Other),
    ],
)
def test_programs_depend_on_attributes_of_classes(program, kind, monkeypatch):
    compiled = heterosis.hybridize(program)
    assert compiled(np.ones(1)).item() == kind.scale
    monkeypatch.setattr(kind, "scale", 7)
    assert compiled(np.ones(1)).item() == 7


def _dense():
    net = gluon.nn.Dense(2, in_units=2)
    net.initialize()
    return net


METRICS = {
    "accuracy": lambda one, x: one.update([np.array([0, 1])], [x]),
    "loss": lambda one, x: one.update(None, [x]),
    "f1": lambda one, x: one.update(np.array([0, 1]), x),
    "mse": lambda one, x: one.update_dict({"l": x}, {"p": x}),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_updated_outside(name):
    measured, update = metric.create(name), METRICS[name]

    @heterosis.hybridize
    def step(x):
        update(measured, x)
        return x * 2

    for _ in range(2):
        with pytest.raises(CaptureError, match="update of a metric would happen once"):
            step(np.eye(2))
    assert numpy.isnan(measured.get()[1])
    update(measured, np.eye(2))
    assert not numpy.isnan(measured.get()[1])


def test_parameters_are_drawn_anew_outside():
    net = _dense()
    kept = net.weight.data().asnumpy()

    @heterosis.hybridize
    def anew(x):
        net.initialize(force_reinit=True)
        return net(x)

    with pytest.raises(
        CaptureError, match=r"force_reinit=True\) of the parameter .*_weight' would"
    ):
        anew(np.eye(2))
    assert (net.weight.data().asnumpy() == kept).all()


SETTERS = {
    "a trainer's": lambda trainer, own: trainer.set_learning_rate(0.5),
    "an optimizer's": lambda trainer, own: trainer._optimizer.set_learning_rate(0.5),
    "factors": lambda trainer, own: trainer._optimizer.set_lr_mult({}),
    "a metric's": lambda trainer, own: own.reset(),
}


@pytest.mark.parametrize("kind", SETTERS)
def test_settings_of_ours_are_told(kind):
    trainer = gluon.Trainer(_dense().collect_params(), "sgd", {"learning_rate": 0.1})
    own, setter = metric.Accuracy(), SETTERS[kind]

    @heterosis.hybridize
    def step(x):
        setter(trainer, own)
        return x * 2

    with pytest.warns(CaptureWarning, match="sets something while"):
        step(np.eye(2))
