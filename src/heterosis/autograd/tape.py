"""The record of what was computed: which operation made an array, and from which arrays.

Every array that a gradient flows through carries an `Entry`, every variable a `Leaf`. A node holds
what its derivative needs and nothing else, so that memory goes as soon as `backward` is done.
"""

from __future__ import annotations

import heapq
import itertools
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from heterosis import _core
from heterosis.autograd.conditional import (
    Condition,
    Conditional,
    Received,
    apart,
    total,
    under,
    value_of,
)
from heterosis.autograd.derivative import (
    ALL,
    COTANGENT,
    OPERAND,
    RESULT,
    TRUTH,
    Derivative,
    Differentiable,
    Given,
    described,
    snapshot,
)
from heterosis.ir.program import Program, Value
from heterosis.ir.types import is_float
from heterosis.ops.array import creation
from heterosis.ops.eager import fitting
from heterosis.ops.math import elementwise as e
from heterosis.ops.math.cast import assign, astype
from heterosis.ops.record import Record, as_users_call
from heterosis.runtime import modes
from heterosis.runtime.context import context_of_device
from heterosis.runtime.errors import ArgumentError, AutogradError
from heterosis.runtime.placing import beside

ndarray = _core.ndarray
Entry = _core.Entry
Operands = tuple[Any, ...]  # arrays, numbers and None
ResultType = tuple[str, tuple[int, ...]]  # element type and shape

full = as_users_call(creation.full)
_add, _assign, _astype = as_users_call(e.add), as_users_call(assign), as_users_call(astype)

_numbers = itertools.count()
_MOST_PROGRAMS = 8192  # then all are dropped: shapes that vary without end
_programs: dict[int, Differentiable] = {}  # by the serial number of the plan that ran


class Leaf:
    """A variable: where its gradient goes, and whether that is written, added or dropped.

    `turn` says when `backward` has last found what it receives: after how many other calls.
    """

    __slots__ = ("grad", "request", "turn")

    def __init__(self, grad: Any, request: str):
        self.grad, self.request, self.turn = grad, request, 0

    def receive(self, given: list[Received]) -> None:
        """Store what `backward` has found, the only element of a list, without a copy if nobody
        else has it; where that is nothing, the old gradient stays."""
        if self.request != "add" and _core.hand_over(given, self.grad):
            return
        (found,) = given
        if isinstance(found, Conditional):
            self._receive_under(found.condition, found.value)
        elif self.request == "add":
            _add(self.grad, found, out=self.grad)
        else:
            _assign(found, out=self.grad)

    def _receive_under(self, condition: Condition, value: Any) -> None:
        """The same of what is received where a condition holds: a program is captured."""
        now = _add(self.grad, value) if self.request == "add" else value
        if now._dtype_name != self.grad._dtype_name:
            now = _astype(now, self.grad._dtype_name)
        version = self.grad._version
        _assign(condition.chosen(now, self.grad), out=self.grad)
        _, _, note_written, _ = _capture
        note_written(self.grad, version, condition)


Source = Leaf | Entry


class Node:
    """One call. `pull` gives what its sources receive for what its results receive."""

    __slots__ = ("__weakref__", "name", "number", "results", "sources")

    def __init__(
        self, name: str, sources: tuple[Source | None, ...], results: tuple[ResultType, ...]
    ):
        self.name, self.sources, self.results = name, sources, results
        self.number = next(_numbers)

    def pull(
        self, received: Sequence[Received | None], again: bool
    ) -> Iterable[tuple[Source | None, Received]]:
        """Pairs of a source and what it receives; of None, what goes nowhere."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop what is held for `pull`."""
        self.sources = ()


