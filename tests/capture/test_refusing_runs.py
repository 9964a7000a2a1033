"""Runs that refuse elements, an index or a matrix: the call does what Python does until then."""

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.runtime.errors import HeterosisError, IndexingError, LinearAlgebraError

SMALL, QUEUED = 8, 3_000_000  # the larger one is run by the engine


def _both(function):
    return function, heterosis.hybridize(function)


def _error_of(call):
    with pytest.raises(HeterosisError) as caught:
        result = call()
        result.wait_to_read()
    return type(caught.value)


@pytest.mark.parametrize("count", [SMALL, QUEUED])
@pytest.mark.parametrize("runs_before", [0, 1, 3])
def test_what_is_written_before_a_bad_index_stays(count, runs_before):
    def step(x, y, i):
        x += y
        x[1] = 7
        return y[i]

    good, bad = np.array([1, 2]), np.array([1, count + 7])
    found = []
    for one in _both(step):
        x, y = np.zeros(count), np.ones(count)
        for _ in range(runs_before):
            one(x, y, good).wait_to_read()
        error = _error_of(lambda: one(x, y, bad))  # noqa: B023
        assert error is IndexingError
        x = x[[0, 2, count - 1]].asnumpy()
        found.append(x)
        y.wait_to_read()
    numpy.testing.assert_array_equal(*found)
    assert found[1][0] == runs_before + 1


@pytest.mark.parametrize("count", [SMALL, QUEUED])
def test_an_array_that_is_written_in_place_keeps_its_elements(count):
    def put(cache, i, value):
        cache[i] = value

    for one in _both(put):
        cache = np.arange(count)
        for i in (1, 2, 3):
            one(cache, np.array(i), np.array(-1.0))
        with pytest.raises(IndexingError):
            one(cache, np.array(count + 1), np.array(-2.0))
        assert cache[:5].tolist() == [0, -1, -1, -1, 4]
        one(cache, np.array(0), np.array(-3.0))
        assert cache[:5].tolist() == [-3, -1, -1, -1, 4]


def test_a_matrix_that_is_refused():
    def step(total, matrix):
        total += 1
        return np.linalg.cholesky(matrix)

    for one in _both(step):
        total = np.zeros(2)
        one(total, np.eye(2)).wait_to_read()
        assert _error_of(lambda: one(total, -np.eye(2))) is LinearAlgebraError  # noqa: B023
        assert total.tolist() == [2, 2]


def test_every_size_of_an_open_program():
    def step(x, i):
        x *= 2
        return x[i]

    one = heterosis.hybridize(step, dynamic={"x": {0: "n"}})
    for count in (5, 6, 7, 6):
        x = np.ones(count)
        assert one(x, np.array([0])).tolist() == [2]
        with pytest.raises(IndexingError):
            one(x, np.array([count])).wait_to_read()
        assert x.tolist() == [4] * count
    assert one.captures <= 2


def test_keys_are_drawn_as_without_a_program():
    def step(x, i):
        x += np.random.uniform(size=(4,))
        return x[i]

    found = []
    for one in _both(step):
        np.random.seed(5)
        x = np.zeros(4)
        for i in (0, 1, 9, 2, 9, 3):
            if i < 4:
                one(x, np.array(i)).wait_to_read()
            else:
                assert _error_of(lambda: one(x, np.array(9))) is IndexingError  # noqa: B023
        found.append((x.asnumpy(), np.random.uniform(size=(2,)).asnumpy()))
    for eager, hybrid in zip(*found, strict=True):
        numpy.testing.assert_allclose(eager, hybrid, rtol=1e-6)


def test_lines_before_a_bad_index_are_printed(capsys):
    @heterosis.hybridize
    def step(x, i):
        npx.print("before", x)
        return x[i]

    step(np.ones(2), np.array(1)).wait_to_read()
    with pytest.raises(IndexingError):
        step(np.ones(2), np.array(5)).wait_to_read()
    assert capsys.readouterr().out.count("before") == 2


@pytest.mark.parametrize("count", [SMALL, QUEUED])
def test_a_step_that_an_optimizer_counts_leaves_all_as_it_was(count):
    weight = gluon.Parameter("weight", shape=(count,))
    weight.initialize("ones")
    trainer = gluon.Trainer({"weight": weight}, "adam", {"learning_rate": 0.1})

    @heterosis.hybridize
    def step(i):
        with autograd.record():
            loss = (weight.data()[i] ** 2).sum()
        loss.backward()
        trainer.step(1)
        return loss

    for _ in range(3):
        step(np.array([0, 1])).wait_to_read()
    before = weight.data()[:4].asnumpy()
    for _ in range(2):
        with pytest.raises(IndexingError):
            step(np.array([0, count])).wait_to_read()
    numpy.testing.assert_array_equal(weight.data()[:4].asnumpy(), before)
    assert trainer.optimizer.num_update == 3


def test_an_operands_error_leaves_what_does_not_follow_from_it():
    def step(x, y, z, i):
        x += 1
        y += z
        return x[i]

    one = heterosis.hybridize(step)
    x, y = np.zeros(3), np.zeros(QUEUED)
    one(x, y, np.ones(QUEUED), np.array(0)).wait_to_read()
    bad = np.zeros(QUEUED)[np.arange(QUEUED) + 1]  # still to be found out
    _error_of(lambda: [one(x, y, bad, np.array(0)), y][1])
    assert x.tolist() == [2, 2, 2]
