"""Programs of several processes, and what is said where these do not come together."""

import signal
import socket
import subprocess
import sys

import pytest

from heterosis import distributed, hybridize, np
from heterosis.kvstore import world
from heterosis.kvstore.world import Launched
from heterosis.runtime.errors import HeterosisError
from tests.kvstore.launch import mpiexec, settings
from tests.kvstore.test_mpi import COUNTS, check_example

pytest.importorskip("jax", reason="JAX is not installed: pip install 'heterosis[xla]'")

TWO_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "count, devices",
    [
        pytest.param(2, {}, id="two"),
        pytest.param(2, TWO_DEVICES, marks=pytest.mark.slow, id="two, of two devices each"),
    ],
)
def test_calls_in_several_processes(count, devices):
    done = mpiexec(count, "-m", "tests.distributed.joined", **devices)
    assert done.returncode == 0 and "passed 15" in done.stdout, done.stdout + done.stderr


@pytest.mark.lengthy
@pytest.mark.parametrize("count", COUNTS)
def test_losses_are_those_of_one_process_and_a_killed_run_goes_on_exactly(count, tmp_path):
    check_example(count, tmp_path, "--through", "xla")


PROGRAM = """
import os, signal, sys
from heterosis import distributed, hybridize, np
distributed.initialize(sys.argv[1], num_workers=2, rank=int(sys.argv[2]))
step = hybridize(lambda x: x.sum(), backend="xla", sharding=distributed.Sharding())
for i in range(20):
    if i == 5 and distributed.rank() == 1:
        {}
    print(step(np.ones((2, 3))).item(), flush=True)
"""


ENDS = (
    pytest.param("raise ValueError('mine')", id="raises"),
    pytest.param("os.kill(os.getpid(), signal.SIGKILL)", marks=pytest.mark.slow, id="is killed"),
)


@pytest.mark.lengthy
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_one_process_ends_all(end):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-c", PROGRAM.format(end), address]
    started = [
        subprocess.Popen(
            [*command, str(rank)], env=settings(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    (first, first_error), (_, error) = [one.communicate(timeout=120) for one in started]
    assert started[0].returncode != 0 and started[1].returncode in (1, -signal.SIGKILL)
    assert first.count("12.0") == 5, first + first_error
    assert "CommunicationError" in first_error, first_error
    assert ("ValueError: mine" in error) == ("ValueError" in end), error


NUMBERS = {
    "alone": (None, None, None, (1, 0)),
    "given": (None, 4, 3, (4, 3)),
    "launched": (Launched("mpiexec", 4, 2), None, None, (4, 2)),
    "launched, and given": (Launched("mpiexec", 4, 2), 4, 2, (4, 2)),
    "each alone": (Launched("mpiexec", 4, 2), 1, 0, "mpiexec, and num_workers is 1"),
    "no rank": (None, 4, None, "rank=None"),
    "too large": (None, 4, 4, "rank=4"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_the_launcher(name):
    *given, expected = NUMBERS[name]
    if isinstance(expected, tuple):
        assert distributed._numbers(*given) == expected
    else:
        with pytest.raises(HeterosisError, match=expected):
            distributed._numbers(*given)


SAYS = {
    "no address": (lambda: distributed.initialize(num_workers=2, rank=0), "no coordinator"),
    "no number": (lambda: distributed.initialize("here:1"), "expected num_workers and rank"),
    "no port": (lambda: distributed.initialize("here", 2, 0), "'host:port'"),
    "not joined": (distributed.rank, r"call heterosis\.distributed\.initialize"),
    "not sharded": (lambda: hybridize(np.sin, sharding=distributed.Sharding()), "one process"),
}


@pytest.mark.parametrize("name", SAYS)
def test_what_is_missing_is_said(name, monkeypatch):
    call, message = SAYS[name]
    for variable in ("JAX_COORDINATOR_ADDRESS", *world._LAUNCHERS):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(HeterosisError, match=message):
        call()
