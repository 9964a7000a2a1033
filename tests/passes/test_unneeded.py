"""Choices and loops lose the operands and results that nothing needs, and nothing else."""

import numpy
import pytest

from heterosis.ir import check, evaluate, parse
from heterosis.passes.unneeded import pruned

# Of what is carried, the second is made of the third, and the fourth is needed by itself alone.
SCAN = """\
f(%0: float32[2], %1: float32[2], %2: float32[2], %3: float32[2], %4: float32[2], %5: float32[3, 2], %6: float32[3, 2]):
  %7: float32[2], %8: float32[2], %9: float32[2], %10: float32[2], %11: float32[3, 2], %12: float32[3, 2] = scan(%0, %1, %2, %3, %4, %5, %6, carried=4, shared=1, length=3, reverse=False)
    body = g(%0: float32[2], %1: float32[2], %2: float32[2], %3: float32[2], %4: float32[2], %5: float32[2], %6: float32[2]):
      %7: float32[2] = add(%0, %4)
      %8: float32[2] = multiply(%1, %2)
      %9: float32[2] = subtract(%2, %5)
      %10: float32[2] = negative(%3)
      %11: float32[2] = add(%1, %6)
      return %7, %8, %9, %10, %11, %3
  return RESULTS"""
WHILE = """\
f(%0: int64[], %1: float32[], %2: float32[], %3: float32[]):
  %4: int64[], %5: float32[], %6: float32[] = while_loop(%0, %1, %2, %3, carried=3)
    condition = small(%0: int64[], %1: float32[], %2: float32[], %3: float32[]):
      %4: bool[] = less(%0, int64(5))
      return %4
    body = turn(%0: int64[], %1: float32[], %2: float32[], %3: float32[]):
      %4: int64[] = add(%0, int64(1))
      %5: float32[] = add(%1, %3)
      %6: float32[] = multiply(%2, 2.0)
      return %4, %5, %6
  return RESULTS"""
COND = """\
f(%0: bool[], %1: float32[2], %2: float32[2], %3: float32[2]):
  %4: float32[2], %5: float32[2] = cond(%0, %1, %2, %3)
    then = yes(%0: float32[2], %1: float32[2], %2: float32[2]):
      %3: float32[2] = add(%0, %1)
      return %3, %2
    otherwise = no(%0: float32[2], %1: float32[2], %2: float32[2]):
      %3: float32[2] = negative(%2)
      return %1, %3
  return RESULTS"""


@pytest.mark.parametrize("text, results, line", [
    (SCAN, "%7", "= scan(%0, %4, carried=1, shared=1,"),
    (SCAN, "%8", "= scan(%1, %2, %5, carried=2, shared=0,"),
    (SCAN, "%9", "= scan(%2, %5, carried=1, shared=0,"),
    (SCAN, "%10", "= scan(%3, carried=1, shared=0,"),
    (SCAN, "%11", "= scan(%1, %2, %5, %6, carried=2, shared=0,"),
    (SCAN, "%12", "= scan(%3, carried=1, shared=0,"),
    (SCAN, "%7, %12", "= scan(%0, %3, %4, carried=2, shared=1,"),
    (SCAN, "%7, %8, %9, %10, %11, %12", "= scan(%0, %1, %2, %3, %4, %5, %6, carried=4, shared=1,"),
    (SCAN, "%0", None),
    (WHILE, "%4", "= while_loop(%0, carried=1)"),
    (WHILE, "%5", "= while_loop(%0, %1, %3, carried=2)"),
    (WHILE, "%6", "= while_loop(%0, %2, carried=2)"),
    (WHILE, "%4, %5, %6", "= while_loop(%0, %1, %2, %3, carried=3)"),
    (COND, "%4", "= cond(%0, %1, %2)"),
    (COND, "%5", "= cond(%0, %3)"),
    (COND, "%4, %5", "= cond(%0, %1, %2, %3)"),
])  # fmt: skip
def test_what_is_left(text, results, line):
    program = parse(text.replace("RESULTS", results))
    check(program)
    found = pruned(program)
    check(found)
    lines = [one for one in str(found).splitlines() if " = " in one and "carried=" in one]
    lines += [one for one in str(found).splitlines() if "= cond(" in one]
    assert (line in lines[0]) if line else not lines
    rng = numpy.random.default_rng(0)
    given = [_made(rng, value) for value in program.inputs]
    for before, after in zip(evaluate(program, given), evaluate(found, given), strict=True):
        numpy.testing.assert_array_equal(before, after)
    assert str(pruned(found)) == str(found)


def _made(rng, value):
    if value.dtype == "float32":
        return rng.normal(size=value.shape).astype("float32")
    return numpy.asarray(rng.integers(0, 2, value.shape)).astype(value.dtype)
