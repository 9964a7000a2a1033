"""Why functions are captured again: what differs from the call that was captured before."""

import warnings

import pytest

import heterosis
from heterosis import autograd, np


def _scaled(x, by="a", *more, state=None, **flags):
    return x * len(by)


_X, _LONGER = np.ones((2,)), np.ones((3,))

# The call before, the next one, and what is said of it.
CALLS = {
    "an extent": ((_X,), {}, (_LONGER,), {}, "x (float32[2] before, float32[3] now)"),
    "an element type": (
        (_X,), {}, (_X.astype("int32"),), {}, "x (float32[2] before, int32[2] now)",
    ),
    "a value": ((_X, "a"), {}, (_X, "bb"), {}, "by ('a' before, 'bb' now)"),
    "one more": ((_X,), {}, (_X, "a"), {}, "by is 'a', and was not among the arguments before"),
    "one less": ((_X, "a"), {}, (_X,), {}, "by is no longer among the arguments"),
    "inside": (
        (_X,), {"state": [_X, {"k": 1}]}, (_X,), {"state": [_X, {"k": 2.5}]},
        "state[1]['k'] (1 before, 2.5 now)",
    ),
    "a container": ((_X,), {"state": [1]}, (_X,), {"state": (1,)},
        "state (a list before, a tuple now)"),
    "any position": (
        (_X, "a", _X), {}, (_X, "a", _LONGER), {}, "more[0] (float32[2] before, float32[3] now)",
    ),
    "any name": (
        (_X,), {"deep": True}, (_X,), {"deep": None}, "flags['deep'] (True before, None now)",
    ),
    "an object": ((_X,), {"state": object()}, (_X,), {"state": object()},
        "state (a object before, another object now)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name):
    before, named_before, now, named_now, why = CALLS[name]
    compiled = heterosis.hybridize(_scaled, dynamic=False)
    compiled(*before, **named_before)
    compiled(*now, **named_now)
    assert list(compiled.captures_why) == ["the first call", why]


def test_modes():
    compiled = heterosis.hybridize(lambda x: x * 2)
    compiled(_X)
    with autograd.train_mode():
        compiled(_X)
    with autograd.record(train_mode=True):
        compiled(_X)
    assert list(compiled.captures_why) == [
        "the first call",
        "training mode (False before, True now)",
        "recording (False before, True now)",
    ]


def test_many_captures_are_told_of_once():
    compiled = heterosis.hybridize(_scaled, dynamic=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for extent in range(2, 20):
            compiled(np.ones((extent,)))
    (warning,) = told
    assert "captured 9 times, since its arguments change" in str(warning.message)
    assert "x (float32[9] before, float32[10] now)" in str(warning.message)
    assert warning.filename == __file__
    assert compiled.captures == 18
