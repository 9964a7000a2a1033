"""The known models: MXNet's structure and names, its numbers, parameters from local files."""

import json
from pathlib import Path

import numpy
import pytest

from heterosis import np
from heterosis.gluon.model_zoo import vision
from heterosis.runtime.errors import ArgumentError, UnsupportedError
from tests.gluon.model_zoo import zoo

STORED = json.loads((Path(__file__).parent / "mxnet_zoo.json").read_text())


@pytest.mark.parametrize("name", zoo.NAMES)
def test_structure_and_names(name):
    assert zoo.structure(vision.get_model(name, prefix="net_")) == STORED["structure"][name]


@pytest.mark.parametrize("name, keywords, shape", zoo.RUNS, ids=[run[0] for run in zoo.RUNS])
def test_outputs(name, keywords, shape):
    net = vision.get_model(name, prefix="net_", **keywords)
    found = zoo.outputs(net, shape, np.array)
    expected = STORED["outputs"][name]
    numpy.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.main_memory("where get_model's ctx is, unless it is named")
def test_parameters_come_from_local_files(tmp_path):
    net = vision.mobilenet0_25(classes=2)
    net.initialize()
    net(np.ones((1, 3, 32, 32)))
    net.save_parameters(str(tmp_path / "mobilenet0.25-0123abcd.params"))
    again = vision.get_model("mobilenet0.25", classes=2, pretrained=True, root=str(tmp_path))
    assert (again.output.weight.data() == net.output.weight.data()).all()
    with pytest.raises(
        UnsupportedError, match=r"resnet18_v1\.params.*nothing is fetched.*get_model\('resnet18_v1'"
    ):
        vision.resnet18_v1(pretrained=True, root=str(tmp_path))


def test_unknown_models():
    with pytest.raises(ArgumentError, match="alexnet, densenet121"):
        vision.get_model("resnet19")
    for make in (lambda: vision.get_resnet(3, 18), lambda: vision.get_vgg(12)):
        with pytest.raises(ArgumentError, match="expected"):
            make()
