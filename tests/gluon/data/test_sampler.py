"""Samplers that go through one order in several processes."""

from itertools import chain

import pytest

from heterosis import np
from heterosis.gluon.data import ArrayDataset, DataLoader, SharedBatchSampler
from heterosis.runtime.errors import ArgumentError

# Samples, the size of batches, processes, and what becomes of the last batch.
CASES = [(64, 8, 2, "keep"), (22, 8, 3, "keep"), (22, 8, 4, "discard"), (7, 7, 7, "keep"),
         (5, 2, 1, "keep"), (0, 4, 2, "keep")]  # fmt: skip


@pytest.mark.parametrize("length, size, count, last", CASES)
@pytest.mark.parametrize("shuffle", [True, False])
def test_the_parts_are_the_batches_of_one_process(length, size, count, last, shuffle):
    def make(rank, of):
        return SharedBatchSampler(length, size, rank, of, shuffle, seed=3, last_batch=last)

    one, parts = make(0, 1), [make(rank, count) for rank in range(count)]
    orders = []
    for epoch in range(2):
        assert {sampler.epoch for sampler in (one, *parts)} == {epoch}
        whole, shares = list(one), [list(sampler) for sampler in parts]
        assert len(whole) == len(one) and {len(share) for share in shares} == {len(one)}
        for batch, *pieces in zip(whole, *shares, strict=True):
            assert list(chain(*pieces)) == batch
            assert {len(piece) - len(batch) // count for piece in pieces} <= {0, 1}
        orders.append(list(chain(*whole)))
    kept = length if last == "keep" else length // size * size
    assert [len(set(order)) for order in orders] == [kept, kept]
    assert (orders[0] == orders[1]) == (not shuffle or length == 0)


def test_passes_go_on_where_they_were_left():
    whole = SharedBatchSampler(20, 4, 1, 2)
    passes = [list(whole) for _ in range(3)]
    resumed = SharedBatchSampler(20, 4, 1, 2)
    resumed.resume(1, 3)
    assert len(resumed) == 2 and list(resumed) == passes[1][3:]
    assert len(resumed) == 5 and list(resumed) == passes[2]
    resumed.resume(0, 5)
    assert list(resumed) == [] and resumed.epoch == 1


def test_a_loader_takes_the_parts():
    dataset = ArrayDataset(np.arange(10))
    loader = DataLoader(dataset, batch_sampler=SharedBatchSampler(10, 4, 1, 2, shuffle=False))
    assert [batch.tolist() for batch in loader] == [[2, 3], [6, 7], [9]]


BAD = {
    "too small a rest": (lambda: SharedBatchSampler(9, 4, 0, 2), "make one of 1, too small for 2"),
    "too many": (lambda: SharedBatchSampler(9, 4, 0, 5), "one of 4, too small for 5"),
    "rank": (lambda: SharedBatchSampler(9, 4, 2, 2), "rank=2 of 2 processes; expected 0 to 1"),
    "rollover": (lambda: SharedBatchSampler(9, 4, 0, 2, last_batch="rollover"), "'keep' or"),
    "resume": (lambda: SharedBatchSampler(8, 4, 0, 2).resume(0, 3), "batch 3 of a pass of 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    make, message = BAD[name]
    with pytest.raises(ArgumentError, match=message):
        make()
