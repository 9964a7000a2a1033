"""`if`, `while` and `for` of a rewritten function while it is captured: see `rewriting`.

What Python knows is decided as Python does. Where an array decides, both branches, or the body,
become programs, and the variables that they set are their results, if they hold arrays or numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from heterosis import _core, np
from heterosis.capture import trees
from heterosis.capture.active import active, set_rewriting
from heterosis.capture.appended import Appended
from heterosis.capture.control import Control, as_single, as_truth
from heterosis.capture.exactness import check_numbers
from heterosis.capture.inner import Filler, Inner, is_open
from heterosis.capture.objects import Objects, ends, noted
from heterosis.capture.reports import Trial
from heterosis.capture.rows import Numbers, Rows, rows_of
from heterosis.capture.states import Number
from heterosis.capture.syntax import RESULT
from heterosis.capture.tries import Try, caught, handler_of, trying
from heterosis.capture.turns import Nothing, State, Unset, Variables, another, is_number, kind
from heterosis.ops.array.creation import zeros
from heterosis.ops.math.elementwise import logical_not
from heterosis.ops.record import as_users_call
from heterosis.runtime import raising
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray

# A `for` over so many rows or fewer is no loop of the program, which is shorter and faster then.
_FEW_ROWS = 4


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


class Flow(Objects):
    """What rewritten functions call."""

    UNSET = Unset()
    NOTHING = Nothing()

    variables = Variables

    def __init__(self) -> None:
        super().__init__()
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
            raise noted(
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
            raise noted(
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


def _check_bounded(items: Any) -> None:
    """Refuse what may never end, where arrays decide when a loop over it is left."""
    if not ends(items):
        raise noted(
            CaptureError(
                f"the loop at {user_line()} goes over {type(items).__name__}, and arrays decide "
                "when it is left. Loop over an array, np.arange(n), or a list instead."
            )
        )


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


_flow = Flow()


def install() -> None:
    """Let captures rewrite what users have written."""
    set_rewriting(_flow.opened)
