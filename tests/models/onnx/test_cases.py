"""Every case that comes with ONNX gives what it wants, or is refused with a word why."""

import re

import pytest
from onnx import TensorProto, numpy_helper

from heterosis import np
from heterosis.models import from_onnx
from heterosis.runtime.errors import UnsupportedError
from tests.models.onnx.cases import OPERATORS, by_operator, differences

# Cases, by a pattern for their names, and what their refusal says.
_NOT_DONE = "operators that are not done"
_TYPES = "(8-bit floats|4-bit floats|4-bit integers|2-bit integers)( are not|,)"
REFUSED = {
    r".*(FLOAT8|FLOAT4|INT4|INT2|e4m3|e5m2|float4|int4|int2).*": _TYPES,
    r"test_(str|regex|equal_string).*": f"strings|{_NOT_DONE}",
    r"test_(tfidfvectorizer|image_decoder|ai_onnx_ml_(label|tree|bin)).*": f"strings|{_NOT_DONE}",
    r"test_flexattention(?!.*_expanded).*": _NOT_DONE,
    r"test_bitcast.*(float|bool).*": "BitCast",
    r"test_(adam|adagrad|momentum|nesterov_momentum)(_multiple)?": _NOT_DONE,
    r"test_training_dropout(_default|_mask|_default_mask)?": "a seed, whose numbers are those",
    r"test_bernoulli_seed(_expanded)?": "seed=0, whose numbers are those",
    r"test_scan_sum": _NOT_DONE,  # its first version had batches
}


def placed(value):
    if value is None:
        return None
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    return [*map(placed, value)] if isinstance(value, list) else np.array(value, dtype=value.dtype)


def run(case, *, hybridized=False):
    net = from_onnx(case.model.SerializeToString())
    if hybridized:
        net.hybridize()
    return list(differences(case, lambda inputs: net(*map(placed, inputs))))


def refusal(case):
    return next((text for name, text in REFUSED.items() if re.fullmatch(name, case.name)), None)


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator(operator):
    for case in by_operator()[operator]:
        why = refusal(case)
        if why is None:
            assert run(case) == [], case.name
            continue
        with pytest.raises(UnsupportedError, match=why):
            run(case)


def test_every_case_belongs_to_an_operator():
    assert set(by_operator()) <= set(OPERATORS)
    assert sum(map(len, by_operator().values())) > 1500


def test_refusals_are_of_cases_that_are_there():
    names = [case.name for cases in by_operator().values() for case in cases]
    for pattern in REFUSED:
        assert any(re.fullmatch(pattern, name) for name in names), pattern
