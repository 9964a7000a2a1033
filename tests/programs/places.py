"""Where programs find numbers outside: how one is read there, and how it is set between calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

ANY, FLOAT, COUNT = "any value", "a float", "a whole number from 0 on"


@dataclass(frozen=True)
class Place:
    """`@` stands for the number of the place, and `$` for the value that is set."""

    read: str
    set: str
    made: str = ""  # what there must be before
    takes: str = ANY

    def takes_all(self, values: Iterable[Any]) -> bool:
        """Whether what is read are these values."""
        if self.takes == FLOAT:
            return all(type(v) is float for v in values)
        return self.takes == ANY or all(type(v) is int and v >= 0 for v in values)


_HELD = "held = SimpleNamespace(inner=SimpleNamespace())"
_CLOSING = """def closing():
    value = 0
    def get():
        return value
    def put(new):
        nonlocal value
        value = new
    return get, put"""
_MEASURED = "class Measured:\n    factor = property(lambda self: self.own)"
_CLASS = "owner@.__class__ = type('Owner', (Owner,), {'factor': $})"

PLACES = (
    Place("k@", "k@ = $"),
    Place("held.k@", "held.k@ = $", _HELD),
    Place("held.inner.k@", "held.inner.k@ = $", _HELD),
    Place("options['k@']", "options['k@'] = $", "options = {}"),
    Place("listed[@]", "listed[@] = $", "listed = [0] * 100"),
    Place("float(table[@])", "table[@] = $", "table = numpy.zeros(100)", FLOAT),
    # What a class, a function or a cell has.
    Place("owner@.factor", _CLASS, "class Owner:\n    pass\nowner@ = Owner()"),
    Place("kind@.factor", "Kind@.factor = $",
          "class Kind@:\n    pass\nclass Child@(Kind@):\n    pass\nkind@ = Child@()"),
    Place("kind@.factor_of()", "Kind@.factor_of = lambda self: $",
          "class Kind@:\n    pass\nclass Child@(Kind@):\n    pass\nkind@ = Child@()"),
    Place("measured@.factor", "measured@.own = $", f"{_MEASURED}\nmeasured@ = Measured()"),
    Place("default@()", "default@.__defaults__ = ($,)",
          "def default@(factor=0):\n    return factor"),
    Place("keyed@()", "keyed@.__kwdefaults__ = {'factor': $}",
          "def keyed@(*, factor=0):\n    return factor"),
    Place("coded@()", "coded@.__code__ = (lambda: $).__code__", "def coded@():\n    return 0"),
    Place("closed@()", "set_closed@($)", f"{_CLOSING}\nclosed@, set_closed@ = closing()"),
    Place("module@.factor", "module@.factor = $", "module@ = ModuleType('module')"),
    # What a container holds, in which order, and how many.
    Place("pair@[0]", "pair@ = ($, 0)"),
    Place("len(names@)", "names@[:] = range($)", "names@ = []", COUNT),
    Place("len(chosen@)", "chosen@.clear(); chosen@.update(range($))", "chosen@ = set()", COUNT),
    Place("next(iter(ordered@.values()))",
          "ordered@[str($)] = $; ordered@.move_to_end(str($), last=False)",
          "ordered@ = OrderedDict()"),
    Place("[*plain@.values()][-1]", "plain@.pop(str($), None); plain@[str($)] = $", "plain@ = {}"),
    Place("queue@[-1]", "queue@.append($)", "queue@ = deque(maxlen=2)"),
    Place("options.get('g@', 0)",
          "options.update({'g@': $}) if str($) != '0' else options.pop('g@', None)",
          "options = {}"),
    Place("getattr(held, 'g@', 0)",
          "vars(held).update({'g@': $}) if str($) != '0' else vars(held).pop('g@', None)", _HELD),
    # What an array of NumPy's has.
    Place("float(summed@.sum())", "summed@[1] = $", "summed@ = numpy.zeros(3)", FLOAT),
    Place("shaped@.shape[0]", "shaped@.resize(($, 3), refcheck=False)",
          "shaped@ = numpy.zeros((1, 3))", COUNT),
    Place("(typed@.dtype.itemsize.bit_length() - 1)", "typed@.dtype = f'V{2 ** $}'",
          "typed@ = numpy.zeros(64, 'uint8')", COUNT),
)  # fmt: skip

IMPORTS = """from collections import OrderedDict, deque
from types import ModuleType, SimpleNamespace"""


def fitting(values: Iterable[Any]) -> list[Place]:
    """The places that such values can be in."""
    values = list(values)
    return [place for place in PLACES if place.takes_all(values)]


@cache
def _place(name: str) -> tuple[Place, str]:
    """The place that a number is read from by this name, and which one of them it is."""
    for place in PLACES:
        pattern = re.escape(place.read).replace("@", r"(\d+)")
        if found := re.fullmatch(pattern, name):
            return place, found.group(1)
    raise ValueError(f"no number is read as {name}")


def made(numbers: Mapping[str, Any]) -> list[str]:
    """Lines that make what numbers are held in, each once."""
    found = (_place(name) for name in numbers)
    texts = dict.fromkeys(place.made.replace("@", number) for place, number in found if place.made)
    return [IMPORTS, *texts] if texts else []


def numbers_set(numbers: Mapping[str, Any]) -> list[str]:
    """Lines that give numbers outside their values."""
    lines = []
    for name, value in numbers.items():
        place, number = _place(name)
        lines.append(place.set.replace("@", number).replace("$", repr(value)))
    return lines
