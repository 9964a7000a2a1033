"""`if`, `while` and `for` of a rewritten function while it is captured: see `rewriting`.

What Python knows is decided as Python does. Where an array decides, both branches, or the body,
become programs, and the variables that they set are their results, if they hold arrays or numbers.
"""

from __future__ import annotations

import functools
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from heterosis import _core
from heterosis.capture.captured import Outside
from heterosis.capture.control import Control, Filler, Inner, Number, StateError
from heterosis.capture.rewriting import RESULT, Unwritable, rewritten
from heterosis.capture.trace import active, set_rewriting
from heterosis.ir.types import DEFAULT_FLOAT, TensorType, is_float
from heterosis.ops.array.creation import zeros
from heterosis.ops.math.elementwise import logical_not
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import PACKAGE, user_line

ndarray = _core.ndarray
_LIBRARIES = tuple(
    path for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(name))
)  # fmt: skip


_MAKERS = (list, dict, set, sorted, deque)
_CONTAINERS = (list, dict, set, bytearray, deque)
_CHANGING = frozenset((
    "append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "add", "discard",
    "update", "setdefault", "popitem", "appendleft", "popleft", "__setitem__", "__setattr__",
))  # fmt: skip


class _Unset:
    """What a variable is that has no value."""


class _Nothing:
    """What a function has returned that has not returned yet."""


class Variables(NamedTuple):
    """The variables of a function that a statement sets: how to read and set them, and their
    names. UNSET stands for no value."""

    get: Callable[[], tuple[Any, ...]]
    put: Callable[[tuple[Any, ...]], None]
    names: tuple[str, ...]


