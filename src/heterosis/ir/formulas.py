"""Numbers that follow from sizes as a table of operations: what finds plans, and an exported
library, goes through it instead of asking Python.

An operand is a word. An odd one is twice a number and one; an even one is twice the number of a
slot, where the sizes stand first, and then the results of all operations. Floats are there as their
bits. Python's numbers have no bounds, and these have 64 bits: sizes are refused whose numbers would
not fit. `core/formulas.cpp` goes through such tables, and `emit_evaluation` for libraries.
"""

from __future__ import annotations

import ast
import operator
import struct
from collections.abc import Collection, Sequence
from functools import partial, reduce
from typing import NamedTuple

from heterosis.runtime.errors import UnsupportedError

FIELDS = 3  # of a row: which operation it is, and its operands
# In the order of the numbers that rows and `core/formulas.h` have for them.
OPERATIONS = (
    "+", "-", "*", "//", "max", "min", "<", "<=", "==",
    "float", "joined",
    "f+", "f-", "f*", "f/", "f<", "f<=", "f==",
    "floor", "require",
)  # fmt: skip
NUMBERS = {name: i for i, name in enumerate(OPERATIONS)}
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
_MOST = 2**62  # what the numbers are below that a word has room for


class Formulas:
    """The operations that numbers need which follow from those of some names, each once. Of the
    names, some may be of floats."""

    def __init__(self, names: Sequence[str], floats: Collection[str] = ()):
        self.names, self.floats = tuple(names), floats
        self.rows: list[tuple[int, int, int]] = []
        self._known: dict[tuple[str, int, int], int] = {}
        self._read: dict[str, _Operand] = {}

    def whole(self, number: int | str) -> int:
        """The word for a whole number, or for one that follows from sizes."""
        found = self._of(str(number))
        if found.is_float:
            raise _refused(str(number))
        return found.word

    def fraction(self, text: str) -> int:
        """The word for the bits of a float."""
        return self._as_float(self._of(text)).word

    def require(self, condition: str) -> None:
        """Let the sizes be refused unless this holds."""
        self._require(self._of(condition))

    @property
    def table(self) -> list[int]:
        """The rows one after another."""
        return [field for row in self.rows for field in row]

    # -- from texts to rows -----------------------------------------------------------------------

    def _of(self, text: str) -> _Operand:
        if text not in self._read:
            self._read[text] = self._operand(_parsed(text))
        return self._read[text]

    def _row(self, name: str, a: int, b: int = 1) -> int:
        """The word for the result of an operation."""
        if a & b & 1 and name in _FOLDED:
            return self._number(int(_FOLDED[name](a >> 1, b >> 1)))
        key = name, a, b
        if key not in self._known:
            self._known[key] = 2 * (len(self.names) + len(self.rows))
            self.rows.append((NUMBERS[name], a, b))
        return self._known[key]

    def _number(self, number: int) -> int:
        """The word for a number, which is in two halves where a word has too few bits."""
        if -_MOST <= number < _MOST:
            return 2 * number + 1
        if not -2 * _MOST <= number < 2 * _MOST:
            raise _refused(str(number))
        return self._row("joined", 2 * (number >> 32) + 1, 2 * (number & 0xFFFFFFFF) + 1)

    def _require(self, holds: _Operand) -> None:
        if holds.word != _TRUE:
            self._row("require", holds.word)

    def _operand(self, tree: ast.expr) -> _Operand:
        match tree:
            case ast.Constant(value=bool() | int() as number):
                return _Operand(self._number(int(number)))
            case ast.Constant(value=float(number)):
                return self._float(number)
            case ast.Name(id=name) if name in self.names:
                return _Operand(2 * self.names.index(name), is_float=name in self.floats)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(number))):
                return self._float(-number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return _Operand(self._number(-number))
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
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[_, _, *_], keywords=[]):
                return reduce(partial(self._extremum, name), map(self._operand, tree.args))
        raise _refused(ast.unparse(tree))

    def _extremum(self, name: str, a: _Operand, b: _Operand) -> _Operand:
        if a.is_float or b.is_float:
            raise _refused(f"the {name} of floats")
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
                "a float that follows from sizes is divided by //. There are +, -, *, / and floor "
                "for these: write math.floor(a / b)."
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
        f"{text}: this number cannot be computed from sizes; there are sums, products, quotients, "
        "max, min and floor. Use known sizes, with dynamic=False."
    )
