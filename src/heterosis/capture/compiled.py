"""A function of arrays, captured once for each kind of arguments, and run as one native call."""

from __future__ import annotations

import functools
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import Self

from heterosis import _core, backends
from heterosis.autograd import tape
from heterosis.autograd.derivative import OPERAND, Differentiable, described, layout_of
from heterosis.capture import foreign, trees
from heterosis.capture.attempts import OptimizerStepped, capture
from heterosis.capture.captured import (
    Argument,
    Captured,
    Computed,
    OfSizes,
    Outside,
    RandomKey,
    RandomState,
    Source,
    Supplied,
    Window,
    Write,
)
from heterosis.capture.kinds_of_calls import difference
from heterosis.capture.memory import Cell, window
from heterosis.capture.open_gradients import OpenGradients
from heterosis.capture.open_sizes import (
    AUTO,
    Dynamic,
    Kind,
    Numbers,
    Opening,
    Shapes,
    axes_of,
    check_dynamic,
    floats_among,
    kind_of,
    numbers_of,
    shapes_of,
    sizes_among,
)
from heterosis.capture.trace import opened
from heterosis.ir import program as ir
from heterosis.ir.resizing import at, resized
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import number_at
from heterosis.ops import eager
from heterosis.ops.math.cast import assign, copy
from heterosis.ops.random import keys
from heterosis.ops.record import as_users_call
from heterosis.runtime import forks, modes
from heterosis.runtime.settings import settings
from heterosis.runtime.warning import warn_user

Call = tuple[tuple[Any, ...], dict[str, Any]]  # arguments and keywords

_assign = as_users_call(assign)

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

_MOST_ALIKE = 8  # programs kept for arguments of one kind, that differ in their guards
_CHECKED_RUNS = 3  # of each program, if its function is to be checked
_OFTEN = 8  # captures because something has changed, after which a function warns
_MANY_KINDS = 12  # captures for calls of new kinds, at which it does


