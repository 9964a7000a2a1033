"""Parameters and dictionaries of them: initialisation, shapes, gradients, contexts."""

import pytest

from heterosis import autograd, cpu, gpu, init, np
from heterosis.gluon import (
    Constant,
    DeferredInitializationError,
    HybridBlock,
    Parameter,
    ParameterDict,
    Trainer,
    nn,
)
from heterosis.runtime.errors import (
    ArgumentError,
    ShapeError,
    UninitializedError,
    UnsupportedError,
)


def test_life_of_a_parameter():
    p = Parameter("p", shape=(2, 3), init="ones")
    assert repr(p) == "Parameter p (shape=(2, 3), dtype=<class 'numpy.float32'>)"
    with pytest.raises(UninitializedError, match="Parameter 'p' has not been initialized"):
        p.data()
    p.initialize(ctx=[cpu(), cpu()])
    assert p.list_ctx() == [cpu()] and len(p.list_data()) == len(p.list_grad()) == 1
    assert (p.data() == 1).all() and (p.grad() == 0).all() and p.data(cpu()).shape == (2, 3)
    with pytest.warns(UserWarning, match="keeps the values that it has"):
        p.initialize()
    p.initialize("zeros", force_reinit=True)
    assert (p.data() == 0).all()
    p.set_data([[1, 2, 3], [4, 5, 6]])
    assert p.data().asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(ShapeError, match=r"\(3, 2\)"):
        p.set_data(np.ones((3, 2)))


def test_which_initialiser_is_used():
    own, default = init.Constant(2), init.Constant(3)
    for bias in (Parameter("x_bias", shape=1, init=own), Parameter("x_bias", shape=1)):
        bias.initialize(default_init=default)
        assert bias.data().item() == (2 if bias.init else 3)  # whatever the name
        bias.initialize("ones", default_init=default, force_reinit=True)
        assert bias.data().item() == 1


def test_deferred_initialisation_names_the_layer_and_the_remedy():
    layer = nn.Dense(2)
    layer.initialize()
    with pytest.raises(DeferredInitializationError) as caught:
        layer.weight.data()
    assert "'dense0_weight' of Dense 'dense0'" in str(caught.value)
    assert "(2, -1)" in str(caught.value) and "in_units" in str(caught.value)
    layer.weight.set_data(np.ones((2, 3)))
    assert layer(np.ones((1, 3))).asnumpy().tolist() == [[3, 3]]
    with pytest.raises(ShapeError, match="not fully known"):
        Parameter("q", shape=(2, 0)).initialize()


def test_shapes_are_completed_and_not_changed():
    p = Parameter("p", shape=(2, 0))
    assert p.shape == (2, -1) and not p.is_sized
    p.shape = (2, 5)
    with pytest.raises(ShapeError, match="does not agree"):
        p.shape = (2, 4)


def test_gradients_are_written_added_or_dropped():
    p = Parameter("p", shape=(2,), init="ones")
    p.initialize()

    def backward():
        with autograd.record():
            y = (p.data() * 3).sum()
        y.backward()

    backward()
    backward()
    assert p.grad().asnumpy().tolist() == [3, 3]
    p.grad_req = "add"
    backward()
    backward()
    assert p.grad().asnumpy().tolist() == [6, 6]
    p.zero_grad()
    assert (p.grad() == 0).all()
    p.grad_req = "null"
    with pytest.raises(ArgumentError, match="grad_req is 'null'"):
        p.grad()
    with autograd.record():
        y = p.data() * 3
    assert y._autograd is None
    with pytest.raises(ArgumentError, match="expected 'write'"):
        p.grad_req = "sometimes"


def test_casting_keeps_values_and_gradients():
    p = Parameter("p", shape=(2,), init="ones")
    p.initialize()
    p.grad()[:] = 5
    p.cast("float64")
    assert p.data().dtype.name == p.grad().dtype.name == "float64"
    assert p.grad().asnumpy().tolist() == [5, 5]
    with autograd.record():
        y = (p.data() * 2).sum()
    y.backward()
    assert p.grad().asnumpy().tolist() == [2, 2]


def test_constants():
    c = Constant("c", [1, 2])
    assert repr(c) == "Constant c (shape=(2,), dtype=float32)" and c.grad_req == "null"
    with pytest.warns(UserWarning, match="has no effect"):
        c.grad_req = "write"
    c.initialize()
    c.set_data(np.array([3.0, 4.0]))
    assert c.data().asnumpy().tolist() == [3, 4] and c.value.asnumpy().tolist() == [1, 2]


