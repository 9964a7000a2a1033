"""Unknown shapes of parameters, completed by the operations that use them."""

import numpy
import pytest

from heterosis import autograd, np, npx
from heterosis.gluon import nn, rnn
from heterosis.runtime.errors import DeferredInitializationError, ShapeError


def block(forward, **shapes):
    """A custom block with parameters of these shapes, 0 where unknown."""

    class Custom(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            for name, shape in shapes.items():
                made = self.params.get(name, shape=shape, allow_deferred_init=True)
                setattr(self, name, made)

        def hybrid_forward(self, F, *inputs, **parameters):
            return forward(F, *inputs, **parameters)

    made = Custom()
    made.initialize("ones")
    return made


@pytest.mark.parametrize(
    "forward, shapes, inputs, found",
    [
        (lambda F, x, weight: F.npx.fully_connected(x, weight, num_hidden=2, no_bias=True),
         {"weight": (2, 0)}, (3, 4, 5), (2, 20)),
        (lambda F, x, weight: F.FullyConnected(x, weight, no_bias=True, num_hidden=2,
                                               flatten=False),
         {"weight": (0, 0)}, (3, 4, 5), (2, 5)),
        (lambda F, x, weight: F.npx.convolution(x, weight, kernel=(2, 2), num_filter=4, num_group=2,
                                                no_bias=True),
         {"weight": (4, 0, 2, 2)}, (1, 6, 3, 3), (4, 3, 2, 2)),
        (lambda F, x, weight: F.npx.deconvolution(x, weight, kernel=(2,), num_filter=4,
                                                  no_bias=True),
         {"weight": (0, 4, 2)}, (1, 6, 3), (6, 4, 2)),
        (lambda F, x, weight: F.elemwise_add(x, weight), {"weight": (0, 0)}, (3, 4), (3, 4)),
        (lambda F, x, weight: F.npx.leaky_relu(x, weight, act_type="prelu"),
         {"weight": (0,)}, (2, 3, 4), (3,)),
    ],
)  # fmt: skip
def test_weights(forward, shapes, inputs, found):
    custom = block(forward, **shapes)
    custom(np.ones(inputs))
    assert custom.weight.shape == custom.weight.data().shape == found


def test_channels_last():
    first, last = nn.Conv2D(4, (2, 3)), nn.Conv2D(4, (2, 3), layout="NHWC")
    x = np.random.normal(size=(2, 5, 6, 3))
    for layer, images in ((first, x.transpose(0, 3, 1, 2)), (last, x)):
        layer.initialize()
        layer(images)
    assert last.weight.shape == (4, 2, 3, 3)
    last.weight.set_data(first.weight.data().transpose(0, 2, 3, 1))
    expected = first(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1).asnumpy()
    numpy.testing.assert_allclose(last(x).asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_normalisation_in_training():
    def forward(F, x, gamma, beta, mean, var):
        return F.npx.batch_norm(x, gamma, beta, mean, var, axis=-1)

    custom = block(forward, gamma=(0,), beta=(0,), mean=(0,), var=(0,))
    with autograd.record():
        custom(np.ones((2, 3, 5)))
    assert custom.mean.data().shape == (5,)


def test_a_parameter_can_be_used_again_once_it_is_there():
    def forward(F, x, weight):
        y = F.npx.fully_connected(x, weight, num_hidden=2, no_bias=True)
        return y + F.np.sum(weight) + weight.sum() + (weight * 2).sum() + weight[0, 0]

    assert block(forward, weight=(2, 0))(np.ones((1, 3))).asnumpy().tolist() == [[28, 28]]


@pytest.mark.parametrize(
    "forward",
    [
        lambda F, x, weight: F.np.dot(x, weight),
        lambda F, x, weight: x * weight,
        lambda F, x, weight: weight * x,
        lambda F, x, weight: F.np.dot(x, weight.T),
        lambda F, x, weight: weight[0],
    ],
)
def test_other_operations_say_what_to_do(forward):
    custom = block(forward, weight=(0, 3))
    with pytest.raises(DeferredInitializationError) as caught:
        custom(np.ones((2, 3)))
    message = str(caught.value)
    assert "parameter 'custom0_weight' of Custom 'custom0'" in message and "(-1, 3)" in message
    assert "infer_shape" in message and "fully_connected" in message


def test_known_extents_must_agree():
    custom = block(lambda F, x, weight: F.FullyConnected(x, weight, num_hidden=3, no_bias=True),
                   weight=(2, 0))  # fmt: skip
    with pytest.raises(ShapeError, match=r"\(2, -1\).*\(3, 4\)"):
        custom(np.ones((1, 4)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Conv2D(2, 3),
        lambda: nn.Conv2DTranspose(2, 3),
        nn.BatchNorm,
        nn.InstanceNorm,
        lambda: rnn.LSTM(2),
        lambda: rnn.GRU(2, layout="NTC"),
    ],
)
def test_inputs_of_too_few_dimensions(make):
    layer = make()
    layer.initialize()
    with pytest.raises(ShapeError, match=r"\(3,\) has too few|\(3,\); expected three dimensions"):
        layer(np.ones(3))


def test_infer_shape_gives_no_values():
    net = nn.HybridSequential()
    net.add(nn.Dense(3), nn.Conv1D(2, 1), nn.LayerNorm())
    net[0]._flatten = False
    net.infer_shape(np.ones((1, 4, 5)))
    assert net[0].weight.shape == (3, 5) and net[1].weight.shape == (2, 4, 1)
    with pytest.raises(RuntimeError, match="has not been initialized"):
        net[0].weight.data()
    net.initialize()
    assert net(np.ones((1, 4, 5))).shape == (1, 2, 3)


def test_infer_type():
    net = nn.Dense(3, in_units=2)
    net.initialize()
    net.infer_type(np.ones((1, 2), dtype="float64"))
    assert net.weight.data().dtype.name == "float64"


def test_deferred_parameters_learn_from_the_first_step():
    net = nn.Dense(1)
    net.initialize()
    with autograd.record():
        y = net(np.ones((2, 3))).sum()
    y.backward()
    assert net.weight.grad().asnumpy().tolist() == [[2, 2, 2]]
    npx.waitall()
