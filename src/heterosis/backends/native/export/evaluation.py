"""The table of operations that gives numbers for sizes, as an exported library goes through it."""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.emit.builder import (
    DOUBLE,
    I1,
    I64,
    PTR,
    Function,
    Module,
    Type,
    Value,
    constant,
)
from heterosis.ir.formulas import FIELDS, NUMBERS

Emit = Callable[[Function, Value, Value], Value]


def _instruction(name: str) -> Emit:
    return lambda f, a, b: f.binary(name, a, b)


def _on_floats(emit: Emit) -> Emit:
    def found(f: Function, a: Value, b: Value) -> Value:
        return f.bits(emit(f, f.convert("bitcast", a, DOUBLE), f.convert("bitcast", b, DOUBLE)))

    return found


def _comparison(predicate: str) -> Emit:
    return lambda f, a, b: f.convert("zext", f.compare(predicate, a, b), I64)


def _float_comparison(predicate: str) -> Emit:
    def found(f: Function, a: Value, b: Value) -> Value:
        given = (f.convert("bitcast", x, DOUBLE) for x in (a, b))
        return f.convert("zext", f.compare(predicate, *given), I64)

    return found


def _divided(f: Function, a: Value, b: Value) -> Value:
    """Rounded down. The divisor is positive where this is the operation that is asked for."""
    one = constant(I64, 1)
    divisor = f.select(f.compare("sgt", b, constant(I64, 0)), b, one)
    quotient, rest = f.binary("sdiv", a, divisor), f.binary("srem", a, divisor)
    below = f.compare("slt", rest, constant(I64, 0))
    return f.sub(quotient, f.convert("zext", below, I64))


def _joined(f: Function, a: Value, b: Value) -> Value:
    """The bits of a number in two halves."""
    return f.binary("or", f.binary("shl", a, constant(I64, 32)), b)


def _floor(f: Function, a: Value, b: Value) -> Value:
    number = f.convert("bitcast", a, DOUBLE)
    toward_zero = f.convert("fptosi", number, I64)
    above = f.compare("ogt", f.convert("sitofp", toward_zero, DOUBLE), number)
    return f.sub(toward_zero, f.convert("zext", above, I64))


def _from_whole(f: Function, a: Value, b: Value) -> Value:
    return f.bits(f.convert("sitofp", a, DOUBLE))


def _overflows(name: str) -> Emit:
    pair = Type("{ i64, i1 }")

    def found(f: Function, a: Value, b: Value) -> Value:
        made = f.call(f"llvm.{name}.with.overflow.i64", [a, b], pair)
        return f.emit(I1, f"extractvalue {made}, 1")

    return found


def _is_too_large(f: Function, a: Value, b: Value) -> Value:
    """Whether a float is no number of 64 bits; what is not a number is none."""
    number = f.intrinsic("fabs", f.convert("bitcast", a, DOUBLE))
    return f.compare("uge", number, constant(DOUBLE, 2.0**62))


_OPERATIONS: dict[str, Emit] = {
    "+": _instruction("add"),
    "-": _instruction("sub"),
    "*": _instruction("mul"),
    "//": _divided,
    "max": lambda f, a, b: f.intrinsic("smax", a, b),
    "min": lambda f, a, b: f.intrinsic("smin", a, b),
    "<": _comparison("slt"),
    "<=": _comparison("sle"),
    "==": _comparison("eq"),
    "float": _from_whole,
    "joined": _joined,
    "f+": _on_floats(Function.add),
    "f-": _on_floats(Function.sub),
    "f*": _on_floats(Function.mul),
    "f/": _on_floats(Function.div),
    "f<": _float_comparison("olt"),
    "f<=": _float_comparison("ole"),
    "f==": _float_comparison("oeq"),
    "floor": _floor,
    "require": lambda f, a, b: a,
}
# Where the sizes are refused that an operation is for.
_FAILURES: dict[str, Emit] = {
    "+": _overflows("sadd"),
    "-": _overflows("ssub"),
    "*": _overflows("smul"),
    "floor": _is_too_large,
    "require": lambda f, a, b: f.compare("eq", a, constant(I64, 0)),
}


def emit_evaluation(module: Module) -> None:
    """Define `i1 @heterosis.evaluate(rows, count, slots, first)`: go through a table of operations,
    whose results go to the slots from number `first` on; 0 if something is required that does not
    hold, or a number gets too large."""
    parameters = [("rows", PTR), ("count", I64), ("slots", PTR), ("first", I64)]
    f = module.function("heterosis.evaluate", parameters, I1)
    rows, count, slots, first = f.parameters
    with f.loop(constant(I64, 0), count) as each:
        row = f.offset(I64, rows, f.mul_size(each.index, FIELDS))
        number, *words = (f.load(I64, f.offset(I64, row, i)) for i in range(FIELDS))
        a, b = (operand(f, slots, word) for word in words)
        found, fails = a, constant(I1, 0)
        for name, emit in _OPERATIONS.items():
            own = f.compare("eq", number, constant(I64, NUMBERS[name]))
            found = f.select(own, emit(f, a, b), found)
            if name in _FAILURES:
                fails = f.binary("or", fails, f.binary("and", own, _FAILURES[name](f, a, b)))
        f.leave_if(fails, lambda: f.ret(constant(I1, 0)))
        f.store(found, f.offset(I64, slots, f.add(first, each.index)))
    f.ret(constant(I1, 1))


def operand(f: Function, slots: Value, word: Value) -> Value:
    """The number that a word stands for."""
    one = constant(I64, 1)
    is_number = f.compare("ne", f.binary("and", word, one), constant(I64, 0))
    number = f.binary("ashr", word, one)
    slot = f.select(is_number, constant(I64, 0), number)
    return f.select(is_number, number, f.load(I64, f.offset(I64, slots, slot)))
