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
_NULL = Value(PTR, "null")
_PARTS = ("condition", "body", "back")


def _while_loop_back(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    parts = {name: part(node.attributes[name], machine) for name in _PARTS}
    carried, end = node.attributes["carried"], len(node.inputs) - node.attributes["received"]
    types = [*(v.type for v in node.inputs), *node.types]

    def emit(f: Function, addresses: list[Value], calls: dict[str, Call]) -> None:
        failures = [len(parts[name].failures) for name in _PARTS]
        _WayBack(f, node, addresses, calls, failures).emit()

    scratch = rounded(1) + State(node.types).bytes
    key = f"while_loop_back {carried} {end}"
    return kernel(key, parts, scratch, TURNS, types, emit, (("ArgumentError", _NO_MEMORY),))


class _WayBack:
    """The kernel's function in the making."""

    def __init__(
        self, f: Function, node: Node, addresses: Sequence[Value], calls: dict[str, Call],
        failures: Sequence[int],
    ):  # fmt: skip
        many, carried = len(node.inputs), node.attributes["carried"]
        self.end = many - node.attributes["received"]
        self.f, self.types, self.operands = f, node.types, addresses[:many]
        self.results, scratch = addresses[many:-1], addresses[-1]
        self.condition, self.body, self.back = (calls[name] for name in _PARTS)
        # Each part's failures are counted behind those of the parts before it, and ours behind all.
        self.before_body, self.before_back = failures[0], failures[0] + failures[1]
        self.carried = self.operands[:carried]
        self.history = _History(f, [v.type for v in node.inputs[:carried]], sum(failures) + 1)
        self.truth = scratch
        self.rooms = State(node.types).rooms(f, f.offset(I8, scratch, rounded(1)))
        for call in calls.values():
            call.give(carried, self.operands[carried : self.end])
        self.condition.give(self.end, [self.truth])

    def emit(self) -> None:
        """Run the loop once more, and then back."""
        f, history = self.f, self.history
        begun = history.begun(self.carried)
        goes_on = self._goes_on(begun, self.carried)
        none = [begun, constant(I64, 0)]
        memory, turns = f.if_else(goes_on, lambda: self._forwards(begun), lambda: none)
        found = self._backwards(memory, turns)
        heap.free(f, memory)
        settled_at(f, self.types, found, self.results)

    def _goes_on(self, memory: Value, at: Sequence[Value]) -> Value:
        """Whether another turn follows what is carried there."""
        self.condition.give(0, at)
        self.condition.run(0, lambda: heap.free(self.f, memory))
        return is_true(self.f, self.truth)

    def _forwards(self, begun: Value) -> list[Value]:
        """The memory with what is carried into every turn, and how many there are."""
        f, history = self.f, self.history
        with f.repeat([begun, constant(I64, _FIRST_ROOM), constant(I64, 0)]) as turn:
            memory, room, done = turn.carried
            after = f.add(done, constant(I64, 1))
            memory, room = history.with_room(memory, room, after)
            self.body.give(0, history.rooms(memory, done))
            self.body.give(self.end, history.rooms(memory, after))
            self.body.run(self.before_body, lambda: heap.free(f, memory))
            turn.more = self._goes_on(memory, history.rooms(memory, after))
            turn.next = [memory, room, after]
        kept, _, turns = turn.results
        return [kept, turns]

    def _backwards(self, memory: Value, turns: Value) -> list[Value]:
        """Where the gradients stand behind the first turn's."""
        f, operands = self.f, self.operands
        with f.loop(0, turns, 1, [*operands[self.end :], *self.results, *self.rooms]) as turn:
            before, after, spare = thirds(turn.carried)
            at = f.sub(f.sub(turns, constant(I64, 1)), turn.index)
            self.back.give(0, self.history.rooms(memory, at))
            self.back.give(self.end, before)
            self.back.give(len(operands), after)
            self.back.run(self.before_back, lambda: heap.free(f, memory))
            turn.next = [*after, *spare, *after]
        return turn.results[: len(self.results)]


class _History:
    """What a loop carries into its turns, one after another, in memory that grows."""

    def __init__(self, f: Function, types: Sequence[TensorType], failure: int):
        self.f, self.state, self.failure = f, State(types), failure
        self.turn_bytes = max(self.state.bytes, 1)

    def begun(self, carried: Sequence[Value]) -> Value:
        """The memory with what is carried into the first turn."""
        memory = self._grown(_NULL, _FIRST_ROOM)
        self.state.copy(self.f, carried, self.rooms(memory, 0))
        return memory

    def rooms(self, memory: Value, turn: int | Value) -> list[Value]:
        """Where what is carried into a turn stands."""
        start = self.f.offset(I8, memory, self.f.mul_size(turn, self.turn_bytes))
        return self.state.rooms(self.f, start)

    def with_room(self, memory: Value, room: Value, turn: Value) -> list[Value]:
        """The memory, which has `room` for so many turns, and its room, with some for `turn`."""
        f = self.f

        def doubled() -> list[Value]:
            more = f.mul(room, constant(I64, 2))
            return [self._grown(memory, more), more]

        return f.if_else(f.compare("eq", turn, room), doubled, lambda: [memory, room])

    def _grown(self, memory: Value, turns: int | Value) -> Value:
        """The memory with room for so many turns."""
        f = self.f
        found = heap.resized(f, memory, f.mul_size(turns, self.turn_bytes))

        def leave() -> None:
            heap.free(f, memory)
            f.ret(constant(I64, self.failure))

        f.leave_if(f.compare("eq", found, _NULL), leave)
        return found


KERNELS[WHILE_LOOP_BACK] = KernelLowering(_while_loop_back, gapless=True)
