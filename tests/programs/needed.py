"""What of a program anything follows from: an index that nothing needs refuses nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.programs.program import Program, Step, leaves
from tests.programs.statements import Called, Choice, Control, Loop, Tried


def without_idle_refusals(program: Program) -> Program:
    """The program without the indices that nothing it leaves behind follows from."""
    idle = set(map(id, _idle(program)))

    def without(step: Step) -> Step:
        if id(step) not in idle:
            return step
        within = "{0}[numpy.clip({1}, -len({0}), len({0}) - 1)]"
        return replace(step, meaning="{0}" if step.is_write else within)

    return program.change(steps=tuple(step.each(without) for step in program.steps))


def _idle(program: Program) -> Iterator[Step]:
    """The steps, the last one first, that nothing behind them needs."""
    needed = Needed(program)
    for step in reversed(program.steps):
        needed.add(step)
        yield from (s for s in step.within if s.kind == "refused" and not needed.holds(s))


class Needed:
    """The arrays that something behind a step needs, each for all that share its memory."""

    def __init__(self, program: Program):
        self._shared: dict[str, str] = {}
        for step in program.within():
            if step.is_view:
                self._share(step.operands[:2], step.result or "")
            if isinstance(step, Loop):
                for row, array in zip(step.rows, step.data, strict=False):
                    self._share([array], row)
        made = {name for step in program.steps for name in step.results}
        self._alone = made.difference(self._shared, self._shared.values())
        names = (*leaves(program.returned), *program.arguments, *program.outside)
        self._found = set(map(self._root, names))

    def _share(self, arrays: Iterable[str], view: str) -> None:
        for name in arrays:
            self._shared[self._root(name)] = self._root(view)

    def _root(self, name: str) -> str:
        while self._shared.get(name, name) != name:
            name = self._shared[name]
        return name

    def holds(self, step: Step) -> bool:
        """Whether what a step gives, or writes to, is needed."""
        names = step.operands[:1] if step.is_write and not step.is_control else step.results
        return not self._found.isdisjoint(map(self._root, names))

    def add(self, step: Step) -> None:
        """What a step needs. In a block, whatever is needed at all may be by the next turn."""
        if step.kind == "write" and "] = " in step.text and step.operands[0] in self._alone:
            # It may write to all of it, so that nothing needs what was there.
            if self.holds(step):
                self._found.discard(step.operands[0])
                self._found.update(map(self._root, step.operands[1:]))
            return
        before = -1
        while len(self._found) > before:
            before = len(self._found)
            for inner in step.within:
                self._found.update(map(self._root, self._of(inner)))

    def _of(self, step: Step) -> Iterator[str]:
        if isinstance(step, Control):
            yield from self._of_control(step)
        elif step.kind == "printed" or self.holds(step):
            yield from step.operands

    def _of_control(self, step: Control) -> Iterator[str]:
        for block in step.blocks:
            for name, own in zip(step.names, block.returned, strict=False):
                if self._root(name) in self._found:
                    yield own
        if isinstance(step, Loop):
            for name, start in zip(step.carried, step.starts, strict=False):
                if self._root(name) in self._found:
                    yield start
        decides = self.holds(step) or not isinstance(step, Called | Tried | Choice)
        if step.test and (decides or any(inner.is_write for inner in step.within[1:])):
            yield from step.test.operands
