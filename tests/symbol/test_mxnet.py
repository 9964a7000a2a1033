"""Networks that travel between real MXNet and us, where an interpreter that has it is named."""

from __future__ import annotations

import os

import pytest

from tests.differential.mxnet_process import VARIABLE, why_not
from tests.symbol import operations, roundtrip
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


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    """Of each case, what the operation gives here, in MXNet, and here from the symbol."""
    folder = tmp_path_factory.mktemp("operators")
    ours = {
        name: operations.write(name, record, case, folder)
        for name, record, case in operations.described()
        if record.name not in operations.LIMITS
    }
    cases = [(name, "[]", [1]) for name, found in ours.items() if not isinstance(found, str)]
    roundtrip.ask("read", cases, folder)
    theirs = {name: roundtrip.arrays(folder, name) for name, _, _ in cases}
    roundtrip.run_here("read", cases, folder)
    again = {name: roundtrip.arrays(folder, name) for name, _, _ in cases}
    return {name: (found, theirs.get(name), again.get(name)) for name, found in ours.items()}


@pytest.mark.parametrize("record", sorted({r.name for _, r, _ in operations.described()}))
def test_operations_are_written_so_that_both_compute_the_same(operators, record):
    if record in operations.LIMITS:
        pytest.skip(f"MXNet: {operations.LIMITS[record]}")
    for name, own, _ in operations.described():
        if own.name != record:
            continue
        here, there, again = operators[name]
        if isinstance(here, str):
            assert record in operations.PARTLY, here
            continue
        for found in (there, again):
            distance = roundtrip.difference(here, found)
            assert not isinstance(distance, str) and distance < 1e-4, f"{name}: {distance}"
