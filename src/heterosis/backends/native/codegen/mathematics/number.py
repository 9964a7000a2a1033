"""A value together with the function it is written into, so that a formula reads as a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heterosis.backends.native.codegen.emit.builder import (
    I1,
    Function,
    Type,
    Value,
    constant,
    literal_bits,
)

Operand = "Number | float"


class Number:
    """A scalar or vector value with operators. Plain numbers become constants of its type.

    `<`, `==` and their like compare in order: false where either side is NaN. `!=` is their
    complement: true there. Integer `>>` brings in zeros and `<` is signed.
    """

    __slots__ = ("f", "value")
    __hash__ = None  # type: ignore[assignment]  # what compares to code has no hash

    def __init__(self, f: Function, value: Value):
        self.f, self.value = f, value

    # -- making values ------------------------------------------------------------------------

    @property
    def type(self) -> Type:
        return self.value.type

    @property
    def double(self) -> bool:
        """Whether the elements are of double precision."""
        return self.type.element == "double"

    def made(self, value: Value) -> Number:
        return Number(self.f, value)

    def constant(self, number: float) -> Number:
        """`number` in this value's type; integers wrap around."""
        if self.type.is_float:
            return self.made(constant(self.type, number))
        return self.made(literal_bits(self.type, int(number) & ((1 << self.type.bits) - 1)))

    def wrap(self, other: Number | float) -> Number:
        return other if isinstance(other, Number) else self.constant(other)

    def by_dtype(self, single: float, double: float) -> Number:
        """The constant that fits this value's precision."""
        return self.constant(double if self.double else single)

    def _binary(self, instruction: str, other: Number | float) -> Number:
        return self.made(self.f.binary(instruction, self.value, self.wrap(other).value))

    # -- arithmetic ---------------------------------------------------------------------------

    def __add__(self, other: Number | float) -> Number:
        return self.made(self.f.add(self.value, self.wrap(other).value))

    def __sub__(self, other: Number | float) -> Number:
        return self.made(self.f.sub(self.value, self.wrap(other).value))

    def __mul__(self, other: Number | float) -> Number:
        return self.made(self.f.mul(self.value, self.wrap(other).value))

    def __truediv__(self, other: Number | float) -> Number:
        return self.made(self.f.div(self.value, self.wrap(other).value))

    def __radd__(self, other: float) -> Number:
        return self.wrap(other) + self

    def __rsub__(self, other: float) -> Number:
        return self.wrap(other) - self

    def __rmul__(self, other: float) -> Number:
        return self.wrap(other) * self

    def __rtruediv__(self, other: float) -> Number:
        return self.wrap(other) / self

    def __neg__(self) -> Number:
        return self.made(self.f.neg(self.value))

    def __abs__(self) -> Number:
        return self.call("fabs")

    def call(self, intrinsic: str, *others: Number | float) -> Number:
        arguments = [self.wrap(other).value for other in others]
        return self.made(self.f.intrinsic(intrinsic, self.value, *arguments))

    def sqrt(self) -> Number:
        return self.call("sqrt")

    def with_sign_of(self, other: Number) -> Number:
        return self.call("copysign", other)

    # -- bits ---------------------------------------------------------------------------------

    def __and__(self, other: Number | int) -> Number:
        return self._binary("and", other)

    def __or__(self, other: Number | int) -> Number:
        return self._binary("or", other)

    def __xor__(self, other: Number | int) -> Number:
        return self._binary("xor", other)

    def __invert__(self) -> Number:
        return self._binary("xor", -1)

    def __lshift__(self, other: Number | int) -> Number:
        return self._binary("shl", other)

    def __rshift__(self, other: Number | int) -> Number:
        return self._binary("lshr", other)

    def signed_shift(self, count: int) -> Number:
        """Shift right, repeating the sign bit."""
        return self._binary("ashr", count)

    @property
    def bits(self) -> Number:
        """A float's bits as an integer."""
        return self.made(self.f.bits(self.value))

    @property
    def as_float(self) -> Number:
        """The float with these bits."""
        element = {32: "float", 64: "double"}[self.type.bits]
        return self.made(self.f.convert("bitcast", self.value, self.type.of(element)))

    def flip_sign(self, sign: Number) -> Number:
        """Negated where the top bit of the integer `sign`, whose other bits are zero, is set."""
        return (self.bits ^ sign).as_float

    # -- conversions --------------------------------------------------------------------------

    def to(self, element: str, instruction: str) -> Number:
        return self.made(self.f.convert(instruction, self.value, self.type.of(element)))

    def to_double(self) -> Number:
        return self.to("double", "fpext")

    def to_single(self) -> Number:
        return self.to("float", "fptrunc")

    # -- comparisons --------------------------------------------------------------------------

    def _compare(self, name: str, other: Number | float) -> Number:
        prefix = "o" if self.type.is_float else "s"
        return self.made(self.f.compare(prefix + name, self.value, self.wrap(other).value))

    def __lt__(self, other: Number | float) -> Number:
        return self._compare("lt", other)

    def __le__(self, other: Number | float) -> Number:
        return self._compare("le", other)

    def __gt__(self, other: Number | float) -> Number:
        return self._compare("gt", other)

    def __ge__(self, other: Number | float) -> Number:
        return self._compare("ge", other)

    def __eq__(self, other: Number | float) -> Number:  # type: ignore[override]  # code that compares
        predicate = "oeq" if self.type.is_float else "eq"
        return self.made(self.f.compare(predicate, self.value, self.wrap(other).value))

    def __ne__(self, other: Number | float) -> Number:  # type: ignore[override]  # code that compares
        predicate = "une" if self.type.is_float else "ne"
        return self.made(self.f.compare(predicate, self.value, self.wrap(other).value))

    def unsigned_at_least(self, other: Number) -> Number:
        """Whether an integer is not below another, both without signs."""
        return self.made(self.f.compare("uge", self.value, other.value))

    def unordered(self, other: Number) -> Number:
        """Whether either side is NaN."""
        return self.made(self.f.compare("uno", self.value, other.value))

    def is_nan(self) -> Number:
        return self.unordered(self)

    def is_negative(self) -> Number:
        """Whether the sign bit is set, that of a zero or NaN too."""
        return self.bits < 0

    def any(self) -> Number:
        """Whether a condition holds in any lane, as one bit."""
        if not self.type.lanes:
            return self
        return self.made(self.f.intrinsic("vector.reduce.or", self.value, returns=I1))

    def all(self) -> Number:
        """Whether a condition holds in every lane, as one bit."""
        if not self.type.lanes:
            return self
        return self.made(self.f.intrinsic("vector.reduce.and", self.value, returns=I1))

    def lane(self, index: int) -> Number:
        return self.made(self.f.extract(self.value, index))


