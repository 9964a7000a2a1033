"""Register tiles and cache blocks: the table that was measured, one row a processor family."""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.builder import I32, I64
from heterosis.backends.native.codegen.kernels.matmul.element import Element
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.traced_sizes import is_traced


@dataclass(frozen=True)
class Tile:
    """A micro-kernel keeps `rows` x `vectors` accumulators in registers.

    `tails` are the row counts of the smaller kernels that finish a matrix, `unroll` the steps
    of depth written out in one turn, `depth` and `block_rows` the part of the left operand
    that stays in the second-level cache, `shared` the packed right operand's share of the last.
    With `halves`, half a vector takes half as long as a whole one.
    """

    rows: int
    vectors: int
    lanes: int
    tails: tuple[int, ...]
    unroll: int
    depth: int
    block_rows: int
    block_columns: int
    shared: int
    halves: bool = False

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    def ends_narrow(self, columns: int) -> int:
        """How many columns a kernel computes of the last of the panels that hold so many: 0 if one
        for fewer would gain nothing, or if there may be more, since its code would be for these
        alone."""
        if is_traced(columns):
            return 0
        unit = self.lanes // 2 if self.halves else self.lanes
        last = -(-(columns % self.columns) // unit) * unit
        return 0 if last == self.columns else last


# (target, computed in) -> rows, vectors, tails, unroll
_REGISTERS = {
    ("avx512", "float"): (14, 2, (8, 4, 2), 4),
    ("avx512", "double"): (14, 2, (8, 4, 2), 4),
    ("avx512", "i32"): (14, 2, (8, 4, 2), 1),
    ("avx512", "i64"): (12, 2, (8, 4, 2), 2),
    ("avx2", "float"): (6, 2, (4, 2), 8),
    ("avx2", "double"): (6, 2, (4, 2), 4),
    ("avx2", "i32"): (4, 2, (2,), 2),
    ("avx2", "i64"): (2, 2, (), 1),
    ("fallback", "float"): (4, 2, (2,), 2),
    ("fallback", "double"): (4, 2, (2,), 2),
    ("fallback", "i32"): (2, 2, (), 1),
    ("fallback", "i64"): (2, 1, (), 1),
    ("neon", "float"): (8, 3, (4, 2), 2),
    ("neon", "double"): (6, 3, (4, 2), 2),
    ("neon", "i32"): (8, 2, (4, 2), 2),
    ("neon", "i64"): (4, 2, (2,), 1),
}

# Tiles that read the operands as they lie: rows -> vectors, the tallest first, of which those are
# left out that are taller than the others. Few rows leave registers for wide tiles, which read
# longer runs.
_DIRECT = {
    "avx512": {8: (2, 1), 4: (2, 1), 2: (4, 2, 1), 1: (8, 4, 2, 1)},
    "avx2": {6: (2, 1), 4: (2, 1), 2: (4, 2, 1), 1: (8, 4, 2, 1)},
    "fallback": {4: (2, 1), 2: (2, 1), 1: (4, 2, 1)},
    "neon": {6: (2, 1), 4: (2, 1), 2: (4, 2, 1), 1: (8, 4, 2, 1)},
}
_FRUGAL = {4: (1,), 2: (1,), 1: (2, 1)}


def frugal(target: Target, element: Element) -> bool:
    """Whether widening or multiplying a number takes several instructions and registers."""
    emulated = element.compute in (I32, I64) and not target.multiplies(element.compute.bits)
    return emulated or element.dtype == "bfloat16" or element.software_half


def direct_tiles(target: Target, element: Element) -> dict[int, tuple[int, ...]]:
    if frugal(target, element):
        return _FRUGAL
    tallest = min(max(_DIRECT[target.name]), tile(target, element).rows)
    return {rows: wide for rows, wide in _DIRECT[target.name].items() if rows <= tallest}


# target -> depth in bytes of one row, rows of a block, bytes of the shared operand
_CACHES = {
    "avx512": (4096, 168, 8 << 20),
    "avx2": (1536, 120, 8 << 20),
    "fallback": (1024, 96, 4 << 20),
    "neon": (1024, 96, 4 << 20),
}


def tile(target: Target, element: Element) -> Tile:
    rows, vectors, tails, unroll = _REGISTERS[target.name, element.compute.element]
    depth_bytes, block_rows, shared_bytes = _CACHES[target.name]
    lanes = target.lanes(element.size)
    columns = vectors * lanes
    return Tile(
        rows,
        vectors,
        lanes,
        tails,
        unroll,
        depth=depth_bytes // element.size,
        block_rows=max(rows, block_rows // rows * rows),
        block_columns=max(columns, 512 // element.size // columns * columns),
        shared=shared_bytes // element.size,
        halves=target.name == "avx512" and element.compute.is_float and not element.converts,
    )
