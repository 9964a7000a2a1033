"""Whether a program is well formed: every node is what its primitive says.

The time this takes grows with the number of nodes, and with nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import GenericAlias, UnionType
from typing import Any, get_args
from weakref import WeakValueDictionary

from heterosis.ir.calls import Call, Pullback, inputs_besides
from heterosis.ir.primitives.leaves import EXTENT, INPUT, NUMBER
from heterosis.ir.program import Node, Program, Value
from heterosis.ir.sizes import Size
from heterosis.ir.text import line_of
from heterosis.ir.traced_sizes import TracedSize
from heterosis.ir.types import DTYPES, TensorType
from heterosis.runtime.errors import HeterosisError, ProgramError

_PROGRAM_INPUTS = (INPUT, NUMBER)
_WEAK = (NUMBER, EXTENT)

# By their identities, the programs that were found well formed. They never change; and of branches
# within branches, the passes over each would look at all that are inside again.
_well_formed: WeakValueDictionary[int, Program] = WeakValueDictionary()


def check_once(program: Program) -> None:
    """`check`, of a program that was not looked at before."""
    if _well_formed.get(id(program)) is not program:
        check(program)
        _well_formed[id(program)] = program


def check(program: Program) -> None:
    """Raise `ProgramError` unless `program` is well formed, naming the line of its text.

    That is: its inputs are different, and are all that it is given; the attributes of each node are
    those of its primitive, of their kinds; the rule of the primitive gives the types that the
    node says that it has; and all that holds of programs that are attributes. Its calls speak of
    values of the program, and what each gives is made of nothing but what it was given.
    """
    _check_inputs(program)
    given = {value.node for value in program.inputs}
    for node in program.nodes():
        try:
            _check_node(node, given)
        except (HeterosisError, ValueError, TypeError, KeyError) as error:  # rules take them apart
            raise ProgramError(f"{program.name}, {line_of(program, node)!r}: {error}") from error
    for value in program.outputs:
        _check_exists(value, "a result")
    _check_calls(program, program.calls or ())


def _check_inputs(program: Program) -> None:
    for position, value in enumerate(program.inputs):
        if value.node.primitive not in _PROGRAM_INPUTS or value.index:
            raise ProgramError(
                f"{program.name}: input {position} is made by {value.node.primitive}; expected an "
                "input or a number."
            )
    if len(set(program.inputs)) != len(program.inputs):
        raise ProgramError(f"{program.name}: one value is two of its inputs.")
    for value in program.inputs:
        _check_types(value.node)


def _check_node(node: Node, given: set[Node]) -> None:
    if node.primitive in _PROGRAM_INPUTS and node not in given:
        raise ProgramError("it is given to the program, and is none of its inputs.")
    for value in node.inputs:
        _check_exists(value, "an operand")
    _check_attributes(node)
    _check_types(node)


def _check_exists(value: Value, what: str) -> None:
    count = len(value.node.types)
    if not 0 <= value.index < count:
        raise ProgramError(
            f"{what} is result {value.index} of {value.node.primitive}, which has {count}."
        )


# -- calls ----------------------------------------------------------------------------------------


def _check_calls(program: Program, calls: Sequence[Call]) -> None:
    nodes = {*program.nodes(), *(value.node for value in program.inputs)}
    for call in calls:
        for one in (call, *call.steps):
            try:
                _check_call(one, nodes)
            except ProgramError as error:
                raise ProgramError(
                    f"{program.name}, the call of {one.operation}: {error}"
                ) from error


def _check_call(call: Call, nodes: set[Node]) -> None:
    for value in call.results:
        _check_exists(value, "a result")
    results = [value for value in call.results if value.node in nodes]
    if not results:
        raise ProgramError("the program needs none of its results.")
    if set(inputs_besides(results, call.inputs)) - set(call.held):
        raise ProgramError("its results are made of an input of the program that is none of its.")
    if call.pullback is not None:
        _check_pullback(call, call.pullback)


def _check_pullback(call: Call, pullback: Pullback) -> None:
    given = [value.type for value in (*pullback.saved, *call.results)]
    taken = [value.type for value in pullback.program.inputs]
    if len(given) != len(taken) or not all(map(_agree, given, taken)):
        raise ProgramError("its gradient takes other values than it saves and receives.")
    if len(pullback.to) != len(pullback.program.outputs):
        raise ProgramError("its gradient gives more or less than it says.")
    check_once(pullback.program)


# -- attributes -----------------------------------------------------------------------------------


def _check_attributes(node: Node) -> None:
    kinds = node.primitive.attributes
    if node.attributes.keys() != kinds.keys():
        raise ProgramError(
            f"{node.primitive} has the attributes {_listed(node.attributes)}; expected "
            f"{_listed(kinds)}."
        )
    for name, value in node.attributes.items():
        if not is_a(value, kinds[name]):
            raise ProgramError(f"{name}={value!r}; expected {kind_text(kinds[name])}.")
        if isinstance(value, Program):
            check_once(value)


def _listed(names: Mapping[str, Any]) -> str:
    return f"({', '.join(names)})"


def is_a(value: Any, kind: Any) -> bool:
    """Whether `value` is of a kind: a class, several, or a tuple of kinds. Truth values are no
    numbers here, and sizes are whole numbers."""
    if isinstance(kind, UnionType):
        return any(is_a(value, one) for one in get_args(kind))
    if isinstance(kind, GenericAlias):
        return isinstance(value, tuple) and _are(value, get_args(kind))
    if kind is int:
        return type(value) in (int, Size, TracedSize)
    return isinstance(value, kind)


def _are(values: tuple[Any, ...], kinds: tuple[Any, ...]) -> bool:
    if kinds[-1] is Ellipsis:
        return all(is_a(value, kinds[0]) for value in values)
    return len(values) == len(kinds) and all(map(is_a, values, kinds))


def kind_text(kind: Any) -> str:
    """A kind as an annotation: `tuple[int, ...]`."""
    if isinstance(kind, UnionType):
        return " | ".join(map(kind_text, get_args(kind)))
    if isinstance(kind, GenericAlias):
        return f"tuple[{', '.join(map(kind_text, get_args(kind)))}]"
    return {Ellipsis: "...", type(None): "None"}.get(kind) or str(kind.__name__)


# -- types ----------------------------------------------------------------------------------------


def _check_types(node: Node) -> None:
    for type_ in node.types:
        if type_.dtype not in DTYPES:
            raise ProgramError(f"{type_.dtype} is no element type.")
    expected = node.primitive.types(node)
    if len(expected) != len(node.types) or not all(map(_agree, node.types, expected)):
        raise ProgramError(
            f"the types are ({', '.join(map(str, node.types))}); expected "
            f"({', '.join(map(str, expected))})."
        )
    if node.primitive in _WEAK and not node.types[0].weak:
        raise ProgramError("its type is not weak; expected one that adapts to a partner's.")


def _agree(given: TensorType, expected: TensorType) -> bool:
    """Whether the elements are the same. What adapts to its partner has done so within programs."""
    return given.shape == expected.shape and given.dtype == expected.dtype
