"""Blocks: names, parts, hooks, casting, summaries, and both ways to write a hybrid block."""

import copy
import warnings

import pytest

from heterosis import autograd, np, npx
from heterosis import symbol as sym
from heterosis.gluon import Parameter, nn
from heterosis.runtime.errors import ArgumentError


class Net(nn.Block):
    def __init__(self, **keywords):
        super().__init__(**keywords)
        with self.name_scope():
            self.a = nn.Dense(2)
            self.inner = nn.Sequential()
            self.inner.add(nn.Dense(3))
            with self.inner.name_scope():
                self.inner.add(nn.Dense(4))
        self.b = nn.Dense(1)

    def forward(self, x):
        return self.b(self.inner(self.a(x)))


class Scaled(nn.HybridBlock):
    def __init__(self, **keywords):
        super().__init__(**keywords)
        self.scale = self.params.get("scale", shape=(3,), init="ones")
        self.shift = self.params.get_constant("shift", [1.0, 2.0, 3.0])

    def hybrid_forward(self, F, x, scale, shift):
        return F.np.exp(x) * scale + F.npx.relu(shift)


# Names as MXNet 1.9.1 gives them.
def test_names():
    assert list(Net().collect_params()) == [
        "net0_dense0_weight", "net0_dense0_bias", "net0_dense1_weight", "net0_dense1_bias",
        "net0_sequential0_dense0_weight", "net0_sequential0_dense0_bias", "dense0_weight",
        "dense0_bias",
    ]  # fmt: skip
    assert list(Net(prefix="x_").collect_params("x_.*weight")) == [
        "x_dense0_weight", "x_dense1_weight", "x_sequential0_dense0_weight",
    ]  # fmt: skip
    transparent = Net(prefix="")
    assert (transparent.prefix, transparent.name, transparent.a.prefix) == ("", "", "dense2_")


def test_places_in_files_do_not_depend_on_names():
    assert list(Net(prefix="any_")._collect_params_with_prefix()) == [
        "a.weight", "a.bias", "inner.0.weight", "inner.0.bias", "inner.1.weight", "inner.1.bias",
        "b.weight", "b.bias",
    ]  # fmt: skip


def test_selecting_parameters_matches_from_the_start():
    net = Net()
    assert list(net.collect_params("dense")) == ["dense0_weight", "dense0_bias"]
    assert list(net.collect_params(".*sequential.*bias")) == ["net0_sequential0_dense0_bias"]


def test_printing():
    assert repr(Net()) == (
        "Net(\n  (a): Dense(-1 -> 2, linear)\n  (inner): Sequential(\n"
        "    (0): Dense(-1 -> 3, linear)\n    (1): Dense(-1 -> 4, linear)\n  )\n"
        "  (b): Dense(-1 -> 1, linear)\n)"
    )
    assert repr(nn.Dense(2, in_units=3).collect_params()) == (
        "dense1_ (\n  Parameter dense1_weight (shape=(2, 3), dtype=float32)\n"
        "  Parameter dense1_bias (shape=(2,), dtype=float32)\n)"
    )


