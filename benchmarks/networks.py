"""What the benchmarks' networks have in common: inputs, first values of parameters, files."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy

_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDER = "HETEROSIS_BENCHMARK_FOLDER"  # where `written` has put the parameters

# Channels of GoogLeNet's four paths, block by block; None is a pooling that halves the image.
INCEPTIONS = (
    (64, (96, 128), (16, 32), 32), (128, (128, 192), (32, 96), 64), None,
    (192, (96, 208), (16, 48), 64), (160, (112, 224), (24, 64), 64),
    (128, (128, 256), (24, 64), 64), (112, (144, 288), (32, 64), 64),
    (256, (160, 320), (32, 128), 128), None,
    (256, (160, 320), (32, 128), 128), (384, (192, 384), (48, 128), 128),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A network, by its name in both libraries' `NETWORKS`, and the shape of its input."""

    title: str
    network: str
    shape: tuple[int, ...]
    words: int = 0  # the input is numbers of words below this

    def input(self) -> numpy.ndarray:
        """The same input in every process."""
        generator = numpy.random.default_rng(1)
        if self.words:
            return generator.integers(0, self.words, self.shape, dtype="int32")
        return generator.normal(size=self.shape).astype("float32")


def first_value(name: str, shape: tuple[int, ...], generator) -> numpy.ndarray:
    """Values for a parameter that keep the signal's size through deep networks."""
    if len(shape) > 1:
        values = generator.normal(0, math.sqrt(2 / math.prod(shape[1:])), shape)
    elif name.endswith(("gamma", "var")):
        values = generator.uniform(0.5, 1.5, shape)
    else:
        values = generator.normal(0, 0.1, shape)
    return values.astype("float32")


def place(name: str) -> str:
    """The path of a file among those that were written."""
    return os.path.join(os.environ[_FOLDER], name)


def values_of(network: str) -> list[numpy.ndarray]:
    """The network's parameters and running statistics, in order."""
    with numpy.load(place(network + ".npz")) as file:
        return [file[name] for name in file.files]


def hybridized(net, case: Case):
    """A Gluon network as a contender: (version, start, wait, to_numpy); `start()` gives the
    function to call."""
    import heterosis
    from heterosis import np, npx

    given = case.input()
    x = np.array(given, dtype=given.dtype)

    def start():
        net.hybridize()
        return lambda: net(x)

    return heterosis.__version__, start, npx.waitall, lambda y: y.asnumpy()


def run_script(command: list[str], script: str, arguments: list[str]) -> str:
    """What a script of this folder prints."""
    command = [*command, os.path.join(_HERE, script), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed.")
    return done.stdout


@contextlib.contextmanager
def files():
    """A folder for what is written, with an empty cache, where the workers look."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_FOLDER] = folder
        os.environ["HETEROSIS_CACHE"] = place("objects")
        yield


@contextlib.contextmanager
def written(benchmark: str, models: list[str]):
    """A folder with the parameters of the benchmark's models and an empty cache, for the workers.

    Gives the floating-point operations of each model for its input.
    """
    with files():
        command = [sys.executable, "-m", "heterosis", "run"]
        found = run_script(command, "networks_gluon.py", [benchmark, *models]).split()
        yield {key: int(count) for key, count in zip(found[::2], found[1::2])}
