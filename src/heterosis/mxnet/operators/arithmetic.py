"""Operators of two arrays, or of an array and a number: arithmetic, comparisons, logic."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from heterosis import np
from heterosis.mxnet.graph import Entry
from heterosis.mxnet.operators.conversions import converted
from heterosis.mxnet.operators.table import Run, operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, plain, writes
from heterosis.ops.record import REGISTRY
from heterosis.ops.unsized import RULES, UNKNOWN, Unsized, settled
from heterosis.runtime.errors import ShapeError


class _Pair(NamedTuple):
    """The operators that one operation of two operands is in MXNet."""

    operation: str
    names: tuple[str, ...] = ()  # in `F`, on two arrays
    older: str = ""  # between underscores, on two arrays or an array and a number
    turned: str = ""  # the operation with a number on its right that this is with one on its left
    symbols: tuple[str, ...] = ()  # functions of `sym` that take a number on either side

    @property
    def compute(self) -> Run:
        run: Run = getattr(np, self.operation, None) or REGISTRY[self.operation].operation
        return run


_ARITHMETIC = (
    _Pair("add", ("broadcast_add", "broadcast_plus", "add"), "plus", "add"),
    _Pair("subtract", ("broadcast_sub", "broadcast_minus", "subtract"), "minus"),
    _Pair("multiply", ("broadcast_mul", "multiply"), "mul", "multiply"),
    _Pair("true_divide", ("broadcast_div", "divide"), "div"),
    _Pair("mod", ("broadcast_mod", "modulo"), "mod"),
    _Pair("power", ("broadcast_power", "power", "pow"), "power", symbols=("power", "pow")),
    _Pair("maximum", ("broadcast_maximum", "maximum"), "maximum", "maximum", ("maximum",)),
    _Pair("minimum", ("broadcast_minimum", "minimum"), "minimum", "minimum", ("minimum",)),
    _Pair("hypot", ("broadcast_hypot", "hypot"), "hypot", "hypot", ("hypot",)),
    _Pair("bitwise_and", turned="bitwise_and"),
    _Pair("bitwise_or", turned="bitwise_or"),
    _Pair("bitwise_xor", turned="bitwise_xor"),
    _Pair("lcm", turned="lcm"),
    _Pair("arctan2"),
    _Pair("copysign"),
    _Pair("ldexp"),
)
_COMPARISONS = (
    _Pair("equal", ("broadcast_equal", "equal"), "equal", "equal"),
    _Pair("not_equal", ("broadcast_not_equal", "not_equal"), "not_equal", "not_equal"),
    _Pair("greater", ("broadcast_greater", "greater"), "greater", "less"),
    _Pair(
        "greater_equal", ("broadcast_greater_equal", "greater_equal"), "greater_equal", "less_equal"
    ),
    _Pair("less", ("broadcast_lesser", "lesser"), "lesser", "greater"),
    _Pair(
        "less_equal", ("broadcast_lesser_equal", "lesser_equal"), "lesser_equal", "greater_equal"
    ),
)
# MXNet writes these on 0 and 1, and has no newer operators for numbers.
_LOGIC = tuple(
    _Pair(name, (f"broadcast_{name}", name), name)
    for name in ("logical_and", "logical_or", "logical_xor")
)

# The functions of `sym` that take a number on either side, and the operation that each is.
BINARY = {name: pair.operation for pair in _ARITHMETIC for name in pair.symbols}


# -- two arrays -----------------------------------------------------------------------------------


def _binary(run: Run) -> Run:
    return lambda lhs, rhs: run(lhs, rhs)


def _truth(run: Run) -> Run:
    """0 and 1 in the element type of the operands."""

    def compare(lhs: Any, rhs: Any) -> Any:
        like = lhs if isinstance(lhs, np.ndarray) else rhs
        return run(lhs, rhs).astype(like.dtype)

    return compare


def _older(name: str) -> tuple[str, ...]:
    return (f"_{name}", f"_{name.title()}") if name else ()


def _add_on_arrays(pairs: Iterable[_Pair], keep: Callable[[Run], Run]) -> None:
    for pair in pairs:
        if pair.names:
            operator(*pair.names, stored=_older(pair.older))(keep(pair.compute))


_add_on_arrays(_ARITHMETIC, _binary)
_add_on_arrays((*_COMPARISONS, *_LOGIC), _truth)


def _same_shape(name: str, run: Run) -> Run:
    def combine(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, Unsized) or isinstance(rhs, Unsized):
            lhs, rhs = settled(name, {"lhs": lhs, "rhs": rhs}).values()
        if lhs.shape != rhs.shape:
            raise ShapeError(
                f"{name}: shapes {lhs.shape} and {rhs.shape} differ; "
                f"broadcast_{name.removeprefix('elemwise_')} repeats operands."
            )
        return run(lhs, rhs)

    return combine


def _alike(a: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    """The shape of both operands, if that of one is known."""
    sides = a["lhs"], a["rhs"]
    shapes = [x.known_shape if isinstance(x, Unsized) else x.shape for x in sides]
    known = [shape for shape in shapes if shape is not None and UNKNOWN not in shape]
    return dict.fromkeys(("lhs", "rhs"), known[0]) if known else {}


_SAME_SHAPE = (
    ("elemwise_add", np.add, ("_add", "_grad_add")),
    ("elemwise_sub", np.subtract, ("_sub",)),
    ("elemwise_mul", np.multiply, ()),
    ("elemwise_div", np.true_divide, ()),
)
for _name, _compute, _stored in _SAME_SHAPE:
    operator(_name, stored=_stored)(_same_shape(_name, _compute))
    RULES[_name] = _alike


@operator("add_n", "ElementWiseSum")
def add_n(*args: Any) -> Any:
    """The sum of arrays of one shape."""
    return functools.reduce(_same_shape("elemwise_add", np.add), args)


@writes("logical_and", "logical_or", "logical_xor")
def _write_logic(writer: Writer, a: Arguments) -> Made:
    if a.number("x1") is not None or a.number("x2") is not None:
        return None
    truths = [_written_truth(writer, a, parameter) for parameter in ("x1", "x2")]
    found = writer.node(f"broadcast_{a.record.name}", f"{a.name}_number", truths, {})
    return [converted(writer, a.name, *found, "bool")]


def _written_truth(writer: Writer, a: Arguments, parameter: str) -> Entry:
    """0 or 1 as float32: the operators take operands of one type, and no truth values."""
    entry = writer.entry(a[parameter])
    if a[parameter].dtype != "bool":
        differs, _ = WITH_NUMBER["not_equal"]
        entry = writer.node(differs, f"{a.name}_{parameter}", [entry], number_attributes(0))[0]
    return converted(writer, f"{a.name}_{parameter}_number", entry, "float32")


# -- an array and a number ------------------------------------------------------------------------


def _number(scalar: float, is_int: bool) -> float:
    return int(scalar) if is_int else float(scalar)


def _on_right(run: Run) -> Run:
    def combine(data: Any, scalar: float = 0, is_int: bool = True) -> Any:
        return run(data, _number(scalar, is_int))

    return combine


def _on_left(run: Run) -> Run:
    def combine(data: Any, scalar: float = 0, is_int: bool = True) -> Any:
        return run(_number(scalar, is_int), data)

    return combine


def _as_data(run: Run) -> Run:
    """A result in the element type of the array, which is what older operators give."""

    def combine(data: Any, scalar: float = 0, is_int: bool = True) -> Any:
        return run(data, scalar, is_int).astype(data.dtype)

    return combine


def _camel(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))


# Of an operation, the operators with a number on its right and on its left.
WITH_NUMBER: dict[str, tuple[str, str]] = {}


def _add_with_number(pair: _Pair) -> None:
    right, left = f"_npi_{pair.operation}_scalar", f"_npi_r{pair.operation}_scalar"
    stored(right)(_on_right(pair.compute))
    if pair.turned:
        left = f"_npi_{pair.turned}_scalar"
    else:
        stored(left)(_on_left(pair.compute))
    WITH_NUMBER[pair.operation] = right, left


def _add_older_with_number(pairs: Iterable[_Pair], keep: Callable[[Run], Run]) -> None:
    """Both spellings of older operators: `_plus_scalar` and `_PlusScalar`."""
    for pair in pairs:
        for start, run in (("", _on_right(pair.compute)), ("r", _on_left(pair.compute))):
            spelt = f"_{start}{pair.older}_scalar", f"_{start.upper()}{_camel(pair.older)}Scalar"
            if pair.older:
                stored(*spelt)(keep(run))


for _pair in (*_ARITHMETIC, *_COMPARISONS):
    _add_with_number(_pair)
_add_older_with_number(_ARITHMETIC, lambda run: run)
_add_older_with_number((*_COMPARISONS, *_LOGIC), _as_data)


@writes(*WITH_NUMBER)
def _write_pair(writer: Writer, a: Arguments) -> Made:
    """`x + 1` and `1 + x` are operators with an attribute in the place of an operand."""
    left, right = (a.number(parameter) for parameter in a.uses)
    if left is None and right is None:
        return plain(writer, a)
    if left is not None and right is not None:
        return None
    on_right, on_left = WITH_NUMBER[a.record.name]
    name, array, number = (on_right, a["x1"], right) if left is None else (on_left, a["x2"], left)
    entry, dtype = writer.entry(array), a.results[0].dtype
    if dtype not in ("bool", array.dtype):  # MXNet would choose float64
        entry = converted(writer, f"{a.name}_cast", entry, dtype)
    return writer.node(name, a.name, [entry], number_attributes(number))


def number_attributes(number: float) -> dict[str, Any]:
    """The attributes of an operator with a number."""
    return {"scalar": number, "is_int": isinstance(number, int)}
