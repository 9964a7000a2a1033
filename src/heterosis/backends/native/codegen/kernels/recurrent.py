"""The loop over the steps of a recurrent layer, forwards and back.

Each step is a matrix product and one pass over its result, in which a `Cell` says what happens.
What does not depend on the step before (the product with the inputs, for one) is done outside,
for all steps at once; or both products are one, of the inputs and the last outputs side by side,
which writes down nothing that the next step would have to read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import STORED
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels import matmul
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    ceil_div,
    depth_blocks,
    mode_of,
)
from heterosis.backends.native.codegen.kernels.matmul.dots import dots, emit_dot_kernels, is_far
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    EvenRows,
    PanelProduct,
    emit_panel_kernels,
)
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.mathematics.gates import sigmoid, tanh
from heterosis.backends.native.codegen.mathematics.number import Number, where
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.primitives.recurrent import GATES
from heterosis.ir.types import ITEMSIZE

# Up to so many rows, a product reads the weights as they lie.
FEW_ROWS = 4
_ALIGNMENT = 64
_SHARE_ELEMENTS = 2000  # of one pass, that are worth a thread
_SHARE_WORK = 1 << 17  # multiplications that are
_ROWS_AHEAD = 2  # whose operands are fetched while a row's pass is computed
# Products that can be computed for some units at a time, for all their gates.
_BY_UNITS = ("panels", "dots_of_columns")
# Up to so many bytes of both operands side by side, their products are one: a block of depth.
_JOINED_BYTES = 1 << 11
_JOINED_ROWS = 16  # fewer fill tiles better in the product for all steps
# Rows enough for a share of their own, if the weights, which pass by once a step, are no more than
# so many bytes (measured with 2 MB of second-level cache).
_OWN_ROWS, _OWN_BYTES = 8, {"avx512": 1 << 20}
_MANY_ROWS = 16  # of a share, if there are several for each thread: neighbours slow some of them

Numbers = list[Number]


@dataclass(frozen=True)
class Stream:
    """An operand of the pass: `width` numbers for each unit of each row of the batch.

    It stands still from step to step unless it is `moving`, and is the same for all rows if
    `shared`.
    """

    name: str
    width: int = 1
    moving: bool = True
    shared: bool = False


@dataclass(frozen=True)
class Pass:
    """What happens to every unit in one step: `formula` takes the inputs' numbers, a list for each
    stream, and gives those of the outputs, and perhaps of more."""

    inputs: tuple[Stream, ...]
    outputs: tuple[Stream, ...]
    formula: Callable[..., Sequence[Numbers]]


@dataclass(frozen=True)
class Cell:
    """A kind of layer: how many numbers a unit takes from the product, and both passes.

    In `forward`, "product" is the product of the last step's "hidden" with the weights. In `back`,
    "gates" is what the product's operand received, and "product" what comes of it for the step
    before.
    """

    name: str
    gates: int
    forward: Pass
    back: Pass


# -- formulas -------------------------------------------------------------------------------------


def _lstm(given: Numbers, product: Numbers, memory: Numbers) -> Sequence[Numbers]:
    enter, keep, fresh, leave = (a + b for a, b in zip(given, product, strict=True))
    enter, keep, fresh, leave = sigmoid(enter), sigmoid(keep), tanh(fresh), sigmoid(leave)
    now = keep * memory[0] + enter * fresh
    return [leave * tanh(now)], [now], [enter, keep, fresh, leave]


def _lstm_back(
    gates: Numbers, memory: Numbers, before: Numbers, of_output: Numbers, of_memory: Numbers,
    product: Numbers, carried: Numbers,
) -> Sequence[Numbers]:  # fmt: skip
    enter, keep, fresh, leave = gates
    g = of_output[0] + product[0]
    seen = tanh(memory[0])
    m = of_memory[0] + carried[0] + g * leave * (1.0 - seen * seen)
    found = [
        m * fresh * enter * (1.0 - enter),
        m * before[0] * keep * (1.0 - keep),
        m * enter * (1.0 - fresh * fresh),
        g * seen * leave * (1.0 - leave),
    ]
    return found, [m * keep]


def _gru(given: Numbers, product: Numbers, bias: Numbers, hidden: Numbers) -> Sequence[Numbers]:
    reset, keep = (sigmoid(given[i] + product[i]) for i in range(2))
    inner = product[2] + bias[0]
    fresh = tanh(given[2] + reset * inner)
    return [fresh + keep * (hidden[0] - fresh)], [reset, keep, fresh, inner]


def _gru_back(
    gates: Numbers, before: Numbers, of_output: Numbers, product: Numbers, direct: Numbers
) -> Sequence[Numbers]:
    reset, keep, fresh, inner = gates
    g = of_output[0] + product[0] + direct[0]
    of_fresh = g * (1.0 - keep) * (1.0 - fresh * fresh)
    of_reset = of_fresh * inner * reset * (1.0 - reset)
    of_keep = g * (before[0] - fresh) * keep * (1.0 - keep)
    return (
        [of_reset, of_keep, of_fresh * reset],
        [of_reset, of_keep, of_fresh],
        [g * keep],
    )


def _plain(activation: Callable[[Number], Number]) -> Callable[..., Sequence[Numbers]]:
    return lambda given, product: ([activation(given[0] + product[0])],)


def _rectified(x: Number) -> Number:
    return where(x <= 0.0, 0.0, x)


def _tanh_back(hidden: Numbers, of_output: Numbers, product: Numbers) -> Sequence[Numbers]:
    y = hidden[0]
    return ([(of_output[0] + product[0]) * (1.0 - y * y)],)


def _relu_back(hidden: Numbers, of_output: Numbers, product: Numbers) -> Sequence[Numbers]:
    return ([where(hidden[0] > 0.0, of_output[0] + product[0], 0.0)],)


# -- kinds of layers ------------------------------------------------------------------------------


def _simple(
    name: str, forward: Callable[..., Sequence[Numbers]], back: Callable[..., Sequence[Numbers]]
) -> Cell:
    """One gate, and no state but the output."""
    return Cell(
        name,
        GATES[name],
        Pass((Stream("given"), Stream("product", moving=False)), (Stream("hidden"),), forward),
        Pass(
            (Stream("hidden"), Stream("of_output"), Stream("product", moving=False)),
            (Stream("gates"),),
            back,
        ),
    )


_LSTM = Cell(
    "lstm",
    GATES["lstm"],
    Pass(
        (Stream("given", 4), Stream("product", 4, moving=False), Stream("memory_before")),
        (Stream("hidden"), Stream("memory"), Stream("activations", 4)),
        _lstm,
    ),
    Pass(
        (
            Stream("activations", 4),
            Stream("memory"),
            Stream("before"),
            Stream("of_output"),
            Stream("of_memory"),
            Stream("product", moving=False),
            Stream("carried", moving=False),
        ),
        (Stream("gates", 4), Stream("carried", moving=False)),
        _lstm_back,
    ),
)
_GRU = Cell(
    "gru",
    GATES["gru"],
    Pass(
        (
            Stream("given", 3),
            Stream("product", 3, moving=False),
            Stream("bias", moving=False, shared=True),
            Stream("hidden_before"),
        ),
        (Stream("hidden"), Stream("activations", 4)),
        _gru,
    ),
    Pass(
        (
            Stream("activations", 4),
            Stream("before"),
            Stream("of_output"),
            Stream("product", moving=False),
            Stream("direct", moving=False),
        ),
        (Stream("gates", 3), Stream("of_given", 3), Stream("direct", moving=False)),
        _gru_back,
    ),
)
CELLS = {
    "lstm": _LSTM,
    "gru": _GRU,
    "rnn_tanh": _simple("rnn_tanh", _plain(tanh), _tanh_back),
    "rnn_relu": _simple("rnn_relu", _plain(_rectified), _relu_back),
}


# -- a loop as data -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recurrence:
    """A loop over steps: forwards from a state, or `back`.

    Forwards, the kernel's inputs are the weights, "given", the first "hidden", and, where the cell
    has them, the first "memory" and the "bias"; its outputs are what the pass writes, the
    "activations", which are for the way back, only if they are to be kept (`keep`). If it is
    `joined`, the inputs "x" and a "bias" for every gate stand in place of "given", and the weights
    of "x" and of "hidden" one above the other. Back, the inputs are the weights and what the pass
    reads; the outputs what the pass writes and the "product" of the last turn.
    """

    cell: Cell
    dtype: str
    back: bool
    keep: bool
    problem: matmul.Problem  # one step's product, of any size
    packs: bool  # the weights, which have not come packed
    together: bool  # whether who multiplies for some units also computes their pass
    joined: bool
    by_rows: bool  # whether threads share the rows, for all steps: they meet once

    @property
    def step(self) -> Pass:
        if self.back:
            return self.cell.back
        found = self.cell.forward
        if not self.keep:
            kept = tuple(s for s in found.outputs if s.name != "activations")
            found = replace(found, outputs=kept)
        return _with_bias(found) if self.joined else found

    @property
    def key(self) -> str:
        facts = (
            self.cell.name,
            self.dtype,
            self.back,
            self.keep,
            self.problem,
            self.packs,
            self.together,
            self.joined,
            self.by_rows,
        )
        return f"recurrence {facts}"

    @property
    def inputs(self) -> list[str]:
        """The kernel's inputs behind the weights."""
        if self.back:
            written = {s.name for s in self.step.outputs} | {"product"}
            return [s.name for s in self.step.inputs if s.name not in written]
        given = ["x", "bias"] if self.joined else ["given"]
        names = [s.name for s in self.step.inputs if s.name not in given]
        more = [n for n in ("memory_before", "bias") if n in names]
        return [*given, "hidden_before", *more]

    @property
    def outputs(self) -> list[str]:
        """The kernel's outputs."""
        return [s.name for s in self.step.outputs] + (["product"] if self.back else [])


