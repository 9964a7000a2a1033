"""fit: what it takes, returns and shows."""

import io
import json
import math
import os
import subprocess
import sys

import pytest

from heterosis import gluon, metric, np
from heterosis.gluon import nn
from heterosis.gluon.contrib.estimator import LoggingHandler
from heterosis.gluon.data import ArrayDataset, DataLoader
from heterosis.gluon.training.history import History
from heterosis.gluon.training.progress import Bar, display
from heterosis.optimizer import Adam
from heterosis.runtime.errors import ArgumentError, MissingPackageError
from tests.gluon.training.fit_cases import (
    FEATURES,
    LABELS,
    LOSS,
    Crash,
    CrashAt,
    loader,
    made,
    network,
    seed,
    validation,
)

# -- the call ------------------------------------------------------------------------------------


@pytest.mark.lengthy
def test_one_call_trains():
    np.random.seed(0)
    net = network()
    history = gluon.fit(
        net, loader(), loss=LOSS, epochs=12, optimizer_params={"learning_rate": 0.05},
        validation=validation(), progress=False,
    )  # fmt: skip
    assert list(history) == ["loss", "accuracy", "validation loss", "validation accuracy"]
    assert history.epochs == len(history["loss"]) == len(history.seconds) == 12
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    assert history.best == min(history["validation loss"])
    assert "12 epochs, best validation loss" in repr(history)


def test_metrics_and_optimizers():
    mine = metric.CrossEntropy(name="entropy")
    net = nn.HybridSequential()
    net.add(nn.Dense(2), nn.HybridLambda("softmax"))
    history = gluon.fit(
        net, loader(), loss=gluon.loss.SoftmaxCrossEntropyLoss(from_logits=True),
        metrics=["acc", mine], optimizer=Adam(learning_rate=0.01), progress=False,
    )  # fmt: skip
    assert list(history) == ["loss", "accuracy", "entropy"] and mine.name == "entropy"


def test_early_stopping(tmp_path, capsys):
    seed(0)  # running statistics move, and improve some networks for all of nine epochs
    net, trainer = made("sgd", learning_rate=0.0)

    def once(**given):
        return gluon.fit(
            net, loader(), loss=LOSS, trainer=trainer, validation=validation(), epochs=9, **given
        )

    assert once(early_stopping={"patience": 2}, checkpoint=tmp_path).epochs < 9
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("stopped: validation loss was no better for 2 epochs; the best is")
    stopped = once(early_stopping=2, checkpoint=tmp_path).epochs
    assert stopped < 9
    assert once(early_stopping=6, checkpoint=tmp_path).epochs > stopped


BAD = {
    "loss": ({"loss": 3}, "gluon.loss"),
    "monitor": ({"monitor": "speed"}, "expected one of 'loss', 'accuracy'"),
    "validation": ({"monitor": "validation loss"}, "expected one of"),
    "mode": ({"mode": "up"}, "'auto', 'min', 'max'"),
    "patience": ({"early_stopping": 0}, "at least 1"),
    "true": ({"early_stopping": True}, "at least 1"),
    "names": ({"metrics": ["acc", "acc"]}, "different names"),
    "no name": ({"metrics": ["speed"]}, "speed"),
    "custom": ({"metrics": [metric.np(lambda a, b: 1.0, "mine")], "monitor": "mine"}, "mode='max'"),
    "two trainers": ({"trainer": object(), "optimizer": "sgd"}, "leave optimizer"),
    "trainer": ({"trainer": object()}, "gluon.trainer.Trainer"),
    "epochs": ({"epochs": 0}, "above 0"),
    "handlers": ({"handlers": [print]}, "TrainBegin"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    given, message = BAD[name]
    net = nn.Dense(2, in_units=6)
    with pytest.raises(ArgumentError, match=message):
        gluon.fit(net, loader(), **({"loss": LOSS, "progress": False} | given))


def test_data_that_is_no_loader_or_empty():
    with pytest.raises(ArgumentError, match="DataLoader"):
        gluon.fit(network(), [(1, 2)], loss=LOSS, progress=False)
    empty = DataLoader(ArrayDataset(FEATURES[:3], LABELS[:3]), 4, last_batch="discard")
    with pytest.raises(ArgumentError, match="no batches"):
        gluon.fit(network(), empty, loss=LOSS, progress=False)


# -- what is shown -------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self):
        return True


def test_a_line_an_epoch_where_nobody_watches(capsys):
    gluon.fit(network(), loader(), loss=LOSS, epochs=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2/2  loss 0.")
    assert "accuracy 0." in lines[1] and lines[1].endswith(" s")
    gluon.fit(network(), loader(), loss=LOSS, progress=False)
    assert capsys.readouterr().out == ""


def test_a_bar_in_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("heterosis.gluon.training.progress._PAUSE", 0)
    with pytest.raises(Crash):
        gluon.fit(network(), loader(), loss=LOSS, epochs=3, handlers=CrashAt(14))
    text = terminal.getvalue()
    assert "epoch 2/3" in text and "6/6" in text and "loss 0." in text and "\x1b[?25h" in text


@pytest.mark.lengthy
def test_rich_is_imported_for_terminals_only():
    program = (
        "import sys; from heterosis.gluon.training.progress import display; display(True);"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
    assert isinstance(display(True, Terminal()), Bar)


def test_a_logging_handler_is_heard(capsys):
    gluon.fit(network(), loader(), loss=LOSS, progress=False, handlers=LoggingHandler(2))
    assert "[Epoch 0][Batch 2][Samples 12]" in capsys.readouterr().out


# -- the history ---------------------------------------------------------------------------------


def history(values=(3.0, 1.0, float("nan"), 1.0)):
    made_ = History("loss", larger_is_better=False)
    for value in values:
        made_.add({"loss": value, "validation loss": 2 * value, "accuracy": 0.5}, 1.0)
    return made_


def test_the_first_of_the_best_epochs():
    assert history().best_epoch == 2 and history().best == 1.0
    assert history(()).best_epoch is None and repr(history(())) == "<History of 0 epochs>"
    with pytest.raises(KeyError, match="there are loss, validation loss, accuracy"):
        history()["speed"]


def test_metrics_that_some_epochs_lack():
    made_ = history((3.0,))
    made_.add({"loss": 2.0, "f1": 0.5}, 1.0)
    assert made_["accuracy"][0] == 0.5 and math.isnan(made_["accuracy"][1])
    assert math.isnan(made_["f1"][0]) and made_["f1"][1] == 0.5


def test_facts_are_data():
    other = History("loss", larger_is_better=False)
    other.restore(json.loads(json.dumps(history((3.0, 1.0)).facts())))
    assert dict(other) == dict(history((3.0, 1.0)))


def test_plots_need_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"heterosis\[plot\]"):
        history().plot(tmp_path / "a.png")
    with pytest.raises(ArgumentError, match="no ending"):
        history().plot(tmp_path / "a")
    with pytest.raises(ArgumentError, match="nothing to draw"):
        history(()).plot(tmp_path / "a.png")


@pytest.mark.lengthy
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plots(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    history().plot(str(tmp_path / f"curves.{suffix}"))
    assert (tmp_path / f"curves.{suffix}").stat().st_size > 1000
    assert len(os.listdir(tmp_path)) == 1
