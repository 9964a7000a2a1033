"""MXNet's small modules: what programs find in them."""

import numpy
import pytest

from heterosis import nd, npx
from heterosis.mxnet.compat.facade import engine, io, runtime, test_utils, util
from heterosis.ndarray import random
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError


def test_numpy_semantics_are_on():
    assert util.is_np_array()
    assert util.is_np_shape()
    assert util.set_np_shape(True)
    with util.np_shape(), util.np_array(True):
        assert util.is_np_shape()


def test_switching_them_off_warns():
    with pytest.warns(UserWarning, match="cannot be switched off"):
        util.set_np_shape(False)
    with pytest.warns(UserWarning, match="cannot be switched off"), util.np_array(False):
        assert util.is_np_array()


def test_use_np_leaves_functions_and_classes_as_they_are():
    assert util.use_np(len) is len
    assert util.use_np_shape(dict) is dict
    with pytest.raises(DTypeError, match="neither a function nor a class"):
        util.use_np_array(1)


@pytest.mark.parametrize(
    "key, value, legal",
    [
        ("where", None, True),
        ("casting", "safe", True),
        ("casting", "never", False),
        ("order", "C", True),
        ("dtype", "float32", True),
        ("dtype", numpy.int16, False),
        ("subok", 1, False),
        ("other", 1, False),
    ],
)
def test_options_of_ufuncs(key, value, legal):
    assert util.np_ufunc_legal_option(key, value) is legal


def test_bulk_sizes_are_remembered():
    before = engine.set_bulk_size(10)
    with engine.bulk(3):
        assert engine.set_bulk_size(3) == 3
    assert engine.set_bulk_size(before) == 10


def test_features():
    features = runtime.Features()
    assert features.is_enabled("cpu_sse2")
    assert not features.is_enabled("CUDA")
    assert len(features) == len(runtime.feature_list()) == 32
    with pytest.raises(ArgumentError, match="'NOPE' is no feature"):
        features.is_enabled("nope")


_VECTOR = (1.0, 2.0)


@pytest.mark.parametrize(
    "draw, parameters, mean",
    [
        (random.uniform, (0.0, 2.0), 1.0),
        (random.normal, (3.0, 1.0), 3.0),
        (random.gamma, (2.0, 3.0), 6.0),
        (random.exponential, (2.0,), 2.0),
        (random.poisson, (4.0,), 4.0),
        (random.negative_binomial, (3, 0.5), 3.0),
        (random.generalized_negative_binomial, (2.0, 0.5), 2.0),
        (random.generalized_negative_binomial, (2.0, 0.0), 2.0),
    ],
)
def test_random_numbers(draw, parameters, mean):
    random.seed(3)
    drawn = draw(*parameters, shape=(4000,))
    assert drawn.dtype == "float32"
    assert abs(drawn.mean().item() - mean) < 0.25
    assert draw(*parameters).shape == (1,)
    each = draw(*(nd.array([p, p]) for p in parameters), shape=3)
    assert each.shape == (2, 3)


def test_random_choices():
    assert random.multinomial(nd.array([0.0, 1.0])).asnumpy().tolist() == [1]
    assert random.multinomial(nd.array([[0.0, 1.0]]), shape=3).shape == (1, 3)
    assert random.randint(2, 3, shape=(2,)).asnumpy().tolist() == [2, 2]
    assert sorted(random.shuffle(nd.arange(4)).asnumpy().tolist()) == [0, 1, 2, 3]
    assert random.randn(2, 3, loc=1.0).shape == (2, 3)


@pytest.mark.parametrize(
    "handle, first, second",
    [
        ("pad", [([0, 1, 2], 0), ([3, 4, 0], 1)], [([0, 1, 2], 0), ([3, 4, 0], 1)]),
        ("discard", [([0, 1, 2], 0)], [([0, 1, 2], 0)]),
        ("roll_over", [([0, 1, 2], 0)], [([3, 4, 0], 2), ([1, 2, 3], 0)]),
    ],
)
def test_batches_of_arrays(handle, first, second):
    rows = io.NDArrayIter(numpy.arange(5), numpy.arange(5), 3, last_batch_handle=handle)
    for expected in (first, second):
        assert [(b.data[0].asnumpy().tolist(), b.pad) for b in rows] == expected
        rows.reset()


def test_batches_of_several_arrays():
    rows = io.NDArrayIter(
        {"a": numpy.ones((4, 2)), "b": nd.ones((4, 3))}, batch_size=2, shuffle=True
    )
    assert [(d.name, d.shape) for d in rows.provide_data] == [("a", (2, 2)), ("b", (2, 3))]
    assert rows.provide_label == []
    with pytest.raises(ShapeError, match="as many rows"):
        io.NDArrayIter(numpy.ones(2), numpy.ones(3))
    with pytest.raises(ArgumentError, match="batch_size"):
        io.NDArrayIter(numpy.ones(2), batch_size=3)


def test_arrays_keep_their_element_types_in_batches():
    rows = io.NDArrayIter(nd.array([1, 2], dtype="int32"), numpy.arange(2), 2)
    (batch,) = rows
    assert [x.dtype.name for x in (*batch.data, *batch.label)] == ["int32", "float32"]
    assert rows.provide_data[0].dtype is numpy.int32
    assert rows.provide_label[0].dtype is numpy.float32


