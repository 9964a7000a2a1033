"""Numbers that follow from sizes as a table of operations, which an exported library goes through.

An operand is a word. An odd one is twice a number and one; an even one is twice the number of a
slot, where the sizes stand first, and then the results of all operations. Floats are there as their
bits. Python's numbers have no bounds, and these have 64 bits: sizes are refused whose numbers would
not fit.
"""

from __future__ import annotations

import ast
import operator
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
from heterosis.runtime.errors import UnsupportedError

FIELDS = 3  # of a row: which operation it is, and its operands

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
_NUMBERS = {name: i for i, name in enumerate(_OPERATIONS)}
_FOLDED = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, "<=": operator.le,
    "==": operator.eq,
}  # fmt: skip
_BINARY: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/"
}  # fmt: skip
# What each comparison is, of operands in this order or the other one, or its opposite.
_COMPARED: dict[type, tuple[str, bool, bool]] = {
    ast.Lt: ("<", False, False), ast.LtE: ("<=", False, False), ast.Gt: ("<", True, False),
    ast.GtE: ("<=", True, False), ast.Eq: ("==", False, False), ast.NotEq: ("==", False, True),
}  # fmt: skip


class _Operand(NamedTuple):
    word: int
    is_float: bool = False


_TRUE = 3  # the word for the number 1


class Formulas:
    """The operations that numbers of some sizes need, each once."""

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)
        self.rows: list[tuple[int, int, int]] = []
        self._known: dict[tuple[str, int, int], int] = {}

    def whole(self, number: int | str) -> int:
        """The word for a whole number, or for one that follows from sizes."""
        text = str(number)
        found = self._operand(_parsed(text))
        if found.is_float:
            raise _refused(text)
        return found.word

    def fraction(self, text: str) -> int:
        """The word for the bits of a float."""
        return self._as_float(self._operand(_parsed(text))).word

    def require(self, condition: str) -> None:
        """Let the sizes be refused unless this holds."""
        self._require(self._operand(_parsed(condition)))

    @property
    def table(self) -> list[int]:
        """The rows one after another."""
        return [field for row in self.rows for field in row]

    # -- from texts to rows -----------------------------------------------------------------------

    def _row(self, name: str, a: int, b: int = 1) -> int:
        """The word for the result of an operation."""
        if a & b & 1 and name in _FOLDED:
            return 2 * int(_FOLDED[name](a >> 1, b >> 1)) + 1
        key = name, a, b
        if key not in self._known:
            self._known[key] = 2 * (len(self.names) + len(self.rows))
            self.rows.append((_NUMBERS[name], a, b))
        return self._known[key]

    def _require(self, holds: _Operand) -> None:
        if holds.word != _TRUE:
            self._row("require", holds.word)

    def _operand(self, tree: ast.expr) -> _Operand:
        match tree:
            case ast.Constant(value=bool() | int() as number):
                return _Operand(2 * int(number) + 1)
            case ast.Constant(value=float(number)):
                return self._float(number)
            case ast.Name(id=name) if name in self.names:
                return _Operand(2 * self.names.index(name))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(number))):
                return self._float(-number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._binary("-", _Operand(1), self._operand(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _Operand(self._row("==", self._operand(operand).word, 1))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._binary(_BINARY[type(op)], self._operand(left), self._operand(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                return self._compared(op, self._operand(left), self._operand(right))
            case ast.Call(func=ast.Name(id="floor"), args=[given], keywords=[]):
                return _Operand(self._row("floor", self._as_float(self._operand(given)).word))
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[left, right], keywords=[]):
                return self._extremum(name, self._operand(left), self._operand(right), tree)
        raise _refused(ast.unparse(tree))

    def _extremum(self, name: str, a: _Operand, b: _Operand, tree: ast.expr) -> _Operand:
        if a.is_float or b.is_float:
            raise _refused(ast.unparse(tree))
        return _Operand(self._row(name, a.word, b.word))

    def _binary(self, symbol: str, a: _Operand, b: _Operand) -> _Operand:
        if symbol == "/" or a.is_float or b.is_float:
            return self._on_floats(symbol, self._as_float(a), self._as_float(b))
        if symbol == "//" and not (b.word & 1 and b.word > 1):
            self._require(_Operand(self._row("<", 1, b.word)))
        return _Operand(self._row(symbol, a.word, b.word))

    def _on_floats(self, symbol: str, a: _Operand, b: _Operand) -> _Operand:
        if symbol == "//":
            raise UnsupportedError(
                "a float that follows from sizes is divided by //. A library has +, -, *, / and "
                "floor for these: write math.floor(a / b)."
            )
        if symbol == "/":
            zero = self._float(0.0)
            equal = self._row("f==", b.word, zero.word)
            self._require(_Operand(self._row("==", equal, 1)))
        return _Operand(self._row(f"f{symbol}", a.word, b.word), is_float=True)

    def _compared(self, op: ast.cmpop, a: _Operand, b: _Operand) -> _Operand:
        name, turned, opposite = _COMPARED[type(op)]
        if a.is_float or b.is_float:
            name, a, b = f"f{name}", self._as_float(a), self._as_float(b)
        found = self._row(name, b.word, a.word) if turned else self._row(name, a.word, b.word)
        return _Operand(self._row("==", found, 1) if opposite else found)

    def _as_float(self, given: _Operand) -> _Operand:
        return given if given.is_float else _Operand(self._row("float", given.word), is_float=True)

    def _float(self, number: float) -> _Operand:
        low, high = struct.unpack("<Ii", struct.pack("<d", number))
        return _Operand(self._row("joined", 2 * high + 1, 2 * low + 1), is_float=True)


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise _refused(text[:60]) from error


def _refused(text: str) -> UnsupportedError:
    return UnsupportedError(
        f"{text}: a library cannot compute this number from sizes; it has sums, products, "
        "quotients, max, min and floor. Export it for known sizes, with dynamic=False."
    )


# -- in a library ---------------------------------------------------------------------------------


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
            own = f.compare("eq", number, constant(I64, _NUMBERS[name]))
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
