"""Records of operations: what annotations say, and what of them users see."""

import copy
import inspect
import pickle

import pytest

from heterosis import np, npx
from heterosis.gluon import nn
from heterosis.ir.program import Value
from heterosis.ops.record import ARRAY, ATTRIBUTE, REGISTRY, default, operation


@pytest.fixture
def registered():
    """Registers a function for one test."""
    before = dict(REGISTRY)

    def register(function):
        return operation(public=())(function)

    yield register
    REGISTRY.clear()
    REGISTRY.update(before)


def scaled(x, by=0.5, much: bool = False):
    return np.multiply(x, by) if much else x


def in_quotes(x: "Value", by: "Value | None" = None, much: "bool" = False) -> "Value":
    return np.multiply(x, by) if much else x


def annotated(x: Value, by: Value = default(0.5), much: bool = False) -> Value:
    return np.multiply(x, by) if much else x


def test_values_may_be_annotated_or_not(registered):
    x = np.array([2.0, 4.0])
    for made in map(registered, (scaled, annotated, in_quotes)):
        assert made.record.uses == [ARRAY, ARRAY, ATTRIBUTE]
        assert made(x, np.array([3.0, 1.0]), True).tolist() == [6.0, 4.0]


def test_a_number_by_default(registered):
    for made in map(registered, (scaled, annotated)):
        assert made(np.array([2.0, 4.0]), much=True).tolist() == [1.0, 2.0]


def test_users_see_only_what_attributes_are(registered):
    made = registered(annotated)
    assert str(inspect.signature(made)) == "(x, by=0.5, much: bool = False)"
    assert str(inspect.signature(np.clip)) == "(a, a_min=None, a_max=None, min=None, max=None)"


def test_what_no_annotation_allows_is_refused(registered):
    made = registered(annotated)
    with pytest.raises(TypeError, match=r"annotated: much is 7; expected True or False\."):
        made(np.array([1.0]), much=7)


FUNCTIONS = [np.tanh, npx.relu, np.linalg.norm, np.random.uniform, np.ones]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_are_copied_and_pickled_by_name(function):
    assert copy.deepcopy(function) is function
    assert pickle.loads(pickle.dumps(function)) is function


def test_blocks_that_hold_functions_are_copied_and_pickled():
    net = nn.Dense(2, in_units=2)
    net.then = np.tanh
    assert copy.deepcopy(net).then is np.tanh is pickle.loads(pickle.dumps(net)).then
