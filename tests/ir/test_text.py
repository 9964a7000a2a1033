"""Texts of programs: what is written is read again, and tells all."""

import math

import numpy
import pytest

from heterosis.ir import PRIMITIVES, Program, check, parse
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.program import INPUT, NUMBER, apply, apply_many, constant, extent
from heterosis.ir.text import printed
from heterosis.ir.types import TensorType
from heterosis.ir.views import broadcast, transpose
from heterosis.runtime.errors import ProgramError
from tests.ir.made_up import made_up

BOTH = made_up("both", Opaque)
MINE = made_up("mine")
TABLE = {**PRIMITIVES, "both": BOTH, "mine": MINE}
x = apply(INPUT, (), TensorType((2, 3), "float32"))
number = apply(NUMBER, (), TensorType((), "int64", weak=True))
weak = apply(INPUT, (), TensorType((), "float64", weak=True))


def again(program):
    return parse(str(program), TABLE)


def test_a_program_reads_as_it_is_written():
    text = """\
f(%0: float32[2, 3], %1: number int64[], %2: weak float64[]):
  %3: float32[3, 2] = transpose(%0, axes=(1, 0))
  %4: weak float64[4] = broadcast(%2)
  return %3, %4, %1, %0"""
    program = Program(
        (x, number, weak), (transpose(x, (1, 0)), broadcast(weak, (4,)), number, x), "f"
    )
    assert str(program) == text
    assert str(again(program)) == text


def test_reading_makes_the_same_nodes():
    made = again(Program((x,), (transpose(x, (1, 0)),)))
    (node,) = (made.outputs[0].node,)
    assert node.primitive is PRIMITIVES["transpose"]
    assert node.attributes == {"axes": (1, 0)}
    assert node.inputs == made.inputs
    assert made.inputs[0].node.primitive is INPUT
    assert made.outputs[0].type == TensorType((3, 2), "float32")


NUMBERS = {
    "1.0": (1.0, "float32", False),
    "-0.0": (-0.0, "float32", False),
    "1e-300": (1e-300, "float32", False),
    "nan": (math.nan, "float32", False),
    "-inf": (-math.inf, "float32", False),
    "True": (True, "bool", False),
    "weak float64(0.1)": (0.1, "float64", True),
    "float32(1)": (1, "float32", False),
    "float32(True)": (True, "float32", False),
    "int64(-9223372036854775808)": (-(2**63), "int64", False),
    "bfloat16(inf)": (math.inf, "bfloat16", False),
}


@pytest.mark.parametrize("text, given", NUMBERS.items(), ids=NUMBERS)
def test_numbers_are_exact(text, given):
    value, dtype, is_weak = given
    program = Program((), (constant(value, dtype, weak=is_weak),))
    assert str(program) == f"program():\n  return {text}"
    (found,) = again(program).outputs
    assert found.type == TensorType((), dtype, is_weak)
    assert repr(found.node.attributes["value"]) == repr(value)


def test_numbers_of_numpy_are_numbers():
    program = Program((), (constant(numpy.float32(1.1), "float32"), extent(7)))
    assert str(program) == f"program():\n  return {numpy.float32(1.1).item()!r}, extent(7)"


ATTRIBUTES = [
    (), (1,), (1, (2, (3,))), [1, [2]], [], {}, {"a": (1, None), 2: [True]}, None, True, -3, 2.5,
    -0.0, math.nan, math.inf, -math.inf, 1e-7, 1e22, "", "it's", 'a "b"', "a\nb # c", "%0", "é",
    MINE, (MINE, None), "float32", 2**70,
]  # fmt: skip


@pytest.mark.parametrize("value", ATTRIBUTES, ids=repr)
def test_attributes_are_exact(value):
    program = Program((x,), (apply(MINE, (x,), x.type, one=value, other=1),))
    found = again(program)
    assert repr(found.outputs[0].node.attributes) == repr({"one": value, "other": 1})
    assert str(found) == str(program)


def test_all_results_of_a_node_are_written():
    types = TensorType((2,), "int64"), x.type
    _, second = apply_many(BOTH, (x,), types)
    program = Program((x,), (second, second))
    assert "%1: int64[2], %2: float32[2, 3] = both(%0)" in str(program)
    (a, b) = again(program).outputs
    assert a == b and a.index == 1 and a.node.types == types


