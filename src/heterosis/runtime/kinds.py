"""What an annotation admits, in words and as a test, found without importing what it names."""

from __future__ import annotations

import ast
import inspect
import operator
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias

import numpy

# Integers of a range, as annotations.
Positive: TypeAlias = Annotated[int, "at least 1"]
Natural: TypeAlias = Annotated[int, "at least 0"]


class Indexed(Protocol):
    """As an annotation: what has a length, and items by number."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...


class Counted(Protocol):
    """As an annotation: what has a length, and can be gone through again and again."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...


_MOST_EXTENT = 2**48  # no memory holds more bytes


class Kind(NamedTuple):
    """What an annotation admits, in words and as a test.

    The core needs no test for objects of exactly the given `types`, for integers from `least` and
    for tuples of integers from `least_item`.
    """

    text: str
    accepts: Callable[[Any], bool]
    types: tuple[type, ...] = ()
    least: int | None = None
    least_item: int | None = None


# -- kinds that have names ------------------------------------------------------------------------


def is_integer(given: Any) -> bool:
    """Whether it is an integer that 64 bits hold; True and False are none."""
    if type(given) is not int:
        if isinstance(given, bool | numpy.bool_) or not hasattr(given, "__index__"):
            return False
        if given.__class__ is int is not type(given):  # a size of a program that is captured
            return True
        try:
            given = operator.index(given)
        except (TypeError, ValueError):  # an array of several elements
            return False
    return bool(-(2**63) <= given < 2**63)


def is_number(given: Any) -> bool:
    """Whether it is a real number that a float holds; True and False are none."""
    if type(given) is float:
        return True
    if isinstance(given, bool | numpy.bool_):
        return False
    if not isinstance(given, Real) and getattr(given, "ndim", None) != 0:
        return False
    try:
        float(given)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_truth(given: Any) -> bool:
    return isinstance(given, bool | numpy.bool_) or (type(given) is int and given in (0, 1))


def _is_string(given: Any) -> bool:
    return isinstance(given, str)


def _is_natural(given: Any) -> bool:
    return is_integer(given) and 0 <= given <= _MOST_EXTENT


def _is_positive(given: Any) -> bool:
    return is_integer(given) and 1 <= given <= _MOST_EXTENT


def _has_items(given: Any, found_by: str) -> bool:
    if isinstance(given, str | bytes | Mapping | type) or getattr(given, "ndim", 1) == 0:
        return False
    return hasattr(given, "__len__") and hasattr(given, found_by)


def _is_sequence(given: Any) -> bool:
    return _has_items(given, "__getitem__")


def _is_counted(given: Any) -> bool:
    return _has_items(given, "__iter__")


def _holds_arrays(given: Any) -> bool:
    """Whether it is a sequence of what can be taken as arrays: numbers, and sequences of them."""
    return _is_sequence(given) and all(map(_is_array, given))


def _is_array(given: Any) -> bool:
    return hasattr(given, "ndim") or _is_truth(given) or is_number(given) or _holds_arrays(given)


_NONE = Kind("None", lambda given: given is None, (type(None),))
_NAMED: dict[str, Kind] = {
    "None": _NONE,
    "NoneType": _NONE,
    "bool": Kind("True or False", _is_truth, (bool,)),
    "int": Kind("an integer", is_integer, (), -(2**63)),
    "float": Kind("a number", is_number, (float,), -(2**63)),
    "str": Kind("a string", _is_string, (str,)),
    "bytes": Kind("bytes", lambda given: isinstance(given, bytes | bytearray | memoryview)),
    "type": Kind("a class", lambda given: isinstance(given, type)),
    "Positive": Kind("an integer, at least 1", _is_positive, (), 1),
    "Natural": Kind("an integer, at least 0", _is_natural, (), 0),
    "Callable": Kind("a function", callable),
    "PathLike": Kind("a path", lambda given: isinstance(given, os.PathLike)),
    "tuple": Kind("a tuple", _is_sequence),
    "list": Kind("a list", _is_sequence),
    "Sequence": Kind("a sequence", _is_sequence),
    "Indexed": Kind("a sequence", _is_sequence),
    "Counted": Kind("a sequence", _is_counted),
    "Iterable": Kind("a sequence", lambda given: hasattr(given, "__iter__")),
    "Operands": Kind("a sequence of arrays", _holds_arrays),
    "dict": Kind("a dictionary", lambda given: isinstance(given, Mapping)),
    "Mapping": Kind("a dictionary", lambda given: isinstance(given, Mapping)),
}
_ARE_SEQUENCES = ("list", "Sequence")


