"""Every layer, loss and model gives the same hybridized: results, statistics, gradients."""

import pytest

from heterosis import gluon, init, np
from heterosis.gluon import contrib, loss, nn, rnn
from heterosis.gluon.model_zoo import vision
from tests.capture.comparison import same, with_gradients
from tests.gluon.cases import CELLS, LAYERS, filled, numbers, stacked, weights
from tests.train.cases import ARRAYS, LOSSES

SCOPE = {"nn": nn, "rnn": rnn, "contrib": contrib, "filled": filled, "stacked": stacked}
MORE = [
    ("contrib.nn.BatchNormReLU()", (4, 3, 2)) if hasattr(contrib.nn, "BatchNormReLU")
    else ("nn.BatchNormReLU()", (4, 3, 2)),
    ("nn.GlobalAvgPool1D()", (2, 3, 4)),
    ("nn.GlobalMaxPool2D()", (2, 3, 4, 2)),
    ("nn.GlobalMaxPool3D()", (2, 3, 2, 2, 2)),
    ("nn.Dropout(0.5)", (4, 5)),
    ("nn.Dropout(0.5, axes=(0,))", (4, 5)),
    ("rnn.LSTM(3, 2, dropout=0.5)", (4, 2, 3)),
    ("nn.Dense(3, activation='gelu')", (4, 5)),
    ("nn.Softplus(2.0)", (4, 5)),
]  # fmt: skip


def facts(net, call, inputs):
    """What a block gives: in prediction, in training with gradients, and its state behind that."""
    parameters = list(net.collect_params().values())
    for i, parameter in enumerate(parameters):
        if parameter.shape:
            parameter.set_data(np.array(weights(parameter, i), dtype=parameter.dtype))
    np.random.seed(3)
    predicted = call()
    trained = with_gradients(call, inputs)
    for _ in range(2):  # gradients are written anew, and statistics move on
        trained = with_gradients(call, inputs)
    gradients = [p.grad().copy() for p in parameters if p.grad_req != "null"]
    return predicted, trained, gradients, [p.data().copy() for p in parameters], call()


def agree(net, inputs, variables=None, call=None, ulps=64, least=0.0, backend="native"):
    """The block as it is, then hybridized."""
    call = call or (lambda: net(*inputs))
    variables = inputs if variables is None else variables
    net.initialize(init.Normal(0.1), force_reinit=True)
    call()
    wanted = facts(net, call, variables)
    net.hybridize(backend=backend)
    found = facts(net, call, variables)
    same(found, wanted, ulps, least=least)


def captures(block):
    """How often a block, or what is in it, has been captured."""
    own = block._compiled.captures if getattr(block, "_compiled", None) else 0
    return own + sum(map(captures, block._children.values()))


@pytest.mark.parametrize("expression, shape", [*LAYERS, *MORE], ids=lambda x: str(x))
def test_layers(expression, shape):
    net = eval(expression, SCOPE)
    x = np.array(numbers(shape))
    agree(net, [x], [] if shape[0] == "ints" else None)
    if isinstance(net, gluon.HybridBlock):
        assert captures(net) <= 2  # for prediction and training


@pytest.mark.lengthy
@pytest.mark.parametrize("expression, length, valid, layout", CELLS, ids=lambda x: str(x))
def test_cells(expression, length, valid, layout):
    cell = eval(expression, SCOPE)
    x = np.array(numbers((2, length, 3) if layout == "NTC" else (length, 2, 3)))
    lengths = None if valid is None else np.array(valid, dtype="float32")

    def call():
        return cell.unroll(length, x, layout=layout, merge_outputs=True, valid_length=lengths)

    agree(cell, [x], call=call)


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    kind, arguments, names = LOSSES[name]
    block, arrays = getattr(loss, kind)(**arguments), [np.array(ARRAYS[n]) for n in names]
    agree(block, arrays, arrays[:1])
    assert captures(block) == 2


@pytest.mark.lengthy
def test_tiles_in_training():
    """Of filters and images large enough, convolutions and their gradients take other sums."""
    net = nn.HybridSequential()
    for _ in range(3):
        net.add(nn.Conv2D(32, 3, padding=1, activation="tanh"))
    x = np.array(numbers((4, 32, 28, 28)), dtype="float32")
    agree(net, [x], ulps=4096, least=1.0)


_SLOW = pytest.mark.slow
_DEEP = (pytest.mark.slow, pytest.mark.release)  # gigabytes, and half a minute each
MODELS = [
    ("squeezenet1.1", {}, (1, 3, 224, 224), "float64"),  # the shortest: the one that --quick runs
    ("resnet18_v1", {"thumbnail": True}, (2, 3, 16, 16), "float64"),
    ("mobilenet0.25", {}, (2, 3, 32, 32), "float64"),
    ("mobilenetv2_0.25", {}, (2, 3, 64, 64), "float64"),
    pytest.param("resnet50_v2", {"thumbnail": True}, (2, 3, 32, 32), "float64", marks=_DEEP),
    pytest.param("vgg11_bn", {}, (1, 3, 32, 32), "float64", marks=_DEEP),
    pytest.param("alexnet", {}, (1, 3, 64, 64), "float32", marks=_SLOW),
    pytest.param("densenet121", {}, (1, 3, 224, 224), "float64", marks=_DEEP),
    pytest.param("inceptionv3", {}, (1, 3, 299, 299), "float64", marks=_DEEP),
]


@pytest.mark.lengthy
@pytest.mark.parametrize("name, keywords, shape, dtype", MODELS)
def test_models(name, keywords, shape, dtype):
    """Of few numbers to normalise over, rounding grows without bounds: float64 for deep models."""
    net = vision.get_model(name, classes=3, **keywords)
    net.cast(dtype)
    x = np.array(numbers(shape), dtype=dtype)
    # Gradients that cancel, of biases in front of a normalisation, are noise around zero.
    agree(net, [x], ulps=4096 if dtype == "float32" else 1e8, least=1.0)
    assert captures(net) == 2
