"""Layers, losses, optimisers and averages that MXNet has not: what PyTorch gives, stored."""

import json

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np
from heterosis.gluon import nn
from heterosis.runtime.errors import ArgumentError, ShapeError
from tests.backends import reference
from tests.gluon import pytorch as cases

STORED = json.loads(cases.FILE.read_text())
BACKENDS = (None, "native", reference.NAME)


def array(x):
    return np.array(x, dtype="float64")


def variable(x):
    x = array(x)
    x.attach_grad()
    return x


def settle(layer, *inputs):
    """The layer with its weights, and these in order."""
    layer.initialize()
    layer.cast("float64")
    layer(*inputs)
    parameters = list(layer.collect_params().values())
    for i, parameter in enumerate(parameters):
        parameter.set_data(array(cases.weight(parameter.shape, i)))
    return parameters


def pulled(run):
    """The result, after the gradients of what was stored."""
    with autograd.record():
        found = run()
    found.backward(array(cases.numbers(found.shape, 0.7)))
    return found


def near(found, expected, tolerance=1e-7):
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(mine.asnumpy().ravel(), theirs, 10 * tolerance, tolerance)


def ready(block, backend):
    if backend is not None:
        block.hybridize(backend=backend)
    return block


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", cases.ATTENTION)
def test_attention(name, backend):
    queries, others, how = cases.ATTENTION[name]
    how = dict(how)
    mask = None
    if how.pop("padded", False):
        mask = np.array(cases.padding(), dtype="bool")[:, None, None, :]
    inputs = [variable(cases.numbers(queries))]
    if others is not None:
        inputs.append(variable(cases.numbers(others, 0.2)))
    layer = nn.MultiHeadAttention(8, 2, **how)
    parameters = settle(layer, *inputs)
    if "use_bias" in how:
        for i, parameter in enumerate(parameters):
            parameter.set_data(array(cases.weight(parameter.shape, 2 * i)))
    ready(layer, backend)
    found = pulled(lambda: layer(*inputs, attn_mask=mask))
    learnt = [p.grad() for p in parameters]
    near([found, *(x.grad for x in inputs), *learnt], STORED["attention"][name])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", cases.ENCODERS)
def test_encoder_layer(name, backend):
    x = variable(cases.numbers((2, 3, 8)))
    layer = nn.TransformerEncoderLayer(8, 12, 2, dropout=0.0, **cases.ENCODERS[name])
    settle(layer, x)
    ready(layer, backend)
    near([pulled(lambda: layer(x)), x.grad], STORED["encoders"][name])


@pytest.mark.parametrize("backend", BACKENDS)
def test_root_mean_square_norm(backend):
    x, layer = variable(cases.numbers((3, 5))), nn.RMSNorm()
    (gamma,) = settle(layer, x)
    ready(layer, backend)
    near([pulled(lambda: layer(x)), x.grad, gamma.grad()], STORED["rms_norm"])
    gamma.set_data(np.ones_like(gamma.data()))
    numpy.testing.assert_allclose(nn.RMSNorm(scale=False)(x).asnumpy(), layer(x).asnumpy(), 1e-12)