def where(condition: Number, a: Number | float, b: Number | float) -> Number:
    """`a` where the condition holds, else `b`. One of the two must be a `Number`."""
    if not isinstance(a, Number):
        assert isinstance(b, Number)
        a = b.wrap(a)
    return a.made(condition.f.select(condition.value, a.value, a.wrap(b).value))


def fma(a: Number, b: Number | float, c: Number | float) -> Number:
    """`a * b + c`, rounded once or twice as the processor likes."""
    return a.made(a.f.fma(a.value, a.wrap(b).value, a.wrap(c).value))


def at_least(x: Number, bound: float) -> Number:
    """`x`, but not below `bound`; NaN stays."""
    return where(x < bound, bound, x)


def at_most(x: Number, bound: float) -> Number:
    """`x`, but not above `bound`; NaN stays."""
    return where(x > bound, bound, x)


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Horner's rule; the constant term comes first."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result


def split_polynomial(x: Number, square: Number, coefficients: Sequence[float]) -> Number:
    """Horner's rule on the even and the odd terms apart: half the latency, one product more."""
    even = polynomial(square, coefficients[0::2])
    odd = polynomial(square, coefficients[1::2])
    return fma(odd, x, even)


def emitted(formula: Callable[..., Number]) -> Callable[..., Value]:
    """The formula as the code generator calls it: `name(function, *values) -> value`."""

    def emit(f: Function, *arguments: Value) -> Value:
        return formula(*(Number(f, argument) for argument in arguments)).value

    emit.__name__ = emit.__qualname__ = formula.__name__
    emit.__doc__ = formula.__doc__
    return emit
