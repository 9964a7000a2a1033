"""Networks and operations that travel between real MXNet and us."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.mxnet.symbols import operations, roundtrip
from tests.mxnet.symbols.cases import architectures, layers
from tests.mxnet.symbols.functions import FUNCTIONS

_SMALL = ("resnet18_v1", "mobilenet0.25")
NETWORKS = layers() + [case for case in architectures() if case[0] in _SMALL]
OPERATIONS = {
    record: list(cases)
    for record, cases in groupby(operations.described(), lambda case: case[1].name)
}
NEAR = 1e-5


def near(found, bound=NEAR):
    return not isinstance(found, str) and found < bound


@pytest.mark.lengthy
@pytest.mark.parametrize("case", NETWORKS, ids=[name for name, _, _ in NETWORKS])
def test_networks_compute_the_same_in_both(mxnet, case, tmp_path):
    ((_, ours_in_mxnet, mxnet_in_ours),) = roundtrip.compare(mxnet, [case], tmp_path)
    assert near(ours_in_mxnet), ours_in_mxnet
    assert near(mxnet_in_ours), mxnet_in_ours


@pytest.mark.parametrize("text, shape", FUNCTIONS, ids=[text for text, _ in FUNCTIONS])
def test_mxnet_computes_what_our_functions_do(mxnet, text, shape, tmp_path):
    roundtrip.run_here("write", [("function", text, shape)], tmp_path)
    ours = roundtrip.arrays(tmp_path, "function")
    roundtrip.ask(mxnet, "read", [("function", "[]", shape)], tmp_path)
    found = roundtrip.difference(ours, roundtrip.arrays(tmp_path, "function"))
    assert near(found), found


@pytest.mark.parametrize("record", sorted(OPERATIONS))
def test_operations_are_written_so_that_both_compute_the_same(mxnet, record, tmp_path):
    """But for what MXNet has no words for, or does not take: what is listed must be so still."""
    outcomes = [operations.outcome(mxnet, *case, tmp_path) for case in OPERATIONS[record]]
    refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert bool(refused) == (record in operations.PARTLY), outcomes
    distances = [outcome for outcome in outcomes if not isinstance(outcome, str)]
    assert all(near(again, 1e-4) for _, again in distances), distances
    agree = all(near(there, 1e-4) for there, _ in distances)
    assert agree == (record not in operations.LIMITS), distances
