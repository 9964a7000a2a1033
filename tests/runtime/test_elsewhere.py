"""Names of other libraries: the error says what is written here."""

import importlib

import pytest

import heterosis
from heterosis import gluon, np, optimizer
from heterosis.gluon import nn
from heterosis.runtime.elsewhere import HINTS
from heterosis.runtime.errors import MissingAttributeError

CLASSES = {
    "ndarray": np.ndarray,
    "Block": gluon.Block,
    "Trainer": gluon.Trainer,
    "Optimizer": optimizer.Optimizer,
    "Parameter": gluon.Parameter,
}
ROWS = [(place, name) for place, rows in HINTS.items() for name in rows]


@pytest.mark.parametrize("place, name", ROWS, ids=lambda part: part)
def test_a_name_that_is_missing_is_explained(place, name):
    here = CLASSES.get(place) or importlib.import_module(place)
    assert not hasattr(here, name), "it exists: its row belongs out of the table"
    with pytest.raises(MissingAttributeError) as caught:
        getattr(here, name)
    assert HINTS[place][name] in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: nn.Linear(3, 4), "nn.Dense"),
        (lambda: np.ones(3).numpy(), "asnumpy"),
        (lambda: np.ones(3).cuda(), "CPU"),
        (lambda: np.ones(3).at[0].set(1), "x[index] = value"),
        (lambda: heterosis.no_grad(), "autograd.pause"),
        (lambda: np.relu(np.ones(3)), "npx.relu"),
        (lambda: nn.Dense(2).parameters(), "collect_params"),
        (lambda: nn.Dense(2).train(), "autograd.record"),
        (lambda: optimizer.Adam().zero_grad(), "replaces gradients"),
        (lambda: gluon.loss.CrossEntropyLoss(), "SoftmaxCrossEntropyLoss"),
        (lambda: nn.GlobalAveragePooling2D(), "GlobalAvgPool2D"),
    ],
)
def test_programs_of_other_libraries_are_told_what_to_write(call, said):
    with pytest.raises(AttributeError, match="has no attribute") as caught:
        call()
    assert said in str(caught.value)


def test_a_trainer_is_told_too():
    net = nn.Dense(2, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"beta1": 0.8})
    with pytest.raises(AttributeError, match="backward"):
        trainer.zero_grad()


def test_unknown_names_stay_unknown():
    for module in (heterosis, np, heterosis.npx, gluon, nn, gluon.loss, optimizer):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = module.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        _ = np.ones(3).nonsense


def test_blocks_may_have_attributes_of_these_names():
    class Net(gluon.Block):
        def __init__(self):
            super().__init__()
            self.train = True
            self.fit = nn.Dense(2)

        def predict(self):
            return "mine"

    net = Net()
    assert {"train", "fit", "predict"} <= set(dir(net))
    assert not {"eval", "cuda"} & set(dir(net))
    assert not {"numpy", "cuda", "at"} & set(dir(np.ones(3)))
    assert "asnumpy" in dir(np.ones(3))
    assert net.train is True
    assert net.predict() == "mine"
    assert "fit" in net._children


def test_short_spellings_are_the_modules():
    assert heterosis.nn is nn
    assert heterosis.optim is optimizer


def test_objects_are_printed_with_what_they_are():
    net = nn.Dense(2, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.9})
    assert repr(trainer).startswith("Trainer(SGD(")
    assert "momentum=0.9" in repr(trainer) and "learning_rate=0.5" in repr(trainer)
    assert repr(trainer).endswith("2 parameters)")
    scheduler = heterosis.lr_scheduler.FactorScheduler(step=2)
    assert "lr_scheduler=" in repr(optimizer.Adam(lr_scheduler=scheduler))
    for name, kind in optimizer.Optimizer.opt_registry.items():
        assert repr(optimizer.create(name)).startswith(f"{kind.__name__}(")
    data = gluon.data.ArrayDataset(np.ones((10, 2)), np.ones(10))
    loader = gluon.data.DataLoader(data, batch_size=4, num_workers=0)
    assert repr(loader) == "DataLoader(ArrayDataset of 10, 3 batches)"
    assert repr(gluon.loss.L2Loss()).startswith("L2Loss(")
    assert repr(heterosis.hybridize(lambda x: x)).startswith("<hybridized")
