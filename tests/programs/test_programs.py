"""Random programs with fixed seeds, in all ways; `python -m tests.programs` runs as many as wanted.

A failure shows a script, and the command that repeats it.
"""

import pytest

from tests.programs.hunt import Hunt
from tests.programs.process import Worker

SEED = 14
PROGRAMS = 12  # of one test
FEW = 4  # of those whose networks take seconds each, but before a release
TESTS, OFTEN = 25, 10  # as many do not wait for a release


@pytest.fixture(scope="module")
def workers():
    found = [Worker()]
    yield found
    for worker in found:
        worker.close()


@pytest.fixture
def turned():
    worker = Worker(turned=True)
    yield [worker]
    worker.close()


def check(workers, numbers, kinds=()):
    told = []
    hunt = Hunt(workers, told.append)
    for number in numbers:
        hunt.run(SEED, number, kinds)
    assert not told, "\n".join(told)


@pytest.mark.parametrize(
    "part", [pytest.param(n, marks=[pytest.mark.release] * (n >= OFTEN)) for n in range(TESTS)]
)
def test_programs(part, workers, some):
    check(workers, some(range(part * PROGRAMS, (part + 1) * PROGRAMS)))


@pytest.mark.lengthy
def test_attention(workers, release):
    check(workers, range(PROGRAMS if release else FEW), ["attending"])


@pytest.mark.lengthy
def test_layers_that_keep_their_channels_last(turned, release):
    check(turned, range(PROGRAMS if release else FEW), ["layer"])
