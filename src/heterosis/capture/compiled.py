"""A function of arrays, captured once for each kind of arguments, and run as one native call."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    SupportsIndex,
    TypeVar,
    overload,
)
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from typing_extensions import Self

from heterosis import _core, backends
from heterosis.capture import changes, foreign, trees
from heterosis.capture.active import opened
from heterosis.capture.attempts import OptimizerStepped, capture
from heterosis.capture.captured import (
    Captured,
    Outside,
)
from heterosis.capture.open_sizes import (
    AUTO,
    Dynamic,
    Kind,
    Numbers,
    Opening,
    Shapes,
    axes_of,
    check_dynamic,
    kind_of,
    numbers_of,
    shapes_of,
    with_extents,
)
from heterosis.capture.programs import Call, Program, Sized
from heterosis.capture.same_views import place
from heterosis.capture.signatures import parameters_of
from heterosis.runtime import forks, garbage, modes
from heterosis.runtime.context import context_of_device
from heterosis.runtime.errors import ArgumentTypeError, CheckError
from heterosis.runtime.settings import settings
from heterosis.runtime.warning import warn_user

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

_MOST_ALIKE = 8  # programs kept for arguments of one kind, that differ in their guards
_CHECKED_RUNS = 3  # of each program, if its function is to be checked
_OFTEN = 8  # captures because something has changed, after which a function warns
# What changes then, and what to do.
_READ = (
    "what it reads besides its arguments changes",
    "Hand it in as an argument, an array if it is a number that changes often.",
)
_GIVEN = (
    "its arguments change",
    "Let arrays be of any extents, with dynamic='auto', and make arrays of what changes often.",
)


class Compiled(Generic[P, R]):
    """`function`, compiled. `captures` counts how often it has been run to be captured, and
    `captures_why` has the reasons of the last ones.

    A program serves calls whose arrays agree in types, shapes and layouts, whose other arguments
    are equal, while nothing else that it depends on changes. Extents that vary stay open, as far as
    `dynamic` lets them: the program then serves all for which its conditions hold. `replay` is what
    to call: it finds the program in the core, and comes back here where it has none.
    """

    _read_by_capture = frozenset(("function",))
    # Whether a call can be made as Python makes it.
    _is_written_in_python = True

    def __init__(
        self,
        function: Callable[P, R],
        backend: str = backends.NATIVE,
        dynamic: Dynamic = AUTO,
        *,
        check: bool = False,
        imperative: Callable[..., Any] | None = None,
        parameters: Callable[[], inspect.Signature] | None = None,
    ):
        backends.named(backend)  # an unknown one is refused here and not at the first call
        check_dynamic(dynamic)
        functools.update_wrapper(self, function, updated=())
        self.function, self.backend, self.dynamic = function, backend, dynamic
        # Whether the first runs are compared with what this gives.
        self.check, self.imperative = check, imperative or function
        self._parameters = parameters  # what tells them, if `function` does not
        self._start()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Its name, if that leads to it: that of what it decorates does so, too."""
        name = getattr(self, "__qualname__", "")  # objects that are called have none
        found = getattr(sys.modules.get(self.__module__), name, None)
        return name if found is self else super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        """A copy captures anew: the programs are made for the arrays that the function holds."""
        mine = (
            "replay", "_examples", "_programs", "_kept", "_kinds", "_numbers", "_changes",
            "_capturing", "_order", "_outside",
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
        # Calls of all kinds by their descriptions, without elements, but those served by the core.
        self._examples: OrderedDict[Hashable, Call] = OrderedDict()
        # By the kind of arguments, the one that was used last at the end; newest programs first.
        self._programs: OrderedDict[Hashable, list[Program]] = OrderedDict()
        self._kept = 0  # of these, in all
        # Of calls that differ in extents alone, the one that was used last at the end.
        self._kinds: OrderedDict[Hashable, _SizedPrograms] = OrderedDict()
        # Of calls that differ in numbers too.
        self._numbers: OrderedDict[Hashable, Numbers] = OrderedDict()
        self._changes = 0  # captures after the first one
        self._capturing = forks.ReleasedLock()
        self._order = forks.ReleasedLock()  # of `_programs`: a call that finds one changes it
        self._outside: set[int] = set()  # storages that programs which write know from outside

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        return self.replay(*arguments, **keywords)  # type: ignore[no-any-return]

    def _call(self, *arguments: Any, **keywords: Any) -> Any:
        if modes.is_capturing():  # becomes part of the program that calls it
            return opened(self.function)(*arguments, **keywords)
        if trees.has_numpy_arrays((arguments, keywords)):
            return foreign.call(self.replay, arguments, keywords)
        if (
            modes.is_imperative() and self._is_written_in_python
        ):  # a part of what a program is compared with
            return self.imperative(*arguments, **keywords)
        # Lists and dictionaries as they are now: other threads may change them from here on.
        given, (arguments, keywords) = (arguments, keywords), trees.copied((arguments, keywords))
        arrays = list(trees.arrays_in((arguments, keywords)))
        device = _core.device_of(repr(self), arrays)
        if device != _core.current_device():
            with context_of_device(device):
                return self._call(*given[0], **given[1])
        key = (
            trees.description((arguments, keywords)),
            modes.is_training(),
            modes.is_recording(),
            _core.intra_op_threads(),
            device,
        )
        program = self._found(key, arrays)
        if program is None:
            # Of threads that call at once, one captures.
            with self._capturing, garbage.not_searched():
                program = (
                    self._found(key, arrays)
                    or self._sized(key, arguments, keywords)
                    or self._captured(key, arguments, keywords)
                )
        if program.captured.waits and self._is_written_in_python:
            return self._run_raising(program, arrays, given, (arguments, keywords))
        return self._run_program(program, arrays, given, (arguments, keywords))

    def _run_program(
        self, program: Program, arrays: Sequence[Any], given: Call, copied: Call
    ) -> Any:
        """What a run gives, which the core makes by itself from the next call on if it can."""
        if program.runs_to_check:
            return self._checked(program, given)
        result = program.run(arrays, call=given)
        if not program.captured.writes or self._are_apart(arrays):
            program.serve(self.replay, copied)
        return result

    def _run_raising(
        self, program: Program, arrays: Sequence[Any], given: Call, copied: Call
    ) -> Any:
        """What a run gives of a program that may raise. One that does has changed nothing; so the
        call is made as Python makes it, which prints and writes until it comes to the error."""
        before = _core.random_state()
        try:
            return self._run_program(program, arrays, given, copied)
        except CheckError:
            raise
        except Exception:
            if program.captured.supply:  # an optimizer would count the step twice
                raise
            _core.restore_random_state(*before)
        arguments, keywords = given
        with modes.switched(imperative=True):
            return self.imperative(*arguments, **keywords)

    def _checked(self, program: Program, given: Call) -> Any:
        """What a run gives, compared with what Python does."""
        from heterosis.capture.comparing import checked_run

        arguments, keywords = given
        found = checked_run(
            repr(self), program, given, lambda: self.imperative(*arguments, **keywords)
        )
        program.runs_to_check -= 1  # who differs is checked again
        return found

    def _found(self, key: Hashable, arrays: Sequence[Any]) -> Program | None:
        programs = self._programs.get(key, ())
        for program in tuple(programs):
            shares = program.sharing is None or program.sharing == self._sharing(arrays)
            if shares and program.fits(arrays) and program.captured.guards.holds():
                with self._order:
                    if key in self._programs:  # other threads may drop some
                        self._programs.move_to_end(key)
                return program
        return None

    def _keep(self, key: Hashable, program: Program) -> None:
        """Keep a program, and drop those used least recently. The core goes on with the few that it
        serves by itself."""
        with self._order:
            self._keep_in_order(key, program)
        while len(self._examples) > settings.programs_kept:
            self._examples.popitem(last=False)

    def _keep_in_order(self, key: Hashable, program: Program) -> None:
        alike = self._programs.setdefault(key, [])
        self._programs.move_to_end(key)
        before = len(alike)
        alike.insert(0, program)
        del alike[_MOST_ALIKE:]
        self._kept += len(alike) - before
        while self._kept > settings.programs_kept:
            oldest = next(iter(self._programs))
            self._programs[oldest].pop()
            self._kept -= 1
            if not self._programs[oldest]:
                del self._programs[oldest]

    def _note_changes(self, key: tuple[Hashable, ...], call: Call) -> None:
        """Note why there is no program, and tell the user, once, if the function is captured again
        and again."""
        programs = self._programs.get(key)
        change = next(programs[0].captured.guards.changes(), None) if programs else None
        why = change or self._difference(key, call, known=bool(programs))
        self.captures_why.append(why)
        self._changes += bool(self._programs)
        if self._changes == _OFTEN:
            what, cure = _READ if change else _GIVEN
            warn_user(
                f"{self!r} has been captured {self.captures} times, since {what}; the last time: "
                f"{why}; captures_why has more of them. {cure}"
            )

    def _difference(self, key: tuple[Hashable, ...], call: Call, *, known: bool) -> str:
        """In what a call differs from the one before; `known` are those that share memory."""
        if not self._programs:
            return "the first call"
        if known:
            return "arrays among the arguments share memory, or have gradients, otherwise"
        with self._order:
            latest = next(reversed(self._programs))
        assert isinstance(latest, tuple), "programs are kept by what they are for"
        before = next(reversed(self._examples.values()), None)
        found = changes.of_modes(latest[1:], key[1:])
        if found is None and before is not None:
            found = changes.of_arguments(self.function, before, call)
        return found or "arguments, or a mode, of another kind"

    def _sharing(self, arrays: Sequence[Any]) -> Hashable:
        """Which arrays share memory, with each other or with what the function has outside, and
        which of them show the same elements."""
        storages, places = [a._storage_id for a in arrays], [*map(place, arrays)]
        return tuple(
            (storages.index(s), places.index(p), s in self._outside and p)
            for s, p in zip(storages, places, strict=True)
        )

    def _are_apart(self, arrays: Sequence[Any]) -> bool:
        """Whether no array shares memory so: programs in the core are for such arrays only."""
        return self._sharing(arrays) == tuple((i, i, False) for i in range(len(arrays)))

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
            given = axes_of(self.dynamic, self.parameters, *call)
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
    ) -> Sized | Exception:
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
        sharing, backend = self._sharing_of(captured, arrays), backends.here(self.backend)
        made = Sized(captured, arrays, sharing, backend)
        known.programs.insert(0, made)
        del known.programs[_MOST_ALIKE:]
        return made

    def _keep_example(self, key: tuple[Hashable, ...], call: Call) -> None:
        self._examples.pop(key[0], None)  # the latest comes last
        self._examples[key[0]] = example(call)

    def _sharing_of(self, captured: Captured, arrays: Sequence[Any]) -> Hashable:
        """How arrays share memory, if that matters: for a program that writes to some."""
        if not captured.writes:
            return None
        outside = (source.array for source in captured.sources if isinstance(source, Outside))
        self._outside.update(array._storage_id for array in outside)
        self._outside |= captured.entangled | captured.guards.read_storages
        return self._sharing(arrays)

    def _captured(
        self, key: tuple[Hashable, ...], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Program:
        self.captures += 1
        arrays = list(trees.arrays_in((arguments, keywords)))
        call = self._seen((arguments, keywords))
        seen = list(trees.arrays_in(call))
        self._note_changes(key, call)
        captured = capture(
            self.function,
            *call,
            interrupted=lambda found: self._compiled(found, seen, arrays).run(arrays),
        )
        self._keep_example(key, call)
        program = self._compiled(captured, seen, arrays)
        program.sharing = self._sharing_of(captured, arrays)
        program.runs_to_check = _CHECKED_RUNS if self.check else 0
        self._keep(key, program)
        return program

    def _seen(self, call: Call) -> Call:
        """A call as the function sees it while it is captured."""
        return call

    def _compiled(self, captured: Captured, seen: Sequence[Any], arrays: Sequence[Any]) -> Program:
        """What was captured, compiled; its arguments were `seen`, and `arrays` are given."""
        return Program(captured, seen, backends.here(self.backend))

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

    @property
    def parameters(self) -> inspect.Signature:
        """What it is called with, by name."""
        return self._parameters() if self._parameters else parameters_of(self.function)

    @property
    def dynamic_in_files(self) -> Dynamic:
        """Which extents libraries leave open: none, where calls were to show it."""
        return False if self.dynamic == AUTO else self.dynamic

    @property
    def examples(self) -> OrderedDict[Hashable, Call]:
        """Calls like those that programs have served, without elements, by their descriptions."""
        for (call, axes), sizes in self.replay.served():
            found = with_extents(call, {axis: sizes[name] for axis, name in axes.items()})
            self._examples.setdefault(trees.description(found), found)
        return self._examples

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
        """As a decorator of methods: each instance has programs of its own, and each class."""
        if instance is None:
            return self
        of_class = isinstance(instance, type)  # behind classmethod
        known: Any = _of_classes.setdefault(instance, {}) if of_class else _attributes(instance)
        name = self if of_class else f"_hybridized_{self.function.__name__}"
        found = known.get(name)
        if found is not None and getattr(found.function, "__self__", instance) is not instance:
            known.pop(name, None)  # a copy of an object has what the object had
        if name not in known:  # of threads that come at once, one is first
            known.setdefault(name, self._like(self.function.__get__(instance, owner)))
        return known[name]

    def _like(self, function: Callable[..., Any]) -> Compiled[..., Any]:
        """Another function, hybridized in the same way."""
        return Compiled(function, self.backend, self.dynamic, check=self.check)


_of_classes: WeakKeyDictionary[type, dict[Any, Any]] = WeakKeyDictionary()


def _attributes(instance: Any) -> dict[str, Any]:
    """Where an object keeps its attributes."""
    found = getattr(instance, "__dict__", None)
    if isinstance(found, dict):
        return found
    raise ArgumentTypeError(
        f"hybridize: a method of {type(instance).__name__}, whose objects have no __dict__ to keep "
        "their programs in. Add '__dict__' to its __slots__, or hybridize a function."
    )


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
    programs: list[Sized] = field(default_factory=list)


def example(call: Call) -> Call:
    """A call like `call`, with arrays that have no elements."""

    def stand_in(array: Any) -> Any:
        return _core.unreadable(array._dtype_name, array.shape, "an example has no elements")

    made: Call = trees.replaced(call, stand_in)
    return made
