"""Random programs with fixed seeds, whose arguments have other extents from call to call."""

import pytest

from tests.programs import generate
from tests.programs.sizes import wrong

SEED = 21
PROGRAMS = 10  # of one test


@pytest.mark.lengthy
@pytest.mark.parametrize("part", range(8))
@pytest.mark.filterwarnings("ignore")
def test_open_extents_change_nothing(part):
    for number in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        program = generate.program(SEED, number)
        told = list(wrong(program, SEED, number))
        assert not told, "\n".join([program.source(), *told])
