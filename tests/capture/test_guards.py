"""What a capture bakes in is watched: hybridized functions never compute with what was."""

import collections
import functools
import gc
import sys
import types
import warnings
import weakref

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np
from heterosis.gluon import nn
from heterosis.runtime.errors import CaptureError

NUMBER = 2.0
NUMBERS = [1.0, 2.0]
OPTIONS = {"k": 3.0, "inner": {"k": [4.0]}}
ELEMENTS = numpy.array([1.0, 2.0])


class Settings:
    def __init__(self):
        self.scale, self.unread = 2.0, 0

    def scaled(self, x):
        return x * self.scale


class Slotted:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 2.0


class Base:
    factor = 2.0

    @property
    def doubled(self):
        return self.factor * 2


class Derived(Base):
    def __getitem__(self, key):
        return self.hidden[key]

    def __init__(self):
        self.hidden = {"a": 5.0}


SETTINGS, SLOTTED, DERIVED = Settings(), Slotted(), Derived()
SIMPLE = types.SimpleNamespace(scale=2.0)
DEQUE, SET = collections.deque([1.0]), {1.0, 2.0}


def _helper(x):
    return x + NUMBERS[1]


def _with_default(x, factors=[3.0]):  # noqa: B006 - a default that changes is what is tested
    return x * factors[0]


def _global_number(x):
    return x * NUMBER


def _called(x):
    return _helper(x) - 1


def _list(x):
    return x * NUMBERS[0] + len(NUMBERS)


def _nested_dict(x):
    return x * OPTIONS["inner"]["k"][0]


def _elements(x):
    return x[:2] + np.array(ELEMENTS)


def _object(x):
    return SETTINGS.scaled(x)


def _slot(x):
    return x * SLOTTED.scale


def _property(x):
    return x * DERIVED.doubled


def _item_of_object(x):
    return x * DERIVED["a"]


def _by_name(x):
    return x * getattr(SETTINGS, "scale")  # noqa: B009


def _by_computed_name(x):
    return x * getattr(SETTINGS, "sca" + "le"[: NUMBERS.__len__()])


def _simple(x):
    return x * SIMPLE.scale


def _containers(x):
    return x * DEQUE[0] + sum(SET)


def _asks_for_attribute(x):
    return x * 2 if hasattr(SETTINGS, "extra") else x


def _partial(x, settings):
    return x * settings.scale


def _inner(x):
    def scaled():
        return x * OPTIONS["k"]

    return scaled()


def _set_global(name, value):
    def change():
        setattr(sys.modules[__name__], name, value)

    return change


def _redefine_helper():
    globals()["_helper"] = lambda x: x * 100


# Each with what it reads, and a change of that.
CHANGES = {
    "a global number": (_global_number, _set_global("NUMBER", 5.0)),
    "its sign": (_global_number, _set_global("NUMBER", -0.0)),
    "its type": (_global_number, _set_global("NUMBER", 2)),
    "an item of a list": (_list, lambda: NUMBERS.__setitem__(0, 9.0)),
    "the length of a list": (_list, lambda: NUMBERS.append(0.0)),
    "an item inside of dicts": (_nested_dict, lambda: OPTIONS["inner"]["k"].__setitem__(0, 7.0)),
    "a dict in a dict": (_nested_dict, lambda: OPTIONS.update(inner={"k": [8.0]})),
    "elements of a NumPy array": (_elements, lambda: ELEMENTS.__setitem__(0, 9.0)),
    "elements through a view": (_elements, lambda: ELEMENTS[::-1].__setitem__(0, 9.0)),
    "what a called function reads": (_called, lambda: NUMBERS.__setitem__(1, 9.0)),
    "a called function": (_called, _redefine_helper),
    "an attribute": (_object, lambda: setattr(SETTINGS, "scale", 4.0)),
    "a method": (_object, lambda: setattr(Settings, "scaled", lambda self, x: x - 1)),
    "a method of one object": (_object, lambda: setattr(SETTINGS, "scaled", lambda x: x - 1)),
    "an attribute by name": (_by_name, lambda: setattr(SETTINGS, "scale", 4.0)),
    "an attribute by a name that is computed": (
        _by_computed_name,
        lambda: setattr(SETTINGS, "scale", 4.0),
    ),
    "an attribute that was missing": (
        _asks_for_attribute,
        lambda: setattr(SETTINGS, "extra", 1),
    ),
    "a slot": (_slot, lambda: setattr(SLOTTED, "scale", 4.0)),
    "an attribute of a base class": (_property, lambda: setattr(Base, "factor", 4.0)),
    "an attribute before that of the class": (_property, lambda: setattr(DERIVED, "factor", 4.0)),
    "an attribute between class and base": (_property, lambda: setattr(Derived, "factor", 4.0)),
    "what __getitem__ reads": (_item_of_object, lambda: DERIVED.hidden.update(a=6.0)),
    "a namespace": (_simple, lambda: setattr(SIMPLE, "scale", 4.0)),
    "a deque": (_containers, lambda: DEQUE.appendleft(3.0)),
    "a set": (_containers, lambda: SET.add(7.0)),
    "a default": (_with_default, lambda: _with_default.__defaults__[0].__setitem__(0, 8.0)),
    "what an inner function reads": (_inner, lambda: OPTIONS.update(k=9.0)),
    "what a partial holds": (
        functools.partial(_partial, settings=SETTINGS),
        lambda: setattr(SETTINGS, "scale", 4.0),
    ),
}


