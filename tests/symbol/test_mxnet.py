"""Networks that travel between real MXNet and us, where an interpreter that has it is named."""

from __future__ import annotations

import os

import pytest

from tests.differential.test_mxnet import VARIABLE, why_not
from tests.symbol import roundtrip
from tests.symbol.cases import architectures, layers
from tests.symbol.functions import FUNCTIONS

_SMALL = ("resnet18_v1", "mobilenet0.25")
NETWORKS = layers() + [case for case in architectures() if case[0] in _SMALL]
PROGRAMS = [(f"function{i}", text, shape) for i, (text, shape) in enumerate(FUNCTIONS)]
NEAR = 1e-5

pytestmark = pytest.mark.skipif(
    why_not(os.environ.get(VARIABLE)) is not None, reason=str(why_not(os.environ.get(VARIABLE)))
)


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    rows = roundtrip.compare(NETWORKS, tmp_path_factory.mktemp("networks"))
    return {name: found for name, *found in rows}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    roundtrip.run_here("write", PROGRAMS, folder)
    ours = {name: roundtrip.arrays(folder, name) for name, _, _ in PROGRAMS}
    roundtrip.ask("read", [(name, "[]", shape) for name, _, shape in PROGRAMS], folder)
    return {
        name: roundtrip.difference(found, roundtrip.arrays(folder, name))
        for name, found in ours.items()
    }


@pytest.mark.parametrize("name", [name for name, _, _ in NETWORKS])
def test_networks_compute_the_same_in_both(networks, name):
    ours_in_mxnet, mxnet_in_ours = networks[name]
    assert not isinstance(ours_in_mxnet, str) and ours_in_mxnet < NEAR, ours_in_mxnet
    assert not isinstance(mxnet_in_ours, str) and mxnet_in_ours < NEAR, mxnet_in_ours


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, text, _ in PROGRAMS])
def test_mxnet_computes_what_our_functions_do(programs, name, text):
    found = programs[name]
    assert not isinstance(found, str) and found < NEAR, f"{text}: {found}"
