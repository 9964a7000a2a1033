"""The thread pool of exported libraries, as LLVM IR: it lives in memory of the caller's.

One loop at a time has the pool's threads; a loop that finds them taken, by another run or by the
loop that it is inside of, is run by its own thread. A thread that comes late to a loop finds it
closed, and is not waited for: so a pool computes the same in a process that has forked, where its
threads are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from heterosis.backends.native.codegen.emit.builder import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    Module,
    Type,
    Value,
    constant,
)

# Fields of `heterosis_pool`, in words.
STATE, RUN, WORKERS = range(3)

# Bytes of what is behind them, on cache lines of their own where threads write.
_STARTED = 32  # threads besides the caller's
_TURN = 64  # counts loops: idle threads sleep on it
_MEMBERS = 128  # the threads that are at work on the loop, with a bit while more may come
_TAKEN = 192  # whether a loop has the threads
_NEXT = 256  # the share that is taken next
_BODY, _CONTEXT, _COUNT, _GRAIN = 320, 328, 336, 344
_SLEEPERS, _STOP = 384, 388
_RECORDS, _RECORD = 448, 64  # for each thread: the pool, its number, what the system calls it
_OPEN = 1 << 30

_SPINS = 400  # pauses, some 15 us: the next loop of a program follows soon
_WAIT, _WAKE = 128, 129  # what the system call futex does for one process
_SET_MASK, _MASK_BYTES = 2, 128


class _System(NamedTuple):
    """What differs between processor families."""

    futex: int  # the number of the system call
    pause: Sequence[Any]  # the intrinsic, with its arguments, of a thread that spins


_SYSTEMS = {
    "x86_64": _System(202, ["llvm.x86.sse2.pause"]),
    "aarch64": _System(98, ["llvm.aarch64.hint", constant(I32, 1)]),
}

_LOOP = (("state", PTR), ("body", PTR), ("context", PTR), ("count", I64), ("grain", I64))
_NULL = Value(PTR, "null")

Shown = Callable[[str, Sequence[tuple[str, Type]], Type], Function]


def emit_pool(module: Module, shown: Shown, check: Callable[..., None], threads: int) -> None:
    """Define `heterosis_pool_bytes`, `heterosis_pool_start` and `heterosis_pool_stop`.

    `shown` begins a function that the library shows, and `check` makes it return an error unless
    its library and conditions are as they should be.
    """
    writer = _Pool(module, check, threads)
    if threads > 1:
        writer.emit_threads()
    writer.emit_bytes(shown("pool_bytes", [("threads", I64)], I64))
    writer.emit_start(shown("pool_start", [("memory", PTR), ("threads", I64)], I64))
    writer.emit_stop(shown("pool_stop", [("memory", PTR)], I64))


class _Pool:
    def __init__(self, module: Module, check: Callable[..., None], threads: int):
        self.module, self.check, self.threads = module, check, threads

    # -- what a library shows -----------------------------------------------------------------

    def _fits(self, f: Function, threads: Value) -> Value:
        below = f.sub(threads, constant(I64, 1))
        return f.compare("ult", below, constant(I64, self.threads))

    def emit_bytes(self, f: Function) -> None:
        """`heterosis_pool_bytes(library, threads)`."""
        threads = f.parameters[1]
        self.check(f, self._fits(f, threads))
        f.ret(f.i64(f.add_size(f.mul_size(threads, _RECORD), _RECORDS)))

    def emit_start(self, f: Function) -> None:
        """`heterosis_pool_start(library, memory, threads)`: how many threads there are."""
        _, pool, threads = f.parameters
        started = f.allocate(I64)
        self.check(f, *_may_be_pool(f, pool), self._fits(f, threads))
        with f.loop(0, _RECORDS // 8) as word:
            f.store(constant(I64, 0), f.offset(I64, pool, word.index))
        run = "@heterosis.parallel" if self.threads > 1 else "@heterosis.serial"
        f.store(constant(I64, 0), started)
        f.store(pool, f.offset(PTR, pool, STATE))
        f.store(Value(PTR, run), f.offset(PTR, pool, RUN))
        f.store(threads, f.offset(I64, pool, WORKERS))
        if self.threads > 1:
            f.call("heterosis.start", [pool, threads, started])
        count = f.load(I64, started)
        f.store(count, _at(f, pool, _STARTED))
        f.ret(f.add(count, constant(I64, 1)))

    def emit_stop(self, f: Function) -> None:
        """`heterosis_pool_stop(library, memory)`: the threads have ended when it returns."""
        pool = f.parameters[1]
        self.check(f, *_may_be_pool(f, pool))
        started = f.load(I64, _at(f, pool, _STARTED))
        if self.threads > 1:
            f.call("heterosis.stop", [pool, started])
        f.store(constant(I64, 0), _at(f, pool, _STARTED))
        f.ret(constant(I64, 0))

    # -- threads ------------------------------------------------------------------------------

    def emit_threads(self) -> None:
        """Define what the threads do, and how they are started and stopped."""
        self._emit_start_all()
        self._emit_stop_all()
        self._emit_worker()
        self._emit_joined()
        self._emit_left()
        self._emit_idle()
        self._emit_share()
        self._emit_parallel()
        self._emit_closed()

    def _function(
        self, name: str, parameters: Sequence[tuple[str, Type]], returns: Type = VOID
    ) -> Function:
        return self.module.function(f"heterosis.{name}", parameters, returns)

    def _emit_start_all(self) -> None:
        """Start threads, with all signals left to others: as many as the system gives."""
        f = self._function("start", [("pool", PTR), ("threads", I64), ("started", PTR)])
        pool, threads, started = f.parameters
        all_, before = f.allocate(I8, _MASK_BYTES), f.allocate(I8, _MASK_BYTES)
        mode = constant(I32, _SET_MASK)
        f.call("sigfillset", [all_], I32)
        f.call("pthread_sigmask", [mode, all_, before], I32)
        with f.loop(constant(I64, 1), threads) as thread:
            record = _record(f, pool, thread.index)
            f.store(pool, record)
            f.store(thread.index, f.offset(I64, record, 1))
            made = f.compare("eq", f.load(I64, started), f.sub(thread.index, constant(I64, 1)))

            def start(record: Value = record) -> list[Value]:
                arguments = [f.offset(PTR, record, 2), _NULL, _WORKER, record]
                failed = f.call("pthread_create", arguments, I32)
                count = f.convert("zext", f.compare("eq", failed, constant(I32, 0)), I64)
                f.store(f.add(f.load(I64, started), count), started)
                return []

            f.if_else(made, start)
        f.call("pthread_sigmask", [mode, before, _NULL], I32)
        f.ret()

    def _emit_stop_all(self) -> None:
        f = self._function("stop", [("pool", PTR), ("started", I64)])
        pool, started = f.parameters
        f.statement(f"store atomic i32 1, {_at(f, pool, _STOP)} seq_cst, align 4")
        turn = _at(f, pool, _TURN)
        _add(f, turn, 1)
        _wake(f, turn, constant(I64, (1 << 31) - 1))
        with f.loop(constant(I64, 0), started) as thread:
            record = _record(f, pool, f.add(thread.index, constant(I64, 1)))
            f.call("pthread_join", [f.load(PTR, f.offset(PTR, record, 2)), _NULL], I32)
        f.ret()

    def _emit_worker(self) -> None:
        """A thread: at work on a loop, or idle until the next turn."""
        f = self._function("worker", [("record", PTR)], PTR)
        (record,) = f.parameters
        pool, number = f.load(PTR, record), f.load(I64, f.offset(I64, record, 1))
        with f.repeat([]) as turn:
            # Before it looks for a loop, and whether it shall end: so that it misses neither.
            seen = _read(f, _at(f, pool, _TURN))
            turn.more = f.compare("eq", _read(f, _at(f, pool, _STOP)), constant(I32, 0))

            def work() -> list[Value]:
                f.call("heterosis.shares", [pool, number])
                f.call("heterosis.left", [pool])
                return []

            def idle(seen: Value = seen) -> list[Value]:
                f.call("heterosis.idle", [pool, seen])
                return []

            def look() -> list[Value]:
                return f.if_else(f.call("heterosis.joined", [pool], I1), work, idle)

            f.if_else(turn.more, look)
        f.ret(_NULL)

    def _emit_joined(self) -> None:
        """Whether a thread is now one of those at work; not if the loop is closed."""
        f = self._function("joined", [("pool", PTR)], I1)
        members = _at(f, f.parameters[0], _MEMBERS)
        with f.repeat([_read(f, members), constant(I1, 0)]) as attempt:
            known, _ = attempt.carried
            bit = f.binary("and", known, constant(I32, _OPEN))
            is_open = f.compare("ne", bit, constant(I32, 0))

            def enter(known: Value = known) -> list[Value]:
                more = f.add(known, constant(I32, 1))
                return _exchange(f, members, known, more)

            attempt.next = f.if_else(is_open, enter, lambda: [known, constant(I1, 0)])
            failed = f.binary("xor", attempt.next[1], constant(I1, 1))
            attempt.more = f.binary("and", is_open, failed)
        f.ret(attempt.results[1])

    def _emit_left(self) -> None:
        """The last thread to leave a closed loop wakes the one that waits for its end."""
        f = self._function("left", [("pool", PTR)])
        members = _at(f, f.parameters[0], _MEMBERS)
        before = f.emit(I32, f"atomicrmw sub {members}, i32 1 acq_rel")

        def wake() -> list[Value]:
            _wake(f, members, constant(I64, 1))
            return []

        f.if_else(f.compare("eq", before, constant(I32, 1)), wake)
        f.ret()

    def _emit_idle(self) -> None:
        """Look for a while whether there is another turn than `seen`, and sleep then."""
        f = self._function("idle", [("pool", PTR), ("seen", I32)])
        pool, seen = f.parameters
        turn = _at(f, pool, _TURN)
        f.leave_if(_changes(f, turn, seen), f.ret)
        sleepers = _at(f, pool, _SLEEPERS)
        _add(f, sleepers, 1)  # whoever begins a turn sees it, or this thread sees the turn
        _sleep(f, turn, seen)
        _add(f, sleepers, -1)
        f.ret()

    def _emit_share(self) -> None:
        """Run shares of the loop for as long as there are any."""
        f = self._function("shares", [("pool", PTR), ("worker", I64)])
        pool, worker = f.parameters
        body, context = (f.load(PTR, _at(f, pool, at)) for at in (_BODY, _CONTEXT))
        count, grain = (f.load(I64, _at(f, pool, at)) for at in (_COUNT, _GRAIN))
        following = _at(f, pool, _NEXT)
        with f.repeat([]) as turn:
            begin = f.emit(I64, f"atomicrmw add {following}, {grain} monotonic")
            turn.more = f.compare("slt", begin, count)

            def run(begin: Value = begin) -> list[Value]:
                end = f.i64(f.min_size(count, f.add(begin, grain)))
                f.call_pointer(body, [context, begin, end, worker])
                return []

            f.if_else(turn.more, run)
        f.ret()

    def _emit_parallel(self) -> None:
        """What a pool runs a loop by."""
        f = self._function("parallel", _LOOP)
        pool, body, context, count, grain = f.parameters

        def alone() -> None:
            f.call("heterosis.serial", [pool, body, context, count, grain])
            f.ret()

        f.leave_if(f.compare("sle", count, grain), alone)
        taken = _at(f, pool, _TAKEN)
        _, got = _exchange(f, taken, constant(I32, 0), constant(I32, 1))
        f.leave_if(f.binary("xor", got, constant(I1, 1)), alone)
        for value, at in ((body, _BODY), (context, _CONTEXT), (count, _COUNT), (grain, _GRAIN)):
            f.store(value, _at(f, pool, at))
        f.statement(f"store atomic i64 0, {_at(f, pool, _NEXT)} monotonic, align 8")
        f.statement(f"store atomic i32 {_OPEN}, {_at(f, pool, _MEMBERS)} seq_cst, align 4")
        turn = _at(f, pool, _TURN)
        _add(f, turn, 1)
        sleeping = f.emit(I32, f"load atomic i32, {_at(f, pool, _SLEEPERS)} seq_cst, align 4")

        def wake() -> list[Value]:
            others = f.div_size(f.sub(count, constant(I64, 1)), grain)
            _wake(f, turn, f.i64(f.min_size(others, self.threads)))
            return []

        f.if_else(f.compare("sgt", sleeping, constant(I32, 0)), wake)
        f.call("heterosis.shares", [pool, constant(I64, 0)])
        f.call("heterosis.closed", [pool])
        f.statement(f"store atomic i32 0, {taken} release, align 4")
        f.ret()

    def _emit_closed(self) -> None:
        """Let no further thread come to the loop, and wait for those that are at work on it."""
        f = self._function("closed", [("pool", PTR)])
        members = _at(f, f.parameters[0], _MEMBERS)
        f.emit(I32, f"atomicrmw and {members}, i32 {~_OPEN} acq_rel")
        with f.repeat([]) as turn:
            left = _read(f, members)

            def wait(left: Value = left) -> list[Value]:
                changes = _changes(f, members, left)
                f.if_else(changes, list, lambda: _slept(f, members, left))
                return []

            turn.more = f.compare("ne", left, constant(I32, 0))
            f.if_else(turn.more, wait)
        f.ret()


_WORKER = Value(PTR, "@heterosis.worker")


def _may_be_pool(f: Function, memory: Value) -> tuple[Value, Value]:
    """Conditions of memory that a pool lives in: it is aligned, and there is some."""
    rest = f.binary("and", f.convert("ptrtoint", memory, I64), constant(I64, 63))
    return f.compare("eq", rest, constant(I64, 0)), f.compare("ne", memory, _NULL)


def _at(f: Function, pool: Value, bytes_: int) -> Value:
    return f.offset(I8, pool, bytes_)


def _record(f: Function, pool: Value, thread: Value) -> Value:
    """What thread number 1 and so on is given."""
    first = _RECORDS - _RECORD
    return f.offset(I8, pool, f.add_size(f.mul_size(thread, _RECORD), first))


def _read(f: Function, word: Value) -> Value:
    return f.emit(I32, f"load atomic i32, {word} acquire, align 4")


def _add(f: Function, word: Value, number: int) -> None:
    f.emit(I32, f"atomicrmw add {word}, i32 {number} seq_cst")


def _exchange(f: Function, word: Value, known: Value, new: Value) -> list[Value]:
    """What stood there, and whether it was what is known and is replaced now."""
    pair = f.emit(Type("{ i32, i1 }"), f"cmpxchg {word}, {known}, {new} acq_rel acquire")
    return [f.emit(t, f"extractvalue {pair}, {i}") for i, t in enumerate((I32, I1))]


def _changes(f: Function, word: Value, known: Value) -> Value:
    """Whether a word gets another value in a short while, or has one already."""
    with f.repeat([constant(I64, 0)]) as turn:
        (spins,) = turn.carried
        turn.next = [f.add(spins, constant(I64, 1))]
        same = f.compare("eq", _read(f, word), known)
        _pause(f)
        patient = f.compare("slt", spins, constant(I64, _SPINS))
        turn.more = f.binary("and", same, patient)
    return f.compare("ne", _read(f, word), known)


def _pause(f: Function) -> None:
    name, *arguments = _system(f).pause
    f.call(name, arguments)


def _slept(f: Function, word: Value, known: Value) -> list[Value]:
    _sleep(f, word, known)
    return []


def _sleep(f: Function, word: Value, known: Value) -> None:
    """Until somebody wakes those that sleep on the word; not at all if it has another value."""
    value = f.convert("zext", known, I64)
    _futex(f, word, constant(I64, _WAIT), value)


def _wake(f: Function, word: Value, most: Value) -> None:
    _futex(f, word, constant(I64, _WAKE), most)


def _futex(f: Function, word: Value, operation: Value, number: Value) -> None:
    f.module.declare("syscall", I64, [I64, Type("...")])
    arguments = f"i64 {_system(f).futex}, {word}, {operation}, {number}, {_NULL}"
    f.emit(I64, f"call i64 (i64, ...) @syscall({arguments})")


def _system(f: Function) -> _System:
    assert f.module.target is not None
    family, _, _ = f.module.target.triple.partition("-")
    return _SYSTEMS[family]
