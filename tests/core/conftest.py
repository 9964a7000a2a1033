"""What the engine's tests change and put back."""

import pytest

from heterosis import _core


@pytest.fixture
def queued():
    """All work goes through the queue, however small."""
    before = _core.inline_nanoseconds()
    _core.set_inline_nanoseconds(0)
    yield
    _core.set_inline_nanoseconds(before)


@pytest.fixture
def bounded():
    """A function that bounds the engine, until the test ends."""
    yield _core.set_engine_bounds
    _core.set_engine_bounds(4096, max(1, _core.memory_counters()["limit"] // 8))


@pytest.fixture
def two_threads():
    """Two tasks can run at the same time, whatever the machine."""
    before = _core.threads()
    _core.set_threads(2)
    yield
    _core.set_threads(before)
