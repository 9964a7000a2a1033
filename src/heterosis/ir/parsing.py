"""Texts as programs: what `text` writes is read here."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from heterosis.ir.calls import Call, Pullback
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.primitives.leaves import INPUT, NUMBER
from heterosis.ir.program import Node, Program, Value, constant, extent
from heterosis.ir.sizes import parse_size
from heterosis.ir.text import USUAL
from heterosis.ir.types import DTYPES, TensorType
from heterosis.runtime.errors import HeterosisError, ProgramError


def parse(text: str, primitives: Mapping[str, Primitive] | None = None) -> Program:
    """The program that `text` describes, of the `primitives` with these names.

    These are all of `heterosis.ir.PRIMITIVES`, unless others are given. `check` says whether the
    program is well formed; here, only what cannot be read raises `ProgramError`, with the line.
    """
    if primitives is None:
        from heterosis.ir.primitives import PRIMITIVES

        primitives = PRIMITIVES
    reader = _Reader(_lines(text), primitives)
    try:
        program = reader.program(reader.next_line())
    except RecursionError:
        raise ProgramError("the text is nested too deeply to be a program.") from None
    if not reader.is_done:
        raise reader.error("expected nothing behind the program's return")
    return program


_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\#.*)
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<value>%\w+)
    | (?P<type>\w+\[[^\]]*\])
    | (?P<size><[^>]*>)
    | (?P<number>-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf\b|nan\b))
    | (?P<word>[^\W\d][\w.]*)
    | (?P<mark>[(){}\[\],:=])""",
    re.VERBOSE,
)
_NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
_CONSTANTS = {"True": True, "False": False, "None": None}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


_END = _Token("end", "the end of the line")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.strip().startswith("#"):
            yield number, line.strip()