class ProgramNode(Node):
    """A call of an operation, or of a derivative."""

    __slots__ = ("context", "derivative", "held", "of", "others")

    def __init__(
        self,
        of: Differentiable,
        derivative: Derivative,
        sources: tuple[Source | None, ...],
        operands: Sequence[Any],
        results: Sequence[Any],
        written: Any,
    ):
        super().__init__(derivative.of, sources, of.results)
        self.of = of
        self.derivative: Derivative | None = derivative
        self.others = [None if isinstance(o, ndarray) else o for o in operands]  # the numbers
        # Where gradients go that have to go elsewhere: the call copied to another context.
        self.context = None
        for operand in operands:
            if isinstance(operand, ndarray):
                if results and operand._device != results[0]._device:
                    self.context = context_of_device(operand._device)
                break
        self.held = _held(
            [
                None if kind == COTANGENT else operands[i] if kind == OPERAND else results[i]
                for kind, i in derivative.sources
            ]
        )
        if written is not None:
            self.held = [
                _gone(written) if kind == OPERAND and operands[i] is written else held
                for (kind, i), held in zip(derivative.sources, self.held, strict=True)
            ]

    def pull(
        self, received: Sequence[Received | None], again: bool
    ) -> Iterable[tuple[Source | None, Received]]:
        if self.derivative is None:
            raise AutogradError(
                f"backward: the record of {self.name} is gone, since backward has been here "
                "before. Keep it with backward(retain_graph=True)."
            )
        return self._pulled(self.of, self.derivative, self.held, received, again)

    def _pulled(
        self,
        of: Differentiable,
        derivative: Derivative,
        held: Sequence[Any],
        received: Sequence[Received | None],
        again: bool,
    ) -> Iterable[tuple[Source | None, Received]]:
        given = _given(derivative, received)
        plain: Sequence[Any] = received
        if given is not ALL:
            plain = list(map(value_of, received))
            known = dict(zip(derivative.sources, held, strict=True))
            wanted = tuple(i for i, source in enumerate(self.sources) if source is not None)
            derivative = of.derivative(wanted, given)
            held = [None if source[0] == TRUTH else known[source] for source in derivative.sources]
        arguments = _core.unchanged(self.name, held)
        for at, i in derivative.cotangents:
            arguments[at] = plain[i]
        for at, i in derivative.truths:
            arguments[at] = _truth_of(received[i])
        differentiable, found = derivative.run(arguments)
        if again:
            self._record(derivative, differentiable, arguments, found)
        if self.context is not None:
            found = tuple(gradient.as_in_context(self.context) for gradient in found)
        targets = self._targets(received)
        if derivative.flow.is_certain:
            return zip(targets, found, strict=True)
        gradients, idle = derivative.received(found)
        return [
            (source, gradient)
            for i, (source, gradient) in enumerate(zip(targets, gradients, strict=True))
            # Zeros are for variables. The call that made another array may be gone by now.
            if gradient is not None and (i not in idle or isinstance(source, Leaf))
        ]

    def _targets(self, received: Sequence[Received | None]) -> list[Source | None]:
        """Where the gradients of the wanted operands go from the results that have received one;
        None for nowhere."""
        return [source for source in self.sources if source is not None]

    def _record(
        self,
        derivative: Derivative,
        of: Differentiable,
        arguments: Sequence[Any],
        found: tuple[Any, ...],
    ) -> None:
        """Let gradients flow through the gradient."""
        sources = tuple(
            source_of(argument)
            if kind in (COTANGENT, TRUTH)
            else self.sources[i]
            if kind == OPERAND
            else Entry(self, i, 0)
            for (kind, i), argument in zip(derivative.sources, arguments, strict=True)
        )
        _note(of, sources, arguments, found)

    def release(self) -> None:
        super().release()
        self.derivative, self.held, self.others = None, [], []


