"""When what a captured program gives is what eager operations give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from heterosis import autograd, np
from heterosis.ir.types import is_float


def same(
    found: Any, wanted: Any, ulps: float = 4, what: str = "", least: float = 0.0
) -> None:  # fmt: skip
    """Equal: exactly for whole numbers, for floats to some units in the last place of the largest
    finite element, or of `least` if that is larger."""
    if isinstance(wanted, list | tuple):
        assert type(found) is type(wanted) and len(found) == len(wanted), what
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            same(a, b, ulps, f"{what}[{i}]", least)
    elif isinstance(wanted, np.ndarray):
        _same_array(found, wanted, ulps, what, least)
    else:
        assert found == wanted, what


def _same_array(found: Any, wanted: Any, ulps: float, what: str, least: float) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), what
    a, b = found.asnumpy(), wanted.asnumpy()
    if not is_float(wanted.dtype.name):
        numpy.testing.assert_array_equal(a, b, what)
        return
    a, b = a.astype("float64"), b.astype("float64")
    finite = numpy.abs(b[numpy.isfinite(b)])
    near = ulps * float(np.finfo(wanted.dtype).eps)
    numpy.testing.assert_allclose(a, b, near, near * finite.max(initial=least), err_msg=what)


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays of a structure."""
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves(item)
    elif isinstance(tree, np.ndarray):
        yield tree


def with_gradients(call: Any, variables: list[Any]) -> tuple[list[Any], list[Any]]:
    """The arrays that `call()` returns while it is recorded, and the variables' gradients."""
    for v in variables:
        v.attach_grad()
    with autograd.record():
        results = list(leaves(call()))
    heads = [r for r in results if r._autograd is not None]
    if heads:
        autograd.backward(heads, list(map(_weights, heads)))
    return results, [v.grad.copy() for v in variables]


def _weights(head: Any) -> Any:
    """What a head receives: other numbers for each element."""
    return np.array(2 + numpy.cos(numpy.arange(head.size)).reshape(head.shape), dtype=head.dtype)
