"""Open extents at run time: numbers that follow from the shapes of a graph's inputs."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from heterosis.ir.sizes import Formula, Product, Quotient, Size
from heterosis.models.onnx.writing.graphs import GraphWriter
from heterosis.runtime.errors import UnsupportedError

Extent = int | Size

_ARITHMETIC: dict[type, str] = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul"}
_COMPARED: dict[type, tuple[str, bool]] = {
    ast.Eq: ("Equal", False), ast.NotEq: ("Equal", True), ast.Lt: ("Less", False),
    ast.GtE: ("Less", True), ast.Gt: ("Greater", False), ast.LtE: ("Greater", True),
}  # fmt: skip


class Sizes:
    """The numbers of names in the outermost graph, each computed once: rows of one int64."""

    def __init__(self, graph: GraphWriter):
        self._graph = graph.outermost
        self._found: dict[Any, str] = {}

    def know(self, name: str, shape: Sequence[Extent]) -> None:
        """Let names of sizes be found in the shape of an input."""
        for axis, extent in enumerate(shape):
            if isinstance(extent, Size):
                for one in set(extent.names()) - set(self._found):
                    self._solve(one, extent, name, axis)

    def _solve(self, one: str, extent: Size, name: str, axis: int) -> None:
        if len(extent.terms) != 1 or extent.terms[0][0] != one:
            return
        graph, coefficient = self._graph, extent.terms[0][1]
        found = graph.node("Shape", name, start=axis, end=axis + 1)
        if extent.number:
            found = graph.node("Sub", found, graph.whole(extent.number))
        if coefficient != 1:
            found = graph.node("Div", found, graph.whole(coefficient))
        self._found[one] = found

    def row(self, extent: Extent) -> str:
        """A row of this one number."""
        if not isinstance(extent, Size):
            return self._graph.whole(extent)
        if extent not in self._found:
            self._found[extent] = self._summed(extent)
        return self._found[extent]

    def number_of(self, extent: Extent) -> str:
        """This one number, without dimensions."""
        if not isinstance(extent, Size):
            return self._graph.array(extent, "int64")
        return self._graph.node("Squeeze", self.row(extent), self._graph.whole(0))

    def _summed(self, size: Size) -> str:
        graph, total = self._graph, None
        for term, coefficient in size.terms:
            found = self._term(term)
            if coefficient != 1:
                found = graph.node("Mul", found, graph.whole(coefficient))
            total = found if total is None else graph.node("Add", total, found)
        if size.number:
            total = graph.node("Add", total or "", graph.whole(size.number))
        return total or graph.whole(0)

    def _term(self, term: Any) -> str:
        match term:
            case Quotient():
                return self._divided(self.row(term.numerator), self._graph.whole(term.divisor))
            case Product():
                first, *others = map(self._term, term.factors)
                for other in others:
                    first = self._graph.node("Mul", first, other)
                return first
            case Formula():
                raise UnsupportedError(f"the size {term} cannot be computed in an ONNX file.")
        return self._named(term)

    def _named(self, name: str) -> str:
        if name not in self._found:
            raise UnsupportedError(
                f"the size {name} does not follow from the shape of one input alone; leave other "
                "extents open, or none."
            )
        return self._found[name]

    def _divided(self, a: str, b: str) -> str:
        """The quotient rounded down: ONNX rounds to zero."""
        graph = self._graph
        return graph.node("Div", graph.node("Sub", a, graph.node("Mod", a, b)), b)

    def shape(self, extents: Sequence[Extent]) -> str:
        """A row of these numbers."""
        numbers = [extent for extent in extents if isinstance(extent, int)]
        if len(numbers) == len(extents):
            return self._graph.whole(*numbers)
        key = tuple(extents)
        if key not in self._found:
            parts: list[str] = []
            known: list[int] = []
            for extent in (*extents, None):
                if isinstance(extent, int):
                    known.append(extent)
                    continue
                parts += [self._graph.whole(*known)] if known else []
                parts += [] if extent is None else [self.row(extent)]
                known = []
            self._found[key] = self._graph.node("Concat", *parts, axis=0)
        return self._found[key]

    # -- what Python computes of sizes ----------------------------------------------------------

    def condition(self, text: str) -> str:
        """A row of one truth value: whether an expression of Python holds."""
        return self._read(ast.parse(text, mode="eval").body, "int64")

    def number(self, text: str, dtype: str) -> str:
        """A row of one float, which an expression of Python is."""
        return self._graph.cast(self._read(ast.parse(text, mode="eval").body, "float64"), dtype)

    def _read(self, tree: ast.expr, dtype: str) -> str:
        graph = self._graph
        match tree:
            case ast.Name(id=name):
                found = self._named(name)
                return found if dtype == "int64" else graph.cast(found, dtype)
            case ast.Constant(value=bool() as value):
                return graph.array([value], "bool")
            case ast.Constant(value=int() | float() as value):
                return graph.array([value], dtype)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return graph.node("Neg", self._read(operand, dtype))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return graph.node("Not", self._read(operand, dtype))
            case ast.BinOp(left=left, op=op, right=right):
                return self._combined(op, self._read(left, dtype), self._read(right, dtype), dtype)
            case ast.BoolOp(op=op, values=values):
                operator = "And" if isinstance(op, ast.And) else "Or"
                first, *others = (self._read(value, dtype) for value in values)
                for other in others:
                    first = graph.node(operator, first, other)
                return first
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                operator, turned = _COMPARED[type(op)]
                found = graph.node(operator, self._read(left, dtype), self._read(right, dtype))
                return graph.node("Not", found) if turned else found
        raise UnsupportedError(
            f"{ast.unparse(tree)}: the program depends on its sizes in a way that no ONNX file "
            "has. Export it for fixed sizes."
        )

    def _combined(self, op: ast.operator, a: str, b: str, dtype: str) -> str:
        graph = self._graph
        if type(op) in _ARITHMETIC:
            return graph.node(_ARITHMETIC[type(op)], a, b)
        if isinstance(op, ast.Div) and dtype == "float64":
            return graph.node("Div", a, b)
        if isinstance(op, ast.FloorDiv):
            return (
                self._divided(a, b)
                if dtype == "int64"
                else graph.node("Floor", graph.node("Div", a, b))
            )
        if isinstance(op, ast.Mod) and dtype == "int64":
            return graph.node("Mod", a, b)
        raise UnsupportedError(
            "the program computes numbers of its sizes in a way that no ONNX file has. Export it "
            "for fixed sizes."
        )
