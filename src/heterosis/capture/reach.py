"""All that a function can read besides its arrays.

Python tells nobody which variables a function reads. But code names what it loads: a walk that
begins at a function, and follows the global variables, the variables of enclosing functions and
the attributes that the code on its way names, comes to everything that a capture of the function
can look at. A little too much is found, since an attribute counts as read of every object on the
way if any code there names it; never too little, but for names that are computed.
"""

from __future__ import annotations

import array
import functools
import gc
import operator
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy

from heterosis import _core
from heterosis.capture.asked import OUR_FILES, OUR_SETTINGS, may_ask
from heterosis.capture.code_names import names_in
from heterosis.runtime.lines import PACKAGE

# Nothing in them can change, or they are inputs of the program.
_LEAVES = (
    bool, int, float, complex, str, bytes, type(None), slice, range, numpy.generic, numpy.dtype,
    _core.ndarray,
)  # fmt: skip
BUFFERS = (numpy.ndarray, bytearray, memoryview, array.array)
_LISTS = (list, deque, set)
# Containers written in Python, which keep their items in attributes.
_IN_PYTHON = frozenset({"collections", "weakref", "_weakrefset"})
_KEEPS_RESULTS = type(functools.lru_cache(lambda: None))
_GETTERS = (operator.attrgetter, operator.methodcaller)
_CONTAINERS = (dict, *_LISTS)
_PLAIN = frozenset({("types", "SimpleNamespace"), ("argparse", "Namespace")})
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: a class whose attributes cannot be set
# What a function says of itself.
_TOLD = frozenset({"__name__", "__qualname__", "__doc__", "__module__", "__annotations__"})
# Layers of ours are like users' code: what they are made of can be changed from outside.
_LAYERS = tuple(f"heterosis.gluon.{room}" for room in ("nn", "rnn", "loss", "contrib", "model_zoo"))
# Special methods that nothing calls which a program could depend on, once there is an instance.
_UNUSED = frozenset({"__init__", "__new__", "__del__", "__repr__", "__reduce__", "__getstate__"})


@dataclass(eq=False)
class Namespace:
    """What is read of an object, a class or a module: names, each with what it stands for, or with
    nothing. `is_ours`: capturing changes it."""

    path: str
    place: Any  # a dictionary, or a class with its bases
    is_ours: bool = False
    is_global: bool = False  # read by functions, as variables
    is_open: bool = False  # any attribute may be read, if code computes names
    found: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    scanned: int = 0  # names that it has been searched for

    def public(self) -> set[str]:
        """All names but those that are private."""
        return {name for scope in self._scopes() for name in scope if not name.startswith("_")}

    def look_up(self, name: str) -> tuple[Any, ...]:
        """What the name stands for now, or nothing."""
        for names in self._scopes():
            if name in names:
                return (names[name],)
        return ()

    def among(self, names: AbstractSet[str]) -> set[str]:
        """Those of `names` that stand for something."""
        return {name for scope in self._scopes() for name in names & scope.keys()}

    def _scopes(self) -> Iterator[Mapping[str, Any]]:
        if isinstance(self.place, type):
            yield from (vars(kind) for kind in self.place.__mro__)
        else:
            yield self.place


@dataclass(eq=False)
class Contents:
    """All that a container, or an array of another library, holds."""

    path: str
    place: Any
    is_ours: bool = False


@dataclass(frozen=True)
class Slot:
    """An attribute that stands in no dictionary."""

    path: str
    place: Any
    name: str


