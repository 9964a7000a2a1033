"""Activations and their gradients against what PyTorch 2 gives for -4, -3, ..., 4 in float64."""

import numpy
import pytest

from heterosis import autograd, hybridize, np, npx
from heterosis.gluon import nn
from heterosis.runtime.errors import ArgumentError, UnsupportedError

X = numpy.arange(-4.0, 5.0)
GELU = (
    [-0.00012668, -0.00404969, -0.04550026, -0.15865525, 0, 0.84134475, 1.95449974, 2.99595031,
     3.99987332],
    [-0.00050365, -0.01194565, -0.0852318, -0.08331547, 0.5, 1.08331547, 1.0852318, 1.01194565,
     1.00050365],
)  # fmt: skip
GELU_TANH = (
    [-7.025e-05, -0.00363739, -0.04540231, -0.15880801, 0, 0.84119199, 1.95459769, 2.99636261,
     3.99992975],
    [-0.00033512, -0.01158417, -0.08609926, -0.08296408, 0.5, 1.08296408, 1.08609926, 1.01158417,
     1.00033512],
)  # fmt: skip
SILU = (
    [-0.07194484, -0.14227762, -0.23840584, -0.26894142, 0, 0.73105858, 1.76159416, 2.85772238,
     3.92805516],
    [-0.05266461, -0.08810411, -0.09078425, 0.07232949, 0.5, 0.92767051, 1.09078425, 1.08810411,
     1.05266461],
)  # fmt: skip
SOFTPLUS = (
    [0.01814993, 0.04858735, 0.12692801, 0.31326169, 0.69314718, 1.31326169, 2.12692801,
     3.04858735, 4.01814993],
    [0.01798621, 0.04742587, 0.11920292, 0.26894142, 0.5, 0.73105858, 0.88079708, 0.95257413,
     0.98201379],
)  # fmt: skip
MISH = (
    [-0.07259174, -0.14564746, -0.25250148, -0.30340146, 0, 0.86509839, 1.94395896, 2.986535,
     3.99741281],
    [-0.05377321, -0.09339311, -0.10835509, 0.05921676, 0.6, 1.04903622, 1.06931793, 1.02110691,
     1.00443288],
)  # fmt: skip
LOG_SIGMOID = (
    [-4.01814993, -3.04858735, -2.12692801, -1.31326169, -0.69314718, -0.31326169, -0.12692801,
     -0.04858735, -0.01814993],
    [0.98201379, 0.95257413, 0.88079708, 0.73105858, 0.5, 0.26894142, 0.11920292, 0.04742587,
     0.01798621],
)  # fmt: skip
# At -3 and 3 there are two slopes, and the mean of them is ours as well as one of them is.
HARDSWISH = (
    [0, 0, -1 / 3, -1 / 3, 0, 2 / 3, 5 / 3, 3, 4],
    [0, None, -1 / 6, 1 / 6, 0.5, 5 / 6, 7 / 6, None, 1],
)

FUNCTIONS = {
    "gelu": (npx.gelu, GELU),
    "gelu_tanh": (lambda x: npx.gelu(x, approximation="tanh"), GELU_TANH),
    "silu": (npx.silu, SILU),
    "softplus": (npx.softplus, SOFTPLUS),
    "mish": (npx.mish, MISH),
    "log_sigmoid": (npx.log_sigmoid, LOG_SIGMOID),
    "hardswish": (npx.hardswish, HARDSWISH),
    "Activation('gelu')": (nn.Activation("gelu"), GELU),
    "Activation('gelu_tanh')": (nn.Activation("gelu_tanh"), GELU_TANH),
    "Activation('silu')": (nn.Activation("silu"), SILU),
    "GELU": (nn.GELU(), GELU),
    "GELU('tanh')": (nn.GELU("tanh"), GELU_TANH),
    "SiLU": (nn.SiLU(), SILU),
    "Softplus": (nn.Softplus(), SOFTPLUS),
    "Mish": (nn.Mish(), MISH),
    "Hardswish": (nn.Hardswish(), HARDSWISH),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_slopes(name):
    function, (values, slopes) = FUNCTIONS[name]
    if isinstance(function, nn.HybridBlock):
        function.initialize()
    for call in (function, hybridize(lambda x: function(x))):
        x = np.array(X, dtype="float64")
        x.attach_grad()
        with autograd.record():
            y = call(x)
        y.backward()
        numpy.testing.assert_allclose(y.asnumpy(), values, atol=2e-8)
        known = [i for i, slope in enumerate(slopes) if slope is not None]
        expected = [slopes[i] for i in known]
        numpy.testing.assert_allclose(x.grad.asnumpy()[known], expected, atol=2e-8)


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu", "softplus", "mish", "log_sigmoid"])
def test_large_arguments_do_not_overflow(name):
    x = np.array([-1e4, 1e4])
    x.attach_grad()
    with autograd.record():
        y = FUNCTIONS[name][0](x)
    y.backward()
    expected = [-1e4, 0] if name == "log_sigmoid" else [0, 1e4]
    assert y.tolist() == expected and x.grad.tolist() == ([1, 0] if expected[0] else [0, 1])


def test_unknown_names_say_which_there_are():
    for call in (lambda: npx.gelu(np.ones(2), "fast"), lambda: nn.GELU("fast")):
        with pytest.raises(ArgumentError, match="expected 'erf' or 'tanh'"):
            call()
    with pytest.raises(ArgumentError, match=r"'gelux'; expected one of relu, .*gelu_tanh"):
        npx.activation(np.ones(2), "gelux")


@pytest.mark.parametrize(
    "layer", [nn.GELU(), nn.Dense(3, activation="gelu"), nn.Activation("gelu")]
)
def test_what_mxnet_knows_is_exported_in_its_words(layer, tmp_path):
    x = np.array([[-1.0, 0.5, 2.0]])
    layer.initialize()
    layer.hybridize()
    expected = layer(x)
    files = layer.export(str(tmp_path / "layer"))
    again = nn.SymbolBlock.imports(files[0], ["data"], files[1])
    numpy.testing.assert_allclose(again(x).asnumpy(), expected.asnumpy(), 1e-6)


@pytest.mark.parametrize("name", ["gelu_tanh", "silu", "mish", "hardswish", "log_sigmoid"])
def test_what_mxnet_does_not_know_is_not_exported_as_if_it_did(name, tmp_path):
    layer = nn.Activation(name)
    layer.initialize()
    layer.hybridize()
    layer(np.ones((1, 3)))
    with pytest.raises(UnsupportedError, match="no operator in MXNet"):
        layer.export(str(tmp_path / "layer"))
    layer.export(str(tmp_path / "layer"), format="native")
    assert (tmp_path / "liblayer.so").exists()
