"""What a program is made of besides its arguments: places outside that it depends on, of whatever
kind, and what it asks for once, which is told of."""

import array
import collections
import contextvars
import datetime
import functools
import io
import json
import logging
import os
import pathlib
import queue
import random
import subprocess
import sys
import threading
import time
import types
import warnings
import weakref

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.gluon import nn
from heterosis.runtime.errors import CaptureError, CaptureWarning


class Kind(type):
    scale = 2

    def __len__(cls):
        return Kind.scale


class Config(metaclass=Kind):
    scale = 2
    table = {"rows": [2]}  # noqa: RUF012

    class Inner:
        scale = 2

        class Innermost:
            scale = 2

    @classmethod
    def of_class(cls):
        return cls.scale

    @staticmethod
    def of_nothing():
        return Config.scale


class Derived(Config):
    pass


class Answering:
    """Answers for what it does not have, and runs code whatever is asked."""

    def __init__(self):
        self.table = {"scale": 2}

    def __getattr__(self, name):
        return self.table[name]


class Strange:
    def __getattribute__(self, name):
        return Config.scale


CONFIG, ANSWERING, STRANGE = Config(), Answering(), Strange()
TABLE, ORDERED = {"a": 2}, collections.OrderedDict(a=2)
CHAIN, PROXY = collections.ChainMap({"a": 2}), types.MappingProxyType(TABLE)
USERS, ROWS = collections.UserDict(a=2), collections.UserList([2])
BUFFER, BYTES, NUMBERS = array.array("i", [2]), bytearray(b"\x02"), numpy.array([2.0])
VIEW, PART = memoryview(BYTES), NUMBERS[:]
KEPT = [Answering()]
WEAK = weakref.WeakSet(KEPT)
NAMES = types.SimpleNamespace(scale=2)


class Words(str):
    scale = 2


class Whole(int):
    scale = 2


class Measured(numpy.ndarray):
    scale = 2


class Key:
    scale = 2


WORDS, WHOLE, MEASURED = Words("a"), Whole(3), numpy.ones(1).view(Measured)
OBJECTS = numpy.array([{"a": 2}, None])
MASKED = numpy.ma.masked_array([2.0, 7.0], [False, True])
KEYED = {Key(): 1}


@functools.lru_cache
def remembered():
    return Config.scale


def scaled(x, by=[2]):  # noqa: B006
    return x * by[0]


def with_attribute(x):
    return x * with_attribute.scale


with_attribute.scale = 2


def by_globals(x):
    return x * globals().get("_SCALE", 2)


def forget():
    Config.scale = 7
    remembered.cache_clear()


def grow():
    KEPT.append(Answering())
    WEAK.add(KEPT[-1])


def give(place, name):
    return lambda: setattr(place, name, 7)


