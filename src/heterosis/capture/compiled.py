"""A function of arrays, captured once for each kind of arguments, and run as one native call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from heterosis import _core
from heterosis.autograd import tape
from heterosis.autograd.derivative import Differentiable
from heterosis.capture import trees
from heterosis.capture.trace import (
    Argument,
    Captured,
    Computed,
    Outside,
    RandomKey,
    Source,
    Supplied,
    capture,
)
from heterosis.ir.strided import Strided
from heterosis.ops import eager
from heterosis.ops.cast import assign
from heterosis.runtime import modes


class Compiled:
    """`function`, compiled. `captures` counts how often it has been run to be captured.

    A program serves calls whose arrays agree in types, shapes and layouts, whose other arguments
    are equal, while nothing else that it depends on changes. `replay` is what to call: it finds
    the program in the core, and comes back here where it has none.
    """

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function, updated=())
        self.function, self.captures = function, 0
        self.replay = _core.Replay(self._call)
        self.example: tuple[tuple, dict] | None = None  # the last captured call, without elements
        self._programs: dict[Hashable, Program] = {}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.replay(*arguments, **keywords)

    def _call(self, *arguments: Any, **keywords: Any) -> Any:
        if modes.is_capturing():  # becomes part of the program that calls it
            return self.function(*arguments, **keywords)
        key = (
            trees.description((arguments, keywords)),
            modes.is_training(),
            modes.is_recording(),
            _core.threads(),
        )
        program = self._programs.get(key)
        if program is None or not program.holds():
            program = self._programs[key] = self._captured(arguments, keywords)
        if not keywords and not modes.is_recording():
            program.serve(self.replay, arguments)
        return program.run(list(trees.arrays_in((arguments, keywords))))

    def _captured(self, arguments: tuple, keywords: dict) -> Program:
        self.captures += 1
        self.example = trees.replaced((arguments, keywords), _without_elements)
        found = capture(self.function, arguments, keywords)
        return Program(found, list(trees.arrays_in((arguments, keywords))))

    def __repr__(self) -> str:
        return f"<hybridized {getattr(self.function, '__qualname__', self.function)!s}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a decorator of methods: each instance has programs of its own."""
        if instance is None:
            return self
        name = f"_hybridized_{self.function.__name__}"
        found = instance.__dict__.get(name)
        if found is None:
            found = Compiled(self.function.__get__(instance, owner))
            instance.__dict__[name] = found
        return found


class Program:
    """A captured program, planned for arguments of one kind."""

    def __init__(self, captured: Captured, arguments: Sequence[Any]):
        self.captured = captured
        program = captured.program
        layouts = tuple(_layout(source, arguments) for source in captured.sources)
        self.plain = self.kept = Differentiable(program, program.inputs, layouts)
        if modes.is_recording():
            wanted = tape.wanted_of(self._operands(arguments, draw=False))
            self.kept = self.plain.keeping(wanted) if wanted else self.plain
        self.plan = eager.plan(self.kept.program, layouts, None, views=True, freely=False)

    def holds(self) -> bool:
        """Whether nothing has changed that the capture depended on."""
        reads, guards = self.captured.reads, self.captured.guards
        return all(array._version == seen for array, seen in reads) and all(
            guard() == found for guard, found in guards
        )

    def serve(self, replay: Any, arguments: tuple[Any, ...]) -> None:
        """Let `replay` run the program for arguments like these, if it can by itself."""
        captured = self.captured
        items = self._items()
        if captured.reads or captured.supplies or items is None:
            return
        sources = [_described(source) for source in captured.sources]
        writes = [(i, captured.sources.index(source)) for source, i in captured.writes]
        replay.add(arguments, self.plan, sources, items, writes)

    def _items(self) -> Any:
        """What is returned, as the core describes it; None if it is nested or no array."""
        result = self.captured.result
        if type(result) not in (tuple, list):
            return self._item(result)
        items = [self._item(item) for item in result]
        return None if None in items else type(result)(items)

    def _item(self, result: Any) -> int | None:
        if isinstance(result, Computed):
            return result.position
        if isinstance(result, Argument | Outside):
            return -1 - self.captured.sources.index(result)
        return None

    def run(self, arguments: Sequence[Any]) -> Any:
        """What the function returns, its arrays being `arguments`."""
        captured = self.captured
        for supply in captured.supplies:
            supply.advance()
        operands = self._operands(arguments)
        results = _core.run_plan(self.plan, operands)
        if modes.is_recording():
            tape.note(self.plain, self.kept, operands, results)
        if captured.writes:
            with modes.switched(recording=False):
                for source, i in captured.writes:
                    assign(results[i], out=_operand(source, arguments))
        return _rebuilt(captured.result, arguments, results)

    def _operands(self, arguments: Sequence[Any], draw: bool = True) -> list[Any]:
        """What the program is fed; without `draw`, no random numbers."""
        return [
            _operand(source, arguments) if draw or not isinstance(source, RandomKey) else 0
            for source in self.captured.sources
        ]


def _operand(source: Source, arguments: Sequence[Any]) -> Any:
    if isinstance(source, Argument):
        return arguments[source.position]
    if isinstance(source, Outside):
        return source.array
    if isinstance(source, Supplied):
        return source.supply.numbers[source.index]
    return _core.random_key()


def _without_elements(array: Any) -> Any:
    return _core.unreadable(array._dtype_name, array.shape, "an example has no elements")


def _described(source: Source) -> Any:
    if isinstance(source, Argument):
        return source.position
    return source.array if isinstance(source, Outside) else None


def _layout(source: Source, arguments: Sequence[Any]) -> Strided:
    if isinstance(source, RandomKey | Supplied):
        return Strided((), ())
    array = _operand(source, arguments)
    return Strided(array.shape, array._element_strides)


def _rebuilt(tree: Any, arguments: Sequence[Any], results: Sequence[Any]) -> Any:
    if isinstance(tree, Computed):
        return results[tree.position]
    if isinstance(tree, Argument | Outside):
        return _operand(tree, arguments)
    if isinstance(tree, tuple | list):
        items = [_rebuilt(item, arguments, results) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        return type(tree)((k, _rebuilt(item, arguments, results)) for k, item in tree.items())
    return tree