class Reach:
    """What functions and objects lead to: the places there that can change."""

    def __init__(self, roots: Iterable[tuple[str, Any]]):
        self.namespaces: list[Namespace] = []
        self.contents: list[Contents] = []
        self.cells: list[tuple[str, CellType]] = []
        self.functions: list[tuple[str, FunctionType]] = []
        self.references: list[tuple[str, weakref.ref[Any]]] = []
        self.classes: list[tuple[str, Any]] = []  # objects that may be given another one
        self.slots: dict[tuple[int, str], Slot] = {}
        self.attributes: set[str] = set()  # names that are read of any object
        self._names: list[str] = []  # the same, in the order in which they were come upon
        self._filled: set[str] = set()  # those of them that are not looked into so far
        self._computes = False  # whether code on the way computes names of attributes
        self._lists = False  # whether code on the way lists all attributes that there are
        self.decides = False  # whether values may decide what users' code on the way does
        self._slotted: list[tuple[str, Any, set[str]]] = []
        self._ours: set[str] = set()  # attributes that the machinery of capture reads, and changes
        self._variables: dict[int, Namespace] = {}  # of modules, by their dictionaries
        self._seen: dict[int, Any] = {}
        self._looked_into: set[int] = set()  # dictionaries, and classes that have been seen before
        self._unread: dict[int, Any] = {}  # what nobody looks into, variables among it
        self._waiting: deque[tuple[str, Any]] = deque(roots)
        self.users = Users({_module(root).partition(".")[0] for _, root in self._waiting})
        while self._waiting:
            while self._waiting:
                self._visit(*self._waiting.popleft())
            self._scan_all()
        self.decides |= any(may_ask(value, self.attributes) for value in self._seen.values())
        told = OUR_FILES.union(*OUR_SETTINGS.values())
        self.decides |= not told.isdisjoint(self.attributes)

    def outside(self) -> dict[int, Any]:
        """All objects and variables that the walk has come upon, by their ids."""
        return self._seen | self._unread

    # -- names ------------------------------------------------------------------------------------

    def _add_attributes(self, names: Iterable[str], filled: AbstractSet[str]) -> None:
        for name in names:
            known = name in self.attributes
            if name in filled:
                if not known:
                    self._filled.add(name)
            elif name in self._filled:
                self._filled.discard(name)
                known = False  # once more, now to look into it
            if not known:
                self.attributes.add(name)
                self._names.append(name)

    def _scan_all(self) -> None:
        """Look for names that have been come upon since in what was visited before."""
        for namespace in self.namespaces:
            if namespace.is_global:
                continue
            fresh = set(self._names[namespace.scanned :])
            namespace.scanned = len(self._names)
            names = namespace.among(fresh) if fresh else set()
            if self._computes and namespace.is_open:
                names |= namespace.public() - namespace.found.keys()
            if self._lists and namespace.is_open:
                self._add(namespace.path, namespace.place)
            for name in names:
                self._bind(namespace, name, self._filled)
        for path, place, names in self._slotted:
            for name in names & self.attributes:
                if (id(place), name) not in self.slots:
                    self.slots[id(place), name] = Slot(f"{path}.{name}", place, name)
                    self._add(f"{path}.{name}", getattr(place, name, None))

    def _bind(self, namespace: Namespace, name: str, filled: AbstractSet[str]) -> None:
        namespace.found[name] = found = namespace.look_up(name)
        for value in found:
            if name in filled and type(value) in _CONTAINERS:
                self._unread[id(value)] = value
            else:
                path = f"{namespace.path}.{name}" if namespace.path else name
                if name in self._ours and type(value) in _CONTAINERS:
                    self._visit_items(path, value, is_ours=True)
                else:
                    self._add(path, value)

    # -- objects ----------------------------------------------------------------------------------

    def _add(self, path: str, value: Any) -> None:
        is_leaf = isinstance(value, _LEAVES) and not hasattr(value, "__dict__")
        if not is_leaf and id(value) not in self._seen:
            self._waiting.append((path, value))

    def _visit(self, path: str, value: Any) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            self._visit_function(path, value)
        elif isinstance(value, MethodType):
            self._add(_name_of(value.__self__, path), value.__self__)
            self._add(path, value.__func__)
        elif isinstance(value, staticmethod | classmethod):
            self._add(path, value.__func__)
        elif isinstance(value, property):
            self._add(path, value.fget)
        elif isinstance(value, MappingProxyType):
            self._add(path, gc.get_referents(value)[0])
        elif isinstance(value, _core.Checked | _KEEPS_RESULTS):
            self._add(path, value.__wrapped__)
        elif isinstance(value, functools.partial | functools.cached_property):
            for part in (value.func, getattr(value, "args", ()), getattr(value, "keywords", {})):
                self._add(path, part)
        elif isinstance(value, _GETTERS):
            self._visit_getter(path, value)
        elif isinstance(value, ModuleType):
            if self.users.is_module(value.__name__):
                self._add_namespace(path, vars(value))
        elif isinstance(value, type):
            self._visit_class(path, value)
        elif isinstance(value, BUFFERS):
            self._visit_buffer(path, value)
        elif isinstance(value, weakref.ref):
            self.references.append((path, value))
            self._add(path, value())
        else:
            self._visit_instance(path, value)

    def _visit_getter(self, path: str, value: Any) -> None:
        """What reads attributes, or calls methods, whose names it keeps."""
        made_by, kept = value.__reduce__()
        kept = (*getattr(made_by, "args", ()), *getattr(made_by, "keywords", {}).values(), *kept)
        names = {part for text in kept if isinstance(text, str) for part in text.split(".")}
        self._add_attributes(names, frozenset())
        self._add(path, kept)

    def _visit_buffer(self, path: str, value: Any) -> None:
        self.contents.append(Contents(path, value))
        if isinstance(value, numpy.ndarray) and value.dtype.hasobject:
            self._add(path, value.tolist())
        if isinstance(own := getattr(value, "__dict__", None), dict):  # of a derived class
            self._add(path, own)

    def _visit_function(self, path: str, function: FunctionType) -> None:
        names = names_in(function.__code__)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if not self.users.is_module(_module(function)):
            for name, cell in cells.items():  # it may wrap a function of the user's
                self._visit_cell(name, cell, watched=False)
            return
        self._unread |= {id(cell): cell for cell in cells.values()}
        for name in names.cells & cells.keys():
            self._visit_cell(name, cells[name], filled=name in names.filled)
        variables = self._variables_of(function)
        for name in names.variables:
            if name not in variables.found or name not in names.filled:
                self._bind(variables, name, names.filled)
        self._add_attributes(names.attributes, names.filled)
        self._computes |= names.computes
        self._lists |= names.lists
        if self.users.is_function(function):
            asks = not _ASKING.isdisjoint(names.variables)
            self.decides |= names.decides or names.computes or asks
            self.decides |= names.changes  # which is reported
        for name in names.modules:
            self._add(name, sys.modules.get(name))
        self.functions.append((path, function))
        self._slotted.append((path, function, set(_TOLD)))
        for value in function.__defaults__ or ():
            self._add(path, value)
        if function.__kwdefaults__:
            self._add(path, function.__kwdefaults__)
        if function.__dict__:
            self._add_namespace(path, function.__dict__)

    def _visit_cell(
        self, name: str, cell: CellType, *, watched: bool = True, filled: bool = False
    ) -> None:
        if watched and id(cell) not in self._seen:
            self._seen[id(cell)] = cell
            self.cells.append((name, cell))
        try:
            value = cell.cell_contents
        except ValueError:  # empty so far
            return
        if filled and type(value) in _CONTAINERS:
            self._unread[id(value)] = value
        else:
            self._add(name, value)

    def _variables_of(self, function: FunctionType) -> Namespace:
        place = function.__globals__
        if id(place) not in self._variables:
            made = Namespace("", place, is_global=True)
            self._variables[id(place)] = made
            self.namespaces.append(made)
        return self._variables[id(place)]

    def _add_namespace(
        self, path: str, place: Any, *, is_ours: bool = False, is_open: bool = False
    ) -> None:
        if id(place) not in self._looked_into:
            self._looked_into.add(id(place))
            self._unread[id(place)] = place
            self.namespaces.append(Namespace(path, place, is_ours, is_open=is_open))

    def _visit_class(self, path: str, kind: type) -> None:
        """A class that is named itself, so that instances may be made."""
        if self.users.is_class(kind):
            self._add_namespace(path, kind)
            self._add_methods(path, kind, frozenset())
            self._visit_class(path, type(kind))

    def _add_methods(self, path: str, kind: type, without: AbstractSet[str]) -> None:
        """Special methods, which no code has to name, and those that `super()` finds: names that a
        class has are watched in its bases, too."""
        for scope in kind.__mro__:
            if not self.users.is_class(scope):
                continue
            self._add_namespace(path, scope, is_ours=_module(scope).startswith("heterosis."))
            for name, value in vars(scope).items():
                is_called = name in self.attributes or (_is_special(name) and name not in without)
                if is_called and isinstance(value, FunctionType | staticmethod | classmethod):
                    self._add(f"{path}.{name}", value)

    def _visit_instance(self, path: str, value: Any) -> None:
        kind = type(value)
        self._visit_items(path, value)
        own = getattr(value, "__dict__", None)
        read = getattr(kind, "_read_by_capture", None)
        module = _module(kind)
        if module.startswith("heterosis.") and read is None:
            return  # it says itself what programs depend on
        is_users = self.users.is_class(kind) or _is_plain(kind)
        is_ours = not is_users or module.startswith("heterosis.")
        if read is not None:
            self._ours |= read
            self._add_attributes(read, frozenset())
        if isinstance(own, dict):
            self._add_namespace(path, own, is_ours=is_ours, is_open=not is_ours)
        if read is not None or is_users:
            self.classes.append((path, value))
            self._add_namespace(path, kind, is_ours=is_ours)
            self._add_methods(path, kind, _UNUSED)
            slots = {name for scope in kind.__mro__ for name in _slots(scope)}
            if slots:
                self._slotted.append((path, value, slots))
        elif isinstance(own, dict) and (module in _IN_PYTHON or _computes_attributes(kind)):
            self._add(path, own)  # as a whole: who knows what it looks up there

    def _visit_items(self, path: str, value: Any, *, is_ours: bool = False) -> None:
        if isinstance(value, dict):
            self.decides |= isinstance(value, defaultdict)  # to look into it may change it
            self.contents.append(Contents(path, value, is_ours))
            for key, item in value.items():
                self._add(path, key)
                self._add(f"{path}[{key!r}]" if isinstance(key, str | int) else path, item)
        elif isinstance(value, (tuple, frozenset, *_LISTS)):
            if isinstance(value, _LISTS):
                self.contents.append(Contents(path, value, is_ours))
            for i, item in enumerate(value):
                self._add(f"{path}[{i}]", item)


