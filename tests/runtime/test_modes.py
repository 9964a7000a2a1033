"""Modes: switched for a while, and each thread's own."""

import threading

import pytest

from heterosis.runtime import modes


@pytest.fixture
def training():
    with modes.switched(training=True):
        yield


def test_modes_are_switched_and_come_back():
    assert not modes.is_training() and not modes.is_recording()
    with modes.switched(recording=True, training=True):
        assert modes.is_training() and modes.is_recording()
        with modes.switched(recording=False):
            assert modes.is_training() and not modes.is_recording()
        assert modes.set_training(False) is True and modes.is_recording()
    assert not modes.is_training() and not modes.is_recording()


def test_modes_belong_to_their_thread(training):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(modes.is_training()))
    thread.start()
    thread.join()
    assert seen == [False] and modes.is_training()


def test_one_object_switches_modes_many_times():
    scope = modes.switched(training=True)
    for _ in range(2):
        with scope:
            assert modes.is_training()
            with modes.switched(training=False), scope:
                assert modes.is_training()
            assert modes.is_training()
        assert not modes.is_training()


def test_one_object_switches_modes_of_several_threads():
    """What was before is each thread's own, in whichever order the blocks end."""
    scope, seen = modes.switched(training=True), []
    inside, may_end = threading.Event(), threading.Event()

    def other():
        with modes.switched(recording=True):
            with scope:
                inside.set()
                may_end.wait(10)
            seen.append((modes.is_recording(), modes.is_training()))

    thread = threading.Thread(target=other)
    with scope:
        thread.start()
        inside.wait(10)
    assert not modes.is_training() and not modes.is_recording()
    may_end.set()
    thread.join()
    assert seen == [(True, False)]


def test_a_function_is_run_in_other_modes():
    @modes.switched(training=True)
    def is_training(depth):
        """Whether all calls within calls are in training."""
        return modes.is_training() and (depth == 0 or is_training(depth - 1))

    assert is_training(3) and not modes.is_training()
    assert is_training.__name__ == "is_training" and is_training.__doc__.startswith("Whether")
    with pytest.raises(TypeError):
        is_training()
    assert not modes.is_training()
