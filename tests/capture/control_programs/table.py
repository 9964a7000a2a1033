"""The table of programs whose arrays decide how they go on, and how one of them is called."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import autograd, np

SHORT = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)  # loops over it are unrolled
LONG = numpy.linspace(-1, 1, 21, dtype="float32").reshape(7, 3)  # and these become scans
SHIFTS = (0.0, 0.4, -0.6, 2.5)


@dataclasses.dataclass(frozen=True)
class Program:
    """A function of `x`, which is shifted, and of `others`; `gradient` says whether it has one, and
    `joined` that hybridized, both branches' results are of one type, and eagerly of two."""

    function: Callable[..., Any]
    x: numpy.ndarray
    others: tuple[numpy.ndarray, ...]
    gradient: bool
    joined: bool


PROGRAMS: dict[str, Program] = {}


def program(
    *others: Any, x: Any = SHORT, gradient: bool = True, joined: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function into the table."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        assert function.__name__ not in PROGRAMS, function.__name__
        given = tuple(map(numpy.asarray, others))
        PROGRAMS[function.__name__] = Program(function, numpy.asarray(x), given, gradient, joined)
        return function

    return register


def flat(found: Any) -> list[Any]:
    """The arrays of a result, and numbers as arrays."""
    if isinstance(found, dict):
        return flat(list(found.values()))
    if isinstance(found, list | tuple):
        return [array for one in found for array in flat(one)]
    return [found if isinstance(found, np.ndarray) else np.array(found)]


def loss_of(found: Any) -> Any:
    """A number that depends on all floats of a result."""
    heads = [np.sum(a * a) for a in flat(found) if a.dtype in ("float32", "float64")]
    return sum((head.astype("float32") for head in heads[1:]), heads[0].astype("float32"))


def called(function: Callable[..., Any], program: Program, shift: float) -> list[Any]:
    """The results of a call; with the gradient, if there is one, and what `x` holds behind it."""
    np.random.seed(7)
    given = np.array(program.x + numpy.asarray(shift, program.x.dtype), dtype=program.x.dtype)
    others = [np.array(one, dtype=one.dtype) for one in program.others]
    if not program.gradient:
        return [*(a.asnumpy() for a in flat(function(given, *others))), given.asnumpy()]
    given.attach_grad()
    with autograd.record():
        found = function(given, *others)
        loss = loss_of(found)
    loss.backward()
    return [*(a.asnumpy() for a in flat(found)), given.asnumpy(), given.grad.asnumpy()]


def agree(program: Program, found: list[Any], expected: list[Any], tolerance: float = 2e-5) -> None:
    """Check that two calls have given the same, up to rounding."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype or program.joined
        numpy.testing.assert_allclose(one, other, rtol=tolerance, atol=2e-6)
