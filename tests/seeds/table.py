"""How many cells of each document run: python -m tests.seeds.table"""

from __future__ import annotations

import re

from tests.seeds.documents import Cell, cells, documents, folder
from tests.seeds.expectations import NOT_YET, expected_text
from tests.seeds.retold import told
from tests.seeds.run import results


def main() -> None:
    """Print a line a document."""
    if not documents():
        print(f"no documents in {folder()}")
    for document in documents():
        mine = [cell for cell in cells() if cell.document == document]
        print(f"{document}: {sum(map(_runs, mine))} of {len(mine)} run and agree{_rest(mine)}")


def _runs(cell: Cell) -> bool:
    result = results(cell.document)[cell.number]
    as_said = re.fullmatch(expected_text(cell), result["printed"], re.DOTALL)
    return not result["error"] and as_said is not None


def _rest(cells: list[Cell]) -> str:
    """How many of the cells are retold, and what does not run yet and why."""
    facts = [NOT_YET.get((cell.document, cell.number)) for cell in cells]
    facts += [f"for {cell.tab}, as the same steps" for cell in cells if told(cell)]
    counted = {fact: facts.count(fact) for fact in facts if fact}
    return "".join(f"; {count} {fact}" for fact, count in counted.items())


if __name__ == "__main__":
    main()
