"""Sizes that are not known yet: unknowns with names, and what is computed of them.

A size is a polynomial in its names, with whole coefficients, and in quotients rounded down:
`2*n + 1`, `(n - 3)//2 + 1`, `n*m`. Nothing else is needed for what convolutions, strides, joins
and reshapes make of extents.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any, TypeAlias

from heterosis.runtime.errors import ProgramError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Quotient:
    """`numerator // divisor`, rounded down; the divisor is 2 at least."""

    numerator: Size
    divisor: int

    def __str__(self) -> str:
        numerator = str(self.numerator)
        return f"{numerator if numerator.isidentifier() else f'({numerator})'}//{self.divisor}"


@dataclass(frozen=True, slots=True)
class Product:
    """Two or more factors, by their texts."""

    factors: tuple[Factor, ...]

    def __str__(self) -> str:
        return "*".join(map(_factor_text, self.factors))


@dataclass(frozen=True, slots=True)
class Formula:
    """A whole number that follows from sizes in another way, as an expression of Python: of names,
    `max`, `min` and `floor`. Tables have such numbers, and programs have none. It is `least` at
    least, if that is known."""

    text: str
    used: frozenset[str]
    least: int | None = None

    def __str__(self) -> str:
        return self.text


Factor: TypeAlias = "str | Quotient | Formula"
Term: TypeAlias = "Factor | Product"


@dataclass(frozen=True, slots=True)
class Size:
    """A sum of terms with their coefficients, in their normal form, and of a number.

    Sizes of one normal form are equal for all values of their names. It knows the laws of sums, of
    products and of quotients of what is divisible; it does not know that `n//2 + (n + 1)//2` is n.
    """

    terms: tuple[tuple[Term, int], ...]  # by their texts; coefficients are not 0
    number: int = 0

    def __add__(self, other: Extent) -> Extent:
        if not isinstance(other, Size):
            return Size(self.terms, self.number + other)
        return _summed((*self.terms, *other.terms), self.number + other.number)

    def __mul__(self, factor: Extent) -> Extent:
        if not isinstance(factor, Size):
            scaled = tuple((term, n * factor) for term, n in self.terms)
            return Size(scaled, self.number * factor) if factor else 0
        pairs = [(_times(a, b), m * n) for a, m in self.terms for b, n in factor.terms]
        pairs += [(term, n * factor.number) for term, n in self.terms]
        pairs += [(term, n * self.number) for term, n in factor.terms]
        return _summed(pairs, self.number * factor.number)

    def __floordiv__(self, divisor: Extent) -> Extent:
        if isinstance(divisor, Size):
            return self._exactly_divided(divisor)
        if not isinstance(divisor, int) or divisor < 1:
            raise UnsupportedError(f"({self})//({divisor}): sizes are divided by 1, 2, 3, ...")
        if self._is_quotient:
            ((term, _),) = self.terms
            assert isinstance(term, Quotient)
            return term.numerator // (term.divisor * divisor)
        # What is divisible leaves the quotient, whatever the sign of the rest.
        whole = _summed(((t, n // divisor) for t, n in self.terms), self.number // divisor)
        rest = _summed(((t, n % divisor) for t, n in self.terms), self.number % divisor)
        return whole + _quotient(rest, divisor)

    def _exactly_divided(self, divisor: Size) -> Extent:
        """The quotient by one term, which all terms have among their factors."""
        if self == divisor:
            return 1
        ((term, coefficient), *others) = divisor.terms
        left = [_without(own, _factors(term)) for own, _ in self.terms]
        whole = all(n % coefficient == 0 for _, n in self.terms)
        if others or divisor.number or self.number or None in left or not whole:
            raise UnsupportedError(
                f"({self})//({divisor}): sizes are divided by 1, 2, 3, ..., and by what is one of "
                "their factors."
            )
        pairs = zip(left, self.terms, strict=True)
        found: Extent = 0
        for factors, (_, n) in pairs:
            found = found + _product(factors or ()) * (n // coefficient)
        return found

    @property
    def _is_quotient(self) -> bool:
        alone = len(self.terms) == 1 and not self.number and self.terms[0][1] == 1
        return alone and isinstance(self.terms[0][0], Quotient)

    def __mod__(self, divisor: int) -> Extent:
        return self - self // divisor * divisor

    def __neg__(self) -> Extent:
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        return self + -other

    def __rsub__(self, other: int) -> Extent:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def factors(self) -> Iterator[Factor]:
        """What its terms are made of, each as often as it stands there."""
        for term, _ in self.terms:
            yield from _factors(term)

    def names(self) -> Iterator[str]:
        """The unknowns, each as often as it stands there."""
        for factor in self.factors():
            if isinstance(factor, str):
                yield factor
            elif isinstance(factor, Quotient):
                yield from factor.numerator.names()
            else:
                yield from sorted(factor.used)

    def at(self, values: Mapping[Any, Extent]) -> Extent:
        """The size where some names, or quotients, have these values, or equal these sizes."""
        found: Extent = self.number
        for term, coefficient in self.terms:
            value: Extent = coefficient
            for factor in _factors(term):
                value = _factor_at(factor, values) * value
            found = found + value
        return found

    def solved(self, value: int) -> dict[str, int]:
        """What its one name must be for the size to have this value; None if that is not told."""
        (term, coefficient), *others = self.terms
        whole, rest = divmod(value - self.number, coefficient)
        return {term: whole} if isinstance(term, str) and not (others or rest) else {}

    def isolated(self) -> tuple[Factor, Extent] | None:
        """A name, or else a quotient, and what it must be for the size to be 0: one that has a term
        of its own, without a coefficient, and is in no other; None if there is none."""
        alone = [
            (term, coefficient)
            for term, coefficient in self.terms
            if isinstance(term, str | Quotient) and abs(coefficient) == 1
        ]
        for term, coefficient in sorted(alone, key=lambda pair: isinstance(pair[0], Quotient)):
            rest = self - Size(((term, coefficient),))
            inside = set(rest.names()) | set(rest.factors()) if isinstance(rest, Size) else set()
            if term not in inside:
                return term, rest * -coefficient
        return None

    def __str__(self) -> str:
        terms = [_term_text(term, coefficient) for term, coefficient in self.terms]
        text = " + ".join([*terms, str(self.number)] if self.number else terms)
        return text.replace("+ -", "- ")

    __repr__ = __str__


Extent: TypeAlias = "int | Size"


def named(name: str) -> Size:
    """An unknown size."""
    return Size(((name, 1),))


def _factors(term: Term) -> tuple[Factor, ...]:
    return term.factors if isinstance(term, Product) else (term,)


def _times(a: Term, b: Term) -> Term:
    return Product(tuple(sorted((*_factors(a), *_factors(b)), key=str)))


def _without(term: Term, factors: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The factors of a term but these, each once; None where one is missing."""
    left = list(_factors(term))
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _product(factors: tuple[Any, ...]) -> Extent:
    found: Extent = 1
    for factor in factors:
        found = Size(((factor, 1),)) * found
    return found


