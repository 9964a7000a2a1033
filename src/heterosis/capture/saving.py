"""Captured programs as data: the calls of operations that they are, and the arrays they hold.

A file has the format of safetensors: the arrays from outside, and JSON with a program for each
kind of arguments. A program is a list of calls by operation and parameter names. Arrays have
numbers: the inputs, then those from outside, then the results of all calls. A choice or a loop is a
call as well, with the calls of its branches or its body; there, numbers go on from those around.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from heterosis import _core
from heterosis.capture import plain, trees
from heterosis.capture.attempts import capture
from heterosis.capture.captured import (
    Argument,
    Captured,
    ControlStep,
    OfSizes,
    Outside,
    Region,
    Step,
)
from heterosis.capture.compiled import Compiled
from heterosis.capture.inner import Filler
from heterosis.capture.memory import Cell
from heterosis.capture.open_calls import open_capture
from heterosis.capture.open_sizes import Conditions, kind_of, shapes_of
from heterosis.capture.programs import Call
from heterosis.capture.same_views import place
from heterosis.capture.signatures import bound, parameters_of, type_of
from heterosis.capture.states import Number
from heterosis.io.atomic import written
from heterosis.io.packing import pack
from heterosis.ir.program import CONSTANT, EXTENT, Value
from heterosis.ir.sizes import Size
from heterosis.ir.traced_sizes import TracedFloat, untraced
from heterosis.ir.types import TensorType
from heterosis.ops.record import ATTRIBUTE, KEY, SEQUENCE, attribute_value
from heterosis.runtime import modes
from heterosis.runtime.context import Context
from heterosis.runtime.errors import UninitializedError, UnsupportedError

VERSION = 1
SIZED = 2  # the version of files with open extents
_FOR_INFERENCE = "A saved program is for inference: save the function that predicts."

Facts = dict[str, Any]
Names = Mapping[str, Any]  # arrays that have names


def save(compiled: Compiled[..., Any], path: str | os.PathLike[str], inputs: Call) -> None:
    """Write `packed` to a file, which is replaced whole."""
    data = packed(compiled, inputs)
    with written(path) as file:
        file.write(data)


def packed(
    compiled: Compiled[..., Any],
    inputs: Call,
    parameters: inspect.Signature | None = None,
    name: str | None = None,
    names: Names | None = None,
) -> bytes:
    """The programs that `compiled` was captured for, and one for `inputs` unless there are none."""
    name = name or str(getattr(compiled, "__name__", "program"))
    calls = compiled.calls_with(inputs)
    if not calls:
        raise UninitializedError(
            f"{name} has no program yet: call it once, or give sample inputs, save(path, *inputs)."
        )
    writer = _Writer(name, parameters or parameters_of(compiled), names or compiled.held())
    with modes.switched(recording=False, training=False):
        for call in calls:
            _add(writer, compiled, call)
    return pack(writer.arrays, {"heterosis": writer.facts()})


def _add(writer: _Writer, compiled: Compiled[..., Any], call: Call) -> None:
    """Write a program for a call, which leaves extents open as far as it can and may."""
    if writer.has_open(call):
        return
    found = open_capture(compiled, compiled.dynamic, call, "saved")
    if found is not None:
        writer.add(*found)
        if writer.has_open(call):
            return
    writer.add(capture(compiled.function, *call), call)


class _Writer:
    """The programs so far, and the arrays that they hold."""

    def __init__(self, name: str, parameters: inspect.Signature, names: Names):
        self.name, self.parameters = name, parameters
        self.arrays: dict[str, _core.ndarray] = {}
        self._names = {place(array): own for own, array in names.items()}
        self._programs: dict[str, Facts] = {}
        self._open: list[tuple[Hashable, Conditions]] = []  # kinds of calls, and for which extents

    def facts(self) -> Facts:
        """All that is no array."""
        parameters = [_parameter(p) for p in self.parameters.parameters.values()]
        programs = list(self._programs.values())
        version = SIZED if self._open else VERSION
        return {
            "version": version, "name": self.name, "parameters": parameters, "programs": programs
        }  # fmt: skip

    def has_open(self, call: Call) -> bool:
        """Whether there is a program of open extents for a call."""
        kind, shapes = kind_of(call), shapes_of(list(trees.arrays_in(call)))
        served = (holds.values(shapes) for own, holds in self._open if own == kind)
        return any(values is not None for values in served)

    def add(self, captured: Captured, call: Call) -> None:
        """A program, unless there is one for such arguments."""
        if captured.supply:
            raise UnsupportedError(
                f"{self.name}: Python computes numbers for every run of this program. "
                f"{_FOR_INFERENCE}"
            )
        if captured.printed:
            raise UnsupportedError(
                f"{self.name}: the program prints with npx.print, and a saved program cannot. "
                "Leave npx.print out before you save."
            )
        numbers = {id(array): i for i, array in enumerate(trees.arrays_in(call))}
        given = bound(self.parameters, *call)
        arguments = {name: self._argument(name, tree, numbers) for name, tree in given.items()}
        conditions = captured.conditions
        types = [type_of(array) for array in trees.arrays_in(call)]
        inputs = [typed(conditions.named(i, t) if conditions else t) for i, t in enumerate(types)]
        program = _Program(self, captured, len(numbers))
        facts = {"arguments": arguments, "inputs": inputs, **program.facts()}
        if conditions is not None:
            self._open.append((kind_of(call), conditions))
            sizes = {"values": conditions.opening.values, "conditions": list(conditions.noted)}
            facts["sizes"] = sizes
        self._programs.setdefault(repr((arguments, inputs)), facts)

    def _argument(self, name: str, tree: Any, numbers: Mapping[int, int]) -> Any:
        def leaf(value: Any) -> Any:
            if isinstance(value, _core.ndarray):
                return {"array": numbers[id(value)]}
            raise UnsupportedError(
                f"{self.name}: the argument {name} is, or holds, a {type(value).__name__}. A saved "
                "program takes arrays, numbers, texts and structures of these; make the value a "
                "part of the function instead."
            )

        return plain.encoded(tree, leaf)

    def held(self, array: _core.ndarray) -> str:
        """The name of an array from outside."""
        known = place(array)
        if known not in self._names:
            numbered = (f"array{i}" for i in range(len(self._names) + 1))
            taken = set(self._names.values())
            self._names[known] = next(name for name in numbered if name not in taken)
        self.arrays[self._names[known]] = array
        return self._names[known]


class _Program:
    """One program as facts."""

    def __init__(self, writer: _Writer, captured: Captured, inputs: int):
        self.name, self.captured = writer.name, captured
        outside = dict.fromkeys(s for s in captured.sources if isinstance(s, Outside))
        self.held = [writer.held(source.array) for source in outside]
        self.arrays = _Arrays([*map(Argument, range(inputs)), *outside])

    def facts(self) -> Facts:
        calls = _calls(self.name, self.arrays, self.captured.steps, self.captured.controls)
        result = plain.encoded(self.captured.returned, self._returned)
        return {"held": self.held, "calls": calls, "result": result}

    def _returned(self, leaf: Any) -> dict[str, int]:
        number = self.arrays.number(leaf) if isinstance(leaf, Cell) else None
        if number is None:
            what = "gradient" if isinstance(leaf, Cell) else type(leaf).__name__
            raise UnsupportedError(
                f"{self.name}: the result is, or holds, a {what}. A saved program predicts; "
                "it gives arrays, numbers, texts and structures of these."
            )
        return {"array": number}


class _Arrays:
    """The numbers of arrays, by their cells or sources: of a program; or of a region, which goes on
    from those around it."""

    def __init__(self, given: Iterable[Any], region: Region | None = None, around: Any = None):
        self._region, self._around = region, around
        self._count: int = around._count if around else 0
        self._numbers: dict[Any, int] = {}
        self.add(given)

    def add(self, things: Iterable[Any]) -> None:
        """Number what comes next."""
        for thing in things:
            self._numbers.setdefault(thing, self._count)
            self._count += 1

    def number(self, cell: Cell) -> int | None:
        """The number of an array, if it has one."""
        found = self._numbers.get(cell.source or cell)
        if found is not None or self._region is None:
            return found
        outer = self._region.around.get(cell)
        return None if outer is None else self._around.number(outer)

    def float_of_sizes(self, cell: Cell) -> TracedFloat | None:
        """The float that an array stands for, if it follows from sizes."""
        if isinstance(cell.source, OfSizes):
            return cell.source.number
        outer = self._region.around.get(cell) if self._region else None
        return None if outer is None else self._around.float_of_sizes(outer)


def _calls(
    name: str, arrays: _Arrays, steps: Sequence[Step], controls: Iterable[ControlStep]
) -> list[Facts]:
    """The calls of a program or region; a choice or a loop in place of what it is computed by."""
    found: list[Facts] = []
    at = 0
    for control in controls:
        found += [_Call(name, arrays, step).facts() for step in steps[at : control.first]]
        found.append(_control(name, arrays, control))
        at = control.last
    return found + [_Call(name, arrays, step).facts() for step in steps[at:]]


def _control(name: str, arrays: _Arrays, control: ControlStep) -> Facts:
    def leaf(arrays: _Arrays, value: Any) -> Any:
        if isinstance(value, Cell):
            return {"array": arrays.number(value)}
        if isinstance(value, Filler):
            return {"dict": [["zeros", typed(value.type)]]}
        if isinstance(value, Number):
            return {"dict": [["number", value.number], ["dtype", value.dtype]]}
        return plain.encoded(value, plain.refuse)

    def inside(region: Region) -> Facts:
        own = _Arrays(region.given, region, arrays)
        calls = _calls(name, own, region.steps, region.controls)
        return {"calls": calls, "result": [leaf(own, value) for value in region.result]}

    facts = {
        "control": control.kind,
        "given": {own: [leaf(arrays, v) for v in given] for own, given in control.given.items()},
        "regions": {own: inside(region) for own, region in control.regions.items()},
        "results": [typed(cell.value().type) for cell in control.made],
    }
    arrays.add(control.made)
    return facts


class _Call:
    """One call of an operation as facts."""

    def __init__(self, name: str, arrays: _Arrays, step: Step):
        self.name, self.arrays, self.step = name, arrays, step

    def facts(self) -> Facts:
        step = self.step
        facts: Facts = {"operation": step.call.operation, "arguments": self._arguments()}
        if step.in_place:
            facts["out"] = [self._array(cell)["array"] for cell in step.made]
        else:
            self.arrays.add(step.made)
        return facts | {"results": [typed(cell.value().type) for cell in step.made]}

    def _arguments(self) -> Facts:
        """What the call was given by the names of parameters; keys for random numbers are drawn."""
        step = self.step
        operands = zip(step.call.operands, step.cells, strict=True)
        found: Facts = {}
        for parameter, use, given in step.record.arguments(operands, step.call.attributes):
            if use == ATTRIBUTE:
                found[parameter.name] = self._attribute(parameter.name, given)
            elif use == SEQUENCE:
                found[parameter.name] = [self._operand(*operand) for operand in given]
            elif use != KEY:
                found[parameter.name] = self._operand(*given)
        return found

    def _attribute(self, name: str, given: Any) -> Any:
        def leaf(value: Any) -> Any:
            if isinstance(value, Context):
                return None  # the device is that of the machine where the program runs
            raise self._refused(f"its {name} is, or holds, a {type(value).__name__}")

        return plain.encoded(attribute_value(name, given), leaf)

    def _operand(self, value: Value | None, cell: Cell | None) -> Any:
        if cell is not None:
            return self._array(cell)
        if value is None or value.node.primitive not in (CONSTANT, EXTENT):
            return None
        return plain.encoded(value.node.attributes["value"], plain.refuse)

    def _array(self, cell: Cell) -> Any:
        number = self.arrays.number(cell)
        of_sizes = self.arrays.float_of_sizes(cell) if number is None else None
        if of_sizes is not None:
            return plain.encoded(of_sizes, plain.refuse)
        if number is None:
            raise self._refused("it takes a gradient that the program computes")
        return {"array": number}

    def _refused(self, why: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self.name}: the operation {self.step.call.operation} cannot be saved: {why}. "
            f"{_FOR_INFERENCE}"
        )


def typed(type_: TensorType) -> list[Any]:
    """A type as files have it."""
    return [type_.dtype, [_extent(n) for n in type_.shape]]


def _extent(extent: Any) -> Any:
    size = untraced(extent)
    return {"size": str(size)} if isinstance(size, Size) else size


def _parameter(parameter: inspect.Parameter) -> Facts:
    facts: Facts = {"name": parameter.name, "kind": parameter.kind.name}
    if parameter.default is parameter.empty:
        return facts
    if not plain.is_plain(parameter.default):
        return facts | {"optional": True}
    return facts | {"default": plain.encoded(parameter.default, plain.refuse)}
