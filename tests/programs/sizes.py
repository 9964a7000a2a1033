"""Random programs at five sizes: with open extents against imperative calls.

    python -m tests.programs.sizes --seed 1 --count 1000

A program is one of those that `generate` gives. Its arguments get other extents, the same for equal
ones. Where results differ, the program is captured for every size, too: what that changes, such as
how a sum is rounded, or what is refused, is no matter of sizes.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy

import heterosis
from heterosis import npx
from heterosis.capture.open_sizes import Dynamic
from heterosis.runtime.errors import HeterosisError
from tests.programs import generate
from tests.programs.meaning import Call
from tests.programs.program import Array, Program, leaves
from tests.programs.worker import Ways, namespace

SIZES = 5
LARGEST = 400  # extents that vary: others are for threads, and take long


def arguments_at(program: Program, rng: numpy.random.Generator) -> Mapping[str, Array]:
    """Arguments in which one extent, or now and then all, is another wherever it stands."""
    shapes = [a.elements.shape for a in program.arguments.values() if a.elements is not None]
    extents = sorted({n for shape in shapes for n in shape if 2 <= n <= LARGEST})
    first = numpy.random.default_rng(len(extents))  # the same one at all sizes
    varied = extents if not extents or rng.random() < 0.1 else [int(first.choice(extents))]
    new = {n: int(rng.choice([n + 1, 2 * n, n - 1, int(rng.integers(1, 40))])) for n in varied}

    def other(array: Array) -> Array:
        if array.elements is None:
            return array
        shape = tuple(new.get(n, n) for n in array.elements.shape)
        return Array(numpy.resize(array.elements, shape), None, array.differentiable)

    return {name: other(array) for name, array in program.arguments.items()}


class Sizes(Ways):
    """A program called at all sizes, one after the other."""

    def imperative(self) -> list[Call | str]:
        """What each call left behind, or the class of its error."""
        return self._seen(lambda function: function)

    def captured(self, dynamic: Dynamic) -> list[Call | str]:
        """The same of calls that are captured, with open extents or for each size."""
        return self._seen(lambda function: heterosis.hybridize(function, dynamic=dynamic))

    def _seen(self, through: Callable[[Any], Any]) -> list[Call | str]:
        found = namespace(self.program)
        function = through(found["program"])
        return [self._at(function, found, turn) for turn in range(len(self.calls))]

    def _at(self, function: Any, found: dict[str, Any], turn: int) -> Call | str:
        try:
            call = self._call(function, self._set(found, turn), turn)
            npx.waitall()
        except (HeterosisError, ValueError, IndexError, TypeError, ZeroDivisionError) as error:
            return type(error).__name__
        return call


def wrong(program: Program, seed: int, number: int) -> Iterator[str]:
    """What open extents change, in a line each."""
    if not list(leaves(program.returned)):  # it records nothing
        return
    rng = numpy.random.default_rng([seed, number, 5])
    calls = [program.arguments, *(arguments_at(program, rng) for _ in range(SIZES - 1))]
    calls += calls[:2]
    sizes = Sizes(program, calls)
    found = sizes.captured("auto")
    if any(_compared(sizes.imperative(), found)):
        yield from _compared(sizes.captured(False), found)


def _compared(wanted: list[Call | str], found: list[Call | str]) -> Iterator[str]:
    for turn, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if isinstance(one, str) or isinstance(other, str):
            if isinstance(one, str) != isinstance(other, str):
                yield f"call {turn}: {_told(other)} instead of {_told(one)}"
            continue
        yield from _differences(turn, one, other)


def _told(call: Call | str) -> str:
    return call if isinstance(call, str) else "results"


def _differences(turn: int, one: Call, other: Call) -> Iterator[str]:
    for (name, want), (_, got) in zip(one.arrays(), other.arrays(), strict=True):
        if want.shape != got.shape or want.dtype != got.dtype:
            yield f"call {turn}, {name}: {got.dtype}{got.shape} for {want.dtype}{want.shape}"
        elif not _close(want, got):
            yield f"call {turn}, {name}: {got.reshape(-1)[:4]} for {want.reshape(-1)[:4]}"


def _close(want: numpy.ndarray, got: numpy.ndarray) -> bool:
    """Equal up to rounding: kernels may be others, and add up in another order."""
    if want.dtype.kind in "iub":
        return bool((want == got).all())
    wide_want, wide_got = want.astype("float64"), got.astype("float64")
    finite = wide_want[numpy.isfinite(wide_want)]
    largest = numpy.abs(finite).max(initial=1.0)
    relative = 1e-10 if want.dtype == numpy.float64 else 2e-4 if want.dtype.itemsize == 4 else 3e-2
    return numpy.allclose(
        wide_want, wide_got, rtol=relative, atol=relative * largest, equal_nan=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    end, failed, done = time.time() + given.seconds, 0, 0
    for number in range(given.first, given.first + given.count):
        if time.time() > end:
            break
        program, done = generate.program(given.seed, number), done + 1
        told = list(wrong(program, given.seed, number))
        if told:
            failed += 1
            print(f"--seed {given.seed} --first {number} --count 1\n{program.source()}")
            print("\n".join(told[:4]), flush=True)
    print(f"{done} programs at {SIZES} sizes, {failed} wrong")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
