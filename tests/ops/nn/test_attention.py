"""Attention against PyTorch's figures, its masks at their edges, and how it is compiled."""

import numpy
import pytest

from heterosis import autograd, hybridize, np, npx
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError
from tests.backends import reference

GRID = numpy.arange(24.0)
QUERY = numpy.cos(GRID).reshape(1, 2, 3, 4)
KEY = numpy.sin(GRID).reshape(1, 2, 3, 4)
VALUE = numpy.sin(2 * GRID).reshape(1, 2, 3, 4)

# What torch.nn.functional.scaled_dot_product_attention gives in float64: the last row, and of the
# gradients of sum(GRID * result) by query, key and value row 1 of the last head.
FIGURES = {
    "plain": ({}, [
        [0.44246746, 0.03457512, -0.47124411, 0.35763838],
        [1.88693722, -1.98675156, -4.03383012, -2.37222387],
        [-1.78126776, -0.52652584, 1.21230151, 1.83654444],
        [16.36383589, 17.28778015, 18.21172441, 19.13566868],
    ]),
    "causal": ({"is_causal": True}, [
        [0.44246746, 0.03457512, -0.47124411, 0.35763838],
        [0.56914513, -3.16207017, -3.98609274, -1.14532003],
        [-2.22308633, -0.58786158, 1.58784039, 2.30368923],
        [15.43193978, 16.26764118, 17.10334259, 17.93904399],
    ]),
    "padded": ({"attn_mask": [[True, True, False]]}, [
        [0.27080243, 0.57405093, -0.74858139, 0.04898862],
        [0.56914513, -3.16207017, -3.98609274, -1.14532003],
        [0.24158427, -0.00733901, -0.24951484, -0.26228788],
        [25.94598758, 27.46304818, 28.98010877, 30.49716937],
    ]),
}  # fmt: skip
GROUPED = [0.15288109, -0.45143732, 0.22284734, 0.26596289]  # one head of keys for two of queries
ROOT_MEAN_SQUARE = [0.61689599, -1.65600019, -4.53491015, -3.22192605]


def operands(dtype="float64"):
    return [np.array(x, dtype=dtype) for x in (QUERY, KEY, VALUE)]


def near(found, expected):
    numpy.testing.assert_allclose(found.asnumpy(), expected, atol=2e-8)


@pytest.mark.parametrize("backend", [None, "native", reference.NAME])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_pytorch(name, backend):
    given, (row, *gradients) = FIGURES[name]
    given = {k: np.array(v, dtype="bool") if isinstance(v, list) else v for k, v in given.items()}

    def call(query, key, value):
        return npx.scaled_dot_product_attention(query, key, value, **given)

    variables = operands()
    for x in variables:
        x.attach_grad()
    with autograd.record():
        found = (hybridize(call, backend=backend) if backend else call)(*variables)
        total = (found * np.array(GRID, dtype="float64").reshape(found.shape)).sum()
    total.backward()
    near(found[0, 1, 2], row)
    for x, expected in zip(variables, gradients, strict=True):
        near(x.grad[0, 1, 1], expected)


def test_shared_heads_and_root_mean_square_as_in_pytorch():
    query, key, value = operands()
    found = npx.scaled_dot_product_attention(query, key[:, :1], value[:, :1], enable_gqa=True)
    near(found[0, 1, 2], GROUPED)
    near(npx.rms_norm(query, np.arange(1.0, 5.0, dtype="float64"))[0, 1, 2], ROOT_MEAN_SQUARE)


def test_queries_to_which_nothing_counts_get_zeros_and_give_no_gradient():
    nothing = np.array([[True] * 3, [False] * 3, [True] * 3], dtype="bool")
    added = np.where(nothing, 0.0, -numpy.inf).astype("float64")
    for mask in (nothing, added):
        query, key, value = operands()
        query.attach_grad()
        key.attach_grad()
        with autograd.record():
            found = npx.scaled_dot_product_attention(query, key, value, mask)
        found.backward()
        assert (found[:, :, 1] == 0).all() and (query.grad[:, :, 1] == 0).all()
        assert np.isfinite(key.grad).all() and np.abs(key.grad).max() > 0.01


def test_not_a_number_stays_with_added_masks():
    query, key, value = operands()
    query[0, 0, 0, 0] = float("nan")
    found = npx.scaled_dot_product_attention(query, key, value, np.zeros((3, 3), dtype="float64"))
    assert np.isnan(found[0, 0, 0]).all() and np.isfinite(found[0, 0, 1:]).all()


def test_halves_are_scored_in_single_precision():
    query = np.full((1, 4, 64), 100.0, dtype="float16")
    value = np.ones((1, 4, 2), dtype="float16")
    found = npx.scaled_dot_product_attention(query, query, value)
    assert found.dtype == "float16" and (found == 1).all()


def test_weights_are_dropped_in_training_alone():
    query, key, value = operands("float32")
    plain = npx.scaled_dot_product_attention(query, key, value)
    call = hybridize(lambda q, k, v: npx.scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    assert (call(query, key, value) == plain).all()
    with autograd.train_mode():
        first, second = (call(query, key, value) for _ in range(2))
    assert not (first == second).all()


FAULTS = [
    (ArgumentError, "dropout_p=2", lambda q, k, v: {"dropout_p": 2.0}),
    (DTypeError, "attn_mask has elements of int32", lambda q, k, v: {
        "attn_mask": np.ones((3, 3), dtype="int32")}),
    (ShapeError, "attn_mask of shape", lambda q, k, v: {"attn_mask": np.ones((2, 1, 3, 3))}),
    (ShapeError, "do not broadcast", lambda q, k, v: {"attn_mask": np.ones((2, 4))}),
    (ShapeError, r"expected .*, keys, width", lambda q, k, v: {"key": k[..., :3]}),
    (ShapeError, "a multiple", lambda q, k, v: {"query": q[:, :1], "enable_gqa": True}),
]  # fmt: skip


@pytest.mark.parametrize("error, message, change", FAULTS, ids=lambda x: x if str(x) == x else "")
def test_what_does_not_fit_is_refused(error, message, change):
    query, key, value = operands()
    given = {"query": query, "key": key, "value": value}
    with pytest.raises(error, match=message):
        npx.scaled_dot_product_attention(**given | change(query, key, value))


def test_one_program_serves_all_lengths():
    compiled = hybridize(lambda q, k, v: npx.scaled_dot_product_attention(q, k, v), dynamic=True)
    for length in (5, 9, 6):
        x = np.ones((2, length, 8))
        compiled(x, x, x)
    assert compiled.captures == 1