class _Line:
    """The tokens of one line, read from left to right."""

    def __init__(self, number: int, text: str):
        self.number, self.text = number, text
        self._tokens = list(self._split())
        self._at = 0

    def _split(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.error(f"{self.text[at]!r} is no part of a program")
            at = found.end()
            kind = found.lastgroup
            assert kind is not None, "every alternative has a name"
            if kind != "space":
                yield _Token(kind, found[0])

    @property
    def here(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def take(self, kind: str, what: str) -> str:
        """The next token, which must be of this kind."""
        if self.here.kind != kind:
            raise self.error(f"expected {what}, and got {self.here.text}")
        self._at += 1
        return self._tokens[self._at - 1].text

    def is_followed_by(self, mark: str) -> bool:
        """Whether `mark` stands behind the next token."""
        return [token.text for token in self._tokens[self._at + 1 : self._at + 2]] == [mark]

    def takes(self, text: str) -> bool:
        """Whether the next token is this mark or word; if so, it is taken."""
        if self.here.text != text or self.here.kind not in ("mark", "word"):
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.takes(text):
            raise self.error(f"expected {text!r}, and got {self.here.text}")

    def listed(self, end: str, item: Callable[[], None]) -> None:
        """Read items with commas between them, up to the mark `end`."""
        while not self.takes(end):
            item()
            if not self.takes(","):
                self.expect(end)
                return

    def begins_an_attribute(self) -> bool:
        """Whether the next tokens are a name and `=`."""
        return self.here.kind == "word" and self.is_followed_by("=")

    def begins_a_type(self) -> bool:
        """Whether the next token is a type, which may be weak."""
        ahead = self._tokens[self._at : self._at + 2]
        kinds = [token.kind for token in ahead[self.here.text == "weak" :]]
        return kinds[:1] == ["type"]

    def error(self, what: str) -> ProgramError:
        return ProgramError(f"line {self.number}, {self.text!r}: {what}.")


@contextmanager
def _located(line: _Line) -> Iterator[None]:
    """What goes wrong is said of `line`."""
    try:
        yield
    except (HeterosisError, ValueError, SyntaxError) as error:
        raise line.error(str(error).rstrip(".")) from error


class _Reader:
    """The lines that are left."""

    def __init__(self, lines: Iterator[tuple[int, str]], primitives: Mapping[str, Primitive]):
        self.primitives = primitives
        self._lines = [_Line(*line) for line in lines]
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._at == len(self._lines)

    def error(self, what: str) -> ProgramError:
        return self._lines[self._at].error(what)

    def next_line(self) -> _Line:
        if self.is_done:
            raise ProgramError("the text ends within a program; expected a line with return.")
        self._at += 1
        return self._lines[self._at - 1]

    def program(self, head: _Line) -> Program:
        """The program that begins with `head`, as far as that is not read."""
        return _Body(self, head).read()

    def programs(self) -> dict[str, Program]:
        """The attributes of the last node that are programs."""
        found: dict[str, Program] = {}
        while not self.is_done and self._lines[self._at].begins_an_attribute():
            line = self.next_line()
            name = line.take("word", "the name of an attribute")
            line.expect("=")
            if name in found:
                raise line.error(f"the attribute {name} is there twice")
            found[name] = self.program(line)
        return found


@dataclass(frozen=True)
class _Inside:
    """An attribute of a call: the program of this name, of the node that made the results."""

    name: str


class _Body:
    """One program in the making, and its values by their names."""

    def __init__(self, reader: _Reader, line: _Line):
        self.reader, self.line = reader, line
        self.values: dict[str, Value] = {}
        self.numbers: dict[tuple[str, ...], Value] = {}
        self.inside: list[_Inside] = []  # among the attributes of the call that is read

    def read(self) -> Program:
        name = self._name()
        self.line.expect("(")
        inputs: list[Value] = []
        self.line.listed(")", lambda: inputs.append(self._input()))
        self.line.expect(":")
        self._end()
        self.line = self.reader.next_line()
        while self.line.here.kind == "value":
            self._node()
            self.line = self.reader.next_line()
        calls = self._calls("call")
        self.line.expect("return")
        outputs: list[Value] = []
        while self.line.here is not _END:
            outputs.append(self._operand())
            if not self.line.takes(","):
                self._end()
        return Program(tuple(inputs), tuple(outputs), name, calls)

    def _calls(self, kind: str) -> tuple[Call, ...]:
        """The calls from this line on; the line behind them is the next."""
        found: list[Call] = []
        while self.line.takes(kind):
            call = self._call()
            self.line = self.reader.next_line()
            pullback = self._pullback() if self.line.takes("pullback") else None
            steps = self._calls("step") if kind == "call" else ()
            found.append(replace(call, steps=steps, pullback=pullback))
        return tuple(found)

    def _call(self) -> Call:
        line, operands, results = self.line, list[Value | None](), list[Value]()
        name = self._name()
        line.expect("(")
        line.listed(")", lambda: operands.append(self._given()))
        attributes: Any = (None,) * len(operands)
        self.inside = []
        if line.takes("with"):
            attributes = self._attribute()
        line.expect("gives")
        results.append(self._value())
        while line.takes(","):
            results.append(self._value())
        if self.inside:
            attributes = tuple(map(partial(self._found, results), attributes))
        held: list[Value] = []
        if line.takes("holding"):
            line.expect("(")
            line.listed(")", lambda: held.append(self._operand()))
        scope = str(literal_eval(line.take("text", "a scope"))) if line.takes("in") else ""
        place = str(literal_eval(line.take("text", "a line"))) if line.takes("at") else ""
        self._end()
        return Call(name, tuple(operands), attributes, tuple(results), tuple(held), scope, place)

    def _found(self, results: Sequence[Value], attribute: Any) -> Any:
        """An attribute; the program itself, where it names one of the node of the results."""
        if not isinstance(attribute, _Inside):
            return attribute
        attributes: dict[str, Any] = {}
        for value in results:
            attributes |= value.node.attributes
        if not isinstance(attributes.get(attribute.name), Program):
            raise self.line.error(f"the results are made by no program {attribute.name}")
        return attributes[attribute.name]

    def _given(self) -> Value | None:
        return None if self.line.takes("None") else self._value()

    def _value(self) -> Value:
        """A value of the program, or one that it does not need: that has no name but a type."""
        if self.line.begins_a_type():
            return Value(Node(INPUT, (), {}, (self._type(),)))
        return self._operand()

    def _pullback(self) -> Pullback:
        """A gradient that is a program, up to the line behind it."""
        line, saved = self.line, list[Value]()
        line.expect("to")
        to = self._attribute()
        line.expect("saves")
        line.expect("(")
        line.listed(")", lambda: saved.append(self._operand()))
        line.expect("=")
        program = self.reader.program(line)
        self.line = self.reader.next_line()
        return Pullback(program, tuple(saved), to)

    def _name(self) -> str:
        if self.line.here.kind == "text":
            return str(literal_eval(self.line.take("text", "a name")))
        return self.line.take("word", "the program's name")

    def _end(self) -> None:
        if self.line.here is not _END:
            raise self.line.error(f"expected the end of the line, and got {self.line.here.text}")

    def _input(self) -> Value:
        name = self.line.take("value", "an input such as %0")
        self.line.expect(":")
        is_number = self.line.takes("number")
        type_ = self._type()
        if is_number:
            type_ = TensorType(type_.shape, type_.dtype, weak=True)
        return self._named(name, Value(Node(NUMBER if is_number else INPUT, (), {}, (type_,))))

    def _named(self, name: str, value: Value) -> Value:
        if name in self.values:
            raise self.line.error(f"{name} is there already")
        self.values[name] = value
        return value

    def _type(self) -> TensorType:
        weak = self.line.takes("weak")
        text = self.line.take("type", "a type such as float32[2, 3]")
        dtype, _, extents = text[:-1].partition("[")
        if dtype not in DTYPES:
            raise self.line.error(f"{dtype} is no element type; expected one of {DTYPES}")
        with _located(self.line):
            shape = tuple(map(_extent, extents.split(","))) if extents.strip() else ()
            return TensorType(shape, dtype, weak)

    def _node(self) -> None:
        line = self.line
        results: list[tuple[str, TensorType]] = []
        while True:
            name = line.take("value", "the node's results, or return")
            line.expect(":")
            results.append((name, self._type()))
            if not line.takes(","):
                break
        line.expect("=")
        primitive = self._primitive(line.take("word", "the name of a primitive"))
        line.expect("(")
        operands: list[Value] = []
        attributes: dict[str, Any] = {}
        line.listed(")", lambda: self._operand_or_attribute(operands, attributes))
        self._end()
        attributes |= self.reader.programs()
        types = tuple(type_ for _, type_ in results)
        made = Node(primitive, tuple(operands), attributes, types)
        for (name, _), value in zip(results, made.outputs, strict=True):
            self._named(name, value)

    def _primitive(self, name: str) -> Primitive:
        if name not in self.reader.primitives:
            raise self.line.error(f"there is no primitive {name}")
        return self.reader.primitives[name]

    def _operand_or_attribute(self, operands: list[Value], attributes: dict[str, Any]) -> None:
        line = self.line
        if not line.begins_an_attribute():
            if attributes:
                raise line.error("an operand behind attributes")
            operands.append(self._operand())
            return
        name = line.take("word", "the name of an attribute")
        line.expect("=")
        if name in attributes:
            raise line.error(f"the attribute {name} is there twice")
        attributes[name] = self._attribute()

    def _operand(self) -> Value:
        if self.line.here.kind != "value":
            return self._number()
        name = self.line.take("value", "an operand")
        if name not in self.values:
            raise self.line.error(f"there is no {name} before this line")
        return self.values[name]

    def _number(self) -> Value:
        """A constant, one value for all places where it is written in the same way."""
        line, weak = self.line, self.line.takes("weak")
        dtype = None
        if line.here.kind == "word" and line.here.text not in _CONSTANTS:
            dtype = line.take("word", "an element type")
            line.expect("(")
        value = self._attribute()
        if dtype is not None:
            line.expect(")")
        key = (str(weak), str(dtype), type(value).__name__, repr(value))
        if key not in self.numbers:
            with _located(line):
                self.numbers[key] = _made_number(value, dtype, weak)
        return self.numbers[key]

    def _attribute(self) -> Any:
        line = self.line
        kind, text = line.here.kind, line.here.text
        if kind in ("number", "text", "size"):
            line.take(kind, "a value")
            with _located(line):
                return _READ[kind](text)
        if kind == "word":
            line.take(kind, "a value")
            if text == "program":
                self.inside.append(_Inside(line.take("word", "a program's name")))
                return self.inside[-1]
            return _CONSTANTS[text] if text in _CONSTANTS else self._primitive(text)
        if line.takes("("):
            return self._tuple()
        items: list[Any] = []
        if line.takes("["):
            line.listed("]", lambda: items.append(self._attribute()))
            return items
        if line.takes("{"):
            line.listed("}", lambda: items.append(self._pair()))
            return dict(items)
        raise line.error(f"expected an operand or the value of an attribute, and got {text}")

    def _tuple(self) -> tuple[Any, ...]:
        items: list[Any] = []
        self.line.listed(")", lambda: items.append(self._attribute()))
        return tuple(items)

    def _pair(self) -> tuple[Any, Any]:
        key = self._attribute()
        self.line.expect(":")
        return key, self._attribute()


def _extent(text: str) -> Any:
    """An extent, which types call a number: most of those who look at them want one."""
    text = text.strip()
    return int(text) if text.isdecimal() else parse_size(text)


def _read_number(text: str) -> float:
    if text in _NUMBERS:
        return _NUMBERS[text]
    return int(text) if text.lstrip("-").isdecimal() else float(text)


_READ: dict[str, Callable[[str], Any]] = {
    "number": _read_number,
    "text": literal_eval,
    "size": lambda text: parse_size(text[1:-1]),
}


def _made_number(value: Any, dtype: str | None, weak: bool) -> Value:
    if dtype == "extent":
        return extent(value)
    dtype = dtype or USUAL.get(type(value))
    if dtype not in DTYPES:
        raise ProgramError(f"{value!r} has no element type; expected one, as in int32(1)")
    return constant(value, dtype, weak=weak)
