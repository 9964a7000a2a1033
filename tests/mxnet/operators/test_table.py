"""The table of MXNet's operators: every row is complete, and nothing stands beside the table."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import heterosis
from heterosis import np, npx
from heterosis.mxnet.attributes import encoded
from heterosis.mxnet.graph import Entry, Node, variable
from heterosis.mxnet.operators import lookup, table
from heterosis.mxnet.operators.table import OPERATORS, RECORDS, ROWS, Operator
from heterosis.mxnet.operators.writing import WRITERS
from heterosis.mxnet.symbols.evaluation import Plan
from heterosis.ops.record import REGISTRY
from tests.mxnet.operators.cases import arrays
from tests.mxnet.operators.samples import MORE, NOT_IN_FILES, SAMPLES

_ROWS = {(*row.names, *row.stored)[0]: row for row in ROWS.values()}


def _sample(name: str) -> tuple[list[str], dict]:
    """The names of arrays to run an operator on, and attributes."""
    if name in SAMPLES:
        operands, attributes = SAMPLES[name]
        return operands.split(), attributes
    parameters = inspect.signature(lookup.found(name)).parameters.values()
    several = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    required = [p for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    return ["s"] * (2 if several else len(required)), {}


# They run graphs, which `symbols/test_control.py` gives them.
_WITH_GRAPHS = {"_cond", "_foreach", "_while_loop"}


@pytest.mark.parametrize("name", sorted(set(_ROWS) - set(NOT_IN_FILES) - _WITH_GRAPHS))
def test_a_row_runs_and_counts_its_results(name):
    operands, attributes = _sample(name)
    texts = {key: encoded(value) for key, value in attributes.items()}
    inputs = tuple(variable(f"{operand}{i}") for i, operand in enumerate(operands))
    node = Node(name, "here", texts, inputs)
    given = arrays(np.array) | {key: np.array(array, array.dtype) for key, array in MORE.items()}
    given = {f"{operand}{i}": given[operand] for i, operand in enumerate(operands)}
    count = lookup.output_count(name, texts)
    found = Plan([Entry(node, i) for i in range(count)]).run(given)
    assert all(isinstance(result, np.ndarray) for result in found)
    made = lookup.call(name, lookup.found(name), list(given.values()), lookup.values_of(texts))
    assert count == (len(made) if isinstance(made, tuple | list) else 1)


@pytest.mark.parametrize("name", sorted(_ROWS))
def test_all_names_of_a_row_lead_to_it(name):
    row = _ROWS[name]
    runs = {lookup.found(spelt) for spelt in (*row.names, *row.stored)}
    assert len(runs) == 1 and None not in runs
    assert all(OPERATORS[spelt] is row.run for spelt in row.names)
    assert row.run is not None or set(row.stored) <= set(RECORDS)
    assert row.is_layer >= bool(row.wanted) and row.creates <= bool(row.symbol or row.names)
    assert set(row.renamed) <= {p.name for r in _records(row) for p in r.parameters}


def _records(row: Operator) -> list:
    return [r for r in REGISTRY.values() if r.names.get("mxnet") in (*row.names, *row.stored)]


def test_no_name_stands_in_two_rows():
    with pytest.raises(ValueError, match="two rows of the table of operators have the name 'relu'"):
        table.stored("relu")(lambda data: data)
    assert set(OPERATORS) == {name for row in ROWS.values() for name in row.names}


def test_samples_and_writers_are_those_of_something():
    assert set(SAMPLES) | set(NOT_IN_FILES) <= set(_ROWS)
    assert set(WRITERS) <= set(REGISTRY)


# -- names beside the table -----------------------------------------------------------------------

_ROOT = Path(heterosis.__file__).parent
_TABLE = _ROOT / "mxnet" / "operators"
_ONNX = _ROOT / "models" / "onnx"
# Names of operators that are words for something else, too.
_WORDS = {
    "RNN": "a layer, of PyTorch's too",
    "Softmax": "a layer of PyTorch's",
    "_npi_bitwise_not": "the name of a record, in a table of `ops` where others follow a rule",
    "crop": "a function of images",
    "normal": "a distribution, of random numbers and of initial weights",
    "pow": "Python's name of a sign",
    "reverse": "an attribute of primitives",
    "shuffle": "a function of `random` that changes a list",
    "softsign": "a kind of activation",
    "uniform": "a distribution, of random numbers and of initial weights",
}


def _texts(file: Path) -> Iterator[str]:
    """The texts in a module, but for names that it offers, and for what a record is called."""
    tree = ast.parse(file.read_text())
    passed = set()
    for node in ast.walk(tree):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(getattr(target, "id", "") == "__all__" for target in targets):
            passed |= {id(part) for part in ast.walk(node)}
        if isinstance(node, ast.keyword) and node.arg == "names":
            passed |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in passed
        ):
            yield node.value


@pytest.mark.lengthy
def test_operators_are_named_in_the_table_alone():
    """But for names that are those of our operations, too."""
    ours = {*REGISTRY, *vars(np), *vars(npx), *vars(np.ndarray)}
    theirs = {*ROWS, *RECORDS} - ours - set(_WORDS)
    found = {
        f"{file.relative_to(_ROOT)}: {text}"
        for file in _ROOT.rglob("*.py")
        if not {_TABLE, _ONNX} & {*file.parents}  # ONNX has many of the names, and its own table
        for text in _texts(file)
        if text in theirs
    }
    assert not found
