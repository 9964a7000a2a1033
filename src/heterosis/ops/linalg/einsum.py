"""Einstein summation: labelled axes, multiplied where labels agree, summed where they vanish."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value
from heterosis.ops.linalg.matmul import product
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import reductions
from heterosis.ops.record import Operands, operation
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError

# Axes that an ellipsis stands for get these labels, counted from the last, so that they align.
_ELLIPSIS = "0123456789"


@dataclass(frozen=True)
class _Term:
    """A value whose axes have labels, each a different one."""

    value: Value
    labels: str

    def extent(self, label: str) -> int:
        return self.value.shape[self.labels.index(label)]

    def ordered(self, labels: str) -> _Term:
        """The axes in the order of `labels`, which are the same ones."""
        axes = tuple(self.labels.index(label) for label in labels)
        return _Term(views.transpose(self.value, axes), labels)

    def summed(self, gone: Iterable[str]) -> _Term:
        axes = tuple(self.labels.index(label) for label in gone)
        if not axes:
            return self
        kept = "".join(label for i, label in enumerate(self.labels) if i not in axes)
        return _Term(reductions.sum(self.value, axes, self.value.dtype), kept)

    def spread(self, labels: str) -> Value:
        """The value with a dimension for each of `labels`, of extent 1 for those it lacks."""
        own = self.ordered("".join(label for label in labels if label in self.labels))
        shape = tuple(self.extent(label) if label in self.labels else 1 for label in labels)
        return views.reshape(own.value, shape)


# -- the subscripts -------------------------------------------------------------------------------


def _parse(subscripts: str, operands: Sequence[Value]) -> tuple[list[str], str]:
    """The labels of every operand's axes and of the result's."""
    text = subscripts.replace(" ", "")
    given, arrow, wanted = text.partition("->")
    parts = given.split(",")
    if len(parts) != len(operands):
        raise ArgumentError(
            f"einsum: {subscripts!r} describes {len(parts)} operands, "
            f"and {len(operands)} are given."
        )
    labels = [_expand(subscripts, p, x.ndim) for p, x in zip(parts, operands, strict=True)]
    dots = max((one for part in labels if (one := _dots(part))), key=len, default="")
    if arrow:
        return labels, _check_result(subscripts, wanted.replace("...", dots), labels)
    together = "".join(labels)
    once = sorted(c for c in set(together) if together.count(c) == 1 and c not in _ELLIPSIS)
    return labels, dots + "".join(once)


def _dots(labels: str) -> str:
    return "".join(label for label in labels if label in _ELLIPSIS)


def _expand(subscripts: str, part: str, ndim: int) -> str:
    """One operand's labels, one for each of its dimensions."""
    named = part.replace("...", "", 1)
    missing = ndim - len(named) if "..." in part else 0
    if not all(c.isascii() and c.isalpha() for c in named):
        raise ArgumentError(f"einsum: {part!r} in {subscripts!r}: labels are letters.")
    if missing < 0 or len(named) + missing != ndim:
        raise ShapeError(
            f"einsum: {part!r} in {subscripts!r} has {len(named)} labels for an array of "
            f"{ndim} dimensions."
        )
    return part.replace("...", _ELLIPSIS[:missing][::-1])


def _check_result(subscripts: str, wanted: str, labels: list[str]) -> str:
    known = set("".join(labels))
    for label in wanted:
        if wanted.count(label) > 1 or label not in known:
            raise ArgumentError(
                f"einsum: label {label!r} of the result in {subscripts!r} must stand there once, "
                "and in an operand."
            )
    return wanted


# -- the steps ------------------------------------------------------------------------------------


def _without_repeats(value: Value, labels: str) -> _Term:
    """Diagonals where an operand has a label twice."""
    for label in labels:
        while labels.count(label) > 1:
            i, j = labels.index(label), labels.rindex(label)
            if value.shape[i] != value.shape[j]:
                raise _mismatch(label, value.shape[i], value.shape[j])
            value = views.diagonal(value, (i, j), (0, 0), value.shape[i])
            labels = "".join(c for k, c in enumerate(labels) if k not in (i, j)) + label
    return _Term(value, labels)


def _mismatch(label: str, one: int, other: int) -> ShapeError:
    return ShapeError(f"einsum: label {label!r} has extents {one} and {other}; they must be equal.")


def _stretched(terms: list[_Term]) -> list[_Term]:
    """Every term with the full extent of its labels: extents of 1 repeat."""
    sizes: dict[str, int] = {}
    for term in terms:
        for label in term.labels:
            n, known = term.extent(label), sizes.get(label, 1)
            if 1 not in (n, known) and n != known:
                raise _mismatch(label, known, n)
            sizes[label] = n if known == 1 else known
    return [
        _Term(views.broadcast(t.value, tuple(sizes[c] for c in t.labels)), t.labels) for t in terms
    ]


def _product(a: _Term, b: _Term, needed: set[str]) -> _Term:
    """The product of two terms, summed over what neither the result nor other terms need."""
    a = a.summed(c for c in a.labels if c not in b.labels and c not in needed)
    b = b.summed(c for c in b.labels if c not in a.labels and c not in needed)
    both = [c for c in a.labels if c in b.labels]
    batch = "".join(c for c in both if c in needed)
    inner = "".join(c for c in both if c not in needed)
    rows = "".join(c for c in a.labels if c not in both)
    columns = "".join(c for c in b.labels if c not in both)
    labels = batch + rows + columns
    if not inner:
        return _Term(e.multiply(a.spread(labels), b.spread(labels)), labels)
    left = a.ordered(batch + rows + inner).value
    right = b.ordered(batch + inner + columns).value
    lead = left.shape[: len(batch)]
    count, more = (math.prod(t.extent(c) for c in which) for t, which in ((a, rows), (a, inner)))
    width = math.prod(b.extent(c) for c in columns)
    left = views.reshape(left, (*lead, count, more))
    result = product("einsum", left, views.reshape(right, (*lead, more, width)))
    extents = [*(a.extent(c) for c in rows), *(b.extent(c) for c in columns)]
    return _Term(views.reshape(result, (*lead, *extents)), labels)


_CASES: tuple[tuple[str, list[tuple[int, ...]]], ...] = (
    ("ij,jk", [(3, 4), (4, 5)]),
    ("ij,jk->ki", [(3, 4), (4, 5)]),
    ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("ij->ji", [(3, 4)]),
    ("ij->j", [(3, 4)]),
    ("i,j", [(3,), (4,)]),
    ("ij,ij->", [(3, 4), (3, 4)]),
    ("...ij,jk->...ik", [(2, 2, 3, 4), (4, 5)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("ab,b,a", [(2, 3), (3,), (2,)]),
)


@operation(
    name="einsum",
    public=(),
    numpy=lambda operands, subscripts: numpy.einsum(subscripts, *operands),
    names={"mxnet": "_npi_einsum"},
    samples=Samples(
        [Case((shapes,), {"subscripts": text}) for text, shapes in _CASES],
        dtypes=("int32", "float32"),
        ulps=8,
        absolute=400,
    ),
)
def summation(operands: Operands, subscripts: str) -> Value:
    """Products of the operands, summed over the labels that the result does not have."""
    labels, wanted = _parse(subscripts, operands)
    terms = [_without_repeats(x, own) for x, own in zip(operands, labels, strict=True)]
    terms = _stretched(terms)
    while len(terms) > 1:
        first, second, *rest = terms
        needed = set(wanted).union(*(t.labels for t in rest))
        terms = [_product(first, second, needed), *rest]
    (last,) = terms
    return last.summed(c for c in last.labels if c not in wanted).ordered(wanted).value
