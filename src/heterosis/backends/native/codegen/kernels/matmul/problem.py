"""What is to be multiplied: element type, sizes, strides and batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from heterosis.backends.native.codegen.emit.builder import I64, Type, known

SIZES = ("m", "n", "k", "a_row", "a_column", "b_row", "b_column", "c_row")


@dataclass(frozen=True)
class Batch:
    """One batch axis; a stride of 0 repeats the operand."""

    count: int | None = None
    a: int | None = None
    b: int | None = None
    c: int | None = None


@dataclass(frozen=True)
class Problem:
    """C (m, n) = A (m, k) @ B (k, n); every number is a known size, or None: given at run time.

    Strides count elements and C's columns are neighbours. `batch` lists the batch axes, outermost
    first. With `b_packed` the right operand lies as `pack_right` wrote it and its strides are
    unused; with `one_block` its whole depth is one block there, and `narrow` says how many
    columns its last panel has, if the kernel for these alone is used. `over_batches` shares the
    batches between the threads instead of one product at a time.
    """

    dtype: str
    variant: str = "blocked"
    m: int | None = None
    n: int | None = None
    k: int | None = None
    a_row: int | None = None
    a_column: int | None = None
    b_row: int | None = None
    b_column: int | None = None
    c_row: int | None = None
    batch: tuple[Batch, ...] = ()
    b_packed: bool = False
    one_block: bool = False
    narrow: int = 0
    over_batches: bool = False

    def sizes(self) -> dict[str, int | None]:
        """The sizes and strides of one product."""
        return {name: getattr(self, name) for name in SIZES}

    def parameters(self) -> list[tuple[str, Type]]:
        """What the emitted function takes behind `call, a, b, c`: the unknown numbers, in order."""
        names = [name for name, size in self.sizes().items() if size is None]
        for axis, batch in enumerate(self.batch):
            fields = ("count", "a", "b", "c")
            names += [f"batch{axis}_{x}" for x in fields if getattr(batch, x) is None]
        return [(name, I64) for name in names]

    def arguments(self, actual: Problem) -> list[int]:
        """The numbers to pass for `actual`, in the order of `parameters`."""
        sizes = zip(self.sizes().values(), actual.sizes().values(), strict=True)
        numbers = [known(number) for slot, number in sizes if slot is None]
        for slots, batch in zip(self.batch, actual.batch, strict=True):
            numbers += [
                getattr(batch, x) for x in ("count", "a", "b", "c") if getattr(slots, x) is None
            ]
        return numbers

    @property
    def extents(self) -> tuple[int, int, int]:
        """`m`, `n` and `k`, all of them known."""
        return known(self.m), known(self.n), known(self.k)

    def transposed(self) -> Problem:
        """C' = B' A': the same result with rows for columns, where it is one column, or turned."""
        return replace(
            self, m=self.n, n=self.m,
            a_row=self.b_column, a_column=self.b_row, b_row=self.a_column, b_column=self.a_row,
        )  # fmt: skip

    def generic(self) -> Problem:
        """The same problem for any size: only what the variant relies on stays known."""
        kept = {name: getattr(self, name) for name in _RELIES_ON.get(self.variant, ())}
        sizes: dict[str, Any] = dict.fromkeys(SIZES) | kept
        return replace(self, **sizes, batch=tuple(Batch() for _ in self.batch))

    @property
    def batches(self) -> int:
        """How many products there are, all counts being known."""
        total = 1
        for axis in self.batch:
            total *= known(axis.count)
        return total


# The strides or sizes that a variant's code takes for granted: all of them 1, but for the last two.
_RELIES_ON = {
    "copied": ("a_column",),
    "direct": ("b_column",),
    "direct_row": ("m", "b_column"),
    "direct_transposed": ("n", "a_row", "c_row"),
    "direct_turned": ("a_row",),
    "dots_of_columns": ("a_column", "b_row"),
    "dots_of_few": ("a_column", "b_column"),
    "dots_of_rows": ("a_column", "b_row"),
    "dots_of_several": ("a_column", "b_row"),
    "panels": ("a_column",),
    "rows": ("a_column",),
    "strips": ("a_column",),
    "turned": ("a_column", "b_row"),
    "deep": ("m", "n", "a_column", "b_row"),
    "tall": ("n", "k"),
}
