"""How a function hands its values to the body of a parallel loop."""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, Function, Module, Size, Value
from heterosis.backends.native.codegen.target import Target

_SLOTS = 80


class Frame:
    """Named values in a struct on the caller's stack; known sizes travel as literals instead."""

    def __init__(self, **values: Size):
        self._literals = {name: v for name, v in values.items() if isinstance(v, int)}
        self._values = {name: v for name, v in values.items() if isinstance(v, Value)}
        assert len(self._values) <= _SLOTS

    @staticmethod
    def allocate(f: Function) -> Value:
        """Room for any frame; call it at the start of a function."""
        return f.allocate(I64, _SLOTS)

    def save(self, f: Function, memory: Value) -> None:
        for slot, value in enumerate(self._values.values()):
            f.store(value, f.offset(I64, memory, slot), align=8)

    def load(self, f: Function, memory: Value) -> SimpleNamespace:
        loaded = {
            name: f.load(value.type, f.offset(I64, memory, slot), align=8)
            for slot, (name, value) in enumerate(self._values.items())
        }
        return SimpleNamespace(**self._literals, **loaded)

    def body(
        self, module: Module, target: Target, name: str
    ) -> tuple[Function, SimpleNamespace, Value, Value, Value]:
        """Begin the body of a loop that is given a frame like this one: the function, the frame's
        values, where its share begins and ends, and the number of the worker."""
        f = module.function(name, abi.LOOP_BODY_PARAMETERS, attributes=target.function_attributes)
        context, begin, end, worker = f.parameters
        return f, self.load(f, context), begin, end, worker


def share(
    f: Function, call: Value, body: str, context: Value, count: Size, grain: Size, *, alone: bool
) -> None:
    """Run `body` over `[0, count)`: on all threads, or here if this already is one share."""
    if alone:
        f.call(body, [context, f.i64(0), f.i64(count), f.i64(0)])
    else:
        abi.parallel_for(f, call, body, context, count, grain)
