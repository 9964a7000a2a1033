"""What happens once, while a function is captured: told of when the capture ends."""

from __future__ import annotations

import functools
import sys
import types
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from heterosis import _core
from heterosis.capture import trees
from heterosis.ir.traced_sizes import is_traced, value_of
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureWarning
from heterosis.runtime.lines import user_frame

if TYPE_CHECKING:
    from heterosis.capture.trace import Trace

ndarray = _core.ndarray


class Once:
    """The lines of what a capture does that no later call does again."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], _Noted] = {}
        self._settle: list[Callable[[], None]] = []

    def note(
        self, what: str, *, cure: str = "", is_meant: Callable[[], bool] = lambda: False
    ) -> None:
        """Something happens now, at the user's line; at the end, `is_meant` may say that it is to
        happen once."""
        frame, _ = user_frame()
        place = frame.f_code.co_filename, frame.f_lineno
        self._lines.setdefault(place, _Noted(what, cure, frame.f_globals, is_meant))

    def settle(self, what: Callable[[], None]) -> None:
        """Something from outside is changed, in which `what` puts plain numbers at the end."""
        self._settle.append(what)

    def end(self) -> None:
        """Leave no sizes of the capture behind."""
        for settle in self._settle:
            settle()
        self._settle.clear()

    def tell(self) -> None:
        """Warn of each line, once in a process as far as the user's filters say."""
        for (file, line), noted in self._lines.items():
            if noted.is_meant():
                continue
            warnings.warn_explicit(
                f"{noted.what} while the hybridized function is captured, and not at later calls."
                f"{noted.cure}",
                CaptureWarning,
                file,
                line,
                module=noted.variables.get("__name__"),
                registry=noted.variables.setdefault("__warningregistry__", {}),
            )


class _Noted(NamedTuple):
    """What happens in a line, and the global variables there."""

    what: str
    cure: str
    variables: dict[str, Any]
    is_meant: Callable[[], bool]


_RETURN = " Return what is to be kept."


def note_rebound(trace: Trace, name: str, read: types.FunctionType) -> None:
    """Note that a variable outside of a function is set, unless the capture has made it."""
    cells = dict(zip(read.__code__.co_freevars, read.__closure__ or (), strict=True))
    if name not in cells or trace.guards.is_outside(cells[name]):
        trace.outermost.once.settle(_variable(name, cells, read))
        trace.outermost.once.note(
            f"{name}, a variable outside of the function, is set", cure=_RETURN
        )


def note_changed(trace: Trace, given: Any, attribute: str | None) -> None:
    """Note that an object, or an attribute of it, is changed that was there before the capture.
    What is made at first use, a layer or a width, is to be made once."""
    if isinstance(given, ndarray) or not (trace.guards.is_outside(given) or _is_module(given)):
        return
    kind, once = type(given).__name__, trace.outermost.once
    once.settle(functools.partial(_settle, given, attribute))
    if attribute is None:
        once.note(f"an object of type {kind} from outside is changed", cure=_RETURN)
        return
    is_new = getattr(given, attribute, None) is None
    once.note(
        f"{kind}.{attribute} is set",
        cure=_RETURN,
        is_meant=lambda: is_new and not trees.has_arrays(getattr(given, attribute, None)),
    )


def _is_module(given: Any) -> bool:
    """Whether it is what `globals()` gives."""
    module = sys.modules.get(given.get("__name__", "")) if isinstance(given, dict) else None
    return getattr(module, "__dict__", None) is given


def _variable(
    name: str, cells: Mapping[str, types.CellType], read: types.FunctionType
) -> Callable[[], None]:
    """What settles a variable outside of a function, which `read` reads."""
    if name in cells:
        return functools.partial(_settle, cells[name], "cell_contents")
    return functools.partial(_settle, read.__globals__, name)


def _settle(given: Any, name: str | None) -> None:
    """Put plain numbers in place of sizes in an object, or in what it has under a name."""
    if isinstance(given, dict) and name is not None:
        _settle_item(given, name)
    elif name is not None:
        found = getattr(given, name, None)
        if (plain := _plain(found)) is not found:
            setattr(given, name, plain)
    elif isinstance(given, dict | list | deque):
        settle_keys(given)
        for key in list(given) if isinstance(given, dict) else range(len(given)):
            _settle_item(given, key)
    elif isinstance(given, set):
        found = [*map(_plain, given)]
        given.clear()  # not one by one: a size has a hash of its own in the framework
        given.update(found)


def _settle_item(given: Any, key: Any) -> None:
    if key in given if isinstance(given, dict) else True:
        found = given[key]
        if (plain := _plain(found)) is not found:
            given[key] = plain


def _plain(found: Any) -> Any:
    """A value without sizes: itself, if it has none."""
    settle_keys(found)
    has_sizes = any(map(is_traced, trees.leaves(found)))
    return trees.mapped(found, value_of) if has_sizes else found


def settle_keys(tree: Any) -> None:
    """Put plain numbers in place of sizes in the keys of dictionaries: what was found by its hash
    holds for that size alone."""
    for one in trees.containers_in(tree):
        if isinstance(one, dict) and any(map(is_traced, trees.leaves(tuple(one)))):
            items = [(_plain(key), item) for key, item in one.items()]
            one.clear()  # all at once: a size has a hash of its own in the framework
            one.update(items)


def print_once(show: Callable[..., None], trace: Trace, *values: Any, **named: Any) -> None:
    """`show`, which is `print`, in a function that is captured by `trace`."""
    trace.once.note("this prints", cure=" npx.print prints at every call.")
    texts = map(str, values)  # while the line that prints is the one that runs
    _print(functools.partial(show, *texts, **named), trace.trial)


def _print(show: Callable[[], None], trial: Trial | None) -> None:
    """Print now, or when it is known that a trial has been possible."""
    if trial is None:
        show()
    else:
        trial.printed.append(show)


class Trial:
    """A part of a capture that may turn out not to be possible: as if nothing had happened then."""

    def __init__(self, trace: Trace):
        self._trace, self._outer = trace, trace.outermost.trial
        self._refusal = modes.refusals.first
        prints = trace.prints
        lists: tuple[list[Any], ...] = (
            trace.calls,
            trace.steps,
            trace.chosen,
            prints.items,
            prints.values,
        )
        self._lengths = [(rows, len(rows)) for rows in lists]
        self._unset = dict(trace.outermost.unset)
        self.printed: list[Callable[[], None]] = []
        trace.outermost.trial = self

    def begin(self) -> None:
        """The part begins, maybe once more."""
        self.printed.clear()

    def end(self) -> None:
        """It has been possible."""
        self._trace.outermost.trial = self._outer
        for show in self.printed:
            _print(show, self._outer)

    def undo(self) -> None:
        """It has not."""
        outermost = self._trace.outermost
        outermost.trial, outermost.unset = self._outer, self._unset
        modes.refusals.first = self._refusal
        for rows, length in self._lengths:
            del rows[length:]
