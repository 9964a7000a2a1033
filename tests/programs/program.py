"""A program as data: arguments, arrays and numbers from outside, steps, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy

# How far the steps of a program round: not at all, in their result, or in a sum of many operands.
EXACT, ROUNDS, ACCUMULATES = "exact", "rounds", "accumulates"


@dataclass(frozen=True)
class Step:
    """One line. `{0}` in the text stands for the first operand.

    `meaning` is the same for NumPy where the text itself is not. A step without a result writes.
    """

    kind: str
    text: str
    operands: tuple[str, ...] = ()
    result: str | None = None
    dtype: str | None = None  # of the result; a view has its operand's
    rounding: str = EXACT
    ulps: float = 4.0
    absolute: float = 0.0  # of rounding units, however small the result is
    meaning: str | None = None
    whole: tuple[int, ...] = ()  # operands that are indices, and stay whole numbers
    known: bool = True  # whether NumPy gives the same numbers: it does not for random ones

    is_control: ClassVar[bool] = False  # whether there are steps inside

    @property
    def is_write(self) -> bool:
        return self.result is None

    @property
    def is_view(self) -> bool:
        return self.kind == "view"

    @property
    def results(self) -> tuple[str, ...]:
        """The names that are known behind it."""
        return () if self.result is None else (self.result,)

    @property
    def within(self) -> tuple[Step, ...]:
        """The step and all steps inside of it."""
        return (self,)

    def each(self, change: Callable[[Step], Step]) -> Step:
        """The step changed, and so all steps inside of it."""
        return change(self)

    def named(self, name: Callable[[str], str]) -> Step:
        """The step with other names for what it reads."""
        return replace(self, operands=tuple(map(name, self.operands)))

    def expression(self) -> str:
        """What it computes, in Python."""
        return self.text.format(*self.operands)

    def lines(self) -> list[str]:
        """The step in Python."""
        text = self.expression()
        return [text if self.is_write else f"{self.result} = {text}"]


@dataclass(frozen=True)
class Array:
    """An array that a program is given or finds outside: elements, or a part of another one."""

    elements: numpy.ndarray | None = None
    part: str | None = None  # in Python, of other arrays
    differentiable: bool = False


@dataclass(frozen=True)
class Program:
    """What is run, compared and shrunk."""

    arguments: Mapping[str, Array]
    steps: tuple[Step, ...]
    returned: Any  # a structure of names
    outside: Mapping[str, Array] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)  # from outside, by how they are read
    changes: Mapping[str, float] = field(default_factory=dict)  # of numbers, for the second call
    refused: Mapping[str, Array] = field(
        default_factory=dict
    )  # indices, for a call that refuses them
    mode: str = "plain"  # "gradient": recorded outside; "inside": records by itself
    recorded_from: int = 0  # the first step that is recorded, where the program records by itself
    twice: bool = False  # recorded outside: the gradients are differentiated again
    origin: str = ""  # how to make it again

    def change(self, **changes: Any) -> Program:
        return replace(self, **changes)

    def at(self, turn: int) -> Program:
        """The program as one of the calls finds it."""
        return self.change(numbers={**self.numbers, **self.changes}) if turn == 1 else self

    def source(self, name: str = "program") -> str:
        """The function in Python."""
        lines = [line for step in self.steps for line in step.lines()]
        if self.mode == "inside":
            lines = self._recording()
        else:
            lines.append(f"return {written(self.returned)}")
        assigned = [
            s.operands[0] for s in self.within() if s.is_write and s.text.startswith("{0} ")
        ]
        if held := sorted(set(assigned) & set(self.outside)):
            lines.insert(0, f"global {', '.join(held)}")
        return "\n".join([f"def {name}({', '.join(self.arguments)}):", *indented(lines)]) + "\n"

    def within(self) -> Iterator[Step]:
        """All steps, those inside of others too."""
        return (inner for step in self.steps for inner in step.within)

    @property
    def prints(self) -> bool:
        return any(step.kind == "printed" for step in self.within())

    @property
    def has_control(self) -> bool:
        """Whether there are choices or loops: what they hand on is an array of its own then."""
        return any(step.is_control for step in self.steps)

    def _recording(self) -> list[str]:
        """The lines with those that record, and give gradients, around them."""
        before, recorded = (
            [line for step in steps for line in step.lines()]
            for steps in (self.steps[: self.recorded_from], self.steps[self.recorded_from :])
        )
        heads = " + ".join(f"np.sin({name} * 0.5).sum()" for name in leaves(self.returned))
        gradients = ", ".join(f"{name}.grad.copy()" for name in self.variables())
        return [
            *before,
            "with autograd.record(train_mode=False):",
            *indented([*recorded, f"head = {heads}"]),
            "head.backward()",
            f"return {written(self.returned)}, [{gradients}]",
        ]

    def variables(self) -> list[str]:
        """The arrays that gradients flow to."""
        arrays = {"gradient": self.arguments, "inside": self.outside}.get(self.mode, {})
        return [name for name, array in arrays.items() if array.differentiable]

    def used(self) -> set[str]:
        """All names that the function reads."""
        return set(leaves(self.returned)).union(*(step.operands for step in self.steps))


def indented(lines: Iterable[str]) -> Iterator[str]:
    """Lines as they stand in a block."""
    return ("    " + line for line in lines)


def written(tree: Any) -> str:
    """A structure of names in Python."""
    if isinstance(tree, str):
        return tree
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{k!r}: {written(v)}" for k, v in tree.items()) + "}"
    items = ", ".join(map(written, tree))
    if isinstance(tree, tuple):
        return f"({items},)" if len(tree) == 1 else f"({items})"
    return f"[{items}]"


def leaves(tree: Any) -> Iterator[Any]:
    """What a structure holds, in its order."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves(item)
    else:
        yield tree