def test_summary(capsys):
    net = Net()
    net.initialize()
    net.a.collect_params().setattr("grad_req", "null")
    net.summary(np.ones((2, 5)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[3:9] == [
        f"{layer:>20}  {shape:>42} {count:>15}"
        for layer, shape, count in [
            ("Input", "(2, 5)", 0), ("Dense-1", "(2, 2)", 12), ("Dense-2", "(2, 3)", 9),
            ("Dense-3", "(2, 4)", 16), ("Dense-4", "(2, 1)", 5), ("Net-5", "(2, 1)", 0),
        ]
    ]  # fmt: skip
    assert "   Total params: 42" in lines and "   Trainable params: 30" in lines
    net.hybridize()
    assert net._forward_hooks == {}
    hybrid = nn.HybridSequential()
    hybrid.hybridize()
    with pytest.raises(ArgumentError, match=r"hybridize\(False\)"):
        hybrid.summary(np.ones((1, 1)))


def test_sequences_are_sliced_measured_and_walked():
    net = nn.HybridSequential()
    net.add(nn.Dense(1), nn.Dense(2), nn.Dense(3))
    assert len(net) == 3 and [layer._units for layer in net] == [1, 2, 3]
    assert net[-1] is net[2] and type(net[1:]) is nn.HybridSequential
    assert list(net[:2].collect_params("dense1")) == ["dense1_weight", "dense1_bias"]
    assert nn.HybridConcurrent(axis=1)[:].axis == 1


def test_sharing_parameters():
    a = nn.Dense(2, in_units=2)
    b = nn.Dense(2, in_units=2, params=a.collect_params())
    assert b.weight is a.weight and b.name == "dense1" and b.weight.name == "dense0_weight"
    with pytest.raises(ArgumentError, match="shared between layers of the same sizes"):
        nn.Dense(3, in_units=2, params=a.collect_params())


def test_two_parameters_with_one_name_are_refused():
    net = nn.Sequential()
    net.add(nn.Dense(2, prefix="x_"), nn.Dense(2, prefix="x_"))
    with pytest.raises(ArgumentError, match="two parameters have the name 'x_weight'"):
        net.collect_params()


def test_attributes_keep_their_kind():
    net = Net()
    net.a = nn.Dense(7)
    assert net._children["a"]._units == 7
    with pytest.raises(TypeError, match="Changing attribute type for a"):
        net.a = 3
    block = Scaled()
    with pytest.raises(ArgumentError, match="is a parameter already"):
        block.scale = Parameter("other", shape=(3,))


def test_blocks_in_lists_are_warned_of():
    net = nn.Block()
    net.layers = [nn.Dense(1)]
    with pytest.warns(UserWarning, match=r"Block\.layers.*unregistered container"):
        net.collect_params()
    net.register_child(net.layers[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(net.collect_params()) == 2


def test_parameters_in_lists_are_warned_of():
    net = nn.Block()
    net.weights = [Parameter("weight", shape=(2,))]
    with pytest.warns(UserWarning, match=r"Block\.weights holds a Parameter that is not part"):
        net.collect_params()
    net.weights = {"one": net.params.get("weight", shape=(2,))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(net.collect_params()) == 1


def test_hooks_and_apply():
    net, seen = Net(), []
    net.initialize()
    before = net.a.register_forward_pre_hook(lambda block, inputs: seen.append(inputs[0].shape))
    with net.a.register_forward_hook(lambda block, _, outputs: seen.append(outputs.shape)):
        net(np.ones((2, 5)))
    net(np.ones((3, 5)))
    before.detach()
    before.detach()
    net(np.ones((4, 5)))
    assert seen == [(2, 5), (2, 2), (3, 5)]
    names = []
    assert net.apply(lambda block: names.append(block.name)) is net
    assert names[0] == "net0_dense0" and names[-1] == "net0"


def test_hybrid_forward_gets_parameters_and_constants():
    block = Scaled()
    block.initialize()
    y = block(np.zeros((2, 3)))
    assert y.asnumpy().tolist() == [[2, 3, 4]] * 2
    assert list(block.collect_params()) == ["scaled0_scale", "scaled0_shift"]
    block.cast("float64")
    assert block(np.zeros((1, 3), dtype="float64")).dtype.name == "float64"


def test_plain_forward_in_a_hybrid_block():
    class Plain(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(0, 2), allow_deferred_init=True)

        def infer_shape(self, x):
            self.weight.shape = (x.shape[1], 2)

        def forward(self, x):
            return np.dot(x, self.weight.data())

    block = Plain()
    block.initialize("ones")
    assert block(np.ones((1, 4))).asnumpy().tolist() == [[4, 4]]
    assert not block._forward_pre_hooks


def test_hybrid_blocks_take_hybrid_children_only():
    with pytest.raises(ArgumentError, match="there is HybridSequential"):
        nn.HybridSequential().add(nn.Sequential())


def test_hybridizing_takes_all_flags_and_changes_nothing():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=3))
    net.initialize()
    x = np.ones((1, 3))
    before = net(x).asnumpy()
    net.hybridize(static_alloc=True, static_shape=True, inline_limit=4, own_option=1)
    assert (net(x).asnumpy() == before).all() and net[0]._active
    net.hybridize(False)
    assert not net[0]._active


def test_the_processor_is_a_back_end():
    net, x = nn.Dense(2), np.ones((1, 3))
    net.initialize()
    before = net(x)
    net.optimize_for(x, backend="MKLDNN")
    assert net._active and (net(x).asnumpy() == before.asnumpy()).all()
    net.hybridize(backend="MKLDNN")
    data = sym.var("data")
    assert data.optimize_for("MKLDNN") is data


def test_what_is_not_there_says_so():
    net = nn.Dense(2)
    with pytest.raises(ArgumentError, match=r"no back end 'any'; known are 'native'.*hybridize"):
        net.optimize_for(np.ones((1, 2)), backend="any")
    with pytest.raises(NotImplementedError, match=r"forward\(self"):
        nn.Block()(1)
    with pytest.raises(NotImplementedError, match="hybrid_forward"):
        nn.HybridBlock()(np.ones(1))


def test_casting_keeps_statistics_precise():
    net = nn.BatchNorm(in_channels=2)
    net.initialize()
    net.cast("float16")
    assert net.running_var.data().dtype.name == "float32"
    net.cast("float64")
    assert net(np.ones((3, 2), dtype="float64")).dtype.name == "float64"


def test_dropout_acts_in_training_only():
    layer, x = nn.Dropout(0.5), np.ones((100,))
    assert (layer(x) == 1).all()
    with autograd.record():
        kept = layer(x)
    assert set(kept.asnumpy().tolist()) == {0.0, 2.0}
    npx.waitall()


def test_batch_norm_relu_is_both():
    layer = nn.BatchNormReLU(in_channels=2)
    layer.initialize()
    assert layer(np.array([[-1.0, 1.0]])).asnumpy()[0].tolist() == pytest.approx([0, 1], abs=1e-5)


def test_copies_learn_by_themselves():
    net = nn.HybridSequential()
    net.add(nn.Dense(1), nn.Dense(1, in_units=1))
    net.initialize()
    for _ in range(2):  # before and after the first forward pass
        twin = copy.deepcopy(net)
        x = np.ones((1, 2))
        net(x)
        with autograd.record():
            y = twin(x)
        y.backward()
        assert (twin[1].bias.grad() == 1).all() and (net[1].bias.grad() == 0).all()
        twin[1].bias.set_data(np.array([5.0]))
        assert net[1].bias.data().item() == 0


def test_functions_as_blocks():
    assert nn.HybridLambda("relu")(np.array([-1.0, 2.0])).asnumpy().tolist() == [0, 2]
    assert nn.Lambda("batch_flatten")(np.ones((2, 3, 4))).shape == (2, 12)
    assert repr(nn.HybridLambda(lambda F, x: x)) == "HybridLambda(<lambda>)"
    with pytest.raises(ArgumentError, match="no operation"):
        nn.Lambda("nothing_like_it")


def test_wrong_arguments_of_layers():
    with pytest.raises(ArgumentError, match="kernel_size"):
        nn.Conv2D(3, (1, 2, 3))
    with pytest.raises(ArgumentError, match="layout"):
        nn.Conv2D(3, 1, layout="CHWN")
    with pytest.raises(ArgumentError, match="slope"):
        nn.LeakyReLU(-1)
