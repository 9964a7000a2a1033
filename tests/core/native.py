"""Operations of native code written by hand: tasks that fail, or that wait until a test lets them.

A gate is an array of one int64. Tasks that read it may change it: to the engine they only read, so
that several of them run side by side.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy

from heterosis import _core, np
from heterosis.backends.native.compile.object_cache import load
from heterosis.np.convert import shared

_PATIENCE = 20_000  # milliseconds until a task gives up

_PAUSE = f"""
declare i32 @usleep(i32)

define i1 @reached(ptr %gate, i64 %goal) {{
  br label %look
look:
  %turn = phi i64 [0, %0], [%next, %pause]
  %seen = load atomic i64, ptr %gate seq_cst, align 8
  %done = icmp sge i64 %seen, %goal
  br i1 %done, label %yes, label %pause
pause:
  %slept = call i32 @usleep(i32 1000)
  %next = add i64 %turn, 1
  %late = icmp sge i64 %next, {_PATIENCE}
  br i1 %late, label %no, label %look
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

_GATE = """
  %buffers = load ptr, ptr %call
  %gate = load ptr, ptr %buffers
"""

_END = """
  %status = select i1 %met, i64 0, i64 1
  ret i64 %status
"""

_FAIL = "define i64 @entry(ptr %call) { ret i64 1 }"
_PASS = _PAUSE + (
    "define i64 @entry(ptr %call) {"
    + _GATE
    + "%met = call i1 @reached(ptr %gate, i64 1)"
    + _END
    + "}"
)
_MEET = _PAUSE + (
    "define i64 @entry(ptr %call) {"
    + _GATE
    + "%old = atomicrmw add ptr %gate, i64 1 seq_cst"
    + "\n  %met = call i1 @reached(ptr %gate, i64 2)"
    + _END
    + "}"
)

_SLEEP = """
declare i32 @usleep(i32)

define i64 @entry(ptr %call) {
  %slept = call i32 @usleep(i32 10000)
  ret i64 0
}
"""


class _Record:
    """As much of an operation's record as the core asks for: the result is like the last array."""

    documentation, signature = "", None

    def __init__(self, name: str, code: str, arrays: int, failure: tuple[str, str]):
        self.name, self.failure = name, failure
        self.function = load(f"{name} of the tests: {code}", lambda: code).function("entry")
        described = tuple((f"x{i}", 0, None, True) for i in range(arrays))
        self.operation = _core.Operation(self, name, described)

    def plan(self, operands, attributes, out, device):
        dtype, shape, _ = operands[-1]
        strides = tuple(int(numpy.prod(shape[i + 1 :])) for i in range(len(shape)))
        result = (dtype, shape, -1, strides, 0)
        failures = [self.failure]
        return _core.make_plan(
            self.name, self.function, [], 0, 1e9, False, [result], failures, False, []
        )


def _operation(name: str, code: str, arrays: int, failure: tuple[str, str]):
    return _Record(name, code, arrays, failure).operation


_usleep = ctypes.CDLL(None).usleep
_core.register_symbol("usleep", ctypes.cast(_usleep, ctypes.c_void_p).value)

# fail(x): always fails. sleep(x): takes 10 ms. pass_gate(gate, x): ends once the gate is open.
# meet(gate, x): ends once two tasks are there. Their results have the shape of `x`, and no
# particular elements.
fail = _operation("fail", _FAIL, 1, ("ArgumentError", "the elements are not to its liking."))
sleep = _operation("sleep", _SLEEP, 1, ("HeterosisError", "never said."))
pass_gate = _operation("pass_gate", _PASS, 2, ("HeterosisError", "nobody opened the gate."))
meet = _operation("meet", _MEET, 2, ("HeterosisError", "nobody else came."))


def new_gate() -> np.ndarray:
    """A closed gate; also a place to meet."""
    return np.array(numpy.zeros(1, "int64"))


@contextmanager
def closed_gate() -> Iterator[np.ndarray]:
    """A gate that is opened when the block ends."""
    gate = new_gate()
    door = shared(gate)
    try:
        yield gate
    finally:
        door[0] = 1
