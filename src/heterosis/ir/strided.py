"""Arrays as offset and strides: what a view primitive does to them, and when it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Move = tuple[str, tuple[Any, ...]]  # a method of `Strided` and its arguments


@dataclass(frozen=True, slots=True)
class Strided:
    """Where the elements of a value stand in a buffer, counted in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @staticmethod
    def contiguous(shape: tuple[int, ...]) -> Strided:
        return Strided(shape, row_major(shape))

    @property
    def is_contiguous(self) -> bool:
        wanted = row_major(self.shape)
        return 0 in self.shape or all(
            n == 1 or a == b for n, a, b in zip(self.shape, self.strides, wanted, strict=True)
        )

    @property
    def settled(self) -> Strided:
        """The same places, said in the one way that stands still along axes of one element."""
        if 1 not in self.shape:
            return self
        strides = (0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        return Strided(self.shape, tuple(strides), self.offset)

    def transpose(self, axes: tuple[int, ...]) -> Strided:
        return Strided(
            tuple(self.shape[a] for a in axes), tuple(self.strides[a] for a in axes), self.offset
        )

    def broadcast(self, shape: tuple[int, ...]) -> Strided:
        """Stretch extents of 1, and add dimensions in front, by standing still along them."""
        added = len(shape) - len(self.shape)
        strides = [0] * added
        for have, want, stride in zip(self.shape, shape[added:], self.strides, strict=True):
            strides.append(stride if have == want else 0)
        return Strided(shape, tuple(strides), self.offset)

    def slice(
        self, starts: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...]
    ) -> Strided:
        moved = zip(starts, self.strides, strict=True)
        offset = self.offset + sum(start * stride for start, stride in moved)
        strides = tuple(step * stride for step, stride in zip(steps, self.strides, strict=True))
        return Strided(shape, strides, offset)

    def diagonal(self, first: int, second: int, length: int, start: tuple[int, int]) -> Strided:
        """Step along two axes at once; the diagonal becomes the last dimension."""
        kept = [a for a in range(len(self.shape)) if a not in (first, second)]
        offset = start[0] * self.strides[first] + start[1] * self.strides[second]
        return Strided(
            (*(self.shape[a] for a in kept), length),
            (*(self.strides[a] for a in kept), self.strides[first] + self.strides[second]),
            self.offset + offset,
        )

    def windows(self, kernel: tuple[int, ...], steps: tuple[int, ...]) -> Strided:
        """Every window of `kernel` elements over the last axes, `steps` apart: the windows'
        own dimensions come last."""
        lead = len(self.shape) - len(kernel)
        spans = zip(self.shape[lead:], kernel, steps, strict=True)
        counts = tuple((n - k) // step + 1 for n, k, step in spans)
        apart = zip(self.strides[lead:], steps, strict=True)
        moved = tuple(stride * step for stride, step in apart)
        return Strided(
            (*self.shape[:lead], *counts, *kernel),
            (*self.strides[:lead], *moved, *self.strides[lead:]),
            self.offset,
        )

    def reshape(self, shape: tuple[int, ...]) -> Strided | None:
        """The same elements in the same order under another shape; None where that is a copy."""
        if 0 in shape:
            return Strided(shape, row_major(shape), self.offset)
        old = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        strides: list[int] = []
        at = 0
        for group in _groups([n for n, _ in old], shape):
            count, members = group
            dims = old[at : at + count]
            at += count
            # Dimensions merge only where the outer one steps over exactly the inner ones.
            for (_, outer), (n, inner) in pairwise(dims):
                if outer != n * inner:
                    return None
            stride = dims[-1][1] if dims else 0
            inner_strides = []
            for extent in reversed(members):
                inner_strides.append(stride)
                stride *= extent
            strides.extend(reversed(inner_strides))
        return Strided(shape, tuple(strides), self.offset)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of an array without gaps whose last index runs fastest."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _groups(old: list[int], new: tuple[int, ...]) -> list[tuple[int, list[int]]]:
    """Split both shapes into runs of equal products: (how many of `old`, members of `new`)."""
    groups: list[tuple[int, list[int]]] = []
    at = i = 0
    while i < len(new):
        members, product, count, target = [new[i]], new[i], 0, 1
        i += 1
        if product == 1:
            groups.append((0, members))
            continue
        while product != target:
            if target < product:
                target *= old[at]
                at, count = at + 1, count + 1
            else:
                product *= new[i]
                members.append(new[i])
                i += 1
        groups.append((count, members))
    return groups


def moved(strided: Strided | None, moves: Sequence[Move]) -> Strided | None:
    """Where elements stand after all `moves`; None where strides cannot say it."""
    for name, arguments in moves:
        strided = getattr(strided, name)(*arguments) if strided else None
    return strided