@pytest.mark.main_memory("the current context is cpu(0)")
def test_contexts():
    p = Parameter("p", shape=(2,))
    with pytest.raises(UnsupportedError, match=r"num_gpus\(\) is \d"):
        p.initialize(ctx=gpu(9))
    p.initialize(ctx=cpu())
    p.reset_ctx([cpu()])
    with pytest.raises(UnsupportedError):
        p.reset_ctx(gpu(9))
    with pytest.raises(UnsupportedError):
        p.data(gpu(9))
    with pytest.raises(UnsupportedError, match="dense"):
        Parameter("q", stype="row_sparse")
    with pytest.raises(UnsupportedError, match="dense"):
        p.row_sparse_data(np.array([0]))


def test_dictionaries():
    d = ParameterDict("net_")
    w = d.get("w", shape=(2, 0), allow_deferred_init=True)
    assert d.get("w", shape=(-1, 3)) is w and w.shape == (2, 3)
    assert list(d) == ["net_w"] and d["net_w"] is w and len(d) == 1
    with pytest.raises(ArgumentError, match="shape"):
        d.get("w", shape=(4, 3))
    with pytest.raises(ArgumentError, match="dtype"):
        d.get("w", dtype="float64")
    other = ParameterDict("other_", shared=d)
    assert other.shared is d
    d.setattr("lr_mult", 0.5)
    d.initialize(init.One())
    d.reset_ctx(cpu())
    d.zero_grad()
    assert w.lr_mult == 0.5 and d.list_ctx() == [cpu()] and (w.data() == 1).all()


class Scale(HybridBlock):
    """A block whose parameter no dictionary made."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.factor = Parameter("any", shape=(2,), init="ones")
        self.offset = Constant("any", [0.0, 1.0])

    def forward(self, x):
        return x * self.factor.data() + self.offset.data()


@pytest.mark.parametrize("hybrid", [False, True])
def test_parameters_made_without_a_dictionary_are_the_blocks(hybrid, tmp_path):
    net = nn.HybridSequential(prefix="")
    net.add(Scale(prefix="a_"), Scale(prefix="b_"))
    assert list(net.collect_params()) == ["a_factor", "a_offset", "b_factor", "b_offset"]
    assert [p.name for p in net.collect_params().values()] == list(net.collect_params())
    net.initialize()
    net.hybridize(hybrid)
    trainer = Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    with autograd.record():
        y = net(np.ones((1, 2)))
    y.backward()
    trainer.step(1)
    assert y.asnumpy().tolist() == [[1, 3]]
    assert net[0].factor.data().asnumpy().tolist() == [0.5, 0.5]
    assert net[1].factor.data().asnumpy().tolist() == [0.5, 0]
    net.save_parameters(tmp_path / "net.params")
    other = nn.HybridSequential()
    other.add(Scale(), Scale())
    other.load_parameters(tmp_path / "net.params")
    assert (other(np.ones((1, 2))) == net(np.ones((1, 2)))).all()
    net.cast("float16")
    assert net(np.ones((1, 2), dtype="float16")).dtype == "float16"


def test_what_has_a_name_from_a_dictionary_keeps_it():
    first, second = Scale(), HybridBlock()
    second.shared = first.factor
    second.tied = ParameterDict("of_").get("both", shape=(2,))
    assert second.shared.name == "scale0_factor" and second.tied.name == "of_both"
    assert not second.collect_params()
    second.params.update({"given": Parameter("given", shape=(2,))})
    second.given = second.params["given"]
    assert list(second.collect_params()) == ["given"]
    second.own = second.params.get("other", shape=(2,))
    with pytest.raises(ArgumentError, match="'hybridblock0_other' already; rename one"):
        second.other = Parameter("other", shape=(2,))
    assert list(second.collect_params()) == ["given", "hybridblock0_other"]


def test_constants_in_dictionaries():
    d = ParameterDict()
    c = d.get_constant("c", [1, 2])
    assert d.get_constant("c") is c and d.get_constant("c", [1, 2]) is c
    with pytest.raises(ArgumentError, match="another value"):
        d.get_constant("c", [1, 3])
    with pytest.raises(KeyError, match="give a value"):
        d.get_constant("d")
    d.get("w")
    with pytest.raises(ArgumentError, match="no constant"):
        d.get_constant("w", [1])


@pytest.mark.parametrize("argument", ["differentiable", "allow_deferred_init"])
def test_truths_that_are_none(argument):
    with pytest.raises(ArgumentError, match=f"{argument} is an array .*; expected True or False"):
        Parameter("weight", **{argument: np.ones(3)})
