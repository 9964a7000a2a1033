"""Random functions that print, raise and assert: eager and hybridized tell the same, and end
alike."""

import contextlib
import io
import linecache

import pytest

import heterosis
from heterosis import np, npx
from heterosis.runtime.errors import CaptureError, UnsupportedError
from tests.capture.told import source

GROUPS, EACH = 8, 8
OFTEN = 2  # groups that do not wait for a release
# Lists of numbers for `a` and `b`.
GIVEN = [([1, 2, 3], [0, 1, -1]), ([-2, 5, 0], [4, 4, 4]), ([6, -7, 2], [1, 0, 3]),
         ([0, 0, 9], [-3, 2, 8]), ([1, 2, 3], [0, 1, -1])]  # fmt: skip


class Own(Exception):
    pass


def _function(number):
    text, file = source(number), f"<told {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    found = {"np": np, "npx": npx, "Own": Own}
    exec(compile(text, file, "exec"), found)  # noqa: S102
    return found["program"]


def _told(function, given):
    """What is printed, and what is returned or raised; and what is left in the arguments."""
    arrays = [np.array(numbers, dtype="float32") for numbers in given]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            ended = [x.asnumpy().tolist() for x in function(*arrays)]
        except (CaptureError, UnsupportedError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, both ways are to raise it
            ended = type(error).__name__, error.args
        npx.waitall()
    return printed.getvalue(), ended, [x.asnumpy().tolist() for x in arrays]


@pytest.mark.slow
@pytest.mark.parametrize(
    "group", [pytest.param(g, marks=[pytest.mark.release] * (g >= OFTEN)) for g in range(GROUPS)]
)
def test_they_tell_the_same_and_end_alike(group):
    refused = 0
    for number in range(group * EACH, (group + 1) * EACH):
        function = _function(number)
        compiled = heterosis.hybridize(function)
        for given in GIVEN:
            expected = _told(function, given)
            try:
                found = _told(compiled, given)
            except (CaptureError, UnsupportedError):
                refused += 1
                break
            assert found == expected, source(number)
    assert refused <= 1  # or there is little to be seen here
