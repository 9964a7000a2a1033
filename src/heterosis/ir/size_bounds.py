"""What is known of sizes without their values: bounds, and relations that hold for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from heterosis.ir.sizes import Extent, Product, Quotient, Size, Term

# Extents from here on are named: broadcasting makes others of 1, and nothing is left of 0.
LEAST = 2


Bounds: TypeAlias = Mapping[str, tuple[int, int | None]]  # of names: the least, and the greatest


def outcome(size: Size, relation: str, bounds: Bounds) -> bool | None:
    """Whether a size stands in a relation to 0 for all values of its names within bounds; None if
    that depends on them."""
    low, high = lower_bound(size, bounds), lower_bound(-size, bounds)
    if low is not None and low > (0 if relation == "==" else -1):
        return False
    if high is not None and high > 0:
        return relation == "<"
    return None


def lower_bound(size: Extent, bounds: Bounds) -> int | None:
    """A bound from below, if there is an easy one."""
    if not isinstance(size, Size):
        return size
    total = size.number
    for term, coefficient in size.terms:
        least, greatest = term_bounds(term, bounds)
        found = least if coefficient > 0 else greatest
        if found is None:
            return None
        total += coefficient * found
    return total


def term_bounds(term: Term, bounds: Bounds) -> tuple[int | None, int | None]:
    """The bounds of a term, as far as there are easy ones."""
    if isinstance(term, str):
        return bounds.get(term, (LEAST, None))
    if isinstance(term, Quotient):
        low, high = lower_bound(term.numerator, bounds), lower_bound(-term.numerator, bounds)
        return (
            None if low is None else low // term.divisor,
            None if high is None else -high // term.divisor,
        )
    if isinstance(term, Product):
        pairs = [term_bounds(factor, bounds) for factor in term.factors]
        least = [low for low, _ in pairs if low is not None and low >= 0]
        if len(least) < len(pairs):
            return None, None
        greatest = [high for _, high in pairs if high is not None]
        return math.prod(least), math.prod(greatest) if len(greatest) == len(pairs) else None
    return term.least, None


def narrowed(bounds: Bounds, left: Size, relation: str, right: int) -> Bounds:
    """The bounds where a size stands in a relation, `<` or `>=`, to a number, too."""
    ((term, coefficient), *others) = left.terms
    if others or left.number or not isinstance(term, str) or abs(coefficient) != 1:
        return bounds
    low, high = bounds.get(term, (LEAST, None))
    if (relation == "<") == (coefficient > 0):  # from above
        most = right - 1 if relation == "<" else -right
        return {**bounds, term: (low, most if high is None else min(high, most))}
    return {**bounds, term: (max(low, 1 - right if relation == "<" else right), high)}
