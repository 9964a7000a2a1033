"""The programs inside of a program go through the same passes."""

import numpy
import pytest

from heterosis.ir import check, evaluate, parse
from heterosis.passes.pipeline import optimized

CHOICE = """\
choose(%0: bool[], %1: DTYPE[4]):
  %2: DTYPE[4], %3: DTYPE[4] = cond(%0, %1)
    then = left(%0: DTYPE[4]):
      %1: DTYPE[4] = negative(%0)
      %2: DTYPE[4] = negative(%0)
      %3: DTYPE[2, 2] = reshape(%1)
      %4: DTYPE[4] = reshape(%3)
      %5: DTYPE[4] = multiply(%4, %2)
      return %5, %0
    otherwise = right(%0: DTYPE[4]):
      %1: DTYPE[4] = add(%0, %0)
      return %0, %1
  %4: DTYPE[4] = add(%2, %3)
  return %4"""
LOOP = """\
repeat(%0: int64[], %1: float32[3], %2: float32[5, 3]):
  %3: int64[], %4: float32[3], %5: float32[5, 3] = scan(%0, %1, %2, carried=2, length=5, reverse=True)
    body = step(%0: int64[], %1: float32[3], %2: float32[3]):
      %3: bool[] = less(%0, int64(2))
      %4: float32[3] = cond(%3, %1, %2)
        then = sum(%0: float32[3], %1: float32[3]):
          %2: float32[3] = add(%0, %1)
          %3: float32[3] = add(%0, %1)
          %4: float32[3] = multiply(%2, %3)
          return %4
        otherwise = first(%0: float32[3], %1: float32[3]):
          return %0
      %5: int64[] = add(%0, int64(1))
      return %5, %4, %4
  return %4, %5"""
X = numpy.array([1.5, -2.0, 0.25, 3.0])
ROWS = numpy.arange(15, dtype="float32").reshape(5, 3) / 8


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("holds", [True, False])
def test_branches_are_cleaned_up(dtype, holds):
    program = parse(CHOICE.replace("DTYPE", dtype))
    check(program)
    found = optimized(program)
    check(found)
    assert str(optimized(found)) == str(found)
    assert str(program).count("negative") == 2 and str(found).count("negative") == 1
    given = [numpy.array(holds), X.astype(dtype)]
    for before, after in zip(evaluate(program, given), evaluate(found, given), strict=True):
        assert before.dtype == after.dtype == dtype
        numpy.testing.assert_array_equal(before, after)


def test_bodies_within_bodies_are_cleaned_up():
    program = parse(LOOP)
    check(program)
    found = optimized(program)
    check(found)
    assert (str(program).count("= add("), str(found).count("= add(")) == (3, 2)
    given = [numpy.array(0), ROWS[0], ROWS]
    for before, after in zip(evaluate(program, given), evaluate(found, given), strict=True):
        numpy.testing.assert_array_equal(before, after)


def test_a_program_without_others_stays_as_it_is():
    clean = optimized(parse("f(%0: float32[2]):\n  %1: float32[2] = negative(%0)\n  return %1"))
    assert [id(node) for node in optimized(clean).nodes()] == [id(node) for node in clean.nodes()]
