"""What an exported library knows of its programs, for each kind of processors."""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.target import Target
from heterosis.ir.formulas import FIELDS

GIVEN, HELD, MADE, UNUSED = range(4)  # what a buffer of a program is


@dataclass(frozen=True)
class ArrayFacts:
    """An array that callers give or get; extents that follow from sizes are texts of these."""

    name: str
    dtype: int  # the position among the element types, which is the number of `heterosis.h`
    extents: tuple[str, ...]


@dataclass(frozen=True)
class SizeFacts:
    """A size that callers choose."""

    name: str
    least: int
    most: int


@dataclass(frozen=True)
class CaseFacts:
    """A program that runs for some sizes, or for none, and what its buffers are: (GIVEN, HELD, MADE
    or UNUSED, position or offset). What depends on sizes is a word of `formulas`."""

    symbol: str
    buffers: tuple[tuple[int, int], ...]
    failures: tuple[str, ...]
    workspace: int
    arrays: tuple[tuple[int, tuple[int, ...]], ...]  # the bytes and the extents of each
    floats: tuple[int, ...]
    integers: tuple[int, ...]
    operations: tuple[int, ...] = ()


@dataclass(frozen=True)
class EntryFacts:
    """A program that callers know; the first of its cases that holds is what runs."""

    name: str
    inputs: tuple[ArrayFacts, ...]
    outputs: tuple[ArrayFacts, ...]
    sizes: tuple[SizeFacts, ...]
    cases: tuple[CaseFacts, ...]

    @property
    def slots(self) -> int:
        """How many numbers a case needs while it is evaluated, at most."""
        return len(self.sizes) + max(len(case.operations) // FIELDS for case in self.cases)


@dataclass(frozen=True)
class Level:
    """The entries as they are for one kind of processors."""

    name: str
    target: Target
    entries: tuple[EntryFacts, ...]
