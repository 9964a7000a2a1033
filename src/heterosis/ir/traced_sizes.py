"""Sizes while a program is captured and planned: unknown, and with the value of the call at hand.

Whoever computes with shapes computes with these as with integers. What is asked of one beyond
arithmetic, whether it is equal to another, less, or which number it is, is answered for the call
at hand and noted as a condition: the outcome holds for all sizes of which all conditions hold.
"""

from __future__ import annotations

import math
import operator
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy

from heterosis.ir.size_bounds import LEAST, Bounds, narrowed, outcome
from heterosis.ir.sizes import Extent, Factor, Formula, Product, Size, Term, named
from heterosis.runtime.errors import UnsupportedError
from heterosis.runtime.lines import PACKAGE, user_line

_RELATIONS: dict[str, Callable[[int, int], bool]] = {"<": operator.lt, "==": operator.eq}
_OPPOSITE = {"<": ">=", "==": "!="}


class Decisions:
    """What was decided for some values of sizes, each from `LEAST` on: the conditions under which
    it is the same for other values, and the user's line that each came from."""

    def __init__(self, values: Mapping[str, int], floats: Mapping[str, float] | None = None):
        self.values = dict(values)
        self.floats = dict(floats or {})  # numbers of Python's that have names too
        # Whether choices that matter for speed alone are made for large sizes, whatever they are.
        self.as_if_large = False
        self.conditions: dict[str, str] = {}
        self.fixed: dict[Term, Extent] = {}  # what conditions say the value of, or what it equals
        self.bounds: Bounds = {}  # what they say of names; what follows from it is no condition
        # What floats that follow from sizes are among the operands of a captured operation.
        self.operand: Callable[[TracedFloat], Any] | None = None

    def traced(self, extent: Extent) -> int:
        """An extent of a program as a number to compute with."""
        if not isinstance(extent, Size):
            return extent
        value = extent.at(self.values)
        assert isinstance(value, int), f"{extent} has names without values"
        return TracedSize(extent, value, self)  # type: ignore[return-value]

    def number(self, name: str) -> int | float:
        """A number of Python's by its name, as a number to compute with."""
        if name in self.floats:
            return TracedFloat(name, self.floats[name], self, [name])  # type: ignore[return-value]
        return self.traced(named(name))

    def note(self, condition: str) -> None:
        """Let the outcome depend on a condition, in Python."""
        if condition not in self.conditions and not _looking.on:
            self.conditions[condition] = user_line()

    def extent(self, number: int) -> Extent:
        """A number that was computed with as an extent of a program: a size, without what has one
        value alone; a number, if a condition says which one it is."""
        size = self._without_formulas(untraced(number))
        if not isinstance(size, Size):
            return size
        value = size.at(self.values)
        assert isinstance(value, int), f"{size} has names without values"
        if f"{Size(size.terms)} == {value - size.number}" in self.conditions:
            return value
        return size.at(self.fixed)

    def _without_formulas(self, size: Extent) -> Extent:
        """A size as programs have it, with numbers in place of formulas, which then stay so."""
        if not isinstance(size, Size):
            return size
        for formula in size.factors():
            if isinstance(formula, Formula) and formula not in self.fixed:
                names = {**self.values, **self.floats}
                (value,) = function_of(names, [str(formula)])(**names)
                self.note(f"{formula} == {value}")
                self._fix(formula, value)
        return size.at(self.fixed)

    def note_power(self, texts: Sequence[str], values: Sequence[float]) -> None:
        """Let a power be one of real numbers wherever it is one here: roots of negative numbers are
        complex, and what follows from these holds for them alone."""
        (base, exponent), (number, power) = texts, values
        if exponent == repr(power) and float(power).is_integer():
            return
        found = [f"{base} >= 0"] if number >= 0 else [f"{exponent} == {power!r}"]
        if number < 0 and not float(power).is_integer():
            found.append(f"{base} == {number!r}")
        known = [f"({name}) >= 0" for name in self.values]  # no size is less
        for condition in found:
            if condition not in known and re.search(r"[A-Za-z_]\w*", condition):
                self.note(condition)

    def sign(self, difference: Extent, value: int, relation: str) -> bool:
        """Whether a difference of this value stands in a relation to 0; noted, if that depends on
        the values."""
        holds = _RELATIONS[relation](value, 0)
        if relation == "==":
            difference = _at(difference, self.fixed)
        if (
            not isinstance(difference, Size)
            or outcome(difference, relation, self.bounds) is not None
        ):
            return holds
        if relation == "==" and holds and self._has_fixed(difference):
            return True
        left, right = Size(difference.terms), -difference.number
        noted = relation if holds else _OPPOSITE[relation]
        self.note(f"{left} {noted} {right}")
        if _looking.on:
            return holds
        if relation == "<":
            self.bounds = narrowed(self.bounds, left, noted, right)
        elif holds and (found := difference.isolated()):
            self._fix(*found)
        return holds

    def _has_fixed(self, zero: Size) -> bool:
        """Note that a size is 0 by what each of its factors is: where they are one, or multiply
        each other. In the rest of the program they are then known."""
        factors = dict.fromkeys(zero.factors())
        alone = len(factors) == 1 or any(isinstance(term, Product) for term, _ in zero.terms)
        found = {factor: Size(((factor, 1),)).at(self.values) for factor in factors}
        if not alone or not all(isinstance(value, int) for value in found.values()):
            return False
        for factor, value in found.items():
            self.note(f"{factor} == {value}")
            if not _looking.on:
                self._fix(factor, value)
        return True

    def _fix(self, factor: Factor, value: Extent) -> None:
        """Let a factor be this number, or size, in the whole program: extents that are equal under
        a condition are one extent there."""
        for one, of in list(self.fixed.items()):
            self.fixed[one] = _at(of, {factor: value})
            if isinstance(of, Size) and not isinstance(self.fixed[one], Size):
                self.note(f"{one} == {self.fixed[one]}")
        self.fixed[factor] = value