# -- whose code it is ------------------------------------------------------------------------------


# Functions of Python's that a capture replaces.
_ASKING = frozenset(("print", "max", "min", "any", "all", "type", "open"))


class Users:
    """Whose code it is: all is the user's but for Python's, ours, and that of libraries. What is
    installed is a library, but for the packages that a root belongs to."""

    def __init__(self, packages: AbstractSet[str]):
        self._packages = packages

    def is_module(self, module: str) -> bool:
        """Whether a module is the user's, or one of our layers, which are like users' code."""
        room = _room(module)
        return room == "user" or (
            room == "installed" and module.partition(".")[0] in self._packages
        )

    def is_class(self, kind: type) -> bool:
        """Whether a class is the user's: one that `exec` makes without a module's name seems to be
        Python's own, whose attributes nobody can change."""
        if _module(kind) == "builtins" and not kind.__flags__ & _IMMUTABLE:
            return True
        return self.is_module(_module(kind))

    def is_function(self, function: FunctionType) -> bool:
        """Whether a function is the user's, and of no layer of ours."""
        ours = function.__code__.co_filename.startswith(PACKAGE)
        return not ours and self.is_module(_module(function))


@functools.lru_cache(maxsize=4096)
def _room(module: str) -> str:
    """Where a module's code stands: it is the user's, installed, or part of Python or of us."""
    if module.startswith(_LAYERS):
        return "user"
    top = module.partition(".")[0]
    if top in ("heterosis", "numpy") or (top in sys.stdlib_module_names and top != "__main__"):
        return "library"
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "installed" if "site-packages" in file or "dist-packages" in file else "user"


def _module(value: Any) -> str:
    if isinstance(value, FunctionType):  # what it was made in, and not what it pretends
        return str(value.__globals__.get("__name__", ""))
    return str(getattr(value, "__module__", None) or type(value).__module__)


def _name_of(value: Any, path: str) -> str:
    return path.rpartition(".")[0] or type(value).__name__


def _is_plain(kind: type) -> bool:
    """Whether a class of Python's has nothing but the attributes that users give an instance."""
    return (_module(kind), kind.__name__) in _PLAIN


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _computes_attributes(kind: type) -> bool:
    """Whether Python code of the class answers for attributes or items that it does not have."""
    found = (getattr(kind, name, None) for name in ("__getattr__", "__getitem__"))
    return any(isinstance(method, FunctionType) for method in found)
