"""Arithmetic, comparisons, choices and bits, element by element.

ONNX leaves open what integers divided by zero are: here they mean what `ir.primitives` says.
Runtimes compute with integers of 32 and 64 bits: narrower ones are widened, which wraps the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy

from heterosis.ir.primitives import elementwise as e
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import Node
from heterosis.ir.types import ITEMSIZE, is_float, is_integer, is_signed
from heterosis.models.onnx.writing.programs import ProgramWriter, computed_type
from heterosis.models.onnx.writing.tables import row

# What computes elements of a type, which comes last.
Formula = Callable[..., str]


class Elements:
    """The operators of ONNX on elements of one type, with numbers as they are."""

    def __init__(self, writer: ProgramWriter, dtype: str):
        self.writer, self.dtype = writer, dtype

    def __call__(self, operator: str, *operands: str | float, **attributes: object) -> str:
        names = (o if isinstance(o, str) else self.writer.array(o, self.dtype) for o in operands)
        return self.writer.node(operator, *names, **attributes)

    def to(self, name: str, dtype: str) -> str:
        return self.writer.cast(name, dtype)


def wide_integer(dtype: str) -> str:
    """The type that integers are computed in."""
    if not is_integer(dtype) or ITEMSIZE[dtype] == 8:
        return dtype
    return "int64" if dtype == "uint32" else "int32"


def combined_type(dtype: str) -> str:
    """The type that elements are added up in, or compared: truths are counted, halves are floats
    of 32 bits, and integers wrap."""
    return "int32" if dtype == "bool" else wide_integer(computed_type(dtype))


def computed(primitive: Primitive, formula: Formula, *, of_truths: bool = False) -> None:
    """Let a formula write a primitive, on integers that are widened and narrowed again."""

    def write(writer: ProgramWriter, node: Node) -> str:
        operands, dtype = writer.operands(node), node.inputs[0].dtype
        wide = "int32" if of_truths and dtype == "bool" else wide_integer(dtype)
        if wide != dtype:
            operands = [writer.cast(name, wide) for name in operands]
        found = formula(Elements(writer, computed_type(wide)), *operands)
        same = wide == dtype or node.types[0].dtype == "bool"
        return found if same else writer.cast(found, dtype)

    row(primitive)(write)


def plain(operator: str) -> Formula:
    return lambda on, *operands: on(operator, *operands)


def _either(numbers: Formula, truths: str) -> Formula:
    def formula(on: Elements, *operands: str) -> str:
        return on(truths, *operands) if on.dtype == "bool" else numbers(on, *operands)

    return formula


def _by_kind(floats: Formula, integers: Formula) -> Formula:
    def formula(on: Elements, *operands: str) -> str:
        return (floats if is_float(on.dtype) else integers)(on, *operands)

    return formula


# -- division -------------------------------------------------------------------------------------


def _safe_divisor(on: Elements, a: str, b: str) -> tuple[str, str]:
    """Whether `b` is zero; `b` with ones there, and at the one quotient that overflows."""
    zero = on("Equal", b, 0)
    unsafe = zero
    if is_signed(on.dtype):
        lowest = int(numpy.iinfo(on.dtype).min)
        overflows = on("And", on("Equal", a, lowest), on("Equal", b, -1))
        unsafe = on("Or", zero, overflows)
    return zero, on("Where", unsafe, 1, b)


def _divided(on: Elements, a: str, b: str) -> str:
    zero, safe = _safe_divisor(on, a, b)
    rest = on("Mod", a, safe)
    quotient = on("Div", on("Sub", a, rest), safe)
    if is_signed(on.dtype):  # the lowest number divided by -1 wraps to itself
        quotient = on("Where", on("Equal", b, -1), on("Sub", 0, a), quotient)
    return on("Where", zero, 0, quotient)


def _remainder(on: Elements, a: str, b: str) -> str:
    zero, safe = _safe_divisor(on, a, b)
    return on("Where", zero, 0, on("Mod", a, safe))


def _truncated_remainder(on: Elements, a: str, b: str) -> str:
    zero, safe = _safe_divisor(on, a, b)
    return on("Where", zero, 0, on("Mod", a, safe, fmod=1))


def _moved(on: Elements, a: str, b: str) -> tuple[str, str]:
    """The remainder with the sign of the dividend, and whether the divisor has the other one."""
    rest = on("Mod", a, b, fmod=1)
    differ = on("Xor", on("Less", rest, 0.0), on("Less", b, 0.0))
    return rest, on("And", on("Not", on("Equal", rest, 0.0)), differ)


def _float_remainder(on: Elements, a: str, b: str) -> str:
    rest, differ = _moved(on, a, b)
    moved = on("Where", differ, on("Add", rest, b), rest)
    zero = on("Where", on("Less", on("Div", 1.0, b), 0.0), -0.0, 0.0)  # with the divisor's sign
    return on("Where", on("Equal", rest, 0.0), zero, moved)


def _float_divided(on: Elements, a: str, b: str) -> str:
    """By way of the remainder, so that both agree."""
    rest, differ = _moved(on, a, b)
    whole = on("Div", on("Sub", a, rest), b)
    whole = on("Where", differ, on("Sub", whole, 1.0), whole)
    floored = on("Floor", whole)
    behind = on("Greater", on("Sub", whole, floored), 0.5)
    floored = on("Where", behind, on("Add", floored, 1.0), floored)
    quotient = on("Div", a, b)
    floored = on("Where", on("Equal", whole, 0.0), on("Mul", quotient, 0.0), floored)
    return on("Where", on("Equal", b, 0.0), quotient, floored)


# -- powers and signs -----------------------------------------------------------------------------


def _whole_power(on: Elements, a: str, b: str) -> str:
    """By squaring, wrapping as multiplication does; 1 / a, rounded to zero, below exponents of
    zero."""
    result, base, left = on("Add", on("Mul", a, 0), 1), a, b
    for _ in range(8 * ITEMSIZE[on.dtype] - is_signed(on.dtype)):
        odd = on("Not", on("Equal", on("Mod", left, 2), 0))
        result = on("Where", odd, on("Mul", result, base), result)
        base, left = on("Mul", base, base), on("Div", left, 2)
    if not is_signed(on.dtype):
        return result
    odd = on("Not", on("Equal", on("Mod", b, 2), 0))
    inverse = on("Where", on("Equal", a, -1), on("Where", odd, -1, 1), 0)
    inverse = on("Where", on("Equal", a, 1), 1, inverse)
    return on("Where", on("Less", b, 0), inverse, result)


def _negative(on: Elements, x: str) -> str:
    return on("Neg", x) if is_float(on.dtype) or is_signed(on.dtype) else on("Sub", 0, x)


def _absolute(on: Elements, x: str) -> str:
    return on("Abs", x) if is_float(on.dtype) or is_signed(on.dtype) else x


def _sign(on: Elements, x: str) -> str:
    if not is_float(on.dtype):
        return on("Sign", x)
    return on("Where", on("IsNaN", x), x, on("Sign", x))


# -- comparisons and choices ----------------------------------------------------------------------


def _turned(formula: Formula) -> Formula:
    return lambda on, *operands: on("Not", formula(on, *operands))


def _chosen(writer: ProgramWriter, node: Node) -> str:
    return chosen(writer, node.types[0].dtype, *writer.operands(node))


def chosen(writer: ProgramWriter, dtype: str, condition: str, first: str, second: str) -> str:
    """Elements of one array of this type where a condition holds, else of the other."""
    if dtype == "bool":  # which runtimes do not choose from
        on = Elements(writer, dtype)
        return on("Or", on("And", condition, first), on("And", on("Not", condition), second))
    wide = wide_integer(dtype)
    if wide == dtype:
        return writer.node("Where", condition, first, second)
    found = writer.node("Where", condition, writer.cast(first, wide), writer.cast(second, wide))
    return writer.cast(found, dtype)


# -- bits -----------------------------------------------------------------------------------------


def _inside(on: Elements, b: str, bits: int) -> tuple[str, str]:
    """Whether distances stay in the type; `b` with zeros where they do not."""
    inside = on("Less", b, bits)
    if is_signed(on.dtype):
        inside = on("And", inside, on("Not", on("Less", b, 0)))
    return inside, on("Where", inside, b, 0)


def _shifted(on: Elements, a: str, b: str, direction: str) -> str:
    """Of unsigned numbers: ONNX has no others."""
    unsigned = on.dtype if on.dtype.startswith("u") else f"u{on.dtype}"
    found = on("BitShift", on.to(a, unsigned), on.to(b, unsigned), direction=direction)
    return on.to(found, on.dtype)


def _shift(writer: ProgramWriter, node: Node) -> str:
    a, b = writer.operands(node)
    dtype = node.types[0].dtype
    wide = Elements(writer, wide_integer(dtype))
    on = Elements(writer, dtype)
    inside, distance = _inside(wide, wide.to(b, wide.dtype), 8 * ITEMSIZE[dtype])
    distance = on.to(distance, dtype)
    if node.primitive is e.LEFT_SHIFT:
        return on("Where", inside, _shifted(on, a, distance, "LEFT"), 0)
    if not is_signed(dtype):
        return on("Where", inside, _shifted(on, a, distance, "RIGHT"), 0)
    below = wide("Less", wide.to(a, wide.dtype), 0)
    positive = on("Where", below, on("BitwiseNot", a), a)
    found = on("Where", inside, _shifted(on, positive, distance, "RIGHT"), 0)
    return on("Where", below, on("BitwiseNot", found), found)


row(e.SELECT)(_chosen)
row(e.LEFT_SHIFT, e.RIGHT_SHIFT)(_shift)
for _primitive, _formula in {
    e.ADD: _either(plain("Add"), "Or"),
    e.SUBTRACT: plain("Sub"),
    e.MULTIPLY: _either(plain("Mul"), "And"),
    e.FLOOR_DIVIDE: _by_kind(_float_divided, _divided),
    e.MOD: _by_kind(_float_remainder, _remainder),
    e.FMOD: _by_kind(lambda on, a, b: on("Mod", a, b, fmod=1), _truncated_remainder),
    e.POWER: _by_kind(plain("Pow"), _whole_power),
    e.NEGATIVE: _negative,
    e.ABSOLUTE: _either(_absolute, "Identity"),
    e.SIGN: _sign,
    e.MAXIMUM: _either(plain("Max"), "Or"),
    e.MINIMUM: _either(plain("Min"), "And"),
    e.EQUAL: plain("Equal"),
    e.NOT_EQUAL: _turned(plain("Equal")),
    e.BITWISE_AND: _either(plain("BitwiseAnd"), "And"),
    e.BITWISE_OR: _either(plain("BitwiseOr"), "Or"),
    e.BITWISE_XOR: _either(plain("BitwiseXor"), "Xor"),
    e.INVERT: _either(plain("BitwiseNot"), "Not"),
}.items():
    computed(_primitive, _formula)
for _primitive, _operator in {
    e.LESS: "Less", e.LESS_EQUAL: "LessOrEqual", e.GREATER: "Greater",
    e.GREATER_EQUAL: "GreaterOrEqual",
}.items():  # fmt: skip
    computed(_primitive, plain(_operator), of_truths=True)
