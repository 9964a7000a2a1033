"""Steps with steps inside: choices and loops, as Python's statements or as functions of `npx`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.programs.program import Step, indented


@dataclass(frozen=True)
class Block:
    """A branch, or the body of a loop: steps, and the names of what it hands on."""

    steps: tuple[Step, ...]
    returned: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        return [line for step in self.steps for line in step.lines()]

    def each(self, change: Callable[[Step], Step]) -> Block:
        return replace(self, steps=tuple(step.each(change) for step in self.steps))

    def named(self, name: Callable[[str], str]) -> Block:
        steps = tuple(step.named(name) for step in self.steps)
        return Block(steps, tuple(map(name, self.returned)))

    def smaller(self) -> Iterator[Block]:
        """The block without one of its steps, or with a smaller one."""
        for i, step in enumerate(self.steps):
            before, after = self.steps[:i], self.steps[i + 1 :]
            for result in step.results or [""]:
                for name in step.operands if step.results else [""]:
                    rest = Block(after, self.returned).named(_instead(result, name))
                    yield Block((*before, *rest.steps), rest.returned)
            if isinstance(step, Control):
                for smaller in step.smaller():
                    yield Block((*before, smaller, *after), self.returned)


def _instead(old: str, new: str) -> Callable[[str], str]:
    return lambda name: new if name == old else name


@dataclass(frozen=True)
class Control(Step):
    """A step that decides by `test` what of its blocks runs; `text` is the form that it takes."""

    test: Step | None = None
    blocks: tuple[Block, ...] = ()
    names: tuple[str, ...] = ()  # of its results

    is_control = True

    @property
    def is_write(self) -> bool:
        return any(step.is_write for block in self.blocks for step in block.steps)

    @property
    def results(self) -> tuple[str, ...]:
        return self.names

    @property
    def within(self) -> tuple[Step, ...]:
        inner = (step.within for block in self.blocks for step in block.steps)
        return (self, *(step for steps in inner for step in steps))

    def each(self, change: Callable[[Step], Step]) -> Step:
        test = self.test and change(self.test)
        blocks = tuple(block.each(change) for block in self.blocks)
        return change(replace(self, test=test, blocks=blocks))

    def named(self, name: Callable[[str], str]) -> Control:
        test = self.test and self.test.named(name)
        blocks = tuple(block.named(name) for block in self.blocks)
        return replace(self, test=test, blocks=blocks).closed()

    def smaller(self) -> Iterator[Control]:
        """The step with one result less, or with a smaller block."""
        for i in self._left_out():
            yield self._without(i).closed()
        for i, block in enumerate(self.blocks):
            for smaller in block.smaller():
                blocks = (*self.blocks[:i], smaller, *self.blocks[i + 1 :])
                yield replace(self, blocks=blocks).closed()

    def arrays(self, numbers: Collection[str]) -> Iterable[str]:
        """The names of results that are arrays in every way of running."""
        return self.names

    def _left_out(self) -> Iterable[int]:
        """The positions of results that there need not be."""
        return range(len(self.names))

    def _without(self, i: int) -> Control:
        """The step without result `i`."""
        blocks = tuple(replace(b, returned=_omitted(b.returned, i)) for b in self.blocks)
        return replace(self, names=_omitted(self.names, i), blocks=blocks)

    def given(self) -> set[str]:
        """The names that it sets before its blocks run."""
        return set()

    def closed(self) -> Control:
        """The same, with the names that it takes from around as operands."""
        known, taken = self.given(), dict.fromkeys(self._named())
        for test in [self.test] if self.test else []:
            taken.update(dict.fromkeys(name for name in test.operands if name not in known))
        for block in self.blocks:
            inside = set(known)
            for step in block.steps:
                taken.update(dict.fromkeys(n for n in step.operands if n not in inside))
                inside.update(step.results)
            taken.update(dict.fromkeys(n for n in block.returned if n not in inside))
        return replace(self, operands=tuple(taken))

    def _named(self) -> Iterable[str]:
        """The names from around that the step itself says."""
        return ()

    @property
    def _tag(self) -> str:
        """What the names of its functions end with."""
        return next(iter([*self.names, *self.operands]), "")


def _omitted(names: tuple[str, ...], i: int) -> tuple[str, ...]:
    return (*names[:i], *names[i + 1 :])


@dataclass(frozen=True)
class Leave(Control):
    """`break` or `continue`, where a test holds."""

    def lines(self) -> list[str]:
        assert self.test
        return [f"if {self.test.expression()}:", *indented([self.text])]


@dataclass(frozen=True)
class Tried(Control):
    """A block, and what is done where it raises an error, whose class the text is."""

    def lines(self) -> list[str]:
        one, other = ([*b.lines(), *self._assigned(b)] or ["pass"] for b in self.blocks)
        return ["try:", *indented(one), f"except {self.text}:", *indented(other)]

    def _assigned(self, block: Block) -> list[str]:
        return [f"{_many(self.names)} = {_many(block.returned)}"] if self.names else []


@dataclass(frozen=True)
class Called(Control):
    """A function within the program: "function", or "hybridized" by itself. Some of the arrays are
    `passed`, and the others it takes from around."""

    passed: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        name, given = f"part_{self._tag}", _many(n for n in self.passed if n in self.operands)
        (body,) = self.blocks
        function = f"heterosis.hybridize({name})" if self.text == "hybridized" else name
        call = f"{function}({given})"
        return [
            f"def {name}({given}):",
            *indented([*body.lines(), f"return {_many(body.returned)}"]),
            f"{_many(self.names)} = {call}" if self.names else call,
        ]


@dataclass(frozen=True)
class Choice(Control):
    """One of two blocks: "if", "cond", "inputs" (cond with inputs), or "expression"."""

    def lines(self) -> list[str]:
        assert self.test
        test, (then, otherwise) = self.test.expression(), self.blocks
        if self.text == "expression":
            one, other = (block.steps[0].expression() for block in self.blocks)
            return [f"{self.names[0]} = ({one}) if {test} else ({other})"]
        if self.text == "if":
            return [
                f"if {test}:",
                *indented(self._ending(then)),
                "else:",
                *indented(self._ending(otherwise)),
            ]
        inputs = ", ".join(self.operands) if self.text == "inputs" else ""
        functions = []
        for name, block in zip(("then", "otherwise"), self.blocks, strict=True):
            last = f"return {_many(block.returned)}" if block.returned else "return []"
            functions += [f"def {name}_{self._tag}({inputs}):", *indented([*block.lines(), last])]
        given = f", [{inputs}]" if inputs else ""
        call = f"npx.cond({test}, then_{self._tag}, otherwise_{self._tag}{given})"
        return [*functions, f"{_many(self.names)} = {call}" if self.names else call]

    def _ending(self, block: Block) -> list[str]:
        lines = block.lines()
        if self.names:
            lines.append(f"{_many(self.names)} = {_many(block.returned)}")
        return lines or ["pass"]


@dataclass(frozen=True)
class Loop(Control):
    """A block over and over: "while", "for", "backwards", "while_loop", "foreach".

    The first of its names are carried from turn to turn, and begin with `starts`; the others are
    outputs of all turns. The rows of the arrays `data` are known by the names `rows`.
    """

    starts: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    most: int | None = None  # turns of a while_loop

    @property
    def carried(self) -> tuple[str, ...]:
        return self.names[: len(self.starts)]

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.names[len(self.starts) :]

    def given(self) -> set[str]:
        return {*self.carried, *self.rows}

    def named(self, name: Callable[[str], str]) -> Control:
        starts, data = tuple(map(name, self.starts)), tuple(map(name, self.data))
        return replace(super().named(name), starts=starts, data=data).closed()

    def arrays(self, numbers: Collection[str]) -> Iterable[str]:
        return [
            n for n, start in zip(self.carried, self.starts, strict=True) if start not in numbers
        ] + [*self.outputs]

    def _left_out(self) -> Iterable[int]:
        return range(0 if self.data else 1, len(self.names))  # not what counts the turns

    def _without(self, i: int) -> Control:
        starts = _omitted(self.starts, i) if i < len(self.starts) else self.starts
        return replace(super()._without(i), starts=starts)

    def _named(self) -> Iterable[str]:
        return (*self.starts, *self.data)

    def lines(self) -> list[str]:
        body = self.blocks[0]
        if self.text in ("while", "for", "backwards"):
            head = f"while {self.test.expression()}:" if self.text == "while" else self._for()
            first = [f"{_many(self.carried)} = {_many(self.starts)}"] if self.starts else []
            last = [f"{_many(self.carried)} = {_many(body.returned)}"] if self.starts else []
            return [*first, head, *indented([*body.lines(), *last] or ["pass"])]
        return list(self._called(body))

    def _for(self) -> str:
        if len(self.data) == 1:
            data = f"reversed({self.data[0]})" if self.text == "backwards" else self.data[0]
            return f"for {self.rows[0]} in {data}:"
        return f"for {_many(self.rows)} in zip({', '.join(self.data)}):"

    def _called(self, body: Block) -> Iterator[str]:
        many, tag = len(self.starts), self._tag
        after, outputs = body.returned[:many], body.returned[many:]
        first = []
        if self.text == "foreach":
            parameters = "rows, states"
            first = [f"{_many(self.rows)} = rows"]
            first += [f"{_listed(self.carried)} = states"] if self.starts else []
            call = f"npx.foreach(body_{tag}, {_one_or_listed(self.data)}, {_listed(self.starts)})"
        else:
            parameters = ", ".join(self.carried)
            most = "" if self.most is None else f", max_iterations={self.most}"
            test = f"lambda {parameters}: {self.test.expression()}"
            call = f"npx.while_loop({test}, body_{tag}, {_listed(self.starts)}{most})"
        yield f"def body_{tag}({parameters}):"
        last = f"return {_one_or_listed(outputs)}, {_listed(after)}"
        yield from indented([*first, *body.lines(), last])
        targets = _one_or_listed(self.outputs) if self.outputs else f"none_{tag}"
        yield f"{targets}, {_listed(self.carried) if self.starts else f'none_{tag}'} = {call}"


def _many(names: Iterable[Any]) -> str:
    return ", ".join(names)


def _listed(names: Iterable[Any]) -> str:
    return f"[{_many(names)}]"


def _one_or_listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else _listed(names)
