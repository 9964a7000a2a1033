"""Programs as nodes of a graph: by calls that ONNX has an operator for, else node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from heterosis.ir.calls import Call
from heterosis.ir.program import INPUT, NUMBER, Node, Program, Value
from heterosis.ir.reference import computes_wide
from heterosis.ir.types import is_half
from heterosis.models.onnx.format import Graph, Input
from heterosis.models.onnx.writing import tables
from heterosis.models.onnx.writing.graphs import GraphWriter, described
from heterosis.models.onnx.writing.rows.broadcasting import operands_of
from heterosis.models.onnx.writing.sizes import Extent, Sizes
from heterosis.runtime.errors import UnsupportedError

_WIDE = "float32"


@dataclass(frozen=True, eq=False)
class _Part:
    """A call or a node: what is written at once. Results of 16 bits come in float32 if `wide`."""

    results: tuple[Value, ...]
    reads: tuple[Value, ...]
    emit: tables.Emit
    label: str = ""
    wide: bool = False


class ProgramWriter:
    """A graph that is written, and where in it the values of a program are.

    Elements of 16 bits are computed in float32 and rounded where the program says so, or where they
    are taken as what their type holds: a value may be there in both types.
    """

    def __init__(self, graph: GraphWriter, sizes: Sizes):
        self.graph, self.sizes = graph, sizes
        self._held: dict[Value, str] = {}  # in their own types
        self._wide: dict[Value, str] = {}  # those of 16 bits in float32

    # -- where values are -----------------------------------------------------------------------

    def know(self, value: Value, name: str) -> None:
        """Take note of where a value is, in its own type."""
        self._held[value] = name

    def is_known(self, value: Value) -> bool:
        return value in self._held or value in self._wide

    def name(self, value: Value) -> str:
        """Where a value is, as its type holds it."""
        if value not in self._held:
            self._held[value] = self.cast(self._made_wide(value), value.dtype)
        return self._held[value]

    def _made_wide(self, value: Value) -> str:
        if value not in self._wide:
            raise UnsupportedError(
                f"{value.node.primitive.name}: result {value.index} has no counterpart in ONNX."
            )
        return self._wide[value]

    def wide(self, value: Value) -> str:
        """Where a value is, in float32 if it has 16 bits."""
        if not is_half(value.dtype):
            return self.name(value)
        if value not in self._wide:
            self._wide[value] = self.cast(self._held[value], _WIDE)
        return self._wide[value]

    def operands(self, node: Node) -> list[str]:
        """Where the operands of a node are, in the types that it computes in."""
        where = self.wide if computes_wide(node) else self.name
        return [where(value) for value in operands_of(node)]

    # -- nodes ------------------------------------------------------------------------------------

    def node(self, operator: str, *inputs: str, **attributes: object) -> str:
        """The only result of a new node of the graph."""
        return self.graph.node(operator, *inputs, **attributes)

    def cast(self, name: str, dtype: str) -> str:
        """Elements converted, as ONNX does."""
        return self.graph.cast(name, dtype)

    def array(self, host: object, dtype: str) -> str:
        """A small array that is known."""
        return self.graph.array(host, dtype)

    def like(self, value: Value, number: float) -> str:
        """A number of the type that a value is computed in."""
        return self.array(number, computed_type(value.dtype))

    def places(self, count: Extent) -> str:
        """A row of 0, 1, 2, ..., so many."""
        zero, one = self.array(0, "int64"), self.array(1, "int64")
        return self.node("Range", zero, self.sizes.number_of(count), one)

    # -- programs -------------------------------------------------------------------------------

    def write(self, program: Program) -> None:
        """Add what computes the outputs; where the inputs are is known."""
        parts = _Parts(program, self)
        parts.check()
        for part in parts.ordered(program.outputs):
            before, self.graph.label = self.graph.label, part.label or self.graph.label
            found = part.emit(self)
            self.graph.label = before
            names = (found,) if isinstance(found, str) else found
            for value, name in zip(part.results, names, strict=False):
                if not name:  # nothing is there
                    continue
                (self._wide if part.wide and is_half(value.dtype) else self._held)[value] = name

    def results(self, program: Program, names: Sequence[str]) -> tuple[str, ...]:
        """What computes a program that is one among attributes, from what is named."""
        inner = ProgramWriter(self.graph, self.sizes)
        for value, name in zip(program.inputs, names, strict=True):
            inner.know(value, name)
        inner.write(program)
        return tuple(map(inner.name, program.outputs))

    def inside(self) -> ProgramWriter:
        """A writer of a graph in this one."""
        return ProgramWriter(GraphWriter(self.graph), self.sizes)

    def finished(
        self, name: str, inputs: Sequence[Input], outputs: Sequence[tuple[str, Value]]
    ) -> Graph:
        """The graph, whose results are these, of the types of these values."""
        names = self.graph.names
        results = [
            (source, described(names.fresh(f"{name}_output"), value.dtype, value.shape))
            for source, value in outputs
        ]
        return self.graph.graph(name, inputs, results)


def computed_type(dtype: str) -> str:
    """The type that elements are computed in."""
    return _WIDE if is_half(dtype) else dtype


class _Parts:
    """The calls and nodes that a program is written by."""

    def __init__(self, program: Program, writer: ProgramWriter):
        self._program, self._writer = program, writer
        self._calls: dict[Value, _Part] = {}
        self._nodes: dict[Node, _Part] = {}
        for call in program.calls or ():
            self._enter(call)

    def _enter(self, call: Call) -> None:
        row = tables.CALLS.get(call.operation)
        given = tables.Given(call) if row else None
        emit = row(given) if row and given and given.is_plain else None
        if emit is None:
            for step in call.steps:
                self._enter(step)
            return
        part = _Part(call.results, call.inputs, emit, call.scope)
        for value in call.results:
            if value not in call.inputs:
                self._calls.setdefault(value, part)

    def part(self, value: Value) -> _Part:
        """What makes a value."""
        found = self._calls.get(value) or self._nodes.get(value.node)
        if found is None:
            node = value.node
            found = self._nodes[node] = _Part(
                node.outputs, operands_of(node), _emission(node), wide=computes_wide(node)
            )
        return found

    def ordered(self, outputs: Iterable[Value]) -> Iterator[_Part]:
        """All that the outputs need, operands before their users."""
        done: set[_Part] = set()
        stack: list[tuple[Value, bool]] = [(value, False) for value in outputs]
        while stack:
            value, entered = stack.pop()
            if value.node.primitive in (INPUT, NUMBER) or self._writer.is_known(value):
                continue
            part = self.part(value)
            if part in done:
                continue
            if entered:
                done.add(part)
                yield part
            else:
                stack.append((value, True))
                stack += [(v, False) for v in reversed(part.reads)]

    def check(self) -> None:
        """Refuse a program that has primitives without rows, with all of them."""
        lost = Counter(self._missing(self._program))
        if lost:
            listed = ", ".join(f"{name} ({count})" for name, count in sorted(lost.items()))
            raise UnsupportedError(
                f"{self._program.name}: {len(lost)} primitives of the program have no operators in "
                f"ONNX that compute the same: {listed}. In brackets, how often. Compute these "
                "outside of what you write, or export a library: heterosis.export."
            )

    def _missing(self, program: Program) -> Iterator[str]:
        for part in self.ordered(program.outputs):
            node = part.results[0].node
            if part is self._nodes.get(node):
                if node.primitive not in tables.ROWS:
                    yield node.primitive.name
                for value in node.attributes.values():
                    if isinstance(value, Program):
                        yield from _Parts(value, self._writer)._missing(value)


def _emission(node: Node) -> tables.Emit:
    """What adds a node of the program, computed in the types that programs compute in."""

    def emit(writer: ProgramWriter) -> str | tuple[str, ...]:
        return tables.ROWS[node.primitive](writer, node)

    return emit
