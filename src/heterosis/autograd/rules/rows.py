"""Derivatives of gathers, scatters and assemblies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD, MAXIMUM, MINIMUM
from heterosis.ir.program import ASSEMBLE, GATHER, SCATTER, Value, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops.array.indexing import gathered, scattered
from heterosis.ops.math.elementwise import equal, select, true_divide
from heterosis.ops.rules import iota, weak, zeros
from heterosis.runtime.errors import UnsupportedError


@adjoint(GATHER)
def _gather(step: Step) -> Cotangents:
    data, *indices = step.inputs
    found = scattered(zeros(data), indices, step.cotangent, combine=ADD)
    return (found, *(None for _ in indices))


@adjoint(SCATTER)
def _scatter(step: Step) -> Cotangents:
    _, *indices, update = step.inputs
    g = step.cotangent
    combine = step.attributes["combine"]
    if combine in (MAXIMUM, MINIMUM):
        return _share_of_extremes(step)
    if combine not in (None, ADD):
        raise UnsupportedError(
            f"no gradient flows through elements of an array that are combined by {combine} at "
            "computed places; sums and extremes have one."
        )
    found = gathered(g, indices)
    if combine is ADD:
        return (g, *(None for _ in indices), found)
    kept = scattered(g, indices, zeros(update))
    return (kept, *(None for _ in indices), _if_last(found, step.inputs[0], indices))


def _share_of_extremes(step: Step) -> Cotangents:
    """All that is equal to the extreme shares what that receives."""
    base, *indices, update = step.inputs
    (found,) = step.outputs
    stays, hits = equal(base, found), equal(update, gathered(found, indices))
    one, none = constant(1.0, base.dtype, weak=True), weak(0.0)
    many = scattered(
        select(stays, one, zeros(base)), indices, select(hits, one, zeros(update)), combine=ADD
    )
    share = true_divide(step.cotangent, many)
    to_update = select(hits, gathered(share, indices), none)
    return (select(stays, share, none), *(None for _ in indices), to_update)


def _if_last(x: Value, base: Value, indices: Sequence[Value]) -> Value:
    """`x`, with zeros for the rows that were written over: of equal places the last counts."""
    lead = indices[0].shape
    numbers = views.reshape(iota(math.prod(lead)), lead)
    none = views.broadcast(constant(-1, "int64"), base.shape[: len(indices)])
    last = gathered(scattered(none, indices, numbers), indices)
    remains = views.reshape(equal(last, numbers), lead + (1,) * (x.ndim - len(lead)))
    return select(remains, x, weak(0.0))


@adjoint(ASSEMBLE)
def _assemble(step: Step) -> Cotangents:
    g = step.cotangent
    parts, places = list(step.inputs), step.attributes["places"]
    found: list[Value | None] = [None] if step.attributes["filled"] else []
    parts = parts[len(found) :]
    for i, (part, (starts, steps)) in enumerate(zip(parts, places, strict=True)):
        covered = math.prod(part.shape) == g.size and len(parts) > i + 1
        own = _without(g, parts[i + 1 :], places[i + 1 :]) if covered else g
        found.append(views.slice_(own, starts, steps, part.shape))
    return tuple(found)


def _without(g: Value, parts: Sequence[Value], places: Sequence[Any]) -> Value:
    """`g` with zeros where later parts stand over the first."""
    whole = ((0,) * g.ndim, (1,) * g.ndim)
    blanks = [zeros(g, part.shape) for part in parts]
    type_ = TensorType(g.shape, g.dtype)
    return apply(ASSEMBLE, (g, *blanks), type_, places=(whole, *places), filled=False)