# -- kinds from annotations -----------------------------------------------------------------------


def kind_of(annotation: Any, names: Mapping[str, Any]) -> Kind | None:
    """What an annotation admits, its names found in `names`; None if that is anything."""
    if annotation is inspect.Parameter.empty:
        return None
    text = annotation if isinstance(annotation, str) else _text(annotation)
    return _of_node(ast.parse(text, mode="eval").body, names)


def _text(annotation: Any) -> str:
    return annotation.__name__ if type(annotation) is type else str(annotation).replace("~", "")


def _of_node(node: ast.expr, names: Mapping[str, Any]) -> Kind | None:
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return _either(_of_node(left, names), _of_node(right, names))
        case ast.Constant(None):
            return _NONE
        case ast.Constant(str(text)):
            return kind_of(text, names)
        case ast.Subscript(value, inner):
            return _of_generic(_last_name(value), inner, names)
        case ast.Name() | ast.Attribute():
            return _of_name(_last_name(node), names)
    return None


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _of_name(name: str, names: Mapping[str, Any]) -> Kind | None:
    if name in _NAMED:
        return _NAMED[name]
    if name == "Any":  # a class, as far as `isinstance` knows
        return None
    found = names.get(name)
    is_alias = isinstance(found, str | types.UnionType) or hasattr(found, "__origin__")
    if is_alias:  # asked first: `tuple[int, ...]` says that it is a class
        return kind_of(found, names)
    return _instance_of(found) if isinstance(found, type) else None


def _instance_of(expected: type) -> Kind:
    name = f"{expected.__module__}.{expected.__qualname__}".removeprefix("heterosis.")
    return Kind(f"an object of {name}", lambda given: isinstance(given, expected))


def _of_generic(name: str, inner: ast.expr, names: Mapping[str, Any]) -> Kind | None:
    items = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    if name == "tuple":
        if len(items) == 2 and isinstance(items[1], ast.Constant) and items[1].value is ...:
            return _many("a tuple", _of_node(items[0], names))
        return _so_many([_of_node(item, names) for item in items])
    if name in _ARE_SEQUENCES:
        return _many("a sequence", _of_node(items[0], names))
    return _of_name(name, names)


def _either(one: Kind | None, other: Kind | None) -> Kind | None:
    if one is None or other is None:
        return None
    first, second = one.accepts, other.accepts
    words = f"{one.text.replace(' or ', ', ')} or {other.text}" if " or " in one.text else None
    text = words or f"{one.text} or {other.text}"
    return Kind(
        text,
        lambda given: first(given) or second(given),
        one.types + other.types,
        _lower(one.least, other.least),
        _lower(one.least_item, other.least_item),
    )


def _lower(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)


def _many(text: str, item: Kind | None) -> Kind:
    if item is None:
        return Kind(text, _is_sequence)
    accepts = item.accepts
    return Kind(
        f"{text} of {_plural(item.text)}",
        lambda given: _is_sequence(given) and all(map(accepts, given)),
        least_item=item.least,
    )


def _so_many(items: Sequence[Kind | None]) -> Kind:
    tests = [item.accepts if item else _anything for item in items]
    words = ", ".join(item.text if item else "anything" for item in items)

    def accepts(given: Any) -> bool:
        if not _is_sequence(given) or len(given) != len(tests):
            return False
        return all(test(one) for test, one in zip(tests, given, strict=True))

    return Kind(f"a tuple ({words})", accepts)


def _anything(given: Any) -> bool:
    return True


def _plural(text: str) -> str:
    noun, comma, rest = text.removeprefix("an ").removeprefix("a ").partition(",")
    if " or " in text or " of " in text:
        return f"{text}" if text.startswith("an object") else f"({text})"
    return f"{noun}{'es' if noun.endswith('s') else 's'}{comma}{rest}"
