"""Operations that have `at`, as NumPy's ufuncs."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from collections.abc import Callable
from heterosis._core import ndarray
from typing import Any, Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class combining(Generic[_P, _R]):
    def __init__(self, function: Callable[_P, _R]) -> None: ...
    def __call__(self, *arguments: _P.args, **keywords: _P.kwargs) -> _R: ...
    def at(self, a: ndarray, indices: Any, b: Any) -> None:
        """`a[indices]` combined with `b`, in place, once for each index: of equal ones all count.
        """