@pytest.mark.parametrize(
    "name", ["f", "<lambda>", "a (backward)", "", "nan", "it's", "a.b", "a:\nb"]
)
def test_programs_have_any_name(name):
    program = Program((x,), (x,), name)
    assert again(program).name == name
    assert str(again(program)) == str(program)


def test_what_is_not_needed_is_no_part_of_a_program():
    text = "f(%0: bool[2]):\n  %1: bool[4] = broadcast(%0)\n  return %0"
    assert str(parse(text)) == "f(%0: bool[2]):\n  return %0"


def test_any_names_any_spaces_and_comments():
    text = """
    # what comes first
    f ( %x : float32[ 2,3 ] ) :   # its head

      %turned : float32[3, 2] = transpose( %x, axes=(1,0) )
      return %turned"""
    assert str(parse(text)) == str(Program((x,), (transpose(x, (1, 0)),), "f"))


def test_one_program_in_another():
    text = """\
f(%0: bool[], %1: float32[2]):
  %2: float32[2] = cond(%0, %1)
    then = outer(%0: float32[2]):
      %1: float32[2] = cond(False, %0)
        then = inner(%0: float32[2]):
          return %0
        otherwise = other(%0: float32[2]):
          return %0
      return %1
    otherwise = 'the other'(%0: float32[2]):
      return %0
  return %2"""
    program = parse(text)
    check(program)
    assert str(program) == text
    then = program.outputs[0].node.attributes["then"]
    assert isinstance(then, Program) and then.name == "outer"


def test_what_has_no_text_is_shown_and_known():
    program = Program((x,), (apply(MINE, (x,), x.type, one=object()),))
    assert "mine(%0, one=<object>)" in str(program)
    assert not printed(program).complete
    assert printed(Program((x,), (apply(MINE, (x,), x.type, one=MINE),))).complete


def test_primitives_in_attributes_are_known():
    program = Program((x,), (apply(BOTH, (x,), x.type, by=(MINE,)),))
    assert {BOTH, MINE} <= printed(program).primitives


HEAD = "f(%0: float32[2]):\n"
WRONG = {
    "": "the text ends",
    "f(%0: float32[2]):": "the text ends",
    HEAD + "  return %1": "line 2, 'return %1': there is no %1 before this line",
    HEAD + "  %0: bool[] = iota()\n  return %0": "%0 is there already",
    HEAD + "  %1: bool[] = nothing(%0)\n  return %1": "line 2, .*there is no primitive nothing",
    HEAD + "  %1: half[] = iota()\n  return %1": "half is no element type",
    HEAD + "  %1: int64[-1] = iota()\n  return %1": "no array has the shape",
    HEAD + "  %1: int64[n m] = iota()\n  return %1": "'n m' is no size",
    HEAD + "  %1: int64[2] = iota(\n  return %1": r"line 2, .*expected an operand",
    HEAD + "  %1: int64[2] = iota() %0\n  return %1": "expected the end of the line, and got %0",
    HEAD + "  %1: int64[2] = gather(axes=1, %0)\n  return %1": "an operand behind attributes",
    HEAD + "  %1: int64[2] = gather(a=1, a=2)\n  return %1": "the attribute a is there twice",
    HEAD + "  %1: int64[2] = gather(a=word)\n  return %1": "there is no primitive word",
    HEAD + "  %1: int64[2] = gather(a='\\x')\n  return %1": "line 2",
    HEAD + "  %1: int64[2] = gather(a=1.2.3)\n  return %1": "could not convert",
    HEAD + "  return 1": "1 has no element type",
    HEAD + "  return int32('a')": "expected a number, and got 'a'",
    HEAD + "  return extent(1.5)": "1.5 in the arithmetic of sizes",
    HEAD + "  return $": r"'\$' is no part of a program",
    HEAD + "  return %0\n  return %0": "line 3, .*expected nothing behind",
    "f(%0: float32[2])\n  return %0": "expected ':'",
    "f(%0: float32):\n  return %0": "expected a type",
    "inf(%0: float32[2]):\n  return %0": "expected the program's name",
    HEAD + "  %1: bool[] = gather(a=" + "(" * 9999 + ")\n  return %1": "nested too deeply",
}


@pytest.mark.parametrize("text, message", WRONG.items(), ids=range(len(WRONG)))
def test_what_is_no_program_is_refused(text, message):
    with pytest.raises(ProgramError, match=f"(?s){message}"):
        parse(text)


def test_names_of_primitives_are_words():
    for name in PRIMITIVES:
        assert name.isidentifier() and name not in ("inf", "nan", "weak", "extent_")
