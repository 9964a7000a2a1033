"""Shared by all tests."""

import importlib.util
import os
import signal
from collections import defaultdict
from contextlib import closing

import pytest

# Every plan that is made is proved to compute its program, in the processes that tests start too.
os.environ.setdefault("HETEROSIS_CHECK", "1")

from heterosis import npx
from heterosis.capture import guards
from heterosis.runtime.errors import MissingPackageError
from tests.choose import spread
from tests.differential.mxnet_process import MXNetProcess, why_not

pytest_plugins = ["tests.round_trips"]

# A process started in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What --some runs of a table, and what of the cases that one test goes through.
_ROWS = 2
_CASES = 5
# The same for --quick, and what it runs of a file.
_TESTS = 3
_FEW_CASES = 2


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="every operation, some of each file")
    parser.addoption("--some", action="store_true", help="two rows of each table, nothing lengthy")
    parser.addoption("--release", action="store_true", help="also what runs before a release alone")
    parser.addoption("--rewrite", action="store_true", help="whatever is captured is rewritten")
    parser.addoption("--on-gpu", action="store_true", help="arrays are made on a GPU")


def pytest_configure(config):
    if config.getoption("--rewrite"):
        guards.Reach.decides = property(lambda self: True, lambda self, value: None)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--on-gpu"):
        _leave_out(config, items, set(filter(_is_for_main_memory, items)))
    if not config.getoption("--release"):
        _leave_out(config, items, set(_of_a_release(items)))
    if choose := _chooses(config):
        _leave_out(config, items, set(items) - set(choose(items)))
    # What takes minutes comes first, or a single process would be left with it in the end.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _leave_out(config, items, left):
    """Run them not, and count them as deselected."""
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _of_a_release(items):
    """What --release alone runs: what has the mark `release`; if it names a parameter, only what is
    left when the table has one row for every value of it."""
    tables = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("release"):
            if mark.args:
                tables[item.nodeid.partition("[")[0], mark.args].append(item)
            else:
                yield item
    for (_, parameters), rows in tables.items():
        kept = set(_one_for_each(*parameters, rows))
        yield from (row for row in rows if row not in kept)


def _chooses(config):
    """What takes some of the tests, if all are not wanted."""
    quick, some = config.getoption("--quick"), config.getoption("--some")
    return _quick if quick else _some if some else None


def _is_for_main_memory(item):
    """Whether --on-gpu leaves a test out: it is marked so, or of the reference back end."""
    parameters = getattr(item, "callspec", None)
    of_reference = parameters is not None and "reference" in map(str, parameters.params.values())
    return of_reference or item.get_closest_marker("main_memory") is not None


def _quick(items):
    """What --quick runs. A table is a parametrized test, a row one set of its parameters.

    - Of a table with the mark `each`, one row for every value of the parameter that it names.
    - Of a file three other tests, from its first to its last; of one that is a table, the first
      row. Nothing that is marked lengthy or slow, but for one test of a folder that has no other.
    """
    files = defaultdict(list)
    for rows in _tables(items):
        if each := rows[0].get_closest_marker("each"):
            yield from _one_for_each(*each.args, rows)
        else:
            files[rows[0].path].append(rows)
    folders = defaultdict(list)
    for path, tables in files.items():
        folders[path.parent].append(tables)
    for of_folder in folders.values():
        short = [[row for rows in tables for row in _short(rows)[:1]] for tables in of_folder]
        if any(short):
            for tests in short:
                yield from spread(tests, _TESTS)
        else:
            yield of_folder[0][0][0]


def _some(items):
    """What --some runs.

    - Nothing that is marked slow.
    - Of a table the first and the last row; if it has the mark `each`, one row for every value of
      the parameter that it names.
    - Nothing that is marked lengthy, but for the first row of a table of which nothing else is
      left.
    - All other tests.
    """
    for rows in _tables(items):
        short = _short(rows)
        if not hasattr(rows[0], "callspec"):
            yield from short
        elif each := rows[0].get_closest_marker("each"):
            yield from _one_for_each(*each.args, rows)
        else:
            yield from spread(short, _ROWS) or rows[:1]


def _tables(items):
    """The rows of each test that are not slow; a test that is no table has one."""
    tests = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("slow"):
            tests[item.nodeid.partition("[")[0]].append(item)
    return tests.values()


def _short(rows):
    return [row for row in rows if not row.get_closest_marker("lengthy")]


def _one_for_each(parameter, rows):
    """Rows whose other parameters take turns."""
    values = defaultdict(list)
    for row in rows:
        values[row.callspec.params[parameter]].append(row)
    for turn, of_one in enumerate(values.values()):
        yield of_one[turn % len(of_one)]


# Free-threaded Python has no wheel of what writes files of programs and of states.
_WRITES_FILES = importlib.util.find_spec("safetensors") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from _skipped_without_a_package())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from _skipped_without_a_package())


def _skipped_without_a_package():
    """A test ends as skipped where what it wants to write cannot be written here."""
    try:
        return (yield)
    except BaseException as error:
        if _WRITES_FILES or not (missing := _missing_package(error)):
            raise
        pytest.skip(str(missing))


def _missing_package(error):
    """The error that says so, which another may have come after: no warning was given, say."""
    while error and not isinstance(error, MissingPackageError):
        error = error.__context__
    return error


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
    """Of the cases that a test goes through: all, or a few from the first to the last."""
    chooses = _chooses(request.config)
    few = {None: None, _some: _CASES, _quick: _FEW_CASES}[chooses]
    return lambda cases: spread(cases, few) if few else cases


@pytest.fixture
def release(request):
    """Whether all cases are wanted, as before a release, and not one of a kind."""
    return request.config.getoption("--release")


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
