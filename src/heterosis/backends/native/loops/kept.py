"""Dear values that two passes of a nest need are computed once and kept in the result's memory.

Softmax needs exp(x - max) for the sum and again for the quotient. The first pass that computes it
writes it where the result will stand; the last pass reads it there and overwrites it.
"""

from __future__ import annotations

from dataclasses import replace

from heterosis.backends.native.codegen import tables
from heterosis.backends.native.codegen.emit.access import COMPUTED, STORED
from heterosis.backends.native.codegen.nest import (
    Apply,
    Load,
    Reduce,
    Step,
    Store,
    needed,
    passes_before,
)

_DEAR = 8.0  # additions; below this, computing again costs less than a trip to memory


def keep_repeated(
    kept: int, steps: tuple[Step, ...], stores: tuple[Store, ...]
) -> tuple[tuple[Step, ...], tuple[Store, ...]]:
    """Steps and stores of a nest, with its dearest repeated value kept for the last pass."""
    (store,) = stores
    if store.running or store.indices or not any(store.operand.strides[kept:]):
        return steps, stores
    found = _repeated(steps, store)
    if found is None:
        return steps, stores
    early = Store(store.operand, found)
    return _read_back(steps, early, store)


def _repeated(steps: tuple[Step, ...], store: Store) -> int | None:
    """The dearest step that a reduction and, in a later pass, the result both need."""
    if COMPUTED[store.operand.dtype] != STORED[store.operand.dtype]:
        return None  # narrow floats are computed wide: their memory would round
    waits = passes_before(steps)
    at_end = needed(steps, [store.value])
    reduced = [a for s in steps if isinstance(s, Reduce) for a in s.arguments]
    earlier = needed(steps, reduced)
    candidates = [
        s
        for s in at_end & earlier
        if isinstance(steps[s], Apply)
        and steps[s].dtype == store.operand.dtype
        and waits[s] < waits[store.value]
    ]
    costs = {s: _cost(steps, s) for s in candidates}
    best = max(candidates, key=lambda s: costs[s], default=None)
    return best if best is not None and costs[best] >= _DEAR else None


def _cost(steps: tuple[Step, ...], step: int) -> float:
    made_of = map(steps.__getitem__, needed(steps, [step]))
    return tables.cost(s.primitive for s in made_of if isinstance(s, Apply))


def _read_back(
    steps: tuple[Step, ...], early: Store, late: Store
) -> tuple[tuple[Step, ...], tuple[Store, ...]]:
    """Steps whose last pass loads what `early` stored instead of computing it again."""
    at_end = needed(steps, [late.value])
    extended = [*steps, Load(early.operand)]
    moved = {early.value: len(steps)}
    for s in sorted(at_end):
        step = steps[s]
        if isinstance(step, Apply) and s != early.value:
            arguments = tuple(moved.get(a, a) for a in step.arguments)
            if arguments != step.arguments:
                moved[s] = len(extended)
                extended.append(replace(step, arguments=arguments))
    return tuple(extended), (early, replace(late, value=moved[late.value]))
