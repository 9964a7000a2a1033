"""fit: what it returns and shows, and that interrupted training comes to the same end."""

import copy
import io
import json
import os
import random
import subprocess
import sys

import numpy
import pytest

from heterosis import autograd, gluon, init, lr_scheduler, metric, np
from heterosis.gluon import nn
from heterosis.gluon.contrib.estimator import BatchBegin, EpochEnd, LoggingHandler
from heterosis.gluon.data import ArrayDataset, DataLoader
from heterosis.gluon.training.history import History
from heterosis.gluon.training.progress import Bar, display
from heterosis.io.packing import pack, unpack
from heterosis.optimizer import Adam
from heterosis.runtime.errors import ArgumentError, FormatError, MissingPackageError

LOSS = gluon.loss.SoftmaxCrossEntropyLoss()
DRAWN = numpy.random.default_rng(7)
FEATURES = DRAWN.normal(size=(21, 6)).astype("float32")
LABELS = (FEATURES[:, 0] > FEATURES[:, 1]).astype("float32")


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(2))
    return net


def loader(kind="plain"):
    data = ArrayDataset(FEATURES, LABELS)
    if kind == "rollover":
        return DataLoader(data, 4, shuffle=True, last_batch="rollover")
    if kind == "reload":
        return DataLoader(data, 4, shuffle=True, auto_reload=True)
    if kind == "workers":
        noisy = data.transform_first(_noisy)
        return DataLoader(noisy, 4, shuffle=True, num_workers=1, auto_reload=True)
    if kind == "noisy":
        return DataLoader(data.transform_first(_noisy), 4, shuffle=True)
    return DataLoader(data, 4, shuffle=True)


def _noisy(x):
    """What transforms of one's own do: they draw from Python and from NumPy."""
    x = x + numpy.random.normal(0, 0.1, 6).astype("float32")
    return -x if random.random() < 0.1 else x


def validation():
    return DataLoader(ArrayDataset(FEATURES[:6], LABELS[:6]), 4)


def made(optimizer="adam", **settings):
    """A network and its trainer; what `np.random.seed` says, they are always the same."""
    net = network()
    net.initialize(init.Xavier())
    if not settings:
        settings = {"learning_rate": 0.02}
    return net, gluon.Trainer(net.collect_params(), optimizer, settings)


def seed(number):
    """Start all random numbers."""
    np.random.seed(number)
    numpy.random.seed(number)
    random.seed(number)


def everything(net, trainer):
    """All that training changes."""
    states = [(i, s) for i, s in sorted(trainer.updater.states.items())]
    leaves = [a for _, state in states for a in (state if isinstance(state, tuple) else (state,))]
    arrays = [p.data() for p in net._collect_params_with_prefix().values()]
    arrays += [a for a in leaves if a is not None]
    return [a.asnumpy() for a in arrays], trainer.optimizer.num_update, trainer.learning_rate


def assert_same(a, b):
    for mine, other in zip(a[0], b[0], strict=True):
        numpy.testing.assert_array_equal(mine, other)
    assert a[1:] == b[1:]


class Crash(Exception):
    """The machine fails."""


class CrashAt(BatchBegin):
    """Raises before the given batch."""

    def __init__(self, batch, error=Crash):
        self.left, self.error = batch, error

    def batch_begin(self, estimator, *args, **kwargs):
        self.left -= 1
        if self.left < 0:
            raise self.error


def run(net, trainer, data, folder=None, epochs=4, **given):
    return gluon.fit(
        net, data, loss=LOSS, trainer=trainer, epochs=epochs, validation=validation(),
        checkpoint=folder, progress=False, **given,
    )  # fmt: skip


# -- going on ------------------------------------------------------------------------------------

COURSES = {
    "adam": ({}, "plain"),
    "scheduled momentum": (
        {"optimizer": "sgd", "momentum": 0.9,
         "lr_scheduler": lr_scheduler.FactorScheduler(7, 0.5, base_lr=0.1)}, "plain"),
    "noise": ({"optimizer": "sgld", "learning_rate": 0.01}, "plain"),
    "rollover": ({}, "rollover"),
    "reload": ({}, "reload"),
    "noisy": ({}, "noisy"),
    "workers": ({}, "workers"),
}  # fmt: skip


