"""Programs that are damaged in one place are refused, with the line of the place."""

import pytest

from heterosis.ir import Program, check, parse
from heterosis.ir.program import EXTENT, INPUT, NUMBER, Node, Value, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ir.views import BROADCAST, RESHAPE, TRANSPOSE
from heterosis.passes import pipeline
from heterosis.passes.pipeline import PASSES, Pass, optimized
from heterosis.runtime.errors import ProgramError
from tests.ir.made_up import made_up

LINES = {
    "reshape": "%2: float32[6] = reshape(%0)",
    "broadcast": "%2: float32[4, 2, 3] = broadcast(%0)",
    "transpose": "%2: float32[3, 2] = transpose(%0, axes=(1, 0))",
    "slice": "%2: float32[1, 2] = slice(%0, starts=(1, 2), steps=(1, -2))",
    "diagonal": "%2: float32[2] = diagonal(%0, axes=(0, 1), start=(0, 1))",
    "windows": "%2: float32[2, 2, 2] = windows(%0, kernel=(2,), steps=(1,))",
    "gather": "%2: float32[4, 3] = gather(%0, %1)",
    "gather of both": "%2: float32[4] = gather(%0, %1, %1)",
    "scatter": "%2: float32[2, 3] = scatter(%0, %1, %3, combine=None)",
    "iota": "%2: int64[2, 2] = iota()",
    "assemble": "%2: float32[2, 5] = assemble(7.0, %0, places=(((0, 2), (1, 1)),), filled=True)",
    "reshape of a size": "%2: float32[3, n] = reshape(%4)",
}
DAMAGES = [  # what is replaced, by what, and what is said
    ("reshape", "[6]", "[5]", "cannot give 6 elements"),
    ("reshape", "float32[6]", "float64[6]", "the types are .*expected .float32.6"),
    ("reshape", "(%0)", "(%0, %0)", "2 operands; expected 1"),
    ("reshape", "(%0)", "()", "0 operands; expected 1"),
    ("reshape", "(%0)", "(%0, shape=(6,))", "attributes .shape.; expected .."),
    ("reshape", "%2: float32[6]", "%2: float32[6], %9: float32[6]", "the types are"),
    ("broadcast", "[4, 2, 3]", "[4, 3, 3]", "does not broadcast"),
    ("broadcast", "[4, 2, 3]", "[3]", "does not broadcast"),
    ("transpose", "[3, 2]", "[2, 3]", r"the types are .*expected .float32\[3, 2\]"),
    ("transpose", "(1, 0)", "(1, 1)", "each of its dimensions once"),
    ("transpose", "(1, 0)", "(1, 2)", "each of its dimensions once"),
    ("transpose", "(1, 0)", "(0,)", "expected 2 numbers"),
    ("transpose", "(1, 0)", "[1, 0]", r"axes=\[1, 0\]; expected tuple\[int, ...\]"),
    ("transpose", "(1, 0)", "(1, False)", r"expected tuple\[int, ...\]"),
    ("transpose", ", axes=(1, 0)", "", r"attributes \(\); expected \(axes\)"),
    ("slice", "(1, 2)", "(1, 3)", "expected places inside"),
    ("slice", "(1, -2)", "(1, -3)", "expected places inside"),
    ("slice", "(1, 2)", "(1,)", "expected 2 numbers"),
    ("slice", "[1, 2]", "[1]", "expected 2 numbers"),
    ("diagonal", "(0, 1), start", "(0, 0), start", "two of its dimensions"),
    ("diagonal", "start=(0, 1)", "start=(1, 1)", "expected places inside"),
    ("diagonal", "start=(0, 1)", "start=(0, 1, 2)", r"expected tuple\[int, int\]"),
    ("diagonal", "[2]", "[]", "the types are"),
    ("windows", "[2, 2, 2]", "[2, 1, 2]", "the types are"),
    ("windows", "steps=(1,)", "steps=(0,)", "from 1 on"),
    ("windows", "steps=(1,)", "steps=(1, 1)", "expected 1 numbers"),
    ("windows", "kernel=(2,), steps=(1,)", "kernel=(1, 1, 1), steps=(1, 1, 1)", "at most"),
    ("gather", "%1)", "%0)", "an index of float32; expected integers"),
    ("gather", ", %1)", ")", "0 indices of an array of 2"),
    ("gather", "%1)", "%1, %1, %1)", "3 indices of an array of 2"),
    ("gather", "[4, 3]", "[4, 2]", "the types are"),
    ("gather of both", "%1, %1)", "%1, int64(0))", r"shapes \(4,\) and \(\)"),
    ("scatter", "%3", "%0", "rows of shape"),
    ("scatter", ", %3", "", "2 operands; expected 3"),
    ("scatter", "None", "0", r"combine=0; expected Elementwise \| None"),
    ("iota", "int64[2, 2]", "int32[2, 2]", r"expected .int64\[2, 2\]"),
    ("iota", "iota()", "iota(%0)", "1 operands; expected 0"),
    ("assemble", "[2, 5]", "[2, 4]", "expected places inside"),
    ("assemble", "7.0", "float64(7.0)", "a part of float64"),
    ("assemble", "7.0", "%3", r"filled with shape \(4, 3\)"),
    ("assemble", "7.0, ", "", "1 operands; expected 2"),
    ("assemble", "True", "1", "filled=1; expected bool"),
    ("assemble", "((0, 2), (1, 1)),", "((0, 2),),", "expected tuple"),
    ("reshape of a size", "[3, n]", "[3, n + 1]", "cannot give 3.n elements"),
]  # fmt: skip


