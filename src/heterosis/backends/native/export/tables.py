"""The tables of an exported library: what it is asked for, and what its programs are at sizes."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.backends.native.codegen.emit.builder import I8, I64, Module
from heterosis.backends.native.export.facts import CaseFacts, EntryFacts, Level
from heterosis.ir.formulas import FIELDS

UNKNOWN = -9  # what depends on sizes, where these are not known: a code of `heterosis.h`
WEIGHTS = "heterosis.weights"  # the symbol of the arrays that a library holds

# Fields of a row of the table of entries, of which each has the fields of an array behind it.
ENTRY = (
    "name",
    "workspace",
    "inputs",
    "outputs",
    "arrays",
    "buffers",
    "count",
    "failures",
    "many",
    "level",
    "sizes",  # how many it has, and where they begin
    "first_size",
    "cases",
    "first_case",
    "at_bytes",
    "refused",
)
ARRAY = ("name", "dtype", "rank", "bytes", "extents")
EXTENT = ("number", "text")
SIZE = ("name", "least", "most")
# Operations, and words for what a program at sizes has: its row of the table of entries, and so on.
CASE = ("operations", "count", "words", "many", "extents", "floats", "integers")

# What `heterosis_open` gives is the address of these for the level that it has chosen, and what
# `heterosis_at` gives for the one program that it has prepared.
HANDLE = (
    "own",  # where the level's stand
    "rows",
    "programs",
    "weights",
    "arrays",
    "extents",
    "first",  # the number of the first entry, and how many there are
    "count",
    "floats",
    "integers",
)
HANDLE_BYTES = 128  # with room
HANDLE_WORDS = HANDLE_BYTES // 8


class Tables:
    """Numbers and texts, as functions of the library find them."""

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = {
            name: []
            for name in (
                "arrays", "extents", "buffers", "failures", "sizes", "operations", "words", "cases",
            )
        }  # fmt: skip
        self._texts = bytearray()
        self._known: dict[str, int] = {}

    def text(self, text: str) -> int:
        """Where a text begins among all."""
        if text not in self._known:
            self._known[text] = len(self._texts)
            self._texts += text.encode() + b"\0"
        return self._known[text]

    def write(self, module: Module, levels: Sequence[Level], *, inside: bool) -> None:
        """Define the tables of numbers, and the pointers of each level; weights are `inside` the
        library, or come with a file."""
        handles: list[str] = []
        of_cases: list[str] = []
        for number, level in enumerate(levels):
            rows = [field for entry in level.entries for field in self._row(level.name, entry)]
            module.table(f"heterosis.rows{number}", I64, rows)
            programs = [_program_of(entry) for entry in level.entries]
            module.pointers(f"heterosis.programs{number}", programs)
            of_cases += [f"@{case.symbol}" for e in level.entries if e.sizes for case in e.cases]
            handles += [
                f"getelementptr (ptr, ptr @heterosis.handles, i64 {number * len(HANDLE)})",
                f"@heterosis.rows{number}", f"@heterosis.programs{number}",
                f"@{WEIGHTS}" if inside else "null", "@heterosis.arrays", "@heterosis.extents",
                "null", f"inttoptr (i64 {len(level.entries)} to ptr)", "null", "null",
            ]  # fmt: skip
        for label, numbers in self.numbers.items():
            module.table(f"heterosis.{label}", I64, numbers or [0])
        module.pointers("heterosis.case_programs", of_cases or ["null"])
        module.pointers("heterosis.handles", handles)

    def write_texts(self, module: Module) -> None:
        """Define the texts, when all are known."""
        texts = [byte - 256 if byte > 127 else byte for byte in self._texts]
        module.table("heterosis.texts", I8, texts)

    def _row(self, level: str, entry: EntryFacts) -> list[int]:
        """The fields of an entry, after what they point to has been appended to the tables."""
        arrays, extents = self.numbers["arrays"], self.numbers["extents"]
        case = entry.cases[0]
        fields = self._fields(level, entry, case)
        first, known = len(arrays) // len(ARRAY), not entry.sizes
        each = zip((*entry.inputs, *entry.outputs), case.arrays, strict=True)
        for facts, (nbytes, numbers) in each:
            fixed = all(word & 1 for word in numbers)
            arrays += [
                self.text(facts.name), facts.dtype, len(numbers), nbytes >> 1 if fixed else UNKNOWN,
                len(extents) // len(EXTENT),
            ]  # fmt: skip
            for word, text in zip(numbers, facts.extents, strict=True):
                extents += [word >> 1 if word & 1 else UNKNOWN, self.text(text)]
        fields |= {"arrays": first, "workspace": case.workspace >> 1 if known else UNKNOWN}
        if not known:
            fields |= self._sized(level, entry)
        return [fields[name] for name in ENTRY]

    def _fields(self, level: str, entry: EntryFacts, case: CaseFacts) -> dict[str, int]:
        """The fields of an entry that has one case, but for what depends on sizes."""
        buffers, failures = self.numbers["buffers"], self.numbers["failures"]
        fields = {
            "name": self.text(entry.name), "inputs": len(entry.inputs),
            "outputs": len(entry.outputs), "buffers": len(buffers) // 2,
            "count": len(case.buffers), "failures": len(failures), "many": len(case.failures),
            "level": self.text(level), "refused": self.text(_refused(entry)),
            **dict.fromkeys(("sizes", "first_size", "cases", "first_case", "at_bytes"), 0),
        }  # fmt: skip
        buffers += [number for pair in case.buffers for number in pair]
        failures += map(self.text, case.failures)
        return fields

    def _sized(self, level: str, entry: EntryFacts) -> dict[str, int]:
        """The fields of an entry that says of which sizes it is, and what it is at these."""
        sizes, cases = self.numbers["sizes"], self.numbers["cases"]
        found = {
            "sizes": len(entry.sizes), "first_size": len(sizes), "cases": len(entry.cases),
            "first_case": len(cases),
        }  # fmt: skip
        for size in entry.sizes:
            sizes += [self.text(size.name), size.least, size.most]
        words = 0
        for case in entry.cases:
            row = self._case(level, entry, case)
            words = max(words, row[CASE.index("many")])
            cases += row
        return found | {"at_bytes": 8 * (HANDLE_WORDS + words + entry.slots)}

    def _case(self, level: str, entry: EntryFacts, case: CaseFacts) -> list[int]:
        """The fields of a case, after its operations and words have been appended."""
        fields = self._fields(level, entry, case)
        row = [2 * fields.get(name, 0) + 1 for name in ENTRY]
        row[ENTRY.index("workspace")] = case.workspace
        arrays: list[int] = []
        extents: list[int] = []
        each = zip((*entry.inputs, *entry.outputs), case.arrays, strict=True)
        for facts, (nbytes, numbers) in each:
            known = self.text(facts.name), facts.dtype, len(numbers)
            arrays += [*(2 * n + 1 for n in known), nbytes, len(extents) // len(EXTENT) * 2 + 1]
            for word, text in zip(numbers, facts.extents, strict=True):
                extents += [word, 2 * self.text(text) + 1]
        words = [*row, *arrays, *extents, *case.floats, *case.integers]
        at = [len(row), len(row) + len(arrays)]
        at += [at[1] + len(extents), at[1] + len(extents) + len(case.floats)]
        operations, own = self.numbers["operations"], self.numbers["words"]
        begin = len(operations), len(own)
        operations += case.operations
        own += words
        return [begin[0], len(case.operations) // FIELDS, begin[1], len(words), *at[1:]]


def _program_of(entry: EntryFacts) -> str:
    """What runs an entry; nothing where that depends on sizes."""
    return "null" if entry.sizes else f"@{entry.cases[0].symbol}"


def _refused(entry: EntryFacts) -> str:
    """What to say of sizes that an entry does not take, or does not have."""
    bounds = (f"{s.name} from {s.least} to {s.most}" for s in entry.sizes)
    return (
        f"{entry.name} is for sizes that are given to heterosis_at, whose result is then taken in "
        f"place of the library: {', '.join(bounds)}, as far as the library has a plan for them, "
        "which `python -m heterosis inspect` shows. For others, export it with sample inputs of "
        "these sizes, or with fewer open extents"
    )
