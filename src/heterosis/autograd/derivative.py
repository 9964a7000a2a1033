"""The derivative of a program: another program, compiled on its first use.

It takes the cotangents of the results, and those operands and results of the program itself that
the mathematics asks for; nothing else is kept between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from heterosis import _core
from heterosis.autograd.conditional import Condition, Conditional, Received, in_any_case
from heterosis.autograd.reverse import cotangents, reached
from heterosis.backends import Backend
from heterosis.ir.calls import Call, collected, moved, needed
from heterosis.ir.primitives.families import Elementwise, Leaf, View
from heterosis.ir.program import INPUT, NUMBER, Program, Value, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType, is_float
from heterosis.ops import eager
from heterosis.ops.rules import zeros
from heterosis.passes.fold import FOLD
from heterosis.passes.rewrite import rewritten
from heterosis.passes.simplify import SIMPLIFY
from heterosis.runtime import modes

Run = Callable[[Sequence[Any]], tuple[Any, ...]]  # the results for operands

OPERAND, RESULT, COTANGENT, TRUTH = "operand", "result", "cotangent", "truth"


@dataclass(frozen=True)
class Given:
    """Which results of a program receive nothing, and which do under a condition."""

    missing: frozenset[int] = frozenset()
    doubtful: frozenset[int] = frozenset()


ALL = Given()  # all receive something


@dataclass(eq=False)
class Differentiable:
    """A program with the layouts of its inputs; None stands for an operand that was None.

    The last `kept` of its outputs are no results of the program: derivatives need them.
    """

    program: Program
    inputs: tuple[Value | None, ...]
    layouts: tuple[Strided | None, ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]  # element types and shapes, as written
    kept: int = 0
    whole: bool = False  # a captured program: its derivative reads results where it can
    backend: Backend | None = None  # what compiles its derivatives as one, as it was itself
    _derivatives: dict[tuple[Any, ...], Derivative] = field(default_factory=dict, init=False)
    _reached: dict[tuple[int, ...], set[int]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Where gradients can flow, found once: every call that is recorded asks for it."""
        assert self.program.calls is not None, "a program that was rewritten has lost its gradients"
        inputs = enumerate(self.inputs)
        self.float_inputs = [i for i, v in inputs if v is not None and is_float(v.dtype)]
        self.float_results = [i for i, (dtype, _) in enumerate(self.results) if is_float(dtype)]

    def derivative(self, wanted: tuple[int, ...], given: Given = ALL) -> Derivative:
        """With respect to the inputs at these positions, of the results that receive something."""
        key = wanted, given.missing, given.doubtful
        found = self._derivatives.get(key)
        if found is None:
            found = self._derivatives[key] = _differentiated(self, wanted, given)
        return found

    def serve(self, wanted: tuple[int, ...], derivative: Derivative) -> None:
        """Take a derivative of all results that is known already."""
        self._derivatives[wanted, ALL.missing, ALL.doubtful] = derivative

    def reached(self, wanted: tuple[int, ...]) -> set[int]:
        """The results that are computed from the inputs at these positions, in floats."""
        found = self._reached.get(wanted)
        if found is None:
            found = self._reached[wanted] = _reached(self, wanted)
        return found

    def keeping(self, wanted: tuple[int, ...]) -> Differentiable:
        """The program with what its derivative would else have to compute again as outputs."""
        _, found = _cotangents(self, wanted, {}, ALL)
        assert self.backend is not None, "operations keep what they are given and give"
        kept = _worth_keeping(self.program, found.outputs, self.backend)
        outputs = (*self.program.outputs, *kept)
        program = replace(self.program, outputs=outputs)
        return replace(self, program=program, results=described(outputs), kept=len(kept))


@dataclass(frozen=True)
class Flow:
    """Which of the wanted operands receive anything; the others receive zeros."""

    idle: frozenset[int]  # to which no gradient flows
    truths: Mapping[int, int]  # outputs that say of others whether a gradient has flown there

    @cached_property
    def is_certain(self) -> bool:
        """Whether all receive something in any case."""
        return not self.idle and not self.truths


