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
    capture,
)
from heterosis.ir.strided import Strided
from heterosis.ops.captured import compile_program
from heterosis.ops.cast import assign
from heterosis.runtime import modes


class Compiled:
    """`function`, compiled. `captures` counts how often it has been run to be captured.

    A program serves calls whose arrays agree in types, shapes and layouts, whose other arguments
    are equal, and for which `state`, if given, returns what it did at capture.
    """

    def __init__(self, function: Callable[..., Any], state: Callable[[], Hashable] | None = None):
        functools.update_wrapper(self, function, updated=())
        self.function, self.captures = function, 0
        self._state = state or (lambda: None)
        self._programs: dict[Hashable, Program] = {}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if modes.is_capturing():  # becomes part of the program that calls it
            return self.function(*arguments, **keywords)
        key = (
            trees.description((arguments, keywords)),
            modes.is_training(),
            modes.is_recording(),
            _core.threads(),
        )
        program = self._programs.get(key)
        if program is None or not program.holds(self._state()):
            program = self._programs[key] = self._captured(arguments, keywords)
        return program.run(list(trees.arrays_in((arguments, keywords))))

    def _captured(self, arguments: tuple, keywords: dict) -> Program:
        self.captures += 1
        found = capture(self.function, arguments, keywords)
        return Program(found, list(trees.arrays_in((arguments, keywords))), self._state())

    def __repr__(self) -> str:
        return f"<hybridized {getattr(self.function, '__qualname__', self.function)!s}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a decorator of methods: each instance has programs of its own."""
        if instance is None:
            return self
        name = f"_hybridized_{self.function.__name__}"
        found = instance.__dict__.get(name)
        if found is None:
            found = Compiled(self.function.__get__(instance, owner), self._state)
            instance.__dict__[name] = found
        return found


class Program:
    """A captured program, planned for arguments of one kind."""

    def __init__(self, captured: Captured, arguments: Sequence[Any], state: Hashable):
        self.captured, self.state = captured, state
        layouts = tuple(_layout(source, arguments) for source in captured.sources)
        program = captured.program
        self.differentiable = Differentiable(program, program.inputs, layouts)
        self.plan = compile_program(program, layouts)

    def holds(self, state: Hashable) -> bool:
        """Whether nothing has changed that the capture depended on."""
        reads = self.captured.reads
        return self.state == state and all(array._version == seen for array, seen in reads)

    def run(self, arguments: Sequence[Any]) -> Any:
        """What the function returns, its arrays being `arguments`."""
        captured = self.captured
        operands = [_operand(source, arguments) for source in captured.sources]
        results = _core.run_plan(self.plan, operands)
        if modes.is_recording():
            tape.note(self.differentiable, operands, results)
        if captured.writes:
            with modes.switched(recording=False):
                for source, i in captured.writes:
                    assign(results[i], out=_operand(source, arguments))
        return _rebuilt(captured.result, arguments, results)


def _operand(source: Source, arguments: Sequence[Any]) -> Any:
    if isinstance(source, Argument):
        return arguments[source.position]
    if isinstance(source, Outside):
        return source.array
    return _core.random_key()


def _layout(source: Source, arguments: Sequence[Any]) -> Strided:
    if isinstance(source, RandomKey):
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