class WholeNode(ProgramNode):
    """A run of a captured program: `plain`, with what derivatives need as further results. What it
    keeps serves its gradient; gradients of gradients compute it again, as a function of operands.

    `goals` says to which of the operands `wanted` gradients flow from a result. Derivatives take
    the operands from `read`, with copies of those that are written to afterwards.
    """

    __slots__ = ("everything", "goals", "plain", "wanted")

    def __init__(
        self,
        plain: Differentiable,
        of: Differentiable,
        wanted: tuple[int, ...],
        operands: Sequence[Any],
        results: Sequence[Any],
        read: Sequence[Any],
        goals: Mapping[int, Collection[int]],
    ):
        sources = tuple(source_of(o) if i in wanted else None for i, o in enumerate(operands))
        super().__init__(of, of.derivative(wanted), sources, read, results, None)
        self.plain, self.wanted, self.goals = plain, wanted, goals
        self.everything = {(OPERAND, i): held for i, held in enumerate(_held(read))}
        own = results[: len(plain.program.outputs)]
        self.everything |= {(RESULT, i): held for i, held in enumerate(_held(own))}

    def pull(
        self, received: Sequence[Received | None], again: bool
    ) -> Iterable[tuple[Source | None, Received]]:
        if not again or self.derivative is None:
            return super().pull(received, again)
        derivative = self.plain.derivative(self.wanted)
        held = tuple(self.everything.get(source) for source in derivative.sources)
        return self._pulled(self.plain, derivative, held, received, again)

    def _targets(self, received: Sequence[Received | None]) -> list[Source | None]:
        reached = [goal for i, goal in self.goals.items() if received[i] is not None]
        sources = ((i, source) for i, source in enumerate(self.sources) if source is not None)
        return [source if any(i in goal for goal in reached) else None for i, source in sources]

    def release(self) -> None:
        super().release()
        self.everything = {}


def _given(derivative: Derivative, received: Sequence[Received | None]) -> Given:
    """How those results receive something that the derivative of all results asks of."""
    for _, i in derivative.cotangents:
        if received[i] is None or isinstance(received[i], Conditional):
            break
    else:
        return ALL
    asked = [i for _, i in derivative.cotangents]
    missing = (i for i in asked if received[i] is None)
    doubtful = (i for i in asked if isinstance(received[i], Conditional))
    return Given(frozenset(missing), frozenset(doubtful))


def _truth_of(received: Received | None) -> Any:
    """Whether a result receives something, as an array."""
    assert isinstance(received, Conditional), "asked for of such results only"
    return received.condition.as_truth()


def _held(values: Sequence[Any]) -> Sequence[Any]:
    """Arrays as they are now, each without its place in the record, and with its version; other
    values as they are."""
    if modes.is_capturing():
        return [snapshot(value) if isinstance(value, ndarray) else value for value in values]
    return _core.as_now(values)


def _gone(array: Any) -> Any:
    """What the call that has just written to an array was given in it: no longer there."""
    return array._alias(), array._version - 1


def source_of(value: Any) -> Source | None:
    """Where a gradient that reaches `value` goes on to."""
    return value._autograd if isinstance(value, ndarray) else None


def renewed(source: Source | None, array: Any) -> Source | None:
    """A place in the record for an array whose writes have been counted, and not been done."""
    if not isinstance(source, Entry):
        return source
    return Entry(source.node, source.index, array._version)


# -- recording ------------------------------------------------------------------------------------


def record_call(
    record: Record, serial: int, operands: Operands, attributes: tuple[Any, ...], result: Any
) -> None:
    """Called by the core after an operation on arrays that gradients flow through."""
    of = _programs.get(serial)
    if of is None:
        if len(_programs) >= _MOST_PROGRAMS:
            _programs.clear()
        results = result if isinstance(result, tuple) else (result,)
        of = _programs[serial] = traced(record, operands, attributes, results)
    record_run(record.name, of, operands, result)


def record_run(name: str, of: Differentiable, operands: Operands, result: Any) -> None:
    """Note that the operation of the program `of` has been called."""
    results = result if isinstance(result, tuple) else (result,)
    sources, written = _core.followed(name, operands, result), None
    for operand in operands:
        if operand is result:
            written = result
    if not _note(of, sources, operands, results, written):
        for array in results:
            array._autograd = None
    elif written is not None:
        _tell_of_write(written)


