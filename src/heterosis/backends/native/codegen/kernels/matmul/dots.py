"""Products whose operands both lie along the depth: every result is a dot product of two runs.

This is a matrix times a vector, and a vector times a transposed matrix, as dense layers have it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import first_lanes
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    SECOND_LEVEL,
    Function,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.epilogue import Position
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    ceil_div,
    core_function,
    round_up,
)
from heterosis.backends.native.codegen.kernels.matmul.element import Element
from heterosis.backends.native.codegen.kernels.matmul.finish import finish_runs
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import (
    PLACE,
    Kernel,
    multiply_add,
)
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem
from heterosis.backends.native.codegen.kernels.matmul.tile import frugal

# Multiplications that make a share of the work worth a thread: memory is the limit here.
_SHARE_WORK = 1 << 16
# Runs of the matrix that are read side by side, and vectors of each in flight.
_RUNS, _UNROLL = 4, 2
_SHORT_BYTES = 2048  # of a run
# Of a matrix: so much does not stay in the second-level cache from one product to the next, and
# the processor's own guesses bring half of what memory can deliver.
_FAR_BYTES = 2 << 20


def emit_dots(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`.

    The variant says which operand is the matrix, cut up for the threads: `dots_of_columns` the
    right one, the others the left one. The other one has few runs, of which `dots_of_several`
    takes several at a time; so does `dots_of_few`, for which they are copied: there, columns are
    neighbours.
    """
    by_columns = problem.variant == "dots_of_columns"
    several = problem.variant in ("dots_of_several", "dots_of_few")
    together = _together(kernel) if several else (1,)
    # Where results are neighbours, all products share their code, and the epilogue comes after it.
    later = kernel.epilogue if by_columns and not kernel.element.converts else None
    if later:
        kernel = product_kernel(kernel.module, kernel.target, kernel.element.dtype)
    emit_dot_kernels(kernel, by_columns=by_columns, together=together)
    f, v = core_function(kernel.module, kernel.target, problem, name)
    memory = Frame.allocate(f)
    if problem.variant == "dots_of_few":
        _turn_columns(kernel, f, v)
    runs = v.n if by_columns else v.m
    others = v.m if by_columns else v.n
    work = f.max_size(1, f.mul_size(others, v.k))
    workers = f.i64(1) if problem.over_batches else abi.workers(f, v.call)
    fair = ceil_div(f, runs, f.mul_size(workers, 4))
    least = f.div_size(_SHARE_WORK, work)
    # Whole cache lines of results for each thread where they are neighbours.
    piece = round_up(f, f.max_size(f.max_size(fair, least), 1), 16)
    # As a value: bodies that differ in nothing else are one function.
    finish = {"finish": finish_runs(kernel, later)} if later else {}
    far = is_far(kernel, f, f.mul_size(runs, v.k))
    frame = Frame(**vars(v), **finish, runs=runs, others=others, piece=piece, far=far)
    frame.save(f, memory)
    count = ceil_div(f, runs, piece)
    share(f, v.call, f"{name}.share", memory, count, 1, alone=problem.over_batches)
    f.ret()
    _emit_share(kernel, name, frame, by_columns, together)


def turned_numbers(f: Function, kernel: Kernel, v: SimpleNamespace) -> Size:
    """How many numbers the columns of the right operand are as runs: whole vectors, in both
    directions."""
    lanes = kernel.tile.lanes
    return f.mul_size(round_up(f, v.n, lanes), round_up(f, v.k, lanes))