def _with_bias(step: Pass) -> Pass:
    """A pass that has what the gates are given in the product, but for the bias."""
    inputs = tuple(
        Stream("bias", s.width, moving=False, shared=True) if s.name == "given" else s
        for s in step.inputs
    )
    return replace(step, inputs=inputs)


@dataclass(frozen=True)
class Layout:
    """Where the loop's own memory begins, in bytes: the product, packed weights, the rest."""

    packed: int
    work: int
    total: int


def plan(
    cell: Cell, dtype: str, back: bool, keep: bool, rows: int, units: int,
    target: Target, workers: int, *, packed: bool = False, joined: bool = False,
) -> tuple[Recurrence, matmul.Problem, Layout]:  # fmt: skip
    """The loop for a batch of `rows`, its product with all numbers known, and its memory. The
    weights may have come `packed`, as they do if it is `joined`; else they are packed here for more
    than a few rows."""
    wide = cell.gates * units
    n, k = (units, wide) if back else (wide, 2 * units if joined else units)
    b_row, b_column = (units, 1) if back else (1, units)
    packs = rows > FEW_ROWS and not packed
    problem = matmul.Problem(
        dtype, m=rows, n=n, k=k, a_row=wide if back else units, a_column=1,
        b_row=b_row, b_column=b_column, c_row=n, b_packed=packs or packed, one_block=joined,
    )  # fmt: skip
    actual = matmul.choose(problem, target, workers)
    # Units in whole blocks: the columns of a gate are panels, or runs, of their own.
    parts = actual.variant in _BY_UNITS and units % _block(dtype, target) == 0
    together = parts and not back
    alone = together and actual.variant == "panels" and workers > 1
    near = alone and n * k * ITEMSIZE[dtype] <= _OWN_BYTES.get(target.name, 0)
    by_rows = near and rows >= workers * _OWN_ROWS
    loop = Recurrence(cell, dtype, back, keep, actual.generic(), packs, together, joined, by_rows)
    at_packed = 0 if back else _aligned(rows * wide * ITEMSIZE[dtype])
    size = matmul.packed_b_layout(actual, target).size if packs else 0
    work = _aligned(at_packed + size)
    total = work + matmul.workspace_bytes(actual, target, workers)
    return loop, actual, Layout(at_packed, work, total)