LOSSES = {
    "smoothed": (gluon.loss.SoftmaxCELoss(label_smoothing=0.2), cases.classes()),
    "smoothed probabilities": (
        gluon.loss.SoftmaxCELoss(sparse_label=False, label_smoothing=0.2),
        cases.probabilities(),
    ),
    "focal": (gluon.loss.FocalLoss(0.3, 1.5), cases.numbers((3, 5), 0.9) > 0),
    "focal unweighted": (gluon.loss.FocalLoss(None, 1.5), cases.numbers((3, 5), 0.9) > 0),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", cases.LOSSES)
def test_losses(name, backend):
    block, label = LOSSES[name]
    block.hybridize(backend is not None, backend=backend or "native")
    pred = variable(3 * cases.numbers((3, 5)))
    near([pulled(lambda: block(pred, array(label))), pred.grad], STORED["losses"][name])


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_focal_loss_of_large_predictions_is_finite(gamma):
    pred = np.array([[-1e4, -1e4, 1e4, 1e4, 0.0]])
    pred.attach_grad()
    with autograd.record():
        found = gluon.loss.FocalLoss(None, gamma)(pred, np.array([[0.0, 1.0, 0.0, 1.0, 1.0]]))
    found.backward()
    assert found.item() == pytest.approx((2e4 + 0.5**gamma * numpy.log(2)) / 5)
    assert np.isfinite(pred.grad).all() and pred.grad[0, 1].item() == pytest.approx(-0.2)


# -- steps ----------------------------------------------------------------------------------------


def learnt_layer():
    layer = nn.Dense(2, use_bias=False, in_units=3, dtype="float64")
    layer.initialize()
    layer.weight.set_data(array(cases.weight((2, 3), 0)))
    return layer


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_steps(name, hybrid):
    layer = learnt_layer()
    clipped = name == "clipped"
    trainer = gluon.Trainer(
        layer.collect_params(),
        "sgd" if clipped else name,
        cases.OPTIMIZERS[name],
        clip_global_norm=0.5 if clipped else None,
    )

    def step(g):
        with autograd.record():
            loss = (layer.weight.data() * g).sum()
        loss.backward()
        trainer.step(4)
        return layer.weight.data().copy()

    if hybrid:
        step = heterosis.hybridize(step)
    found = [step(array(4 * cases.numbers((2, 3), i))) for i in range(cases.STEPS)]
    # PyTorch adds 1e-6 to the norm that it divides by.
    near(found, STORED["optimizers"][name], 1e-6 if clipped else 1e-7)
    assert not hybrid or step.captures == 1


@pytest.mark.parametrize("hybrid", [False, True])
def test_moving_average(hybrid):
    layer = learnt_layer()
    average = gluon.ExponentialMovingAverage(layer.collect_params(), decay=0.8)

    def step(change):
        layer.weight.data()[...] += change
        average.update()

    step = heterosis.hybridize(step) if hybrid else step
    for i in range(cases.STEPS):
        step(array(cases.numbers((2, 3), i)))
    (found,) = average.averages.values()
    near([found], STORED["average"])
    last = layer.weight.data().copy()
    with average.applied():
        assert (layer.weight.data() == found).all()
        with pytest.raises(ArgumentError, match="leave it first"):
            average.update()
    assert (layer.weight.data() == last).all()
    assert repr(average) == "ExponentialMovingAverage(decay=0.8, 1 parameters, 4 updates)"


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_moving_average_warms_up(hybrid):
    layer = learnt_layer()
    average = gluon.ExponentialMovingAverage(layer.collect_params(), decay=0.3, warm_up=True)

    def step(value):
        layer.weight.set_data(value)
        average.update()

    step = heterosis.hybridize(step) if hybrid else step
    expected = cases.weight((2, 3), 0)
    for i, keep in enumerate([1 / 10, 2 / 11, 3 / 12, 0.3, 0.3]):
        value = cases.numbers((2, 3), i)
        step(array(value))
        expected = keep * expected + (1 - keep) * value
        near(average.averages.values(), [expected.ravel()])


# -- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "units=8, num_heads=3": lambda: nn.MultiHeadAttention(8, 3),
    "num_kv_heads=3": lambda: nn.MultiHeadAttention(8, 4, num_kv_heads=3),
    "label_smoothing is 2": lambda: gluon.loss.SoftmaxCELoss(label_smoothing=2),
    "alpha is -1": lambda: gluon.loss.FocalLoss(-1),
    "gamma is -1": lambda: gluon.loss.FocalLoss(gamma=-1),
    "decay=2": lambda: gluon.ExponentialMovingAverage([], 2),
    "ExponentialMovingAverage: params is 3": lambda: gluon.ExponentialMovingAverage(3),
    "clip_global_norm=0": lambda: gluon.Trainer([], "sgd", clip_global_norm=0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused(message):
    with pytest.raises(ArgumentError, match=message):
        REFUSED[message]()


def test_attention_wants_three_dimensions():
    layer = nn.MultiHeadAttention(8, 2)
    layer.initialize()
    with pytest.raises(ShapeError, match=r"query has 2 dimensions; expected 3: \(batch, length"):
        layer(np.ones((3, 8)))


def test_heads_of_keys_are_shared():
    one, all_ = nn.MultiHeadAttention(8, 4, num_kv_heads=2), nn.MultiHeadAttention(8, 4)
    x = array(cases.numbers((2, 3, 8)))
    for layer in (one, all_):
        settle(layer, x)
    for name in ("query", "out"):
        for kind in ("weight", "bias"):
            getattr(getattr(all_, name), kind).set_data(getattr(getattr(one, name), kind).data())
    for name in ("key", "value"):
        for kind in ("weight", "bias"):
            few = getattr(getattr(one, name), kind).data()
            parts = few.reshape(2, 2, -1)
            whole = np.repeat(parts, 2, axis=0).reshape(8, *few.shape[1:])
            getattr(getattr(all_, name), kind).set_data(whole)
    numpy.testing.assert_allclose(one(x).asnumpy(), all_(x).asnumpy(), 1e-10)
    assert repr(one) == "MultiHeadAttention(8, heads=4, kv_heads=2)"
