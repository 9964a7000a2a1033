"""Functions with gradients of their own inside captured programs: `backward` is captured too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis import _core
from heterosis.autograd.function import Function, described, gradients_of, recorded, replaced
from heterosis.capture.memory import Cell, window
from heterosis.capture.trace import Trace, active
from heterosis.ir import views
from heterosis.ir.program import INPUT, Call, Value, apply, constant, substituted
from heterosis.ir.types import is_float
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray


def embedded(function: Function, inputs: tuple[Any, ...]) -> Any:
    """The results of `function`, as a part of the program that is being captured."""
    trace = active()
    if not modes.is_recording():
        return recorded(function, inputs)
    if not trace.recorded:
        trace.check_reached(type(function).__name__, inputs)
        return recorded(function, inputs)
    operands = [trace.cell(a).value() for a in inputs if isinstance(a, ndarray)]
    outputs = function.forward(*inputs)
    single = not isinstance(outputs, list | tuple)
    results = [outputs] if single else list(outputs)
    made = [_own(trace, result) for result in results]
    values = tuple(trace.cell(array).value() for array in made)
    known = {id(result): array for result, array in zip(results, made, strict=True)}
    with replaced(function, lambda array: known.get(id(array), array)):
        pull = _pulled(trace, function, inputs, values)
    Call(tuple(operands), values, pull).mark()
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


def _pulled(
    trace: Trace, function: Function, inputs: tuple[Any, ...], results: Sequence[Value]
) -> Any:
    """What to call for what the inputs receive: `backward`, captured for any cotangents."""
    given = [apply(INPUT, (), value.type) for value in results]
    name = type(function).__name__
    before = _writes(trace)
    found = function.backward(*(trace.array(Cell(v)) for v in given))
    found = gradients_of(name, found, list(map(described, inputs)))
    if any(before.get(cell, 0) != writes for cell, writes in _writes(trace).items()):
        raise CaptureError(
            f"{name}.backward writes to an array from outside of itself, and in a hybridized "
            "program it may run at another time, or not at all. Return what it computes, or leave "
            "the function that calls it unhybridized."
        )
    arrays = [g for g, a in zip(found, inputs, strict=True) if isinstance(a, ndarray)]
    gradients = [None if g is None else trace.cell(g).value() for g in arrays]

    def pull(
        operands: tuple[Value, ...],
        outputs: tuple[Value, ...],
        received: tuple[Value | None, ...],
    ) -> list[Value | None]:
        mapping = {
            stand_in: _zeros(stand_in) if cotangent is None else cotangent
            for stand_in, cotangent in zip(given, received, strict=True)
        }
        known = [value for value in gradients if value is not None]
        ready = dict(zip(known, substituted(known, mapping), strict=True))
        return [None if value is None else ready[value] for value in gradients]

    return pull


def _writes(trace: Trace) -> dict[Cell, int]:
    """How often each array from outside of the program was written to."""
    return {cell: cell.writes for cell in trace.cells.values() if cell.source is not None}


def _zeros(like: Value) -> Value:
    number = constant(0.0 if is_float(like.dtype) else 0, like.dtype)
    return views.broadcast(number, like.shape)
