"""Shared by all tests."""

import signal

import pytest

from heterosis import npx

# A process started in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave out the tests marked slow")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--quick"):
        chosen = [item for item in items if not item.get_closest_marker("slow")]
        left = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left)
        items[:] = chosen


@pytest.fixture(autouse=True)
def no_error_left_behind():
    """A test's queued work ends with the test, and its errors belong to it."""
    yield
    npx.waitall()