def _text(line):
    head = "f(%0: float32[2, 3], %1: int64[4], %3: float32[4, 3], %4: float32[n, 3]):"
    return f"{head}\n  {line}\n  return %2"


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_whole_programs_pass(line):
    check(parse(_text(line)))


@pytest.mark.parametrize(
    "kind, before, after, message", DAMAGES, ids=[f"{d[0]} {d[2]}" for d in DAMAGES]
)
def test_damage_is_found(kind, before, after, message):
    line = LINES[kind]
    assert line.count(before) == 1
    program = parse(_text(line.replace(before, after)))
    with pytest.raises(ProgramError, match=f"f, ['\"]%4: .*{kind.split()[0]}.*: .*{message}"):
        check(program)


x = apply(INPUT, (), TensorType((2, 3), "float32"))


def turned(value):
    return apply(TRANSPOSE, (value,), TensorType((3, 2), "float32"), axes=(1, 0))


def node_of(primitive, type_, *inputs, **attributes):
    return Value(Node(primitive, inputs, attributes, (type_,)))


ANY = TensorType((), "float32")
MADE = {
    "a free leaf": (Program((), (turned(x),)), "it is given to the program"),
    "a leaf given twice": (Program((x, x), (x,)), "one value is two of its inputs"),
    "a computed input": (Program((turned(x),), (x,)), "input 0 is made by transpose"),
    "an operand that is no result": (
        Program((x,), (turned(Value(x.node, 1)),)), "an operand is result 1 of input, which has 1",
    ),
    "a result that is none": (Program((x,), (Value(x.node, 2),)), "a result is result 2 of input"),
    "a strange element type": (
        Program((x,), (node_of(BROADCAST, TensorType((), "float12"), x),)),
        "float12 is no element type",
    ),
    "a strange input": (
        Program((node_of(INPUT, TensorType((), "float12")),), ()), "float12 is no element type",
    ),
    "a number with a shape": (
        Program((node_of(NUMBER, TensorType((2,), "int64", weak=True)),), ()), "the types are",
    ),
    "a number that does not adapt": (
        Program((node_of(NUMBER, TensorType((), "int64")),), ()), "is not weak",
    ),
    "an extent that does not adapt": (
        Program((), (node_of(EXTENT, TensorType((), "int64"), value=1),)), "is not weak",
    ),
    "an extent of 65 bits": (
        Program((), (node_of(EXTENT, TensorType((), "int64", weak=True), value=2**63),)), "64 bits",
    ),
    "half an integer": (Program((), (constant(1.5, "int32"),)), "expected a whole number"),
    "infinite integers": (Program((), (constant(float("inf"), "int32"),)), "a whole number"),
    "an integer of 9 bits": (Program((), (constant(256, "uint8"),)), "from 0 to 255"),
    "a truth of 2": (Program((), (constant(2, "bool"),)), "from 0 to 1"),
}  # fmt: skip


@pytest.mark.parametrize("program, message", MADE.values(), ids=MADE)
def test_what_no_text_could_say_is_found(program, message):
    with pytest.raises(ProgramError, match=message):
        check(program)


def test_programs_within_are_looked_at():
    text = """\
f(%0: bool[], %1: float32[2]):
  %2: float32[2] = cond(%0, %1)
    then = a(%0: float32[2]):
      return %0
    otherwise = b(%0: float32[2]):
      %1: float32[2] = reshape(float64(1.0))
      return %0
  return %2"""
    check(parse(text))  # what is not needed is no part of the program
    with pytest.raises(ProgramError, match=r"f, .*cond.*b, .*reshape.*cannot give 1 elements"):
        check(parse(text.replace("return %0\n  return", "return %1\n  return")))


def test_attributes_of_any_kind_may_be_asked_for():
    mine = made_up("mine", attributes={"anything": object})
    check(Program((x,), (apply(mine, (x,), ANY, anything=object()),)))


def test_every_pass_is_looked_at(monkeypatch):
    def careless(program):
        (value,) = program.outputs
        return Program(program.inputs, (node_of(RESHAPE, ANY, value),), program.name)

    monkeypatch.setattr(pipeline, "PASSES", (*PASSES, Pass("careless", careless)))
    with pytest.raises(ProgramError, match="reshape"):
        optimized(Program((x,), (turned(x),), "f"))


@pytest.mark.lengthy
def test_long_programs_take_no_stack():
    value = x
    for _ in range(5000):
        flat = apply(RESHAPE, (value,), TensorType((6,), "float32"))
        value = apply(RESHAPE, (flat,), x.type)
    program = Program((x,), (value,), "f")
    check(program)
    again = parse(str(program))
    check(again)
    assert str(again) == str(program)
    with pytest.raises(ProgramError, match=r"%10001: .*transpose"):
        check(Program((x,), (node_of(TRANSPOSE, x.type, value, axes=(1, 0)),), "f"))
