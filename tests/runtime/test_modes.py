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
