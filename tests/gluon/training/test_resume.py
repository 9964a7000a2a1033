"""fit: interrupted training comes to the same end, and unfit checkpoints change nothing."""

import copy
import subprocess
import sys

import numpy
import pytest

from heterosis import autograd, lr_scheduler, np
from heterosis.gluon import nn
from heterosis.gluon.contrib.estimator import EpochEnd
from heterosis.io.packing import pack, unpack
from heterosis.runtime.errors import ArgumentError, FormatError
from tests.gluon.training.fit_cases import (
    FEATURES,
    Crash,
    CrashAt,
    assert_same,
    everything,
    loader,
    made,
    network,
    run,
    seed,
)

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


@pytest.mark.slow
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
    command = [
        sys.executable,
        "-m",
        "tests.gluon.training.fit_process",
        str(folder),
        *arguments.split(),
    ]
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
    "random": (lambda data, other: _edited(data, random={}), "KeyError: 'python'"),
    "run": (lambda data, other: _edited(data, run={"history": 3}), "facts is 3; expected"),
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
    with pytest.raises(FormatError, match=f"last.checkpoint: (.|\n)*({message})"):
        run(net, trainer, loader(), tmp_path)
    assert_same(everything(net, trainer), before)
    assert np.random.get_state() == drawn


def test_a_checkpoint_of_another_optimizer(tmp_path):
    run(*made(), loader(), tmp_path, epochs=1)
    with pytest.raises(FormatError, match=r"Adam.*SGD"):
        run(*made("sgd"), loader(), tmp_path)


def test_what_json_cannot_say_is_refused(tmp_path):
    class Strange(EpochEnd):
        remembered = ("thing",)
        thing = object()

    with pytest.raises(ArgumentError, match="`remembered`"):
        run(*made(), loader(), tmp_path, epochs=1, handlers=Strange())
    assert list(tmp_path.glob("last*")) == []


def _with_states(data, change):
    """A checkpoint whose optimizer's states were changed."""
    arrays, facts = unpack(data)
    states, described = unpack(arrays["optimizer"].asnumpy().tobytes())
    changed = pack(*change(states, described))
    arrays["optimizer"] = np.array(numpy.frombuffer(changed, "uint8"), dtype="uint8")
    return pack(arrays, facts)


def _attribute(facts, **values):
    described = facts["optimizer"]
    return facts | {"optimizer": described | {"attributes": described["attributes"] | values}}


MISFITS = {
    "shapes": (
        lambda s, f: ({n: a.reshape(-1)[:1] for n, a in s.items()}, f),
        "expected .*float32",
    ),
    "types": (lambda s, f: ({n: a.astype("int32") for n, a in s.items()}, f), "is .*int32"),
    "none": (lambda s, f: (s, f | {"states": [[k, None] for k, _ in f["states"]]}), "is nothing"),
    "strangers": (
        lambda s, f: (s, f | {"states": [[k + 9, v] for k, v in f["states"]]}),
        "not among",
    ),
    "text": (lambda s, f: (s, _attribute(f, beta1="0.9")), "beta1 cannot be '0.9'"),
    "nan": (lambda s, f: (s, _attribute(f, lr=float("nan"))), "lr cannot be nan"),
    "huge": (lambda s, f: (s, _attribute(f, num_update=10**400)), "num_update cannot be"),
    "switch": (lambda s, f: (s, _attribute(f, multi_precision=1)), "multi_precision cannot be 1"),
    "counts": (
        lambda s, f: (s, _attribute(f, _all_index_update_counts=[[0, [[0, -1]]]])),
        "updates",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_states_that_do_not_fit_change_nothing(name, tmp_path):
    change, message = MISFITS[name]
    net, trainer = made()
    run(net, trainer, loader(), tmp_path, epochs=1)
    path = tmp_path / "last.checkpoint"
    path.write_bytes(_with_states(path.read_bytes(), change))
    net, trainer = made()
    net(np.array(FEATURES))
    before, drawn = everything(net, trainer), np.random.get_state()
    with pytest.raises(FormatError, match=f"last.checkpoint: (.|\n)*({message})"):
        run(net, trainer, loader(), tmp_path)
    assert_same(everything(net, trainer), before)
    assert np.random.get_state() == drawn


@pytest.mark.parametrize("name", MISFITS)
def test_files_of_states_that_do_not_fit_change_nothing(name, tmp_path):
    change, message = MISFITS[name]
    net, trainer = made()
    run(net, trainer, loader(), None, epochs=1)
    path = tmp_path / "states"
    trainer.save_states(path)
    path.write_bytes(pack(*change(*unpack(path.read_bytes()))))
    before = everything(net, trainer)
    with pytest.raises(FormatError, match=f"states: (.|\n)*({message})"):
        trainer.load_states(path)
    assert_same(everything(net, trainer), before)


def test_a_place_outside_of_numpys_generator_is_refused(tmp_path):
    net, trainer = made()
    run(net, trainer, loader(), tmp_path, epochs=1)
    path = tmp_path / "last.checkpoint"
    random = unpack(path.read_bytes())[1]["random"]
    random["numpy"][2] = 100_000
    path.write_bytes(_edited(path.read_bytes(), random=random))
    with pytest.raises(FormatError, match="no place among the 624 numbers"):
        run(*made(), loader(), tmp_path)
