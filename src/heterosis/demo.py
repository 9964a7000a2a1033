"""`python -m heterosis demo`: small programs, run by the engine and timed beside NumPy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy
from rich.console import Console
from rich.progress import track
from rich.table import Table

from heterosis import _core, np, npx

_ROUNDS = 5
_LAYERS = (512, 256, 128, 2)
_PRODUCTS, _SIDE = 10, 1000


# -- the programs ---------------------------------------------------------------------------------


def add(a: Any, b: Any) -> Any:
    """The sum of two arrays, or of two numbers."""
    return a + b


def fancy_func(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Four numbers added up in three steps."""
    e = add(a, b)
    f = add(c, d)
    g = add(e, f)
    return g


class Perceptron:
    """A multilayer perceptron, 512-256-128-2, written with `library`'s arrays (np or NumPy)."""

    def __init__(self, library: Any, generator: numpy.random.Generator):
        self.library = library
        self.layers = [
            (_array(library, generator.normal(0, n**-0.5, (n, m))), _array(library, [0.0] * m))
            for n, m in pairwise(_LAYERS)
        ]

    def __call__(self, x: Any) -> Any:
        """The two outputs for a row of 512 inputs."""
        for weight, bias in self.layers[:-1]:
            x = self.library.maximum(x @ weight + bias, 0)
        weight, bias = self.layers[-1]
        return x @ weight + bias


def _array(library: Any, values: Any) -> Any:
    return library.array(numpy.asarray(values, "float32"))


# -- timing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """One program, ours and NumPy's."""

    name: str
    ours: Callable[[], Any]
    numpys: Callable[[], Any]


def seconds_a_call(call: Callable[[], Any], calls: int) -> float:
    """Time until all of `calls` results are computed, a call."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    npx.waitall()
    return (time.perf_counter() - start) / calls


def _medians(contest: Contest, calls: int, console: Console) -> tuple[float, float]:
    """Seconds a call: ours, NumPy's. The rounds alternate, so that both meet the same machine."""
    contest.ours()  # compiles
    turns: Iterable[int] = range(_ROUNDS)
    if console.is_terminal:
        turns = track(turns, contest.name, console=console, transient=True)
    rounds = [
        (seconds_a_call(contest.ours, calls), seconds_a_call(contest.numpys, calls)) for _ in turns
    ]
    ours, numpys = zip(*rounds, strict=True)
    return statistics.median(ours), statistics.median(numpys)


def _contests() -> list[Contest]:
    ours = [np.array([[i, i]]) for i in (1, 2, 3, 4)]
    numpys = [numpy.full((1, 2), i, "float32") for i in (1, 2, 3, 4)]
    row = numpy.random.default_rng(0).normal(size=(1, _LAYERS[0]))
    x, x_numpy = _array(np, row), _array(numpy, row)
    net = Perceptron(np, numpy.random.default_rng(1))
    net_numpy = Perceptron(numpy, numpy.random.default_rng(1))
    return [
        Contest("x + 1", lambda: ours[0] + 1, lambda: numpys[0] + 1),
        Contest("fancy_func(a, b, c, d)", lambda: fancy_func(*ours), lambda: fancy_func(*numpys)),
        Contest("net(x), a perceptron", lambda: net(x), lambda: net_numpy(x_numpy)),
    ]


# -- what is shown --------------------------------------------------------------------------------


def run(calls: int = 1000) -> None:
    """Show the programs, their results and their timings."""
    console = Console(highlight=False)
    console.print(f"Heterosis on {_core.threads()} thread(s), NumPy {numpy.__version__}\n")
    _show_results(console)
    _show_timings(console, calls)
    _show_asynchronous(console)


def _show_results(console: Console) -> None:
    total = fancy_func(*(np.array(i) for i in (1, 2, 3, 4)))
    console.print(f"fancy_func(1, 2, 3, 4) = {total.item():g}")
    row = numpy.random.default_rng(0).normal(size=(1, _LAYERS[0]))
    y = Perceptron(np, numpy.random.default_rng(1))(_array(np, row))
    expected = Perceptron(numpy, numpy.random.default_rng(1))(_array(numpy, row))
    apart = numpy.abs(y.asnumpy() - expected).max()
    console.print(f"net(x) = {y}, at most {apart:.1e} from NumPy's result\n")


def _show_timings(console: Console, calls: int) -> None:
    measured = [(contest.name, *_medians(contest, calls, console)) for contest in _contests()]
    console.print(f"Microseconds a call, median of {_ROUNDS} rounds of {calls:,} calls:")
    rows = [
        (name, f"{ours * 1e6:.2f}", f"{numpys * 1e6:.2f}", f"{numpys / ours:.2f} x")
        for name, ours, numpys in measured
    ]
    console.print(_table(("program", "Heterosis", "NumPy", "NumPy / Heterosis"), rows), "")


def _show_asynchronous(console: Console) -> None:
    a = _array(np, numpy.random.default_rng(2).normal(size=(_SIDE, _SIDE)))
    (a @ a).wait_to_read()  # compiles
    start = time.perf_counter()
    products = [a @ a for _ in range(_PRODUCTS)]
    queued = time.perf_counter()
    products[0].wait_to_read()
    first = time.perf_counter()
    npx.waitall()
    done = time.perf_counter()
    rows = [
        ("the loop that asks for them returns", f"{(queued - start) * 1e3:.2f}"),
        ("products[0].wait_to_read() returns", f"{(first - start) * 1e3:.2f}"),
        ("npx.waitall() returns", f"{(done - start) * 1e3:.2f}"),
    ]
    console.print(f"{_PRODUCTS} products of {_SIDE} x {_SIDE} matrices are queued, then computed:")
    console.print(_table(("what happens", "after milliseconds"), rows))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table()
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    return table