@pytest.mark.parametrize("name", COURSES)
@pytest.mark.parametrize("crash", [14, "writing"])
def test_interrupted_training_ends_as_if_nothing_had_happened(name, crash, tmp_path, monkeypatch):
    settings, kind = COURSES[name]
    seed(3)
    net, trainer = made(**copy.deepcopy(settings))
    whole = run(net, trainer, loader(kind))
    expected = everything(net, trainer)

    seed(3)
    net, trainer = made(**copy.deepcopy(settings))
    if crash == "writing":
        run(net, trainer, loader(kind), tmp_path, epochs=2)
        np.random.seed(3)  # as a new process would, which then goes on
        with monkeypatch.context() as patched, pytest.raises(Crash):
            patched.setattr("os.fsync", _fail)
            run(net, trainer, loader(kind), tmp_path)
    else:
        with pytest.raises(Crash):
            run(net, trainer, loader(kind), tmp_path, handlers=CrashAt(crash))
    (tmp_path / "last.checkpoint.0123456789abcdef.partial").write_bytes(b"cut")

    seed(99)
    net, trainer = made(**copy.deepcopy(settings))
    history = run(net, trainer, loader(kind), tmp_path)
    assert_same(everything(net, trainer), expected)
    assert dict(history) == dict(whole) and history.epochs == 4
    assert np.random.get_state()[2] > 0


def _fail(handle):
    raise Crash


def test_a_process_that_dies_while_it_writes(tmp_path):
    """The file is whole whenever the process ends, and another process goes on from it."""
    done = [_in_a_process(tmp_path / "a", "4"), _in_a_process(tmp_path / "b", "4 die 3")]
    assert [d.returncode for d in done] == [0, 9], done[0].stderr
    suffixes = sorted(path.suffix for path in (tmp_path / "b").iterdir())
    assert suffixes == [".checkpoint", ".params", ".partial"]
    again = _in_a_process(tmp_path / "b", "4 more")
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[0].startswith("going on after epoch 2")
    assert again.stdout.splitlines()[-1] == done[0].stdout.splitlines()[-1]


def _in_a_process(folder, arguments):
    command = [sys.executable, "-m", "tests.gluon.fit_process", str(folder), *arguments.split()]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_layers_that_are_numbered_differently(tmp_path):
    """A trainer sorts its parameters by their names, and dense10 comes before dense9."""
    np.random.seed(1)
    net, trainer = made()
    run(net, trainer, loader(), epochs=2)
    expected = _values(net)

    np.random.seed(1)
    run(*made(), loader(), tmp_path, epochs=1)
    for _ in range(5):
        nn.Dense(1)
    net, trainer = made()
    assert [p.name for p in trainer.parameters][4:6] == ["dense10_bias", "dense10_weight"]
    run(net, trainer, loader(), tmp_path, epochs=2)
    for mine, other in zip(_values(net), expected, strict=True):
        numpy.testing.assert_array_equal(mine, other)


def _values(net):
    return [p.data().asnumpy() for p in net._collect_params_with_prefix().values()]


def test_accumulated_gradients_go_on(tmp_path):
    def course(folder, interrupted):
        np.random.seed(5)
        net, trainer = made("sgd", learning_rate=0.01)
        net.collect_params().setattr("grad_req", "add")
        if interrupted:
            run(net, trainer, loader(), folder, epochs=1)
            np.random.seed(8)
            net, trainer = made("sgd", learning_rate=0.01)
            net.collect_params().setattr("grad_req", "add")
        run(net, trainer, loader(), folder, epochs=2)
        return everything(net, trainer)

    assert_same(course(tmp_path / "b", True), course(tmp_path / "a", False))


def test_handlers_go_on(tmp_path):
    class Halving(EpochEnd):
        remembered = ("count",)
        count = 0

        def epoch_end(self, estimator, *args, **kwargs):
            self.count += 1
            estimator.trainer.set_learning_rate(0.1 / 2**self.count)

    net, trainer = made()
    run(net, trainer, loader(), tmp_path, epochs=2, handlers=Halving())
    net, trainer = made()
    handler = Halving()
    run(net, trainer, loader(), tmp_path, epochs=3, handlers=handler)
    assert handler.count == 3 and trainer.learning_rate == 0.0125


def test_a_finished_run_is_loaded_only(tmp_path):
    net, trainer = made()
    first = run(net, trainer, loader(), tmp_path, epochs=2)
    before = everything(net, trainer)
    net, trainer = made()
    assert dict(run(net, trainer, loader(), tmp_path, epochs=2)) == dict(first)
    assert_same(everything(net, trainer), before)
    assert run(*made(), loader(), tmp_path, epochs=1, resume=False).epochs == 1


