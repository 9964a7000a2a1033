"""Sizes that are not known yet: unknowns with names, and what is computed of them.

A size is affine in its names, with whole coefficients, and in quotients rounded down: `2*n + 1`,
`(n - 3)//2 + 1`. Nothing else is needed for what convolutions, strides and joins make of extents.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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


Term: TypeAlias = "str | Quotient"


@dataclass(frozen=True, slots=True)
class Size:
    """A sum of terms with their coefficients, in their normal form, and of a number.

    Sizes of one normal form are equal for all values of their names. It knows the laws of sums, of
    multiples and of quotients of what is divisible; it does not know that `n//2 + (n + 1)//2` is n.
    """

    terms: tuple[tuple[Term, int], ...]  # by their texts; coefficients are not 0
    number: int = 0

    def __add__(self, other: Extent) -> Extent:
        terms, number = _parts(other)
        return _summed((*self.terms, *terms), self.number + number)

    def __mul__(self, factor: Extent) -> Extent:
        if isinstance(factor, Size):
            raise UnsupportedError(
                f"({self})*({factor}): sizes are multiplied by numbers alone; give the product a "
                "name of its own."
            )
        return _summed(((term, n * factor) for term, n in self.terms), self.number * factor)

    def __floordiv__(self, divisor: int) -> Extent:
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

    def names(self) -> Iterator[str]:
        """The unknowns, each as often as it stands there."""
        for term, _ in self.terms:
            if isinstance(term, str):
                yield term
            else:
                yield from term.numerator.names()

    def at(self, values: Mapping[str, int]) -> Extent:
        """The size where some names have these values."""
        found: Extent = self.number
        for term, coefficient in self.terms:
            if isinstance(term, str):
                value: Extent = values[term] if term in values else named(term)
            else:
                value = term.numerator.at(values) // term.divisor
            found = found + value * coefficient
        return found

    def solved(self, value: int) -> dict[str, int]:
        """What its one name must be for the size to have this value; None if that is not told."""
        (term, coefficient), *others = self.terms
        whole, rest = divmod(value - self.number, coefficient)
        return {} if others or rest or isinstance(term, Quotient) else {term: whole}

    def __str__(self) -> str:
        terms = [_term_text(term, coefficient) for term, coefficient in self.terms]
        text = " + ".join([*terms, str(self.number)] if self.number else terms)
        return text.replace("+ -", "- ")

    __repr__ = __str__


Extent: TypeAlias = "int | Size"


def named(name: str) -> Size:
    """An unknown size."""
    return Size(((name, 1),))


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


def _parts(size: Extent) -> tuple[tuple[tuple[Term, int], ...], int]:
    return (size.terms, size.number) if isinstance(size, Size) else ((), size)


def _term_text(term: Term, coefficient: int) -> str:
    text = str(term)
    if coefficient in (1, -1):
        return text if coefficient == 1 else f"-{text if text.isidentifier() else f'({text})'}"
    return f"{coefficient}*{text if text.isidentifier() else f'({text})'}"


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
