"""Plans of captured programs on disk: a process that finds them there neither plans nor compiles.

They are entries of the object cache, under the same distrust, and name the objects that they run.
The key is the program itself with all that planning looks at; our own source is part of it, the
core's too, as it is of every key of that cache.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from heterosis import _core
from heterosis.backends.native.codegen.emit.abi import ENTRY
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.plans import PlanFacts, Taken, check_room, machine
from heterosis.ir.primitives import is_declared
from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.ir.text import printed
from heterosis.runtime.settings import settings

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.program import ProgramCode


def key(
    program: Program,
    layouts: Sequence[Strided | None],
    parameters: Collection[int],
    machine: Machine,
    written: Mapping[int, int] = MappingProxyType({}),
    kind: str = "plans",
) -> bytes | None:
    """What the plans are found by, or another `kind` of what came of a program; None if they are
    not to be kept."""
    text = identity(program)
    if text is None:
        return None
    # A plan that was never checked does not count as checked.
    given = f"{layouts}\n{parameters}\n{sorted(written.items())}"
    facts = f"{kind}\n{text}\n{given}\n{machine.workers}\n{machine.near}\n{settings.check}"
    return object_cache.default_cache().key(facts, machine.target)


def identity(program: Program) -> str | None:
    """The text of `program`; None if it does not tell all.

    A primitive from outside the package may change behind its name.
    """
    found = printed(program, calls=False)
    complete = found.complete and all(map(is_declared, found.primitives))
    return found.text if complete else None


def write(
    key: bytes | None,
    functions: Sequence[tuple[PlanFacts, ProgramCode]],
    taken: Taken,
) -> None:
    """Keep the plans of a program and of its preparation."""
    if key is not None:
        described = [[entry(code), *facts] for facts, code in functions]
        content = json.dumps([described, taken]).encode()
        object_cache.default_cache().write(key, content)


def entry(code: ProgramCode) -> str:
    """The name of the object of `code`, if it needs one."""
    found = object_cache.default_cache().key(code.key, machine().target) if code.parts else None
    return found.hex() if found else ""


def entry_function(name: str) -> _core.Function | None:
    """The machine code of an object by its name, which says that there is something to run; None
    if it is not there any more."""
    made = object_cache.default_cache().find(bytes.fromhex(name))
    return made.function(ENTRY) if made else None


def read(key: bytes | None) -> tuple[list[_core.Plan], Taken] | None:
    """The plans that were kept, and the arrays that they take."""
    content = object_cache.default_cache().read(key)
    if content is None:
        return None
    described, taken = json.loads(content)
    plans = [_plan(*facts) for facts in described]
    found = [plan for plan in plans if plan is not None]
    return (found, Taken(*taken)) if len(found) == len(plans) else None


def _plan(name: str, *described: Any) -> _core.Plan | None:
    """A plan from what is written about it; None if its object is not there any more."""
    facts = PlanFacts(*described)
    check_room(facts)
    code = entry_function(name) if name else None
    return None if name and code is None else facts.plan(code)
