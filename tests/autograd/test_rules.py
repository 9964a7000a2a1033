"""The table of derivatives: nothing is left out silently, or loaded before it is used."""

from importlib import import_module, reload
from pathlib import Path

import pytest

from heterosis.autograd import rules
from heterosis.autograd.listing import derivative
from heterosis.autograd.rules import absent, table
from heterosis.autograd.rules.table import Step, is_piecewise_constant, rule_of
from heterosis.ir import PRIMITIVES
from heterosis.ir.primitives import reductions, shuffling, subject_of
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import INPUT, Node, apply
from heterosis.ir.types import DTYPES, FLOATS, TensorType, is_float
from heterosis.runtime.errors import DTypeError
from tests.processes import run_python


@pytest.mark.parametrize("primitive", PRIMITIVES.values(), ids=PRIMITIVES)
def test_every_primitive_has_a_rule_or_a_reason_for_none(primitive):
    assert (rule_of(primitive) is None) == (primitive in absent.ABSENT)


def test_reasons_are_given_for_what_exists():
    assert absent.ABSENT.keys() <= set(PRIMITIVES.values())
    assert all(absence.word and absence.reason for absence in absent.ABSENT.values())


@pytest.mark.parametrize(
    "name, word",
    {
        "iota": "-", "bitwise_and": "-", "all": "-", "normal_float32": "-",
        "to_int8": "zero", "to_bool": "zero", "floor": "zero", "less": "zero",
        "check_indices": "zero",
        "to_float32": "yes", "multiply": "yes", "sum": "yes", "windows": "yes", "lstm": "yes",
        "cholesky": "by record", "sort": "by record", "poisson": "by record",
        "cond": "yes", "scan": "yes", "while_loop": "yes",
        "general": "none", "gru_back": "none", "while_loop_back": "none",
    }.items(),
)  # fmt: skip
def test_the_table_of_primitives_tells_what_is_known(name, word):
    assert derivative(PRIMITIVES[name]) == word


# -- where there is none --------------------------------------------------------------------------


def _of_no_floats():
    return [p for p, absence in absent.ABSENT.items() if absence is absent.NO_FLOATS]


@pytest.mark.parametrize(
    "primitive", [p for p in _of_no_floats() if isinstance(p, Elementwise)], ids=repr
)
def test_operands_are_no_floats(primitive):
    for allowed in primitive.types.operands:
        assert isinstance(allowed, int) or not any(map(is_float, allowed))


_GIVEN = {  # the shape of the operand, and attributes
    reductions.ALL: ((3,), {"axes": (0,)}),
    reductions.ANY: ((3,), {"axes": (0,)}),
    shuffling.SHUFFLED_PLACES: ((), {"wanted": 1}),
}


@pytest.mark.parametrize(
    "primitive", [p for p in _of_no_floats() if not isinstance(p, Elementwise)], ids=repr
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_refused(primitive, dtype):
    shape, attributes = _GIVEN[primitive]
    x = apply(INPUT, (), TensorType(shape, dtype))
    with pytest.raises(DTypeError, match=dtype):
        primitive.types(Node(primitive, (x,), attributes, (TensorType((3,), "int64"),)))


# -- conversions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("given", DTYPES)
def test_conversions_pass_gradients_from_floats_to_floats(given, to):
    x = apply(INPUT, (), TensorType((3,), given))
    y = apply(conversion(to), (x,), TensorType((3,), to))
    g = apply(INPUT, (), y.type)
    (found,) = rule_of(conversion(to))(Step((x,), (y,), (g,), {}))
    assert is_piecewise_constant(conversion(to)) == (not is_float(to))
    if is_float(given) and is_float(to):
        assert found.dtype == given
        assert found is g if given == to else found.node.inputs == (g,)
    else:
        assert found is None


# -- when rules are loaded ------------------------------------------------------------------------

_FILES = {path.stem for path in Path(rules.__file__).parent.glob("*.py")}


def test_all_files_are_known():
    assert set(table._SUBJECTS) == _FILES - {"__init__", "table", "absent"}


@pytest.mark.parametrize("subject", table._SUBJECTS)
def test_rules_stand_with_the_subject_of_their_primitives(subject, monkeypatch):
    """What is looked for in one file only is found there."""
    module = import_module(f"{rules.__name__}.{subject}")
    monkeypatch.setattr(table, "_RULES", {})
    reload(module)
    assert {subject_of(primitive) for primitive in table._RULES} == {subject}


_LOADED = """
import sys
from heterosis import autograd, hybridize, np

def loaded():
    folder = "heterosis.autograd.rules."
    return sorted(name[len(folder):] for name in sys.modules if name.startswith(folder))

x = np.ones((3, 3))
hybridize(lambda x: np.dot(np.exp(x), x) + 1)(x).wait_to_read()
print(loaded())
x.attach_grad()
with autograd.record():
    y = (x * x).sum()
y.backward()
print(loaded())
"""


@pytest.mark.lengthy
def test_rules_are_loaded_with_the_first_gradient_that_needs_them(tmp_path):
    ran = run_python("-c", _LOADED, folder=tmp_path)
    assert ran.stdout.splitlines() == [
        "['table']",
        "['elementwise', 'reductions', 'table']",
    ], ran.stderr
