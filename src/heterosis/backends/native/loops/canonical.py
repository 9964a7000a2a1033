"""Loop nests in canonical form: few dimensions, good order, vectors along the right one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import cast

from heterosis.backends.native.codegen.emit.access import SPREAD
from heterosis.backends.native.codegen.emit.short_rows import are_short_rows
from heterosis.backends.native.codegen.nest import (
    Counter,
    Load,
    Nest,
    Number,
    Operand,
    Step,
    Store,
    operands_of,
)
from heterosis.ir.table_sizes import roughly
from heterosis.ir.traced_sizes import is_traced

Strides = tuple[int, ...]

# Extents of a dimension that is no good for vectors, and of one that is better though what it
# stores is apart.
_SHORT, _LONG = 4, 32


def canonical(
    kept: tuple[int, ...],
    reduced: tuple[int, ...],
    steps: tuple[Step, ...],
    stores: tuple[Store, ...],
) -> Nest:
    """Drop dimensions of extent 1, order the rest for locality, merge what runs on."""
    nest = Nest(kept, reduced, steps, stores, "kept")
    ordered = nest.scatters or any(store.running for store in stores)
    dims = list(range(len(kept) + len(reduced)))
    outer = [d for d in dims[: len(kept)] if kept[d] != 1]
    inner = [d for d in dims[len(kept) :] if reduced[d - len(kept)] != 1]
    if reduced and not inner:
        inner = dims[-1:]  # a reduction over one element is one all the same
    extents = kept + reduced
    columns = _columns(nest)
    if not ordered:
        across = _runs_along(columns, extents, outer, inner)
        outer = _by_stride(outer, columns, output_first=not reduced or across)
        outer = outer if reduced else _long_inside(outer, extents, columns)
        inner = _by_stride(inner, columns, output_first=False)
    groups = _merge(outer, extents, columns), _merge(inner, extents, columns)
    return _choose_vector(_rebuild(nest, extents, *groups))


def _columns(nest: Nest) -> list[Strides]:
    """The strides of everything that moves with the loops; the outputs come last."""
    loads = [s.operand.strides for s in nest.steps if isinstance(s, Load)]
    counters = [s.strides for s in nest.steps if isinstance(s, Counter)]
    return [_all_known(c) for c in loads + counters + [s.operand.strides for s in nest.stores]]


def _all_known(strides: tuple[Number, ...]) -> Strides:
    """Strides of a nest in which nothing is passed yet."""
    return cast("Strides", strides)


def _runs_along(
    columns: list[Strides], extents: Strides, outer: Sequence[int], inner: Sequence[int]
) -> bool:
    """Whether memory is read along a reduced dimension rather than along a kept one."""

    def unit(dims: Sequence[int]) -> int:
        return sum(abs(c[d]) == 1 and extents[d] > 1 for c in columns for d in dims)

    return unit(inner) > 0 and unit(inner) >= unit(outer) - 1


def _by_stride(dims: list[int], columns: list[Strides], *, output_first: bool) -> list[int]:
    """Largest steps outermost, judged by the output, or by what is read, then by the others."""
    ranked = list(reversed(columns)) if output_first else columns
    return sorted(dims, key=lambda d: tuple(-abs(c[d]) for c in ranked))


def _long_inside(dims: list[int], extents: Strides, columns: list[Strides]) -> list[int]:
    """The same order, but for a short innermost dimension, which no vector would fit: then one that
    is long, and along which something is read in runs, comes inside of it."""
    if len(dims) < 2 or extents[dims[-1]] >= _SHORT:
        return dims
    in_runs = [d for d in dims[:-1] if any(abs(c[d]) == 1 for c in columns)]
    long = [d for d in in_runs if _is_long(extents[d])]
    return [d for d in dims if d not in long[-1:]] + long[-1:]


def _is_long(extent: int) -> bool:
    # Where others part the sizes, too, so that there are few ranges.
    return roughly(extent) > _LONG if is_traced(extent) else extent >= _LONG


def _merge(dims: list[int], extents: Strides, columns: list[Strides]) -> list[list[int]]:
    """Runs of dimensions that step through memory as one would."""
    groups: list[list[int]] = []
    for d in dims:
        joins = groups and all(c[groups[-1][-1]] == c[d] * extents[d] for c in columns)
        if joins:
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _rebuild(nest: Nest, extents: Strides, kept: list[list[int]], reduced: list[list[int]]) -> Nest:
    def sizes(groups: list[list[int]]) -> Strides:
        return tuple(prod(extents[d] for d in group) for group in groups)

    last = [group[-1] for group in kept + reduced]

    def thin(strides: Strides) -> Strides:
        return tuple(strides[d] for d in last)

    steps = tuple(_with_strides(step, thin) for step in nest.steps)
    stores = tuple(replace(s, operand=_thin(s.operand, thin)) for s in nest.stores)
    if not kept:
        return _with_a_point(replace(nest, kept=(1,), reduced=sizes(reduced)), steps, stores)
    return replace(nest, kept=sizes(kept), reduced=sizes(reduced), steps=steps, stores=stores)


def _with_a_point(nest: Nest, steps: tuple[Step, ...], stores: tuple[Store, ...]) -> Nest:
    """Every nest has a kept dimension, so that shares of it can be handed out."""

    def add(strides: Strides) -> Strides:
        return (0, *strides)

    steps = tuple(_with_strides(step, add) for step in steps)
    stores = tuple(replace(s, operand=_thin(s.operand, add)) for s in stores)
    return replace(nest, steps=steps, stores=stores)


def _with_strides(step: Step, change: Callable[[Strides], Strides]) -> Step:
    if isinstance(step, Load):
        return replace(step, operand=_thin(step.operand, change))
    if isinstance(step, Counter):
        return replace(step, strides=change(_all_known(step.strides)))
    return step


def _thin(operand: Operand, change: Callable[[Strides], Strides]) -> Operand:
    return replace(operand, strides=change(_all_known(operand.strides)))


def _choose_vector(nest: Nest) -> Nest:
    """Vectors run where memory does; a scattering nest runs row by row, or by element."""
    columns = _columns(nest)
    last_kept, last = len(nest.kept) - 1, len(nest.kept) + len(nest.reduced) - 1
    if nest.scatters:
        return replace(nest, vector="kept" if _scatters_rows(nest) else "none")
    if nest.kept == (1,) and not nest.reduced:
        return replace(nest, vector="none")
    if any(store.running for store in nest.stores):
        over_rows, others = nest.stores[0].operand.strides[last_kept] in (1, -1), "none"
    elif not nest.reduced:
        return replace(nest, vector="kept")
    else:
        loads = columns[: -len(nest.stores)]
        over_rows, others = _ease(loads, last_kept) > _ease(loads, last), "reduced"
    if over_rows or _is_tall(nest):
        return replace(nest, vector="kept")
    return replace(nest, vector="rows" if _are_short_rows(nest) else others)


def _are_short_rows(nest: Nest) -> bool:
    # In this order: sizes are not to be parted for rows that are long.
    return are_short_rows(nest) and _is_long(_all_known(nest.kept)[-1])


def _ease(loads: list[Strides], dim: int) -> tuple[int, int]:
    """How well vectors along `dim` are loaded: few from scattered places, many from one run."""
    strides = [abs(load[dim]) for load in loads]
    return -sum(s > 1 for s in strides), sum(s == 1 for s in strides)


def _is_tall(nest: Nest) -> bool:
    """Whether rows of so few elements are reduced that a vector of rows is loaded in no time, and
    many of them."""
    rows, (count, *others) = nest.kept[-1], nest.reduced
    if others or is_traced(count) or count not in SPREAD:
        return False
    operands = [s.operand for s in nest.steps if isinstance(s, Load)]
    apart = [o for o in operands if o.strides[len(nest.kept) - 1] not in (-1, 0, 1)]
    spread = all(o.strides[-2:] == (count, 1) for o in apart)
    plain = not any(s.indices for s in nest.steps if isinstance(s, Load))
    return bool(apart) and spread and plain and _is_long(_all_known((rows,))[0])


def _scatters_rows(nest: Nest) -> bool:
    """Whether the innermost dimension runs within rows, so that all its places differ."""
    last = len(nest.kept) - 1
    moves: list[bool] = []
    for step in nest.steps:
        own = isinstance(step, Load) and step.operand.strides[last] != 0
        own = own or (isinstance(step, Counter) and step.strides[last] != 0)
        moves.append(own or any(moves[i] for i in operands_of(step)))
    stores = [store for store in nest.stores if store.indices]
    places = [i for store in stores for i, _ in store.indices]
    along = all(store.operand.strides[last] != 0 for store in stores)
    return not nest.reduced and along and not any(moves[i] for i in places)
