"""While programs are compiled, Python does not search for garbage; before and after it does."""

import gc
import os
import threading

import pytest

from heterosis import hybridize, np
from heterosis.runtime import garbage


@pytest.fixture(autouse=True)
def as_before():
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_pauses_nest_and_end():
    with garbage.not_searched():
        with garbage.not_searched():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="mine"), garbage.not_searched():
        raise ValueError("mine")
    assert gc.isenabled()


def test_what_a_user_has_switched_off_stays_off():
    gc.disable()
    with garbage.not_searched():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_threads_share_a_pause():
    inside, leave = threading.Event(), threading.Event()

    def pause():
        with garbage.not_searched():
            inside.set()
            leave.wait(30)

    other = threading.Thread(target=pause)
    other.start()
    assert inside.wait(30)
    with garbage.not_searched():
        pass
    assert not gc.isenabled()
    leave.set()
    other.join()
    assert gc.isenabled()


@pytest.mark.filterwarnings("ignore")  # of what it notes outside
def test_functions_are_captured_without_it():
    seen = []

    @hybridize
    def function(x):
        seen.append(gc.isenabled())
        return x + 1

    function(np.ones(3)).tolist()
    assert not seen[0] and gc.isenabled()


def test_a_child_searches():
    with garbage.not_searched():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert not gc.isenabled()
    assert gc.isenabled()