@pytest.fixture(autouse=True)
def as_before():
    """Everything that the tests change."""
    yield
    module = sys.modules[__name__]
    module.NUMBER, module.NUMBERS[:] = 2.0, [1.0, 2.0]
    module._helper = _HELPER
    OPTIONS.clear()
    OPTIONS.update({"k": 3.0, "inner": {"k": [4.0]}})
    ELEMENTS[:] = [1.0, 2.0]
    _with_default.__defaults__[0][:] = [3.0]
    for thing, attributes in _ATTRIBUTES:
        for name in set(vars(thing)) - set(attributes):
            delattr(thing, name)
        for name, value in attributes.items():
            setattr(thing, name, value)
    DERIVED.hidden = {"a": 5.0}
    SLOTTED.scale = 2.0
    DEQUE.clear()
    DEQUE.append(1.0)
    SET.clear()
    SET.update({1.0, 2.0})


_HELPER = _helper
_ATTRIBUTES = [
    (SETTINGS, {"scale": 2.0, "unread": 0}),
    (SIMPLE, {"scale": 2.0}),
    (DERIVED, {"hidden": {}}),
]
_CLASSES = {"scaled": (Settings, Settings.scaled), "factor": (Base, 2.0)}


@pytest.fixture(autouse=True)
def classes_as_before():
    yield
    for name, (owner, value) in _CLASSES.items():
        setattr(owner, name, value)
    if "factor" in vars(Derived):
        del Derived.factor


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_read_is_watched(what):
    function, change = CHANGES[what]
    compiled, x = heterosis.hybridize(function), np.array([1.0, 2.0, 3.0])
    for _ in range(3):
        before = compiled(x)
    assert compiled.captures == 1 and before.tolist() == function(x).tolist()
    change()
    wanted = function(x).tolist()
    for _ in range(3):
        assert compiled(x).tolist() == wanted
    assert compiled.captures == 2


def test_what_is_equal_or_not_read_captures_nothing():
    @heterosis.hybridize
    def scaled(x):
        return SETTINGS.scaled(x) * NUMBER * OPTIONS["k"]

    x = np.ones(2)
    scaled(x)
    for i in range(5):
        SETTINGS.unread = i
        SETTINGS.scale = float("2")  # another object, the same number
        _set_global("NUMBER", float("2"))()
        _set_global("UNREAD", i)()
        OPTIONS["k"] = float("3")
        assert scaled(x).tolist() == [12, 12]
    assert scaled.captures == 1


def test_closures():
    factor, other = 2.0, []

    @heterosis.hybridize
    def scaled(x):
        other.append(1)  # noted once: Python runs at the capture
        return x * factor

    assert scaled(np.ones(1)).tolist() == [2]
    factor = 3.0
    for _ in range(3):
        assert scaled(np.ones(1)).tolist() == [3]
    assert scaled.captures == 2 and len(other) == 2


def test_a_change_back_finds_the_program_again():
    @heterosis.hybridize
    def scaled(x):
        return x * SETTINGS.scale

    x = np.ones(1)
    for i in range(20):
        SETTINGS.scale = float(i % 3)
        assert scaled(x).tolist() == [i % 3]
    assert scaled.captures == 3


def test_attributes_stored_by_specialised_code():
    """The interpreter stores attributes in other ways once a line has run often."""
    compiled, x = heterosis.hybridize(_object), np.ones(1)
    for i in range(200):
        SETTINGS.scale = i % 2 + 1.0
        assert compiled(x).tolist() == [i % 2 + 1]
    assert compiled.captures == 2


