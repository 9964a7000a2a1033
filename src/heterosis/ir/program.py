"""Programs as values: immutable nodes, each an application of a primitive."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

from heterosis.ir.primitives import subject_of
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.primitives.leaves import CONSTANT, EXTENT, INPUT, IOTA, NUMBER, check_extent
from heterosis.ir.primitives.rows import ASSEMBLE, GATHER, SCATTER
from heterosis.ir.traced_sizes import fixed_number, only_looking
from heterosis.ir.types import TensorType, is_float
from heterosis.runtime.errors import ArgumentError, DTypeError
from heterosis.runtime.settings import settings

if TYPE_CHECKING:
    from heterosis.ir.calls import Call

__all__ = [
    "ASSEMBLE", "CONSTANT", "EXTENT", "GATHER", "INPUT", "IOTA", "NUMBER", "SCATTER",
    "Node", "Program", "Value", "apply", "apply_many", "checked", "constant", "extent", "reached",
    "substituted", "with_inputs", "with_programs",
]  # fmt: skip


@dataclass(eq=False, slots=True)
class Node:
    """One application of a primitive. Compared by identity: nodes are shared, never copied."""

    # Final rather than frozen, which takes four times as long to make.
    primitive: Final[Primitive]
    inputs: Final[tuple[Value, ...]]
    attributes: Final[dict[str, Any]]
    types: Final[tuple[TensorType, ...]]

    @property
    def outputs(self) -> tuple[Value, ...]:
        if len(self.types) == 1:  # most nodes, and asked for as often as anything
            return (Value(self),)
        return tuple([Value(self, i) for i in range(len(self.types))])


class Value:
    """One result of a node. `ops` gives it the operators of an array."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int = 0):
        self.node, self.index = node, index

    def __eq__(self, other: object) -> bool:
        # Identity of what is computed; `np.equal` compares elements.
        return isinstance(other, Value) and self.node is other.node and self.index == other.index

    def __hash__(self) -> int:
        return (id(self.node) >> 4) + self.index  # asked for a million times in a large program

    @property
    def type(self) -> TensorType:
        return self.node.types[self.index]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size


def apply(
    primitive: Primitive, inputs: Iterable[Value], type_: TensorType, **attributes: Any
) -> Value:
    """The only result of a new node."""
    return Value(Node(primitive, tuple(inputs), attributes, (type_,)))


def apply_many(
    primitive: Primitive, inputs: Iterable[Value], types: Iterable[TensorType], **attributes: Any
) -> tuple[Value, ...]:
    """All results of a new node."""
    return Node(primitive, tuple(inputs), attributes, tuple(types)).outputs


def constant(number: float | bool, dtype: str, *, weak: bool = False) -> Value:
    """A number written in the program."""
    if not isinstance(number, Real):
        raise DTypeError(f"expected a number, and got {number!r}.")
    number = fixed_number(number)
    if isinstance(number, int) and number.bit_length() > 53 and is_float(dtype):
        number = _as_float(number)
    return apply(CONSTANT, (), TensorType((), dtype, weak), value=number)


def _as_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        raise ArgumentError(
            f"an integer of {number.bit_length()} bits; expected a number that floats can hold."
        ) from None


def extent(size: int) -> Value:
    """A number that follows from a shape, so that code for any size takes it as an argument."""
    return apply(EXTENT, (), TensorType((), "int64", weak=True), value=check_extent(size))


@dataclass(frozen=True)
class Program:
    """Inputs to outputs. The nodes between are those that the outputs reach.

    `calls` are the operations that the nodes were made by, in order; None once the program has been
    rewritten, after which no gradient is asked for.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    name: str = field(default="program", compare=False)
    calls: tuple[Call, ...] | None = field(default=None, compare=False)

    def nodes(self) -> Iterator[Node]:
        """Every node once, operands before their users."""
        return iter(self._nodes)

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        return tuple(reached(self.outputs))

    def __str__(self) -> str:
        from heterosis.ir.text import printed

        return printed(self).text


def checked(program: Program) -> Program:
    """`program`, which is well formed: looked at where settings ask for it."""
    if settings.check:
        from heterosis.ir.checking import check_once

        with only_looking():
            check_once(program)
    return program


def may_fail(program: Program) -> bool:
    """Whether a run may refuse elements: an index, a matrix, what the program itself asserts."""
    return any(map(_may_refuse, program.nodes()))


def _may_refuse(node: Node) -> bool:
    inner = (value for value in node.attributes.values() if isinstance(value, Program))
    return subject_of(node.primitive) in ("checks", "factorizations") or any(map(may_fail, inner))


def reached(outputs: Iterable[Value], stops: Container[Value] = ()) -> Iterator[Node]:
    """The nodes that `outputs` are made of, operands before their users; none that only values in
    `stops` are made of."""
    seen: set[Node] = set()
    stack: list[Node | None] = [v.node for v in reversed(tuple(outputs)) if v not in stops]
    entered: list[Node] = []  # whose operands lie above a None on the stack
    while stack:
        node = stack.pop()
        if node is None:
            yield entered.pop()
        elif node not in seen:
            seen.add(node)
            entered.append(node)
            stack.append(None)
            if stops:
                stack += [v.node for v in reversed(node.inputs) if v not in stops]
            elif node.inputs:
                stack += [v.node for v in reversed(node.inputs)]


def with_inputs(node: Node, inputs: tuple[Value, ...]) -> Node:
    """`node` on other operands; itself where they are its own."""
    if inputs == node.inputs:
        return node
    return Node(node.primitive, inputs, node.attributes, node.types)


def with_programs(program: Program, change: Callable[[Program], Program]) -> Program:
    """`program` with every program among the attributes of its nodes changed. These are closed, so
    whoever looks at nodes meets them as attributes, and whoever changes programs comes here."""
    known: dict[Value, Value] = {}
    for node in program.nodes():
        attributes = {k: change(a) for k, a in node.attributes.items() if isinstance(a, Program)}
        inputs = tuple(known.get(v, v) for v in node.inputs)
        made = with_inputs(node, inputs)
        if any(attributes[name] is not node.attributes[name] for name in attributes):
            made = Node(node.primitive, inputs, node.attributes | attributes, node.types)
        if made is not node:
            known |= dict(zip(node.outputs, made.outputs, strict=True))
    if not known:
        return program
    return Program(program.inputs, tuple(known.get(v, v) for v in program.outputs), program.name)


def substituted(outputs: Sequence[Value], mapping: Mapping[Value, Value]) -> tuple[Value, ...]:
    """`outputs` as they are once the values in `mapping` are replaced; what stays is shared."""
    known = dict(mapping)
    for node in reached(outputs, mapping):
        made = with_inputs(node, tuple(known.get(v, v) for v in node.inputs))
        for old, new in zip(node.outputs, made.outputs, strict=True):
            known.setdefault(old, new)
    return tuple(known.get(v, v) for v in outputs)