def check_operand(name: str, operand: Any, source: Source | None, writes: bool = False) -> None:
    """Raise if gradients cannot follow to what an operand holds; with one of the `writes` to it
    that are counted being the call's own. Called by the core for those of which it is in doubt."""
    if source is None:
        if isinstance(operand, ndarray) and operand._is_followed and is_lost(operand):
            raise changed(name, operand)
    elif type(source) is Entry and operand._version - writes != source.version:
        raise changed(name, operand)


# Recorded calls that have written into an array, by its storage, and how often `backward` had run.
_writers: dict[int, tuple[weakref.ref[Node], int]] = {}
_sweeps = itertools.count(1)
_swept = 0


def _tell_of_write(array: Any) -> None:
    """Let other arrays that share the memory of one that a recorded call has written to know."""
    array._is_followed = True
    _writers[array._storage_id] = weakref.ref(array._autograd.node), _swept


def is_lost(array: Any) -> bool:
    """Whether an array, which is not on the tape, holds what a recorded call has written through
    another one, and `backward` has not been there."""
    found = _writers.get(array._storage_id)
    if found is None or array._is_detached or not is_float(array._dtype_name):
        return False
    node, swept = found[0](), found[1]
    return swept == _swept if node is None else bool(node.sources)


def sweeps() -> int:
    """How often `backward` has run."""
    return _swept


def changed(name: str, array: Any) -> AutogradError:
    """The error for an operand that is not what it was when it was computed."""
    return AutogradError(
        f"{name}: the memory of an array of shape {array.shape} was written to through another "
        "array, or unrecorded, since it was computed, and gradients cannot follow. Write into a "
        "copy instead."
    )


def reached_from(source: Source | None, stops: Collection[Any]) -> set[Any]:
    """Those of `stops`, by `key_of`, that a gradient at `source` goes to; none where `backward` has
    been, and the record is gone."""
    found: set[Any] = set()
    seen: set[Any] = set()
    waiting = [source]
    while waiting:
        source = waiting.pop()
        if source is None or (key := key_of(source)) in seen:
            continue
        seen.add(key)
        if key in stops:
            found.add(key)
        elif isinstance(source, Entry):
            if not source.node.sources:
                return set()
            waiting.extend(source.node.sources)
    return found


def wanted_of(operands: Sequence[Any]) -> tuple[int, ...]:
    """Positions of the operands that gradients flow to."""
    return tuple(
        i
        for i, operand in enumerate(operands)
        if source_of(operand) is not None and is_float(operand._dtype_name)
    )


def _note(
    of: Differentiable,
    sources: tuple[Source | None, ...],
    operands: Sequence[Any],
    results: Sequence[Any],
    written: Any = None,
) -> bool:
    """Make a node; False if no gradient flows."""
    wanted = tuple([i for i in of.float_inputs if sources[i] is not None])
    if not wanted:
        return False
    if len(wanted) < len(sources) - sources.count(None):
        sources = tuple(s if i in wanted else None for i, s in enumerate(sources))
    node = ProgramNode(of, of.derivative(wanted), sources, operands, results, written)
    _core.attach(node, results, of.float_results)
    return True


def traced(
    record: Record, operands: Operands, attributes: tuple[Any, ...], results: Sequence[Any]
) -> Differentiable:
    """The program of a call, on operands that are arrays, numbers, or values of a program."""
    given = [_described(operand) for operand in operands]
    inputs, layouts, program = record.program(given, attributes)
    types = tuple((r._dtype_name, r.shape) for r in results)
    return Differentiable(_written_as(types, program), inputs, layouts, types)


def _written_as(types: Sequence[ResultType], program: Program) -> Program:
    """The program with its results as the arrays have them that a call was given to write into."""
    if types == described(program.outputs):
        return program
    pairs = zip(program.outputs, types, strict=True)
    outputs = (fitting(program.name, v, (*type_, ()), freely=True) for v, type_ in pairs)
    return replace(program, outputs=tuple(outputs))


