"""Errors of queued work: raised where a result is read, and at `waitall`; nothing else suffers."""

import inspect

import numpy
import pytest

from heterosis import hybridize, np, npx
from heterosis.runtime.errors import ArgumentError, HeterosisError
from tests.core.native import closed_gate, fail, pass_gate


def _fails(x):
    return fail(x), inspect.currentframe().f_lineno


def test_raised_by_a_read_with_operation_shapes_and_line():
    y, line = _fails(np.array(numpy.zeros((2, 3))))
    with pytest.raises(ArgumentError) as caught:
        y.asnumpy()
    message = str(caught.value)
    assert "fail(" in message
    assert "[2, 3]" in message
    assert "not to its liking" in message
    assert f"{__file__}:{line}" in message


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y.wait_to_read(),
        lambda y: y.asnumpy(),
        lambda y: y.tolist(),
        lambda y: y[0, 0].item(),
        lambda y: float(y[0, 0]),
        lambda y: bool(y[0, 0]),
        repr,
        str,
        memoryview,
        numpy.asarray,
        lambda y: y.__dlpack__(),
    ],
)
def test_raised_by_every_kind_of_read(read):
    y = fail(np.array([[1, 2]]))
    with pytest.raises(ArgumentError):
        read(y)


def test_raised_by_what_depends_on_it_and_by_nothing_else():
    x = np.array([1, 2])
    failed, fine = fail(x), x * 2
    dependent = (failed + 1).T[::-1]
    with pytest.raises(ArgumentError):
        dependent.wait_to_read()
    with pytest.raises(ArgumentError):  # and again, each time that somebody asks
        dependent.wait_to_read()
    assert fine.tolist() == [2, 4]
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(
    "empty",
    [
        lambda x: x[:0],
        lambda x: x[:0] * 2,
        lambda x: np.exp(x[:0]).sum(axis=1),
        lambda x: x[:0] @ x,
        lambda x: np.concatenate([x[:0], x[:0] + 1]),
        lambda x: np.split(x * 2, [0])[0],
        lambda x: x[:0].astype("float64"),
    ],
)
def test_raised_by_what_depends_on_it_and_has_no_elements(empty):
    """There is nothing to compute, eagerly or hybridized, but something to know."""
    for run in (empty, hybridize(empty)):
        with pytest.raises(ArgumentError):
            run(fail(np.ones((2, 2)))).wait_to_read()
        assert run(np.ones((2, 2))).shape[0] == 0


def test_raised_once_by_waitall():
    y = fail(np.array([1]))
    with pytest.raises(ArgumentError):
        npx.waitall()
    npx.waitall()
    with pytest.raises(ArgumentError):
        y.wait_to_read()


def test_waitall_counts_the_errors_that_it_does_not_show():
    kept = [fail(np.array([i])) for i in range(3)]
    with pytest.raises(ArgumentError, match="2 more errors"):
        npx.waitall()
    assert len(kept) == 3


def test_an_error_that_was_seen_is_not_raised_by_waitall_again():
    y = fail(np.array([1]))
    with pytest.raises(ArgumentError):
        y.asnumpy()
    npx.waitall()


def test_raised_by_waitall_when_nobody_keeps_the_result():
    fail(np.array([1]))
    with pytest.raises(ArgumentError):
        npx.waitall()


def test_an_array_whose_update_failed_can_be_written_anew(queued):
    x = np.array([1, 2])
    x[:] = fail(x)
    with pytest.raises(ArgumentError):
        x.asnumpy()
    x[:] = 5
    assert (x + 1).tolist() == [6, 6]


def test_the_engine_works_after_many_errors():
    x = np.array([1, 2])
    for _ in range(200):
        y = fail(x)
        with pytest.raises(ArgumentError):
            (y + 1).wait_to_read()
    assert (x + 1).tolist() == [2, 3]


def test_not_raised_before_the_task_runs():
    with closed_gate() as gate:
        x = np.array([1, 2])
        late = fail(pass_gate(gate, x))
        assert (x + 1).tolist() == [2, 3]
    with pytest.raises(HeterosisError):
        late.wait_to_read()
