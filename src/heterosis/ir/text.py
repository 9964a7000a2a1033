"""Programs as texts.

    predict(%0: float32[8, 4], %1: number int64[]):
      %2: float32[] = to_float32(%1)
      %3: float32[8, 4] = broadcast(%2)
      %4: float32[8, 4] = maximum(%0, %3)
      %5: float32[8] = max(%4, axes=(1,))
      return %5

`parsing.parse` and `str` are inverse to each other: the program that is read computes the same from
the same nodes in the same order, and is written as the same text. A line is a node: its results
with their types, its primitive, its operands and its attributes. Numbers stand where they are used;
nodes that no result needs are not part of a program. Attributes that are programs follow the line
of their node, each under its name.

Behind the nodes stand the calls of operations that they were made by, if they are known:

      call relu(%0) gives %4 in 'dense0_' at 'net.py:12'
      call sort(%4) with (None, -1) gives %7
        step sorted_rows(%5) gives %6

An attribute `program then` is the one of that name of the node that made the results. A step is
what differentiation takes as one. A type stands where a call speaks of a value that
the results do not need. A gradient of the user's is a program that follows its call, `pullback to
(0,) saves (%4) = ...`, of what it saves and what the results receive. What is compiled does not
depend on calls: cache keys are made from the text without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from heterosis.ir.calls import Call
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.primitives.leaves import CONSTANT, EXTENT, INPUT, NUMBER
from heterosis.ir.program import Node, Program, Value
from heterosis.ir.sizes import Size
from heterosis.ir.traced_sizes import TracedSize, untraced
from heterosis.ir.types import TensorType

_WORD = re.compile(r"(?!(?:inf|nan)\Z)[^\W\d][\w.]*\Z")
_STEP = "  "
_PLAIN = frozenset((int, float, bool, str, type(None)))
USUAL = {bool: "bool", float: "float32"}  # the element types of numbers that are written alone


def _named(name: str) -> str:
    return name if _WORD.match(name) else repr(name)


@dataclass
class Printed:
    """The text of a program. It is `complete` if nothing in the program lacks a text; `primitives`
    are those that it names."""

    text: str
    complete: bool
    primitives: set[Primitive]


def printed(program: Program, *, calls: bool = True) -> Printed:
    """The text of `program`, with its calls or without."""
    printer = _Printer(calls)
    printer.program(program, program.name, "", "")
    return Printed("\n".join(printer.lines), printer.complete, printer.primitives)


def line_of(program: Program, node: Node) -> str:
    """The line of `node` in the text of `program`."""
    printer = _Printer(calls=False)
    printer.program(program, program.name, "", "")
    at = printer.found.get(id(node))
    return printer.lines[at].strip() if at is not None else str(node.primitive)


class _Names(dict[tuple[int, int], str]):
    """The names of values, by the id of the node and the number of the result: values themselves
    take longer to look up. In damaged programs, there are values that nothing makes."""

    def __missing__(self, key: tuple[int, int]) -> str:
        return "%?"


def _key(value: Value) -> tuple[int, int]:
    return id(value.node), value.index


class _Printer:
    """The lines so far."""

    def __init__(self, calls: bool) -> None:
        self.with_calls = calls
        self.lines: list[str] = []
        self.complete = True
        self.primitives: set[Primitive] = set()
        self.found: dict[int, int] = {}  # the line of a node by its id
        self._types: dict[TensorType, str] = {}
        self._inside: Mapping[int, str] = {}  # programs that a call may name, by their ids

    def program(self, program: Program, name: str, margin: str, label: str) -> None:
        """Append the lines of `program`, behind `label` in the first one."""
        names = _Names((_key(value), f"%{i}") for i, value in enumerate(program.inputs))
        head = len(self.lines)
        self.lines.append("")
        self._body(program, names, margin + _STEP)
        if self.with_calls and program.calls is not None:
            self._calls("call", program.calls, names, margin + _STEP)
        inputs = ", ".join(f"{names[_key(v)]}: {self._input_type(v)}" for v in program.inputs)
        self.lines[head] = f"{margin}{label}{_named(name)}({inputs}):"
        outputs = ", ".join([names[_key(v)] for v in program.outputs])
        self.lines.append(f"{margin}{_STEP}return {outputs}".rstrip())

    def _body(self, program: Program, names: _Names, margin: str) -> None:
        number = len(names)
        for node in program.nodes():
            primitive, types = node.primitive, node.types
            self.primitives.add(primitive)
            if primitive is CONSTANT or primitive is EXTENT:
                names[id(node), 0] = self._number(node)
                continue
            if (primitive is INPUT or primitive is NUMBER) and (id(node), 0) in names:
                continue
            operands = [names[id(v.node), v.index] for v in node.inputs]
            programs = self._add_attributes(node.attributes, operands)
            results = []
            for i, type_ in enumerate(types):
                name = names[id(node), i] = f"%{number}"
                results.append(f"{name}: {self._type(type_)}")
                number += 1
            self.found[id(node)] = len(self.lines)
            left, inside = ", ".join(results), ", ".join(operands)
            self.lines.append(f"{margin}{left} = {primitive.name}({inside})")
            for name, value in programs:
                self.program(value, value.name, margin + _STEP, f"{name} = ")

    def _calls(self, kind: str, calls: Sequence[Call], names: _Names, margin: str) -> None:
        for call in calls:
            self.lines.append(f"{margin}{kind} {self._call(call, names)}")
            self._calls("step", call.steps, names, margin + _STEP)
            if call.pullback:
                to, saved = call.pullback.to, ", ".join(names[_key(v)] for v in call.pullback.saved)
                label = f"pullback to {self._attribute(to)} saves ({saved}) = "
                program = call.pullback.program
                self.program(program, program.name, margin + _STEP, label)

    def _call(self, call: Call, names: _Names) -> str:
        def value(v: Value | None) -> str:
            """What nothing else needs has no name: it is known by its type."""
            if v is None:
                return "None"
            if v.node.primitive is CONSTANT or v.node.primitive is EXTENT:
                return self._number(v.node)
            return names[_key(v)] if _key(v) in names else self._type(v.type)

        self._inside = _programs(call)
        operands = ", ".join(map(value, call.operands))
        parts = [f"{_named(call.operation)}({operands})"]
        if any(attribute is not None for attribute in call.attributes):
            parts.append(f"with {self._attribute(call.attributes)}")
        parts.append(f"gives {', '.join(map(value, call.results))}")
        if call.held:
            parts.append(f"holding ({', '.join(names[_key(v)] for v in call.held)})")
        parts += [f"in {call.scope!r}"] if call.scope else []
        parts += [f"at {call.line!r}"] if call.line else []
        return " ".join(parts)

    def _add_attributes(
        self, attributes: Mapping[str, Any], to: list[str]
    ) -> list[tuple[str, Program]]:
        """Append the texts of attributes `to` a list, and give those that are programs."""
        programs = []
        for name, value in attributes.items():
            if isinstance(value, Program):
                programs.append((name, value))
            else:
                to.append(f"{name}={self._attribute(value)}")
        return programs

    def _type(self, type_: TensorType) -> str:
        text = self._types.get(type_)
        if text is None:
            text = self._types[type_] = f"weak {type_}" if type_.weak else str(type_)
        return text

    def _input_type(self, value: Value) -> str:
        if value.node.primitive is NUMBER:
            return f"number {value.type}"
        return self._type(value.type)

    def _number(self, node: Node) -> str:
        """A number where it is used: `1.0`, or `int32(1)` if its look does not tell its type."""
        value, type_ = node.attributes["value"], node.types[0]
        if isinstance(value, numpy.generic):
            value = value.item()
        text = self._attribute(value)
        if node.primitive is EXTENT:
            return f"extent({text})"
        usual = USUAL.get(type(value))
        text = text if type_.dtype == usual else f"{type_.dtype}({text})"
        return f"weak {text}" if type_.weak else text

    def _attribute(self, value: Any) -> str:
        kind = type(value)
        if kind in _PLAIN:
            return repr(value)
        if kind is tuple:
            items = [self._attribute(item) for item in value]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        if kind is list:
            return f"[{', '.join(map(self._attribute, value))}]"
        if kind is dict:
            items = [f"{self._attribute(k)}: {self._attribute(v)}" for k, v in value.items()]
            return f"{{{', '.join(items)}}}"
        if kind is Size or kind is TracedSize:
            return f"<{untraced(value)}>"
        if kind is Program and id(value) in self._inside:
            return f"program {self._inside[id(value)]}"
        if isinstance(value, Primitive):
            self.primitives.add(value)
            return value.name
        if isinstance(value, numpy.generic) and type(value.item()) in _PLAIN:
            return repr(value.item())
        self.complete = False
        return f"<{kind.__name__}>"


def _programs(call: Call) -> dict[int, str]:
    """The names of the programs that are attributes of what a call has made, by their ids."""
    attributes = (item for v in call.results for item in v.node.attributes.items())
    return {id(value): name for name, value in attributes if isinstance(value, Program)}