PLACES = {
    "a class": (lambda x: x * Config.scale, give(Config, "scale")),
    "a class within": (lambda x: x * Config.Inner.scale, give(Config.Inner, "scale")),
    "a class further within": (
        lambda x: x * Config.Inner.Innermost.scale, give(Config.Inner.Innermost, "scale")
    ),
    "a table of a class": (
        lambda x: x * Config.table["rows"][0], lambda: Config.table["rows"].__setitem__(0, 7)
    ),
    "a class method": (lambda x: x * Config.of_class(), give(Config, "scale")),
    "a static method": (lambda x: x * Config.of_nothing(), give(Config, "scale")),
    "a base class": (lambda x: x * Derived.scale, give(Config, "scale")),
    "a class behind its base": (lambda x: x * Derived.scale, give(Derived, "scale")),
    "the type of an object": (lambda x: x * type(CONFIG).scale, give(Config, "scale")),
    "by getattr": (lambda x: x * getattr(Config, "scale"), give(Config, "scale")),  # noqa: B009
    "by vars": (lambda x: x * vars(Config)["scale"], give(Config, "scale")),
    "a class of classes": (lambda x: x * len(Derived), give(Kind, "scale")),
    "__getattr__": (
        lambda x: x * ANSWERING.scale, lambda: ANSWERING.table.update(scale=7)
    ),
    "__getattribute__": (lambda x: x * STRANGE.scale, give(Config, "scale")),
    "a proxy": (lambda x: x * PROXY["a"], lambda: TABLE.update(a=7)),
    "an ordered dictionary": (lambda x: x * ORDERED["a"], lambda: ORDERED.update(a=7)),
    "a chain of dictionaries": (lambda x: x * CHAIN["a"], lambda: CHAIN.maps[0].update(a=7)),
    "a dictionary in Python": (lambda x: x * USERS["a"], lambda: USERS.update(a=7)),
    "a list in Python": (lambda x: x * len(ROWS), lambda: ROWS.append(7)),
    "an array of Python's": (lambda x: x * BUFFER[0], lambda: BUFFER.__setitem__(0, 7)),
    "bytes behind a view": (lambda x: x * VIEW[0], lambda: BYTES.__setitem__(0, 7)),
    "an array behind a view": (lambda x: x * float(PART[0]), lambda: NUMBERS.fill(7)),
    "a weak set": (lambda x: x * len(WEAK), grow),
    "a text with attributes": (lambda x: x * WORDS.scale, give(WORDS, "scale")),
    "an integer with attributes": (lambda x: x * WHOLE.scale, give(WHOLE, "scale")),
    "an array with attributes": (lambda x: x * MEASURED.scale, give(MEASURED, "scale")),
    "an array of objects": (lambda x: x * OBJECTS[0]["a"], lambda: OBJECTS[0].update(a=7)),
    "a masked array": (
        lambda x: x * float(MASKED.sum()), lambda: MASKED.mask.__setitem__(1, False)
    ),
    "a key": (lambda x: x * next(iter(KEYED)).scale, give(next(iter(KEYED)), "scale")),
    "names": (lambda x: x * NAMES.scale, give(NAMES, "scale")),
    "what is remembered": (lambda x: x * remembered(), forget),
    "a default": (scaled, lambda: scaled.__defaults__[0].__setitem__(0, 7)),
    "an attribute of a function": (with_attribute, give(with_attribute, "scale")),
    "globals()": (by_globals, lambda: globals().__setitem__("_SCALE", 7)),
}  # fmt: skip


@pytest.fixture
def as_before():
    """Puts back what the changes of the table change."""
    yield
    for place in (Kind, Config, Config.Inner, Config.Inner.Innermost, NAMES, with_attribute):
        place.scale = 2
    if "scale" in vars(Derived):
        del Derived.scale
    Config.table["rows"][0] = scaled.__defaults__[0][0] = BUFFER[0] = BYTES[0] = 2
    for table in (TABLE, ORDERED, CHAIN.maps[0], USERS):
        table.update(a=2)
    ANSWERING.table["scale"] = 2
    for place in (WORDS, WHOLE, MEASURED, next(iter(KEYED))):
        vars(place).pop("scale", None)
    OBJECTS[0]["a"], MASKED.mask[1] = 2, True
    NUMBERS.fill(2)
    del ROWS[1:], KEPT[1:]
    globals().pop("_SCALE", None)
    remembered.cache_clear()


@pytest.mark.parametrize("place", PLACES)
def test_programs_depend_on_it(place, as_before):
    function, change = PLACES[place]
    compiled, x = heterosis.hybridize(function), np.ones(1)
    before = compiled(x).item()
    assert before == compiled(x).item() == function(x).item()
    change()
    assert compiled(x).item() == function(x).item() != before


