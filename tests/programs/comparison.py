"""Whether what was observed is what a program means, within what rounding may do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from tests.programs.meaning import UNITS, Call, Expected


def differences(found: list[Call], expected: Expected, against: list[Call]) -> Iterator[str]:
    """What differs from `against`, said in a line each; `expected` says by how much it may."""
    known = against is expected.base
    for few in (expected.FEW, expected.MANY):
        noisy = expected.noisy(few)
        told = list(_differences(found, against, expected.base, noisy, known=known))
        if not told:
            return
    yield from told


def _differences(
    found: list[Call],
    against: list[Call],
    base: list[Call],
    noisy: list[list[Call]],
    *,
    known: bool,
) -> Iterator[str]:
    for turn, call in enumerate(found):
        runs = [run[turn] for run in noisy]
        if any(run.error != base[turn].error for run in runs):
            return  # rounding decides whether there is a result, and what comes after
        if call.error != against[turn].error:
            yield f"call {turn}: {_ending(call)} instead of {_ending(against[turn])}"
            return
        if call.error != base[turn].error:
            return
        printed = against[turn].printed
        if call.printed != printed and all(run.printed == base[turn].printed for run in runs):
            yield f"call {turn}: prints {call.printed} instead of {printed}"
        for i, (name, array) in enumerate(call.arrays()):
            wanted, exact = against[turn].arrays()[i][1], base[turn].arrays()[i][1]
            spread = [run.arrays()[i][1] for run in runs]
            told = _difference(array, wanted, exact, spread, known=known)
            if told:
                yield f"call {turn}, {name}: {told}"


def _ending(call: Call) -> str:
    return call.error or "results"


def _difference(
    found: numpy.ndarray,
    wanted: numpy.ndarray,
    exact: numpy.ndarray,
    noisy: list[numpy.ndarray],
    *,
    known: bool,
) -> str:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    wrong = _wrong(found, wanted, exact, noisy, known=known)
    if not wrong.any():
        return ""
    where = tuple(int(i) for i in numpy.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size}, {list(where)} is {found[where]} for {wanted[where]}"
    )


def _wrong(
    found: numpy.ndarray,
    wanted: numpy.ndarray,
    exact: numpy.ndarray,
    noisy: list[numpy.ndarray],
    *,
    known: bool,
) -> numpy.ndarray:
    """Where elements differ by more than rounding. If the numbers are not `known`, random ones
    being others in NumPy, what cancels in one place there does so in another one here."""
    unit = UNITS.get(wanted.dtype.name)
    if unit is None:
        moves = numpy.zeros(wanted.shape, bool)
        for other in noisy:
            moves |= other != exact
        return (found != wanted) & ~(moves if known else moves.any())
    found, wanted, exact = (a.astype("float64") for a in (found, wanted, exact))
    spread, moves = _spread(exact, noisy)
    if not known:
        spread, moves = spread.max(initial=0.0), moves.any()
    near = 6 * spread + 4 * unit * numpy.abs(wanted) + _least(unit)
    near = numpy.where(numpy.isfinite(near), near, 0)
    with numpy.errstate(all="ignore"):
        far = numpy.abs(found - wanted) > near
    return ((_kind(found) != _kind(wanted)) | ((_kind(wanted) == 0) & far)) & ~moves


def _spread(
    exact: numpy.ndarray, noisy: list[numpy.ndarray]
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """By how much noise moves each element, and whether it makes it another kind of number."""
    kind, moves = _kind(exact), numpy.zeros(exact.shape, bool)
    spread = numpy.zeros(exact.shape)
    with numpy.errstate(all="ignore"):
        for other in noisy:
            other = other.astype("float64")
            moves |= _kind(other) != kind
            spread = numpy.fmax(spread, numpy.abs(other - exact))
    return spread, moves


def _kind(values: numpy.ndarray) -> numpy.ndarray:
    """Finite, infinite with its sign, or no number."""
    return numpy.where(
        numpy.isnan(values), 3, numpy.where(numpy.isinf(values), numpy.sign(values), 0)
    )


def _least(unit: float) -> float:
    """The distance of the smallest numbers of a type with this rounding unit."""
    return {2.0**-11: 2.0**-22, 2.0**-8: 2.0**-120, 2.0**-23: 2.0**-120}.get(unit, 2.0**-1000)
