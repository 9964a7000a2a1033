"""Numbers of tables that follow from sizes: extrema, quotients and bounds, which decide nothing."""

from __future__ import annotations

import operator
from typing import Any

from heterosis.ir.size_bounds import lower_bound, outcome, term_bounds
from heterosis.ir.sizes import Formula, Size, Term, named
from heterosis.ir.traced_sizes import (
    Decisions,
    TracedSize,
    evaluated_at,
    is_traced,
    number_at,
    untraced,
    value_of,
)

_LONGEST = 2000  # characters of an expression


def covers(first: int, second: int) -> bool:
    """Whether a number is known to be at least another one, at all sizes."""
    if value_of(first) < value_of(second):  # at those at hand it is not
        return False
    difference: Any = first - second
    if not _is_size(difference):
        return bool(difference >= 0)
    return outcome(difference.size, "<", difference.decisions.bounds) is False


def largest(first: int, second: int) -> int:
    """`max`, which is no decision: a number for all sizes."""
    return _extremum("max", first, second)


def smallest(first: int, second: int) -> int:
    """`min`, which is no decision."""
    return _extremum("min", first, second)


def _extremum(name: str, first: int, second: int) -> int:
    choose = max if name == "max" else min
    traced = next((one for one in (first, second) if _is_size(one)), None)
    if traced is None:
        return choose(first, second)
    sizes = [one.size if _is_size(one) else one for one in (first, second)]  # type: ignore[attr-defined]
    values = [one.value if _is_size(one) else one for one in (first, second)]  # type: ignore[attr-defined]
    bounds = traced.decisions.bounds  # type: ignore[attr-defined]
    difference = sizes[0] - sizes[1]
    if not isinstance(difference, Size):
        return choose(first, second, key=lambda one: one.value if _is_size(one) else one)  # type: ignore[attr-defined]
    if (below := outcome(difference, "<", bounds)) is not None:
        first_is_less = below if name == "min" else not below
        return first if first_is_less else second
    texts = [str(size) for size in sizes]
    if sum(map(len, texts)) > _LONGEST:
        return choose(first, second)  # decided: what it is made of would grow without end
    known = [bound for size in sizes if (bound := lower_bound(size, bounds)) is not None]
    if name == "max":
        least = max(known, default=None)
    else:
        least = min(known) if len(known) == len(sizes) else None
    used = frozenset(n for size in sizes if isinstance(size, Size) for n in size.names())
    formula = Formula(f"{name}({texts[0]}, {texts[1]})", used, least)
    made: Any = TracedSize(Size(((formula, 1),)), choose(values), traced.decisions)  # type: ignore[attr-defined]
    return made  # type: ignore[no-any-return]


def covering(first: int, second: int) -> int:
    """A number that is as large as two at least, at all sizes, which is no decision, and no longer
    than they are however often it is asked for: each term has the larger of its coefficients."""
    traced: Any = next((one for one in (first, second) if _is_size(one)), None)
    if traced is None:
        return max(first, second)
    terms, number = _terms_of(first)
    others, other = _terms_of(second)
    decisions = traced.decisions
    found: Any = max(number, other)
    for term in {**terms, **others}:
        least, _ = term_bounds(term, decisions.bounds)
        if least is None or least < 0:
            return largest(first, second)
        size = Size(((term, 1),))
        value = evaluated_at(str(size), decisions.values)
        more = max(terms.get(term, 0), others.get(term, 0))
        found = found + TracedSize(size, value, decisions) * more
    return found  # type: ignore[no-any-return]


def _terms_of(number: Any) -> tuple[dict[Term, int], int]:
    size = untraced(number)
    return (dict(size.terms), size.number) if isinstance(size, Size) else ({}, size)


_ROUGH = (2, 4, 8, 32)


def roughly(number: Any) -> Any:
    """What a number that follows from sizes is where these are rounded, the same for a wide range
    of them: for choices that matter for speed alone."""
    if not is_traced(number):
        return number
    used = number.size.names() if _is_size(number) else number.names
    return number_at(number, {name: _rounded(name, number.decisions) for name in used})


def _rounded(name: str, decisions: Decisions) -> int:
    """A number that stands for all sizes within some bounds."""
    size = decisions.traced(named(name))
    if decisions.as_if_large:
        return 2 * _ROUGH[-1]
    return next((bound for bound in _ROUGH if size <= bound), 2 * _ROUGH[-1])


def divided(first: int, second: int) -> int:
    """A quotient rounded down, which is no decision; the divisor is 1 at least at all sizes."""
    if not _is_size(second):
        return first // second
    decisions, value = second.decisions, second.value  # type: ignore[attr-defined]
    texts = [str(untraced(one)) for one in (first, second)]
    if sum(map(len, texts)) > _LONGEST or second < 1:
        return first // operator.index(second)
    sizes = [one for one in map(untraced, (first, second)) if isinstance(one, Size)]
    used = frozenset(name for size in sizes for name in size.names())
    formula = Formula(f"(({texts[0]})//({texts[1]}))", used)
    made: Any = TracedSize(Size(((formula, 1),)), value_of(first) // value, decisions)
    return made  # type: ignore[no-any-return]


def _is_size(given: Any) -> bool:
    return type(given) is TracedSize
