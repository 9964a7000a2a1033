"""What leaves the pipeline is clean: no pass that has run would find anything to do again."""

import pytest

from heterosis import np
from heterosis.backends.native.compile.plans import machine
from heterosis.backends.native.stages.pipeline import STAGES, in_parts
from heterosis.capture import capture
from heterosis.capture.captured import Outside
from heterosis.gluon import nn, rnn
from heterosis.gluon.model_zoo import vision
from heterosis.passes.pipeline import optimized
from heterosis.passes.preparation import Split


def _convolutions():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
    net.add(nn.Conv2D(16, 3, groups=16), nn.BatchNorm(), nn.Conv2D(8, 1), nn.Dense(3))
    return net, (2, 8, 12, 12)


def _dense():
    net = nn.HybridSequential()
    net.add(nn.Dense(32, activation="relu"), nn.LayerNorm(), nn.Dense(2))
    return net, (16, 24)


NETWORKS = {
    "convolutions": _convolutions,
    "dense": _dense,
    "recurrent": lambda: (rnn.LSTM(8), (5, 3, 7)),
    "squeezenet": lambda: (vision.squeezenet1_1(classes=3), (1, 3, 224, 224)),
    "mobilenet": lambda: (vision.mobilenet_v2_0_25(classes=3), (1, 3, 32, 32)),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("with_parameters", [True, False])
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_what_is_scheduled_is_clean(network, with_parameters, dtype):
    net, shape = network()
    net.initialize()
    net.cast(dtype)
    x = np.ones(shape, dtype=dtype)
    net(x)
    captured = capture(lambda x: net(x), (x,), {})
    inputs = zip(captured.program.inputs, captured.sources, strict=True)
    fixed = [v for v, source in inputs if isinstance(source, Outside) and with_parameters]
    found = in_parts(captured.program, fixed, machine())
    assert isinstance(found, Split) or not with_parameters or dtype == "float16"
    for part in (found.preparation, found.rest) if isinstance(found, Split) else (found,):
        assert str(optimized(part)) == str(part)


def test_a_stage_without_work_gives_the_program_itself():
    x = np.ones((3, 4))
    program = capture(lambda x: np.tanh(x) * 2, (x,), {}).program
    clean = optimized(program)
    for stage in STAGES:
        assert stage.run(clean, [], machine()) is clean