def joins(mode: str, dtype: str, rows: int, units: int, target: Target, workers: int) -> bool:
    """Whether the products of inputs as wide as the outputs are worth being one with those of the
    outputs: where one block of depth has both, and each thread all gates of some units; threads
    that have rows of their own instead need not meet."""
    if 2 * units * ITEMSIZE[dtype] > _JOINED_BYTES or rows < _JOINED_ROWS:
        return False
    facts = (CELLS[mode], dtype, False, False, rows, units, target, workers)
    joined, *_ = plan(*facts, packed=True, joined=True)
    apart, *_ = plan(*facts, packed=True)
    return joined.together and joined.problem.variant == "panels" and not apart.by_rows


def _block(dtype: str, target: Target) -> int:
    """How many units are computed at once where their product and their pass go together."""
    return tile(target, element(dtype, target)).columns


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def numbers(
    loop: Recurrence,
    actual: matmul.Problem,
    layout: Layout,
    steps: int,
    rows: int,
    units: int,
    reverse: bool,
) -> tuple[int, ...]:
    """What to pass to the function that `emit_recurrence` defines."""
    backwards = reverse != loop.back
    first, onward = (steps - 1, -1) if backwards else (0, 1)
    grain = max(1, _SHARE_ELEMENTS // max(units, 1))
    own = (steps, rows, units, first, onward, grain, layout.packed, layout.work)
    return (*own, *loop.problem.arguments(actual))


_NUMBERS = ("steps", "rows", "units", "first", "onward", "grain", "packed_at", "work_at")


# -- emission -------------------------------------------------------------------------------------


def emit_recurrence(module: Module, target: Target, name: str, loop: Recurrence) -> None:
    """Define `@name(call, weights, inputs..., outputs..., scratch, numbers...)`."""
    if loop.packs:
        matmul.emit_pack_b(module, target, f"{name}.pack", _to_pack(loop))
    if loop.together:
        _emit_step(module, target, f"{name}.step", loop)
    else:
        matmul.emit_matmul(module, target, f"{name}.product", loop.problem)
        _emit_pass(module, target, f"{name}.pass", loop)
    open_ = loop.problem.parameters()
    outputs = [f"{o}_out" for o in loop.outputs]
    pointers = ["call", "weights", *loop.inputs, *outputs, "scratch"]
    parameters = [(p, PTR) for p in pointers]
    parameters += [(label, I64) for label in _NUMBERS] + open_
    f = module.function(name, parameters, attributes=target.function_attributes)
    v = dict(zip([*pointers, *_NUMBERS], f.parameters[: len(parameters) - len(open_)], strict=True))
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
    grain = f.max_size(_OWN_ROWS, ceil_div(f, rows, f.mul_size(threads, several)))
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
        columns = _block(self.loop.dtype, self.target)
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
        for stream, label in _labelled(self.loop.step):
            pointer = label if label in self.v else f"{stream.name}_out"
            if stream.name in given and not label.endswith("_out"):
                found[label] = given[stream.name]
            elif stream.moving:
                found[label] = self._at(pointer, step, stream.width)
            else:
                found[label] = self.v[pointer]
        return found


def _labelled(step: Pass) -> list[tuple[Stream, str]]:
    """The streams with names of their own: an output may have the name of an input."""
    return [(s, s.name) for s in step.inputs] + [(s, f"{s.name}_out") for s in step.outputs]


def _body(
    module: Module, target: Target, name: str, loop: Recurrence, **own: Type
) -> tuple[Function, SimpleNamespace]:
    """The body of a parallel loop, and what its frame holds: its `own` values, and where each
    stream of the pass begins."""
    types = own | {label: PTR for _, label in _labelled(loop.step)}
    frame = Frame(**{label: Value(type_, "") for label, type_ in types.items()})
    f, v, *_ = frame.body(module, target, name)
    return f, v


def _emit_pass(module: Module, target: Target, name: str, loop: Recurrence) -> None:
    """The body of a loop over rows: the cell's formula for every unit."""
    f, v = _body(module, target, name, loop, units=I64)
    _, begin, end, _ = f.parameters
    with f.loop(begin, end) as row:
        _pass_of_row(f, target, loop, v, row.index, 0, v.units)
    f.ret()


def _pass_of_row(
    f: Function, target: Target, loop: Recurrence, v: SimpleNamespace, row: Value,
    first: Size, end: Size,
) -> None:  # fmt: skip
    """The cell's formula for some units of a row, which begin with a whole vector."""
    number, lanes = STORED[loop.dtype], target.lanes(ITEMSIZE[loop.dtype])
    lines = {
        label: _line(f, number, getattr(v, label), stream, row, v.units)
        for stream, label in _labelled(loop.step)
    }
    # A formula is one long chain: two vectors at a time give the processor twice as much to do.
    for width in (2 * lanes, lanes, 1):
        vector = Type(number.element, width if width > 1 else 0)
        whole = f.add_size(first, f.round_down(f.sub_size(end, first), width))
        with f.loop(first, whole, width) as unit:
            _units(f, loop.step, vector, lines, unit.index)
        first = whole


def _emit_step(module: Module, target: Target, name: str, loop: Recurrence) -> None:
    """The body of a loop over blocks of units: their products for every gate, and the pass."""
    kernel = product_kernel(module, target, loop.dtype)
    by_panels = loop.problem.variant == "panels"
    (emit_panel_kernels if by_panels else emit_dot_kernels)(kernel)
    own = {"units": I64, "left": PTR, "apart": I64, "right": PTR}
    own |= {"first_row": I64, "end_row": I64, "backwards": I64}
    f, v = _body(module, target, name, loop, **own)
    _, begin, end, _ = f.parameters
    v.back = f.compare("ne", v.backwards, constant(I64, 0))
    columns = constant(I64, kernel.tile.columns)

    def pass_of(first: Value, last: Value) -> None:
        with f.loop(v.first_row, v.end_row) as row:
            _fetch_row(f, loop, v, f.add(row.index, f.i64(_ROWS_AHEAD)), first, kernel.tile.columns)
            _pass_of_row(f, target, loop, v, row.index, first, last)

    if by_panels:
        onward = f.select(v.back, f.sub(constant(I64, 0), columns), columns)
        with f.loop(begin, end) as turn:
            first = f.mul(_to_and_fro(f, v.back, turn.index, begin, end), columns)
            _panels(kernel, f, loop, v, first, f.add(first, onward))
            pass_of(first, f.add(first, columns))
    else:
        first, last = f.mul(begin, columns), f.mul(end, columns)
        _dots(kernel, f, loop, v, first, last)
        pass_of(first, last)
    f.ret()


def _fetch_row(
    f: Function, loop: Recurrence, v: SimpleNamespace, row: Value, first: Size, units: int
) -> None:
    """Fetch what the pass reads and writes of some units of a row: rows are so far apart that the
    processor does not guess which one comes next."""
    number = STORED[loop.dtype]
    for stream, label in _labelled(loop.step):
        if stream.shared or not stream.moving:
            continue
        for line in _line(f, number, getattr(v, label), stream, row, v.units):
            nbytes = units * ITEMSIZE[loop.dtype]
            f.prefetch(f.offset(number, line, first), nbytes, write=label.endswith("_out"))


def _to_and_fro(f: Function, back: Value, index: Value, begin: Size, end: Size) -> Value:
    """An index from `begin` to before `end`, or the one that is as far from the other end."""
    last = f.sub_size(f.sub_size(end, 1), f.sub_size(index, begin))
    return f.select(back, f.i64(last), index)


def _panels(
    kernel: Kernel, f: Function, loop: Recurrence, v: SimpleNamespace, first: Value, after: Value
) -> None:
    """The products of a block of units, whose first one is `first`, for all gates: a panel each.
    The block `after` it comes next."""
    compute, columns, gates = kernel.element.compute, kernel.tile.columns, loop.cell.gates
    wide = f.mul_size(v.units, gates)
    runs, most = (2, v.units) if loop.joined else (1, depth_blocks(f, kernel, v.units)[0])
    nowhere: list[Size | Value] = [Value(PTR, "null"), 0, 0, 0]  # no epilogue asks
    rows = f.sub_size(v.end_row, v.first_row)
    left = f.offset(compute, v.left, f.mul_size(v.first_row, v.units))
    product = f.offset(compute, v.product, f.mul_size(v.first_row, wide))
    with f.loop(0, v.units, most) as step, f.loop(0, gates) as gate:
        depth = f.min_size(most, f.sub_size(v.units, step.index))

        def panel(gate: Size, first: Size, step: Value = step.index, depth: Size = depth) -> Value:
            column = f.add_size(f.mul_size(gate, v.units), first)
            numbers = f.mul_size(column, f.mul_size(depth, runs))
            return f.offset(compute, v.right, f.add_size(f.mul_size(step, wide), numbers))

        last = f.compare("eq", gate.index, constant(I64, gates - 1))
        next_gate = f.select(last, f.i64(0), f.add(gate.index, constant(I64, 1)))
        of_next = f.select(last, after, first)
        to = f.add_size(f.mul_size(gate.index, v.units), first)
        PanelProduct(
            EvenRows(f.offset(compute, left, step.index), v.units),
            runs=runs, a_run=v.apart, depth=depth,
            panel=panel(gate.index, first), to=f.offset(compute, product, to), c_row=wide,
            rows=rows, width=columns, mode=mode_of(f, step.index, depth, v.units),
            place=nowhere, following=panel(next_gate, of_next),
        ).whole(kernel, f)  # fmt: skip


def _dots(
    kernel: Kernel, f: Function, loop: Recurrence, v: SimpleNamespace, first: Value, last: Value
) -> None:
    """The products of the units from `first` to before `last` where the weights are read as they
    lie: a dot product for each unit and gate. Runs as long as these are read at full speed."""
    gates = loop.cell.gates
    problem = SimpleNamespace(
        a=v.left, b=v.right, c=v.product, a_row=v.units, b_column=v.units,
        c_row=f.mul_size(v.units, gates), k=v.units,
        call=Value(PTR, "null"), batch=constant(I64, 0), others=v.end_row,
        far=is_far(kernel, f, f.mul_size(f.mul_size(v.units, gates), v.units)),
    )  # fmt: skip
    with f.loop(0, gates) as turn:
        gate = f.mul_size(_to_and_fro(f, v.back, turn.index, 0, gates), v.units)
        begin, end = f.add_size(gate, first), f.add_size(gate, last)
        dots(kernel, f, problem, begin, end, by_columns=True)


def _line(
    f: Function, element: Type, pointer: Value, stream: Stream, row: Value, units: Value
) -> list[Value]:
    """Where a row's numbers begin, for each of the stream's parts."""
    width = f.mul(units, constant(I64, stream.width))
    start = pointer if stream.shared else f.offset(element, pointer, f.mul(row, width))
    return [f.offset(element, start, f.mul_size(units, i)) for i in range(stream.width)]


def _units(
    f: Function, step: Pass, vector: Type, lines: dict[str, list[Value]], unit: Value
) -> None:
    """One vector of units."""

    def at(pointer: Value) -> Value:
        return f.offset(vector, pointer, unit)

    read = [[Number(f, f.load(vector, at(p))) for p in lines[s.name]] for s in step.inputs]
    for stream, found in zip(step.outputs, step.formula(*read), strict=False):
        for number, pointer in zip(found, lines[f"{stream.name}_out"], strict=True):
            f.store(number.value, at(pointer))