def traced_once(
    known: dict[str, Differentiable],
    record: Record,
    operands: Operands,
    attributes: tuple[Any, ...],
    results: Sequence[Any],
) -> Differentiable:
    """`traced`, once for all calls that are alike: they share their derivatives, too."""
    types = tuple((r._dtype_name, r.shape) for r in results)
    key = tuple(map(_described, operands)), attributes, types
    if not _is_written_fully(key):
        return traced(record, operands, attributes, results)
    text = f"{record.name} {key}"
    if text not in known:
        known[text] = traced(record, operands, attributes, results)
    return known[text]


def _is_written_fully(value: Any) -> bool:
    """Whether what is written of `value` says all that it is; of a traced size it does not."""
    if type(value) is tuple:
        return all(map(_is_written_fully, value))
    return value is None or type(value) in (bool, int, float, str)


def _described(operand: Any) -> Any:
    """An operand as the core describes it to `Record.plan`."""
    if isinstance(operand, ndarray):
        return operand._dtype_name, operand.shape, operand._element_strides
    if isinstance(operand, Value):
        return operand.dtype
    if operand is None:
        return None
    return {bool: "bool", int: "int64", float: "float64"}[type(operand)]


_capture: list[Callable[..., None]] = []


def set_capture(
    check_marked: Callable[[Any], None],
    need_tape: Callable[[], None],
    note_written: Callable[[Any, int, Condition], None],
    note_asked: Callable[[Any], None],
) -> None:
    """`check_marked(array)` raises if the program that is being captured cannot have the array as a
    variable; `need_tape()` says that it asks for gradients; `note_written(array, version,
    condition)` that an array, which had this version, is written to where a condition holds;
    `note_asked(array)` that it asks for the array's gradient."""
    _capture[:] = check_marked, need_tape, note_written, note_asked


def mark(variable: Any, gradient: Any, request: str) -> None:
    """Make an array a variable, whose gradient goes into an array; or none where none is wanted."""
    if modes.is_capturing():
        check_marked, *_ = _capture
        check_marked(variable)
    variable._autograd = None if request == "null" else Leaf(gradient, request)
    variable._has_variable = request != "null"


def gradient_of(array: Any) -> Any:
    """Where the gradient of an array goes; None if it is no variable."""
    if modes.is_capturing():
        *_, note_asked = _capture
        note_asked(array)
    source = array._autograd
    return source.grad if isinstance(source, Leaf) else None


def raise_changed_since(name: str, array: Any) -> None:
    """Called by the core for an array that a derivative needs, and that is not what it was."""
    raise AutogradError(
        f"backward: {name} needs an array of shape {array.shape} that was written to after it was "
        "used. Write into a copy, or compute a new array instead."
    )


def check_write(out: Any) -> None:
    """Called by the core before an operation writes into `out` where gradients flow."""
    if out._has_variable:  # also where it is a view of one
        raise AutogradError(
            "a variable with a gradient is written to while operations are recorded: its gradient "
            "would have no meaning. Write outside of autograd.record(), or to a copy."
        )
    if not out._covers_storage:
        raise part_written(out)


def part_written(out: Any) -> AutogradError:
    """The error for a view of a part that is written to: the whole would not be followed."""
    return AutogradError(
        f"a part, of shape {out.shape}, of a larger array is written to through a view while "
        "operations are recorded. Write x[key] = value on the whole array instead."
    )


# -- running backward -----------------------------------------------------------------------------


def propagate(
    heads: Sequence[Any],
    seeds: Sequence[Any],
    *,
    retain: bool,
    again: bool,
    stops: Sequence[Source] = (),
) -> dict[Any, Any]:
    """What every leaf receives, and every one of `stops`, by `key_of` it: under a condition, in
    a program that is captured.

    With `again`, the work is recorded too, for gradients of gradients.
    """
    global _swept  # noqa: PLW0603 - one number, and no two threads give the same
    _swept = next(_sweeps)
    sweep = _Sweep(stops)
    for head, seed in zip(heads, seeds, strict=True):
        sweep.receive(source_of(head), seed)
    with modes.switched(recording=again):
        visited = sweep.run(again)
    if not retain:
        for node in visited:
            node.release()
    return sweep.found