def test_what_super_finds():
    """A class has the name itself, and yet what its base has is read."""

    class Base:
        def method(self, x):
            return x * 2

        @property
        def factor(self):
            return 3

        @classmethod
        def made(cls, x):
            return x + 4

    class Derived(Base):
        def method(self, x):
            return super().method(x) * self.factor

        @property
        def factor(self):
            return super().factor + 1

        @classmethod
        def made(cls, x):
            return super().made(x)

    def function(x):
        return derived.method(x), Derived.made(x)

    derived, x = Derived(), np.ones(1)
    compiled = heterosis.hybridize(function)
    for name, value in [
        ("unused", 1),
        ("method", lambda self, x: x * 10),
        ("factor", property(lambda self: 30)),
        ("made", classmethod(lambda cls, x: x + 40)),
    ]:
        setattr(Base, name, value)
        assert [y.item() for y in compiled(x)] == [y.item() for y in function(x)], name
    assert compiled.captures == 4


# -- the function's own changes -------------------------------------------------------------------


def test_a_counter_that_is_read_counts():
    class Counting(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.calls = self.seen = 0

        def forward(self, x):
            self.seen += 1  # never read
            self.calls = self.calls + 1
            return x * self.calls

    net = Counting()
    net.hybridize()
    assert [net(np.ones(1)).item() for _ in range(4)] == [1, 2, 3, 4]


def test_a_counter_that_is_not_read_does_not_matter():
    class Counting(gluon.HybridBlock):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2

    net = Counting()
    net.hybridize()
    for _ in range(4):
        net(np.ones(1))
    assert net.calls == 1 and net._compiled.captures == 1


def test_an_attribute_that_is_made_at_first_use():
    class Lazy(gluon.HybridBlock):
        width = None

        def forward(self, x):
            if self.width is None:
                self.width = x.shape[-1]
            return x * self.width

    net = Lazy()
    net.hybridize()
    for _ in range(4):
        assert net(np.ones((1, 3))).tolist() == [[3, 3, 3]]
    assert net._compiled.captures == 2


# -- blocks ---------------------------------------------------------------------------------------


class _Parts(gluon.HybridBlock):
    """A block that keeps what it reads in all ways."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2)
        self.values, self.table, self._scale = [2.0], {"shift": np.ones(2)}, 1.0
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dense(x) * self.values[0] * self._scale + self.table["shift"]


BLOCK_CHANGES = {
    "an item": lambda net: net.values.__setitem__(0, 5.0),
    "a private attribute": lambda net: setattr(net, "_scale", 2.0),
    "another array": lambda net: net.table.update(shift=np.zeros(2)),
    "an attribute of a part": lambda net: setattr(net.dense, "act", nn.Activation("relu")),
    "another part": lambda net: setattr(net, "dense", _dense()),
    "parameters made anew": lambda net: net.dense.initialize(force_reinit=True),
    "a hook of a part": lambda net: net.dense.register_forward_hook(_fail),
    "a method": lambda net: setattr(net, "forward", lambda x: x * 7),
}


def _dense():
    made = nn.Dense(2)
    made.initialize()
    return made


class _HookError(Exception):
    pass


def _fail(*_):
    raise _HookError


@pytest.mark.parametrize("what", BLOCK_CHANGES)
def test_what_a_block_reads_is_watched(what):
    net, x = _Parts(), np.ones((1, 3))
    net.initialize()
    net.hybridize()
    for _ in range(3):
        net(x)
    assert net._compiled.captures == 1
    BLOCK_CHANGES[what](net)
    try:
        wanted = net.forward(x)
    except _HookError:
        with pytest.raises(_HookError):
            net(x)
        return
    for _ in range(3):
        numpy.testing.assert_allclose(net(x).asnumpy(), wanted.asnumpy(), rtol=1e-6)
    assert net._compiled.captures == 2


def test_a_layer_added_later():
    net, x = nn.HybridSequential(), np.ones((1, 3))
    net.add(nn.Dense(3))
    net.initialize()
    net.hybridize()
    net(x)
    net.add(nn.HybridLambda(lambda F, y: y * 0 + 7))
    assert net(x).tolist() == [[7, 7, 7]]


def test_other_blocks_do_not_matter():
    net, other, x = _Parts(), _Parts(), np.ones((1, 3))
    for block in (net, other):
        block.initialize()
        block.hybridize()
        block(x)
    for program in net._compiled._programs.values():
        program.clear()  # the core serves the calls by itself
    for i in range(5):
        other.epoch = i
        other.values[0] = float(i)
        net(x)
    assert net._compiled.captures == 1


# -- NumPy arrays as arguments --------------------------------------------------------------------


def test_numpy_arrays_are_inputs():
    compiled = heterosis.hybridize(lambda a, b: a * b)
    a, b = numpy.ones(3, "float32"), numpy.arange(3, dtype="float32")
    for i in range(4):
        a[:] = i
        assert compiled(a, b).tolist() == [0, i, 2 * i]
        assert compiled(numpy.full(3, i, "float32"), np.array(b)).tolist() == [0, i, 2 * i]
    assert compiled.captures == 1


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "float16", "int16"])
def test_element_types_of_numpy_arrays(dtype):
    a = numpy.array([0, 1, 3]).astype(dtype)
    found = heterosis.hybridize(lambda a: (a, np.sum(np.array(a))))(a)
    assert found[0] is a
    assert found[1].dtype == np.sum(np.array(a)).dtype and found[1].item() == a.sum()


def test_writes_into_numpy_arrays():
    @heterosis.hybridize
    def write(a, b):
        a[0] = 7
        return a, b

    a, b = numpy.ones((2, 2), "float32"), numpy.ones(2, "float32")
    for _ in range(2):
        a[:] = 1
        found = write(a.T, b)
        assert a.tolist() == [[7, 1], [7, 1]] and found[1] is b
    with pytest.raises(CaptureError, match="share memory"):
        write(a[0], a[:, 0])


def test_numpy_arrays_are_not_kept():
    compiled = heterosis.hybridize(lambda a: a + 1)
    kept = [weakref.ref(a) for a in _called_with_numpy(compiled)]
    gc.collect()
    assert compiled.captures == 1 and not any(reference() is not None for reference in kept)


def _called_with_numpy(compiled):
    for i in range(5):
        a = numpy.full(3, i, "float32")
        compiled(a)
        yield a


# -- errors, warnings, memory ---------------------------------------------------------------------


@pytest.mark.parametrize("reads", [lambda x: x[x > 0].sum(), lambda x: float(x.sum()), bool])
def test_a_refusal_is_not_swallowed(reads):
    @heterosis.hybridize
    def guarded(x):
        try:
            return reads(x)
        except Exception:  # noqa: BLE001 - as users write it
            return -1

    for _ in range(2):
        with pytest.raises(CaptureError, match="More: docs/blockers"):
            guarded(np.array([1.0]))


@pytest.mark.parametrize("once", [np.random.seed, np.random.get_state])
def test_what_a_program_could_do_once_only_is_refused(once):
    @heterosis.hybridize
    def drawn(x):
        once()
        return x + np.random.uniform(size=x.shape)

    with pytest.raises(CaptureError, match="outside of the function"):
        drawn(np.ones(2))


def test_other_errors_may_be_caught():
    @heterosis.hybridize
    def guarded(x):
        try:
            return x.reshape(7)
        except ValueError:
            return x * 2

    assert guarded(np.ones(2)).tolist() == [2, 2]


def test_frequent_captures_warn_once():
    @heterosis.hybridize
    def scaled(x):
        return x * SETTINGS.scale

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(30):
            SETTINGS.scale = float(i)
            scaled(np.ones(1))
    (warning,) = caught
    assert "SETTINGS.scale (7.0 before, 8.0 now)" in str(warning.message)
    assert warning.filename == __file__


def test_what_is_watched_is_freed_with_the_function():
    settings = Settings()
    compiled = heterosis.hybridize(lambda x: settings.scaled(x))  # noqa: F821
    compiled(np.ones(1))
    settings.compiled = compiled  # a cycle through the programs in the core
    gone = weakref.ref(settings)
    del settings, compiled
    gc.collect()
    assert gone() is None


def test_elements_that_python_reads_are_compared():
    switch = np.array([1.0, 5.0])

    @heterosis.hybridize
    def choose(x):
        return x + 1 if switch.tolist()[0] > 0 else x - 1

    x = np.zeros(1)
    assert choose(x).tolist() == [1]
    switch[:] = np.array([1.0, 5.0])
    assert choose(x).tolist() == [1] and choose.captures == 1
    switch[0] = -1
    assert choose(x).tolist() == [-1] and choose.captures == 2


def test_an_optimizer_is_not_frozen():
    net, x = _dense(), np.ones((2, 3))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

    @heterosis.hybridize
    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(1)
        return loss

    step(x)
    for _ in range(3):
        step(x)
    assert step.captures == 1
    before = net.weight.data().copy()
    trainer.set_learning_rate(0.0)
    step(x)
    assert net.weight.data().tolist() == before.tolist()
    trainer.set_learning_rate(0.1)
    trainer._scale = 0.0  # as scaling of losses does
    step(x)
    assert net.weight.data().tolist() == before.tolist()
