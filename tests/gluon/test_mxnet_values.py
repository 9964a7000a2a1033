"""Every layer and cell: what MXNet 1.9.1 gives for the same inputs and weights, stored."""

import json
from pathlib import Path

import numpy
import pytest

from heterosis import autograd, gluon, np
from heterosis.gluon import contrib, nn, rnn
from tests.gluon import cases

STORED = json.loads((Path(__file__).parent / "mxnet_values.json").read_text())
SCOPE = {"nn": nn, "rnn": rnn, "contrib": contrib}
NUMBERS = ("predicted", "trained", "gradient", "outputs")
LISTS = ("gradients", "states")
# MXNet's derivatives are not those of its values: they are listed as deviations.
WRONG_THERE = {
    "nn.SELU()": "gradient",
    "nn.AvgPool2D(3, strides=2, ceil_mode=True)": "gradient",
}


def check(found, expected):
    assert list(found) == list(expected)
    for key, value in expected.items():
        if key in NUMBERS:
            close(found[key], value, key)
        elif key in LISTS:
            assert len(found[key]) == len(value), key
            for mine, theirs in zip(found[key], value, strict=True):
                close(mine, theirs, key)
        else:
            assert found[key] == value, key


def close(mine, theirs, what):
    numpy.testing.assert_allclose(mine, theirs, rtol=3e-5, atol=3e-6, err_msg=what)


@pytest.mark.parametrize(
    "case, expected",
    list(zip(cases.LAYERS, STORED["layers"], strict=True)),
    ids=[case[0] for case in cases.LAYERS],
)
def test_layer(case, expected):
    found = cases.layer_facts(*case, SCOPE, np.array, autograd)
    for facts in (found, expected):
        facts.pop(WRONG_THERE.get(case[0]), None)
    check(found, expected)


@pytest.mark.parametrize(
    "case, expected",
    list(zip(cases.CELLS, STORED["cells"], strict=True)),
    ids=[case[0] for case in cases.CELLS],
)
def test_cell(case, expected):
    check(cases.cell_facts(*case, SCOPE, np.array), expected)


def test_every_layer_has_a_case():
    text = " ".join(case[0] for case in cases.LAYERS + cases.CELLS)
    bases = {"Block", "HybridBlock", "SymbolBlock", "RecurrentCell", "HybridRecurrentCell"}
    bases |= {"ModifierCell"}
    rest = [
        name
        for module in (gluon.nn, gluon.rnn)
        for name in module.__all__
        if f".{name}(" not in text and name not in bases
    ]
    # tests/ops/nn/test_activations.py and test_pytorch_values.py have them.
    beyond = ["Hardswish", "Mish", "MultiHeadAttention", "RMSNorm", "SiLU", "Softplus"]
    beyond += ["TransformerEncoderLayer"]
    assert sorted(rest) == ["BatchNormReLU", *beyond]  # the first is listed as a deviation
