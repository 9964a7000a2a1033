"""A recurrent layer's loop as data: how its steps are computed, and how threads share them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.kernels import matmul
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.kernels.recurrent.cells import CELLS, Cell, Pass, Stream
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.types import ITEMSIZE

# Up to so many rows, a product reads the weights as they lie.
FEW_ROWS = 4
_ALIGNMENT = 64
_SHARE_ELEMENTS = 2000  # of one pass, that are worth a thread
# Products that can be computed for some units at a time, for all their gates.
_BY_UNITS = ("panels", "dots_of_columns")
# Up to so many bytes of both operands side by side, their products are one: a block of depth.
_JOINED_BYTES = 1 << 11
_JOINED_ROWS = 16  # fewer fill tiles better in the product for all steps
# Rows enough for a share of their own, if the weights, which pass by once a step, fill no more than
# half of the second-level cache. What fills all of it takes a quarter longer so (Zen 4).
OWN_ROWS = 8


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
    cell: Cell, dtype: str, back: bool, keep: bool, rows: int, units: int, machine: Machine, *,
    packed: bool = False, joined: bool = False,
) -> tuple[Recurrence, matmul.Problem, Layout]:  # fmt: skip
    """The loop for a batch of `rows`, its product with all numbers known, and its memory. The
    weights may have come `packed`, as they do if it is `joined`; else they are packed here for more
    than a few rows."""
    target, workers = machine.target, machine.workers
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
    parts = actual.variant in _BY_UNITS and units % block_of(dtype, target) == 0
    together = parts and not back
    alone = together and actual.variant == "panels" and workers > 1
    near = alone and 2 * n * k * ITEMSIZE[dtype] <= machine.near
    by_rows = near and target.name == "avx512" and rows >= workers * OWN_ROWS
    loop = Recurrence(cell, dtype, back, keep, actual.generic(), packs, together, joined, by_rows)
    at_packed = 0 if back else _aligned(rows * wide * ITEMSIZE[dtype])
    size = matmul.packed_b_layout(actual, target).size if packs else 0
    work = _aligned(at_packed + size)
    total = work + matmul.workspace_bytes(actual, target, workers)
    return loop, actual, Layout(at_packed, work, total)


def joins(mode: str, dtype: str, rows: int, units: int, machine: Machine) -> bool:
    """Whether the products of inputs as wide as the outputs are worth being one with those of the
    outputs: where one block of depth has both, and each thread all gates of some units; threads
    that have rows of their own instead need not meet."""
    if 2 * units * ITEMSIZE[dtype] > _JOINED_BYTES or rows < _JOINED_ROWS:
        return False
    facts = (CELLS[mode], dtype, False, False, rows, units, machine)
    joined, *_ = plan(*facts, packed=True, joined=True)
    apart, *_ = plan(*facts, packed=True)
    return joined.together and joined.problem.variant == "panels" and not apart.by_rows


def block_of(dtype: str, target: Target) -> int:
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


NUMBERS = ("steps", "rows", "units", "first", "onward", "grain", "packed_at", "work_at")
