"""What programs are specialised for, and what they are not: the two tables of docs/hybrid.md, row
by row. A row of a table that has no calls here fails, and so do calls without a row."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.gluon import nn
from tests.capture.test_open_numbers import outcome, shown

PAGE = Path(__file__).parents[2] / "docs" / "hybrid.md"
NEVER, ONCE = 1, 2  # captures: the first one; and one that leaves open what has varied
NAN, INFINITY = float("nan"), float("inf")


@dataclass
class Calls:
    """Calls of a function with arguments of `values`, one after the other, and once more: how often
    it is captured for them."""

    captures: int
    function: Callable[..., Any]
    values: Sequence[Any]
    arguments: Callable[..., tuple[Any, ...]] = lambda value: (value,)
    dynamic: Any = "auto"


def ones(*shape: int, dtype: str = "float32") -> Any:
    return np.ones(shape, dtype=dtype)


def rows(n: int) -> tuple[Any, ...]:
    """Rows that differ."""
    return (np.arange(float(2 * n)).reshape(n, 2),)


def beside(value: Any) -> tuple[Any, ...]:
    return ones(3) * 2, value


def said(function: Callable[..., Any], captures: int, sizes: Sequence[int] = (4, 7, 9, 2)) -> Calls:
    """Calls with as many rows, whose extents are open from the first one on."""
    return Calls(captures, function, sizes, rows, True)


# -- what changes, and whether a program is made anew ---------------------------------------------

CHANGES = {
    "the element type of an array, its number of dimensions": [
        Calls(3, lambda x: x + 1, [ones(3), ones(3, dtype="int32"), ones(3, dtype="float64")]),
        Calls(3, lambda x: x.sum(), [ones(3), ones(3, 4), ones(3, 4, 5)]),
    ],
    "an extent of an array": [
        Calls(ONCE, lambda x: x + 1, (3, 4, 5, 6), rows),
        Calls(3, lambda x: x * 2 if x.shape[0] > 5 else x, (3, 4, 9, 5, 7), rows),
    ],
    "a number among the arguments": [
        Calls(ONCE, lambda x, v: x * v, (0.5, 0.25, 3.5, -2.5), beside),
        Calls(ONCE, lambda x, v: x * v, (2, 5, 9, 7), beside),
        Calls(3, lambda x, v: x * v if v > 3 else x, (0.5, 0.25, 3.5, -2.5), beside),
    ],
    "numbers that are 0, 1, below 0 and whole, infinite or NaN; 0.0 for -0.0, 1 for 1.0 or True": [
        Calls(4, lambda x, v: x * v, (0, 1, -1, -2), beside),
        Calls(5, lambda x, v: x / (x * v), (0.0, -0.0, INFINITY, -INFINITY, NAN), beside),
        Calls(3, lambda x, v: x * v, (1, 1.0, True), beside),
    ],
    "any other value among the arguments: a text, True, None, an object": [
        Calls(2, lambda x, v: x.sum() if v == "sum" else x.max(), ("sum", "max"), beside),
        Calls(3, lambda x, v: x if v is None else x * 2 if v else x * 3, (None, True, False),
              beside),
        Calls(2, lambda x, v: v(x), (lambda x: x + 1, lambda x: x - 1), beside),
    ],
    "which arguments are arrays; the length of a list, the keys of a dictionary": [
        Calls(2, lambda x, v: x * v, (2.5, ones(3)), beside),
        Calls(3, lambda x: sum(x), ([ones(3)], [ones(3)] * 2, [ones(3)] * 3)),
        Calls(2, lambda x: sum(x.values()) + len(x), ({"a": ones(3)}, {"b": ones(3)})),
    ],
}  # fmt: skip


def changed_mode() -> None:
    """Training or prediction, and whether operations are recorded."""
    run = heterosis.hybridize(lambda x: npx.dropout(x, p=0.5) * 2)
    x = ones(1000)
    x.attach_grad()
    assert run(x).sum().item() == 2000
    with autograd.train_mode():
        assert run(x).min().item() == 0
    with autograd.record(train_mode=False):
        y = run(x)
    y.backward()
    assert run.captures == 3 and x.grad.sum().item() == 2000


def changed_sharing() -> None:
    """Arrays that share memory, of which one is written to."""

    def function(x, y):
        x += 1
        return x * y

    run, x, y = heterosis.hybridize(function), ones(3), ones(3)
    assert run(x, y).tolist() == [2.0] * 3 and run(y, x).tolist() == [4.0] * 3
    assert run.captures == 1
    assert run(x, x).tolist() == [9.0] * 3 and run.captures == 2
    reads = heterosis.hybridize(lambda x, y: x * y)
    assert reads(x, y).tolist() == [6.0] * 3 and reads(x, x).tolist() == [9.0] * 3
    assert reads.captures == 1


OUTSIDE: dict[str, Any] = {"scale": 2.0, "names": ["a"], "elements": numpy.ones(3)}


class Owner:
    scale = 2.0


def _changed(function: Callable[[Any], Any], change: Callable[[], None], captures: int) -> None:
    run, x = heterosis.hybridize(function), ones(3)
    assert shown(run(x)) == shown(function(x))
    change()
    assert shown(run(x)) == shown(function(x)) == shown(run(x))
    assert run.captures == captures


def changed_outside() -> None:
    """What is read from outside."""
    owner, factor = Owner(), 2.0

    def change() -> None:
        nonlocal factor
        factor = 3.0

    _changed(lambda x: x * factor, change, 2)
    _changed(lambda x: x * owner.scale, lambda: setattr(owner, "scale", 3.0), 2)
    _changed(lambda x: x * OUTSIDE["scale"], lambda: OUTSIDE.update(scale=3.0), 2)
    _changed(lambda x: x * len(OUTSIDE["names"]), lambda: OUTSIDE["names"].append("b"), 2)


class Other(Owner):
    scale = 5.0


def changed_in_place() -> None:
    """Classes, code, defaults and gradients."""
    owner, variable = Owner(), ones(3)

    def called(factor: float = 2.0) -> float:
        return factor

    _changed(lambda x: x * owner.scale, lambda: setattr(owner, "__class__", Other), 2)
    _changed(lambda x: x * called(), lambda: setattr(called, "__defaults__", (3.0,)), 2)
    _changed(
        lambda x: x * called(), lambda: setattr(called, "__code__", (lambda factor: 7).__code__), 2
    )
    _changed(lambda x: x if variable.grad is None else x * 2, variable.attach_grad, 2)


@pytest.mark.parametrize(
    "made", ["class Made: scale = 2.0", "Made = type('M', (), {'scale': 2.0})"]
)
def test_a_class_without_a_module_is_no_class_of_pythons(made):
    """What `exec` runs without a module's name says that it is of `builtins`, or of nothing."""
    space: dict[str, Any] = {}
    exec(f"{made}\nowner = Made()", space)  # noqa: S102
    owner, kind = space["owner"], space["Made"]
    _changed(lambda x: x * owner.scale, lambda: setattr(kind, "scale", 3.0), 2)
    _changed(lambda x: x * kind().scale, lambda: setattr(kind, "scale", 4.0), 2)


