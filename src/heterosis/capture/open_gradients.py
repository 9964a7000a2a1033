"""Gradients of programs whose extents are open: derived once for a range of sizes, and compiled
as any program of open extents is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from heterosis import backends
from heterosis.autograd.derivative import OPERAND, Derivative, Differentiable, described
from heterosis.ir.program import INPUT, Program, Value
from heterosis.ir.resizing import at, resized, without_gaps
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import Decisions, function_of

Layouts = Sequence[Strided | None]  # None for an input that lies without gaps
Positions = tuple[int, ...]


class OpenGradients:
    """A program with what its derivatives need, for ranges of its sizes, the latest first."""

    def __init__(self, program: Program, layouts: Layouts, backend: backends.Backend):
        self.program, self.layouts, self.backend = program, layouts, backend
        self._ranges: dict[Positions, list[_Range]] = {}

    def at(
        self, wanted: Positions, values: Mapping[str, int]
    ) -> tuple[Differentiable, backends.Executable]:
        """The program with what its derivative with respect to the wanted inputs needs, where its
        sizes have these values, and what runs it."""
        ranges = self._ranges.setdefault(wanted, [])
        found = next((one for one in ranges if one.holds(**values)[0]), None)
        if found is None:
            found = self._derived(wanted, values)
            ranges.insert(0, found)
        return found.at(values), found.forward.at(values)

    def _derived(self, wanted: Positions, values: Mapping[str, int]) -> _Range:
        """The range that these values are in."""
        decisions = Decisions(values)
        program = resized(self.program, decisions.traced)
        plain = Differentiable(
            program, program.inputs, tuple(without_gaps(program, self.layouts)),
            described(program.outputs), whole=True, backend=self.backend,
        )  # fmt: skip
        keeping = plain.keeping(wanted)
        derivative = keeping.derivative(wanted)
        forward = resized(keeping.program, decisions.extent)
        backward = resized(derivative.program(), decisions.extent)
        holds = function_of(values, [" and ".join(decisions.conditions) or "True"])
        return _Range(holds, wanted, forward, backward, derivative, keeping.kept, self)

    def run(self, program: Program, layouts: Layouts) -> backends.SizedExecutable:
        """What runs a program at any values of its sizes."""
        return self.backend.compile_sized(program, layouts)


@dataclass
class _Range:
    """A program and its derivative, for all sizes that `holds` says; `derivative` is the one that
    was found for some of them."""

    holds: Callable[..., tuple[Any, ...]]
    wanted: Positions
    keeping: Program
    backward: Program
    derivative: Derivative
    kept: int
    of: OpenGradients

    @cached_property
    def forward(self) -> backends.SizedExecutable:
        """What runs the program, and gives what the derivative needs."""
        return self.of.run(self.keeping, self.of.layouts)

    @cached_property
    def _layouts(self) -> list[Strided | None]:
        """Of the inputs of the derivative."""
        sources = self.derivative.sources
        return [self.of.layouts[i] if kind == OPERAND else None for kind, i in sources]

    @cached_property
    def _pulled(self) -> backends.SizedExecutable:
        """What runs the derivative."""
        return self.of.run(self.backward, self._layouts)

    def at(self, values: Mapping[str, int]) -> Differentiable:
        """The program at one size, whose derivative is compiled."""
        found = self._differentiable(resized(self.keeping, at(values)), self.of.layouts)
        found.kept, found.whole = self.kept, True
        backward = self._differentiable(resized(self.backward, at(values)), self._layouts)
        own, program = self.derivative, backward.program
        assert program.calls is not None, "it is differentiable"
        derivative = Derivative(
            own.of, own.sources, program.inputs, program.outputs, program.calls, own.flow,
            self.of.backend,
        )  # fmt: skip
        pulled: list[Callable[..., Any]] = []  # compiled when a gradient is asked for

        def run(operands: Sequence[Any]) -> tuple[Any, ...]:
            if not pulled:
                pulled.append(self._pulled.at(values).run)
            results: tuple[Any, ...] = pulled[0](operands)
            return results

        places = map(_strides, program.inputs, backward.layouts)
        derivative.serve(tuple(places), backward, run)
        found.serve(self.wanted, derivative)
        return found

    def _differentiable(self, program: Program, layouts: Layouts) -> Differentiable:
        found = without_gaps(program, layouts)
        results = described(program.outputs)
        backend = self.of.backend
        return Differentiable(program, program.inputs, tuple(found), results, backend=backend)


def _strides(value: Value, layout: Strided | None) -> tuple[int, ...] | None:
    """Those of an array that is handed in for an input; a number has none."""
    return layout.strides if layout is not None and value.node.primitive is INPUT else None
