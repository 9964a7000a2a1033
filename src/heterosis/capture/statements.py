"""`if`, `while` and `for` of a rewritten function while it is captured: see `rewriting`.

What Python knows is decided as Python does. Where an array decides, both branches, or the body,
become programs, and the variables that they set are their results, if they hold arrays or numbers.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import heapq
import inspect
import operator
import os
import random
import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

from heterosis import _core, np
from heterosis.capture import reports, trees
from heterosis.capture.active import active, set_rewriting
from heterosis.capture.appended import Appended
from heterosis.capture.asked import asked
from heterosis.capture.code_names import CHANGING
from heterosis.capture.control import Control, as_single, as_truth
from heterosis.capture.definitions import Unwritable
from heterosis.capture.exactness import check_numbers
from heterosis.capture.inner import Filler, Inner, is_open
from heterosis.capture.lasting import Lasting
from heterosis.capture.replacements import (
    Entered,
    number_attribute,
    number_kind,
    replaced,
    with_callbacks,
)
from heterosis.capture.reports import Trial
from heterosis.capture.rewriting import is_rewritten, rewritten
from heterosis.capture.rows import Numbers, Rows, Sized, backwards, enumerated, rows_of, zipped
from heterosis.capture.states import Number
from heterosis.capture.syntax import RESULT
from heterosis.capture.tries import Try, caught, handler_of, suppressing, trying
from heterosis.capture.turns import Nothing, State, Unset, Variables, another, is_number, kind
from heterosis.ops.array.creation import zeros
from heterosis.ops.math.elementwise import logical_not
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes, raising
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray

# A `for` over so many rows or fewer is no loop of the program, which is shorter and faster then.
_FEW_ROWS = 4

_MAKERS = (list, dict, set, sorted, deque, iter, reversed, map, filter)
_CHANGERS = (  # of their first argument
    next, setattr, delattr, heapq.heapify, heapq.heappop, heapq.heappush, heapq.heappushpop,
    heapq.heapreplace, bisect.insort_left, bisect.insort_right, random.shuffle, operator.setitem,
    operator.delitem, numpy.copyto, numpy.put, numpy.place, numpy.putmask, numpy.fill_diagonal,
    numpy.put_along_axis, numpy.random.shuffle,
)  # fmt: skip
_SETTERS = frozenset({"__setattr__", "__delattr__", "__setitem__", "__delitem__"})
_CONTEXT_MANAGER = contextlib.contextmanager(lambda: iter(())).__code__
_CONTAINERS = (list, dict, set, bytearray, deque, numpy.ndarray)


_GOING: dict[Any, Callable[..., Any]] = {
    range: Numbers,
    enumerate: enumerated,
    zip: zipped,
    reversed: backwards,
}


class _Raised(Exception):
    """A branch, or a turn, has come to a `raise`."""

    def __init__(self, part: Inner):
        super().__init__("raised in a branch")
        self.part = part


class Loop(NamedTuple):
    """A `for`: what each item is given to, the body, and whether it has been left; the variables
    that it sets, those of them that are used elsewhere, and the lists that nobody looks at while
    turns append to them."""

    target: Callable[[Any], None]
    body: Callable[[], None]
    left: Callable[[], Any]
    variables: Variables
    used: Sequence[str]
    filled: Sequence[list[Any]]


class Flow:
    """What rewritten functions call."""

    UNSET = Unset()
    NOTHING = Nothing()

    variables = Variables

    def __init__(self) -> None:
        self._control = Control()

    # -- values -------------------------------------------------------------------------------

    def value(self, read: Callable[[], Any]) -> Any:
        """The value of a variable; UNSET, if it has none."""
        try:
            return read()
        except NameError:
            return self.UNSET

    def negated(self, value: Any) -> Any:
        """What `not value` is."""
        if not is_open(value):
            return not value
        return active().note_number(as_users_call(logical_not)(as_single(value)))

    def all_of(self, *values: Callable[[], Any]) -> Any:
        """What `a and b` is."""
        return self._first(values, stops=False)

    def any_of(self, *values: Callable[[], Any]) -> Any:
        """What `a or b` is."""
        return self._first(values, stops=True)

    def _first(self, values: Sequence[Callable[[], Any]], *, stops: bool) -> Any:
        """The first value that ends the row, or the last one; which one, an array may decide."""
        first, *rest = values
        found = first()
        if not rest:
            return found
        if not is_open(found):
            return found if bool(found) == stops else self._first(rest, stops=stops)

        def others() -> Any:
            return self._first(rest, stops=stops)

        branches = (lambda: found, others) if stops else (others, lambda: found)
        return self._chosen(found, *branches)

    def either(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What `then() if test else otherwise()` is."""
        if is_open(test):
            return self._chosen(test, then, otherwise)
        return then() if test else otherwise()

    def decided(self, value: Any) -> Any:
        """What decides whether an expression is computed that sets a variable with `:=`."""
        if is_open(value):
            raise _noted(
                CaptureError(
                    f"and, or, or if at {user_line()}: an array {kind(value)} decides whether a "
                    "variable is set with := behind it. Set it in a line of its own, or write an "
                    "if statement."
                )
            )
        return value

    def _chosen(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What one of two expressions gives, one of which may raise."""

        def settle(first: Inner, second: Inner) -> None:
            if first.fails != second.fails:
                _settle_failing(*((first, second) if first.fails else (second, first)))

        def given(by: Callable[[], Any]) -> Any:
            try:
                return by()
            except _Raised as error:
                error.part.fails = True
                return None

        return self._control.cond(test, lambda: given(then), lambda: given(otherwise), settle)

    def check(self, test: Any, message: Callable[[], Any]) -> None:
        """Do what `assert test, message()` does; where an array decides, whenever the program
        runs."""
        if is_open(test):
            found, trace = message(), active()
            if one := handler_of(trace, AssertionError):
                raise caught(AssertionError, one)
            error = AssertionError(*([] if found is self.NOTHING else [found]))
            trace.check(as_truth(test), raising.told(f"assert at {user_line()}", error))
        elif not test:
            found = message()
            error = AssertionError(*([] if found is self.NOTHING else [found]))
            self.raises(lambda: error)
            raise error

    def raises(self, error: Callable[[], Any]) -> None:
        """Tell of `raise error()`, which comes next: in a branch or a turn that arrays decide, the
        program fails when it comes there."""
        trace = active()
        if not isinstance(trace, Inner):
            return
        found = error()
        if found is self.NOTHING:
            found = sys.exc_info()[1]
        kind = found if isinstance(found, type) else type(found)
        if not issubclass(kind, Exception):
            raise _noted(
                CaptureError(
                    f"raise at {user_line()}: whether it happens depends on arrays, and what is "
                    "raised is no exception that is known. Raise one, as in raise ValueError(...)."
                )
            )
        if handler_of(trace, kind):
            return
        never = as_users_call(zeros)((), "bool")
        trace.check(never, raising.told(f"raise at {user_line()}", found))
        raise _Raised(trace)

    def trying(self, kinds: Callable[[], Any]) -> Any:
        """What the body of a `try` stands in, which catches errors of these kinds."""
        return trying(Try(active(), kinds, user_line()))

    # -- objects of Python ----------------------------------------------------------------------

    def called(self, function: Any) -> Any:
        """What is called in place of a function, so that its statements are captured too."""
        if any(function is one for one in _GOING):
            return functools.partial(self._going, function)
        if told := asked(function, active().guards.is_outside):
            active().outermost.once.note(told[0], cure=told[1])
        instead = replaced(function, self) or function
        if any(function is maker for maker in _MAKERS):
            return lambda *given, **named: self.made(instead(*given, **named))
        of = getattr(function, "__objclass__", None)
        is_method = of in _CONTAINERS and function.__name__ in CHANGING  # as in list.append(x, 1)
        is_method |= isinstance(function, types.WrapperDescriptorType) and (
            function.__name__ in _SETTERS
        )
        if is_method or any(function is changer for changer in _CHANGERS):
            return lambda given, *more, **named: function(self.changed(given), *more, **named)
        if isinstance(function, numpy.ufunc) or _is_of_numpy(function):
            return functools.partial(self._by_numpy, function)
        if function is print:
            return functools.partial(reports.print_once, function, active().outermost)
        self._check_method(function)
        found = _opened(function) if instead is function else instead
        if inspect.isgeneratorfunction(found):  # to go on is to change what it gives
            return lambda *given, **named: self.made(found(*given, **named))
        return found

    def _check_method(self, function: Any) -> None:
        """Tell of a container that a method changes, also with its arguments given before."""
        while isinstance(function, functools.partial):
            function = function.func
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if (isinstance(owner, _CONTAINERS) and name in CHANGING) or (
            isinstance(function, types.MethodWrapperType) and name in _SETTERS
        ):
            self.changed(owner)

    def _by_numpy(self, function: Any, *given: Any, **named: Any) -> Any:
        """What a function of NumPy's gives, which may write to arrays that it is handed."""
        written = named.get("out")
        outs = written if isinstance(written, tuple) else (written,)
        if isinstance(function, numpy.ufunc):
            outs += given[function.nin :]
        elif getattr(function, "__name__", "") == "at":
            outs += given[:1]
        for out in outs:
            if isinstance(out, numpy.ndarray):
                self.changed(out)
        return function(*given, **named)

    def entered(self, context: Any) -> Any:
        """What a `with` enters, and leaves again: by functions that may be the user's."""
        if isinstance(context, contextlib.suppress):
            kinds = vars(context)["_exceptions"]
            one = Try(active(), lambda: kinds, user_line())
            return suppressing(context, one)
        made: Any = getattr(context, "func", None)
        is_generator = isinstance(context, contextlib._GeneratorContextManager)
        if is_generator and _is_users(made) and not is_rewritten(made):
            _left_as_it_is(made, "its generator has been there before")
        enter, leave = (getattr(type(context), name, None) for name in ("__enter__", "__exit__"))
        opened = _opened(enter), _opened(leave)
        return context if opened == (enter, leave) else Entered(context, *opened)

    def item(self, owner: Any, key: Any) -> Any:
        """What `owner[key]` is."""
        if owner is os.environ:
            active().outermost.once.note("os.environ is asked for a setting")
        if isinstance(owner, defaultdict) and owner.default_factory and key not in owner:
            self.changed(owner)
        return owner[key]

    def attribute(self, owner: Any, name: str) -> Any:
        """What `owner.name` is; a property of the user's is a function, too."""
        if _is_chosen_number(owner):
            return number_attribute(owner, name)
        found = getattr(type(owner), name, None)
        if type(found) is property and isinstance(found.fget, types.FunctionType):
            opened = _opened(found.fget)
            if opened is not found.fget:
                return opened(owner)
        if type(found) is functools.cached_property and name not in vars(owner):
            self.changed(owner, name)
            vars(owner)[name] = _opened(found.func)(owner)
        return getattr(owner, name)

    def _going(self, function: Any, *given: Any, **named: Any) -> Any:
        """What one goes through that `range`, `zip` and the like make."""
        if any(isinstance(one, ndarray | Rows | Numbers) for one in given):
            return self.made(_GOING[function](*given, **named))
        found = self.made(function(*given, **named))
        ends = function is not range and all(map(_ends, given))
        return self.made(Sized(found)) if ends else found

    def rebound(self, name: str, read: types.FunctionType) -> None:
        """Tell of a variable outside of the function that is set next; `read` reads it."""
        reports.note_rebound(active(), name, read)
        if isinstance(active(), Inner):
            raise _noted(
                CaptureError(
                    f"{name}, a variable outside of the function, is set at {user_line()}, within "
                    "a branch or a loop that arrays decide: that would happen at the capture, "
                    "whatever they decide, and never again. Return what you compute."
                )
            )

    def matched(self, subject: Any) -> Any:
        """What `match` looks at."""
        if is_open(subject):
            raise _noted(
                CaptureError(
                    f"match at {user_line()}: which case it is depends on an array "
                    f"{kind(subject)}, which is not known yet. Compare with if and elif."
                )
            )
        return subject

    def made(self, container: Any) -> Any:
        """A container that is made here, and which may be changed here."""
        active().made_here[id(container)] = container
        return container

    def same(self, one: Any, other: Any) -> Any:
        """What `one is other` is."""
        trace = active()
        if any(map(_may_be_number, (one, other))):
            return self._same_number(one, other)
        chosen = trace.outermost.chosen_objects
        open_ = id(one) in chosen and id(other) in chosen
        if is_open(one) and is_open(other):
            open_ = not {*trace.may_be(one)}.isdisjoint(trace.may_be(other))
        if open_ and one is not other:
            raise _noted(
                CaptureError(
                    f"is at {user_line()}: whether two names stand for one object depends on "
                    "arrays. Compare what they hold, or keep a variable that says it."
                )
            )
        return one is other

    def _same_number(self, one: Any, other: Any) -> Any:
        """The same where one is a number that arrays have chosen: there is one True and one False,
        and nobody knows of how many other numbers."""
        mixed = active().outermost.mixed
        is_mixed = any(getattr(x, "_storage_id", None) in mixed for x in (one, other))
        if not is_mixed and not all(map(active().stands_for_number, (one, other))):
            return False
        kinds = [number_kind(one), number_kind(other)]
        if is_mixed or (bool not in kinds and kinds[0] is kinds[1]):
            raise _noted(
                CaptureError(
                    f"is at {user_line()}: whether two objects, one of which is a number that "
                    "arrays have chosen, or may be one, are the same is not known. Compare them, "
                    "a == b."
                )
            )
        return kinds[0] is kinds[1] and active().note_number(one == other)

    def augmented(self, value: Any, method: str) -> None:
        """Tell of `value += ...`, or another operator that some objects do in place."""
        if hasattr(type(value), method):
            self.changed(value)

    def changed(self, given: Any, attribute: str | None = None) -> Any:
        """An object that is about to be changed, or an attribute of it: within a branch or a turn,
        an array or one that was made there. Others would be changed by branches that do not run,
        and once for all turns."""
        trace = active()
        if id(given) in trace.outermost.chosen_objects:
            raise _noted(_chosen_changed(given))
        kept = isinstance(given, ndarray | types.ModuleType) or id(given) in trace.made_here
        if isinstance(trace, Inner) and not kept:
            raise _noted(
                CaptureError(
                    f"an object of type {type(given).__name__} is changed at {user_line()}, within "
                    "a branch or a loop that arrays decide: that would happen at the capture, "
                    "whatever they decide, and never again. Keep what you compute in variables, "
                    "arrays and numbers, and change the object outside."
                )
            )
        reports.note_changed(trace, given, attribute)
        return given

    # -- statements ---------------------------------------------------------------------------

    def choose(
        self,
        test: Any,
        then: Callable[[], None],
        otherwise: Callable[[], None],
        variables: Variables,
    ) -> None:
        """Do `if test: then()`, `else: otherwise()`, which set the `variables`."""
        if not is_open(test):
            (then if test else otherwise)()
            return
        before, place = variables.get(), user_line()

        def run(branch: Callable[[], None]) -> tuple[Any, ...]:
            variables.put(before)
            return _set_by(branch, variables, before)

        def settle(first: Inner, second: Inner) -> None:
            if first.fails != second.fails:
                _settle_failing(*((first, second) if first.fails else (second, first)))
                return
            both = []
            for name, one, other in zip(variables.names, first.result, second.result, strict=True):
                found = _settled(first, second, one, other)
                if found is None:
                    lines = first.line_of(one), second.line_of(other)
                    first.outermost.unset[name] = _of_branches(name, place, one, other, lines)
                both.append(found or (self.UNSET, self.UNSET))
            first.result = tuple(one for one, _ in both)
            second.result = tuple(other for _, other in both)

        found = self._control.cond(test, lambda: run(then), lambda: run(otherwise), settle=settle)
        variables.put(found)

    def repeat(
        self,
        test: Callable[[], Any],
        body: Callable[[], None],
        variables: Variables,
    ) -> None:
        """Do `while test(): body()`, which sets the `variables`."""
        holds = test()
        while not is_open(holds):
            if not holds:
                return
            body()
            holds = test()
        state = State(variables, user_line(), numbers=True)

        def asked(*values: Any) -> Any:
            variables.put(state.all(values))
            return test()

        def turn(*values: Any) -> tuple[Any, list[Any]]:
            before = state.all(values)
            variables.put(before)
            return [], state.carried(_set_by(body, variables, before))

        def loop(given: list[Any]) -> list[Any]:
            return self._control.while_loop(asked, turn, given, None, holds)[1]

        last = state.run(loop)
        variables.put(state.behind(last))

    def each(self, rows: Any, *loop: Any) -> None:
        """Do `for target in rows: body()`, which sets the variables of a `Loop`."""
        if isinstance(rows, Numbers):
            self._each_number(rows, Loop(*loop))
        else:
            self._each_of(rows, Loop(*loop))

    def _each_number(self, numbers: Numbers, loop: Loop) -> None:
        variables = loop.variables
        state = State(variables, user_line(), numbers=True)

        def asked(*values: Any) -> Any:
            *before, number = values
            variables.put(state.all(before))
            return self.all_of(lambda: self.negated(loop.left()), lambda: numbers.is_left(number))

        def turn(*values: Any) -> tuple[Any, list[Any]]:
            *before, number = values
            begun = state.all(before)
            variables.put(begun)

            def run() -> None:
                loop.target(number)
                loop.body()

            after = _set_by(run, variables, begun)
            return [], [*state.carried(after), number + numbers.step]

        def run(given: list[Any]) -> Sequence[Any]:
            first: Any = Number(numbers.start, "int64")
            if isinstance(numbers.start, ndarray):
                first = active().note_number(np.array(numbers.start, dtype="int64").reshape(()))
            return self._control.while_loop(asked, turn, [*given, first], None)[1][:-1]

        variables.put(state.behind(state.run(run)))

    def _each_of(self, items: Any, loop: Loop) -> None:
        """One item after the other; rows of arrays in a loop of the program, if that can be."""
        if hasattr(items, "__next__"):  # the items that are taken are gone
            self.changed(items)
        rows = rows_of(items) if isinstance(items, Rows) or is_open(items) else None
        for done, item in enumerate(items if rows is None else rows):
            # With the first row gone, every variable is known that turns set.
            is_tried = rows is not None and done < 2 and rows.count - done > _FEW_ROWS
            if rows is not None and is_tried and self._scanned(rows, done, loop):
                return
            self._turn(item, loop)
            left = loop.left()
            if is_open(left):
                _check_bounded(items)
            elif left:
                return

    def _turn(self, item: Any, loop: Loop) -> None:
        """A turn, if the loop has not been left."""

        def run() -> None:
            loop.target(item)
            loop.body()

        left = loop.left()
        if is_open(left):
            self.choose(self.negated(left), run, lambda: None, loop.variables)
        else:
            run()

    def _scanned(self, rows: Rows, done: int, loop: Loop) -> bool:
        """Whether the rows that are left have become a loop of the program. Where one turn cannot
        stand for all, nothing has happened."""
        trial, before = Trial(active()), loop.variables.get()
        try:
            self._scan(rows, done, loop, trial)
        except Exception:
            if active().outermost.has_stepped:  # to run once more would count another update
                raise
            trial.undo()
            loop.variables.put(before)
            return False
        trial.end()
        return True

    def _scan(self, rows: Rows, done: int, loop: Loop, trial: Trial) -> None:
        variables = loop.variables
        state = State(variables, user_line(), numbers=False, used=loop.used)
        given = [array[done:] if done else array for array in rows.arrays()]

        def run(begun: list[Any]) -> Sequence[Any]:
            appended = Appended(loop.filled, begun, given)

            def turn(lines: Sequence[Any], values: Sequence[Any]) -> tuple[Any, list[Any]]:
                inner = active()
                assert isinstance(inner, Inner), "turns are captured apart"
                trial.begin()
                appended.begin(inner, [*values, *lines])
                before = state.all(values)
                variables.put(before)

                def run() -> None:
                    self._turn(rows.item(iter(lines)), loop)

                after = state.carried(_set_by(run, variables, before))
                found = appended.end(after)
                check_numbers(inner, lines, rows.numbers, [*after, *found])
                return found, after

            stacked, last = self._control.foreach(turn, given, begun, copies=False, over=rows.over)
            appended.fill(self.append, stacked, last, rows.count - done)
            return last

        variables.put(state.behind(state.run(run)))

    def append(self, container: Any, *values: Any) -> None:
        """Do `container.append(*values)`, for a list that nobody looks at while a loop turns."""
        trace = active()
        filled = trace.filled.get(id(container)) if isinstance(trace, Inner) else None
        if filled is None:
            self.called(container.append)(*values)
        else:
            filled.extend(values)


def _is_chosen_number(value: Any) -> bool:
    return isinstance(value, ndarray) and active().stands_for_number(value)


def _may_be_number(value: Any) -> bool:
    """Whether it is a chosen number, or what a choice has joined of a number and an array."""
    return isinstance(value, ndarray) and (
        active().stands_for_number(value) or value._storage_id in active().outermost.mixed
    )


def _chosen_changed(given: Any) -> CaptureError:
    kind_of = type(given).__name__
    return CaptureError(
        f"a {kind_of} is changed at {user_line()} that may be another one as well: which one, "
        "arrays have decided, and one of them is known by another name. Let the choice or the loop "
        f"give a {kind_of} of its own, {kind_of}(...), or change none of them behind it."
    )


def _set_by(
    run: Callable[[], None], variables: Variables, before: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The variables behind `run()`; those `before`, if it comes to a `raise`: nothing follows."""
    try:
        run()
    except _Raised as error:
        error.part.fails = True
        return before
    return variables.get()


def _ends(items: Any) -> bool:
    """Whether one knows that going through the items comes to an end."""
    return isinstance(items, Rows | Sized) or hasattr(items, "__len__")


def _check_bounded(items: Any) -> None:
    """Refuse what may never end, where arrays decide when a loop over it is left."""
    if not _ends(items):
        raise _noted(
            CaptureError(
                f"the loop at {user_line()} goes over {type(items).__name__}, and arrays decide "
                "when it is left. Loop over an array, np.arange(n), or a list instead."
            )
        )


def _noted(error: CaptureError) -> CaptureError:
    modes.refusals.note(error)
    return error


# -- variables -------------------------------------------------------------------------------------


def _is_carried(value: Any) -> bool:
    return isinstance(value, ndarray) or is_number(value)


def _settled(first: Inner, second: Inner, one: Any, other: Any) -> tuple[Any, Any] | None:
    """What a variable is behind both branches: the same object for both, or values of one type and
    structure; None if there is no such thing."""
    if one is other:
        return one, other
    if isinstance(one, Nothing) and trees.has_arrays(other):
        return _like(second, other), other
    if isinstance(other, Nothing) and trees.has_arrays(one):
        return one, _like(first, one)
    if isinstance(one, Nothing) and is_number(other):
        return Filler(second.value_of(other).type), other
    if isinstance(other, Nothing) and is_number(one):
        return one, Filler(first.value_of(one).type)
    if _is_carried(one) and _is_carried(other):
        alike = first.value_of(one).shape == second.value_of(other).shape
        return (one, other) if alike else None
    if not (_is_container(one) and _is_container(other)):
        return None
    if trees.outline(one) != trees.outline(other):
        return None
    pairs = zip(*map(trees.items_in, (one, other)), strict=True)
    return None if None in [_settled(first, second, *pair) for pair in pairs] else (one, other)


def _is_container(value: Any) -> bool:
    return isinstance(value, tuple | list | dict)


def _settle_failing(failing: Inner, other: Inner) -> None:
    """Let a branch behind which nothing comes have what the other has: nobody looks at it."""
    failing.result = _like(other, other.result)


def _like(branch: Inner, tree: Any) -> Any:
    """What a branch gives, with fillers in place of arrays."""
    return trees.replaced(tree, lambda array: Filler(branch.value_of(array).type))


def _of_branches(name: str, place: str, one: Any, other: Any, lines: Sequence[str]) -> str:
    what = "what is returned" if name == RESULT else name
    made = " and ".join(line for line in lines if line)
    return (
        f"{what} is {kind(one)} in one branch of the choice at {place}, and "
        f"{another(one, other)} in the other{f' (made at {made})' if made else ''}: an array "
        "decides which one runs. Give it arrays or numbers of one shape in both, or tuples, lists, "
        "dictionaries and named tuples of these."
    )


# -- functions -------------------------------------------------------------------------------------


_flow = Flow()


def _is_of_numpy(function: Any) -> bool:
    """Whether it is one of NumPy's functions, or `at` of one."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or ""
    return isinstance(owner, numpy.ufunc) or str(module).partition(".")[0] == "numpy"


def _opened(function: Any) -> Any:
    """A user's function, rewritten; anything else as it is."""
    if isinstance(function, types.MethodType):
        inside = _opened(function.__func__)
        return (
            function if inside is function.__func__ else types.MethodType(inside, function.__self__)
        )
    if isinstance(function, functools.partial):
        inside = _opened(function.func)
        if inside is function.func:
            return function
        return functools.partial(inside, *function.args, **function.keywords)
    if isinstance(function, types.FunctionType):
        if function.__code__ is _CONTEXT_MANAGER and hasattr(function, "__wrapped__"):
            return contextlib.contextmanager(_opened(function.__wrapped__))
        return _rewritten(function) if active().guards.users.is_function(function) else function
    if isinstance(function, type):
        return functools.partial(_constructed, function) if _is_built(function) else function
    if isinstance(getattr(function, "__self__", None), list) and function.__name__ == "sort":
        return functools.partial(with_callbacks, function, _flow)
    call = getattr(type(function), "__call__", None)  # noqa: B004 - it may be the user's
    if isinstance(call, types.FunctionType) and active().guards.users.is_function(call):
        return types.MethodType(_opened(call), function)
    return function


def _is_users(function: Any) -> bool:
    is_function = isinstance(function, types.FunctionType)
    return is_function and active().guards.users.is_function(function)


def _is_built(kind: type) -> bool:
    """Whether a function of the user's makes or fills the objects of a class, as `type` calls it,
    and has a source: those of named tuples and dataclasses have none."""
    makers = (kind.__new__, _filling(kind))
    written = [m for m in makers if _is_users(m) and not m.__code__.co_filename.startswith("<")]
    return bool(written) and type(kind).__call__ is type.__call__


def _filling(kind: type) -> Any:
    return getattr(kind, "__init__")  # noqa: B009 - the class's, and not that of an object


def _constructed(kind: type, /, *given: Any, **named: Any) -> Any:
    """What `kind(...)` is, by its rewritten functions."""
    by = kind.__new__
    made = _flow.made((_opened(by) if _is_users(by) else by)(kind, *given, **named))
    if isinstance(made, kind):
        filled_by = _filling(type(made))
        (_opened(filled_by) if _is_users(filled_by) else filled_by)(made, *given, **named)
    return made


def _rewritten(function: types.FunctionType) -> types.FunctionType:
    """A function, rewritten, if that can be; within a branch or a turn, that has to be."""
    try:
        return rewritten(function, _lasting if inspect.isgeneratorfunction(function) else _flow)
    except Unwritable as error:
        active().outermost.as_they_are[function.__code__] = str(error)
        _left_as_it_is(function, str(error))
        return function


def _left_as_it_is(function: types.FunctionType, why: str) -> None:
    """Refuse a function that is not rewritten, within a branch or a turn."""
    if isinstance(active(), Inner):
        raise _noted(
            CaptureError(
                f"{function.__qualname__} is called at {user_line()}, within a branch or a "
                f"loop that arrays decide, and cannot be rewritten: {why}. Nobody sees what "
                "it changes. Call it outside, and hand in what it gives."
            )
        ) from None


_lasting = Lasting(_flow)


def install() -> None:
    """Let captures rewrite what users have written."""
    set_rewriting(_opened)