def _turn_columns(kernel: Kernel, f: Function, v: SimpleNamespace) -> None:
    """Copy the columns of the right operand into the scratch memory, and take them from there."""
    kind, lanes = kernel.element.storage, kernel.tile.lanes
    apart, last = round_up(f, v.k, lanes), f.sub_size(v.k, 1)
    with f.loop(0, v.n, lanes) as column, f.loop(0, v.k, lanes) as step:
        mask = first_lanes(f, f.sub_size(v.n, column.index), lanes)
        rows = []
        for i in range(lanes):
            row = f.min_size(f.add_size(step.index, i), last)  # what comes behind nobody reads
            at = f.offset(kind, v.b, f.add_size(f.mul_size(row, v.b_row), column.index))
            rows.append(f.masked_load(Type(kind.element, lanes), at, mask))
        for j, run in enumerate(transpose(f, rows, 16 // kernel.element.size)):
            to = f.add_size(f.mul_size(f.add_size(column.index, j), apart), step.index)
            f.store(run, f.offset(kind, v.scratch, to))
    v.b, v.b_row, v.b_column = v.scratch, 1, apart


def _emit_share(
    kernel: Kernel, name: str, frame: Frame, by_columns: bool, together: tuple[int, ...]
) -> None:
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, f"{name}.share")
    first = f.mul_size(begin, v.piece)
    last = f.min_size(f.mul_size(end, v.piece), v.runs)
    dots(kernel, f, v, first, last, by_columns=by_columns, together=together)
    if hasattr(v, "finish"):
        with f.loop(0, v.others) as other:
            _finish(kernel, f, v, other.index, first, last)
    f.ret()


def emit_dot_kernels(
    kernel: Kernel, *, by_columns: bool = True, together: tuple[int, ...] = (1,)
) -> None:
    """What `dots` calls, once a module."""
    several = together != (1,)
    if not kernel.module.defines(kernel.name(_dot(_RUNS, 1, by_columns, several))):
        for runs, others in itertools.product((_RUNS, 1), together):
            _emit_dot(kernel, runs, others, by_columns, several)


def takes_several(element: Element) -> bool:
    """Whether several others are multiplied with the same runs side by side: numbers that need no
    more than the registers they are multiplied in."""
    return element.compute.is_float and not element.converts


def _together(kernel: Kernel) -> tuple[int, ...]:
    """How many at a time, the most first: as many sums as registers hold."""
    assert takes_several(kernel.element)
    return (4, 2, 1) if kernel.target.vector_registers >= 32 else (2, 1)


def is_far(kernel: Kernel, f: Function, numbers: Size) -> Value:
    """Whether a matrix of so many numbers comes from far away each time: 0 or 1."""
    most = constant(I64, _FAR_BYTES // kernel.element.size)
    far = f.compare("sgt", f.i64(numbers), most)
    return f.select(far, constant(I64, 1), constant(I64, 0))


def dots(
    kernel: Kernel, f: Function, v: SimpleNamespace, first: Size, last: Size, *, by_columns: bool,
    together: tuple[int, ...] = (1,),
) -> None:  # fmt: skip
    """The runs of the matrix from `first` to before `last`, times all `others`, as many of these
    `together` as there are; `far` says what `is_far` does."""
    whole = f.add_size(first, f.round_down(f.sub_size(last, first), _RUNS))
    several = together != (1,)
    for begin, end, runs in ((first, whole, _RUNS), (whole, last, 1)):
        with f.loop(begin, end, runs) as run:
            done: Size = 0
            for others in together:
                behind = f.add_size(done, f.round_down(f.sub_size(v.others, done), others))
                with f.loop(done, behind, others) as other:
                    name = kernel.name(_dot(runs, others, by_columns, several))
                    _call_dot(kernel, f, v, name, by_columns, run.index, other.index)
                done = behind


def _finish(
    kernel: Kernel, f: Function, v: SimpleNamespace, row: Value, first: Size, last: Size
) -> None:
    """The epilogue of results that are there, side by side."""
    at = f.offset(kernel.element.storage, v.c, f.add_size(f.mul_size(row, v.c_row), first))
    count, place = f.i64(f.sub_size(last, first)), [v.call, v.batch, row, f.i64(first)]
    f.call_pointer(v.finish, [at, at, count, *place])


def _call_dot(
    kernel: Kernel, f: Function, v: SimpleNamespace, name: str, by_columns: bool, run: Value,
    other: Value,
) -> None:  # fmt: skip
    storage = kernel.element.storage
    row, column = (other, run) if by_columns else (run, other)
    left = f.offset(storage, v.a, f.mul_size(row, v.a_row))
    right = f.offset(storage, v.b, f.mul_size(column, v.b_column))
    to = f.offset(storage, v.c, f.add_size(f.mul_size(row, v.c_row), column))
    if by_columns:
        operands = [right, f.i64(v.b_column), left, f.i64(v.a_row)]
    else:
        operands = [left, f.i64(v.a_row), right, f.i64(v.b_column)]
    f.call(
        name,
        [*operands, to, f.i64(v.c_row), f.i64(v.k), v.far, v.call, v.batch]
        + [f.i64(row), f.i64(column)],
    )


def _dot(runs: int, others: int, by_columns: bool, several: bool) -> str:
    return f"dot.{runs}.{others}.{by_columns}.{several}"


def _emit_dot(kernel: Kernel, runs: int, others: int, by_columns: bool, several: bool) -> None:
    """`dot...(matrix, run, vectors, vector, c, c_row, depth, far, call, batch, row, column)`: runs
    of the matrix, `run` apart, times others, `vector` apart. Where `several` are taken at a time,
    all functions add up in one order, so that equal rows have equal results."""
    f = kernel.function(
        _dot(runs, others, by_columns, several),
        [("matrix", PTR), ("run", I64), ("vectors", PTR), ("vector", I64), ("c", PTR)]
        + [("c_row", I64), ("depth", I64), ("far", I64), *PLACE],
    )
    matrix, run, vectors, vector, c, c_row, depth, far, call, batch, row, column = f.parameters
    element, lanes = kernel.element, kernel.tile.lanes
    left = [f.offset(element.storage, matrix, f.mul_size(i, run)) for i in range(runs)]
    right = [f.offset(element.storage, vectors, f.mul_size(i, vector)) for i in range(others)]
    # Sums whose results are neighbours stand next to each other.
    pairs = [(i, j) for j in range(others) for i in range(runs)]
    pairs = pairs if by_columns else sorted(pairs)
    unroll = 1 if frugal(kernel.target, element) or several else _UNROLL if runs == _RUNS else 4
    wide = constant(Type(element.compute.element, lanes), 0)
    whole, last = f.round_down(depth, lanes * unroll), f.round_down(depth, lanes)

    def step(load: Callable[[Value], Value], sums: list[Value]) -> list[Value]:
        b = [load(pointer) for pointer in right]
        a = [load(pointer) for pointer in left]
        return [
            multiply_add(f, element, a[i], b[j], total)
            for (i, j), total in zip(pairs, sums, strict=True)
        ]

    def loading(at: Value, width: int) -> Callable[[Value], Value]:
        return lambda pointer: element.load(f, f.offset(element.storage, pointer, at), width)

    fetching = None
    if runs == _RUNS:
        onward, turn = f.mul_size(run, runs), lanes * unroll * element.size
        fetching = _Fetching(f, element, left, onward, turn, depth, far)
    count = len(pairs)
    with f.loop(0, whole, lanes * unroll, [wide] * (count * unroll)) as loop:
        if fetching:
            fetching.fetch(loop.index)
        for u in range(unroll):
            part = slice(u * count, (u + 1) * count)
            at = f.i64(f.add_size(loop.index, u * lanes))
            loop.next[part] = step(loading(at, lanes), loop.carried[part])
    sums = [_tree(f, loop.results[i::count]) for i in range(count)]
    if unroll > 1:
        with f.loop(whole, last, lanes, sums) as loop:
            loop.next = step(loading(loop.index, lanes), loop.carried)
        sums = loop.results
    totals = horizontal(f, sums)
    with f.loop(last, depth, 1, totals) as loop:
        loop.next = step(loading(loop.index, 0), loop.carried)
    for (i, j), total in zip(pairs, loop.results, strict=True):
        down, across = (j, i) if by_columns else (i, j)
        if kernel.epilogue:
            here = Position(call, batch, f.add_size(row, down), f.add_size(column, across))
            total = kernel.epilogue(f, total, here)
        place = f.add_size(f.mul_size(down, c_row), across)
        element.store(f, total, f.offset(element.storage, c, place))
    f.ret()


class _Fetching:
    """Fetches the runs that come next while some are multiplied: of a matrix that is far away all,
    else what short runs would wait for."""

    def __init__(
        self, f: Function, element: Element, rows: list[Value], onward: Size, turn: int,
        depth: Value, far: Value,
    ):  # fmt: skip
        self.f, self.element = f, element
        # Short runs end before the processor guesses that they go on: it is told what comes next.
        short = f.compare("sle", depth, constant(I64, _SHORT_BYTES // element.size))
        self.is_far = f.compare("ne", far, constant(I64, 0))
        told = f.binary("or", short, self.is_far)
        behind = f.select(told, f.i64(onward), constant(I64, 0))
        self.next = [f.offset(element.storage, row, behind) for row in rows]
        self.turn = turn

    def fetch(self, at: Value) -> None:
        """What is wanted in the turn of the next runs that begins at depth `at`."""
        self.f.if_else(self.is_far, lambda: self._all(at), lambda: self._first(at))

    def _all(self, at: Value) -> None:
        for row in self.next:
            here = self.f.offset(self.element.storage, row, at)
            self.f.prefetch(here, self.turn, locality=SECOND_LEVEL)

    def _first(self, at: Value) -> None:
        for row in self.next:
            self.f.prefetch(self.f.offset(self.element.storage, row, at))


def _tree(f: Function, values: list[Value]) -> Value:
    while len(values) > 1:
        half = len(values) // 2
        values = [f.add(a, b) for a, b in zip(values[:half], values[half:], strict=True)]
    return values[0]


def horizontal(f: Function, vectors: list[Value]) -> list[Value]:
    """The sum of all lanes of each vector: halves of two vectors at a time stand side by side, then
    halves of these; the last one may come twice."""
    count, block = len(vectors), vectors[0].type.lanes
    while block > 1:
        lanes, half = vectors[0].type.lanes, block // 2
        first = [i for i in range(lanes) if i % block < half]
        if len(vectors) > 1:
            vectors = vectors + vectors[-1:] * (len(vectors) % 2)
            first += [lanes + i for i in first]
        behind = [i + half for i in first]
        vectors = [
            f.add(f.shuffle(a, b, first), f.shuffle(a, b, behind))
            for a, b in zip(vectors[::2], vectors[1::2] or vectors, strict=True)
        ]
        block = half
    return [f.extract(v, i) for v in vectors for i in range(v.type.lanes)][:count]
