"""A process that runs programs in all ways that one target has, and tells what it saw.

It takes jobs from a connection, because a wrong program may end the process that runs it.
"""

from __future__ import annotations

import importlib
import io
import linecache
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from multiprocessing.connection import Connection
from typing import Any

import numpy

import heterosis
from heterosis import autograd, gluon, models, np, npx
from heterosis.backends.heterosis_library import Library
from heterosis.backends.native.codegen.kernels import convolution
from heterosis.backends.native.loops import inlining
from heterosis.backends.native.stages import channels_last
from heterosis.ir.types import is_float, numpy_dtype
from heterosis.ops import REGISTRY
from heterosis.runtime.settings import settings
from tests.backends.reference import NAME as REFERENCE
from tests.programs import places
from tests.programs.coverage import Lines
from tests.programs.gradients import weights
from tests.programs.meaning import Call, aliases, made
from tests.programs.places import numbers_set
from tests.programs.program import Array, Program, leaves
from tests.threads.together import together

THREADS = 4
_SEED = 1
FILE = "<program>"  # what functions are found in: their statements are read there


def operation(name: str) -> Any:
    """An operation that stands in no public module."""
    return REGISTRY[name].operation


def namespace(program: Program) -> dict[str, Any]:
    """What the function finds outside, fresh."""
    outside = made(program.outside, np)
    modules = {"np": np, "npx": npx, "autograd": autograd, "gluon": gluon, "numpy": numpy}
    found = {
        "__name__": "program",
        "heterosis": heterosis,
        "operation": operation,
        **modules,
        **outside,
    }
    _executed("\n".join(places.made(program.numbers)), "<places>", found)
    for name in program.variables():
        if name in outside:
            outside[name].attach_grad()
    _executed(program.source(), FILE, found)
    return found


