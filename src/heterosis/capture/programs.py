"""Captured programs, compiled for arguments of one kind, and how they are run."""

from __future__ import annotations

import functools
import itertools
from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from heterosis import _core, backends
from heterosis.autograd import tape
from heterosis.autograd.derivative import OPERAND, Differentiable, described, layout_of
from heterosis.capture import trees
from heterosis.capture.captured import (
    Argument,
    Captured,
    Computed,
    GivenContainer,
    Made,
    OfSizes,
    Outside,
    OutsideContainer,
    RandomKey,
    RandomState,
    Source,
    Supplied,
    Undo,
    Window,
    Write,
    take_back,
)
from heterosis.capture.memory import Cell, window
from heterosis.capture.open_gradients import OpenGradients
from heterosis.capture.open_sizes import LARGEST, floats_among, sizes_among, with_extents
from heterosis.ir import program as ir
from heterosis.ir.formulas import Formulas
from heterosis.ir.resizing import at, resized
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import LEAST, is_traced, number_at, written
from heterosis.ops import eager
from heterosis.ops.math.cast import assign, copy
from heterosis.ops.random import keys
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes
from heterosis.runtime.errors import UnsupportedError
from heterosis.runtime.settings import settings

_assign = as_users_call(assign)
# What stands for something else in results.
_STANDING = Computed | Window | Made | GivenContainer | OutsideContainer | Argument | Outside
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes)

Call = tuple[tuple[Any, ...], dict[str, Any]]  # arguments and keywords


class Sized:
    """A captured program whose extents are open, as far as its conditions hold."""

    def __init__(
        self,
        captured: Captured,
        arguments: Sequence[Any],
        sharing: Hashable,
        backend: backends.Backend,
    ):
        assert captured.conditions is not None, "all its extents are known"
        self.captured, self.sharing, self.backend = captured, sharing, backend
        self.conditions = captured.conditions
        self.has_run = False  # at any size
        self._is_served = False  # by the core, at all sizes that it has plans for
        # By sizes, for programs that have open floats; the one that was used last at the end.
        self._at_sizes: OrderedDict[Hashable, Program] = OrderedDict()
        arrays = [_array(source, arguments) for source in captured.sources]
        has_gaps = [array is None or not array._contiguous for array in arrays]
        self._layouts = [layout_of(a) if g else None for a, g in zip(arrays, has_gaps, strict=True)]

    def at(self, values: Mapping[str, float], arguments: Sequence[Any]) -> Program:
        """The program where its sizes and numbers have these values."""
        sizes, floats = sizes_among(values), floats_among(values)
        if not floats:
            return self._made(sizes, arguments)
        place = tuple(sizes.items())
        if place not in self._at_sizes:
            self._at_sizes[place] = self._made(sizes, arguments)
        self._at_sizes.move_to_end(place)
        while len(self._at_sizes) > settings.programs_kept:
            self._at_sizes.popitem(last=False)
        return self._at_sizes[place].with_floats(floats)

    def _made(self, sizes: Mapping[str, int], arguments: Sequence[Any]) -> Program:
        first, self.has_run = not self.has_run, True
        program = Program(
            self.captured, arguments, self.backend,
            values=sizes, sized=self, first=first,
        )  # fmt: skip
        program.sharing = self.sharing
        return program

    def at_values(
        self, values: Mapping[str, int], wanted: tuple[int, ...]
    ) -> tuple[Differentiable | None, backends.Executable] | None:
        """What runs it where its sizes have these values; with what gradients to the wanted inputs
        need, if there are some. None, where that is found for every size by itself."""
        if not wanted:
            return None, self.executable.at(values)
        return None if self.captured.writes else self._gradients.at(wanted, values)

    def serve(self, replay: _core.Replay, call: Call, told: tuple[Any, ...]) -> None:
        """Let `replay` run the program for arguments like these at other sizes and numbers, too."""
        plans = self.executable.plans
        if self._is_served or plans is None:
            return
        self._is_served = True
        opening = self.conditions.opening
        order = list(dict.fromkeys(opening.names.values()))
        formulas = Formulas(order, opening.floats)
        try:
            for condition in self.conditions.noted:
                formulas.require(condition)
            found = [formulas.fraction(written(one.number)) for one in _of_sizes(self.captured)]
        except UnsupportedError:  # Python computes it
            return
        if any(map(is_traced, trees.leaves(self.captured.result))):
            return
        axes = {axis: order.index(name) for axis, name in opening.names.items()}
        places = [(*opening.place(axis), number) for axis, number in axes.items()]
        names, native = plans
        planned = [order.index(name) for name in names]
        example = None if opening.numbers else (with_extents(call, {}), axes)
        replay.add_open(
            *call, places, LEAST, LARGEST, len(order), formulas.table, native, planned, found, told,
            example,
        )  # fmt: skip

    @functools.cached_property
    def _gradients(self) -> OpenGradients:
        return OpenGradients(self.captured.program, self._layouts, self.backend)

    @functools.cached_property
    def executable(self) -> backends.SizedExecutable:
        """What runs it at any values of the sizes."""
        fixed = _seldom_changed(self.captured)
        written = _written(self.captured)
        return self.backend.compile_sized(self.captured.program, self._layouts, fixed, written)


