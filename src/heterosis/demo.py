"""`python -m heterosis demo`: a network imperative, hybridized, and read from exported files."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from rich.console import Console
from rich.progress import track
from rich.table import Table

import heterosis
from heterosis import _core, np, npx
from heterosis.gluon import nn

_ROUNDS = 5
_INPUTS = 512
_BENCHMARK = Path("benchmarks", "mlp.py")


@dataclass(frozen=True)
class Row:
    """One way to compute the network: seconds a call, and a remark."""

    name: str
    seconds: float
    note: str


def run(calls: int = 1000, chart: str = "heterosis-demo.png", peers: bool = False) -> None:
    """Show how long a network's calls take, as a table and drawn into the file `chart`."""
    console = Console(highlight=False)
    console.print(f"Heterosis {heterosis.__version__}, {_core.threads()} thread(s). The network:")
    net = _network()
    console.print(f"\n{net}\n", markup=False)
    rows = list(_own_rows(net, calls, console))
    rows += _peer_rows(console) if peers else []
    console.print(f"One row of {_INPUTS} numbers, {calls:,} calls and then one wait. Results agree")
    console.print("with the imperative ones within the difference shown:")
    console.print(_table(rows))
    _draw(rows, chart, console)


# -- the network, in several ways -----------------------------------------------------------------


def _network() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    net.initialize()
    return net


def _own_rows(net: nn.HybridSequential, calls: int, console: Console) -> Iterator[Row]:
    x = np.random.normal(size=(1, _INPUTS))
    expected = net(x).asnumpy()

    def row(name: str, net: Callable[[Any], Any], x: Any, note: str = "") -> Row:
        apart = numpy.abs(numpy.asarray(net(x)) - expected).max()
        seconds = _seconds_a_call(name, lambda: net(x), calls, console)
        return Row(name, seconds, f"{note}within {apart:.0e}")

    yield row("imperative", net, x)
    net.hybridize()
    compiling = _seconds(lambda: net(x))
    yield row("hybridized", net, x, f"compiled in {compiling * 1e3:.0f} ms, ")
    yield row("exported, loaded back", _exported_and_loaded(net), x)
    yield row("NumPy", _in_numpy(net), x.asnumpy())


def _exported_and_loaded(net: nn.HybridSequential) -> nn.SymbolBlock:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/my_mlp"
        net.export(path)
        loaded = nn.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
    loaded.hybridize()
    return loaded


def _in_numpy(net: nn.HybridSequential) -> Callable[[Any], Any]:
    *hidden, last = [(p.weight.data().asnumpy().T, p.bias.data().asnumpy()) for p in net]

    def call(x: Any) -> Any:
        for weight, bias in hidden:
            x = numpy.maximum(x @ weight + bias, 0)
        return x @ last[0] + last[1]

    return call


# -- timing ---------------------------------------------------------------------------------------


def _seconds(call: Callable[[], Any], calls: int = 1) -> float:
    """Time until all of `calls` results are computed."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    npx.waitall()
    return time.perf_counter() - start


def _seconds_a_call(name: str, call: Callable[[], Any], calls: int, console: Console) -> float:
    turns: Iterable[int] = range(_ROUNDS)
    if console.is_terminal:
        turns = track(turns, name, console=console, transient=True)
    return statistics.median(_seconds(call, calls) / calls for _ in turns)


def _peer_rows(console: Console) -> list[Row]:
    """The same network in other libraries, as the benchmark measures it."""
    clones = (Path.cwd(), Path(__file__).parents[2])
    scripts = [clone / _BENCHMARK for clone in clones if (clone / "src" / "heterosis").is_dir()]
    script = next((script for script in scripts if script.exists()), None)
    if script is None:
        console.print(f"No peers: {_BENCHMARK} measures them; start in a clone of the sources.\n")
        return []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, str(script), "--rounds", "1", "--json", str(report)]
        command += ["--threads", str(_core.threads())]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            console.print(f"No peers: {script} has failed.\n")
            return []
        (result,) = json.loads(report.read_text())["results"]
    (seconds,) = result["seconds"].values()
    return [
        Row(name, *found, f"{result['versions'][name]}, its own process")
        for name, found in seconds.items()
    ]


# -- what is shown --------------------------------------------------------------------------------


def _table(rows: list[Row]) -> Table:
    table = Table()
    table.add_column("")
    table.add_column("microseconds a call", justify="right")
    table.add_column("speed", justify="right")
    table.add_column("")
    for row in rows:
        speed = f"{rows[0].seconds / row.seconds:.2f} x"
        table.add_row(row.name, f"{row.seconds * 1e6:.2f}", speed, row.note)
    return table


def _draw(rows: list[Row], path: str, console: Console) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        console.print("No chart: it needs matplotlib, pip install 'heterosis\\[plot]'.")
        return
    figure = Figure((7, 1 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh([row.name for row in rows], [row.seconds * 1e6 for row in rows])
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.margins(x=0.12)
    axes.invert_yaxis()
    axes.set_xlabel("microseconds a call, less is better")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        console.print(f"No chart: {error}", markup=False)
        return
    console.print(f"Chart: {path}", soft_wrap=True)
