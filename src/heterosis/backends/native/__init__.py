"""The native back end: machine code for this processor, through LLVM.

Imported by what is computed first. What plans and lowers is imported by what is not known yet: it
takes as long as a third of all other imports.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from heterosis import _core
from heterosis.backends import (
    EagerBackend,
    Entry,
    Executable,
    LibraryOptions,
    SizedExecutable,
)
from heterosis.backends.native.compile.whole import compile_program
from heterosis.ir.primitives.families import Control, Elementwise, Opaque, Primitive, Reduction
from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.runtime.errors import UnsupportedError
from heterosis.runtime.warning import warn_user

if TYPE_CHECKING:
    from heterosis.backends.native.compile.sized import SizedPlans


class _OpenProgram(SizedExecutable):
    """Plans for ranges of sizes; for each size by itself, where these cannot be."""

    def __init__(self, ranges: SizedPlans, each: SizedExecutable):
        self.ranges, self.each = ranges, each
        self._told = False

    @property
    def plans(self) -> tuple[tuple[str, ...], _core.SizedPlans] | None:
        """Those of all ranges."""
        names = self.ranges.names
        return None if names is None else (names, self.ranges.native)

    def at(self, values: Mapping[str, int]) -> Executable:
        try:
            plan = self.ranges.at(values)
        except UnsupportedError as error:
            self._tell(error)
            return self.each.at(values)
        return Executable(partial(_core.run_plan, plan), plan)

    def _tell(self, error: UnsupportedError) -> None:
        """Warn, once, that every size is compiled by itself."""
        if not self._told:
            self._told = True
            warn_user(
                f"{self.ranges.program.name} is planned and compiled for every size by itself: "
                f"{error} Hybridize it with dynamic=False if that is meant."
            )


class Native(EagerBackend):
    """Compiles for the processor that this process runs on."""

    def compile(
        self, program: Program, layouts: Sequence[Strided], fixed: Collection[int] = ()
    ) -> Executable:
        """A plan for the core, in which results that only rearrange an input are views of it."""
        return self.compile_writing(program, layouts, fixed, {})

    def compile_writing(
        self,
        program: Program,
        layouts: Sequence[Strided],
        fixed: Collection[int],
        written: Mapping[int, int],
    ) -> Executable:
        """The same. It says which results may stand where inputs do, and the core lets them as it
        runs the plan for a function; `run` gives all of them memory of their own."""
        plan = compile_program(program, layouts, fixed, written)
        return Executable(partial(_core.run_plan, plan), plan)

    def compile_sized(
        self,
        program: Program,
        layouts: Sequence[Strided | None],
        fixed: Collection[int] = (),
        written: Mapping[int, int] = MappingProxyType({}),
    ) -> SizedExecutable:
        """Plans for ranges of sizes, each of which shares its machine code."""
        from heterosis.backends.native.compile.sized import SizedPlans

        each = super().compile_sized(program, layouts, fixed, written)
        return _OpenProgram(SizedPlans(program, layouts, fixed, written), each)

    def plan(
        self,
        program: Program,
        layouts: Sequence[Strided],
        targets: Sequence[Strided] | None,
        *,
        views: bool,
        in_place: bool = False,
    ) -> _core.Plan:
        """Code for any size, which all shapes of a kind share."""
        from heterosis.backends.native.compile.single import compile_single

        return compile_single(program, layouts, targets, views=views, in_place=in_place)

    def library(
        self, entries: Sequence[Entry], name: str, options: LibraryOptions
    ) -> dict[str, bytes]:
        """Machine code beside the arrays that it needs."""
        from heterosis.backends.native.export.library import header, library

        files = library(entries, name, options)
        return files | {f"{name}.h": header(entries, name).encode()}

    def has(self, primitive: Primitive) -> bool:
        """Whether there is a row for it, where its family has rows."""
        from heterosis.backends.native.codegen import tables

        if isinstance(primitive, Control):
            from heterosis.backends.native.schedule import control  # noqa: F401 - their rows
        try:
            match primitive:
                case Elementwise():
                    tables.element(primitive)
                case Reduction():
                    tables.reducer(primitive)
                case Opaque():
                    tables.kernel(primitive)
        except UnsupportedError:
            return False
        return True

    def is_dear(self, primitive: Elementwise) -> bool:
        """What its row says that it costs."""
        from heterosis.backends.native.codegen import tables

        return tables.is_dear(primitive)
