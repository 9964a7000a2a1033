"""What gets another class, code, order or shape where it stands: programs depend on that, too."""

import collections
import operator
import sys
import types
import weakref

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.runtime.errors import CaptureError


class First:
    def of(self, x):
        return x + 1

    scale = 2.0


class Second(First):
    def of(self, x):
        return x + 2


class Slotted:
    __slots__ = ("scale",)

    def of(self, x):
        return x + 1


class OtherSlotted:
    __slots__ = ("scale",)

    def of(self, x):
        return x + 2


def of_class(kind, other):
    one = kind()
    return lambda x: one.of(x), lambda: setattr(one, "__class__", other)


def of_order():
    table = collections.OrderedDict(a=1.0, b=2.0)

    def function(x):
        for number in table.values():
            x = x * 2 + number
        return x

    return function, lambda: table.move_to_end("a")


def of_code():
    def called():
        return 1.0

    def other():
        return 2.0

    return lambda x: x + called(), lambda: setattr(called, "__code__", other.__code__)


def of_default():
    def called(n=1.0):
        return n

    return lambda x: x + called(), lambda: setattr(called, "__defaults__", (3.0,))


def of_named_default():
    def called(*, n=1.0):
        return n

    return lambda x: x + called(), lambda: called.__kwdefaults__.update(n=3.0)


def of_own_default():
    def function(x, n=1.0):
        return x + n

    return function, lambda: setattr(function, "__defaults__", (3.0,))


def of_name():
    def called():
        pass

    return lambda x: x + len(called.__name__), lambda: setattr(called, "__name__", "f")


def of_referent():
    one = First()
    reference = weakref.ref(one)
    return lambda x: x + reference().scale, lambda: setattr(one, "scale", 3.0)


def of_what_is_gone():
    kept = [First()]
    reference = weakref.ref(kept[0])

    def function(x):
        return x + 1 if reference() is None else x

    return function, kept.clear


def of_shape():
    array = numpy.arange(4.0)
    return lambda x: x + array.shape[0], lambda: setattr(array, "shape", (2, 2))


def of_element_type():
    array = numpy.arange(4, dtype="float32")
    return lambda x: x + float(array[1]), lambda: setattr(array, "dtype", "int32")


def of_days():
    days = numpy.zeros(4, "datetime64[D]")
    return lambda x: x + days.shape[0], lambda: setattr(days, "shape", (2, 2))


def of_vars():
    one = First()
    one.a = 1.0
    return lambda x: x + sum(vars(one).values()), lambda: setattr(one, "b", 2.0)


def of_dictionary():
    one = First()
    return lambda x: x + len(one.__dict__), lambda: setattr(one, "_b", 2.0)


def of_listed_names():
    one = First()

    def function(x):
        for name in dir(one):
            if name.startswith("with_"):
                x = x + getattr(one, name)
        return x

    return function, lambda: setattr(one, "with_b", 2.0)


def of_simple_namespace():
    one = types.SimpleNamespace(a=1.0)
    return lambda x: x + len(vars(one)), lambda: setattr(one, "b", 2.0)


def of_module_by_name():
    module = sys.modules["module_of_tests"] = types.ModuleType("module_of_tests")
    module.scale = 1.0
    return lambda x: x + sys.modules["module_of_tests"].scale, lambda: setattr(module, "scale", 2)


def of_gradient():
    array = np.ones(1)
    return lambda x: x if array.grad is None else x + 1, array.attach_grad


def of_new_gradient():
    array = np.ones(1)
    array.attach_grad()

    def change():
        array.attach_grad()
        array.grad[:] = 5

    return lambda x: x + array.grad, change


def of_getter():
    one = types.SimpleNamespace(inner=types.SimpleNamespace(scale=1.0))
    scale_of = operator.attrgetter("inner.scale")
    return lambda x: x + scale_of(one), lambda: setattr(one.inner, "scale", 2.0)


def of_caller(**named):
    class Scaled:
        scale = 1.0

        def of(self, x, times=1):
            return x * self.scale * times

    one, scaled = Scaled(), operator.methodcaller("of", np.ones(1), **named)
    return lambda x: x + scaled(one), lambda: setattr(one, "scale", 2.0)


PLACES = {
    "a getter": of_getter,
    "a caller of methods": of_caller,
    "a caller with names": lambda: of_caller(times=2),
    "a class": lambda: of_class(First, Second),
    "a class with slots": lambda: of_class(Slotted, OtherSlotted),
    "order": of_order,
    "code": of_code,
    "defaults": of_default,
    "defaults by name": of_named_default,
    "its own defaults": of_own_default,
    "a name": of_name,
    "a referent": of_referent,
    "a referent that is gone": of_what_is_gone,
    "a shape": of_shape,
    "an element type": of_element_type,
    "a shape of dates": of_days,
    "vars": of_vars,
    "a dictionary": of_dictionary,
    "names in a list": of_listed_names,
    "a simple namespace": of_simple_namespace,
    "a module by name": of_module_by_name,
    "whether there is a gradient": of_gradient,
    "another gradient": of_new_gradient,
}


@pytest.mark.parametrize("place", PLACES)
def test_programs_depend_on_it(place):
    function, change = PLACES[place]()
    compiled, x = heterosis.hybridize(function), np.ones(1)
    for _ in range(3):
        before = compiled(x).item()
    assert compiled.captures == 1 and before == function(x).item()
    change()
    for _ in range(3):
        found = compiled(x).item()
    assert found == function(x).item() != before
    assert compiled.captures == 2 and compiled.captures_why[-1] != "the first call"


def test_what_is_watched_may_go():
    one = First()
    reference = weakref.ref(one)
    compiled = heterosis.hybridize(lambda x, one: one.of(x))
    assert compiled(np.ones(1), one).item() == 2
    del one, compiled
    import gc

    gc.collect()
    assert reference() is None


def test_a_step_with_gradients_from_outside():
    weight = np.ones(2)
    found = []

    def step():
        weight[:] = weight - 0.5 * weight.grad

    for one in (step, heterosis.hybridize(step)):
        for start in (1.0, 2.0, 3.0):
            weight.attach_grad()
            weight[:] = start
            with autograd.record():
                loss = (weight * weight).sum()
            loss.backward()
            one()
            one()
            found.append(weight.tolist())
    assert found[:3] == found[3:]


@pytest.mark.parametrize("is_variable", [False, True])
def test_the_gradient_of_an_argument(is_variable):
    @heterosis.hybridize
    def step(weight):
        return weight if weight.grad is None else weight - weight.grad

    weight = np.ones(2)
    if is_variable:
        weight.attach_grad()
    with pytest.raises(CaptureError, match=r"weight\.grad\n  The gradient of an"):
        step(weight)


def test_a_gradient_that_is_made_inside():
    @heterosis.hybridize
    def slope(x):
        y = x * 1
        y.attach_grad()
        with autograd.record():
            z = (y * y).sum()
        z.backward()
        return y.grad

    for number in (1.0, 3.0):
        assert slope(np.array([number])).tolist() == [2 * number]
