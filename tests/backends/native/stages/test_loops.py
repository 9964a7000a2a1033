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


def test_weights_that_seldom_change_are_packed_before_the_call():
    program = parse(RECURRENT)
    found = in_parts(program, [program.inputs[1]], machine())
    assert isinstance(found, Split)
    assert {"tanh", "pack_right"} <= {*names(found.preparation)}
    assert not {"tanh", "pack_right"} & {*names(found.rest)}


@pytest.mark.parametrize("text", [RECURRENT, REPEATED])
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
