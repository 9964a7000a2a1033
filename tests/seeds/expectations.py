"""What the documents say that their cells do, and which cells cannot do it yet."""

from __future__ import annotations

import re

from tests.seeds.documents import Cell

# (document, cell): the reason. A cell that runs must leave this table.
NOT_YET: dict[tuple[str, int], str] = {}

# A hybridized block runs its Python once: the next call of the same block prints nothing.
_SILENT = {("000", 12), ("002", 20), ("004", 20)}
_SUMS = (1, 2)  # in every document: a sum, and a program text that computes the same
_TIMED = r"with (?:d2l\.)?Benchmark\("
_SECONDS = r"[^\n]*: \d+\.\d{4} sec\n"


def expected_text(cell: Cell) -> str:
    """A pattern for all that the cell prints."""
    if (cell.document, cell.number) in _SILENT:
        return ""
    if cell.number in _SUMS:
        return r".*\b10\n"
    if re.search(_TIMED, cell.code):
        return _SECONDS * len(re.findall(_TIMED, cell.code))
    if "my_mlp*" in cell.code:
        return r".*\bmy_mlp\b.*"
    return ".*"
