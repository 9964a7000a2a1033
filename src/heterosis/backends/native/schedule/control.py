"""The kernels of choices and loops: each calls functions of the programs that are its attributes.

Such a function is planned and emitted as that of a whole program is, and gets its operands, results
and workspace in a call of its own. What a loop carries goes back and forth between two places: a
turn reads one and writes the other. What a turn only writes parts of stays where the result is to
stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    VOID,
    Function,
    Module,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.function import return_if_failed
from heterosis.backends.native.codegen.kernel import KernelCode, Machine, Place
from heterosis.backends.native.codegen.kernels import heap
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.codegen.target import Target
from heterosis.backends.native.schedule.arena import rounded
from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP, WHILE_LOOP_BACK
from heterosis.ir.program import Node, Program
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.program import ProgramCode

Places = tuple[Place, ...]
_TURNS = 10  # of a loop that nobody knows them of, for a price


@dataclass(frozen=True)
class _Part:
    """The function of a program inside of another one."""

    code: ProgramCode
    workspace: int
    many: int  # operands and results
    updated: frozenset[int]  # the results that are written where the operands stand

    @property
    def failures(self) -> tuple[tuple[str, str], ...]:
        return self.code.failures


def _part(program: Program, machine: Machine, carried: int = 0) -> _Part:
    """A program, whose first `carried` operands it may write to in place."""
    from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
    from heterosis.backends.native.schedule.materialize import kept_values
    from heterosis.backends.native.schedule.schedule import schedule
    from heterosis.backends.native.schedule.updates import updates

    updated = updates(program, carried)
    planned = schedule(
        program,
        [Strided.contiguous(value.shape) for value in program.inputs],
        [None] * len(program.outputs),
        machine,
        views=False,
        kept=kept_values(program),
        side_by_side=True,
        updated=updated,
    )
    many = len(program.inputs) + len(program.outputs)
    code = function_for_known_sizes(planned)
    return _Part(code, planned.workspace, many, frozenset(updated))


class _Call:
    """The call of a part: room for the addresses of its operands and results, filled once for what
    stays and in every turn for what does not."""

    def __init__(self, f: Function, outer: Value, name: str, part: _Part, workspace: Value):
        self.f, self.name, self.fails = f, name, bool(part.failures)
        self.buffers = f.allocate(PTR, max(part.many, 1))
        own = abi.with_workspace(f, outer, workspace)
        self.frame = abi.with_buffers(f, own, self.buffers)

    def give(self, first: int, addresses: Sequence[Value]) -> None:
        """Let the operands and results from number `first` on stand at these addresses."""
        for i, address in enumerate(addresses, first):
            self.f.store(address, self.f.offset(PTR, self.buffers, i))

    def run(self, failures: int = 0, leaving: Callable[[], object] = lambda: None) -> None:
        """Call the function; leave with its failure, behind so many that others have."""
        status = self.status()
        if self.fails:
            return_if_failed(self.f, status, failures, leaving)

    def status(self) -> Value:
        return self.f.call(self.name, [self.frame], I64)


def _kernel(
    key: str, parts: dict[str, _Part], scratch_bytes: int, turns: int, types: Sequence[TensorType],
    emit: Callable[[Function, list[Value], dict[str, _Call]], None],
    further: tuple[tuple[str, str], ...] = (),
) -> KernelCode:  # fmt: skip
    """The kernel that runs `parts`, which are known by name; `emit` says when, given the addresses
    of all operands and results, and of the scratch memory behind `scratch_bytes` for the parts.
    It has `further` failures besides theirs."""
    workspace = max(part.workspace for part in parts.values())
    failures = tuple(failure for part in parts.values() for failure in part.failures) + further

    def whole(module: Module, target: Target, name: str) -> None:
        for label, part in parts.items():
            part.code.emit_inside(module, target, f"{name}.{label}")
        labels = ["call", *(f"a{i}" for i in range(len(types))), "scratch"]
        returns = I64 if failures else VOID
        f = module.function(name, [(label, PTR) for label in labels], returns)
        call, *addresses = f.parameters
        calls = {
            label: _Call(f, call, f"{name}.{label}", part, addresses[-1])
            for label, part in parts.items()
        }
        addresses[-1] = f.offset(I8, addresses[-1], rounded(workspace))
        emit(f, addresses, calls)
        f.ret(constant(I64, 0) if failures else None)

    codes = " ".join(
        f"{label} {sorted(part.updated)} {part.code.key}" for label, part in parts.items()
    )
    return KernelCode(
        key=f"{key} {list(map(str, types))} {workspace} {codes}",
        emit=whole,
        scratch_bytes=rounded(workspace) + scratch_bytes,
        nanoseconds=turns * sum(part.code.nanoseconds for part in parts.values()),
        meetings=turns * max(len(part.code.calls) for part in parts.values()),
        failures=failures,
    )


# -- one of two programs --------------------------------------------------------------------------


def _cond(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    parts = {name: _part(node.attributes[name], machine) for name in ("then", "otherwise")}
    shift = len(parts["then"].failures)

    def emit(f: Function, addresses: list[Value], calls: dict[str, _Call]) -> None:
        holds, given = _is_true(f, addresses[0]), addresses[1:-1]
        for call in calls.values():
            call.give(0, given)

        def otherwise() -> Sequence[Value]:
            return [_behind(f, calls["otherwise"].status(), shift)]

        (status,) = f.if_else(holds, lambda: [calls["then"].status()], otherwise)
        if any(part.failures for part in parts.values()):
            return_if_failed(f, status, 0)

    return _kernel("cond", parts, 0, 1, [v.type for v in node.inputs] + [*node.types], emit)


def _is_true(f: Function, address: Value) -> Value:
    return f.compare("ne", f.load(I8, address), constant(I8, 0))


def _behind(f: Function, status: Value, failures: int) -> Value:
    """A status whose failures are counted behind so many others."""
    failed = f.compare("ne", status, constant(I64, 0))
    return f.select(failed, f.add(status, constant(I64, failures)), status)


# -- loops ----------------------------------------------------------------------------------------


class _State:
    """Where a loop's carried values stand: at first in the operands, which are left alone; then, in
    turns, where the results are to stand and in rooms of the workspace. Those that turns update
    stand where the results are to stand from the beginning on."""

    def __init__(self, types: Sequence[TensorType], updated: frozenset[int] = frozenset()):
        self.types, self.updated = types, updated
        self._sizes = [
            0 if i in updated else rounded(type_.nbytes) for i, type_ in enumerate(types)
        ]
        self.bytes = sum(self._sizes)

    def rooms(self, f: Function, start: Value) -> list[Value]:
        """The rooms, one behind the other from `start` on."""
        return [f.offset(I8, start, sum(self._sizes[:i])) for i in range(len(self.types))]

    def begun(
        self, f: Function, operands: Sequence[Value], results: Sequence[Value]
    ) -> list[Value]:
        """Where the first turn finds what is carried."""
        found = [*operands]
        for i in sorted(self.updated):
            _copy(f, operands[i], results[i], self.types[i].nbytes)
            found[i] = results[i]
        return found

    def settled(self, places: Sequence[Value], results: Sequence[Value]) -> list[Value]:
        """Places to write to; for what is updated, the one where it stands."""
        return [results[i] if i in self.updated else at for i, at in enumerate(places)]

    def copy(self, f: Function, sources: Sequence[Value], targets: Sequence[Value]) -> None:
        """Copy all, from place to place."""
        for type_, source, target in zip(self.types, sources, targets, strict=True):
            _copy(f, source, target, type_.nbytes)


_COPIED = I64.of("i64")._replace(lanes=4)  # at a time


def _copy(f: Function, source: Value, target: Value, nbytes: int) -> None:
    whole = nbytes // 32
    for element, first, last in ((_COPIED, 0, whole), (I8, whole * 32, nbytes)):
        with f.loop(first, last) as turn:
            at = f.mul_size(turn.index, 32) if element is _COPIED else turn.index
            elements = f.load(element, f.offset(I8, source, at), align=1)
            f.store(elements, f.offset(I8, target, at), align=1)


def _while_loop(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    many, carried = len(node.inputs), node.attributes["carried"]
    parts = {
        "condition": _part(node.attributes["condition"], machine),
        "body": _part(node.attributes["body"], machine, carried),
    }
    state = _State(node.types, parts["body"].updated)
    shift = len(parts["condition"].failures)

    def emit(f: Function, addresses: list[Value], calls: dict[str, _Call]) -> None:
        operands, results, scratch = addresses[:many], addresses[many:-1], addresses[-1]
        truth, rooms = scratch, state.rooms(f, f.offset(I8, scratch, rounded(1)))
        condition, body = calls["condition"], calls["body"]
        for call in calls.values():
            call.give(carried, operands[carried:])
        condition.give(many, [truth])

        def goes_on(at: Sequence[Value]) -> Value:
            condition.give(0, at)
            condition.run(0)
            return _is_true(f, truth)

        def turns() -> Sequence[Value]:
            begun = state.begun(f, operands[:carried], results)
            with f.repeat([*begun, *results, *state.settled(rooms, results)]) as turn:
                before, after, spare = _thirds(turn.carried)
                body.give(0, before)
                body.give(many, after)
                body.run(shift)
                turn.more = goes_on(after)
                turn.next = [*after, *spare, *after]
            return turn.results[:carried]

        last = f.if_else(goes_on(operands[:carried]), turns, lambda: operands[:carried])
        _settled(f, state.types, last, results)

    scratch = rounded(1) + state.bytes
    types = [v.type for v in node.inputs] + [*node.types]
    return _kernel("while_loop", parts, scratch, _TURNS, types, emit)


def _thirds(values: Sequence[Value]) -> tuple[list[Value], list[Value], list[Value]]:
    third = len(values) // 3
    return [*values[:third]], [*values[third : 2 * third]], [*values[2 * third :]]


def _settled(
    f: Function, types: Sequence[TensorType], found: Sequence[Value], results: Sequence[Value]
) -> None:
    """Copy what a loop has carried last to where the results are to stand, unless it is there."""
    for type_, last, result in zip(types, found, results, strict=True):
        stands = f.compare("eq", last, result)
        f.if_else(stands, lambda: (), lambda: _copied(f, last, result, type_))  # noqa: B023


def _copied(f: Function, source: Value, target: Value, type_: TensorType) -> tuple[()]:
    _copy(f, source, target, type_.nbytes)
    return ()


# -- back through a loop that nobody knows the turns of ------------------------------------------

_NO_MEMORY = (
    "the gradient of a loop without bound: what its turns carry, which is kept for the way back, "
    "needs more memory than there is; give max_iterations, or detach what is carried."
)
_FIRST_ROOM = 16  # turns, before the memory for them grows


class _History:
    """What a loop carries into its turns, one after another, in memory that grows."""

    def __init__(self, f: Function, types: Sequence[TensorType], failure: int):
        self.f, self.state, self.failure = f, _State(types), failure
        self.turn_bytes = max(self.state.bytes, 1)

    def rooms(self, memory: Value, turn: int | Value) -> list[Value]:
        """Where what is carried into a turn stands."""
        start = self.f.offset(I8, memory, self.f.mul_size(turn, self.turn_bytes))
        return self.state.rooms(self.f, start)

    def grown(self, memory: Value, turns: int | Value) -> Value:
        """The memory with room for so many turns."""
        f = self.f
        found = heap.resized(f, memory, f.mul_size(turns, self.turn_bytes))

        def leave() -> None:
            heap.free(f, memory)
            f.ret(constant(I64, self.failure))

        f.leave_if(f.compare("eq", found, _NULL), leave)
        return found


_NULL = Value(PTR, "null")


def _while_loop_back(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    names = ("condition", "body", "back")
    parts = {name: _part(node.attributes[name], machine) for name in names}
    many, carried = len(node.inputs), node.attributes["carried"]
    end = many - node.attributes["received"]
    received = _State(node.types)
    types = [*(v.type for v in node.inputs), *node.types]
    before_body = len(parts["condition"].failures)
    before_back = before_body + len(parts["body"].failures)
    last = before_back + len(parts["back"].failures) + 1

    def emit(f: Function, addresses: list[Value], calls: dict[str, _Call]) -> None:
        operands, results, scratch = addresses[:many], addresses[many:-1], addresses[-1]
        truth, rooms = scratch, received.rooms(f, f.offset(I8, scratch, rounded(1)))
        history = _History(f, types[:carried], last)
        condition, body, back = (calls[name] for name in names)
        for call in (condition, body, back):
            call.give(carried, operands[carried:end])
        condition.give(end, [truth])

        def goes_on(memory: Value, at: Sequence[Value]) -> Value:
            condition.give(0, at)
            condition.run(0, lambda: heap.free(f, memory))
            return _is_true(f, truth)

        def grown(memory: Value, room: Value) -> list[Value]:
            doubled = f.mul(room, constant(I64, 2))
            return [history.grown(memory, doubled), doubled]

        def turns() -> Sequence[Value]:
            begun = [memory, constant(I64, _FIRST_ROOM), constant(I64, 0)]
            with f.repeat(begun) as turn:
                here, room, done = turn.carried
                after = f.add(done, constant(I64, 1))
                full = f.compare("eq", after, room)
                kept, room = f.if_else(
                    full,
                    lambda: grown(here, room),
                    lambda: [here, room],
                )
                body.give(0, history.rooms(kept, done))
                body.give(end, history.rooms(kept, after))
                body.run(before_body, lambda: heap.free(f, kept))
                turn.more = goes_on(kept, history.rooms(kept, after))
                turn.next = [kept, room, after]
            return [turn.results[0], turn.results[2]]

        memory = history.grown(_NULL, _FIRST_ROOM)
        history.state.copy(f, operands[:carried], history.rooms(memory, 0))
        goes = goes_on(memory, operands[:carried])
        memory_, done = f.if_else(goes, turns, lambda: [memory, constant(I64, 0)])
        with f.loop(0, done, 1, [*operands[end:], *results, *rooms]) as turn:
            before, after, spare = _thirds(turn.carried)
            at = f.sub(f.sub(done, constant(I64, 1)), turn.index)
            back.give(0, history.rooms(memory_, at))
            back.give(end, before)
            back.give(many, after)
            back.run(before_back, lambda: heap.free(f, memory_))
            turn.next = [*after, *spare, *after]
        heap.free(f, memory_)
        _settled(f, node.types, turn.results[: len(results)], results)

    scratch = rounded(1) + received.bytes
    key = f"while_loop_back {carried} {end}"
    return _kernel(key, parts, scratch, _TURNS, types, emit, (("ArgumentError", _NO_MEMORY),))


def _scan(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    length, reverse = node.attributes["length"], node.attributes["reverse"]
    carried, many = node.attributes["carried"], len(node.inputs)
    first = carried + node.attributes["shared"]
    parts = {"body": _part(node.attributes["body"], machine, carried)}
    state = _State(node.types[:carried], parts["body"].updated)
    types = [*(v.type for v in node.inputs), *node.types]

    def emit(f: Function, addresses: list[Value], calls: dict[str, _Call]) -> None:
        operands, results, scratch = addresses[:many], addresses[many:-1], addresses[-1]
        body, rooms = calls["body"], state.rooms(f, scratch)
        if not length:
            state.copy(f, operands[:carried], results[:carried])
            return
        body.give(carried, operands[carried:first])
        begun = state.begun(f, operands[:carried], results)
        places = [results[:carried], state.settled(rooms, results)]
        after, spare = places if length % 2 else reversed(places)
        with f.loop(0, length, 1, [*begun, *after, *spare]) as turn:
            before, after, spare = _thirds(turn.carried)
            row = f.sub_size(length - 1, turn.index) if reverse else turn.index
            body.give(0, before)
            body.give(first, _rows(f, operands[first:], types[first:many], row))
            body.give(many, after)
            body.give(many + carried, _rows(f, results[carried:], node.types[carried:], row))
            body.run()
            turn.next = [*after, *spare, *after]

    key = f"scan {length} {reverse}"
    return _kernel(key, parts, state.bytes, length, types, emit)


def _rows(
    f: Function, starts: Sequence[Value], types: Sequence[TensorType], row: int | Value
) -> list[Value]:
    """Where row number `row` of each begins."""
    found = []
    for start, type_ in zip(starts, types, strict=True):
        nbytes = type_.nbytes // max(type_.shape[0], 1)
        found.append(f.offset(I8, start, f.mul_size(row, nbytes)))
    return found


KERNELS[COND] = KernelLowering(_cond, gapless=True)
KERNELS[WHILE_LOOP] = KernelLowering(_while_loop, gapless=True)
KERNELS[WHILE_LOOP_BACK] = KernelLowering(_while_loop_back, gapless=True)
KERNELS[SCAN] = KernelLowering(_scan, gapless=True)
