"""The helpers of MXNet's tests that programs use as well."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import np
from heterosis.runtime.context import Context, current_context, num_gpus


def default_context() -> Context:
    """The current context."""
    return current_context()


def list_gpus() -> list[int]:
    """The numbers of the GPUs: none."""
    return list(range(num_gpus()))


def same(a: Any, b: Any) -> bool:
    """Whether all elements are equal."""
    return bool(numpy.array_equal(_numbers(a), _numbers(b)))


def almost_equal(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-20, equal_nan: bool = False
) -> bool:
    """Whether all elements are nearly equal."""
    return bool(numpy.allclose(_numbers(a), _numbers(b), rtol, atol, equal_nan))


def assert_almost_equal(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-20, equal_nan: bool = False, **_: Any
) -> None:
    """Raises AssertionError where elements differ, and says which and how much."""
    numpy.testing.assert_allclose(_numbers(a), _numbers(b), rtol, atol, equal_nan)


def rand_shape_nd(num_dim: int, dim: int = 10) -> tuple[int, ...]:
    """A random shape of extents from 1 to `dim`."""
    return tuple(numpy.random.randint(1, dim + 1, num_dim).tolist())


def _numbers(given: Any) -> numpy.ndarray[Any, Any]:
    return given.asnumpy() if isinstance(given, np.ndarray) else numpy.asarray(given)


__all__ = [
    "almost_equal",
    "assert_almost_equal",
    "default_context",
    "list_gpus",
    "rand_shape_nd",
    "same",
]
