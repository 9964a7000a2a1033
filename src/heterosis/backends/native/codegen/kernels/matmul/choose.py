"""Which way to multiply: decided from the actual numbers, by rules that were measured."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from heterosis.backends.native.codegen.kernels.matmul.dots import takes_several
from heterosis.backends.native.codegen.kernels.matmul.element import Element, element
from heterosis.backends.native.codegen.kernels.matmul.panels import SHARED_ROWS
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem
from heterosis.backends.native.codegen.kernels.matmul.tile import direct_tiles, tile
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.traced_sizes import is_traced

# A right operand of no more numbers is read as it lies: the second-level cache has all of it near.
_SMALL_RIGHT = 1 << 15
# Of rows that are a multiple of so many bytes apart, only so many stay in the first-level cache: a
# tile that reads more of them as they lie waits for the second level at every step.
_SAME_LINES = 4096
_WAYS = 8
# Rows that meet no more columns are read as they lie: to pack them takes 4 to 14% of a product with
# 128 columns, the more the farther they come from, and next to nothing of one with more than these.
_FEW_COLUMNS = 512
# Rows of so many numbers pass by for every strip of columns without delay, from the second-level
# cache or the last: packing the columns where they are multiplied gains 3 to 25% with two threads,
# the more the smaller the product, and with more numbers it loses up to 8%.
_SMALL_LEFT = 1 << 18
# Up to so many rows, turning a product gains 1 to 25% with one thread. With more threads it loses
# as much where it is small: they have to meet when the rows are packed.
_FEW_TURNED = 1024
# With so few runs on one side, dot products beat tiles; with so few columns where sums are at least
# so deep, by which several of each side are multiplied at a time.
_FEW_DOTS = 4
_SEVERAL_DOTS, _DEEP = 14, 64
# Dot products of fewer steps than a vector has lanes are for so few multiplications, and vectors.
_TINY = 1 << 8
# Up to a strip of rows, packing the right operand takes longer than reading it as it lies, a strip
# being what a tile holds. So it does for two where it has no more numbers; of any number, where
# products are as fast as with AVX-512.
_NEAR, _TWICE = 1 << 18, ("avx512",)
# So few columns leave most of a vector of them unused, or of two.
_FEW_COLUMNS_TURNED = 24
# So many rows of fewer numbers than a vector has lanes are worth code for that number alone; of a
# right operand with more numbers, registers would be spilled.
_TALL = 256
_TALL_NUMBERS = {"avx512": 64, "avx2": 16}
# As many sums over such rows stand in registers, beside so many columns and what they are taken
# apart by.
_DEEP_SUMS = {"avx512": (16, 10), "avx2": (6, 4)}
# Picoseconds: of a multiplication by dot products, of one of them besides, of copying a row of the
# few columns; and of what reads rows as they lie, for each power of two that columns are cut into.
_MULTIPLICATION, _DOT, _COPY = 19, 1500, 2000
_PIECE = {"avx512": 170, "avx2": 250}
_WITH_PANELS = ("copied", "panels", "rows", "strips", "turned")  # the last of which may be narrow
# Products of fewer multiplications are shared out whole.
_WHOLE_PRODUCT = 1 << 21


def _variant(problem: Problem, target: Target, workers: int, *, epilogue: bool) -> str:
    """The variant for a problem whose numbers are all known."""
    m, n, k = problem.extents
    kind = element(problem.dtype, target)
    if problem.b_packed:
        if _as_they_lie(problem, kind):
            return "panels"
        way = _packing(m, n)
        return "copied" if way == "columns" and _has_rows(problem, kind) else way
    if kind.software_half:
        return _packing(m, n)
    if not epilogue and _is_tall(problem, target, kind):
        return "tall"
    if _is_deep(problem, target, kind):
        return "deep"
    several = takes_several(kind) and not is_traced(n) and 1 < n <= _SEVERAL_DOTS and k >= _DEEP
    along, lanes = problem.a_column == problem.b_row == 1, target.lanes(kind.size)
    if along and (k >= lanes or m == 1 or n == 1 or m * n * k <= _TINY):
        if n <= _FEW_DOTS and n <= m:
            return "dots_of_several" if several else "dots_of_rows"
        if m <= _FEW_DOTS and problem.b_column != 1:
            return "dots_of_columns"
        if several:
            return "dots_of_several"
    if n == 1 < m and problem.a_row == 1 and problem.c_row == 1 and not epilogue:
        return "direct_transposed"
    if several and _copies_few(problem, target):
        return "dots_of_few"
    if _is_by_columns(problem, target, kind):
        return "direct_turned"
    if problem.b_column == 1 and (n * k <= _SMALL_RIGHT or m <= _few_rows(problem, target, kind)):
        return "direct_row" if m == 1 else "direct"
    way, shape = _packing(m, n), tile(target, kind)
    if workers == 1 and _turns(problem, target, kind):
        return "turned"
    if not _as_they_lie(problem, kind):
        return way
    if m <= n and m * k <= _SMALL_LEFT and n >= workers * shape.columns:
        return "strips"
    few = n <= _FEW_COLUMNS and n * k <= shape.shared
    return "rows" if few and way == "blocked" else way


def _few_rows(problem: Problem, target: Target, kind: Element) -> int:
    """Up to how many rows the right operand is read as it lies, for each strip of them."""
    _, n, k = problem.extents
    strip = max(direct_tiles(target, kind))
    return 2 * strip if target.name in _TWICE or n * k <= _NEAR else strip


def _is_by_columns(problem: Problem, target: Target, kind: Element) -> bool:
    """Whether vectors are of rows, which are neighbours, as columns are too few."""
    m, n, _ = problem.extents
    turns = kind.compute.is_float and not kind.converts and target.stores_parts
    return turns and problem.a_row == 1 < n <= _FEW_COLUMNS_TURNED and m >= target.lanes(kind.size)


def _is_tall(problem: Problem, target: Target, kind: Element) -> bool:
    """Whether the left operand lies in one piece whose rows are shorter than a vector, and there
    are enough of them for code of its own."""
    m, n, k = problem.extents
    if is_traced(k) or is_traced(n) or not 1 < k < target.lanes(kind.size) or n > _FEW_DOTS:
        return False
    if k * n > _TALL_NUMBERS.get(target.name, 0):
        return False
    lies = problem.a_column == 1 and problem.a_row == k and problem.c_row == n
    floats = kind.compute.is_float and not kind.converts
    return floats and lies and m >= _TALL


def _is_deep(problem: Problem, target: Target, kind: Element) -> bool:
    """Whether few sums are made over the rows of a matrix that lies in one piece."""
    m, n, k = problem.extents
    if is_traced(m) or is_traced(n) or target.name not in _DEEP_SUMS:
        return False
    sums, most = _DEEP_SUMS[target.name]
    if m * n > sums:
        return False
    most = min(most, target.lanes(kind.size) - 1)
    left = m > 1 and problem.a_row == 1 and problem.a_column == m <= most
    right = n > 1 and problem.b_column == 1 and problem.b_row == n <= most
    lies = (left or problem.a_column == 1) and (right or problem.b_row == 1)
    floats = kind.compute.is_float and not kind.converts
    return floats and lies and (left or right) and k >= _TALL


def _copies_few(problem: Problem, target: Target) -> bool:
    """Whether dot products with copies of the columns take less time than the columns as they lie,
    a piece of each row after the other."""
    if not problem.a_column == problem.b_column == 1 or target.name not in _PIECE:
        return False
    m, n, k = problem.extents
    dots = m * n * (_MULTIPLICATION * k + _DOT) + _COPY * k
    return dots < m * k * _PIECE[target.name] * n.bit_count()


def panelled(problem: Problem, variant: str) -> int:
    """How many rows or columns of the result are panels."""
    m, n, _ = problem.extents
    return m if variant == "turned" else n


def _turns(problem: Problem, target: Target, kind: Element) -> bool:
    """Whether to read columns of the right operand as rows as they lie, and to pack few rows."""
    m, n, k = problem.extents
    turned = problem.transposed()
    return (
        kind.compute.is_float
        and target.stores_parts
        and problem.a_column == problem.b_row == 1
        and not is_traced(m)
        and m % target.lanes(kind.size) == 0
        and m <= _FEW_TURNED
        and n >= 2 * m
        and k <= tile(target, kind).depth
        and _as_they_lie(turned, kind)
    )


def _has_rows(problem: Problem, kind: Element) -> bool:
    """Whether tiles can read rows of the left operand: neighbours that nothing has to convert."""
    return problem.a_column == 1 and not kind.converts


def _as_they_lie(problem: Problem, kind: Element) -> bool:
    """Whether they can read them where they are."""
    m, *_ = problem.extents
    if not _has_rows(problem, kind):
        return False
    assert problem.a_row is not None
    return problem.a_row * kind.size % _SAME_LINES != 0 or m <= _WAYS


def _packing(m: int, n: int) -> str:
    return "columns" if m <= SHARED_ROWS and n >= 2 * m else "blocked"


def choose(problem: Problem, target: Target, workers: int, *, epilogue: bool = False) -> Problem:
    """`problem` with its variant and its way of sharing filled in; `generic()` of it is the key
    under which the compiled code serves every problem of the kind."""
    variant = _variant(problem, target, workers, epilogue=epilogue)
    one = prod(problem.extents)
    whole = problem.batches > 1 and (one <= _WHOLE_PRODUCT or problem.batches >= 4 * workers)
    shape = tile(target, element(problem.dtype, target))
    narrow = shape.ends_narrow(panelled(problem, variant)) if variant in _WITH_PANELS else 0
    return replace(problem, variant=variant, narrow=narrow, over_batches=whole)
