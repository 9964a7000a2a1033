"""What a function expects of its arguments, from its annotations, and what it says to others.

Constructors check before they run, since what they are given is used much later. All other public
functions run, and look at their arguments when something has gone wrong: a call that is right
costs nothing.
"""

from __future__ import annotations

import copyreg
import difflib
import functools
import inspect
import os
import reprlib
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy

from heterosis import _core
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    HeterosisError,
    IndexingError,
    LinearAlgebraError,
    OutOfMemoryError,
    UnknownKeyError,
    UnsupportedError,
)
from heterosis.runtime.kinds import Kind, kind_of
from heterosis.runtime.lines import PACKAGE
from heterosis.runtime.raising import is_raised

# -- expectations of a function -------------------------------------------------------------------


class Expectations:
    """What the parameters of a function admit: made at the first call that asks."""

    def __init__(self, function: Callable[..., Any]):
        code, names = function.__code__, function.__globals__
        count = code.co_argcount + code.co_kwonlyargcount
        defaults = _defaults(function)
        self.names = code.co_varnames[:count]
        self.positional = code.co_argcount
        self.kinds: dict[str, Kind] = {}
        for name in self.names:
            kind = kind_of(function.__annotations__.get(name, inspect.Parameter.empty), names)
            if kind is not None:
                self.kinds[name] = _or_default(kind, defaults.get(name))

    def misfit(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> str | None:
        """The first argument that does not fit, in a sentence."""
        positional = self.names[: self.positional]
        given = (*zip(positional, arguments, strict=False), *keywords.items())
        for name, value in given:
            kind = self.kinds.get(name)
            if kind is not None and not kind.accepts(value):
                return f"{name} is {described(value)}; expected {wanted(kind, value)}."
        return None


def wanted(kind: Kind, given: Any) -> str:
    """What is expected in place of an argument that is not of this kind."""
    items = given if isinstance(given, tuple | list) else (given,)
    large = any(isinstance(item, int) and not -(2**63) <= item < 2**63 for item in items)
    return f"{kind.text}, of 64 bits at most" if large else kind.text


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    code, given = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    return dict(zip(names, given, strict=True)) | (function.__kwdefaults__ or {})


def _or_default(kind: Kind, default: Any) -> Kind:
    """A default fits, whatever the annotation says: callers pass it on."""
    if default is None or kind.accepts(default):
        return kind
    return kind._replace(accepts=lambda given: given is default or kind.accepts(given))


@functools.cache
def expectations(function: Callable[..., Any]) -> Expectations:
    """What the parameters of `function` admit."""
    return Expectations(inspect.unwrap(function))


def described(given: Any) -> str:
    """An argument as messages show it: short, without waiting for an array's elements."""
    if isinstance(given, _core.ndarray):
        return f"an array {given._dtype_name}{list(given.shape)}"
    if isinstance(given, numpy.ndarray):
        return f"a NumPy array {given.dtype}{list(given.shape)}"
    if given is None or isinstance(given, bool | int | float | complex | str | bytes):
        return f"{_short(given)}"
    if isinstance(given, types.FunctionType | type):
        return f"{given.__module__}.{given.__qualname__}"
    return f"{_short(given)} of type {type(given).__name__}"


def _short(given: Any) -> str:
    try:
        text = reprlib.repr(given)
    except Exception:  # noqa: BLE001 - an object of users may do anything in its __repr__
        text = "an object"
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant: spelt alike, or abbreviated by its initials."""
    candidates = list(known)
    for candidate in candidates:
        if "".join(part[:1] for part in candidate.split("_")) == name:
            return candidate
    found = difflib.get_close_matches(name, candidates, 1)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question for the end of a message, or nothing."""
    found = nearest(name, known)
    return f" Did you mean {found}?" if found else ""


# -- errors ---------------------------------------------------------------------------------------

# What is raised in our own code for an argument that nobody thought of, and what it becomes.
_TRANSLATED: tuple[tuple[type[Exception], type[HeterosisError]], ...] = (
    (numpy.linalg.LinAlgError, LinearAlgebraError),
    (numpy.exceptions.AxisError, AxisError),
    (MemoryError, OutOfMemoryError),
    (NotImplementedError, UnsupportedError),
    (KeyError, UnknownKeyError),
    (IndexError, IndexingError),
    (TypeError, ArgumentTypeError),
    (AttributeError, ArgumentTypeError),
    (ValueError, ArgumentError),
    (ArithmeticError, ArgumentError),
    (NameError, ArgumentError),
    (AssertionError, ArgumentError),
    (BufferError, ArgumentError),
    (RecursionError, ArgumentError),
)


def refused(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    error: BaseException,
    name: str | None = None,
) -> BaseException:
    """The error of our own that callers of `function`, or of what goes by `name`, see for `error`.

    Errors of the framework, of the operating system and of functions that users passed stay.
    """
    class_ = _class_for(error)
    if class_ is None:
        return error
    name = name or _public_name(function, arguments)
    traceback = error.__traceback__
    at_the_call = traceback is None or traceback.tb_next is None
    passed_on = function.__name__ == "__init__" and "unexpected keyword" in str(error)
    if isinstance(error, TypeError) and (at_the_call or passed_on):
        sentence = _miscount(function, arguments, keywords)
        if sentence:
            return ArgumentTypeError(f"{name}: {sentence}")
    sentence = expectations(function).misfit(arguments, keywords)
    if sentence:
        made: HeterosisError = ArgumentTypeError(f"{name}: {sentence}")
    else:
        made = class_(f"{name}: cannot take ({_listed(function, arguments, keywords)}): {error}")
    made.__cause__ = error
    return made


def in_our_words(name: str, error: BaseException) -> BaseException:
    """What callers of `name` see in place of an error that another library raised in it."""
    class_ = _class_for(error)
    return error if class_ is None else class_(f"{name}: {error}")


def _class_for(error: BaseException) -> type[HeterosisError] | None:
    """The class of the framework's that an error becomes; None if it stays as it is."""
    if isinstance(error, HeterosisError | OSError | Warning):
        return None
    if _is_from_outside(error.__traceback__) or is_raised(error):
        return None
    return next((ours for theirs, ours in _TRANSLATED if isinstance(error, theirs)), None)


def _public_name(function: Callable[..., Any], arguments: Sequence[Any]) -> str:
    if function.__name__ == "__init__":
        return type(arguments[0]).__name__
    if function.__name__ == "__new__":
        return str(arguments[0].__name__)
    return function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__call__")


def _listed(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> str:
    own = arguments[1:] if _is_method(function) else arguments
    return ", ".join([*map(described, own), *(f"{k}={described(v)}" for k, v in keywords.items())])


def _is_method(function: Callable[..., Any]) -> bool:
    return "self" in function.__code__.co_varnames[:1]


def _miscount(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> str | None:
    """What is wrong with the number or the names of arguments, if anything is."""
    signature = inspect.signature(function)
    known = list(_keyword_names(function, arguments))
    unknown = [name for name in keywords if name not in known]
    if unknown:
        question = did_you_mean(unknown[0], known)
        names = ", ".join(known) or "none by name"
        return f"there is no argument {unknown[0]!r}; it takes {names}.{question}"
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        parameters = [p for n, p in signature.parameters.items() if n != "self"]
        takes = signature.replace(parameters=parameters, return_annotation=signature.empty)
        return f"{error}; it takes {takes}."
    return None


def _keyword_names(function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[str]:
    """The keywords of a function; of a constructor, also those that it passes on."""
    functions = [function]
    if function.__name__ == "__init__":
        functions = [init for base in type(arguments[0]).__mro__ if (init := _own_init(base))]
    seen = {"self"}
    for one in functions:
        for name, parameter in inspect.signature(one).parameters.items():
            variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if name not in seen and not variable:
                seen.add(name)
                yield name


def _own_init(class_: type) -> Callable[..., Any] | None:
    found = inspect.unwrap(vars(class_).get("__init__", object.__init__))
    return cast("Callable[..., Any]", found) if hasattr(found, "__code__") else None


_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
# Frames of NumPy's compiled modules name their source as it was called when NumPy was built.
_NUMPY_SOURCE = "numpy/random/"
_OF_LIBRARIES = (PACKAGE, _NUMPY, _NUMPY_SOURCE, "<frozen", "<__array_function__")
_STANDARD = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = os.path.join(_STANDARD, "site-packages") + os.sep


def _is_from_outside(traceback: types.TracebackType | None) -> bool:
    """Whether code of users was running: a function or an object that they passed."""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        standard = file.startswith(_STANDARD) and not file.startswith(_INSTALLED)
        known = standard or file.startswith(_OF_LIBRARIES)
        if not known and f"{os.sep}PIL{os.sep}" not in file:
            return True
        traceback = traceback.tb_next
    return False


# -- functions and classes that check -------------------------------------------------------------


@functools.cache
def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose own errors about arguments are the framework's."""
    made = _core.Checked(function, refused)
    functools.update_wrapper(made, function)
    return made


def _pickled(made: Any) -> Any:
    """A function by its name, if that leads to it."""
    name: str = made.__qualname__
    found = getattr(sys.modules.get(made.__module__), name, None)
    return name if found is made else (_itself, (made.__wrapped__,))


copyreg.pickle(_core.Checked, _pickled)


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@functools.cache
def _checked_constructor(init: Callable[..., Any]) -> Callable[..., Any]:
    """`__init__`, after a look at its arguments."""
    made = _core.Checked(init, refused, _admitted, _look)
    functools.update_wrapper(made, init)
    return made


def _admitted(
    init: Callable[..., Any],
) -> list[tuple[str, tuple[type, ...] | None, int | None, int | None]]:
    """What the core need not ask `_look` about, for each parameter."""
    found = expectations(init)
    kinds = [(name, found.kinds.get(name)) for name in found.names]
    anything = (None, None, None)
    return [(n, *(kind[2:] if kind else anything)) for n, kind in kinds]


def _look(init: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Raise if an argument does not fit."""
    sentence = expectations(init).misfit(arguments, keywords)
    if sentence:
        raise ArgumentTypeError(f"{_public_name(init, arguments)}: {sentence}")


def check_members(namespace: dict[str, Any]) -> None:
    """Let the public functions and classes of a module check their arguments."""
    for name, member in list(namespace.items()):
        if name.startswith("_") or not _is_ours(member):
            continue
        if isinstance(member, types.FunctionType):
            namespace[name] = checked(member)
        elif isinstance(member, type) and not issubclass(member, BaseException):
            for class_ in member.__mro__:
                if _is_ours(class_):
                    _check_class(class_)


def _is_ours(member: Any) -> bool:
    return str(getattr(member, "__module__", "")).startswith("heterosis.")


@functools.cache
def _check_class(class_: type) -> None:
    """Let the constructor and the public methods of a class check their arguments."""
    for name, member in list(vars(class_).items()):
        kind = type(member) if isinstance(member, staticmethod | classmethod) else None
        function = member.__func__ if kind else member
        if not isinstance(function, types.FunctionType) or name in _HOT or not _is_public(name):
            continue
        if not _takes_more_than(0 if kind is staticmethod else 1, function):
            continue
        if name == "__init__" and class_.__name__ in _BY_HAND:
            continue
        made = _checked_constructor(function) if name == "__init__" else checked(function)
        setattr(class_, name, kind(made) if kind else made)


# Made for every layer: each checks by hand what can be wrong when a layer makes it.
_BY_HAND = ("Block", "HybridBlock", "Parameter", "ParameterDict")

# Run at every call of a layer: `HybridBlock` looks after their errors.
_HOT = ("forward", "hybrid_forward")


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__new__", "__call__", "__getitem__")


def _takes_more_than(count: int, function: types.FunctionType) -> bool:
    code = function.__code__
    variable = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return bool(variable) or code.co_argcount + code.co_kwonlyargcount > count