def changed_elements() -> None:
    """The elements of a NumPy array."""
    elements = numpy.ones(4, "float32")
    _changed(lambda x: x * float(elements.sum()), lambda: elements.fill(4), 2)
    _changed(lambda x: x * elements.shape[0], lambda: setattr(elements, "shape", (2, 2)), 2)
    _changed(lambda x: x * float(elements.sum()), lambda: setattr(elements, "dtype", "int32"), 2)


def forgotten() -> None:
    """What nothing tells of."""
    numbers = iter((2.0, 3.0))
    remembered = functools.lru_cache(lambda: next(numbers))
    remembered()
    run = heterosis.hybridize(lambda x: x * remembered())
    assert run(ones(1)).item() == 2
    remembered.cache_clear()
    assert remembered() == 3 and run(ones(1)).item() == 2 and run.captures == 1


def changed_parameters() -> None:
    """The elements of our arrays, and of parameters."""
    weight, net = ones(3), nn.Dense(2, in_units=3)
    net.initialize()
    _changed(lambda x: x * weight, lambda: weight.__setitem__(0, 5), 1)
    _changed(lambda x: net(x.reshape(1, 3)), lambda: net.weight.set_data(np.ones((2, 3))), 1)


def changed_threads() -> None:
    """The number of threads that plans are made for."""
    before = npx.settings.threads
    try:
        _changed(lambda x: x + 1, lambda: setattr(npx.settings, "threads", before % 2 + 1), 2)
    finally:
        npx.settings.threads = before


