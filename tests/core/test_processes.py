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
    from tests.core.native import sleep
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


@pytest.mark.lengthy
def test_the_interpreter_ends_with_work_outstanding():
    code, out, errors = _run("""
    for _ in range(200):
        x = x @ x * 0.003
    print("end")
    """)
    assert (code, out, errors) == (0, "end\n", "")


@pytest.mark.lengthy
def test_what_nobody_can_read_is_not_computed_at_the_end():
    start = time.monotonic()
    code, out, errors = _run("""
    from tests.core.native import sleep
    y = x
    for _ in range(3000):  # of 10 ms each
        y = sleep(y)
    print("end")
    """)
    assert (code, out, errors) == (0, "end\n", "")
    assert time.monotonic() - start < 15


@pytest.mark.lengthy
def test_what_is_written_into_memory_of_others_is_computed_at_the_end(tmp_path):
    code, _, errors = _run(f"""
    from tests.core.native import sleep
    shared = numpy.memmap({str(tmp_path / "file")!r}, "float32", "w+", shape=(300, 300))
    for _ in range(3000):
        waste = sleep(x)
    y = x
    for _ in range(10):
        y = sleep(y)  # has no particular elements
    np.from_dlpack(shared)[...] = x + 0 * np.isnan(y)
    """)
    assert (code, errors) == (0, "")
    found = numpy.fromfile(tmp_path / "file", "float32")
    assert found.tolist() == [1] * 90_000


@pytest.mark.lengthy
def test_results_can_be_read_after_the_end_of_the_engine():
    code, out, errors = _run("""
    import atexit, sys
    from heterosis import _core
    atexit.unregister(_core.shutdown)

    class Last:
        def __init__(self, value): self.value = value
        def __del__(self): print("deleted", self.value[0, 0].item(), flush=True)

    def late():
        print("read", y[0, 0].item(), (y + 1)[0, 0].item(), flush=True)
        npx.waitall()

    atexit.register(late)
    atexit.register(_core.shutdown)  # runs before `late`
    from tests.core.native import sleep
    for _ in range(30):
        waste = sleep(x)
    y = (x @ x) / 100
    last = Last((x @ x) / 60)
    """)
    assert (code, out, errors) == (0, "read 3.0 4.0\ndeleted 5.0\n", "")


@pytest.mark.lengthy
def test_the_interpreter_ends_with_an_error_outstanding():
    code, out, _ = _run("""
    from tests.core.native import fail
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


@pytest.mark.lengthy
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


_SLOW_IMPORTS = """
import os, sys, threading, time

class Slow:
    # Lets an import last, in the thread that is the first to want it.
    def __init__(self, name):
        self.name, self.begun = name, threading.Event()

    def find_spec(self, name, path=None, target=None):
        if name == self.name and not self.begun.is_set():
            self.begun.set()
            time.sleep(0.5)

def forked(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            sys.exit(os.waitstatus_to_exitcode(status))
        time.sleep(0.01)
    os.kill(child, 9)
    sys.exit("the child waits for a thread that it does not have")
"""


@pytest.mark.parametrize(
    "module", ["heterosis.backends.native.schedule.schedule", "llvmlite.binding"]
)
def test_a_fork_while_another_thread_is_in_its_first_call(module, tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_CACHE", str(tmp_path))
    code, _, errors = _run(
        _SLOW_IMPORTS
        + f"""
slow = Slow({module!r})
sys.meta_path.insert(0, slow)
x = np.array([1, 2], dtype="uint16")  # for which nothing comes compiled
thread = threading.Thread(target=lambda: (x + 1).wait_to_read(), daemon=True)
thread.start()
assert slow.begun.wait(20)
forked(lambda: (x * 2).wait_to_read())
"""
    )
    assert code == 0, errors


@pytest.mark.parametrize(
    "work",
    [
        "heterosis.hybridize(lambda x: (begun.set(), [time.sleep(0) for _ in count()]))(x)",
        "(begun.set(), [np.ones((300, 300)) @ np.ones((300, 300)) for _ in count()])",
        "(begun.set(), [(x + i).wait_to_read() for i in count()])",
        "(begun.set(), [(long @ long).wait_to_read() for _ in count()])",
    ],
    ids=["captures", "issues", "waits", "waits long"],
)
def test_threads_that_are_still_at_work_do_not_disturb_the_end(work):
    code, _, errors = _run(
        f"""
import threading, time
from itertools import count
import heterosis
from heterosis import np

x, long = np.ones((3,)), np.ones((3000, 3000))
begun = threading.Event()
for _ in range(3):
    threading.Thread(target=lambda: {work}, daemon=True).start()
assert begun.wait(20)
time.sleep(0.05)

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)  # other threads ask for the lock of an interpreter that has ended

last = Slow()
"""
    )
    assert code == 0, errors


@pytest.mark.lengthy
def test_a_fork_while_another_thread_captures():
    code, _, errors = _run(
        _SLOW_IMPORTS
        + """
import heterosis
begun = threading.Event()

def work(x):
    begun.set()
    time.sleep(0.5)
    return x + 1

compiled = heterosis.hybridize(work)
threading.Thread(target=compiled, args=(x,), daemon=True).start()
assert begun.wait(20)
forked(lambda: compiled(x).wait_to_read())
"""
    )
    assert code == 0, errors


@pytest.mark.lengthy
def test_an_import_that_does_not_end_holds_up_no_fork(tmp_path, monkeypatch):
    """As of a program that is started by importing it."""
    (tmp_path / "endless.py").write_text("import begun, time; begun.set(); time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    code, _, errors = _run(
        _SLOW_IMPORTS
        + """
begun = sys.modules["begun"] = threading.Event()
threading.Thread(target=__import__, args=("endless",), daemon=True).start()
assert begun.wait(20)
forked(lambda: (x * 2).wait_to_read())
"""
    )
    assert code == 0, errors


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
