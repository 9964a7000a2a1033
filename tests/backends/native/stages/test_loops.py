"""What turns of a loop share is computed ahead of it, and packed."""

import numpy
import pytest

from heterosis import _core, np
from heterosis.backends.native.compile.plans import machine
from heterosis.backends.native.compile.whole import compile_program
from heterosis.backends.native.stages.pipeline import for_processor, in_parts
from heterosis.ir import check, evaluate, parse
from heterosis.ir.strided import Strided
from heterosis.passes.preparation import Split
from heterosis.runtime.errors import LinearAlgebraError

RECURRENT = """\
rnn(%0: float32[6, 8], %1: float32[8, 8], %2: float32[5, 6, 8]):
  %3: float32[6, 8] = scan(%0, %1, %2, carried=1, shared=1, length=5, reverse=False)
    body = turn(%0: float32[6, 8], %1: float32[8, 8], %2: float32[6, 8]):
      %3: float32[8, 8] = tanh(%1)
      %4: float32[6, 8] = matmul(%0, %3)
      %5: float32[6, 8] = add(%4, %2)
      return %5
  return %3"""
REPEATED = """\
repeated(%0: float32[6, 8], %1: float32[8, 8]):
  %2: float32[6, 8] = while_loop(%0, %1, carried=1)
    condition = small(%0: float32[6, 8], %1: float32[8, 8]):
      %2: float32[] = max(%0, axes=(0, 1))
      %3: float32[] = max(%1, axes=(0, 1))
      %4: float32[] = multiply(%3, 50.0)
      %5: bool[] = less(%2, %4)
      return %5
    body = turn(%0: float32[6, 8], %1: float32[8, 8]):
      %2: float32[8, 8] = exp(%1)
      %3: float32[6, 8] = matmul(%0, %2)
      return %3
  return %2"""
CELL = """\
cell(%0: float32[2, 8], %1: float32[4, 8], %2: float32[8, 8], %3: float32[7, 1, 2, 4]):
  %4: float32[2, 8], %5: float32[7, 2, 8] = scan(%0, %1, %2, %3, \
carried=1, shared=2, length=7, reverse=REVERSE)
    body = turn(%0: float32[2, 8], %1: float32[4, 8], %2: float32[8, 8], %3: float32[1, 2, 4]):
      %4: float32[2, 4] = reshape(%3)
      %5: float32[4, 8] = tanh(%1)
      %6: float32[2, 8] = matmul(%4, %5)
      %7: float32[8, 8] = transpose(%2, axes=(1, 0))
      %8: float32[2, 8] = matmul(%0, %7)
      %9: float32[2, 8] = add(%6, %8)
      %10: float32[2, 8] = tanh(%9)
      return %10, %6
  return %4, %5"""
BACKWARDS = CELL.replace("REVERSE", "True")
FORWARDS = CELL.replace("REVERSE", "False")
INVERSE = """\
inverse(%0: float32[1, 2, 2], %1: float32[1, 2, 2]):
  %2: float32[1, 2, 2] = while_loop(%0, %1, carried=1)
    condition = small(%0: float32[1, 2, 2], %1: float32[1, 2, 2]):
      %2: float32[] = max(%0, axes=(0, 1, 2))
      %3: bool[] = less(%2, 8.0)
      return %3
    body = turn(%0: float32[1, 2, 2], %1: float32[1, 2, 2]):
      %2: float32[1, 2, 2] = inverse(%1)
      %3: float32[1, 2, 2] = add(%0, %2)
      return %3
  return %2"""


def body_of(program):
    (loop,) = (n for n in program.nodes() if n.primitive.name in ("scan", "while_loop"))
    return loop.attributes["body"]


def names(program):
    return [node.primitive.name for node in program.nodes()]


@pytest.mark.parametrize("text, ahead", [(RECURRENT, "tanh"), (REPEATED, "exp")])
def test_work_on_what_is_shared_is_done_once(text, ahead):
    program = parse(text)
    found = for_processor(program, (), machine())
    check(found)
    assert ahead in names(found) and "pack_right" in names(found)
    assert ahead not in names(body_of(found)) and "matmul_packed" in names(body_of(found))
    if ahead == "exp":
        condition = next(n for n in found.nodes() if n.primitive.name == "while_loop")
        assert names(condition.attributes["condition"]).count("max") == 1


def test_products_of_rows_are_computed_for_all_turns_at_once():
    program = parse(FORWARDS)
    found = for_processor(program, (), machine())
    check(found)
    assert sum("matmul" in name for name in names(found)) == 1
    assert sum("matmul" in name for name in names(body_of(found))) == 1


def test_turns_with_many_rows_keep_their_products():
    text = FORWARDS.replace("2, 4]", "17, 4]")
    program = parse(text.replace("[2, 8]", "[17, 8]").replace("7, 2, 8", "7, 17, 8"))
    found = for_processor(program, (), machine())
    assert sum("matmul" in name for name in names(body_of(found))) == 2


def test_weights_that_seldom_change_are_packed_before_the_call():
    program = parse(RECURRENT)
    found = in_parts(program, [program.inputs[1]], machine())
    assert isinstance(found, Split)
    assert {"tanh", "pack_right"} <= {*names(found.preparation)}
    assert not {"tanh", "pack_right"} & {*names(found.rest)}


@pytest.mark.parametrize("text", [RECURRENT, REPEATED, FORWARDS, BACKWARDS])
def test_the_same_is_computed(text):
    program = parse(text)
    rng = numpy.random.default_rng(0)
    given = [rng.normal(size=v.shape).astype("float32") / 4 for v in program.inputs]
    plan = compile_program(program, [Strided.contiguous(v.shape) for v in program.inputs])
    found = _core.run_plan(plan, [np.array(array) for array in given])
    for ours, theirs in zip(found, evaluate(program, given), strict=True):
        numpy.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-4, atol=1e-5)


def test_what_may_fail_stays_where_it_may_not_run():
    program = parse(INVERSE)
    assert "inverse" in names(body_of(for_processor(program, (), machine())))
    plan = compile_program(program, [Strided.contiguous(v.shape) for v in program.inputs])
    singular = np.array(numpy.ones((1, 2, 2), "float32"))
    (found,) = _core.run_plan(plan, [np.array(numpy.full((1, 2, 2), 9, "float32")), singular])
    assert found.asnumpy().tolist() == [[[9, 9], [9, 9]]]
    (found,) = _core.run_plan(plan, [singular, singular])
    with pytest.raises(LinearAlgebraError, match="singular"):
        found.asnumpy()
