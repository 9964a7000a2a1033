"""What a Python function names: the variables and attributes that its code loads; and whether
anything in it is decided by a value, or changes what is outside of it."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CELLS = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
_METHODS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_OPERANDS = frozenset({"LOAD_CONST", "LOAD_FAST", "LOAD_SMALL_INT"})
_DECIDING = frozenset({"FOR_ITER", "UNARY_NOT"})
_OF_OBJECTS = frozenset({"IS_OP", "CHECK_EXC_MATCH", "WITH_EXCEPT_START"})
_IDLE = frozenset({"CACHE", "PRECALL", "TO_BOOL"})
_SWAPS = frozenset({"SWAP", "ROT_TWO", "ROT_THREE"})
# They fill a container and tell nothing of what is in it.
_FILLING = frozenset({"append", "appendleft", "extend", "extendleft", "add", "update"})
# They change a container, in other ways too.
CHANGING = _FILLING | {
    "insert", "pop", "popleft", "popitem", "setdefault", "clear", "discard", "remove", "sort",
    "reverse", "rotate", "fill", "put", "partition", "resize", "intersection_update",
    "difference_update", "symmetric_difference_update", "move_to_end", "subtract", "__setitem__",
    "__delitem__", "__setattr__",
}  # fmt: skip
# Functions of what they change.
_CHANGERS = frozenset({
    "next", "setattr", "delattr", "heapify", "heappop", "heappush", "heappushpop", "heapreplace",
    "insort", "insort_left", "insort_right", "shuffle", "setitem", "delitem", "copyto", "put",
    "place", "putmask", "fill_diagonal", "put_along_axis", "at", "globals",
})  # fmt: skip
_OF_ITEMS = frozenset({"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"})
_SETTING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"})
# They reach attributes whose names are texts in the code, or computed.
_BY_NAME = frozenset(
    {"getattr", "hasattr", "vars", "globals", "attrgetter", "methodcaller", "__dict__"}
)
_LISTING = frozenset({"vars", "dir", "__dict__"})  # all attributes that there are
_OF_MODULES = frozenset({"modules", "import_module"})  # whose names are texts in the code


@dataclass(frozen=True)
class Names:
    """What code loads, the functions defined inside it included."""

    variables: frozenset[str] = frozenset()  # global ones
    cells: frozenset[str] = frozenset()  # those of enclosing functions
    attributes: frozenset[str] = frozenset()  # of whatever objects
    filled: frozenset[str] = frozenset()  # of all these, what is filled but never looked into
    modules: frozenset[str] = frozenset()  # imported inside
    computes: bool = False  # names of attributes
    lists: bool = False  # the attributes that an object has
    decides: bool = False  # by the truth of a value, or in how often a loop turns
    changes: bool = False  # variables, attributes or containers that may be from outside

    def __or__(self, other: Names) -> Names:
        read = self._read() | other._read()
        return Names(
            self.variables | other.variables,
            self.cells | other.cells,
            self.attributes | other.attributes,
            (self.filled | other.filled) - read,
            self.modules | other.modules,
            self.computes or other.computes,
            self.lists or other.lists,
            self.decides or other.decides,
            self.changes or other.changes,
        )

    def _read(self) -> frozenset[str]:
        return (self.variables | self.cells | self.attributes) - self.filled


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> Names:
    """What `code` loads. A counter that is only counted up (`n += 1`) is not loaded."""
    found: dict[str, set[str]] = {"variables": set(), "cells": set(), "attributes": set()}
    read: set[str] = set()
    modules: set[str] = set()
    steps = [step for step in dis.get_instructions(code) if step.opname not in _IDLE]
    for i, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            modules.add(step.argval)
        kind = _kind(step.opname)
        if kind is None or _is_counted(steps[i : i + 6]):
            continue
        found[kind].add(step.argval)
        if not _is_filled(steps[i : i + 3]):
            read.add(step.argval)
    everything = found["variables"] | found["cells"] | found["attributes"]
    if everything & _OF_MODULES:
        modules.update(_texts(code.co_consts))
    computes, lists = bool(everything & _BY_NAME), bool(everything & _LISTING)
    if computes:
        texts = {text for text in _texts(code.co_consts) if text.isidentifier()}
        found["attributes"] |= texts
        read |= texts
        if "globals" in found["variables"]:
            found["variables"] |= texts
        everything |= texts
    names = Names(
        **{kind: frozenset(of_kind) for kind, of_kind in found.items()},
        filled=frozenset(everything - read),
        modules=frozenset(modules),
        computes=computes,
        lists=lists,
        decides=_decides(steps),
        changes=bool((found["variables"] | found["attributes"]) & _CHANGERS)
        or _changes(steps, code),
    )
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_in(constant)
    return names


def _kind(opname: str) -> str | None:
    if opname in _GLOBALS:
        return "variables"
    if opname in _CELLS:
        return "cells"
    return "attributes" if opname in _ATTRIBUTES else None


def _decides(steps: list[dis.Instruction]) -> bool:
    """Whether there is a choice, a loop or a `not`; what asks for the class of an exception, or
    whether two objects are one, decides by nothing that an array holds."""
    jumps = (i for i, step in enumerate(steps) if _is_choice(step.opname))
    return any(step.opname in _DECIDING for step in steps) or any(
        steps[i - 1].opname not in _OF_OBJECTS for i in jumps
    )


def _changes(steps: list[dis.Instruction], code: CodeType) -> bool:
    """Whether something is set, or a container changed, that is no variable of the function."""
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for i, step in enumerate(steps):
        is_method = step.opname in _METHODS and step.argval in CHANGING
        is_free = step.opname == "STORE_DEREF" and step.argval in code.co_freevars
        if step.opname in _SETTING or is_free:
            return True
        if is_method and (_is_from_outside(steps[i - 1]) or steps[i - 1].argval in parameters):
            return True
        if step.opname in _OF_ITEMS:  # of what, is not told by where it stands: CACHE[a + b] += 1
            return True
    return False


def _is_from_outside(step: dis.Instruction) -> bool:
    """Whether it loads what is no variable of the function."""
    return _kind(step.opname) is not None


def _is_choice(opname: str) -> bool:
    return "JUMP_" in opname and "IF_" in opname and not opname.endswith(("NONE", "EXC_MATCH"))


def _is_counted(steps: list[dis.Instruction]) -> bool:
    """Whether the first of `steps` loads what an augmented assignment of a plain operand stores."""
    if len(steps) < 4 or steps[1].opname not in _OPERANDS or not _is_in_place(steps[2]):
        return False
    stores = (step for step in steps[3:] if step.opname not in _SWAPS)
    store = next(stores, None)
    return (
        store is not None
        and store.opname.startswith("STORE_")
        and store.argval == steps[0].argval
        and isinstance(steps[1].argval, int | float)
    )


def _is_in_place(step: dis.Instruction) -> bool:
    if step.opname.startswith("INPLACE_"):
        return True
    return step.opname == "BINARY_OP" and step.argrepr.endswith("=")


def _is_filled(steps: list[dis.Instruction]) -> bool:
    """Whether the first of `steps` loads a container to put something into it."""
    return len(steps) > 1 and steps[1].opname in _METHODS and steps[1].argval in _FILLING


def _texts(constants: tuple[object, ...]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)
