"""The kernel of the way back through a loop that nobody knows the turns of.

It runs the loop once more, keeps what its turns carry, and calls the function of a turn's gradient
for the last turn first.
"""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.backends.native.codegen.emit.builder import I8, I64, PTR, Function, Value, constant
from heterosis.backends.native.codegen.kernel import KernelCode, Machine
from heterosis.backends.native.codegen.kernels import heap
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.schedule.arena import rounded
from heterosis.backends.native.schedule.control.loops import TURNS, State, settled_at, thirds
from heterosis.backends.native.schedule.control.parts import Call, Places, is_true, kernel, part
from heterosis.ir.primitives.control import WHILE_LOOP_BACK
from heterosis.ir.program import Node
from heterosis.ir.types import TensorType

_NO_MEMORY = (
    "the gradient of a loop without bound: what its turns carry, which is kept for the way back, "
    "needs more memory than there is; give max_iterations, or detach what is carried."
)
_FIRST_ROOM = 16  # turns, before the memory for them grows


class _History:
    """What a loop carries into its turns, one after another, in memory that grows."""

    def __init__(self, f: Function, types: Sequence[TensorType], failure: int):
        self.f, self.state, self.failure = f, State(types), failure
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
    parts = {name: part(node.attributes[name], machine) for name in names}
    many, carried = len(node.inputs), node.attributes["carried"]
    end = many - node.attributes["received"]
    received = State(node.types)
    types = [*(v.type for v in node.inputs), *node.types]
    before_body = len(parts["condition"].failures)
    before_back = before_body + len(parts["body"].failures)
    last = before_back + len(parts["back"].failures) + 1

    def emit(f: Function, addresses: list[Value], calls: dict[str, Call]) -> None:
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
            return is_true(f, truth)

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
            before, after, spare = thirds(turn.carried)
            at = f.sub(f.sub(done, constant(I64, 1)), turn.index)
            back.give(0, history.rooms(memory_, at))
            back.give(end, before)
            back.give(many, after)
            back.run(before_back, lambda: heap.free(f, memory_))
            turn.next = [*after, *spare, *after]
        heap.free(f, memory_)
        settled_at(f, node.types, turn.results[: len(results)], results)

    scratch = rounded(1) + received.bytes
    key = f"while_loop_back {carried} {end}"
    return kernel(key, parts, scratch, TURNS, types, emit, (("ArgumentError", _NO_MEMORY),))


KERNELS[WHILE_LOOP_BACK] = KernelLowering(_while_loop_back, gapless=True)
