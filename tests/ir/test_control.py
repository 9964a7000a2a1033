"""Choices and loops: their types, and what they compute: evaluated, and as machine code."""

import numpy
import pytest

from heterosis import _core, np
from heterosis.backends.native.compile.whole import compile_program
from heterosis.ir import check, evaluate, parse
from heterosis.ir.strided import Strided
from heterosis.runtime.errors import LinearAlgebraError, ProgramError

COND = """\
choose(%0: bool[], %1: float32[2, 3], %2: int64[]):
  %3: float32[3], %4: float32[2, 3] = cond(%0, %1, %2)
    then = row(%0: float32[2, 3], %1: int64[]):
      %2: float32[3] = gather(%0, %1)
      return %2, %0
    otherwise = nothing(%0: float32[2, 3], %1: int64[]):
      %2: float32[3] = broadcast(-1.0)
      %3: float32[2, 3] = slice(%0, starts=(1, 0), steps=(-1, 1))
      return %2, %3
  return %3, %4"""
# The walk follows a table of successors until it meets a place that the second table marks.
WHILE = """\
walk(%0: int64[6], %1: bool[6], %2: int64[]):
  %3: int64[] = while_loop(%2, %0, %1, carried=1)
    condition = unmarked(%0: int64[], %1: int64[6], %2: bool[6]):
      %3: bool[] = gather(%2, %0)
      return %3
    body = step(%0: int64[], %1: int64[6], %2: bool[6]):
      %3: int64[] = gather(%1, %0)
      return %3
  return %3"""
# Carried: the last place. Shared: an order. Rows: the next table. Made: every place on the way.
SCAN = """\
follow(%0: int64[], %1: int64[3], %2: int64[4, 3], %3: float32[4, 2]):
  %4: int64[], %5: int64[4], %6: float32[4, 2] = scan(%0, %1, %2, %3, carried=1, shared=1, length=4, reverse=False)
    body = step(%0: int64[], %1: int64[3], %2: int64[3], %3: float32[2]):
      %4: int64[] = gather(%1, %0)
      %5: int64[] = gather(%2, %4)
      %6: float32[2] = slice(%3, starts=(1,), steps=(-1,))
      return %5, %5, %6
  return %4, %5, %6"""

# Back through `x = x * w` while a count is not 0: what x and w receive.
WHILE_BACK = """\
back(%0: int64[], %1: float64[3], %2: float64[3], %3: float64[3], %4: float64[3]):
  %5: float64[3], %6: float64[3] = while_loop_back(%0, %1, %2, %3, %4, carried=2, received=2)
    condition = counts(%0: int64[], %1: float64[3], %2: float64[3]):
      %3: bool[] = not_equal(%0, int64(0))
      return %3
    body = step(%0: int64[], %1: float64[3], %2: float64[3]):
      %3: int64[] = subtract(%0, int64(1))
      %4: float64[3] = multiply(%1, %2)
      return %3, %4
    back = pulled(%0: int64[], %1: float64[3], %2: float64[3], %3: float64[3], %4: float64[3]):
      %5: float64[3] = multiply(%2, %3)
      %6: float64[3] = multiply(%1, %3)
      %7: float64[3] = add(%4, %6)
      return %5, %7
  return %5, %6"""

ROWS = numpy.arange(6, dtype="float32").reshape(2, 3)
TABLES = numpy.array([[1, 2, 0], [2, 2, 1], [0, 1, 0], [2, 0, 1]])
ORDER = numpy.array([2, 0, 1])


def run(program, arrays):
    """What the reference evaluator and the machine code give, which is the same."""
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    made = _core.run_plan(
        compile_program(program, layouts), [np.array(a, dtype=a.dtype) for a in arrays]
    )
    expected = evaluate(program, arrays)
    for ours, theirs in zip(made, expected, strict=True):
        assert ours.dtype == theirs.dtype
        numpy.testing.assert_array_equal(ours.asnumpy(), theirs)
    return expected


@pytest.mark.parametrize("text", [COND, WHILE, WHILE_BACK, SCAN])
def test_texts_are_read_and_checked(text):
    program = parse(text)
    check(program)
    assert str(program) == text


@pytest.mark.parametrize("holds", [True, False])
def test_one_branch_is_computed(holds):
    row, rows = run(parse(COND), [numpy.array(holds), ROWS, numpy.array(1)])
    numpy.testing.assert_array_equal(row, ROWS[1] if holds else [-1] * 3)
    numpy.testing.assert_array_equal(rows, ROWS if holds else ROWS[::-1])
    assert (row.dtype, rows.dtype) == ("float32", "float32")