CHANGED = {
    "training or prediction, recording or not": changed_mode,
    "which arrays among the arguments share memory": changed_sharing,
    "a number, a text or an object that the function reads from outside, an attribute, an item":
        changed_outside,
    "the class of an object, the code and the defaults of a function, the gradient that an array "
    "from outside has": changed_in_place,
    "the elements of a NumPy array from outside, their type and shape": changed_elements,
    "the elements of an array of ours, of a parameter": changed_parameters,
    "the number of threads": changed_threads,
    "what `functools.lru_cache` has forgotten; which classes an abstract one has registered":
        forgotten,
}  # fmt: skip


# -- what is done with sizes, and for which the program holds -------------------------------------

_WHOLE = (
    "`range(x.shape[0])`, `len(x)`, `int(...)`, `str(...)`, iteration over an array, `math.sqrt(n)`"
)
SIZES = {
    "arithmetic with sizes; shapes, slices and `arange` made of them; a size as an operand": [
        said(lambda x: x.reshape(-1) * (x.shape[0] // 2 + 1), 1),
        said(lambda x: x[: x.shape[0] // 2] + np.zeros((x.shape[0] // 2, 2)), 1, (4, 7, 9)),
        said(lambda x: np.arange(x.shape[0]) / x.size + x.shape[0] / (x[:, 0] + 1), 1),
    ],
    "`x.shape[0] > 3`, `x.shape[0] % 2 == 0`, `x[5]`, operands that fit one another": [
        said(lambda x: x * 2 if x.shape[0] > 3 else x, 2),
        said(lambda x: x * 2 if x.shape[0] % 2 == 0 else x, 2),
        said(lambda x: x[5], 1, (7, 9, 6)),
        Calls(2, lambda x, y: x + y, [(4, 4), (7, 7), (9, 1), (5, 5), (6, 1)],
              lambda n: (ones(n[0]), ones(n[1])), True),
    ],
    _WHOLE: [
        said(lambda x: sum(x * i for i in range(x.shape[0])), 4),
        said(lambda x: x * len(x), 4),
        said(lambda x: x * int(str(x.shape[0])), 4),
        said(lambda x: sum(row for row in x), 3, (4, 3, 2)),
        said(lambda x: x * math.sqrt(x.shape[0]), 4),
    ],
    "`n / 2`, `n ** 0.5`, `trainer.step(n)`, numbers that are returned": [
        said(lambda x: x * (x.shape[0] / 2) + x.shape[0] ** 0.5, 1),
        said(lambda x: (x.shape[0], x.shape[0] / 2, x.shape), 1),
    ],
    "numbers among the arguments that vary: arithmetic, operands, shapes, places in arrays": [
        Calls(ONCE, lambda x, v: (x * (v * 2 + 1) / v, v - 1), (0.5, 2.5, -3.5), beside),
        Calls(ONCE, lambda x, v: np.zeros((v, 2)) + v, (2, 3, 9, 4), beside),
        Calls(ONCE, lambda x, v: x[v] + x[: v + 1].sum(), (2, 3, 9, 4),
              lambda v: (np.arange(12.0), v)),
    ],
    "decisions on such a number, `rate > 0.5`": [
        Calls(3, lambda x, v: x * v if v > 0.5 else x, (0.25, 0.3, 0.75, 0.125, 2.5), beside),
    ],
    "`range(n)`, `math.sqrt(rate)`, `str(rate)` of such a number": [
        Calls(3, lambda x, v: sum(x * i for i in range(v)), (2, 3, 4), beside),
        Calls(3, lambda x, v: x * math.sqrt(v), (2.5, 3.5, 4.5), beside),
        Calls(3, lambda x, v: x * float(str(v)), (2.5, 3.5, 4.5), beside),
    ],
    "extents of 0 and 1": [
        said(lambda x: x + 1, 3, (4, 1, 0, 7, 9)),
    ],
    "extents of arrays with gaps in memory, `x.T` among them": [
        Calls(3, lambda x: x + 1, (2, 3, 4), lambda n: (np.ones((3, n)).T,), True),
    ],
    "whatever raises an error with open extents": [
        said(lambda x: x * int(json.dumps(x.shape[0])), 5, (4, 7, 9, 2)),
    ],
}  # fmt: skip


def completed_shapes() -> None:
    """The shape of a parameter, of which the first call says the rest."""
    net = nn.Dense(3)
    net.initialize()
    net.hybridize(dynamic=True)
    for n in (4, 6, 5):
        assert net(ones(n, 7)).shape == (n, 3)
    assert net._compiled.captures == 1 and net.weight.shape == (3, 7)


def steps_of_trainers() -> None:
    """`trainer.step(n)`, which scales gradients by a size."""
    found = []
    for hybridized in (False, True):
        net = nn.Dense(1, in_units=2, use_bias=False)
        net.initialize("ones")
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})

        def step(x, net=net, trainer=trainer):
            with autograd.record():
                loss = net(x).sum()
            loss.backward()
            trainer.step(x.shape[0])
            return loss

        run = heterosis.hybridize(step, dynamic=True) if hybridized else step
        found.append([run(*rows(n)).item() for n in (4, 7, 9)])
        assert not hybridized or run.captures == 1
    numpy.testing.assert_allclose(*found, rtol=1e-6)


HOLDS = {
    "extents that complete the shape of a parameter": completed_shapes,
    "`n / 2`, `n ** 0.5`, `trainer.step(n)`, numbers that are returned": steps_of_trainers,
}

ROWS = [
    pytest.param(calls, id=f"{row}, {i}")
    for table in (CHANGES, SIZES)
    for row, all_calls in table.items()
    for i, calls in enumerate(all_calls)
]


@pytest.mark.parametrize("calls", ROWS)
def test_calls(calls):
    compiled = heterosis.hybridize(calls.function, dynamic=calls.dynamic)
    for value in (*calls.values, *calls.values):
        arguments = calls.arguments(value)
        assert outcome(compiled, *arguments) == outcome(calls.function, *arguments), value
    assert compiled.captures == calls.captures, list(compiled.captures_why)


@pytest.mark.parametrize("row", [*CHANGED, *HOLDS])
def test_rows_of_their_own(row):
    (CHANGED | HOLDS)[row]()


def _documented(heading: str) -> list[str]:
    """The first cells of the table of the page that begins so."""
    lines = PAGE.read_text().split(f"| {heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [line.split(" | ")[0].removeprefix("| ") for line in lines]


@pytest.mark.parametrize(
    "heading, own", [("what changes", [*CHANGES, *CHANGED]), ("in the function", [*SIZES, *HOLDS])]
)
def test_every_row_of_the_page_has_calls(heading, own):
    assert sorted(_documented(heading)) == sorted(set(own))
