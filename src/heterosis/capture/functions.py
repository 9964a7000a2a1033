"""Functions with gradients of their own inside captured programs: `backward` is captured too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from heterosis import _core
from heterosis.autograd.function import Function, described, gradients_of, recorded, replaced
from heterosis.capture.active import active
from heterosis.capture.memory import Cell, window
from heterosis.capture.trace import Trace
from heterosis.ir import views
from heterosis.ir.calls import Call, Pullback, collected, inputs_besides, moved, note
from heterosis.ir.primitives.families import Leaf
from heterosis.ir.program import INPUT, NUMBER, Program, Value, apply, reached
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray


def embedded(function: Function, inputs: tuple[Any, ...]) -> Any:
    """The results of `function`, as a part of the program that is being captured."""
    trace = active()
    if not modes.is_recording():
        return recorded(function, inputs)
    if not trace.recorded:
        trace.check_reached(type(function).__name__, inputs)
        return recorded(function, inputs)
    operands = tuple(trace.cell(a).value() for a in inputs if isinstance(a, ndarray))
    outputs = function.forward(*inputs)
    single = not isinstance(outputs, list | tuple)
    results = [outputs] if single else list(outputs)
    made = [_own(trace, result) for result in results]
    values = tuple(trace.cell(array).value() for array in made)
    known = {id(result): array for result, array in zip(results, made, strict=True)}
    with replaced(function, lambda array: known.get(id(array), array)):
        pullback = _pullback(trace, function, inputs, operands, values)
    name, line = type(function).__name__, user_line()
    held = tuple(inputs_besides(values, operands))
    note(Call(name, operands, (), values, held, trace.scope, line, pullback=pullback))
    return made[0] if single else type(outputs)(made)


def _own(trace: Trace, result: Any) -> Any:
    """An array with the same elements, and a value that can have a gradient of its own.

    What shares its memory with an array from before still does.
    """
    cell = trace.cell(result)
    value = cell.value()
    same = apply(views.RESHAPE, (value,), value.type)
    shared = cell.base is not None or cell.source is not None
    return trace.array((window(same, {value: cell}) if shared else None) or Cell(same))


def _pullback(
    trace: Trace,
    function: Function,
    inputs: tuple[Any, ...],
    operands: Sequence[Value],
    results: Sequence[Value],
) -> Pullback:
    """`backward`, captured for any cotangents of `results`."""
    given = tuple(apply(INPUT, (), value.type) for value in results)
    name = type(function).__name__
    before, printed = _writes(trace), len(trace.prints.items)
    with collected() as calls:
        found = function.backward(*(trace.array(Cell(v)) for v in given))
        found = gradients_of(name, found, list(map(described, inputs)))
        arrays = [g for g, a in zip(found, inputs, strict=True) if isinstance(a, ndarray)]
        gradients = {i: trace.cell(g).value() for i, g in enumerate(arrays) if g is not None}
    if any(before.get(cell, 0) != writes for cell, writes in _writes(trace).items()):
        raise CaptureError(
            f"{name}.backward writes to an array from outside of itself, and in a hybridized "
            "program it may run at another time, or not at all. Return what it computes, or leave "
            "the function that calls it unhybridized."
        )
    if len(trace.prints.items) > printed:
        raise CaptureError(
            f"{name}.backward prints with npx.print, and in a hybridized program it may run at "
            "another time, or not at all. Leave the function that calls it unhybridized."
        )
    saved = _saved(gradients.values(), (*operands, *results), given)
    inside = {value: apply(INPUT, (), value.type) for value in saved}
    outputs, moved_calls = moved(tuple(gradients.values()), calls, inside)
    program = Program((*inside.values(), *given), outputs, f"{name}.backward", moved_calls)
    return Pullback(program, saved, tuple(gradients))


def _saved(
    gradients: Iterable[Value], forward: Iterable[Value], given: Collection[Value]
) -> tuple[Value, ...]:
    """What `gradients` need of what `forward` is made of, and of the program's other inputs."""
    nodes = set(reached(forward))
    saved: dict[Value, None] = {}
    waiting = list(gradients)
    seen: set[Value] = set(given)
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        primitive = value.node.primitive
        is_number = isinstance(primitive, Leaf) and primitive not in (INPUT, NUMBER)
        if not is_number and (value.node in nodes or isinstance(primitive, Leaf)):
            saved[value] = None
        else:
            waiting.extend(value.node.inputs)
    return tuple(saved)


def _writes(trace: Trace) -> dict[Cell, int]:
    """How often each array from outside of the program was written to."""
    return {cell: cell.writes for cell in trace.cells.values() if cell.source is not None}