def test_descriptions_of_inputs_are_pairs():
    rows = io.NDArrayIter(numpy.ones((4, 2)), numpy.ones(4), 2)
    shapes = dict(rows.provide_data + rows.provide_label)
    assert shapes == {"data": (2, 2), "softmax_label": (2,)}
    described = io.DataDesc("a", (2, 3), "int32", "TN")
    assert (described, described.dtype, described.layout) == (("a", (2, 3)), "int32", "TN")
    assert str(described) == "DataDesc[a,(2, 3),int32,TN]"
    assert [io.DataDesc.get_batch_axis(layout) for layout in ("TNC", "C", None)] == [1, -1, 0]
    listed = io.DataDesc.get_list([("a", (1,)), ("b", (2,))], [("a", "int32"), ("b", "int8")])
    assert [(*pair, pair.dtype) for pair in listed] == [("a", (1,), "int32"), ("b", (2,), "int8")]
    assert io.DataDesc.get_list([("a", (1,))], None)[0].dtype is numpy.float32


def test_batches_tell_their_shapes():
    batch = io.DataBatch([nd.ones((2, 3))], bucket_key=7)
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: None"
    assert (batch.label, batch.pad, batch.index, batch.bucket_key) == (None, None, None, 7)
    with pytest.raises(ArgumentTypeError, match=r"data is an array .*; expected a list of arrays"):
        io.DataBatch(nd.ones(2))


def test_iterators_go_step_by_step():
    rows = io.NDArrayIter(numpy.arange(3), numpy.arange(3), 2)
    with pytest.raises(ArgumentError, match="NDArrayIter is at no batch"):
        rows.getdata()
    found = []
    while rows.iter_next():
        (data,), (label,) = rows.getdata(), rows.getlabel()
        found.append((data.asnumpy().tolist(), label.asnumpy().tolist(), rows.getpad()))
    assert found == [([0, 1], [0, 1], 0), ([2, 0], [2, 0], 1)]


def test_iterators_of_ones_own_may_define_the_steps():
    class Counter(io.DataIter):
        count = 0

        def iter_next(self):
            self.count += 1
            return self.count < 3

        def getdata(self):
            return [nd.ones(1) * self.count]

    assert [int(batch.data[0]) for batch in Counter()] == [1, 2]
    with pytest.raises(NotImplementedError, match=r"neither next\(\) nor iter_next"):
        io.DataIter().next()


@pytest.mark.parametrize(
    "reset_internal, expected", [(True, [[0, 2], [0, 2]]), (False, [[0, 2], [4, 0]])]
)
def test_rounds_of_a_number_of_batches(reset_internal, expected):
    inner = io.NDArrayIter(numpy.arange(5), batch_size=2)
    rows = io.ResizeIter(inner, 2, reset_internal)
    for firsts in expected:
        assert [int(batch.data[0][0]) for batch in rows] == firsts
        rows.reset()


def test_helpers_of_tests():
    test_utils.assert_almost_equal(nd.ones((2,)), numpy.ones(2))
    with pytest.raises(AssertionError):
        test_utils.assert_almost_equal(nd.ones((2,)), numpy.zeros(2))
    assert test_utils.same(nd.ones((2,)), numpy.ones(2))
    assert not test_utils.almost_equal(nd.ones((2,)), numpy.zeros(2))
    assert test_utils.list_gpus() == []
    assert test_utils.default_context() == npx.cpu()
    assert len(test_utils.rand_shape_nd(3)) == 3


def test_loops_over_arrays():
    rows = nd.array([[1, 2], [3, 4]])
    outputs, states = nd.contrib.foreach(
        lambda row, states: (row + states[0], [row + states[0]]), rows, [nd.zeros((2,))]
    )
    assert outputs.asnumpy().tolist() == [[1, 2], [4, 6]]
    assert states[0].asnumpy().tolist() == [4, 6]
    outputs, (i, _) = nd.contrib.while_loop(
        lambda i, total: i < 2,
        lambda i, total: ([i + total], [i + 1, total + i]),
        (nd.array([0]), nd.array([1])),
        max_iterations=3,
    )
    assert outputs[0].asnumpy().tolist() == [[1], [2], [0]]
    assert i.item() == 2
    assert nd.contrib.cond(nd.array([0]), lambda: "then", lambda: "else") == "else"


def test_functions_that_are_no_operators(tmp_path):
    x = nd.array(numpy.arange(6).reshape(2, 3))
    assert x.dtype == "float32"
    nd.save(str(tmp_path / "x.params"), {"x": x})
    assert nd.load(str(tmp_path / "x.params"))["x"].shape == (2, 3)
    assert nd.concatenate([x, x], axis=1).shape == (2, 6)
    assert nd.from_numpy(numpy.ones(2, "int32")).dtype == "int32"
    assert nd.linspace(0, 1, 3).asnumpy().tolist() == [0, 0.5, 1]
    assert nd.moveaxis(x, 0, 1).shape == (3, 2)


def test_codes_of_shapes_where_numpy_sees_an_error():
    x = nd.ones((2, 3, 4))
    assert x.reshape((0, -1)).shape == (2, 12)
    assert x.reshape(-3, 0).shape == (6, 4)
    assert nd.ones((0, 3)).reshape((3, 0)).shape == (3, 0)
    with pytest.raises(ShapeError):
        x.reshape((0, 7))
