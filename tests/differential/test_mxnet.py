"""The same expressions here and in MXNet 1.9.1."""

from __future__ import annotations

import itertools
from contextlib import closing

import numpy
import pytest

from tests.differential import mxnet_process, wire
from tests.differential.answers import difference, our_answer
from tests.differential.deviations import DEVIATIONS
from tests.differential.expressions import DRAWN, expressions
from tests.differential.mxnet_process import AskedInVain, MXNetProcess, why_not

DEVIATING = list(itertools.chain(*DEVIATIONS.values()))
AGREEING = [e for e in expressions() + DRAWN if e not in DEVIATING]


@pytest.mark.parametrize("expression", AGREEING)
def test_agrees(mxnet, expression):
    ours, theirs = our_answer(expression), mxnet.answer(expression)
    assert "raised" not in ours, f"{expression} raises {ours}"
    found = difference(ours, theirs, values=expression not in DRAWN)
    assert found is None, f"{expression}: {found}"


@pytest.mark.parametrize("code", DEVIATING)
def test_deviations_are_still_deviations(mxnet, code):
    ours, theirs = our_answer(code), mxnet.answer(code)
    assert difference(ours, theirs), f"both give {ours}"


def test_no_deviation_is_listed_twice():
    assert len(set(DEVIATING)) == len(DEVIATING)


# -- the process that has MXNet --------------------------------------------------------------------


def test_the_reason_for_skipping_is_told(tmp_path):
    assert mxnet_process.VARIABLE in why_not("")
    assert "no file" in why_not(str(tmp_path / "python"))
    assert why_not(__file__) is None


def test_arrays_travel():
    for array in (numpy.arange(6.0).reshape(2, 3), numpy.array(True), numpy.zeros((0, 2), "f2")):
        (found,) = wire.decoded(wire.encoded([array]))
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        numpy.testing.assert_array_equal(found, array)


@pytest.mark.lengthy
def test_a_process_that_ends_is_followed_by_another(mxnet):
    with closing(MXNetProcess()) as other:
        with pytest.raises(AskedInVain, match="the process ended"):
            other.call("os", "_exit", 3)
        with pytest.raises(AskedInVain, match=r"no word in 0.1 s"):
            other.call("time", "sleep", 60, seconds=0.1)
        with pytest.raises(AskedInVain, match="TypeError"):
            other.call("os", "getpgid", "x")
        assert other.call("os.path", "join", "a", "b") == "a/b"
