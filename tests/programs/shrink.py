"""Make a failing program small: fewer results, steps and arguments, plainer elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy

from tests.programs.meaning import evaluate_all, values_given
from tests.programs.program import Array, Program, leaves
from tests.programs.report import regulars
from tests.programs.statements import Control

Fails = Callable[[Program], bool]


def shrunk(program: Program, fails: Fails, trials: int = 150) -> Program:
    """The smallest program found that `fails`, after so many trials at most."""
    found, progress = program, True
    while progress:
        progress = False
        for smaller in _smaller(found):
            if trials == 0:
                return found
            trials -= 1
            if fails(smaller):
                found, progress = smaller, True
                break
    return found


def _smaller(program: Program) -> Iterator[Program]:
    changes = (
        _fewer_results, _shorter, _without_writes, _without_steps, _smaller_blocks, _plainer, _less,
    )  # fmt: skip
    for change in changes:
        yield from change(program)


def _fewer_results(program: Program) -> Iterator[Program]:
    names = list(leaves(program.returned))
    if len(names) > 1:
        for name in dict.fromkeys(names):
            yield _tidy(program.change(returned=[name]))
        if len(names) > 2:
            for i in range(len(names)):
                yield _tidy(program.change(returned=names[:i] + names[i + 1 :]))
    elif program.returned != names:
        yield program.change(returned=names)


def _shorter(program: Program) -> Iterator[Program]:
    """Without the last half."""
    for keep in (len(program.steps) // 2, len(program.steps) - 1):
        steps = program.steps[:keep]
        made_here = [name for s in steps for name in s.results]
        if made_here and keep:
            yield _tidy(program.change(steps=steps, returned=[made_here[-1]]))


def _without_writes(program: Program) -> Iterator[Program]:
    for i, step in enumerate(program.steps):
        if step.is_write:
            yield _tidy(program.change(steps=program.steps[:i] + program.steps[i + 1 :]))


def _without_steps(program: Program) -> Iterator[Program]:
    """One result replaced: by an operand of its type, or by an argument with its elements."""
    values = evaluate_all(program)
    for i, step in enumerate(program.steps):
        if step.is_write or len(step.results) != 1:
            continue
        (result,) = step.results
        wanted = values[result]
        alike = [n for n in step.operands if _same_type(values[n], wanted)]
        for name in dict.fromkeys(alike):
            yield _tidy(_renamed(program, i, result, name))
        if not all(n in program.arguments for n in step.operands) or len(step.operands) > 1:
            yield _tidy(_given(program, i, result, wanted))


def _smaller_blocks(program: Program) -> Iterator[Program]:
    """With less in the blocks of a choice or a loop."""
    for i, step in enumerate(program.steps):
        for smaller in step.smaller() if isinstance(step, Control) else ():
            steps = (*program.steps[:i], smaller, *program.steps[i + 1 :])
            yield _tidy(program.change(steps=steps))


def _same_type(a: object, b: numpy.ndarray) -> bool:
    return isinstance(a, numpy.ndarray) and a.shape == b.shape and a.dtype == b.dtype


def _renamed(program: Program, i: int, old: str, new: str) -> Program:
    def name(given: str) -> str:
        return new if given == old else given

    later = [step.named(name) for step in program.steps[i + 1 :]]
    returned = [name(n) for n in leaves(program.returned)]
    return program.change(steps=(*program.steps[:i], *later), returned=returned)


def _given(program: Program, i: int, result: str, elements: numpy.ndarray) -> Program:
    name = next(f"x{k}" for k in range(100) if f"x{k}" not in program.arguments)
    arguments = dict(program.arguments) | {name: Array(elements, None, _is_float(elements))}
    return _renamed(program, i, result, name).change(arguments=arguments)


def _is_float(elements: numpy.ndarray) -> bool:
    return elements.dtype.kind == "f"


def _plainer(program: Program) -> Iterator[Program]:
    """Elements that are easier to read."""
    for field in ("arguments", "outside"):
        arrays = getattr(program, field)
        for name, array in arrays.items():
            for elements in _plain(array.elements):
                changed = dict(arrays) | {name: replace(array, elements=elements)}
                yield program.change(**{field: changed})


def _plain(elements: numpy.ndarray | None) -> Iterator[numpy.ndarray]:
    if elements is None or elements.size < 2 or elements.dtype == bool:
        return
    for regular in regulars(elements):
        if (regular == elements).all():
            return  # as plain as can be
        yield regular


def _less(program: Program) -> Iterator[Program]:
    """Arguments that are no part of others."""
    values = values_given(program)
    for name, array in program.arguments.items():
        if array.part is not None:
            arguments = dict(program.arguments) | {name: Array(values[name].copy())}
            yield program.change(arguments=arguments)


def _tidy(program: Program) -> Program:
    """Without what nothing reads."""
    steps, read = [], set(leaves(program.returned))
    for step in reversed(program.steps):
        if step.is_write or not read.isdisjoint(step.results):
            steps.append(step)
            read |= set(step.operands)
    arguments = dict(program.arguments)
    for name, array in program.arguments.items():
        if array.part is not None and name in read:
            read.add(array.part.partition("[")[0].partition(".")[0])

    def kept(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {n: a for n, a in arrays.items() if n in read}

    before = sum(1 for s in program.steps[: program.recorded_from] if s in steps)
    return program.change(
        recorded_from=before,
        steps=tuple(reversed(steps)),
        arguments=kept(arguments),
        outside=kept(program.outside),
        numbers={n: k for n, k in program.numbers.items() if n in read},
        changes={n: k for n, k in program.changes.items() if n in read},
        refused={n: a for n, a in program.refused.items() if n in read},
    )
