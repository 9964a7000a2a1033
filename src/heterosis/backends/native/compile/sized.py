"""Programs whose extents are open: planned for ranges of sizes, and compiled once for each.

A plan for one size is found with sizes in place of numbers. What the planner decides by them are
the conditions of the range that it holds for; what it hands the compiled function is a table of
numbers, each a formula of the sizes. The core has these tables: at a size never seen, it evaluates
the formulas, and that is all. Ranges that differ in numbers alone share their machine code. They
are kept on disk, so that a later process plans none of them again.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from heterosis import _core
from heterosis.backends.native.codegen.kernel import Schedule
from heterosis.backends.native.compile import object_cache, stored
from heterosis.backends.native.compile.plans import (
    PlanFacts,
    Taken,
    machine,
    machine_code,
    plan_facts,
)
from heterosis.backends.native.compile.whole import Part, parts
from heterosis.backends.room import check_room_for
from heterosis.ir.formulas import Formulas
from heterosis.ir.program import Program
from heterosis.ir.resizing import at, resized, without_gaps
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import Decisions, is_traced, pieces, written
from heterosis.runtime.errors import OutOfMemoryError
from heterosis.runtime.settings import settings

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.program import ProgramCode


_MOST_RANGES = 32  # plans kept, and asked one after the other


class SizedPlans:
    """The plans of a program for ranges of its sizes, the latest first."""

    def __init__(
        self,
        program: Program,
        layouts: Sequence[Strided | None],
        parameters: Collection[int],
        written: Mapping[int, int],
    ) -> None:
        self.program, self.layouts = program, layouts
        self.parameters, self.written = parameters, written
        self.ranges: list[Range] = []
        # What finds a plan: it has the same ranges.
        self.native = _core.SizedPlans(_MOST_RANGES, self._prover() if settings.check else None)
        # What is computed ahead, where that has one size: the arrays serve all ranges.
        self._prepared: dict[Hashable, _core.Prepared] = {}
        self.names: tuple[str, ...] | None = None  # of the sizes, when a plan has been asked for
        self._key: bytes | None = None

    def at(self, values: Mapping[str, int]) -> _core.Plan:
        """The plan for one size; `UnsupportedError`, if nothing can be planned with sizes in place
        of numbers."""
        if self.names is None:
            self.names = tuple(values)
            for one in reversed(self._kept(self.names)):
                self._add(one)
        sizes = [values[name] for name in self.names]
        plan, which = self.native.at(sizes)
        if which < 0:
            self._add(self._planned(values))
            _write(self._key, self.ranges)
            plan, which = self.native.at(sizes)
            assert which == 0, "a range that was made for sizes holds for them"
        if plan is None:
            raise self._too_large(values)
        return plan

    def _prover(self) -> Callable[[int, Sequence[int]], None]:
        """What proves the plan of a range for sizes."""
        plans = weakref.ref(self)  # the core does not tell the garbage collector of it

        def prove(which: int, sizes: Sequence[int]) -> None:
            found = plans()
            if found is not None and found.names is not None:
                found.ranges[which].prove(dict(zip(found.names, sizes, strict=True)))

        return prove

    def _add(self, one: Range) -> None:
        self.ranges.insert(0, one)
        del self.ranges[_MOST_RANGES:]
        one.add_to(self.native, self._prepared)

    def _too_large(self, values: Mapping[str, int]) -> OutOfMemoryError:
        """Why there is no plan for sizes that are in a range."""
        program = resized(self.program, at(values), calls=False)
        check_room_for(program.name, (value.type for value in program.outputs))
        return OutOfMemoryError(
            f"{program.name}: at {values} its plan needs numbers of more than 64 bits. Use smaller "
            "arrays."
        )

    def _kept(self, names: Iterable[str]) -> list[Range]:
        """The ranges on disk. Plans from there cannot be proved: what they come from is gone."""
        if not settings.check:
            kind = f"ranges of {', '.join(names)}"
            self._key = stored.key(
                self.program, self.layouts, self.parameters, machine(), self.written, kind
            )
        return _read(self._key)

    def _planned(self, values: Mapping[str, int]) -> Range:
        """The range that these values are in."""
        decisions = Decisions(values)
        program = resized(self.program, decisions.traced, calls=False)
        layouts = without_gaps(program, self.layouts)
        programs, taken = parts(program, layouts, self.parameters, self.written)
        made = [_Planned(part) for part in programs]
        formulas = Formulas(tuple(values))
        for condition in decisions.conditions:  # those of all parts are known now
            formulas.require(condition)
        asked = len(formulas.rows)
        template, *ahead = (part.template(formulas) for part in made)
        return Range(
            formulas.names, tuple(decisions.conditions), formulas.table, asked,
            template, ahead[0] if ahead else None, taken, [part.prove for part in made],
        )  # fmt: skip


class _Planned:
    """What is run, or computed ahead of it, with sizes in place of numbers."""

    def __init__(self, part: Part):
        from heterosis.backends.native.codegen.emit.program import function_for_sizes

        planned = part.scheduled()
        self._code: ProgramCode = function_for_sizes(planned)
        self._facts = plan_facts(part.program, planned, self._code)
        self.prove = partial(_prove, part, planned) if settings.check else _not_proved

    def template(self, formulas: Formulas) -> Template:
        """Its facts, with words of formulas in place of numbers."""
        known = None if _varies(self._facts) else repr(self._facts)
        words = _words(self._facts, formulas)
        return Template(words, known, machine_code(self._code), stored.entry(self._code))


def _words(facts: PlanFacts, formulas: Formulas) -> PlanFacts:
    def words(numbers: Iterable[int]) -> list[int]:
        return [formulas.whole(written(number)) for number in numbers]

    results = [
        (dtype, words(shape), base, words(strides), *words([offset]))
        for dtype, shape, base, strides, offset in facts.results
    ]
    failures = []
    for kind, message in facts.failures:
        texts, numbers = pieces(message)
        failures.append((kind, texts, [formulas.whole(number) for number in numbers]))
    return facts._replace(
        integers=words(facts.integers), workspace=words([facts.workspace])[0],
        nanoseconds=formulas.fraction(written(facts.nanoseconds)), results=results,
        failures=failures,
    )  # fmt: skip


def _varies(facts: Any) -> bool:
    if type(facts) in (list, tuple, PlanFacts):
        return any(map(_varies, facts))
    return is_traced(facts) or (type(facts) is str and len(pieces(facts)[0]) > 1)


def _prove(part: Part, schedule: Schedule, values: Mapping[str, int]) -> None:
    from heterosis.backends.native.schedule.proof.at_sizes import prove_at

    prove_at(part.program, part.layouts, schedule, values)


def _not_proved(values: Mapping[str, int]) -> None:
    """Take a plan as it is: proofs were not asked for when it was made."""


@dataclass
class Template:
    """The facts of a plan, with words of formulas in place of numbers; as a text with the numbers,
    if no size has a part in them. Its machine code is `code`, None if it needs none, and on disk
    in an entry of that name."""

    facts: PlanFacts
    known: str | None
    code: _core.Function | None
    entry: str

    @property
    def varies(self) -> bool:
        """Whether sizes have a part in it."""
        return self.known is None

    @property
    def row(self) -> tuple[Any, ...]:
        """What the core is told of it."""
        name, *facts = self.facts
        return name, self.code, *facts


@dataclass
class Range:
    """Plans for all sizes of which some conditions hold: which the rows of a table before number
    `asked` require."""

    names: tuple[str, ...]
    conditions: tuple[str, ...]
    table: Sequence[int]
    asked: int
    template: Template
    preparation: Template | None
    taken: Taken
    proofs: Sequence[Callable[[Mapping[str, int]], None]] = ()

    def add_to(self, plans: _core.SizedPlans, prepared: dict[Hashable, _core.Prepared]) -> None:
        """Let the core have the range; `prepared` has what is computed ahead for others."""
        ahead, shared = self.preparation, None
        if ahead is not None and not ahead.varies:
            at = ahead.code and ahead.code.address
            identity = at, ahead.known, *self.taken.ahead
            shared = prepared.setdefault(identity, _core.Prepared())
        plans.add(
            len(self.names), self.table, self.asked, self.template.row,
            None if ahead is None else ahead.row, shared, *self.taken,
        )  # fmt: skip

    def prove(self, values: Mapping[str, int]) -> None:
        """Prove its plans for one size, as far as they can be."""
        for proof in self.proofs:
            proof(values)


# -- on disk --------------------------------------------------------------------------------------


def _write(key: bytes | None, ranges: Iterable[Range]) -> None:
    """Keep ranges, with those that other processes have kept."""
    if key is None:
        return
    described = [_described(one) for one in ranges]
    known = [found[:2] for found in described]
    described += [found for found in _kept(key) if found[:2] not in known]
    content = json.dumps(described[:_MOST_RANGES]).encode()
    object_cache.default_cache().write(key, content)


def _kept(key: bytes | None) -> list[Any]:
    content = object_cache.default_cache().read(key)
    found: list[Any] = [] if content is None else json.loads(content)
    return found


def _described(one: Range) -> list[Any]:
    templates = [one.template, *([one.preparation] if one.preparation else [])]
    facts = [[t.facts, t.known, t.entry] for t in templates]
    return [list(one.names), list(one.conditions), one.table, one.asked, facts, one.taken]


def _read(key: bytes | None) -> list[Range]:
    """The ranges that were kept, as far as their machine code is still there."""
    found = []
    for names, conditions, table, asked, facts, taken in _kept(key):
        template, *ahead = (_read_template(*fact) for fact in facts)
        if template is not None and None not in ahead:
            preparation = ahead[0] if ahead else None
            facts = table, asked, template, preparation, Taken(*taken)
            found.append(Range(tuple(names), tuple(conditions), *facts))
    return found


def _read_template(facts: Sequence[Any], known: str | None, entry: str) -> Template | None:
    code = stored.entry_function(entry) if entry else None
    return None if entry and code is None else Template(PlanFacts(*facts), known, code, entry)
