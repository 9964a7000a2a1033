"""What the cells for PyTorch and TensorFlow do, as the same steps in Heterosis.

A cell is known by a digest of its text: one that changes needs a look, and a new digest here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy

import heterosis
from heterosis import np, npx
from heterosis.gluon import nn
from heterosis.utils import Benchmark
from tests.seeds.documents import PYTORCH, TENSORFLOW, Cell

_CALLS = 1000


@dataclass
class Page:
    """What the cells for one framework leave for the next ones, and the shell."""

    shell: Callable[[str], None]
    names: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return self.names[name]


Step = Callable[[Page], None]
STEPS: dict[str, Step] = {}


def told(cell: Cell) -> Step | None:
    """The steps of a cell for another framework, if they are here."""
    return STEPS.get(_digest(cell)) if cell.tab in (PYTORCH, TENSORFLOW) else None


def _digest(cell: Cell) -> str:
    """Of the code; comments, which are translated, do not count."""
    lines = (line for line in cell.code.splitlines() if not line.lstrip().startswith("#"))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def retells(*digests: str) -> Callable[[Step], Step]:
    """Let a function stand for the cells with these digests."""

    def register(step: Step) -> Step:
        STEPS.update(dict.fromkeys(digests, step))
        return step

    return register


def perceptron() -> nn.HybridSequential:
    """512 numbers to 2, through two layers."""
    net = nn.HybridSequential()
    net.add(nn.Dense(256, in_units=512, activation="relu"), nn.Dense(128, activation="relu"))
    net.add(nn.Dense(2))
    net.initialize()
    return net


def _near(a: Any, b: Any) -> None:
    numpy.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


def _same_bits(a: Any, b: Any) -> None:
    assert a.dtype == b.dtype and a.asnumpy().tobytes() == b.asnumpy().tobytes()


def _called_often(net: Any, x: Any, words: str) -> None:
    with Benchmark(words):
        for _ in range(_CALLS):
            net(x)
        npx.waitall()


# -- compiling a network --------------------------------------------------------------------------


@retells("bd21e397d367", "b5cc5f63d43f")
def a_function_gives_the_network(page: Page) -> None:
    page.names |= {"make": perceptron, "x": np.random.normal(size=(1, 512)), "net": perceptron()}
    assert page.net(page.x).shape == (1, 2)


@retells("bbfd22031314")
def the_network_is_compiled(page: Page) -> None:
    before = page.net(page.x)
    page.names["net"] = heterosis.hybridize(page.net)
    _near(page.net(page.x), before)


@retells("55f73f336988")
def the_network_is_compiled_by_call_and_by_decorator(page: Page) -> None:
    eager, x = page.net, page.x
    before = eager(x)

    @heterosis.hybridize
    def decorated(x):
        return eager(x)

    page.names["net"] = heterosis.hybridize(eager)
    for compiled in (decorated, page.net):
        _near(compiled(x), before)
        _same_bits(compiled(x), compiled(x))


# -- timing it ------------------------------------------------------------------------------------


@retells("1c8d8f548156")
def a_stopwatch_prints_what_a_block_took(page: Page) -> None:
    assert callable(Benchmark("words").__exit__)


@retells("cf3caa0dcb8f", "6c103237072d")
def many_calls_are_timed_before_and_after(page: Page) -> None:
    net = page.make()
    _called_often(net, page.x, "imperative")
    before = net(page.x)
    page.names["net"] = net = heterosis.hybridize(net)
    _called_often(net, page.x, "hybridized")
    _near(net(page.x), before)


# -- saving it ------------------------------------------------------------------------------------


@retells("6e1cb6f3cac9")
def the_compiled_network_is_saved(page: Page) -> None:
    page.net.save("my_mlp")
    page.shell("ls -lh my_mlp*")
    _same_bits(heterosis.load("my_mlp")(page.x), page.net(page.x))


@retells("7037ee4c82c5")
def a_model_with_named_inputs_is_saved(page: Page) -> None:
    net = page.make()
    heterosis.save(net, "my_mlp", page.x)
    page.shell("ls -lh my_mlp*")
    loaded = heterosis.load("my_mlp")
    assert {name: str(type_) for name, type_ in loaded.inputs.items()} == {"x": "float32[n0, 512]"}
    assert [str(type_) for type_ in loaded.outputs.values()] == ["float32[n0, 2]"]
    net = heterosis.hybridize(net)
    _same_bits(loaded(x=page.x), net(page.x))


# -- the queue behind it --------------------------------------------------------------------------


@retells("989953b6795a")
def the_modules_are_there(page: Page) -> None:
    assert np.ndarray and npx.waitall and nn.Dense


@retells("ad4000a7c3b8")
def products_are_timed_beside_numpy(page: Page) -> None:
    a = np.random.normal(size=(1000, 1000))
    np.dot(a, a).wait_to_read()  # compiles
    with Benchmark("numpy"):
        for _ in range(10):
            b = numpy.random.normal(size=(1000, 1000))
            numpy.dot(b, b)
    with Benchmark("heterosis"):
        for _ in range(10):
            a = np.random.normal(size=(1000, 1000))
            np.dot(a, a)


@retells("b6324cf57575")
def products_are_waited_for(page: Page) -> None:
    with Benchmark():
        for _ in range(10):
            a = np.random.normal(size=(1000, 1000))
            product = np.dot(a, a)
        npx.waitall()
    wanted = a.asnumpy()
    numpy.testing.assert_allclose(product.asnumpy(), wanted @ wanted, rtol=1e-3, atol=1e-3)


@retells("51cee7408743")
def a_result_depends_on_two_others(page: Page) -> None:
    x, y = np.ones((1, 2)), np.ones((1, 2))
    z = x * y + 2
    assert z.asnumpy().tolist() == [[3, 3]]