def test_the_other_branch_is_not_computed():
    evaluate(parse(COND), [numpy.array(False), ROWS, numpy.array(7)])  # there is no row 7


def test_a_loop_ends_with_its_condition():
    following, unmarked = numpy.array([3, 5, 1, 2, 0, 4]), numpy.array([1, 1, 1, 1, 1, 0], bool)
    for start, end in ((0, 5), (1, 5), (4, 5), (5, 5)):
        (found,) = run(parse(WHILE), [following, unmarked, numpy.array(start)])
        assert found == end and found.dtype == "int64"


@pytest.mark.parametrize("turns", [0, 1, 2, 15, 16, 17, 33, 1000])
def test_what_turns_carry_is_kept_for_the_way_back(turns):
    x, factors = numpy.array([1.0, -2, 0.5]), numpy.array([0.5, 1, -1])
    received = numpy.array([1.0, 2, -4])
    of_x, of_factors = run(
        parse(WHILE_BACK), [numpy.array(turns), x, factors, received, numpy.zeros(3)]
    )
    numpy.testing.assert_array_equal(of_x, received * factors**turns)
    numpy.testing.assert_array_equal(
        of_factors, turns * received * x * factors ** max(turns - 1, 0)
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_carries_and_makes_rows(reverse):
    program = parse(SCAN.replace("reverse=False", f"reverse={reverse}"))
    check(program)
    given = numpy.arange(8, dtype="float32").reshape(4, 2)
    last, places, turned = run(program, [numpy.array(1), ORDER, TABLES, given])
    place, expected = 1, {}
    for i in range(4)[::-1] if reverse else range(4):
        place = expected[i] = TABLES[i][ORDER[place]]
    assert last == place
    numpy.testing.assert_array_equal(places, [expected[i] for i in range(4)])
    numpy.testing.assert_array_equal(turned, given[:, ::-1])


def test_a_scan_of_nothing():
    text = SCAN.replace("[4, ", "[0, ").replace("[4]", "[0]").replace("length=4", "length=0")
    program = parse(text)
    check(program)
    nothing = numpy.zeros((0, 2), "float32")
    last, places, _ = run(program, [numpy.array(2), ORDER, TABLES[:0], nothing])
    assert last == 2 and places.shape == (0,) and places.dtype == "int64"


def test_sizes_reach_programs_within():
    text = COND.replace("[2, 3]", "[2, n]").replace("[3]", "[n]")
    program = parse(text)
    check(program)
    assert str(program) == text
    row, _ = evaluate(program, [numpy.array(True), ROWS, numpy.array(0)])
    numpy.testing.assert_array_equal(row, ROWS[0])


DAMAGES = [
    (COND, "choose(%0: bool[]", "choose(%0: int64[]", r"the condition is \(int64\[\]\)"),
    (COND, "cond(%0, %1, %2)", "cond(%0, %1)", "then takes"),
    (COND, "row(%0: float32[2, 3]", "row(%0: float64[2, 3]", "row, .*the types are"),
    (COND, "nothing(%0: float32[2, 3]", "nothing(%0: float32[2, 4]", "otherwise takes"),
    (COND, "return %2, %3", "return %2", "otherwise gives"),
    (COND, "return %2, %3", "return %3, %2", "otherwise gives"),
    (COND, "%3: float32[3], %4", "%3: float32[2], %4", "the types are"),
    (COND, "otherwise =", "if_not =", r"attributes \(then, if_not\)"),
    (WHILE, "return %3\n    body", "return %0\n    body", "the condition gives"),
    (WHILE, "unmarked(%0: int64[], %1: int64[6]", "unmarked(%0: int64[], %1: int64[5]", "the condition takes"),
    (WHILE, "step(%0: int64[], %1: int64[6]", "step(%0: int64[], %1: int64[5]", "the body takes"),
    (WHILE, "return %3\n  return", "return %2\n  return", "the body gives"),
    (WHILE, "carried=1", "carried=2", "the body gives"),
    (WHILE, "carried=1", "carried=4", "as many carried as there are operands"),
    (WHILE_BACK, "received=2", "received=4", "as many of both as there are operands"),
    (WHILE_BACK, "received=2", "received=1", "the condition takes"),
    (WHILE_BACK, "carried=2", "carried=3", "the body gives"),
    (WHILE_BACK, "return %3, %4", "return %0, %1, %2", "the body gives"),
    (WHILE_BACK, "return %5, %7", "return %5", "the turn back gives"),
    (SCAN, "carried=1", "carried=4", "as many carried and shared as there are operands"),
    (SCAN, "shared=1", "shared=-1", "as many carried and shared as there are operands"),
    (SCAN, "shared=1", "shared=0", r"rows of int64\[3\]; expected 4"),
    (SCAN, "carried=1", "carried=2", "the body takes"),
    (SCAN, "length=4", "length=3", r"rows of int64\[4, 3\]; expected 3"),
    (SCAN, "length=4", "length=-1", "a length from 0 on"),
    (SCAN, "reverse=False", "reverse=0", "expected bool"),
    (SCAN, "return %5, %5, %6", "return %6, %5, %6", "the body carries on"),
    (SCAN, "return %5, %5, %6", "return %5, %5", "the types are"),
]  # fmt: skip


@pytest.mark.parametrize("text, before, after, message", DAMAGES)
def test_damage_is_found(text, before, after, message):
    assert text.count(before) == 1
    with pytest.raises(ProgramError, match=f"(?s){message}"):
        check(parse(text.replace(before, after)))


# A loop in a loop in a branch, with a kernel that may fail: the numbers of a matrix, inverted.
NESTED = """\
nested(%0: bool[], %1: float32[2, 2], %2: float32[3, 2, 2]):
  %3: float32[2, 2], %4: float32[3, 2, 2] = cond(%0, %1, %2)
    then = all(%0: float32[2, 2], %1: float32[3, 2, 2]):
      %2: float32[2, 2], %3: float32[3, 2, 2] = scan(%0, %1, carried=1, shared=0, length=3, reverse=True)
        body = turn(%0: float32[2, 2], %1: float32[2, 2]):
          %2: float32[2, 2] = while_loop(%0, %1, carried=1)
            condition = small(%0: float32[2, 2], %1: float32[2, 2]):
              %2: float32[] = max(%0, axes=(0, 1))
              %3: bool[] = less(%2, 8.0)
              return %3
            body = grow(%0: float32[2, 2], %1: float32[2, 2]):
              %2: float32[2, 2] = matmul(%0, %1)
              %3: float32[2, 2] = add(%2, %1)
              return %3
          %3: float32[1, 2, 2] = reshape(%2)
          %4: float32[1, 2, 2] = inverse(%3)
          %5: float32[2, 2] = reshape(%4)
          return %5, %2
      return %2, %3
    otherwise = none(%0: float32[2, 2], %1: float32[3, 2, 2]):
      return %0, %1
  return %3, %4"""


FAILING_BACK = """\
back(%0: int64[], %1: float32[2, 2], %2: float32[2, 2]):
  %3: float32[2, 2] = while_loop_back(%0, %1, %2, carried=2, received=1)
    condition = counts(%0: int64[], %1: float32[2, 2]):
      %2: bool[] = not_equal(%0, int64(0))
      return %2
    body = step(%0: int64[], %1: float32[2, 2]):
      %2: int64[] = subtract(%0, int64(1))
      return %2, %1
    back = inverted(%0: int64[], %1: float32[2, 2], %2: float32[2, 2]):
      %3: float32[1, 2, 2] = reshape(%2)
      %4: float32[1, 2, 2] = inverse(%3)
      %5: float32[2, 2] = reshape(%4)
      return %5
  return %3"""


def test_loops_within_loops_within_branches():
    rows = numpy.array([[[2, 1], [1, 3]], [[1, 0], [2, 2]], [[3, 1], [0, 1]]], "float32")
    for holds in (True, False):
        program, given = parse(NESTED), [numpy.array(holds), rows[0], rows]
        check(program)
        layouts = [Strided.contiguous(value.shape) for value in program.inputs]
        plan = compile_program(program, layouts)
        made = _core.run_plan(plan, [np.array(a, dtype=a.dtype) for a in given])
        for ours, theirs in zip(made, evaluate(program, given), strict=True):
            numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-4, atol=1e-4)


def test_a_failure_on_the_way_back_is_told():
    program = parse(FAILING_BACK)
    check(program)
    plan = compile_program(program, [Strided.contiguous(value.shape) for value in program.inputs])
    for turns in (3, 40):
        matrix = np.array(numpy.eye(2, dtype="float32"))
        (found,) = _core.run_plan(plan, [np.array(turns, dtype="int64"), matrix, matrix])
        assert found.tolist() == [[1, 0], [0, 1]]
        (found,) = _core.run_plan(plan, [np.array(turns, dtype="int64"), matrix, matrix * 0])
        with pytest.raises(LinearAlgebraError, match="singular"):
            found.asnumpy()


def test_a_failure_within_is_told():
    program = parse(NESTED)
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    singular = np.array(numpy.full((3, 2, 2), 9, "float32"))
    found = _core.run_plan(
        compile_program(program, layouts), [np.array(True, dtype="bool"), singular[0], singular]
    )
    with pytest.raises(LinearAlgebraError, match="singular"):
        found[0].asnumpy()
