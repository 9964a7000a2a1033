"""What a capture changes outside of the function is told of, with its line; nothing else is."""

import collections
import copy
import itertools
import json
import warnings

import pytest

import heterosis
from heterosis import autograd, gluon, np
from heterosis.gluon import nn
from heterosis.gluon.block import HybridBlock
from heterosis.runtime.errors import CaptureWarning

X = (1.0, 2.0, 3.0)
SEEN, CACHE, COUNT = [], {}, 0
TOTALS = collections.Counter()


class Thing:
    total = 0

    def __init__(self):
        self.n = 1


THING, NUMBERS = Thing(), itertools.count(1)


def told_of(function, *arguments):
    """The warnings of a capture: lines behind the first one of the function, and messages."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        compiled = heterosis.hybridize(function)
        compiled(*arguments)
    assert all(one.category is CaptureWarning and one.filename == __file__ for one in found)
    return [(one.lineno, str(one.message)) for one in found]


# -- what is told of ------------------------------------------------------------------------------


def appends(x):
    SEEN.append(1)
    return x


def sets_an_item(x):
    CACHE["key"] = x.shape
    return x


def deletes_an_item(x):
    del CACHE["key"]
    return x


def sets_a_slice(x):
    SEEN[:0] = [1]
    return x


def adds_to_an_item(x):
    TOTALS["key"] += 1
    return x


def sets_at_a_computed_place(x):
    CACHE["k" + "ey".upper().lower()] = 2
    return x


def sorts(x):
    SEEN.sort()
    return x


def sets_an_attribute(x):
    THING.n = 4
    return x


def sets_an_attribute_of_a_class(x):
    Thing.total += 1
    return x


def sets_a_global(x):
    global COUNT  # noqa: PLW0603
    COUNT = 5
    return x


def advances(x):
    return x * next(NUMBERS)


def sets_by_name(x):
    setattr(THING, "n", 5)  # noqa: B010
    return x


def changes_what_it_calls(x):
    def helper():
        SEEN.extend([1, 2])

    helper()
    return x


@pytest.mark.parametrize(
    "function, lines, what",
    [
        (appends, 1, "an object of type list from outside is changed"),
        (sets_an_item, 1, "an object of type dict from outside is changed"),
        (deletes_an_item, 1, "an object of type dict from outside is changed"),
        (sets_a_slice, 1, "an object of type list from outside is changed"),
        (adds_to_an_item, 1, "an object of type Counter from outside is changed"),
        (sets_at_a_computed_place, 1, "an object of type dict from outside is changed"),
        (sorts, 1, "an object of type list from outside is changed"),
        (sets_an_attribute, 1, "Thing.n is set"),
        (sets_an_attribute_of_a_class, 1, "type.total is set"),
        (sets_a_global, 2, "COUNT, a variable outside of the function, is set"),
        (advances, 1, "an object of type count from outside is changed"),
        (sets_by_name, 1, "an object of type Thing from outside is changed"),
        (changes_what_it_calls, 2, "an object of type list from outside is changed"),
    ],
)
def test_a_change_outside_is_told_of(function, lines, what):
    CACHE["key"] = 1
    ((line, message),) = told_of(function, np.array(X))
    assert line == function.__code__.co_firstlineno + lines
    assert message.startswith(f"{what} while the hybridized function is captured, and not at later")


def test_variables_of_enclosing_functions():
    count = 0

    def function(x):
        nonlocal count
        count = 7
        return x

    ((_, message),) = told_of(function, np.array(X))
    assert message.startswith("count, a variable outside of the function, is set")
    assert count == 7


def test_a_list_that_is_an_argument():
    def function(x, found):
        found.append(x)
        return x * 2

    ((_, message),) = told_of(function, np.array(X), [np.array(X)])
    assert "type list" in message


def test_a_method():
    class Counting:
        def __init__(self):
            self.calls, self.kept = 0, None

        def run(self, x):
            self.calls += 1
            self.kept = x * 2  # an array that no later call sets
            return x

    assert len(told_of(Counting().run, np.array(X))) == 2


def test_each_line_once():
    def function(x):
        for _ in range(3):
            SEEN.insert(0, x.shape)
        return x

    assert len(told_of(function, np.array(X))) == 1


# -- what is not ----------------------------------------------------------------------------------


def local(x):
    first = [x]
    first.append(x)
    table = {"a": 1}
    table["b"] = x
    values = [*table.values()]
    values.append(x)
    thing = Thing()
    thing.x = x
    counter = collections.Counter()
    counter["a"] += 1
    ordered = collections.OrderedDict()
    ordered["a"] = 1
    read = json.loads("[1]")
    read.append(2)
    part = read[:]
    part.append(3)
    copied = copy.copy(SEEN)
    copied.append(1)
    joined = first + [x]
    joined.append(x)
    steps = iter(range(3))
    next(steps)
    count = 0

    def counted():
        nonlocal count
        count = count + 1
        joined.append(x)

    counted()
    y = x * 1
    y[0] = 4
    return np.stack(joined) + count + y


def test_what_the_function_makes_is_its_own():
    assert told_of(local, np.array(X)) == []


class Lazy(HybridBlock):
    def __init__(self):
        super().__init__()
        self.dense, self.late, self.width = nn.Dense(3), None, None
        self.norm, self.cell, self.lstm = nn.BatchNorm(), gluon.rnn.LSTMCell(3), gluon.rnn.LSTM(2)

    def forward(self, x):
        if self.late is None:
            self.late = nn.Dense(2)
            self.late.initialize()
            self.width = x.shape[-1]
        states, found = self.cell.begin_state(batch_size=2), []
        for _ in range(3):
            y, states = self.cell(self.norm(self.dense(x)), states)
            found.append(y)
        return self.late(self.lstm(np.stack(found)))


@pytest.mark.lengthy
def test_blocks_and_steps_of_training():
    net = Lazy()
    net.initialize()
    net.hybridize()
    x = np.ones((2, 3))
    assert told_of(net, x) == []
    trainer = gluon.Trainer(net.collect_params(), "adam")

    def step(x):
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)
        return loss

    assert told_of(step, x) == []


def test_arrays_from_outside_are_written_at_every_call():
    total = np.zeros(3)

    def function(x):
        total[0] = 5
        total[:] += x

    assert told_of(function, np.array(X)) == []
