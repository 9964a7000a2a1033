"""What names in a graph stand for, and what operators do with it.

Arrays of ours; NumPy's, on the host, whose elements are known before anything is computed, and may
be sizes that are not known yet; arrays that came with the file; lists of these; or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy

from heterosis import _core, np
from heterosis.runtime.errors import ArgumentError, HeterosisError, ShapeError

# Arrays with more elements than this are made where they are used, rather than carried there.
SMALL = 64


class Stored:
    """An array that came with the file: as it was there, and as the parameter that it became.
    Neither is made before it is asked for."""

    def __init__(self, host: Callable[[], Any], array: Callable[[], _core.ndarray]):
        self._host, self.array = host, array

    @property
    def host(self) -> numpy.ndarray:
        """The array as NumPy's, as it was in the file: where it decides about shapes."""
        found = self._host()
        return found.host if isinstance(found, Stored) else found


class Following(Stored):
    """What follows from arrays that came with the file: computed from the parameters as they are by
    now, but from what they were where it decides about shapes."""


def is_known(value: Any) -> bool:
    """Whether the elements of a value are there before anything is computed."""
    return isinstance(value, numpy.ndarray | Stored)


def on_host(value: Any) -> Any:
    """A value as NumPy's. What is computed is read, which a capture refuses."""
    if isinstance(value, Stored):
        return value.host
    return value if value is None or isinstance(value, numpy.ndarray) else value.asnumpy()


def array(value: Any) -> Any:
    """A value as an array of ours, or a list of them."""
    if isinstance(value, list):
        return [array(item) for item in value]
    if isinstance(value, Stored):
        return value.array()
    if not isinstance(value, numpy.ndarray):
        return value
    if value.dtype == object:
        return of_sizes(value)
    return np.array(value, dtype=str(value.dtype))


def is_host(x: Any) -> bool:
    """Whether a value is on the host, as NumPy's array."""
    return isinstance(x, numpy.ndarray)


def module(x: Any) -> Any:
    """The module whose functions take this array: NumPy or ours."""
    return numpy if is_host(x) else np


def kind(x: Any) -> str:
    """What elements are: "i", "u", "f" or "b", as NumPy has it; sizes are integers."""
    name = "int64" if x.dtype == object else str(x.dtype)
    if name == "bool":
        return "b"
    return "u" if name.startswith("uint") else "i" if name.startswith("int") else "f"


def hosted(value: Any) -> numpy.ndarray:
    """What NumPy computed, as an array: it returns elements where there are no dimensions. Sizes
    that turned out as numbers are numbers again."""
    if isinstance(value, numpy.ndarray | numpy.generic):
        found = numpy.asarray(value)
    else:
        found = numpy.empty((), object)
        found[()] = value
    if found.dtype == object and all(type(n) is int for n in found.flat):
        return found.astype("int64")
    return found


def sizes(numbers: Iterable[Any]) -> numpy.ndarray:
    """Extents as NumPy's array, of objects while they are not known."""
    numbers = list(numbers)
    found = numpy.empty(len(numbers), object)
    for i, number in enumerate(numbers):
        found[i] = number
    return hosted(found)


def of_sizes(numbers: numpy.ndarray) -> Any:
    """An array of ours with these sizes; none of them has to be known for it."""
    parts = [np.full((1,), n, dtype="int64") for n in numbers.flat]
    return np.reshape(np.concatenate(parts), numbers.shape)


def by_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's arrays whose results are such arrays, too, or ours where they are too
    large to be carried along."""

    def result(value: Any) -> Any:
        return value if isinstance(value, _core.ndarray | Stored) else hosted(value)

    def compute(*arrays: Any, **attributes: Any) -> Any:
        try:
            with numpy.errstate(all="ignore"):  # infinities and NaN are results like others
                found = function(*arrays, **attributes)
        except (ValueError, TypeError, IndexError) as error:
            if isinstance(error, HeterosisError):
                raise
            raise ArgumentError(f"NumPy refuses this: {error}.") from error
        return tuple(map(result, found)) if isinstance(found, tuple | list) else result(found)

    return compute


def converted(x: Any, dtype: str) -> Any:
    """An array with elements of this type, which it may have already."""
    return x if str(x.dtype) == dtype else x.astype(dtype)


def listed(x: Any) -> list[Any]:
    """The elements of an input that decides about shapes, in a list; sizes stay such."""
    return list(x.reshape(-1).tolist())


def number(x: Any) -> Any:
    """The only element of such an input."""
    if x.size != 1:
        raise ShapeError(f"{x.size} elements where there must be one.")
    return x.reshape(-1).tolist()[0]


def place(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise ShapeError(f"there is no axis {axis} in an array of {rank} dimensions.")
    return axis % rank if rank else 0


def places(axes: Sequence[int] | None, rank: int) -> list[int]:
    """Axes counted from the front, in their order; all if none are named."""
    return list(range(rank)) if axes is None else [place(int(axis), rank) for axis in axes]


def count(shape: Sequence[Any]) -> Any:
    """How many elements a shape has."""
    return math.prod(shape)


def part(x: Any, axis: int, start: Any, stop: Any) -> Any:
    """The elements from start to stop along an axis."""
    return x[tuple(slice(start, stop) if i == axis else slice(None) for i in range(axis + 1))]


def is_small(shape: Sequence[Any]) -> bool:
    """Whether a shape is known and has few elements."""
    return all(type(n) is int for n in shape) and math.prod(shape) <= SMALL
