"""Signals, forks and the end of the interpreter, with work outstanding: each in a process."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy
import pytest

from heterosis import np, npx

_HEAD = """
import numpy
from heterosis import np, npx
x = np.array(numpy.ones((300, 300), "float32"))
"""
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _start(program: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", _HEAD + textwrap.dedent(program)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(program: str, timeout: float = 60) -> tuple[int, str, str]:
    with _start(program) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, out, errors


@pytest.mark.lengthy
@pytest.mark.parametrize("wait", ["npx.waitall()", "y.wait_to_read()", "y.asnumpy()"])
def test_ctrl_c_ends_a_wait_and_nothing_else(wait):
    process = _start(f"""
    from heterosis import _core
    from tests.engine.native import sleep
    y = x
    for _ in range(150):
        y = sleep(y)
    print("waiting", flush=True)
    try:
        {wait}
    except KeyboardInterrupt:
        outstanding = _core.engine_counters()["outstanding_tasks"]
        print("interrupted", outstanding > 0, flush=True)
    y.wait_to_read()
    print((x + 1)[0, 0].item(), flush=True)
    """)
    with process:
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)  # into the wait
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "interrupted True\n2.0\n"), errors


def test_the_interpreter_ends_with_work_outstanding():
    code, out, errors = _run("""
    for _ in range(200):
        x = x @ x * 0.003
    print("end")
    """)
    assert (code, out, errors) == (0, "end\n", "")


@pytest.mark.lengthy
def test_the_interpreter_ends_with_an_error_outstanding():
    code, out, _ = _run("""
    from tests.engine.native import fail
    y = fail(x)
    z = y + 1
    print("end")
    """)
    assert (code, out) == (0, "end\n")


@pytest.mark.lengthy
def test_arrays_in_cycles_and_globals_at_the_end():
    code, _, errors = _run("""
    class Node: pass
    a, b = Node(), Node()
    a.other, b.other, a.value, b.value = b, a, x @ x, x + 1
    numpys = numpy.asarray(memoryview(x))
    """)
    assert (code, errors) == (0, "")


def test_an_error_of_the_program_stays_its_error():
    code, _, errors = _run("""
    y = x @ x
    raise ValueError("mine")
    """)
    assert code == 1
    assert "ValueError: mine" in errors


# -- forks ----------------------------------------------------------------------------------------


def _compute(seed: int) -> float:
    x = np.array(numpy.full((200, 200), seed, "float32"))
    return ((x @ x) / 200).mean().item()


@pytest.fixture
def outstanding():
    """Queued work whose result is known."""
    x = np.array(numpy.ones((300, 300), "float32"))
    for _ in range(50):
        x = x @ x / 300
    yield x
    assert x[0, 0].item() == pytest.approx(1)


def test_fork_with_work_outstanding(outstanding):
    child = os.fork()
    if child == 0:
        ok = abs(outstanding[0, 0].item() - 1) < 1e-4 and _compute(3) == 9
        npx.waitall()
        os._exit(0 if ok else 1)
    assert _compute(2) == 4
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork in a process with threads
def test_forked_workers(outstanding):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_compute, range(1, 9)) == [i * i for i in range(1, 9)]


@pytest.mark.lengthy
def test_a_child_of_a_child(outstanding):
    code, out, errors = _run("""
    import os, sys
    y = x @ x
    for generation in range(3):
        if os.fork():
            _, status = os.wait()
            sys.exit(os.waitstatus_to_exitcode(status))
        y = y @ x / 300
    print(y[0, 0].item(), flush=True)
    """)
    assert (code, out) == (0, "300.0\n"), errors
