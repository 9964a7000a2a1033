"""Choices of what is there in any case become selections of elements, and others stay."""

import numpy
import pytest

from heterosis.ir import check, evaluate, parse
from heterosis.passes.choices import selected

COND = """\
f(%0: bool[], %1: float32[2], %2: float32[2]):
  %3: float32[2], %4: float32[2], %5: float32[2] = cond(%0, %1, %2)
    then = yes(%0: float32[2], %1: float32[2]):
      %2: float32[2] = broadcast(1.5)
      return %0, %2, %1
    otherwise = no(%0: float32[2], %1: float32[2]):
      %2: float32[2] = broadcast(nan)
      %3: float32[2] = exp(%0)
      return %1, %2, %3
  return RESULTS"""


@pytest.mark.parametrize(
    "results, kinds",
    [
        ("%3", {"select", "broadcast"}),  # of two operands
        ("%4", {"select", "broadcast"}),  # of two numbers
        ("%5", {"cond"}),  # of which one is computed in its branch
        ("%3, %4", {"select", "broadcast"}),
        ("%5, %3", {"cond", "select", "broadcast"}),
        ("%1", set()),
    ],
)
def test_what_is_left(results, kinds):
    program = parse(COND.replace("RESULTS", results))
    check(program)
    found = selected(program)
    check(found)
    names = {node.primitive.name for node in found.nodes()}
    assert names - {"input", "constant"} == kinds
    numbers = [numpy.float32([1, numpy.inf]), numpy.float32([numpy.nan, -0.0])]
    for truth in (True, False):
        given = [numpy.bool_(truth), *numbers]
        for before, after in zip(evaluate(program, given), evaluate(found, given), strict=True):
            numpy.testing.assert_array_equal(before, after)
            numpy.testing.assert_array_equal(numpy.signbit(before), numpy.signbit(after))
    assert selected(found) is found
