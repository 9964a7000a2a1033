"""Every code cell of the documents runs: those for MXNet and plain Python unchanged, those for
PyTorch and TensorFlow as the same steps in Heterosis."""

import re

import pytest

from tests.seeds.documents import VARIABLE, Cell, cells, folder
from tests.seeds.expectations import NOT_YET, expected_text
from tests.seeds.run import results

CELLS = cells()


def _parameter(cell: Cell):
    reason = NOT_YET.get((cell.document, cell.number))
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(cell, marks=marks, id=str(cell))


@pytest.mark.skipif(
    not CELLS, reason=f"no documents in {folder()}; {VARIABLE} can name their folder"
)
@pytest.mark.parametrize("cell", [_parameter(cell) for cell in CELLS])
def test_the_cell_runs(cell):
    result = results(cell.document)[cell.number]
    assert not result["error"], result["error"]
    assert re.fullmatch(expected_text(cell), result["printed"], re.DOTALL), result["printed"]


@pytest.mark.lengthy
@pytest.mark.skipif(not CELLS, reason="no documents")
def test_what_does_not_run_yet_is_there():
    known = {(cell.document, cell.number) for cell in CELLS}
    assert set(NOT_YET) <= known
