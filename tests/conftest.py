"""Shared by all tests."""

import os
import signal
from collections import defaultdict
from contextlib import closing

import pytest

# Every plan that is made is proved to compute its program, in the processes that tests start too.
os.environ.setdefault("HETEROSIS_CHECK", "1")

from heterosis import npx
from heterosis.capture import guards
from tests.choose import spread
from tests.differential.mxnet_process import MXNetProcess, why_not

pytest_plugins = ["tests.round_trips"]

# A process started in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What --quick runs of a table, and what of the cases that one test goes through.
_ROWS = 2
_CASES = 5


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="two rows of each table, nothing lengthy")
    parser.addoption("--rewrite", action="store_true", help="whatever is captured is rewritten")
    parser.addoption("--on-gpu", action="store_true", help="arrays are made on a GPU")


def pytest_configure(config):
    if config.getoption("--rewrite"):
        guards.Reach.decides = property(lambda self: True, lambda self, value: None)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--on-gpu"):
        left = [item for item in items if _is_for_main_memory(item)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
    if config.getoption("--quick"):
        chosen = set(_quick(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def _is_for_main_memory(item):
    """Whether --on-gpu leaves a test out: it is marked so, or of the reference back end."""
    parameters = getattr(item, "callspec", None)
    of_reference = parameters is not None and "reference" in map(str, parameters.params.values())
    return of_reference or item.get_closest_marker("main_memory") is not None


def _quick(items):
    """What --quick runs. A table is a parametrized test, a row one set of its parameters.

    - Nothing that is marked slow.
    - Of a table the first and the last row; if the mark `each` names a parameter, one row for
      every value of it.
    - Nothing that is marked lengthy, but for the first row of a table of which nothing else is
      left.
    - All other tests.
    """
    tests = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for rows in tests.values():
        short = [row for row in rows if not row.get_closest_marker("lengthy")]
        if not hasattr(rows[0], "callspec"):
            yield from short
        elif each := rows[0].get_closest_marker("each"):
            yield from _one_for_each(*each.args, rows)
        else:
            yield from spread(short, _ROWS) or rows[:1]


def _one_for_each(parameter, rows):
    """Rows whose other parameters take turns."""
    values = defaultdict(list)
    for row in rows:
        values[row.callspec.params[parameter]].append(row)
    for turn, of_one in enumerate(values.values()):
        yield of_one[turn % len(of_one)]


@pytest.fixture(autouse=True)
def on_gpu(request):
    """With --on-gpu, what a test makes is on a GPU where it names no other context."""
    if not request.config.getoption("--on-gpu"):
        yield
        return
    with npx.gpu(0):
        yield


@pytest.fixture
def some(request):
    """Of the cases that a test goes through: all, with --quick a few from the first to the last."""
    quick = request.config.getoption("--quick")
    return lambda cases: spread(cases, _CASES) if quick else cases


@pytest.fixture(scope="session")
def mxnet():
    """MXNet 1.9.1 in a process of its own; where there is none, what wants it is skipped."""
    if reason := why_not():
        pytest.skip(reason)
    with closing(MXNetProcess()) as process:
        yield process


@pytest.fixture(autouse=True)
def no_error_left_behind():
    """A test's queued work ends with the test, and its errors belong to it."""
    yield
    npx.waitall()
