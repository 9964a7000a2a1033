"""Attention against PyTorch's figures, its masks at their edges, and how it is compiled."""

import numpy
import pytest

from heterosis import autograd, hybridize, np, npx
from heterosis.ops.nn import attention
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


RNG = numpy.random.default_rng(0)
# Queries, keys, and what else is given of long causal sequences.
LONG = {
    "as many keys": ((2, 3, 300, 8), (2, 3, 300, 8), {}),
    "fewer keys": ((2, 300, 8), (2, 100, 8), {"scale": 0.3}),
    "more keys": ((256, 8), (400, 8), {}),
    "mask": ((2, 300, 8), (2, 300, 8), {"attn_mask": RNG.random((2, 300, 300)) < 0.7}),
    "keys": ((2, 3, 280, 8), (2, 3, 280, 8), {"attn_mask": RNG.random((2, 1, 1, 280)) < 0.7}),
    "added": ((2, 257, 8), (2, 257, 8), {"attn_mask": RNG.normal(size=(257, 1))}),
    "shared heads": ((2, 4, 300, 8), (2, 2, 300, 8), {"enable_gqa": True}),
}  # fmt: skip


def called(given, query, key, value):
    given = {k: np.array(v) if isinstance(v, numpy.ndarray) else v for k, v in given.items()}
    return npx.scaled_dot_product_attention(query, key, value, is_causal=True, **given)


def recorded(function, arrays):
    """The result, and the gradients of a sum that all of it counts in."""
    for x in arrays:
        x.attach_grad()
    with autograd.record():
        found = function(*arrays)
        total = (found * np.cos(np.arange(found.size, dtype="float64")).reshape(found.shape)).sum()
    total.backward()
    return [found.asnumpy(), *(x.grad.asnumpy() for x in arrays)]


@pytest.mark.parametrize("name", LONG)
def test_long_causal_sequences_are_multiplied_in_blocks(name, monkeypatch):
    """What is left out of the products has counted for nothing."""
    rows, keys, given = LONG[name]
    arrays = [np.array(RNG.normal(size=size)) for size in (rows, keys, keys)]
    assert all(x.dtype == "float64" for x in arrays)
    masked = given["attn_mask"].shape if "attn_mask" in given else None
    assert len(attention._blocks(rows, keys[-2], masked)) > 1
    wanted = attention._reference(*(x.asnumpy() for x in arrays), is_causal=True, **given)
    for function in (lambda *x: called(given, *x), hybridize(lambda *x: called(given, *x))):
        numpy.testing.assert_allclose(function(*arrays).asnumpy(), wanted, rtol=1e-9, atol=1e-12)
    found = recorded(hybridize(lambda *x: called(given, *x)), arrays)
    monkeypatch.setattr(attention, "_LONG", 1 << 30)
    whole = recorded(hybridize(lambda *x: called(given, *x)), arrays)
    for one, other in zip(found, whole, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_a_mask_of_another_shape_is_refused_for_long_sequences_too():
    x = np.ones((2, 300, 8))
    with pytest.raises(ShapeError, match="do not broadcast"):
        npx.scaled_dot_product_attention(x, x, x, np.ones((7, 300)), is_causal=True)
    with pytest.raises(ShapeError, match=r"\(5, 300, 300\)"):
        npx.scaled_dot_product_attention(x, x, x, np.ones((5, 300, 300)), is_causal=True)
    y = x[:1]  # broadcast to the matrices of the keys
    assert npx.scaled_dot_product_attention(y, x, x, is_causal=True).shape == (2, 300, 8)


def test_one_program_serves_all_lengths():
    compiled = hybridize(lambda q, k, v: npx.scaled_dot_product_attention(q, k, v), dynamic=True)
    for length in (5, 9, 6):
        x = np.ones((2, length, 8))
        compiled(x, x, x)
    assert compiled.captures == 1
