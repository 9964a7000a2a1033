"""How arrays are put together into messages."""

import pytest

from heterosis import np
from heterosis.kvstore import buckets


def places(sizes, order=None, kinds=None, enough=100):
    kinds = kinds or ["float32"] * len(sizes)
    rows = [(i, (n,), k) for i, (n, k) in enumerate(zip(sizes, kinds, strict=True))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "ENOUGH", enough)
        return [b.places for b in buckets.planned(rows, order or range(len(sizes)))]


TABLE = {
    "all in one": ([1, 2, 3], None, None, [(0, 1, 2)]),
    "in their order": ([1, 2, 3], [2, 0, 1], None, [(2, 0, 1)]),
    "full": ([10, 20, 5, 10, 1], None, None, [(0, 1), (2, 3, 4)]),
    "large ones alone": ([5, 25, 5, 100], None, None, [(1,), (3,), (0, 2)]),
    "nothing to send": ([0, 3, 0], None, None, [(1,)]),
    "nothing at all": ([0], None, None, []),
    "types apart": ([9, 9, 9], None, ["float32", "int32", "float32"], [(0, 2), (1,)]),
    "summed as others": ([9, 9, 9], None, ["float32", "float16", "bfloat16"], [(0, 1, 2)]),
}


@pytest.mark.parametrize("name", TABLE)
def test_arrays_are_put_together(name):
    sizes, order, kinds, expected = TABLE[name]
    assert places(sizes, order, kinds) == expected


def test_what_lies_in_one_piece_is_sent_as_it_lies():
    (bucket,) = buckets.planned([("w", (2, 3), "float32")], [0])
    array, turned = np.ones((2, 3)), np.ones((3, 2)).T
    assert bucket.message([array]) is array and bucket.message([turned]) is not turned
    assert bucket.text == "exchange, part 1 of 1: 'w' (2, 3) float32"


def test_messages_are_taken_apart_as_they_were_put_together():
    rows = [("w", (2, 3), "float16"), ("b", (), "float32"), ("m", (2,), "bfloat16")]
    (bucket,) = buckets.planned(rows, [1, 2, 0])
    arrays = [np.full(shape, i + 1, dtype=kind) for i, (_, shape, kind) in enumerate(rows)]
    within = [arrays[i] for i in bucket.places]
    message = bucket.message(within)
    assert message.tolist() == [2, 3, 3, 1, 1, 1, 1, 1, 1] and message.dtype == "float32"
    bucket.unpack(message * 2, within)
    assert [a.astype("float32").sum().item() for a in arrays] == [12, 4, 12]