def test_the_best_parameters_are_kept(tmp_path):
    net, trainer = made("sgd", learning_rate=5.0)  # so large that it does not go well
    seen = []

    class Watch(EpochEnd):
        def epoch_end(self, estimator, *args, **kwargs):
            seen.append(net[0].weight.data().asnumpy().copy())

    history = run(net, trainer, loader(), tmp_path, handlers=Watch(), monitor="validation accuracy")
    assert history.best == max(history["validation accuracy"])
    other = network()
    other.load_parameters(str(tmp_path / "best.params"))
    best = seen[history.best_epoch - 1]
    numpy.testing.assert_array_equal(other[0].weight.data().asnumpy(), best)


def test_ctrl_c_leaves_a_usable_net_and_the_last_checkpoint(tmp_path):
    np.random.seed(2)
    net, trainer = made()
    with pytest.raises(KeyboardInterrupt):
        run(net, trainer, loader(), tmp_path, handlers=CrashAt(9, KeyboardInterrupt))
    assert not autograd.is_recording() and not autograd.is_training()
    assert numpy.isfinite(net(np.array(FEATURES)).asnumpy()).all()
    assert run(net, trainer, loader(), tmp_path, epochs=2).epochs == 2


# -- files that are no checkpoints of this run ---------------------------------------------------


def _others(tmp_path):
    net = nn.Dense(2)
    run(net, None, loader(), tmp_path / "other", epochs=1)
    return (tmp_path / "other" / "last.checkpoint").read_bytes()


def _edited(data, **facts):
    arrays, known = unpack(data)
    return pack(arrays, known | facts)


UNFIT = {
    "empty": (lambda data, other: b"", "cut off"),
    "half": (lambda data, other: data[: len(data) // 2], "cut off"),
    "last byte": (lambda data, other: data[:-1], "cut off"),
    "text": (lambda data, other: b"\x80\x04junk" * 50, "no packed arrays"),
    "safetensors": (lambda data, other: pack({"a": np.ones(2)}, {}), "no checkpoint that fit"),
    "another net": (lambda data, other: other, "missing: '0.weight'"),
    "version": (lambda data, other: _edited(data, version=2), "version 2; expected 1"),
    "random": (lambda data, other: _edited(data, random={}), "damaged.*heterosis|damaged.*python"),
    "run": (lambda data, other: _edited(data, run={"history": 3}), "damaged"),
    "columns": (
        lambda data, other: _edited(data, run={"history": {"values": {"a": [1]}, "seconds": []}}),
        "different lengths",
    ),
    "order": (lambda data, other: _edited(data, order=["0.weight"]), "updates other parameters"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_unfit_checkpoints_change_nothing(name, tmp_path):
    edit, message = UNFIT[name]
    net, trainer = made()
    run(net, trainer, loader(), tmp_path, epochs=1)
    path = tmp_path / "last.checkpoint"
    path.write_bytes(edit(path.read_bytes(), _others(tmp_path)))
    net, trainer = made()
    net(np.array(FEATURES))
    before, drawn = everything(net, trainer), np.random.get_state()
    with pytest.raises(FormatError, match=f"last.checkpoint cannot be used(.|\n)*({message})"):
        run(net, trainer, loader(), tmp_path)
    assert_same(everything(net, trainer), before)
    assert np.random.get_state() == drawn


def test_a_checkpoint_of_another_optimizer(tmp_path):
    run(*made(), loader(), tmp_path, epochs=1)
    with pytest.raises(FormatError, match="Adam.*SGD"):
        run(*made("sgd"), loader(), tmp_path)


def test_what_json_cannot_say_is_refused(tmp_path):
    class Strange(EpochEnd):
        remembered = ("thing",)
        thing = object()

    with pytest.raises(ArgumentError, match="`remembered`"):
        run(*made(), loader(), tmp_path, epochs=1, handlers=Strange())
    assert list(tmp_path.glob("last*")) == []


# -- the call ------------------------------------------------------------------------------------


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
    "trainer": ({"trainer": object()}, "gluon.Trainer"),
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


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plots(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    history().plot(str(tmp_path / f"curves.{suffix}"))
    assert (tmp_path / f"curves.{suffix}").stat().st_size > 1000
    assert len(os.listdir(tmp_path)) == 1