class Program:
    """A captured program, planned for arguments of one kind: of open extents, at the `values` of
    these, with what runs it at any."""

    def __init__(
        self,
        captured: Captured,
        arguments: Sequence[Any],
        backend: backends.Backend,
        *,
        values: Mapping[str, int] | None = None,
        sized: Sized | None = None,
        first: bool = True,
    ):
        self.captured, self.values, self._sized = captured, values, sized
        self.floats: Mapping[str, float] = {}  # what open floats are
        self.backend = backend
        self.runs_to_check = 0
        self.sharing: Hashable = None  # which arrays share memory, if it writes to some
        self._windows: dict[Hashable, Any] = {}  # plans for what shares the memory of another
        # Numbers for the first run of what was captured.
        self._first: list[float] | None = captured.supply.first if first else None
        self._undo: list[Undo | None] = []  # of what the run at hand has counted
        self._recorded = modes.is_recording() or captured.leaves_record()
        # Which arguments are variables, if the function itself records what it does with them.
        self._variables = tape.wanted_of(arguments) if captured.recorded else None
        arrays = [_array(source, arguments) for source in captured.sources]
        self._layouts = layouts = tuple(map(layout_of, arrays))
        wanted = self._wanted(arrays) if self._recorded else ()
        self._keeping: Differentiable | None = None
        self._copies: dict[int, int] = {}
        open_ = (
            sized.at_values(values, wanted) if sized is not None and values is not None else None
        )
        if open_ is not None:
            self._keeping, self.executable = open_
        else:
            self._keeping = self.plain.keeping(wanted) if wanted else None
            self._copies = self._copied(wanted) if captured.writes else {}
            fixed = [] if self._recorded else _seldom_changed(captured)
            written = {} if self._recorded else _written(captured)
            self.executable = backend.compile_writing(self._with_copies(), layouts, fixed, written)
        shares = self.executable.plan is not None  # does what runs see to views by itself
        self._views = {} if shares else dict(_views(self.program, captured, layouts))

    def with_floats(self, floats: Mapping[str, float]) -> Program:
        """The same program where open floats have these values."""
        made = object.__new__(Program)
        made.__dict__.update(self.__dict__, floats=floats)
        self._first = None  # which are for one run
        return made

    @functools.cached_property
    def program(self) -> ir.Program:
        """What was captured, with the extents of the arguments."""
        program = self.captured.program
        return program if self.values is None else resized(program, at(self.values))

    @functools.cached_property
    def result(self) -> Any:
        """What is returned, with the numbers that follow from the extents of the arguments."""
        if self.values is None:
            return self.captured.shared
        shared = self.captured.shared
        return trees.mapped(shared, lambda leaf: number_at(leaf, self._sizes), made={})

    @functools.cached_property
    def _repeats(self) -> bool:
        """Whether a list or a dictionary is found in two places of the result."""
        return trees.has_repeated(self.result)

    @functools.cached_property
    def _sizes(self) -> Mapping[str, float]:
        """The open extents and numbers by their names, those too that conditions fix."""
        assert self.captured.conditions is not None and self.values is not None
        return {**self.captured.conditions.opening.named, **self.values, **self.floats}

    @functools.cached_property
    def plain(self) -> Differentiable:
        """The program as gradients see it."""
        program = self.program
        return Differentiable(
            program, program.inputs, self._layouts, described(program.outputs),
            whole=True, backend=self.backend,
        )  # fmt: skip

    @property
    def kept(self) -> Differentiable:
        """The program with what its derivative would have to compute again."""
        return self._keeping or self.plain

    def fits(self, arguments: Sequence[Any]) -> bool:
        """Whether gradients flow to the same arguments, as far as that matters."""
        return self._variables is None or self._variables == tape.wanted_of(arguments)

    def _wanted(self, operands: Sequence[Any]) -> tuple[int, ...]:
        """Positions of the operands that gradients flow to from the record of a run."""
        wanted = tape.wanted_of(operands)
        if self.captured.recorded is None:
            return wanted
        return tuple(i for i in wanted if i in self.captured.recorded.inputs)

    def _copied(self, wanted: tuple[int, ...]) -> dict[int, int]:
        """The operands that the program writes to and its derivative reads, and the results that
        are copies of them from before."""
        if not wanted:
            return {}
        written = {self.captured.position(write.source) for write in self.captured.writes}
        sources = self.kept.derivative(wanted).sources
        read = [i for kind, i in sources if kind == OPERAND and i in written]
        return dict(zip(read, count(len(self.kept.program.outputs)), strict=False))

    def _with_copies(self) -> ir.Program:
        program = self.kept.program if self._keeping else self.program
        copies = (copy.record.function(program.inputs[i]) for i in self._copies)
        return ir.Program(program.inputs, (*program.outputs, *copies), program.name)

    def serve(self, replay: _core.Replay, call: Call) -> None:
        """Let `replay` run the program for arguments like these, if it can by itself."""
        plan = self.executable.plan
        told = None if plan is None else self._told()
        if plan is None or told is None:
            return
        if not self.floats:  # they are others at each call
            numbers = [self._number(source) for source in _of_sizes(self.captured)]
            replay.add(*call, plan, numbers, told)
        if self._sized is not None and not self._recorded:
            self._sized.serve(replay, call, told)

    def _told(self) -> tuple[Any, ...] | None:
        """What the core is told of the program; None if it is Python that must run it."""
        captured = self.captured
        returned = None if self._repeats else self._returned_by_core(self.result)
        # A run that raises takes back what an optimizer has counted.
        by_python = captured.printed or captured.checks is not None
        by_python = by_python or (captured.waits and bool(captured.supply))
        if returned is None or by_python or RandomState() in captured.sources:
            return None
        writes = [
            (write.position, captured.position(write.source), write.recorded)
            for write in captured.writes
        ]
        supply = captured.supply.numbers if captured.supply else None
        record = self._record if self._recorded else None
        guards, constants = captured.guards.native, captured.recorded is not None
        described = _described(captured)
        return described, returned, writes, supply, record, guards, constants, captured.waits

    def _number(self, source: OfSizes) -> float:
        """A float that follows from the extents of the arguments."""
        return float(number_at(source.number, self._sizes))  # a size has no point in its text

    def _returned_by_core(self, result: Any) -> tuple[Any, ...] | None:
        """What is returned, or a part of it, as the core describes it; None if it makes no such."""
        if isinstance(result, Computed):
            return "array", result.position
        if isinstance(result, OutsideContainer):
            return "constant", result.container
        if isinstance(result, Argument | Outside):
            return "array", -1 - self.captured.position(result)
        if type(result) in _CONSTANTS:
            return "constant", result
        if type(result) not in (tuple, list, dict):
            return None
        parts = result.values() if type(result) is dict else result
        items = [self._returned_by_core(part) for part in parts]
        keys = (list(result),) if type(result) is dict else ()
        return None if None in items else (type(result).__name__, items, *keys)

    def run(
        self,
        arguments: Sequence[Any],
        operands: Sequence[Any] | None = None,
        call: Call = ((), {}),
    ) -> Any:
        """What the function returns, its arrays being `arguments`; `operands` are what the program
        is fed, if that is known. The lists and dictionaries that it returns are those of `call`."""
        captured = self.captured
        operands = self.operands(arguments) if operands is None else operands
        results = self._checked(operands)
        captured.printed.show(results)
        if isinstance(captured.drawn, Computed):
            begun = operands[captured.sources.index(RandomState())]
            keys.advance(keys.count_between(begun, results[captured.drawn.position].item()))
        if self._recorded:
            self._record(operands, results)
        for write in captured.writes:
            target = self.target(write, arguments)
            _core.tell_of_write(target)
            with modes.switched(recording=write.recorded):
                _assign(results[write.position], out=target)

        # Not a function that calls itself from here: it would keep the arrays until garbage is
        # collected, and every call would need new memory.
        leaf = functools.partial(self._returned, results, arguments, call, {})
        return trees.mapped(
            self.result,
            lambda one: leaf(one) if isinstance(one, _STANDING) else one,
            made={} if self._repeats else None,
        )

    def _checked(self, operands: Sequence[Any]) -> Sequence[Any]:
        """What the program computes. If something does not hold, that is raised here, as it is
        imperatively: nothing is written, and no optimizer has counted an update."""
        try:
            results = self._results(operands)
            for result in results if self.captured.waits else ():
                result.wait_to_read()
        except BaseException:
            take_back(self._undo)
            raise
        return results

    def _returned(
        self,
        results: Sequence[Any],
        arguments: Sequence[Any],
        call: Call,
        made: dict[int, Any],
        leaf: Any,
    ) -> Any:
        """The array, or the object of Python's, that a leaf of the result stands for; `made` are
        those that this call has made."""
        if isinstance(leaf, Made):
            return leaf.again(made)
        if isinstance(leaf, GivenContainer):
            return next(itertools.islice(trees.containers_in(call), leaf.position, None), None)
        if isinstance(leaf, OutsideContainer):
            return leaf.container
        if isinstance(leaf, Window):
            base = self._returned(results, arguments, call, made, leaf.base)
            shown = self._window(leaf, base)
            if leaf.alone is not None:
                place = tape.source_of(results[leaf.alone.position])
                shown._autograd = tape.renewed(place, shown)
            return shown
        if isinstance(leaf, Computed):
            return results[leaf.position]
        return _array(leaf, arguments)

    def target(self, write: Write, arguments: Sequence[Any]) -> Any:
        """The array that a result is written to."""
        return _array(write.source, arguments)

    def _results(self, operands: Sequence[Any]) -> Sequence[Any]:
        """What the program computes, with views of operands where these are only rearranged."""
        results = self.executable.run(operands)
        if not self._views:
            return results
        shown = {i: self._window(w, operands[at]) for i, (at, w) in self._views.items()}
        return [shown.get(i, result) for i, result in enumerate(results)]

    def _window(self, window: Window, base: Any) -> Any:
        """What `window` shows of the array that it shares the memory of."""
        layout = layout_of(base)
        if (window, layout) not in self._windows:
            program = window.program()
            if self.values is not None:
                program = resized(program, at(sizes_among(self._sizes)))
            self._windows[window, layout] = eager.plan(
                program, (layout,), None, views=True, freely=False, device=base._device
            )
        (found,) = _core.run_plan(self._windows[window, layout], [base])
        return found

    def _record(self, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Tell the tape of a run; gradients go back from what they would where the operations that
        the function consists of were recorded one by one."""
        wanted = self._wanted(operands)
        if not wanted:
            return
        read = list(operands)
        for operand, result in self._copies.items():
            read[operand] = results[result]
        goals: Mapping[int, Collection[int]]
        if self.captured.recorded is not None:
            goals = self.captured.recorded.goals
        else:
            found = self.plain.reached(wanted)
            goals = {i: wanted for i in sorted(found) if i < self.captured.printed.alone}
        node = tape.WholeNode(self.plain, self.kept, wanted, operands, results, read, goals)
        _core.attach(node, results, list(goals))

    def operands(self, arguments: Sequence[Any]) -> list[Any]:
        """What the program is fed."""
        supply = self.captured.supply
        self._undo = supply.undo if self._first else supply.before_counting()
        numbers, self._first = self._first or supply.numbers(), None
        operands = [
            numbers[source.position]
            if isinstance(source, Supplied)
            else self._number(source)
            if isinstance(source, OfSizes)
            else _core.random_key()
            if isinstance(source, RandomKey)
            else keys.current_state()
            if isinstance(source, RandomState)
            else _array(source, arguments)
            for source in self.captured.sources
        ]
        if self.captured.drawn and not isinstance(self.captured.drawn, Computed):
            keys.advance(self.captured.drawn)
        return operands


def _seldom_changed(captured: Captured) -> list[int]:
    """The positions of the inputs that the function found outside; none if it writes to some of
    them, as a step of training does. What it writes to among its arguments is a state: a cache."""
    if any(isinstance(write.source, Outside) for write in captured.writes):
        return []
    return [i for i, source in enumerate(captured.sources) if isinstance(source, Outside)]


def _written(captured: Captured) -> dict[int, int]:
    """The results that are written to inputs that share no memory with others, by the positions of
    these. Arguments share none: a call that gives such is captured by itself."""
    outside = Counter(s.array._storage_id for s in captured.sources if isinstance(s, Outside))
    shared = {storage for storage, count in outside.items() if count > 1}
    return {
        captured.position(write.source): write.position
        for write in captured.writes
        if not (isinstance(write.source, Outside) and write.source.array._storage_id in shared)
    }


def _views(
    program: ir.Program, captured: Captured, layouts: Sequence[Strided]
) -> Iterator[tuple[int, tuple[int, Window]]]:
    """The results that only rearrange an array, whose memory they share eagerly: by position, with
    the operand that it is."""
    places = zip(program.inputs, captured.sources, layouts, strict=True)
    cells = {
        value: Cell(value, source=source, layout=layout)
        for value, source, layout in places
        if isinstance(source, Argument | Outside)
    }
    for i, value in enumerate(program.outputs):
        cell = window(value, cells)
        if cell is not None and (base := cell.base) is not None:
            shown = Window(base.source, base.value().type, cell.path, value)
            yield i, (captured.position(base.source), shown)


def _array(source: Source, arguments: Sequence[Any]) -> Any:
    """The array that a source names; None for numbers."""
    if isinstance(source, Argument):
        return arguments[source.position]
    return source.array if isinstance(source, Outside) else None


def _of_sizes(captured: Captured) -> list[OfSizes]:
    """The numbers among the inputs that follow from extents."""
    return [source for source in captured.sources if isinstance(source, OfSizes)]


def _described(captured: Captured) -> list[Any]:
    """Where the inputs come from, as the core is told."""
    known = count()

    def described(source: Source) -> Any:
        if isinstance(source, Argument):
            return source.position
        if isinstance(source, Supplied):
            return "supplied", source.position
        if isinstance(source, OfSizes):
            return "known", next(known)
        return source.array if isinstance(source, Outside) else None

    return [*map(described, captured.sources)]
