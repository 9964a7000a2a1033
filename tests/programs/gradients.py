"""Gradients against differences of the program's own values, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import count

import numpy

from heterosis.ir.types import is_float
from tests.programs.meaning import UNITS, Call, evaluate, made
from tests.programs.program import Array, Program, Step

STEP = 2.0**-17  # of the differences
DIRECTIONS = 2  # for each variable
LARGEST = 1e8  # results that are differentiated: beyond it, a step is lost in their rounding
# How far two gradients may be apart, as a part of the largest element: a step's rounding, times
# what the worst of a well-behaved program's conditions makes of it.
NEAR = {"float64": 1e-7, "float32": 2e-3}


@lru_cache(64)
def weights(shape: tuple[int, ...]) -> numpy.ndarray:
    """What a head receives: other numbers for each element."""
    return 2 + numpy.cos(numpy.arange(numpy.prod(shape, dtype=int))).reshape(shape)


def unlike(
    program: Program, calls: list[Mapping[str, Array]], found: list[Call], wanted: list[Call]
) -> Iterator[str]:
    """Where gradients differ from those of another way, by more than rounding explains."""
    near = NEAR.get(_narrowest(program), 0.05)
    for turn, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one.error or other.error:
            continue  # they are compared elsewhere
        for i, (a, b) in enumerate(zip(one.gradients, other.gradients, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                yield f"call {turn}, gradient {i}: {a.dtype}{a.shape}, eager {b.dtype}{b.shape}"
            elif not _are_near(a, b, near) and not _is_rounding(program, calls[turn], i, a, b):
                yield f"call {turn}, gradient {i}: {_first(a, b)}"


def _are_near(a: numpy.ndarray, b: numpy.ndarray, near: float) -> bool:
    finite = numpy.isfinite(b)
    if not numpy.isfinite(a[finite]).all():  # with no number, eager may be alone: 0 times inf
        return False
    a, b = a[finite].astype("float64"), b[finite].astype("float64")
    largest = numpy.abs(b).max(initial=1e-3)
    return bool((numpy.abs(a - b) <= near * largest).all())


def _is_rounding(
    program: Program, given: Mapping[str, Array], i: int, a: numpy.ndarray, b: numpy.ndarray
) -> bool:
    """Whether rounding every step could move the gradient of variable `i` from one to the other."""
    if any(array.part is not None for array in given.values()):
        return False
    rng, unit = numpy.random.default_rng(7), UNITS[_narrowest(program)]
    apart = a.astype("float64") - b.astype("float64")
    name, wide = program.variables()[i], _widened(program)
    return all(
        abs((apart * direction).sum()) <= _spread(wide, _wide(given), name, direction, unit)
        for direction in (rng.normal(size=a.shape) for _ in range(DIRECTIONS))
    )


def _first(a: numpy.ndarray, b: numpy.ndarray) -> str:
    with numpy.errstate(all="ignore"):
        far = numpy.nan_to_num(numpy.abs(a - b), nan=numpy.inf)
    where = numpy.unravel_index(numpy.argmax(far), far.shape)
    return f"{list(map(int, where))} is {a[where]} instead of {b[where]}"


def wrong(program: Program, calls: list[Mapping[str, Array]], found: list[Call]) -> Iterator[str]:
    """Where gradients differ from differences."""
    if any(array.part is not None for array in program.arguments.values()):
        return
    wide = _widened(program)
    for name, gradient in zip(program.variables(), found[0].gradients, strict=True):
        rng = numpy.random.default_rng(7)
        for _ in range(DIRECTIONS):
            told = _along(wide, _wide(calls[0]), name, rng, gradient.astype("float64"), program)
            if told:
                yield f"gradient of {name}: {told}"
                break


def _along(
    program: Program,
    given: dict[str, Array],
    name: str,
    rng: numpy.random.Generator,
    gradient: numpy.ndarray,
    narrow: Program,
) -> str:
    """What is wrong along one direction: nothing also where differences do not settle."""
    direction = rng.normal(size=gradient.shape)
    with numpy.errstate(all="ignore"):
        middle, low, high = (_value(program, given, name, k * direction) for k in (0, -STEP, STEP))
        nearer = [_value(program, given, name, k * direction) for k in (-STEP / 2, STEP / 2)]
        slope, finer = (high[0] - low[0]) / (2 * STEP), (nearer[1][0] - nearer[0][0]) / STEP
        bend = abs(high[0] - 2 * middle[0] + low[0]) / STEP
        bend_nearer = abs(nearer[1][0] - 2 * middle[0] + nearer[0][0]) / (STEP / 2)
        claimed = float((gradient * direction).sum())
        scale = float(numpy.abs(gradient * direction).sum()) + abs(finer)
    if middle[2] > LARGEST:
        return ""
    near = 1e-5 * scale + 1e-9 * middle[1] + 1e-12
    if not numpy.isfinite([slope, finer, bend, claimed]).all():
        return ""
    if abs(slope - finer) > near or max(bend, bend_nearer) > 1e-2 * scale + 1e-6 * middle[1]:
        return ""
    narrowest = _narrowest(narrow)
    if narrowest != "float64":
        # What cancels between two operands of one step leaves the rounding of both.
        near += NEAR.get(narrowest, 0.05) * scale + UNITS[narrowest] * middle[1]
    near += bend_nearer / 2  # that of one side differs so far from the mean of both
    apart = abs(claimed - finer) - near
    if apart <= 0 or apart <= _spread(program, given, name, direction, UNITS[narrowest]):
        return ""
    return f"{claimed} along a direction, differences say {finer}"


def _spread(
    program: Program, given: dict[str, Array], name: str, direction: numpy.ndarray, unit: float
) -> float:
    """How far rounding every step moves a slope: far, where large parts of it cancel."""
    slopes = []
    with numpy.errstate(all="ignore"):
        for seed in range(8):
            moved = _shaken(program, 4 * unit, seed)
            with suppress(ValueError):  # an argument that may not be larger than 1 is
                low, high = (_value(moved, given, name, k * direction)[0] for k in (-STEP, STEP))
                slopes.append((high - low) / (2 * STEP))
    finite = [slope for slope in slopes if numpy.isfinite(slope)]
    return float(2 * numpy.ptp(finite)) if finite else 0.0


def _shaken(program: Program, near: float, seed: int) -> Program:
    """The program with every operand moved as rounding moves it: by a constant."""
    numbers = count()

    def shaken(step: Step) -> Step:
        i = next(numbers)
        if step.is_write or step.is_view or step.is_control:
            return step
        places = range(len(step.operands))
        moved = [f"moved({{{k}}}, {near}, {100 * seed + 10 * i + k})" for k in places]
        return replace(step, meaning=(step.meaning or step.text).format(*moved))

    return program.change(steps=tuple(step.each(shaken) for step in program.steps))


def _narrowest(program: Program) -> str:
    """The element type that rounds most."""
    arrays = [*program.arguments.values(), *program.outside.values()]
    found = [a.elements.dtype.name for a in arrays if a.elements is not None]
    found += [step.dtype for step in program.within() if step.dtype]
    return max(filter(is_float, found), key=UNITS.__getitem__, default="float64")


def _value(
    program: Program, given: dict[str, Array], name: str, moved: numpy.ndarray
) -> tuple[float, float, float]:
    """The number that is differentiated, the size of what it is a sum of, and the largest of the
    results that it is made of."""
    outside = made(program.outside, numpy)
    results = evaluate(program, given, outside, moved=(name, moved)).results
    parts = [_weighed(a, program.mode) for a in results]
    together = [p for p in parts if p is not None]
    return (
        float(sum(p.sum() for p in together)),
        float(sum(numpy.abs(p).sum() for p in together)),
        max(
            (float(numpy.abs(r).max(initial=0)) for r in results if is_float(r.dtype.name)),
            default=0,
        ),
    )


def _weighed(result: numpy.ndarray, mode: str) -> numpy.ndarray | None:
    if not is_float(result.dtype.name):
        return None
    if mode == "inside":
        return numpy.sin(result.astype("float64") * 0.5)
    return result.astype("float64") * weights(result.shape)


def _widened(program: Program) -> Program:
    def wide(step: Step) -> Step:
        return replace(step, dtype="float64") if step.dtype and is_float(step.dtype) else step

    steps = tuple(step.each(wide) for step in program.steps)
    return program.change(
        steps=steps, arguments=_wide(program.arguments), outside=_wide(program.outside)
    )


def _wide(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: _wide_array(array) for name, array in arrays.items()}


def _wide_array(array: Array) -> Array:
    if array.elements is None or not is_float(array.elements.dtype.name):
        return array
    return replace(array, elements=array.elements.astype("float64"))