SETTING = contextvars.ContextVar("setting", default=2)
ASKED = {
    "time": lambda x: x + time.time(),
    "perf_counter": lambda x: x + time.perf_counter(),
    "now": lambda x: x + datetime.datetime.now().year,  # noqa: DTZ005
    "today": lambda x: x + datetime.date.today().year,  # noqa: DTZ011
    "randint": lambda x: x + random.randint(0, 9),
    "uniform": lambda x: x + float(numpy.random.uniform()),
    "normal": lambda x: x + float(numpy.random.default_rng(0).normal()),
    "getenv": lambda x: x + len(os.getenv("PATH", "")),
    "environ": lambda x: x + len(os.environ["PATH"]),
    "get": lambda x: x + SETTING.get(),
    "getcwd": lambda x: x + len(os.getcwd()),
    "listdir": lambda x: x + len(os.listdir(".")),
    "exists": lambda x: x + os.path.exists("."),
    "is_dir": lambda x: x + pathlib.Path(".").is_dir(),
    "open": lambda x: (open(__file__).close(), x)[1],
    "readline": lambda x: x + len(FILE.readline()),
    "getrecursionlimit": lambda x: x + sys.getrecursionlimit(),
    "current_thread": lambda x: x + len(threading.current_thread().name),
    "geterr": lambda x: x + len(numpy.geterr()),
}
# What they do is not done again either.
DONE = {
    "info": lambda x: (LOG.info("x"), x)[1],
    "error": lambda x: (logging.error("x"), x)[1],  # noqa: LOG015
    "write": lambda x: (FILE.write("x"), x)[1],
    "dump": lambda x: (json.dump({}, FILE), x)[1],
    "put": lambda x: (QUEUE.put(1), x)[1],
    "warn": lambda x: (warnings.warn("told", stacklevel=1), x)[1],
    "run": lambda x: (subprocess.run(["true"], check=False), x)[1],
}
FILE, QUEUE, LOG = io.StringIO("line\n" * 9), queue.SimpleQueue(), logging.getLogger("tests")
_TOLD = "asks for|asks the|gives a|is asked|looks at|reads a|opens a"


@pytest.mark.parametrize("name", ASKED)
def test_it_is_told_that_it_is_asked_once(name):
    with pytest.warns(CaptureWarning, match=f"{name} ({_TOLD})") as told:
        heterosis.hybridize(ASKED[name])(np.ones(1))
    assert {warning.filename for warning in told} == {__file__}


@pytest.mark.filterwarnings("ignore:told")
@pytest.mark.parametrize("name", DONE)
def test_it_is_told_that_it_is_done_once(name):
    done = "logs|writes|looks|hands|warns|asks"
    with pytest.warns(CaptureWarning, match=f"{name} ({done}).*not at later calls"):
        heterosis.hybridize(DONE[name])(np.ones(1))


def test_files_of_ours_are_told_of(tmp_path):
    path = tmp_path / "saved.npy"
    numpy.save(path, numpy.ones(1, "float32"))
    net = nn.Dense(1, in_units=1)
    net.initialize()

    @heterosis.hybridize
    def function(x):
        x = x + np.load(path)
        net.save_parameters(str(tmp_path / "net.params"))
        return x

    with pytest.warns(CaptureWarning) as told:
        function(np.ones(1))
    lines = [str(one.message).partition(" while")[0] for one in told]
    assert lines == [
        f"{name} looks at files, or changes some" for name in ("load", "save_parameters")
    ]

    @heterosis.hybridize
    def loading(x):
        net.load_parameters(str(tmp_path / "net.params"))
        return net(x.reshape(1, 1))

    with pytest.raises(CaptureError, match="This function has no operation"):
        loading(np.ones(1))


def test_what_arrays_decide_between_is_told_of_in_both_branches():
    @heterosis.hybridize
    def function(x):
        if x.sum() > 0:
            LOG.info("positive")
        else:
            FILE.write("negative")
        return x

    with pytest.warns(CaptureWarning) as told:
        function(np.ones(1))
    assert [str(one.message).partition(" while")[0] for one in told] == [
        "info logs",
        "write writes to a file",
    ]


def test_what_asks_for_nothing_is_not_told_of():
    def function(x):
        time.sleep(0)
        text = io.StringIO()
        text.write("2")
        assert text.getvalue() == "2" and str(pathlib.Path("a") / "b") and os.fspath("a")
        return x * len(os.path.join("a", "b")) + np.random.uniform(size=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error", CaptureWarning)
        heterosis.hybridize(function)(np.ones(1))