def key_of(source: Source) -> Any:
    """Equal for equal sources: a leaf, or a result of a node."""
    return source if isinstance(source, Leaf) else (source.node, source.index)


class _Sweep:
    """Visits nodes from the last to the first, each when all that reaches it is there."""

    def __init__(self, stops: Sequence[Source]):
        self.stops = {key_of(s) for s in stops}
        self.found: dict[Any, Any] = {}
        self.waiting: dict[Node, list[Any]] = {}
        self.queue: list[tuple[int, Node]] = []
        self.visited: list[Node] = []

    def receive(self, source: Source | None, cotangent: Any) -> None:
        if source is None:
            return
        if isinstance(source, Leaf):
            source.turn = len(self.visited)
            before = self.found.get(source)
            self.found[source] = cotangent if before is None else total(before, cotangent)
            return
        node, i = source.node, source.index
        sums = self.waiting.get(node)
        if sums is None:
            sums = self.waiting[node] = [None] * len(node.results)
            heapq.heappush(self.queue, (-node.number, node))
        sums[i] = cotangent if sums[i] is None else total(sums[i], cotangent)

    def run(self, again: bool) -> list[Node]:
        capturing = modes.is_capturing()  # else it is known what is received
        while self.queue:
            _, node = heapq.heappop(self.queue)
            received = self.waiting.pop(node)
            if self.stops:
                self._keep(node, received)
            each, condition = apart(received) if capturing else (received, None)
            with beside(value_of(_first(each))):
                for source, cotangent in node.pull(each, again):
                    self.receive(source, under(condition, cotangent))
            self.visited.append(node)
        return self.visited

    def _keep(self, node: Node, received: Sequence[Received | None]) -> None:
        for i, cotangent in enumerate(received):
            if cotangent is not None and (node, i) in self.stops:
                self.found[node, i] = cotangent


def _first(received: Sequence[Received | None]) -> Received:
    for one in received:
        if one is not None:
            return one
    raise AssertionError("a node is visited when something has reached it")


def seeds_for(heads: Sequence[Any], given: Sequence[Any] | None) -> list[Any]:
    """What the heads receive: ones, unless given."""
    if modes.is_capturing():
        _, need_tape, *_ = _capture
        need_tape()
    if given is None:
        given = [None] * len(heads)
    if len(given) != len(heads):
        raise ArgumentError(
            f"backward: {len(given)} head gradients for {len(heads)} heads; give one each, or none."
        )
    return [_seed(head, seed) for head, seed in zip(heads, given, strict=True)]


def _seed(head: Any, seed: Any) -> Any:
    source = source_of(head)
    if isinstance(source, Entry) and head._version != source.version:
        raise changed("backward", head)
    if source is None:
        raise AutogradError(
            f"backward: the array of shape {head.shape} was not computed from variables while "
            "operations were recorded. Call attach_grad() on the variables, and compute inside "
            "'with autograd.record():'."
        )
    if seed is None:
        with beside(head):
            return full(head.shape, 1.0, head._dtype_name)
    if seed.shape != head.shape:
        raise ArgumentError(
            f"backward: a head gradient of shape {seed.shape} for a head of shape {head.shape}; "
            "the shapes must be equal."
        )
    return seed if seed._dtype_name == head._dtype_name else seed.astype(head._dtype_name)


def install() -> None:
    """Let the core call the tape."""
    _core.set_hook("record_call", record_call)
    _core.set_hook("check_operand", check_operand)
    _core.set_hook("check_write", check_write)
    _core.set_hook("changed_since", raise_changed_since)