class Flow:
    """What rewritten functions call."""

    UNSET = _Unset()
    NOTHING = _Nothing()

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
        return as_users_call(logical_not)(value.reshape(())) if is_open(value) else not value

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
        return self._control.cond(found, *branches)

    def either(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What `then() if test else otherwise()` is."""
        if is_open(test):
            return self._control.cond(test, then, otherwise)
        return then() if test else otherwise()

    def check(self, test: Any, message: Callable[[], Any]) -> None:
        """Do what `assert test, message()` does."""
        if is_open(test):
            raise _noted(
                CaptureError(
                    f"assert at {user_line()}: whether it holds depends on arrays, and a program "
                    "does not look at that yet. Check the result outside of the function."
                )
            )
        if not test:
            found = message()
            raise AssertionError(*([] if found is None else [found]))

    def raises(self) -> None:
        """Tell of a `raise` that comes next."""
        if isinstance(active(), Inner):
            raise _noted(
                CaptureError(
                    f"raise at {user_line()}: whether it happens depends on arrays, and a program "
                    "does not look at that yet. Check before the call, or the result behind it."
                )
            )

    # -- objects of Python ----------------------------------------------------------------------

    def called(self, function: Any) -> Any:
        """What is called in place of a function, so that its statements are captured too."""
        if any(function is maker for maker in _MAKERS):
            return lambda *given, **named: self.made(function(*given, **named))
        owner = getattr(function, "__self__", None)
        if isinstance(owner, _CONTAINERS) and getattr(function, "__name__", "") in _CHANGING:
            self.changed(owner)
        return _opened(function)

    def made(self, container: Any) -> Any:
        """A container that is made here, and which may be changed here."""
        active().made_here[id(container)] = container
        return container

    def changed(self, given: Any) -> Any:
        """An object that is about to be changed: within a branch or a turn, an array or one that
        was made there. Others would be changed by branches that do not run, and once for all
        turns."""
        trace = active()
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
            branch()
            return variables.get()

        def settle(first: Inner, second: Inner) -> None:
            both = []
            for name, *pair in zip(variables.names, first.result, second.result, strict=True):
                found = _settled(first, second, *pair)
                if found is None:
                    first.outermost.unset[name] = _of_branches(name, place, *pair)
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
        state = _State(variables, user_line())

        def asked(*values: Any) -> Any:
            variables.put(state.all(values))
            return test()

        def turn(*values: Any) -> tuple[Any, list[Any]]:
            variables.put(state.all(values))
            body()
            return [], state.carried(variables.get())

        def loop(given: list[Any]) -> list[Any]:
            return self._control.while_loop(asked, turn, given, None, holds)[1]

        last = state.run(loop)
        variables.put(state.behind(last))

    def each(
        self,
        rows: Any,
        target: Callable[[Any], None],
        body: Callable[[], None],
        left: Callable[[], Any],
        variables: Variables,
    ) -> None:
        """Do `for target in rows: body()`, which sets the `variables`, until `left()`."""
        if isinstance(rows, ndarray) and is_open(rows):
            self._each_row(rows, target, body, left, variables)
            return
        for item in rows:
            target(item)
            body()
            found = left()
            if is_open(found):
                raise _noted(
                    CaptureError(
                        f"the loop at {user_line()} goes over {type(rows).__name__}, and arrays "
                        "decide when it is left. Loop over an array, np.arange(n), instead."
                    )
                )
            if found:
                return

    def _each_row(
        self,
        rows: Any,
        target: Callable[[Any], None],
        body: Callable[[], None],
        left: Callable[[], Any],
        variables: Variables,
    ) -> None:
        state = _State(variables, user_line())

        def turn(given: Sequence[Any], values: Sequence[Any]) -> tuple[Any, list[Any]]:
            variables.put(state.all(values))

            def run() -> None:
                target(given[0])
                body()

            self.choose(self.negated(left()), run, lambda: None, variables)
            return [], state.carried(variables.get())

        last = state.run(lambda given: self._control.foreach(turn, [rows], given)[1])
        variables.put(state.behind(last))


def _noted(error: CaptureError) -> CaptureError:
    modes.refusals.note(error)
    return error


def is_open(value: Any) -> bool:
    """Whether it is an array that has no elements while the function is captured."""
    if not isinstance(value, ndarray) or not modes.is_capturing():
        return False
    trace = active()
    while True:
        cell = trace.cells.get(value._storage_id)
        if cell is not None and not (isinstance(cell.source, Outside) and not cell.writes):
            return True
        if not isinstance(trace, Inner):
            return False
        trace = trace.outer


# -- variables -------------------------------------------------------------------------------------


def _is_carried(value: Any) -> bool:
    return isinstance(value, ndarray | bool | int | float)


def _settled(first: Inner, second: Inner, one: Any, other: Any) -> tuple[Any, Any] | None:
    """What a variable is behind both branches: the same object for both, or values of one type and
    structure; None if there is no such thing."""
    if one is other:
        return one, other
    if isinstance(one, _Nothing) and _is_carried(other):
        return Filler(second.value_of(other).type), other
    if isinstance(other, _Nothing) and _is_carried(one):
        return one, Filler(first.value_of(one).type)
    if _is_carried(one) and _is_carried(other):
        alike = first.value_of(one).shape == second.value_of(other).shape
        return (one, other) if alike else None
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        found = [_settled(first, second, one[key], other[key]) for key in one]
    elif isinstance(one, tuple | list) and type(one) is type(other) and len(one) == len(other):
        found = [_settled(first, second, *pair) for pair in zip(one, other, strict=True)]
    else:
        return None
    return None if None in found else (one, other)


def _of_branches(name: str, place: str, one: Any, other: Any) -> str:
    what = "what is returned" if name == RESULT else name
    return (
        f"{what} is {_kind(one)} in one branch of the choice at {place}, and {_kind(other)} in "
        "the other: an array decides which one runs. Give it arrays or numbers of one shape in "
        "both."
    )


def _kind(value: Any) -> str:
    if isinstance(value, ndarray):
        return f"{value._dtype_name}[{', '.join(map(str, value.shape))}]"
    return "not set" if isinstance(value, _Unset) else f"{value!r:.40}"


def _begun(value: Any) -> Any:
    """What a loop carries at first. A float is one of those that the arrays hold."""
    if type(value) is not float:
        return value
    dtypes = {a._dtype_name for a in active().outermost.held if is_float(a._dtype_name)}
    return Number(value, "float64" if dtypes == {"float64"} else DEFAULT_FLOAT)


class _Returns(Exception):
    """A turn returns an array: what is returned has to be carried."""

    def __init__(self, position: int, type_: TensorType):
        super().__init__(position)
        self.position, self.type = position, type_


class _State:
    """The variables of a loop: those that hold arrays or numbers are carried."""

    def __init__(self, variables: Variables, place: str):
        self.names, self.before, self.place = variables.names, variables.get(), place
        # What the carried ones begin with, by their positions.
        self._again: set[int] = set()  # numbers that have begun with another type
        self._begun = {
            i: _begun(value) for i, value in enumerate(self.before) if _is_carried(value)
        }

    def all(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of all variables at the beginning of a turn."""
        found = dict(enumerate(self.before)) | dict(zip(self._begun, values, strict=True))
        return tuple(found.values())

    def carried(self, after: tuple[Any, ...]) -> list[Any]:
        """What a turn hands on."""
        for i, (name, value) in enumerate(zip(self.names, after, strict=True)):
            before = self.before[i]
            if i in self._begun or isinstance(before, _Unset) or value is before:
                continue
            if isinstance(before, _Nothing) and isinstance(value, ndarray):
                raise _Returns(i, TensorType(value.shape, value._dtype_name))
            raise _noted(
                CaptureError(
                    f"{name} is {_kind(before)} before the loop at {self.place}, and "
                    f"{_kind(value)} behind a turn: how often it turns depends on arrays. Carry "
                    "arrays and numbers from turn to turn."
                )
            )
        return [after[i] for i in self._begun]

    def run(self, loop: Callable[[list[Any]], Sequence[Any]]) -> Sequence[Any]:
        """The carried values behind the loop. A number begins with the type that it has then; what
        a turn may return, with zeros."""
        while True:
            try:
                return loop(list(self._begun.values()))
            except _Returns as error:
                begun = as_users_call(zeros)(error.type.shape, error.type.dtype)
                self._begun = dict(sorted({**self._begun, error.position: begun}.items()))
            except StateError as error:
                position = list(self._begun)[error.position]
                number = self.before[position]
                if error.shape or isinstance(number, ndarray) or position in self._again:
                    raise
                modes.refusals.first = None
                self._again.add(position)
                self._begun[position] = Number(number, error.dtype)

    def behind(self, last: Sequence[Any]) -> tuple[Any, ...]:
        """The values of all variables behind the loop."""
        found = self.all(last)
        for name, value in zip(self.names, found, strict=True):
            if isinstance(value, _Unset):
                active().outermost.unset[name] = (
                    f"{name} is set in the loop at {self.place} alone, which may take no turn: an "
                    "array decides. Set it before the loop too."
                )
        return found


# -- functions -------------------------------------------------------------------------------------


_flow = Flow()


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
    plain = isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__")
    if not plain or not _is_users(function.__code__.co_filename):
        return function
    try:
        return rewritten(function, _flow)
    except Unwritable:
        return function


def _is_users(path: str) -> bool:
    return not path.startswith((PACKAGE, *_LIBRARIES))


def install() -> None:
    """Let captures rewrite what users have written."""
    set_rewriting(_opened)
