"""What statements check as the program runs: `assert`, and `raise` where arrays decide."""

import re
import sys
from contextlib import nullcontext

import numpy
import pytest

import heterosis
from heterosis import autograd, np

X = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)


def asserted(x):
    assert x.sum() > -9, f"at least {-9}"
    for row in np.concatenate([x, x, x]):
        assert row.min() > -3 and x.ndim == 2
        x = x + row
    return x


def raised(x):
    if x.sum() > 5:
        raise ValueError("too {} large")
    if x.max() > 1.1:
        y = x * 2
        scale = 3
    else:
        if x.min() < -3:
            raise KeyError
        y, scale = x, 3
    return y * scale


def raised_in_what_is_called(x):
    if x.sum() > 0:
        return raised(x)
    return -x


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("function", [asserted, raised, raised_in_what_is_called])
def test_checks(function, recorded):
    compiled = heterosis.hybridize(function)
    failed = []
    for shift in (0.3, -0.3, 0.05, 1.2, -3):
        x, y = (np.array(X + numpy.float32(shift)) for _ in range(2))
        x.attach_grad()
        y.attach_grad()
        recording = autograd.record if recorded else nullcontext
        try:
            with recording():
                expected = function(x)
        except (AssertionError, ValueError, KeyError) as error:
            failed.append(str(error).partition("\n")[0])  # pytest says more
            with pytest.raises(error.__class__, match=f"^{re.escape(failed[-1])}"):
                compiled(y).asnumpy()
            continue
        with recording():
            found = compiled(y)
        numpy.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5)
        if recorded:
            expected.backward()
            found.backward()
            numpy.testing.assert_allclose(y.grad.asnumpy(), x.grad.asnumpy(), rtol=1e-5)
    assert len(failed) in (1, 2)
    assert compiled.captures == 1 + recorded  # errors are looked at where nothing is


@pytest.mark.main_memory("the note names no operands")
def test_messages_of_checks(tmp_path):
    """With notes, where no Python raises them from the user's line."""
    for function, x, error, message, line in (
        (asserted, X - 3, AssertionError, "at least -9", "assert"),
        (raised, X + 2, ValueError, "too {} large", "raise"),
    ):
        compiled = heterosis.hybridize(function)
        with pytest.raises(error, match=f"^{message}"):
            compiled(np.array(x))
        compiled.save(tmp_path / "saved", np.array(X))
        with pytest.raises(error, match=f"^{message}") as told:
            heterosis.load(tmp_path / "saved")(np.array(x)).asnumpy()
        _check_note(
            told.value, rf"\w+\(float32\[2, 3\]\): {line} at .*test_checked_at_run\.py:\d+$"
        )


def _check_note(error, pattern):
    if sys.version_info >= (3, 11):
        (note,) = error.__notes__
        assert re.match(pattern, note)
