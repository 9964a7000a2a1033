"""Choices and loops: their types, what they compute, and who refuses them."""

import numpy
import pytest

from heterosis.backends.native.compile.whole import compile_program
from heterosis.ir import check, evaluate, parse
from heterosis.ir.strided import Strided
from heterosis.runtime.errors import ProgramError, UnsupportedError

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
  %3: int64[6], %4: bool[6], %5: int64[] = while_loop(%0, %1, %2)
    condition = unmarked(%0: int64[6], %1: bool[6], %2: int64[]):
      %3: bool[] = gather(%1, %2)
      return %3
    body = step(%0: int64[6], %1: bool[6], %2: int64[]):
      %3: int64[] = gather(%0, %2)
      return %0, %1, %3
  return %5"""
# Carried: the last place. Rows: the next table. Made: every place on the way.
SCAN = """\
follow(%0: int64[], %1: int64[4, 3], %2: float32[4, 2]):
  %3: int64[], %4: int64[4], %5: float32[4, 2] = scan(%0, %1, %2, carried=1, length=4, reverse=False)
    body = step(%0: int64[], %1: int64[3], %2: float32[2]):
      %3: int64[] = gather(%1, %0)
      %4: float32[2] = slice(%2, starts=(1,), steps=(-1,))
      return %3, %3, %4
  return %3, %4, %5"""

ROWS = numpy.arange(6, dtype="float32").reshape(2, 3)
TABLES = numpy.array([[1, 2, 0], [2, 2, 1], [0, 1, 0], [2, 0, 1]])


@pytest.mark.parametrize("text", [COND, WHILE, SCAN])
def test_texts_are_read_and_checked(text):
    program = parse(text)
    check(program)
    assert str(program) == text


@pytest.mark.parametrize("holds", [True, False])
def test_one_branch_is_computed(holds):
    row, rows = evaluate(parse(COND), [numpy.array(holds), ROWS, numpy.array(1)])
    numpy.testing.assert_array_equal(row, ROWS[1] if holds else [-1] * 3)
    numpy.testing.assert_array_equal(rows, ROWS if holds else ROWS[::-1])
    assert (row.dtype, rows.dtype) == ("float32", "float32")


def test_the_other_branch_is_not_computed():
    evaluate(parse(COND), [numpy.array(False), ROWS, numpy.array(7)])  # there is no row 7


def test_a_loop_ends_with_its_condition():
    following, unmarked = numpy.array([3, 5, 1, 2, 0, 4]), numpy.array([1, 1, 1, 1, 1, 0], bool)
    for start, end in ((0, 5), (1, 5), (4, 5), (5, 5)):
        (found,) = evaluate(parse(WHILE), [following, unmarked, numpy.array(start)])
        assert found == end and found.dtype == "int64"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_carries_and_makes_rows(reverse):
    program = parse(SCAN.replace("reverse=False", f"reverse={reverse}"))
    check(program)
    given = numpy.arange(8, dtype="float32").reshape(4, 2)
    last, places, turned = evaluate(program, [numpy.array(1), TABLES, given])
    place, expected = 1, {}
    for i in range(4)[::-1] if reverse else range(4):
        place = expected[i] = TABLES[i][place]
    assert last == place
    numpy.testing.assert_array_equal(places, [expected[i] for i in range(4)])
    numpy.testing.assert_array_equal(turned, given[:, ::-1])


def test_a_scan_of_nothing():
    text = SCAN.replace("[4, ", "[0, ").replace("[4]", "[0]").replace("length=4", "length=0")
    program = parse(text)
    check(program)
    last, places, _ = evaluate(
        program, [numpy.array(2), TABLES[:0], numpy.zeros((0, 2), "float32")]
    )
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
    (WHILE, "return %3\n    body", "return %2\n    body", "the condition gives"),
    (WHILE, "unmarked(%0: int64[6]", "unmarked(%0: int64[5]", "the condition takes"),
    (WHILE, "step(%0: int64[6]", "step(%0: int64[5]", "the body takes"),
    (WHILE, "return %0, %1, %3", "return %0, %3, %1", "the body gives"),
    (SCAN, "carried=1", "carried=4", "as many carried as there are operands"),
    (SCAN, "carried=1", "carried=2", "the body takes"),
    (SCAN, "length=4", "length=3", r"rows of int64\[4, 3\]; expected 3"),
    (SCAN, "length=4", "length=-1", "a length from 0 on"),
    (SCAN, "reverse=False", "reverse=0", "expected bool"),
    (SCAN, "return %3, %3, %4", "return %4, %3, %4", "the body carries on"),
    (SCAN, "return %3, %3, %4", "return %3, %3", "the types are"),
]  # fmt: skip


@pytest.mark.parametrize("text, before, after, message", DAMAGES)
def test_damage_is_found(text, before, after, message):
    assert text.count(before) == 1
    with pytest.raises(ProgramError, match=f"(?s){message}"):
        check(parse(text.replace(before, after)))


@pytest.mark.parametrize("text", [COND, WHILE, SCAN])
def test_the_native_back_end_refuses_them(text):
    program = parse(text)
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    with pytest.raises(UnsupportedError, match=r"cond|while_loop|scan: .*heterosis.ir.evaluate"):
        compile_program(program, layouts)
