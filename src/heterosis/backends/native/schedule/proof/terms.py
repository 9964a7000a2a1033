"""What an element is, as a number: the digest of the expression that computes it from the inputs.

Elements with one digest are computed in one way from the same elements. The rules below are used
twice: for what the values of a program are, and for what kernels make of what they find in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy
from numpy.lib.stride_tricks import as_strided

from heterosis.ir.primitives.families import Primitive
from heterosis.ir.strided import Move, Strided

Terms: TypeAlias = "numpy.ndarray[Any, numpy.dtype[numpy.uint64]]"

_ODD = numpy.uint64(0x9E3779B97F4A7C15)
_HALF = numpy.uint64(32)


@cache
def term(text: str) -> Terms:
    """The digest of a leaf, which `text` tells from all others."""
    content = blake2b(text.encode(), digest_size=8).digest()
    return numpy.frombuffer(content, "uint64").reshape(())


def combined(first: Any, *others: Any) -> Terms:
    """The digests of expressions with these parts, element by element, in this order."""
    made = numpy.asarray(first, "uint64")
    for other in others:
        made = (made ^ other) * _ODD
        made = made ^ (made >> _HALF)
    return made


def numbered(text: str, count: int) -> Terms:
    """As many digests, all different."""
    return combined(term(text), numpy.arange(count, dtype="uint64"))


def digest(terms: Terms) -> Terms:
    """One digest of all elements and their order."""
    return total(combined(numbered("position", terms.size), terms.reshape(-1)), (0,))


def total(terms: Terms, axes: tuple[int, ...]) -> Terms:
    return numpy.asarray(terms.sum(axis=axes, dtype="uint64"))


# -- primitives -----------------------------------------------------------------------------------


def literal(value: object, dtype: str) -> Terms:
    return term(f"literal {value!r} {dtype}")


def extent(value: int) -> Terms:
    return term(f"extent {value}")


def argument(position: int, dtype: str) -> Terms:
    return term(f"argument {position} {dtype}")


def counted(integers: Any) -> Terms:
    return combined(term("counter"), numpy.asarray(integers, "int64").view("uint64"))


def applied(primitive: Primitive, operand_dtype: str, dtype: str, operands: Sequence[Any]) -> Terms:
    return combined(term(f"apply {primitive} {operand_dtype} {dtype}"), *operands)


def reduced(operands: Sequence[Terms], part: int, axes: tuple[int, ...]) -> Terms:
    """A reduction, the same whether it is done at once or in pieces."""
    return total(operands[part % len(operands)], axes)


def scanned(operands: Sequence[Terms], part: int, axis: int) -> Terms:
    return operands[part % len(operands)].cumsum(axis=axis, dtype="uint64")


def rows_of(table: Terms, rank: int) -> Terms:
    """What one cannot tell more of than that it is one of a table's rows along its first axes."""
    rows = table.shape[:rank]
    numbers = numbered("row", int(numpy.prod(rows, dtype=int)))
    numbers = numbers.reshape(rows + (1,) * (table.ndim - rank))
    return total(combined(numbers, table), tuple(range(rank)))


def gathered(rows: Terms, indices: Sequence[Any]) -> Terms:
    return combined(term("gather"), *indices, rows)


OLD = term("what stood there")  # in what a scatter adds


def scattered(base: Terms, indices: Sequence[Terms], update: Terms) -> Terms:
    """Every element may be one that was written."""
    return combined(term("scatter"), base, digest(combined(term("update"), *indices, update)))


def opaque(name: str, operands: Sequence[Terms], shape: tuple[int, ...]) -> Terms:
    """Each element depends on all elements of all operands."""
    numbers = numpy.arange(int(numpy.prod(shape, dtype=int)), dtype="uint64").reshape(shape)
    return combined(term(name), *map(digest, operands), numbers)


# -- views ----------------------------------------------------------------------------------------


def rearranged(terms: Terms, move: Move) -> Terms:
    """The elements as a view shows them."""
    name, (argument, *_) = move
    if name == "reshape":
        return numpy.reshape(terms, argument)
    if name == "transpose":
        return numpy.transpose(terms, argument)
    if name == "broadcast":
        return numpy.broadcast_to(terms, argument)
    return _seen(numpy.asarray(terms, order="C"), move)


def part_of(terms: Terms, starts: tuple[int, ...], steps: tuple[int, ...], shape: Any) -> Terms:
    """A part of an array without gaps, to be written."""
    return _seen(terms, ("slice", (starts, steps, shape)))


def _seen(terms: Terms, move: Move) -> Terms:
    name, arguments = move
    strided = getattr(Strided.contiguous(terms.shape), name)(*arguments)
    return shown(terms.reshape(-1), strided.offset, strided.shape, strided.strides)


def shown(
    flat: Terms, start: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> numpy.ndarray[Any, Any]:
    """Elements of a flat array, `start` being the first, where strides say; to be read or
    written."""
    if 0 in shape:
        return numpy.zeros(shape, flat.dtype)
    return as_strided(flat[start:], shape, tuple(s * flat.itemsize for s in strides))
