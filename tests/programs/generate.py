"""Random programs from seeds: the same seed and number always give the same program."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy

from heterosis.ir.types import INTEGERS
from tests.programs import control, layers, operations, refusals  # noqa: F401 - register kinds
from tests.programs.draft import Draft
from tests.programs.kinds import KINDS, updates
from tests.programs.program import Array, Program

_SHAPES = (
    (3, 4),
    (4,),
    (4, 3),
    (1, 4),
    (2, 3, 4),
    (5,),
    (7, 9),
    (17,),
    (33, 5),
    (20, 33),  # with whole squares in them
    (),
    (1,),
    (0,),
    (2, 0, 3),
)
_LARGE = (
    (300, 70),
    (64, 200),
    (20_000,),
    (3, 130, 70),
    (70_001,),
    (2, 40_000),
    (300, 300),
)  # for several threads
MODES = ("plain", "gradient", "inside")
_TWICE = 0.3  # of those whose gradients are asked for from outside
_USUAL = ("float32",)
_MIXED = ("float32", "float64", "float16", "bfloat16", "bool", *INTEGERS)


def program(seed: int, number: int, kinds: Collection[str] = ()) -> Program:
    """Program `number` of those that `seed` gives."""
    rng = numpy.random.default_rng([seed, number])
    mode = MODES[int(rng.choice(3, p=(0.6, 0.25, 0.15)))]
    dtypes = _USUAL if rng.random() < 0.7 else tuple(rng.choice(_MIXED, 2, replace=False).tolist())
    if mode != "plain":
        dtypes = ("float64",) if rng.random() < 0.8 else _USUAL
    draft = Draft(rng, number, dtypes, mode, special=mode == "plain" and bool(rng.random() < 0.15))
    shapes = _LARGE if draft.chance(0.04) else _SHAPES
    for _ in range(draft.whole(1, 3)):
        draft.argument(draft.among(shapes), draft.dtype())
    if mode == "inside":
        for _ in range(draft.whole(1, 2)):
            draft.constant(draft.among(_SHAPES), draft.dtype())
    if mode == "plain" and draft.chance(0.2):
        _share(draft)
    names = [n for n in KINDS if not kinds or n in kinds]
    weights = numpy.array([KINDS[n][0] for n in names])
    wanted = draft.whole(2, 12)
    for _ in range(3 * wanted):
        if len(draft.steps) >= wanted:
            break
        KINDS[names[int(rng.choice(len(names), p=weights / weights.sum()))]][1](draft)
    if mode != "inside" and draft.chance(0.05):
        updates(draft)
    draft.differentiate()
    returned = _returned(draft) if mode != "inside" else _heads(draft)
    recorded_from = draft.whole(0, len(draft.steps)) // 2 if mode == "inside" else 0
    if any(step.is_control for step in draft.steps[:recorded_from]):
        recorded_from = 0  # what a choice hands on before is a variable or not
    origin = f"--seed {seed} --only {number}" + (f" --kinds {','.join(kinds)}" if kinds else "")
    made = draft.program(returned, recorded_from, origin)
    return made.change(twice=mode == "gradient" and draft.chance(_TWICE))


_PARTS = ("{}", "{}[::-1]", "{}.T", "{}[1:]", "{}[:-1]", "{}.reshape(-1)", "{}[..., ::2]")


def _share(draft: Draft) -> None:
    """Arguments that share memory: with one another, or with an array from outside."""
    of = draft.among(list(draft.arguments))
    if draft.chance(0.4):
        of = draft.constant(draft.among(_SHAPES), draft.dtype())
    for _ in range(1 + draft.chance(0.3)):
        parts = _PARTS if draft.shape_of(of) else ("{}", "{}[...]")
        draft.part_argument(draft.among(parts).format(of))


def _heads(draft: Draft) -> list[str]:
    """Results that are no variables."""
    names = [n for n in draft.arrays() if n.startswith("v") and draft.is_float(n)]
    return names[-1:] + names[:1] if len(names) > 1 else names


def _returned(draft: Draft) -> Any:
    """A structure of some of the values, the latest among them."""
    made = [n for n in draft.arrays() if n.startswith("v")] or draft.arrays()
    if len(made) > 12 or draft.chance(0.05):
        return made
    chosen = [made[-1]]
    while len(chosen) < 4 and draft.chance(0.5):
        chosen.append(draft.among(draft.arrays()))
    if len(chosen) == 1:
        return chosen[0] if draft.chance(0.5) else (chosen[0],)
    if draft.chance(0.2):
        return {"first": chosen[0], "others": chosen[1:]}
    return chosen if draft.chance(0.5) else (chosen[0], tuple(chosen[1:]))


def other_inputs(given: Program, rng: numpy.random.Generator) -> Mapping[str, Array]:
    """Arguments as a program's own, with other elements."""
    return {name: _other(array, rng) for name, array in given.arguments.items()}


def _other(array: Array, rng: numpy.random.Generator) -> Array:
    if array.elements is None or array.elements.size < 2:
        return array
    flat = rng.permutation(array.elements.reshape(-1))
    return Array(flat.reshape(array.elements.shape), None, array.differentiable)
