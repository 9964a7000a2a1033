"""The function around the steps of a recurrent layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import STORED
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    Function,
    Module,
    Size,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels import matmul
from heterosis.backends.native.codegen.kernels.matmul.blocked import ceil_div
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.recurrent.plan import (
    NUMBERS,
    OWN_ROWS,
    Recurrence,
    block_of,
)
from heterosis.backends.native.codegen.kernels.recurrent.step import emit_pass, emit_step, labelled
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.types import ITEMSIZE

_SHARE_WORK = 1 << 17  # multiplications that are worth a thread
_MANY_ROWS = 16  # of a share, if there are several for each thread: neighbours slow some of them


def emit_recurrence(module: Module, target: Target, name: str, loop: Recurrence) -> None:
    """Define `@name(call, weights, inputs..., outputs..., scratch, numbers...)`."""
    if loop.packs:
        matmul.emit_pack_b(module, target, f"{name}.pack", _to_pack(loop))
    if loop.together:
        emit_step(module, target, f"{name}.step", loop)
    else:
        matmul.emit_matmul(module, target, f"{name}.product", loop.problem)
        emit_pass(module, target, f"{name}.pass", loop)
    open_ = loop.problem.parameters()
    outputs = [f"{o}_out" for o in loop.outputs]
    pointers = ["call", "weights", *loop.inputs, *outputs, "scratch"]
    parameters = [(p, PTR) for p in pointers]
    parameters += [(label, I64) for label in NUMBERS] + open_
    f = module.function(name, parameters, attributes=target.function_attributes)
    v = dict(zip([*pointers, *NUMBERS], f.parameters[: len(parameters) - len(open_)], strict=True))
    sizes = f.parameters[len(parameters) - len(open_) :]
    turns = _Loop(f, target, name, loop, v, sizes)
    right = turns.weights()
    if loop.by_rows:
        _share_rows(module, turns, right)
    else:
        turns.emit(right, v["rows"])
    f.ret()


def _share_rows(module: Module, turns: _Loop, right: Value) -> None:
    """Share the rows of the batch out: a thread computes all steps of its own."""
    f, v, name, loop, target = turns.f, turns.v, turns.name, turns.loop, turns.target
    frame = Frame(**v, right=right)
    frame.save(f, turns.memory)
    rows, threads = v["rows"], abi.workers(f, turns.call)
    several = f.max_size(1, f.div_size(rows, f.mul_size(threads, _MANY_ROWS)))
    grain = f.max_size(OWN_ROWS, ceil_div(f, rows, f.mul_size(threads, several)))
    share(f, turns.call, f"{name}.rows", turns.memory, rows, grain, alone=False)
    f, own, begin, end, _ = frame.body(module, target, f"{name}.rows")
    _Loop(f, target, name, loop, vars(own), []).emit(own.right, end, begin)
    f.ret()


def _to_pack(loop: Recurrence) -> matmul.Problem:
    b_row, b_column = (None, 1) if loop.back else (1, None)
    return replace(loop.problem, n=None, k=None, b_row=b_row, b_column=b_column)


class _Loop:
    """The function around the steps, in the making."""

    def __init__(
        self, f: Function, target: Target, name: str, loop: Recurrence, v: dict[str, Value],
        sizes: Sequence[Value],
    ):  # fmt: skip
        self.f, self.name, self.loop, self.v, self.sizes = f, name, loop, v, sizes
        self.target = target
        self.element = STORED[loop.dtype]
        self.memory = Frame.allocate(f)
        work = f.offset(I8, v["scratch"], v["work_at"])
        self.call = abi.with_workspace(f, v["call"], work)
        self.plane = f.mul(v["rows"], v["units"])  # numbers of one step, for a width of 1

    def emit(self, right: Value, end: Value, begin: Size = 0) -> None:
        """All steps of the rows from `begin` to before `end`."""
        f, v = self.f, self.v
        if self.loop.back:
            for own in ("product", "carried", "direct"):
                if f"{own}_out" in v:
                    self._clear(v[f"{own}_out"])
        states = [v[n] for n in ("hidden_before", "memory_before") if n in v]
        with f.loop(0, v["steps"], 1, states) as turn:
            step = f.add(v["first"], f.mul(turn.index, v["onward"]))
            if self.loop.back:
                self._pass(step, [])
                self._product(self._at("gates_out", step, self.loop.cell.gates), right)
            else:
                if self.loop.together:
                    backwards = f.binary("and", turn.index, f.i64(1))
                    rows = f.i64(begin), end
                    self._together(step, backwards, turn.carried, right, rows)
                else:
                    self._product(turn.carried[0], right)
                    self._pass(step, turn.carried)
                after = ("hidden_out", "memory_out")
                turn.next = [self._at(n, step, 1) for n in after[: len(states)]]

    def weights(self) -> Value:
        """The right operand of the products, packed if that is worth it and not done."""
        f, v = self.f, self.v
        if not self.loop.packs:
            return v["weights"]
        packed = f.offset(I8, v["scratch"], v["packed_at"])
        wide = f.mul(v["units"], constant(I64, self.loop.cell.gates))
        n, k = (v["units"], wide) if self.loop.back else (wide, v["units"])
        f.call(f"{self.name}.pack", [self.call, v["weights"], packed, n, k, v["units"]])
        return packed

    def _product(self, left: Value, right: Value) -> None:
        to = self.v["product_out"] if self.loop.back else self.v["scratch"]
        self.f.call(f"{self.name}.product", [self.call, left, right, to, *self.sizes])

    def _at(self, pointer: str, step: Value, width: int) -> Value:
        f = self.f
        return f.offset(
            self.element,
            self.v[pointer],
            f.mul(step, f.mul(self.plane, constant(I64, width))),
        )

    def _clear(self, pointer: Value) -> None:
        with self.f.loop(0, self.plane) as i:
            zero = constant(self.element, 0.0)
            self.f.store(zero, self.f.offset(self.element, pointer, i.index))

    def _pass(self, step: Value, states: Sequence[Value]) -> None:
        frame = Frame(units=self.v["units"], **self._pointers(step, states))
        frame.save(self.f, self.memory)
        rows, grain = self.v["rows"], self.v["grain"]
        share(self.f, self.call, f"{self.name}.pass", self.memory, rows, grain, alone=False)

    def _together(
        self, step: Value, backwards: Value, states: Sequence[Value], right: Value,
        rows: tuple[Value, Value],
    ) -> None:  # fmt: skip
        """The product and the pass, shared out by units, unless the rows are: threads meet once a
        step.

        Every other step takes the units `backwards`: it begins with the weights that the step
        before read last, which are still in the cache if not all of them fit.
        """
        f, v = self.f, self.v
        # A row of the product is one of the inputs, and one of the last outputs so far behind it.
        left = self._at("x", step, 1) if self.loop.joined else states[0]
        apart = self._apart(left, states[0])
        own = {"units": v["units"], "left": left, "apart": apart, "right": right}
        own |= dict(zip(("first_row", "end_row"), rows, strict=True))
        frame = Frame(**own, backwards=backwards, **self._pointers(step, states))
        frame.save(f, self.memory)
        columns = block_of(self.loop.dtype, self.target)
        blocks = f.i64(f.div_size(v["units"], columns))
        if self.loop.by_rows:
            share(f, self.call, f"{self.name}.step", self.memory, blocks, blocks, alone=True)
            return
        work = f.mul_size(f.mul_size(v["rows"], v["units"]), self.loop.cell.gates * columns)
        # One thread does all at once: of several shares, the first would always come first.
        alone = f.compare("eq", abi.workers(f, self.call), constant(I64, 1))
        grain = f.select(alone, blocks, f.i64(abi.grain_of(f, work, _SHARE_WORK)))
        share(f, self.call, f"{self.name}.step", self.memory, blocks, grain, alone=False)

    def _apart(self, first: Value, second: Value) -> Value:
        """How many numbers lie from one address to another."""
        f = self.f
        bytes_ = f.sub(*(f.convert("ptrtoint", p, I64) for p in (second, first)))
        return f.div(bytes_, constant(I64, ITEMSIZE[self.loop.dtype]))

    def _pointers(self, step: Value, states: Sequence[Value]) -> dict[str, Value]:
        """Where each stream of the pass begins, in the order that `_frame` has."""
        given = dict(zip(("hidden_before", "memory_before"), states, strict=False))
        if not self.loop.back:
            given["product"] = self.v["scratch"]
        found = {}
        for stream, label in labelled(self.loop.step):
            pointer = label if label in self.v else f"{stream.name}_out"
            if stream.name in given and not label.endswith("_out"):
                found[label] = given[stream.name]
            elif stream.moving:
                found[label] = self._at(pointer, step, stream.width)
            else:
                found[label] = self.v[pointer]
        return found