class Compiled(Generic[P, R]):
    """`function`, compiled. `captures` counts how often it has been run to be captured, and
    `captures_why` has the reasons of the last ones.

    A program serves calls whose arrays agree in types, shapes and layouts, whose other arguments
    are equal, while nothing else that it depends on changes. Extents that vary stay open, as far as
    `dynamic` lets them: the program then serves all for which its conditions hold. `replay` is what
    to call: it finds the program in the core, and comes back here where it has none.
    """

    _read_by_capture = frozenset(("function",))

    def __init__(
        self,
        function: Callable[P, R],
        backend: str = backends.NATIVE,
        dynamic: Dynamic = AUTO,
        *,
        check: bool = False,
        imperative: Callable[..., Any] | None = None,
    ):
        backends.named(backend)  # an unknown one is refused here and not at the first call
        check_dynamic(dynamic)
        functools.update_wrapper(self, function, updated=())
        self.function, self.backend, self.dynamic = function, backend, dynamic
        # Whether the first runs are compared with what this gives.
        self.check, self.imperative = check, imperative or function
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        """A copy captures anew: the programs are made for the arrays that the function holds."""
        mine = (
            "replay", "examples", "_programs", "_kinds", "_numbers", "_changes", "_capturing",
            "_outside",
        )  # fmt: skip
        return {name: value for name, value in vars(self).items() if name not in mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def _start(self) -> None:
        self.captures = 0
        # Why the last captures were necessary, the latest at the end.
        self.captures_why: deque[str] = deque(maxlen=_OFTEN)
        self.replay = _core.Replay(self._call)
        # Captured calls by their descriptions, without elements.
        self.examples: OrderedDict[Hashable, Call] = OrderedDict()
        # By the kind of arguments, the one that was used last at the end; newest programs first.
        self._programs: OrderedDict[Hashable, list[Program]] = OrderedDict()
        # Of calls that differ in extents alone, the one that was used last at the end.
        self._kinds: OrderedDict[Hashable, _SizedPrograms] = OrderedDict()
        # Of calls that differ in numbers too.
        self._numbers: OrderedDict[Hashable, Numbers] = OrderedDict()
        self._changes = 0  # captures for arguments that it knew, since something else was new
        self._calls_of_new_kinds = 0
        self._capturing = forks.ReleasedLock()
        self._outside: set[int] = set()  # storages that programs which write use from outside

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        return self.replay(*arguments, **keywords)  # type: ignore[no-any-return]

    def _call(self, *arguments: Any, **keywords: Any) -> Any:
        if modes.is_capturing():  # becomes part of the program that calls it
            return opened(self.function)(*arguments, **keywords)
        if trees.has_numpy_arrays((arguments, keywords)):
            return foreign.call(self.replay, arguments, keywords)
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
                program = (
                    self._found(key, arrays)
                    or self._sized(key, arguments, keywords)
                    or self._captured(key, arguments, keywords)
                )
        if program.runs_to_check:
            return self._checked(program, arrays, arguments, keywords)
        if not keywords and (not program.captured.writes or self._are_apart(arrays)):
            program.serve(self.replay, arguments)
        return program.run(arrays)

    def _checked(
        self,
        program: Program,
        arrays: Sequence[Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """What a run gives, compared with what Python does."""
        from heterosis.capture.comparing import checked_run

        found = checked_run(
            repr(self), program, arrays, lambda: self.imperative(*arguments, **keywords)
        )
        program.runs_to_check -= 1  # who differs is checked again
        return found

    def _found(self, key: Hashable, arrays: Sequence[Any]) -> Program | None:
        programs = self._programs.get(key, ())
        for program in tuple(programs):
            shares = program.sharing is None or program.sharing == self._sharing(arrays)
            if shares and program.fits(arrays) and program.captured.guards.holds():
                self._programs.move_to_end(key)
                return program
        return None

    def _keep(self, key: Hashable, program: Program) -> None:
        """Keep a program, and drop those used least recently. The core goes on with the few that it
        serves by itself."""
        alike = self._programs.setdefault(key, [])
        self._programs.move_to_end(key)
        alike.insert(0, program)
        del alike[_MOST_ALIKE:]
        while sum(map(len, self._programs.values())) > settings.programs_kept:
            oldest = next(iter(self._programs))
            self._programs[oldest].pop()
            if not self._programs[oldest]:
                del self._programs[oldest]
        while len(self.examples) > settings.programs_kept:
            self.examples.popitem(last=False)

    def _note_changes(self, key: Hashable) -> None:
        """Note why there is no program, and tell the user, once, if the function is captured again
        and again."""
        programs = self._programs.get(key)
        change = next(programs[0].captured.guards.changes(), None) if programs else None
        last = next(reversed(self._programs), None)
        new = "the first call" if last is None else difference(last, key)
        shared = "arrays among the arguments share memory, or have gradients, otherwise"
        self.captures_why.append(change or (shared if programs else new))
        if change is None:
            self._tell_kinds()
            return
        if self._changes == _OFTEN:
            return
        self._changes += 1
        if self._changes == _OFTEN:
            warn_user(
                f"{self!r} has been captured {self.captures} times, since what it reads besides "
                f"its arguments changes; the last time: {change}; captures_why has more of them. "
                "Hand it in as an argument, an array if it is a number that changes often."
            )

    def _tell_kinds(self) -> None:
        """Tell the user, once, of a function that is captured for many kinds of calls."""
        self._calls_of_new_kinds += 1
        if self._calls_of_new_kinds == _MANY_KINDS:
            why = "; ".join(dict.fromkeys(self.captures_why))
            warn_user(
                f"{self!r} has been captured {self.captures} times, since its calls differ in what "
                f"a program is made for: {why}. captures_why has the last ones. Hand in numbers "
                "that vary as arrays, np.array(n), and leave sizes open, as dynamic='auto' does."
            )

    def _sharing(self, arrays: Sequence[Any]) -> Hashable:
        """Which arrays share memory, with each other or with what the function has outside."""
        storages = [array._storage_id for array in arrays]
        return tuple((storages.index(s), s in self._outside and s) for s in storages)

    def _are_apart(self, arrays: Sequence[Any]) -> bool:
        """Whether no array shares memory so: programs in the core are for such arrays only."""
        return self._sharing(arrays) == tuple((i, False) for i in range(len(arrays)))

    # -- extents that stay open -------------------------------------------------------------------

    def _sized(
        self, key: tuple[Hashable, ...], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Program | None:
        """A program of open extents at those of the arguments, if there is or can be one."""
        if self.dynamic is False or self.check:  # what is checked is checked at every size
            return None
        call = arguments, keywords
        arrays = list(trees.arrays_in(call))
        numbers, shapes = numbers_of(call), shapes_of(arrays)
        places: tuple[int, ...] = ()
        seen = None
        if numbers:
            seen = _kept(self._numbers, (kind_of(call, None), *key[1:]), Numbers)
            places = seen.see(numbers)
            seen.extents.see(shapes)
            shapes = (*shapes, tuple(numbers[i] for i in places))
        known = _kept(self._kinds, (kind_of(call, places), *key[1:]), _SizedPrograms)
        program = self._sized_at(known, arrays, shapes)
        if program is None:
            known.kind.see(shapes)
            known.kind.varied |= seen.extents.varied if seen else set()
            given = axes_of(self.dynamic, self.function, *call)
            opening = known.kind.opening(shapes, given, places)
            if opening is None:
                return None
            made = self._capture_open(known, opening, call)
            if isinstance(made, Exception):
                program = self._captured(key, *call)  # or what the function itself raises
                known.kind.close(opening)
                if seen is not None:
                    seen.closed |= set(places)
                self.captures_why.append(f"no extents stay open: {made}")
                return program
            if seen is not None:
                seen.closed |= opening.numbers_alone(made.conditions.fixed)
            values = made.conditions.values(shapes)
            assert values is not None, "its conditions hold for the call that it was captured for"
            program = made.at(values, arrays)  # the function may have changed what it reads
            self._keep_example(key, call)
        elif not places:
            self._keep_example(key, call)
        if program is not None and not program.floats:
            self._keep(key, program)
        return program

    def _sized_at(
        self, known: _SizedPrograms, arrays: Sequence[Any], shapes: Shapes
    ) -> Program | None:
        """One of the known programs at these shapes."""
        for sized in known.programs:
            shares = sized.sharing is None or sized.sharing == self._sharing(arrays)
            values = sized.conditions.values(shapes) if shares else None
            if values is None or not sized.captured.guards.holds():
                continue
            program = sized.at(values, arrays)
            if program.fits(arrays):
                return program
        return None

    def _capture_open(
        self, known: _SizedPrograms, opening: Opening, call: Call
    ) -> _Sized | Exception:
        """Capture a program that leaves extents open; gives what is raised, perhaps since it cannot
        leave them open."""
        self.captures += 1
        try:
            captured = capture(self.function, *call, opening=opening)
        except OptimizerStepped:
            raise  # it would count the step once more
        except Exception as error:  # noqa: BLE001 - what remains is raised without open extents
            return error
        known.kind.attempts += 1
        conditions = captured.conditions
        assert conditions is not None, "it was captured with an opening"
        fixed = conditions.fixed
        if not known.programs:  # else it is this size alone that is a special one
            known.kind.closed |= opening.alone(fixed)
        self.captures_why += [f"an extent is fixed by {why}" for why in fixed.values()]
        names = ", ".join(f"{name} = {value}" for name, value in opening.named.items())
        vary = (
            "extents or numbers among the arguments"
            if opening.numbers
            else "extents of the arguments"
        )
        self.captures_why.append(f"{vary} vary: {names}")
        arrays = list(trees.arrays_in(call))
        sharing, backend = self._sharing_of(captured, arrays), backends.named(self.backend)
        made = _Sized(captured, arrays, sharing, backend)
        known.programs.insert(0, made)
        del known.programs[_MOST_ALIKE:]
        return made

    def _keep_example(self, key: tuple[Hashable, ...], call: Call) -> None:
        self.examples.pop(key[0], None)  # the latest comes last
        self.examples[key[0]] = example(call)

    def _sharing_of(self, captured: Captured, arrays: Sequence[Any]) -> Hashable:
        """How arrays share memory, if that matters: for a program that writes to some."""
        if not captured.writes:
            return None
        outside = (source.array for source in captured.sources if isinstance(source, Outside))
        self._outside.update(array._storage_id for array in outside)
        self._outside |= captured.entangled
        return self._sharing(arrays)

    def _captured(
        self, key: tuple[Hashable, ...], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Program:
        self.captures += 1
        self._note_changes(key)
        arrays = list(trees.arrays_in((arguments, keywords)))
        captured = capture(
            self.function,
            arguments,
            keywords,
            interrupted=lambda found: self._compiled(found, arrays).run(arrays),
        )
        self._keep_example(key, (arguments, keywords))
        program = self._compiled(captured, arrays)
        program.sharing = self._sharing_of(captured, arrays)
        program.runs_to_check = _CHECKED_RUNS if self.check else 0
        self._keep(key, program)
        return program

    def _compiled(self, captured: Captured, arrays: Sequence[Any]) -> Program:
        return Program(captured, arrays, backends.named(self.backend))

    def compiled_by(self, backend: str, *, check: bool = False) -> Self:
        """The same function, compiled by the back end of that name, and checked if need be."""
        if backend == self.backend and check <= self.check:
            return self
        backends.named(backend)
        found = object.__new__(type(self))
        found.__setstate__(
            {**self.__getstate__(), "backend": backend, "check": check or self.check}
        )
        return found

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

    def calls_with(self, inputs: Call) -> list[Call]:
        """Calls like those that it was captured for, and one like `inputs` unless these are none:
        what files have programs for."""
        return [*self.examples.values(), *([example(inputs)] if any(inputs) else [])]

    def __repr__(self) -> str:
        return f"<hybridized {getattr(self.function, '__qualname__', self.function)!s}>"

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Compiled[Concatenate[Any, Q], S], instance: object, owner: Any = None
    ) -> Compiled[Q, S]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a decorator of methods: each instance has programs of its own."""
        if instance is None:
            return self
        name = f"_hybridized_{self.function.__name__}"
        found = instance.__dict__.get(name)
        if found is None:
            made = self.function.__get__(instance, owner)
            found = Compiled(made, self.backend, self.dynamic, check=self.check)
            instance.__dict__[name] = found
        return found


class _Sized:
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

    @functools.cached_property
    def _gradients(self) -> OpenGradients:
        return OpenGradients(self.captured.program, self._layouts, self.backend)

    @functools.cached_property
    def executable(self) -> backends.SizedExecutable:
        """What runs it at any values of the sizes."""
        fixed = [] if self.captured.writes else _from_outside(self.captured)
        return self.backend.compile_sized(self.captured.program, self._layouts, fixed)


def _kept(known: OrderedDict[Hashable, S], kind: Hashable, make: Callable[[], S]) -> S:
    """What is known of calls of a kind, the last of many that is forgotten."""
    found = known.get(kind)
    if found is None:
        found = known[kind] = make()
    known.move_to_end(kind)
    while len(known) > settings.programs_kept:
        known.popitem(last=False)
    return found


@dataclass
class _SizedPrograms:
    """Programs for calls that differ in extents alone."""

    kind: Kind = field(default_factory=Kind)
    programs: list[_Sized] = field(default_factory=list)


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
        sized: _Sized | None = None,
        first: bool = True,
    ):
        self.captured, self.values = captured, values
        self.floats: Mapping[str, float] = {}  # what open floats are
        self.backend = backend
        self.runs_to_check = 0
        self.sharing: Hashable = None  # which arrays share memory, if it writes to some
        self._windows: dict[Hashable, Any] = {}  # plans for what shares the memory of another
        # Numbers for the first run of what was captured.
        self._first: list[float] | None = captured.supply.first if first else None
        self._written = {write.position for write in captured.writes}
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
            # A step of training changes what is outside.
            changes = self._recorded or captured.writes
            fixed = [] if changes else _from_outside(captured)
            self.executable = backend.compile(self._with_copies(), layouts, fixed)
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
            return self.captured.result
        return trees.mapped(self.captured.result, lambda leaf: number_at(leaf, self._sizes))

    @functools.cached_property
    def _sizes(self) -> Mapping[str, float]:
        """The open extents and numbers by their names, those too that conditions fix."""
        assert self.captured.conditions is not None and self.values is not None
        return {**self.captured.conditions.opening.values, **self.values, **self.floats}

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
        written = {self.captured.sources.index(write.source) for write in self.captured.writes}
        sources = self.kept.derivative(wanted).sources
        read = [i for kind, i in sources if kind == OPERAND and i in written]
        return dict(zip(read, count(len(self.kept.program.outputs)), strict=False))

    def _with_copies(self) -> ir.Program:
        program = self.kept.program if self._keeping else self.program
        copies = (copy.record.function(program.inputs[i]) for i in self._copies)
        return ir.Program(program.inputs, (*program.outputs, *copies), program.name)

    def serve(self, replay: Any, arguments: tuple[Any, ...]) -> None:
        """Let `replay` run the program for arguments like these, if it can by itself."""
        captured = self.captured
        items = self._items()
        plan = self.executable.plan
        by_python = captured.printed or RandomState() in captured.sources
        if items is None or plan is None or by_python or self.floats:
            return
        sources = [*map(_described, captured.sources)]
        supply: Callable[[], Sequence[float]] | None = None
        if captured.supply:
            supply = captured.supply.numbers
        of_sizes = [i for i, s in enumerate(captured.sources) if isinstance(s, OfSizes)]
        if of_sizes:
            supply = self._supply_with([captured.sources[i] for i in of_sizes])
            for place, i in enumerate(of_sizes, len(captured.supply)):
                sources[i] = (place,)
        writes = [
            (write.position, captured.sources.index(write.source), write.recorded)
            for write in captured.writes
        ]
        record = self._record if self._recorded else None
        guards, constants = captured.guards.native, captured.recorded is not None
        replay.add(arguments, plan, sources, items, writes, supply, record, guards, constants)

    def _number(self, source: OfSizes) -> float:
        """A float that follows from the extents of the arguments."""
        return float(number_at(source.number, self._sizes))  # a size has no point in its text

    def _supply_with(self, sources: Sequence[Any]) -> Callable[[], Sequence[float]]:
        """What gives the numbers of a run: those that Python supplies, then these."""
        more = [self._number(source) for source in sources]
        if not self.captured.supply:
            return lambda: more
        return lambda: [*self.captured.supply.numbers(), *more]

    def _items(self) -> Any:
        """What is returned, as the core describes it; None if it is nested or no array."""
        result = self.result
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

    def run(self, arguments: Sequence[Any], operands: Sequence[Any] | None = None) -> Any:
        """What the function returns, its arrays being `arguments`; `operands` are what the program
        is fed, if that is known."""
        captured = self.captured
        operands = self.operands(arguments) if operands is None else operands
        results = self._results(operands)
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
        array = functools.partial(self._returned, results, arguments)
        return trees.replaced(self.result, array, Computed | Window | Argument | Outside)

    def _returned(
        self, results: Sequence[Any], arguments: Sequence[Any], leaf: Computed | Window | Source
    ) -> Any:
        """The array that a leaf of the result stands for."""
        if isinstance(leaf, Window):
            return self._window(leaf, self._returned(results, arguments, leaf.base))
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
                program, (layout,), None, views=True, freely=False
            )
        (found,) = _core.run_plan(self._windows[window, layout], [base])
        return found

    def _record(self, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Tell the tape of a run.

        Results that are written into arrays are recorded where they depend on a variable:
        those arrays are there for the next call, which gradients would else go back from.
        """
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
            idle = self._written and self._written - self.plain.reached(wanted)
            found = (i for i in self.plain.float_results if i < self.captured.printed.alone)
            goals = {i: wanted for i in found if i not in idle}
        node = tape.WholeNode(self.plain, self.kept, wanted, operands, results, read, goals)
        node.attach(results, goals)

    def operands(self, arguments: Sequence[Any]) -> list[Any]:
        """What the program is fed."""
        supply = self.captured.supply
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


def _from_outside(captured: Captured) -> list[int]:
    """The positions of the inputs that the function found outside."""
    return [i for i, source in enumerate(captured.sources) if isinstance(source, Outside)]


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
            yield i, (captured.sources.index(base.source), shown)


def _array(source: Source, arguments: Sequence[Any]) -> Any:
    """The array that a source names; None for numbers."""
    if isinstance(source, Argument):
        return arguments[source.position]
    return source.array if isinstance(source, Outside) else None


def example(call: Call) -> Call:
    """A call like `call`, with arrays that have no elements."""

    def stand_in(array: Any) -> Any:
        return _core.unreadable(array._dtype_name, array.shape, "an example has no elements")

    made: Call = trees.replaced(call, stand_in)
    return made


def _described(source: Source) -> Any:
    if isinstance(source, Argument):
        return source.position
    if isinstance(source, Supplied):
        return (source.position,)
    return source.array if isinstance(source, Outside) else None