def _at(extent: Extent, values: Mapping[Any, Extent]) -> Extent:
    return extent.at(values) if isinstance(extent, Size) else extent


class _Looking(threading.local):
    on = False


_looking = _Looking()


@contextmanager
def only_looking() -> Iterator[None]:
    """Within the block, nothing is decided by what is asked of sizes: for checks, which raise or do
    nothing."""
    before, _looking.on = _looking.on, True
    try:
        yield
    finally:
        _looking.on = before


class TracedSize:
    """An integer that follows from sizes.

    It is no `int` for Python itself, which would take its value without a word: `range`, lists and
    NumPy ask `__index__`, and that is noted. `isinstance` is told that it is one, as annotations
    are.
    """

    __slots__ = ("decisions", "size", "value")

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **keywords: Any) -> Any:
        return _array_ufunc(function, method, operands, keywords)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _as_array(self, dtype)

    def __init__(self, size: Size, value: int, decisions: Decisions):
        self.size, self.value, self.decisions = size, value, decisions

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def _made(self, size: Extent, value: int) -> Any:
        return TracedSize(size, value, self.decisions) if isinstance(size, Size) else size

    # -- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if _is_traced(other):
            return self._made(self.size + other.size, self.value + other.value)
        if _is_float(other):
            return self._float() + other
        number = _whole(other)
        if number is None:
            return NotImplemented
        return self._made(self.size + number, self.value + number)

    def __mul__(self, other: Any) -> Any:
        if _is_traced(other):
            return self._made(self.size * other.size, self.value * other.value)
        if _is_float(other):
            return self._float() * other
        number = _whole(other)
        if number is None:
            return NotImplemented
        return self._made(self.size * number, self.value * number)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __sub__(self, other: Any) -> Any:
        return self + -other if _is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_number(other) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        if _is_float(other):
            return self._float() // other
        if _is_traced(other):
            try:
                return self._made(self.size // other.size, self.value // other.value)
            except UnsupportedError:
                other = operator.index(other)
        divisor = _whole(other)
        if divisor is None:
            return NotImplemented
        if divisor < 1:
            return -self // -divisor if divisor < 0 else self.value // divisor
        return self._made(self.size // divisor, self.value // divisor)

    def __rfloordiv__(self, other: Any) -> Any:
        return other // operator.index(self) if _is_number(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        if _is_float(other):
            return self._float() % other
        return self - self // other * other if _is_number(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return other % operator.index(self) if _is_number(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return divmod(other, operator.index(self))

    def __truediv__(self, other: Any) -> Any:
        return self._float() / other if _is_number(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return other / self._float() if _is_number(other) else NotImplemented

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other <= 8:
            return math.prod([self] * other)
        if _is_float(other):
            return self._float() ** other
        return operator.index(self) ** other if _is_number(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return other ** operator.index(self) if _is_number(other) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return operator.index(self) & other if _is_number(other) else NotImplemented

    def __or__(self, other: Any) -> Any:
        return operator.index(self) | other if _is_number(other) else NotImplemented

    def __xor__(self, other: Any) -> Any:
        return operator.index(self) ^ other if _is_number(other) else NotImplemented

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other) if _is_number(other) else NotImplemented

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other) if _is_number(other) else NotImplemented

    def __rlshift__(self, other: Any) -> Any:
        return other << operator.index(self) if _is_number(other) else NotImplemented

    def __rrshift__(self, other: Any) -> Any:
        return other >> operator.index(self) if _is_number(other) else NotImplemented

    def __invert__(self) -> Any:
        return -self - 1

    def __round__(self, digits: int | None = None) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__ = __pos__

    def _float(self) -> TracedFloat:
        return TracedFloat(f"({self.size})", float(self.value), self.decisions, self.size.names())

    # -- what is asked of it ----------------------------------------------------------------------

    def _compared(self, other: Any, relation: str, sign: int = 1) -> Any:
        if _is_traced(other):
            if other.decisions is not self.decisions:
                return False if relation == "==" else NotImplemented
            difference, value = self.size + -other.size, self.value - other.value
        else:
            number = _whole(other)
            if number is None:
                return NotImplemented
            difference, value = self.size + -number, self.value - number
        return self.decisions.sign(difference * sign, value * sign, relation)

    def __eq__(self, other: object) -> Any:
        return self._float() == other if _is_fraction(other) else self._compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return _negated(self.__eq__(other))

    def __lt__(self, other: Any) -> Any:
        return self._float() < other if _is_fraction(other) else self._compared(other, "<")

    def __gt__(self, other: Any) -> Any:
        return self._float() > other if _is_fraction(other) else self._compared(other, "<", -1)

    def __ge__(self, other: Any) -> Any:
        return self._float() >= other if _is_fraction(other) else _negated(self < other)

    def __le__(self, other: Any) -> Any:
        return self._float() <= other if _is_fraction(other) else _negated(self > other)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        """In what the framework keeps, sizes are told apart by their forms: nothing follows from
        not finding one. In what users keep, by their values."""
        inside = _asked_from_inside()
        return hash((self.size, id(self.decisions)) if inside else operator.index(self))

    def __index__(self) -> int:
        """Its value: what comes of it holds for this value alone."""
        same = self == self.value
        assert same, "a size has the value of the call at hand"
        return self.value

    __int__ = __index__

    def __float__(self) -> float:
        return float(operator.index(self))

    def __repr__(self) -> str:
        return repr(operator.index(self))

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(operator.index(self), specification)

    def __getattr__(self, name: str) -> Any:
        """What else integers have, as of its value."""
        if not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute {name!r}")
        return getattr(operator.index(self), name)

    def __copy__(self) -> TracedSize:
        return self

    def __deepcopy__(self, memory: Any) -> TracedSize:
        return self

    def __reduce__(self) -> Any:
        return int, (operator.index(self),)


class TracedFloat:
    """A float that follows from sizes, as an expression of Python."""

    __slots__ = ("decisions", "depth", "names", "symbol", "text", "value")

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **keywords: Any) -> Any:
        return _array_ufunc(function, method, operands, keywords)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _as_array(self, dtype)

    def __init__(
        self, text: str, value: float, decisions: Decisions, names: Iterable[str],
        symbol: str = "", depth: int | None = None,
    ):  # fmt: skip
        self.text, self.value, self.decisions = text, value, decisions
        self.names = frozenset(names)
        self.symbol = symbol  # of the operation that it is the result of
        self.depth = _depth(text) if depth is None else depth  # of its parentheses

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float

    def _applied(self, symbol: str, other: Any, *, turned: bool = False) -> Any:
        """A binary operation, done to the values and written down."""
        text, value, names = _operand(other)
        if text is None:
            return NotImplemented
        texts, values = (self.text, text), (self.value, value)
        if turned:
            texts, values = texts[::-1], values[::-1]
        found = _OPERATIONS[symbol](*values)
        if symbol == "**":
            self.decisions.note_power(texts, values)
        if isinstance(found, complex):
            return found
        depth = max(_depth_of(other), self.depth) + 1
        if not turned and _ALIKE.get(symbol, symbol) == _ALIKE.get(self.symbol):
            texts = self.text[1:-1], text  # from left to right, as Python computes it, too
            depth = max(_depth_of(other) + 1, self.depth)
        if depth > _DEEPEST or sum(map(len, texts)) > _WIDEST:
            known = float(self)  # which then stays so: Python could not read what comes of it
            return _OPERATIONS[symbol](*((other, known) if turned else (known, other)))
        written = f"({texts[0]} {symbol} {texts[1]})"
        made = self.names | names
        return TracedFloat(written, found, self.decisions, made, symbol, depth)

    def __add__(self, other: Any) -> Any:
        return self._applied("+", other)

    def __radd__(self, other: Any) -> Any:
        return self._applied("+", other, turned=True)

    def __sub__(self, other: Any) -> Any:
        return self._applied("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._applied("-", other, turned=True)

    def __mul__(self, other: Any) -> Any:
        return self._applied("*", other)

    def __rmul__(self, other: Any) -> Any:
        return self._applied("*", other, turned=True)

    def __truediv__(self, other: Any) -> Any:
        return self._applied("/", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._applied("/", other, turned=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._applied("//", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._applied("//", other, turned=True)

    def __mod__(self, other: Any) -> Any:
        return self._applied("%", other)

    def __rmod__(self, other: Any) -> Any:
        return self._applied("%", other, turned=True)

    def __pow__(self, other: Any) -> Any:
        return self._applied("**", other)

    def __rpow__(self, other: Any) -> Any:
        return self._applied("**", other, turned=True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self * -1.0

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __floor__(self) -> Any:
        formula = Formula(f"floor({self.text})", self.names)
        return TracedSize(Size(((formula, 1),)), math.floor(self.value), self.decisions)

    def __ceil__(self) -> Any:
        return -math.floor(-self)

    def _compared(self, other: Any, symbol: str) -> Any:
        if type(other) is float and not math.isfinite(other):
            return _OPERATIONS[symbol](self.value, other)  # the same for all finite values
        text, value, _ = _operand(other)
        if text is None:
            return NotImplemented
        holds: bool = _OPERATIONS[symbol](self.value, value)
        written = f"{self.text} {symbol} {text}"
        self.decisions.note(written if holds else f"not {written}")
        return holds

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return _negated(self._compared(other, "=="))

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">")

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=")

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    def __hash__(self) -> int:
        return hash((self.text, id(self.decisions)) if _asked_from_inside() else float(self))

    def __float__(self) -> float:
        """Its value: what comes of it holds for this value alone."""
        self.decisions.note(f"{self.text} == {self.value!r}")
        return self.value

    def __int__(self) -> int:
        return int(float(self))

    __trunc__ = __int__

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self), digits)

    def __getattr__(self, name: str) -> Any:
        """What else floats have, as of its value."""
        if not hasattr(float, name):
            raise AttributeError(f"'float' object has no attribute {name!r}")
        return getattr(float(self), name)

    def operand(self) -> Any:
        """What it is for an operation."""
        make = self.decisions.operand
        return float(self) if make is None else make(self)

    def __repr__(self) -> str:
        return repr(float(self))

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(float(self), specification)

    def __reduce__(self) -> Any:
        return float, (float(self),)


_DEEPEST, _WIDEST = 90, 200_000  # parentheses and characters of a float's text
_ALIKE = {"+": "+", "-": "+", "*": "*", "/": "*", "//": "*", "%": "*"}  # in how tightly they bind


def _depth(text: str) -> int:
    depths = accumulate((c == "(") - (c == ")") for c in text if c in "()")
    return max(depths, default=0)


def _depth_of(number: Any) -> int:
    if type(number) is TracedFloat:
        return number.depth
    return 1 + _depth(str(number.size)) if _is_traced(number) else 0


def _asked_from_inside() -> bool:
    """Whether it is the framework that asks for a hash, methods that dataclasses have left out."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename == "<string>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(PACKAGE)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
}  # fmt: skip


def _is_traced(given: Any) -> bool:
    return type(given) is TracedSize


def _is_float(given: Any) -> bool:
    return type(given) in (float, TracedFloat)


def _is_fraction(given: Any) -> bool:
    return _is_float(given) and _whole(given) is None


def _is_number(given: Any) -> bool:
    """Whether it is a number to compute with here; others say themselves what comes of sizes."""
    return _is_traced(given) or _is_float(given) or _whole(given) is not None


def _whole(given: Any) -> int | None:
    """A plain integer, if it is one."""
    if type(given) is int:
        return given
    if type(given) is float:
        return int(given) if given.is_integer() else None
    if hasattr(type(given), "__index__") and not hasattr(given, "__array_function__"):
        return operator.index(given)
    return None


def _operand(given: Any) -> tuple[str | None, float, frozenset[str]]:
    """An operand of floats as a text, its value, and its names."""
    if type(given) is TracedFloat:
        return given.text, given.value, given.names
    if _is_traced(given):
        return f"({given.size})", given.value, frozenset(given.size.names())
    number = float(given) if type(given) is float else _whole(given)
    if number is None or not math.isfinite(number):
        return None, math.nan, frozenset()
    return repr(number), number, frozenset()


_UFUNCS: dict[numpy.ufunc, Callable[[Any, Any], Any]] = {
    numpy.add: operator.add, numpy.subtract: operator.sub, numpy.multiply: operator.mul,
    numpy.true_divide: operator.truediv, numpy.floor_divide: operator.floordiv,
    numpy.remainder: operator.mod, numpy.power: operator.pow,
    numpy.less: operator.lt, numpy.less_equal: operator.le, numpy.greater: operator.gt,
    numpy.greater_equal: operator.ge, numpy.equal: operator.eq, numpy.not_equal: operator.ne,
}  # fmt: skip


def _array_ufunc(
    function: numpy.ufunc, method: str, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """A function of NumPy's called with numbers that follow from sizes: with scalars as precise as
    Python's numbers, what Python computes; else their values, which then have to stay so."""
    apply = _UFUNCS.get(function)
    alike = all(is_traced(x) or isinstance(x, numpy.integer | int | float) for x in operands)
    if apply is None or method != "__call__" or keywords or not alike:
        return getattr(function, method)(*map(fixed_number, operands), **keywords)
    return apply(*(x.item() if isinstance(x, numpy.generic) else x for x in operands))


def _as_array(number: Any, dtype: Any) -> Any:
    """The value of a number that NumPy makes an array of: it then has to stay so. Else the array
    would hold the object itself, which is nothing outside of the capture."""
    return numpy.array(fixed_number(number), dtype)


def _negated(found: Any) -> Any:
    return found if found is NotImplemented else not found


def untraced(number: Any) -> Any:
    """A traced extent as a size; others as they are."""
    return number.size if _is_traced(number) else number


def value_of(number: Any) -> Any:
    """The value of the call at hand, for what does not depend on it."""
    return number.value if type(number) in (TracedSize, TracedFloat) else number


def index(given: Any) -> int:
    """An integer, as `operator.index` gives it; one that follows from sizes as it is."""
    return given if _is_traced(given) else operator.index(given)


def shown(number: Any) -> str:
    """A number in a message, which `pieces` finds for each size."""
    if type(number) is tuple:
        items = [*map(shown, number), ""] if len(number) == 1 else map(shown, number)
        return f"({', '.join(items).rstrip(' ')})"
    return f"{_MARK}{written(number)}{_MARK}" if is_traced(number) else str(number)


_MARK = "\0"  # around expressions in messages


def pieces(text: str) -> tuple[list[str], list[str]]:
    """The texts of a message that `shown` numbers stand in, and the numbers between them."""
    parts = text.split(_MARK)
    return parts[::2], parts[1::2]


def fixed_number(number: Any) -> Any:
    """A number as it is in the call at hand, which then has to stay so."""
    if type(number) is TracedFloat:
        return float(number)
    return operator.index(number) if _is_traced(number) else number


def is_traced(number: Any) -> bool:
    """Whether it follows from sizes."""
    return type(number) in (TracedSize, TracedFloat)


# -- other values of the sizes --------------------------------------------------------------------


def function_of(names: Iterable[str], expressions: Iterable[str]) -> Callable[..., tuple[Any, ...]]:
    """What gives the values of expressions, as sizes and conditions write them, for those of
    names."""
    body = "".join(f"{expression}, " for expression in expressions)
    known = {"floor": math.floor, "max": max, "min": min}
    text = f"lambda {', '.join(names)}: ({body})"
    made: Callable[..., tuple[Any, ...]] = eval(text, known)
    return made


def number_at(number: Any, values: Mapping[str, float]) -> Any:
    """A number that may follow from sizes, where these have other values."""
    if not is_traced(number):
        return number
    return evaluated_at(written(number), values)


def evaluated_at(expression: str, values: Mapping[str, float]) -> Any:
    """What an expression is at values of its names, and of others."""
    return _function_of(tuple(values), expression)(**values)[0]


_function_of = lru_cache(maxsize=1024)(lambda names, expression: function_of(names, [expression]))


def written(number: Any) -> str:
    """A number as `function_of` takes it."""
    if type(number) is TracedFloat:
        return number.text
    return str(number.size) if _is_traced(number) else repr(number)


__all__ = [
    "LEAST", "Decisions", "TracedFloat", "TracedSize", "evaluated_at", "fixed_number",
    "function_of", "index", "is_traced", "number_at", "only_looking", "pieces", "shown",
    "untraced", "value_of", "written",
]  # fmt: skip
