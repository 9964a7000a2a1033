"""One step of a recurrent layer, the body of a parallel loop: the pass over rows, or with the
products of some units."""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit.access import STORED
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.matmul.blocked import depth_blocks, mode_of
from heterosis.backends.native.codegen.kernels.matmul.dots import dots, emit_dot_kernels, is_far
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    EvenRows,
    PanelProduct,
    emit_panel_kernels,
)
from heterosis.backends.native.codegen.kernels.recurrent.cells import Pass, Stream
from heterosis.backends.native.codegen.kernels.recurrent.plan import Recurrence
from heterosis.backends.native.codegen.mathematics.number import Number
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.types import ITEMSIZE

_ROWS_AHEAD = 2  # whose operands are fetched while a row's pass is computed


def labelled(step: Pass) -> list[tuple[Stream, str]]:
    """The streams with names of their own: an output may have the name of an input."""
    return [(s, s.name) for s in step.inputs] + [(s, f"{s.name}_out") for s in step.outputs]


def _body(
    module: Module, target: Target, name: str, loop: Recurrence, **own: Type
) -> tuple[Function, SimpleNamespace]:
    """The body of a parallel loop, and what its frame holds: its `own` values, and where each
    stream of the pass begins."""
    types = own | {label: PTR for _, label in labelled(loop.step)}
    frame = Frame(**{label: Value(type_, "") for label, type_ in types.items()})
    f, v, *_ = frame.body(module, target, name)
    return f, v


def emit_pass(module: Module, target: Target, name: str, loop: Recurrence) -> None:
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
        for stream, label in labelled(loop.step)
    }
    # A formula is one long chain: two vectors at a time give the processor twice as much to do.
    for width in (2 * lanes, lanes, 1):
        vector = Type(number.element, width if width > 1 else 0)
        whole = f.add_size(first, f.round_down(f.sub_size(end, first), width))
        with f.loop(first, whole, width) as unit:
            _units(f, loop.step, vector, lines, unit.index)
        first = whole


def emit_step(module: Module, target: Target, name: str, loop: Recurrence) -> None:
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
    for stream, label in labelled(loop.step):
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