@dataclass(eq=False)
class Derivative:
    """What the wanted operands of the program `of` receive. `sources` says what to call it with, in
    order."""

    of: str
    sources: tuple[tuple[str, int], ...]  # (OPERAND, RESULT, COTANGENT or TRUTH, position)
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    calls: tuple[Call, ...]  # that some of it was made by
    flow: Flow
    backend: Backend | None
    _compiled: dict[tuple[Any, ...], tuple[Differentiable, Run]] = field(default_factory=dict)

    def run(self, arguments: Sequence[Any]) -> tuple[Differentiable, tuple[Any, ...]]:
        """The program for arguments that lie as these do, and its results."""
        if modes.is_capturing():
            program = self.program()
            (inline,) = _inline
            layouts = tuple(map(layout_of, arguments))
            results = described(self.outputs)
            return Differentiable(program, self.inputs, layouts, results), inline(
                program, arguments
            )
        differentiable, run = self._found(arguments)
        return differentiable, run(arguments)

    @cached_property
    def cotangents(self) -> list[tuple[int, int]]:
        """Which of its arguments are what a result of `of` receives, and of which result."""
        return [(at, i) for at, (kind, i) in enumerate(self.sources) if kind == COTANGENT]

    @cached_property
    def truths(self) -> list[tuple[int, int]]:
        """Which of its arguments say whether a result of `of` receives anything, and which one."""
        return [(at, i) for at, (kind, i) in enumerate(self.sources) if kind == TRUTH]

    def received(self, found: Sequence[Any]) -> tuple[Sequence[Received | None], Collection[int]]:
        """What the wanted operands receive, of what it has given, None where a branch or a loop has
        not come to use them; and the numbers of those that no gradient can flow to. While a program
        is captured, the former may depend on what is not known yet."""
        flow = self.flow
        if not flow.truths:
            return found, flow.idle
        gradients = list(found[: min(flow.truths.values())])  # truths come behind them
        for i, at in flow.truths.items():
            if modes.is_capturing():
                gradients[i] = Conditional(gradients[i], Condition(found[at]))
            elif not found[at].item():
                gradients[i] = None
        return gradients, flow.idle

    def serve(
        self, strides: tuple[tuple[int, ...] | None, ...], of: Differentiable, run: Run
    ) -> None:
        """Take what runs it for arguments with these strides, None for a number."""
        self._compiled[strides] = of, run

    def program(self) -> Program:
        """What it computes."""
        calls = needed(self.calls, self.outputs)
        return Program(self.inputs, self.outputs, f"{self.of} (backward)", calls)

    def _found(self, arguments: Sequence[Any]) -> tuple[Differentiable, Run]:
        """The program for arguments that lie as these do, and how to run it."""
        key = _core.strides_of(arguments)
        found = self._compiled.get(key)
        if found is None:
            program = self.program()
            layouts = tuple(map(layout_of, arguments))
            results = described(self.outputs)
            of = Differentiable(program, self.inputs, layouts, results, backend=self.backend)
            found = self._compiled[key] = of, self._compile(program, layouts)
        return found

    def _compile(self, program: Program, layouts: Sequence[Strided]) -> Run:
        if self.backend is not None:
            return self.backend.compile(program, layouts).run
        clean = rewritten(program, SIMPLIFY + FOLD)  # parts that were put into zeros, then added
        plan = eager.plan(
            clean, layouts, None, views=True, freely=False, device=_core.current_device()
        )
        return partial(_core.run_plan, plan)


