"""The answers of MXNet's that lie beside the tests are those that it gives."""

from __future__ import annotations

import numpy
import pytest

from tests.differential import stored


def differing(kept, asked, place=""):
    """Where two answers differ."""
    if isinstance(kept, dict) and isinstance(asked, dict):
        if kept.keys() != asked.keys():
            return [f"{place}: {sorted(kept.keys() ^ asked.keys())}"]
        return [d for key in kept for d in differing(kept[key], asked[key], f"{place}/{key}")]
    if _is_numeric(kept) and _is_numeric(asked):
        kept, asked = numpy.asarray(kept, "float64"), numpy.asarray(asked, "float64")
        same = kept.shape == asked.shape and numpy.allclose(kept, asked, 1e-4, 1e-5, equal_nan=True)
        return [] if same else [f"{place}: {kept} and {asked}"]
    if isinstance(kept, list) and isinstance(asked, list) and len(kept) == len(asked):
        pairs = enumerate(zip(kept, asked, strict=True))
        return [d for i, (a, b) in pairs for d in differing(a, b, f"{place}/{i}")]
    return [] if kept == asked else [f"{place}: {kept!r} and {asked!r}"]


def _is_numeric(value):
    """Arrays, and lists of numbers alone."""
    return isinstance(value, numpy.ndarray | float | int) or (
        isinstance(value, list) and bool(value) and all(isinstance(v, float | int) for v in value)
    )


@pytest.mark.parametrize("file", stored.FILES)
def test_what_is_stored_is_what_mxnet_says(mxnet, file):
    assert differing(stored.stored(file), stored.asked(mxnet, file)) == []


def test_differences_are_found():
    kept = {"a": [1.0, [2.0, "x"]], "b": [numpy.ones(2)]}
    assert differing(kept, {"a": [1.0, [2.0, "x"]], "b": [numpy.ones(2)]}) == []
    assert differing(kept, {"a": [1.0, [2.1, "y"]], "b": [numpy.ones(3)]}) == [
        "/a/1/0: 2.0 and 2.1", "/a/1/1: 'x' and 'y'", "/b/0: [1. 1.] and [1. 1. 1.]",
    ]  # fmt: skip
    assert differing(kept, {"a": kept["a"]}) == [": ['b']"]