def _factor_at(factor: Factor, values: Mapping[Any, Extent]) -> Extent:
    if factor in values:
        return values[factor]
    if isinstance(factor, Quotient):
        return factor.numerator.at(values) // factor.divisor
    return Size(((factor, 1),))


def are_equal_if_exact(one: Extent, other: Extent) -> bool:
    """Whether two sizes are equal wherever none of their quotients leaves a rest."""
    return _if_exact(one) == _if_exact(other)


def _if_exact(extent: Extent) -> Extent:
    """A size of whose quotients nothing is rounded, so that coefficients are fractions."""
    if not isinstance(extent, Size):
        return extent
    found: Extent = extent.number
    for term, coefficient in extent.terms:
        value: Any = coefficient
        for factor in _factors(term):
            if isinstance(factor, Quotient):
                value = _if_exact(factor.numerator) * (value * Fraction(1, factor.divisor))
            else:
                value = Size(((factor, 1),)) * value
        found = found + value
    return found


def _summed(terms: Iterable[tuple[Term, int]], number: int) -> Extent:
    """The normal form of a sum."""
    total: dict[Term, int] = {}
    for term, coefficient in terms:
        total[term] = total.get(term, 0) + coefficient
    kept = ((term, n) for term, n in total.items() if n)
    ordered = tuple(sorted(kept, key=lambda pair: str(pair[0])))
    return Size(ordered, number) if ordered else number


def _quotient(rest: Extent, divisor: int) -> Extent:
    """`rest // divisor`, where all numbers in `rest` are from 0 to below `divisor`."""
    if isinstance(rest, int):
        return rest // divisor
    common = gcd(divisor, *(coefficient for _, coefficient in rest.terms))
    reduced = _summed(((term, n // common) for term, n in rest.terms), rest.number // common)
    if common == divisor:
        return reduced
    assert isinstance(reduced, Size)
    if reduced._is_quotient:
        return reduced // (divisor // common)
    return Size(((Quotient(reduced, divisor // common), 1),))


def _term_text(term: Term, coefficient: int) -> str:
    if coefficient == 1:
        return str(term)
    sign = "-" if coefficient == -1 else f"{coefficient}*"
    return f"{sign}{term if isinstance(term, Product) else _factor_text(term)}"


def _factor_text(factor: str | Quotient | Formula | Product) -> str:
    text = str(factor)
    return text if text.isidentifier() else f"({text})"


# -- reading --------------------------------------------------------------------------------------


def parse_size(text: str) -> Extent:
    """The size that is written as `str` writes it, or in any other way with +, -, * and //."""
    try:
        return _read(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, UnsupportedError, RecursionError) as error:
        raise ProgramError(
            f"{text.strip()!r} is no size; expected a number, a name, or sums, multiples and "
            "quotients such as 2*n + 1 and (n - 3)//2."
        ) from error


_OPERATORS: dict[type, Any] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
}


def _read(tree: ast.expr) -> Extent:
    match tree:
        case ast.Constant(value=int(value)) if type(value) is int:
            return value
        case ast.Name(id=name):
            return named(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_read(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            found: Extent = _OPERATORS[type(op)](_read(left), _read(right))
            return found
    raise ValueError(ast.dump(tree))
