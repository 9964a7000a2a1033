"""A function of arrays, captured once for each kind of arguments, and run as one native call."""

from __future__ import annotations

import functools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any

from heterosis import _core
from heterosis.autograd import tape
from heterosis.autograd.derivative import Differentiable, described, layout_of
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
from heterosis.ops.captured import compile_inference, compile_program
from heterosis.ops.cast import assign
from heterosis.runtime import modes
from heterosis.runtime.settings import settings

Call = tuple[tuple[Any, ...], dict[str, Any]]  # arguments and keywords


class Compiled:
    """`function`, compiled. `captures` counts how often it has been run to be captured.

    A program serves calls whose arrays agree in types, shapes and layouts, whose other arguments
    are equal, while nothing else that it depends on changes. `replay` is what to call: it finds
    the program in the core, and comes back here where it has none.
    """

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        """A copy captures anew: the programs are made for the arrays that the function holds."""
        mine = ("replay", "examples", "_programs", "_capturing", "_outside")
        return {name: value for name, value in vars(self).items() if name not in mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def _start(self) -> None:
        self.captures = 0
        self.replay = _core.Replay(self._call)
        # Captured calls by their descriptions, without elements.
        self.examples: OrderedDict[Hashable, Call] = OrderedDict()
        self._programs: OrderedDict[Hashable, Program] = OrderedDict()  # last used, last
        self._capturing = threading.Lock()
        self._outside: set[int] = set()  # storages that programs which write use from outside

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
        arrays = list(trees.arrays_in((arguments, keywords)))
        program = self._found(key, arrays)
        if program is None:
            with self._capturing:  # of threads that call at once, one captures
                program = self._found(key, arrays) or self._captured(key, arguments, keywords)
        if not keywords and (not program.captured.writes or self._are_apart(arrays)):
            program.serve(self.replay, arguments)
        return program.run(arrays)

    def _found(self, key: Hashable, arrays: Sequence[Any]) -> Program | None:
        program = self._recalled(key)
        if program is not None and program.captured.writes:
            program = self._recalled((key, self._sharing(arrays)))
        return program if program is not None and program.holds() else None

    def _recalled(self, key: Hashable) -> Program | None:
        with suppress(KeyError):  # it may just be dropped by another thread
            self._programs.move_to_end(key)
        return self._programs.get(key)

    def _drop_unused(self) -> None:
        """Those used least recently. The core goes on with the few that it serves by itself."""
        while len(set(map(id, self._programs.values()))) > settings.programs_kept:
            self._programs.popitem(last=False)
        while len(self.examples) > settings.programs_kept:
            self.examples.popitem(last=False)

    def _sharing(self, arrays: Sequence[Any]) -> Hashable:
        """Which arrays share memory, with each other or with what the function has outside."""
        storages = [array._storage_id for array in arrays]
        return tuple((storages.index(s), s in self._outside and s) for s in storages)

    def _are_apart(self, arrays: Sequence[Any]) -> bool:
        """Whether no array shares memory so: programs in the core are for such arrays only."""
        return self._sharing(arrays) == tuple((i, False) for i in range(len(arrays)))

    def _captured(self, key: tuple[Hashable, ...], arguments: tuple, keywords: dict) -> Program:
        self.captures += 1
        captured = capture(self.function, arguments, keywords)
        self.examples.pop(key[0], None)  # the latest comes last
        self.examples[key[0]] = example((arguments, keywords))
        arrays = list(trees.arrays_in((arguments, keywords)))
        program = self._programs[key] = Program(captured, arrays)
        if captured.writes:
            outside = (source.array for source in captured.sources if isinstance(source, Outside))
            self._outside.update(array._storage_id for array in outside)
            self._outside |= captured.entangled
            self._programs[key, self._sharing(arrays)] = program
        self._drop_unused()
        return program

    def save(self, path: str | os.PathLike[str], /, *inputs: Any, **keywords: Any) -> None:
        """Write a file for `heterosis.load`, which needs no Python of the function.

        In it is a program for each kind of arguments that the function was captured for, as it
        predicts, and one for `inputs` and `keywords` if they are given.
        """
        from heterosis.capture import saving

        saving.save(self, path, (inputs, keywords))

    def held(self) -> dict[str, Any]:
        """Arrays that the function uses, as far as they have names."""
        return {}

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
        self._first: list[float] | None = captured.supply.first  # numbers for the first run
        program = captured.program
        arrays = [_array(source, arguments) for source in captured.sources]
        layouts = tuple(map(layout_of, arrays))
        self.plain = self.kept = Differentiable(
            program, program.inputs, layouts, described(program.outputs), whole=True
        )
        if modes.is_recording():
            wanted = tape.wanted_of(arrays)
            self.kept = self.plain.keeping(wanted) if wanted else self.plain
        parameters = [i for i, s in enumerate(captured.sources) if isinstance(s, Outside)]
        if modes.is_recording() or captured.writes or not parameters:
            self.plan = compile_program(self.kept.program, layouts)
        else:
            self.plan = compile_inference(program, layouts, parameters)

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
        if captured.reads or items is None:
            return
        sources = [_described(source) for source in captured.sources]
        writes = [(i, captured.sources.index(source)) for source, i in captured.writes]
        supply = captured.supply.numbers if captured.supply else None
        record = self._record if modes.is_recording() else None
        replay.add(arguments, self.plan, sources, items, writes, supply, record)

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
        operands = self._operands(arguments)
        results = _core.run_plan(self.plan, operands)
        if modes.is_recording():
            self._record(operands, results)
        with modes.switched(recording=False):
            for source, i in captured.writes:
                _core.tell_of_write(_array(source, arguments))
                assign(results[i], out=_array(source, arguments))

        def array(leaf: Computed | Argument | Outside) -> Any:
            computed = isinstance(leaf, Computed)
            return results[leaf.position] if computed else _array(leaf, arguments)

        return trees.replaced(captured.result, array, Computed | Argument | Outside)

    def _record(self, operands: Sequence[Any], results: Sequence[Any]) -> None:
        tape.note(self.plain, self.kept, operands, results)

    def _operands(self, arguments: Sequence[Any]) -> list[Any]:
        """What the program is fed."""
        supply = self.captured.supply
        numbers, self._first = self._first or supply.numbers(), None
        return [
            numbers[source.position]
            if isinstance(source, Supplied)
            else _core.random_key()
            if isinstance(source, RandomKey)
            else _array(source, arguments)
            for source in self.captured.sources
        ]


def _array(source: Source, arguments: Sequence[Any]) -> Any:
    """The array that a source names; None for numbers."""
    if isinstance(source, Argument):
        return arguments[source.position]
    return source.array if isinstance(source, Outside) else None


def example(call: Call) -> Call:
    """A call like `call`, with arrays that have no elements."""

    def stand_in(array: Any) -> Any:
        return _core.unreadable(array._dtype_name, array.shape, "an example has no elements")

    return trees.replaced(call, stand_in)


def _described(source: Source) -> Any:
    if isinstance(source, Argument):
        return source.position
    if isinstance(source, Supplied):
        return (source.position,)
    return source.array if isinstance(source, Outside) else None