def _executed(source: str, file: str, found: dict[str, Any]) -> None:
    """Run lines whose functions are captured: they are read in what stands for a file."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), found)  # noqa: S102


class Ways:
    """The ways of running a program. Each gives what every call left behind."""

    def __init__(self, program: Program, calls: list[Mapping[str, Array]]):
        self.program, self.calls = program, calls
        self._context = npx.cpu()  # of all arrays
        self._heads: list[Any] = []  # what the results of the last call received as gradients

    def eager(self) -> list[Call]:
        found = namespace(self.program)
        return self._called(found["program"], found)

    def hybridized(self) -> list[Call]:
        found = namespace(self.program)
        return self._called(heterosis.hybridize(found["program"]), found)

    def elsewhere(self) -> list[Call]:
        """Hybridized, with all arrays on a context that is not the current one."""
        found = self._made_on(npx.cpu(1))
        return self._called(heterosis.hybridize(found["program"]), found)

    def gpu_eager(self) -> list[Call]:
        found = self._made_on(npx.gpu(0))
        with npx.gpu(0):  # what it makes of nothing is there too
            return self._called(found["program"], found)

    def gpu_hybridized(self) -> list[Call]:
        found = self._made_on(npx.gpu(0))
        return self._called(heterosis.hybridize(found["program"]), found)

    def _made_on(self, context: Any) -> dict[str, Any]:
        """What the function finds outside, there; arguments will be there too."""
        self._context = context
        with context:
            return namespace(self.program)

    def reference(self) -> list[Call]:
        found = namespace(self.program)
        return self._called(heterosis.hybridize(found["program"], backend=REFERENCE), found)

    def xla(self) -> list[Call]:
        found = namespace(self.program)
        return self._called(heterosis.hybridize(found["program"], backend="xla"), found)

    def loaded(self) -> list[Call]:
        found = namespace(self.program)
        compiled = heterosis.hybridize(found["program"])
        self._call(compiled, self._set(found, 0), 0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            heterosis.save(compiled, path)
            loaded = heterosis.load(path)
        return self._called(loaded, found, shares=not self.program.outside)

    def _for_file(self) -> tuple[Callable[..., Any], list[dict[str, Any]], list[Any]]:
        """The function, the arguments of all calls, and the elements of what is outside."""
        found = namespace(self.program)
        self._set(found, 0)
        around = {name: found[name] for name in self.program.outside}
        inputs = [made(given, np, around) for given in self.calls]
        return found["program"], inputs, [array.asnumpy() for array in around.values()]

    def exported(self) -> list[Call]:
        """As a native library, which draws what is drawn after `np.random.seed(seed)`."""
        function, inputs, outside = self._for_file()
        with tempfile.TemporaryDirectory() as folder:
            path, _ = heterosis.export(
                heterosis.hybridize(function),
                os.path.join(folder, "program"),
                *inputs[0].values(),
            )
            calls = []
            with Library(path) as library:
                for given in inputs:
                    arguments = [array.asnumpy() for array in given.values()]
                    (entry,) = library.entries.values()
                    seed = [numpy.array(_SEED, "int64")] * (len(entry.inputs) - len(arguments))
                    results = library(*arguments, *seed)
                    results = list(results) if isinstance(results, tuple) else [results]
                    for i, output in enumerate(entry.outputs):
                        if output.dtype == "bfloat16":  # NumPy has none: the bits
                            results[i] = results[i].view(numpy_dtype(output.dtype))
                    calls.append(Call(results, arguments, outside))
        return calls

    def onnx(self) -> list[Call]:
        """Written as an ONNX file, which is read again: what is left in arguments are results."""
        function, inputs, outside = self._for_file()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.onnx")
            models.to_onnx(heterosis.hybridize(function), path, *inputs[0].values())
            read = models.from_onnx(path)
        calls = []
        for given in inputs:
            arrays = dict(zip(read.inputs, given.values(), strict=True))
            results = leaves(read(*arrays.values()))
            named = dict(zip(read.outputs, results, strict=True))
            after = {name: named.pop(f"{name} after", array) for name, array in arrays.items()}
            told = ([a.asnumpy() for a in some] for some in (named.values(), after.values()))
            calls.append(Call(*told, outside))
        return calls

    def other_threads(self) -> list[Call]:
        before = settings.threads
        settings.threads = 1 if before > 1 else 2
        try:
            return self.hybridized()
        finally:
            settings.threads = before

    def threads(self) -> list[Call]:
        """Hybridized, and called by several threads at once, its first call too."""
        found = namespace(self.program)
        compiled = heterosis.hybridize(found["program"])
        return [self._together(compiled, found, turn) for turn in range(len(self.calls))]

    def _together(self, function: Callable[..., Any], found: dict[str, Any], turn: int) -> Call:
        self._set(found, turn)
        calls: list[Call] = together(lambda _: self._call(function, found, turn), THREADS)
        for call in calls[1:]:
            assert call.error == calls[0].error, f"{call.error} in some threads"
            for (name, one), (_, other) in zip(calls[0].arrays(), call.arrays(), strict=True):
                assert one.tobytes() == other.tobytes(), f"{name} differs between threads"
        return calls[0]

    def _called(
        self, function: Callable[..., Any], found: dict[str, Any], *, shares: bool = True
    ) -> list[Call]:
        """All calls. A file holds copies of what is outside: nothing is shared with it."""
        calls = [
            self._call(function, self._set(found, turn), turn) for turn in range(len(self.calls))
        ]
        if self.program.mode == "plain" and shares and not self.program.has_control:
            self._add_aliases(calls[-1])
        if self.program.mode == "gradient":
            self._check_own_memory()
        return calls

    def _add_aliases(self, call: Call) -> None:
        """Add to what the last call left behind who changes with whom."""
        call.aliases = [numpy.array(changed) for changed in aliases(*self._last)]

    def _check_own_memory(self) -> None:
        """Write to every gradient of the last call: no other array may change with it."""
        gradients, others = self._gradients, [*self._last[1], *self._heads]
        for i, changed in enumerate(aliases(gradients, [*gradients, *others])):
            found = [n for n, does in enumerate(changed) if does and n != i]
            assert not found, f"gradient {i} shares memory with {found} of gradients and arrays"

    def _set(self, found: dict[str, Any], turn: int) -> dict[str, Any]:
        """Where the function finds things, with the numbers that a call is to find there."""
        _executed("\n".join(numbers_set(self.program.at(turn).numbers)), f"<set {turn}>", found)
        return found

    def _call(self, function: Callable[..., Any], found: dict[str, Any], turn: int) -> Call:
        around = {name: found[name] for name in self.program.outside}
        with self._context:
            arguments = made(self.calls[turn], np, around)
        np.random.seed(_SEED)
        with _heard(self.program) as told:
            results, gradients, error = self._results(function, arguments)
        outside = list(around.values())
        arrays = (results, list(arguments.values()), outside, gradients)
        self._check_contexts([a for of in arrays for a in of])
        self._last = results, [*results, *arguments.values(), *outside]
        self._gradients = gradients
        seen = ([a.asnumpy() for a in of] for of in arrays)
        return Call(*seen, error=error, printed=re.findall(r"^p\d+", told.getvalue(), re.MULTILINE))

    def _results(
        self, function: Callable[..., Any], arguments: dict[str, Any]
    ) -> tuple[list[Any], list[Any], str]:
        """What a call gives: results, gradients, and the error of an index that it refuses."""
        try:
            if self.program.mode == "gradient":
                results, gradients = self._recorded(function, arguments)
            else:
                results, gradients = list(leaves(function(*arguments.values()))), []
            if self.program.mode == "inside":
                heads = len(list(leaves(self.program.returned)))
                results, gradients = results[:heads], results[heads:]
            for array in (*results, *gradients):
                array.wait_to_read()
            return results, gradients, ""
        except IndexError:
            if not self.program.refused:
                raise
            return [], [], "IndexError"

    def _check_contexts(self, arrays: list[Any]) -> None:
        others = [a.ctx for a in arrays if a.ctx != self._context]
        assert not others, f"arrays are on {others}; expected {self._context}"

    def _recorded(
        self, function: Callable[..., Any], arguments: dict[str, Any]
    ) -> tuple[list[Any], list[Any]]:
        """The results of a call that is recorded, and the gradients of their weighed sum; or those
        of the weighed sum of these."""
        variables = [arguments[name] for name in self.program.variables()]
        for variable in variables:
            variable.attach_grad()
        with autograd.record(train_mode=False):
            results = list(leaves(function(*arguments.values())))
            heads = _differentiable(results)
            if self.program.twice and heads:
                heads = _differentiable(
                    autograd.grad(heads, variables, _weights(heads), create_graph=True)
                )
        self._heads = _weights(heads)
        if heads and len(self.program.steps) % 2:
            return results, autograd.grad(heads, variables, self._heads)
        if heads:
            autograd.backward(heads, self._heads)
        return results, [v.grad for v in variables]


@contextmanager
def _heard(program: Program) -> Iterator[io.StringIO]:
    """What a call prints: in a thread of its own it would be what all of them do."""
    told = io.StringIO()
    with redirect_stdout(told) if program.prints else nullcontext():
        yield told


def _differentiable(arrays: list[Any]) -> list[Any]:
    """Those that gradients flow from."""
    return [a for a in arrays if a._autograd is not None and is_float(a.dtype.name)]


def _weights(heads: list[Any]) -> list[Any]:
    return [np.array(weights(h.shape), h.dtype, h.ctx) for h in heads]


def observe(program: Program, calls: list[Mapping[str, Array]], ways: list[str]) -> dict[str, Any]:
    """What each way gave, or the error that it ended with."""
    found: dict[str, Any] = {}
    for way in ways:
        try:
            found[way] = getattr(Ways(program, calls), way)()
            npx.waitall()
        except Exception as error:  # noqa: BLE001 - all are told
            found[way] = (type(error).__name__, str(error), traceback.format_exc())
    return found


def turn_everything() -> None:
    """Let convolutions keep their channels last as if arrays were turned for nothing, and multiply
    tiles of results, and sum up the gradients of filters by tiles, wherever there are such; and let
    values stand in memory after few steps, as those of very long programs do."""
    channels_last._TURNING, channels_last._TURNING_WINDOWS = 0, -1e9
    # The package's function of that name hides the module.
    choose = importlib.import_module(f"{convolution.__name__}.choose")
    channels_last._TILES_WORTH = choose._TILES_WORTH = 1e3
    inlining._MOST_NESTED = 5


def main(descriptor: str, traced: str, turned: str = "") -> None:
    """Serve a connection: see `Worker` for the rest."""
    connection, lines = Connection(int(descriptor)), Lines()
    if traced == "traced":
        lines.start()
    if turned:
        turn_everything()
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        connection.send(observe(*job) if job else (dict(lines.seen), lines.operations))


if __name__ == "__main__":
    main(*sys.argv[1:])
