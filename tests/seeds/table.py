"""How many cells of each document run: python -m tests.seeds.table"""

from __future__ import annotations

import re

from tests.seeds.documents import ANY, MXNET, Cell, cells, documents, folder
from tests.seeds.expectations import NOT_YET, expected_text
from tests.seeds.run import results


def main() -> None:
    """Print a line a document."""
    if not documents():
        print(f"no documents in {folder()}")
    for document in documents():
        all_cells = [cell for cell in cells() if cell.document == document]
        ours = [cell for cell in all_cells if cell.tab in (ANY, MXNET)]
        print(f"{document}: {sum(map(_runs, ours))} of {len(ours)}{_rest(all_cells)}")


def _runs(cell: Cell) -> bool:
    result = results(cell.document)[cell.number]
    as_said = re.fullmatch(expected_text(cell), result["printed"], re.DOTALL)
    return not result["error"] and as_said is not None


def _rest(all_cells: list[Cell]) -> str:
    """What does not run yet and why, and what is not for us."""
    reasons = [NOT_YET.get((cell.document, cell.number)) for cell in all_cells]
    reasons += [f"for {cell.tab}" for cell in all_cells if cell.tab not in (ANY, MXNET)]
    counted = {reason: reasons.count(reason) for reason in reasons if reason}
    return "".join(f"; {count} {reason}" for reason, count in counted.items())


if __name__ == "__main__":
    main()
