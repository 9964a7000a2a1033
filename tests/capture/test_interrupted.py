"""What a function has written before it raises is written, hybridized as eager."""

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.runtime.errors import CaptureError, ShapeError

_outside = np.zeros((2, 3))


def _argument(x):
    x[...] = np.exp(x)


def _part(x):
    x[0] = 7
    x[:, 1] += 2


def _view(x):
    x.T[1] = np.sum(x)


def _out(x):
    np.negative(x, out=x)


def _elsewhere(x):
    _outside[...] = x * 2


def _nothing(x):
    np.exp(x)


_WRITES = [_argument, _part, _view, _out, _elsewhere, _nothing]


def _by_hand(x):
    raise ValueError("enough")


def _by_an_operation(x):
    return x + np.ones((4, 5))


def _by_python(x):
    return x.no_such_attribute


_ERRORS = {_by_hand: ValueError, _by_an_operation: ShapeError, _by_python: AttributeError}


@pytest.mark.parametrize("write", _WRITES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("error", list(_ERRORS), ids=lambda f: f.__name__)
def test_writes_before_an_error(write, error):
    def run(x, fails):
        write(x)
        if fails:
            error(x)
            x[...] = -1  # never reached
        return x + 1

    def after(call):
        _outside[...] = 0
        x = np.arange(6).reshape(2, 3).copy()
        said = []
        for _ in range(2):
            with pytest.raises(_ERRORS[error]) as caught:
                call(x, True)
            said.append(str(caught.value))
        found = [x.asnumpy().copy(), _outside.asnumpy().copy()]
        return said, [*found, call(x, False).asnumpy()]

    wanted, found = after(run), after(heterosis.hybridize(run))
    assert found[0] == wanted[0]
    for one, other in zip(found[1], wanted[1], strict=True):
        numpy.testing.assert_array_equal(one, other)


def test_an_error_that_the_function_catches_ends_nothing():
    def run(x):
        x += 1
        try:
            x + np.ones((4, 5))
        except ShapeError:
            x *= 2
        return x

    eager, hybridized = np.ones((2, 3)), np.ones((2, 3))
    numpy.testing.assert_array_equal(
        run(eager).asnumpy(), heterosis.hybridize(run)(hybridized).asnumpy()
    )
    assert (hybridized == eager).all()


def test_what_cannot_be_captured_writes_nothing():
    """Such a function is to be changed: half of what it does would only confuse."""

    @heterosis.hybridize
    def run(x):
        x += 1
        return float(x.sum())

    x = np.ones((2, 3))
    with pytest.raises(CaptureError):
        run(x)
    assert (x == 1).all()


def test_the_error_is_the_function_s_own():
    error = ValueError("enough")

    def run(x):
        x += 1
        raise error

    with pytest.raises(ValueError, match="enough") as caught:
        heterosis.hybridize(run)(np.ones(3))
    assert caught.value is error
    assert caught.traceback[-1].name == "run"
