"""Contexts and settings."""

import os
import subprocess
import sys

import pytest

from heterosis import np, npx
from heterosis.runtime.errors import (
    ArgumentError,
    MissingAttributeError,
    OutOfMemoryError,
    UnsupportedError,
)


def test_contexts_are_values():
    assert npx.cpu() == npx.cpu(0) == npx.Context("cpu") == npx.Context(npx.cpu())
    assert npx.cpu() != npx.cpu_pinned()
    assert len({npx.cpu(), npx.cpu(0), npx.gpu(1)}) == 2
    assert (str(npx.gpu(1)), npx.gpu(1).device_type, npx.gpu(1).device_id) == ("gpu(1)", "gpu", 1)
    with pytest.raises(ArgumentError, match="no device"):
        npx.Context("tpu")


def test_current_context():
    assert npx.current_context() == npx.cpu()
    with npx.cpu_pinned() as entered:
        assert npx.current_context() is entered
        assert np.ones(1).ctx == npx.cpu()
    assert npx.current_context() == npx.cpu()


@pytest.mark.lengthy
def test_gpus_that_are_not_there_are_refused():
    number = npx.num_gpus()
    missing = npx.gpu(number)
    for use in (
        lambda: np.ones(1, ctx=missing),
        lambda: npx.gpu_memory_info(number),
        missing.__enter__,
    ):
        with pytest.raises(
            UnsupportedError, match=rf"num_gpus\(\) is {number} here.*heterosis\[cuda\]"
        ):
            use()


def test_settings_are_read_back():
    before = npx.settings.threads
    try:
        npx.settings.threads = 1
        assert npx.settings.threads == 1
    finally:
        npx.settings.threads = before
    with pytest.raises(ArgumentError):
        npx.settings.threads = 0


def test_memory_limit():
    before = npx.settings.memory_limit
    try:
        npx.settings.memory_limit = 1 << 20
        with pytest.raises(OutOfMemoryError):
            np.zeros(1 << 20 | 1)
    finally:
        npx.settings.memory_limit = before
    assert np.zeros(1 << 20 | 1).shape == (1 << 20 | 1,)


@pytest.fixture
def settings():
    before = npx.settings.threads
    yield npx.settings
    npx.settings.threads, npx.settings.intra_op_threads = before, 1024


def test_some_threads_share_an_operation(settings):
    settings.threads = 4
    assert settings.intra_op_threads == 4
    settings.intra_op_threads = 3
    assert (settings.threads, settings.intra_op_threads) == (4, 3)
    settings.threads = 2
    assert settings.intra_op_threads == 2
    with pytest.raises(ArgumentError, match="intra_op_threads: expected at least 1, and got 0"):
        settings.intra_op_threads = 0


def test_unknown_settings(settings):
    with pytest.raises(MissingAttributeError, match="Did you mean intra_op_threads"):
        settings.intraop_threads = 1


@pytest.mark.lengthy
@pytest.mark.parametrize("given, shown", [("1", "1"), ("many", "expected a whole number")])
def test_threads_from_the_environment(given, shown):
    ran = subprocess.run(
        [sys.executable, "-c", "from heterosis import npx; print(npx.settings.threads)"],
        env={**os.environ, "HETEROSIS_NUM_THREADS": given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown in ran.stdout + ran.stderr