def described(values: Sequence[Value]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Element types and shapes."""
    return tuple((value.dtype, value.shape) for value in values)


_inline: list[Callable[[Program, Sequence[Any]], tuple[Any, ...]]] = []


def set_inline(inline: Callable[[Program, Sequence[Any]], tuple[Any, ...]]) -> None:
    """`inline(program, arguments)` makes a program part of the one that is being captured."""
    _inline[:] = [inline]


def snapshot(array: Any) -> Any:
    """While a program is captured: what `array` holds now, whatever is written to it later."""
    value = apply(INPUT, (), TensorType(array.shape, array._dtype_name))
    (inline,) = _inline
    return inline(Program((value,), (value,), "snapshot", ()), (array,))[0]


def layout_of(argument: Any) -> Strided:
    """Where the elements of an operand stand; numbers stand nowhere."""
    if isinstance(argument, _core.ndarray):
        return Strided(argument.shape, argument._element_strides)
    return Strided((), ())


def _differentiated(of: Differentiable, wanted: tuple[int, ...], receiving: Given) -> Derivative:
    outputs = of.program.outputs
    held = {v: apply(INPUT, (), v.type) for v in outputs if v.node.primitive not in (INPUT, NUMBER)}
    with collected() as made:
        given, found = _cotangents(of, wanted, held, receiving)
    results, calls = found.outputs, (*_calls(of), *made)
    if of.whole:
        results, calls = moved(results, calls, held)
    origins = {v: (OPERAND, i) for i, v in enumerate(of.inputs) if v is not None}
    origins |= {held[v]: (RESULT, i) for i, v in enumerate(outputs) if v in held}
    for i, one in enumerate(given):
        if isinstance(one, Conditional):
            origins |= {one.value: (COTANGENT, i), one.condition.truth: (TRUTH, i)}
        elif one is not None:
            origins[one] = (COTANGENT, i)
    used = _leaves(results)
    inputs = tuple(v for v in origins if v in used)
    return Derivative(
        of.program.name,
        tuple(origins[v] for v in inputs),
        inputs,
        results,
        calls,
        found.flow,
        of.backend,
    )


def _calls(of: Differentiable) -> tuple[Call, ...]:
    return of.program.calls or ()


def _reached(of: Differentiable, wanted: tuple[int, ...]) -> set[int]:
    outputs = of.program.outputs
    sources = [value for i in wanted if (value := of.inputs[i]) is not None]
    found = reached(outputs, sources, _calls(of))
    return {i for i in of.float_results if outputs[i] in found}


def _cotangents(
    of: Differentiable,
    wanted: tuple[int, ...],
    held: Mapping[Value, Value],
    receiving: Given,
) -> tuple[list[Received | None], _Found]:
    """Inputs for what the results receive, and what the wanted inputs receive."""
    outputs = of.program.outputs[: len(of.program.outputs) - of.kept]
    given: list[Received | None] = [
        apply(INPUT, (), v.type) if is_float(v.dtype) and i not in receiving.missing else None
        for i, v in enumerate(outputs)
    ]
    for i in receiving.doubtful:
        given[i] = Conditional(given[i], Condition(apply(INPUT, (), TensorType((), "bool"))))
    targets = [value for i in wanted if (value := of.inputs[i]) is not None]
    return given, _Found(targets, cotangents(outputs, given, targets, _calls(of), held))


class _Found:
    """What `targets` receive, as results of a program. What no gradient flows to receives zeros: a
    variable's old gradient must not stay."""

    def __init__(self, targets: Sequence[Value], found: Sequence[Received | None]):
        results = [
            zeros(target) if received is None else in_any_case(received)
            for target, received in zip(targets, found, strict=True)
        ]
        positions: dict[Value, int] = {}
        truths = {}
        for i, received in enumerate(found):
            if isinstance(received, Conditional):
                truth = received.condition.as_truth()
                truths[i] = len(results) + positions.setdefault(truth, len(positions))
        self.outputs = (*results, *positions)
        idle = frozenset(i for i, received in enumerate(found) if received is None)
        self.flow = Flow(idle, truths)


def _worth_keeping(program: Program, results: Sequence[Value], backend: Backend) -> list[Value]:
    """Values of the program that `results` use and that are dear to compute again."""
    forward = {value for node in program.nodes() for value in node.outputs}
    kept: dict[Value, None] = {}
    seen: set[Value] = set()
    stack = list(results)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in forward and _is_dear(value, backend):
            kept[value] = None
        else:
            stack.extend(value.node.inputs)
    return [value for value in kept if value not in program.outputs]


def _is_dear(value: Value, backend: Backend) -> bool:
    primitive = value.node.primitive
    if isinstance(primitive, Elementwise):
        return backend.is_dear(primitive)
    return not isinstance(primitive, Leaf | View)


def _leaves(outputs: tuple[Value, ...]) -> set[Value]:
    nodes = Program((), outputs).nodes()
    return {Value(node) for node in nodes if node.primitive in (INPUT, NUMBER)}
