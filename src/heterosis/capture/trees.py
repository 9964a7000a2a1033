"""Arguments and results in tuples, lists and dictionaries: their arrays, and all the rest."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any

import numpy

from heterosis import _core
from heterosis.np.dtypes import kept_dtype

ndarray = _core.ndarray


def leaves(tree: Any) -> Iterator[Any]:
    """What is none of the structures, in order."""
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from leaves(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from leaves(item)
    else:
        yield tree


def items_in(container: Any) -> Collection[Any]:
    """The items of a tuple, a list or a dictionary, in order."""
    found: Collection[Any] = container.values() if isinstance(container, dict) else container
    return found


def containers_in(tree: Any) -> Iterator[Any]:
    """The lists and dictionaries, in order."""
    if isinstance(tree, list | dict):
        yield tree
    if isinstance(tree, tuple | list | dict):
        for item in items_in(tree):
            yield from containers_in(item)


def arrays_in(tree: Any) -> Iterator[Any]:
    """The arrays, in order."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, ndarray))


def has_arrays(tree: Any) -> bool:
    """Whether there are any."""
    return next(arrays_in(tree), None) is not None


def objects_in(tree: Any) -> Iterator[Any]:
    """Everything else, in order."""
    return (leaf for leaf in leaves(tree) if not isinstance(leaf, ndarray))


def numpy_arrays_in(tree: Any) -> Iterator[numpy.ndarray]:
    """NumPy arrays whose elements our arrays can hold, in order."""
    for one in objects_in(tree):
        if isinstance(one, numpy.ndarray) and kept_dtype(one.dtype) is not None:
            yield one


def has_numpy_arrays(tree: Any) -> bool:
    """Whether there are any."""
    return next(numpy_arrays_in(tree), None) is not None


def replaced(tree: Any, replace: Callable[[Any], Any], leaves: Any = ndarray) -> Any:
    """The same structure with every array, or every instance of `leaves`, replaced."""
    return mapped(tree, lambda leaf: replace(leaf) if isinstance(leaf, leaves) else leaf)


def mapped(
    tree: Any,
    change: Callable[[Any], Any],
    instead: Callable[[Any], Any] = lambda container: None,
    made: dict[int, Any] | None = None,
) -> Any:
    """The same structure with every leaf changed, and other objects in place of the lists and
    dictionaries that `instead` knows some for. With `made`, what is found in two places is one
    object behind as well; it has them by the ids of those before."""
    if not isinstance(tree, tuple | list | dict):
        return change(tree)
    if isinstance(tree, list | dict):
        found = made.get(id(tree)) if made else None
        if found is None:
            found = instead(tree)
        if found is not None:
            return found
    other = like(tree, [mapped(item, change, instead, made) for item in items_in(tree)])
    if made is not None:
        made[id(tree)] = other
    return other


def has_repeated(tree: Any) -> bool:
    """Whether a list or a dictionary is found in two places."""
    found = [id(container) for container in containers_in(tree)]
    return len(set(found)) < len(found)


def copied(tree: Any) -> Any:
    """The same leaves in lists and dictionaries of its own."""
    return mapped(tree, lambda leaf: leaf)


def like(tree: Any, items: Sequence[Any]) -> Any:
    """A tuple, list or dictionary with other items, in order. One of a class derived from these
    keeps its attributes, and is not initialised: its class may want other arguments."""
    kind = type(tree)
    if kind in (tuple, list):
        return kind(items)
    if kind is dict:
        return dict(zip(tree, items, strict=True))
    if isinstance(tree, tuple):
        made = tuple.__new__(kind, items)
        getattr(made, "__dict__", {}).update(getattr(tree, "__dict__", {}))
        return made
    made = copy.copy(tree)
    if isinstance(tree, list):
        list.__setitem__(made, slice(None), items)
    else:
        for key, item in zip(tree, items, strict=True):
            dict.__setitem__(made, key, item)
    return made


def _array_description(array: Any) -> Any:
    return array._dtype_name, array.shape, array._element_strides


def description(tree: Any, of_array: Callable[[Any], Any] = _array_description) -> Any:
    """What two argument lists must agree in to be served by one program: hashable.

    Arrays agree in type, shape and layout; other values must be the same and of one type: 0.0 is
    not -0.0, and a NaN is another NaN. What cannot be compared so, an object say, agrees with
    itself alone. `of_array` says something else of arrays.
    """
    if isinstance(tree, ndarray):
        return of_array(tree)
    if isinstance(tree, tuple | list):
        return type(tree), tuple(description(item, of_array) for item in tree), _own(tree)
    if isinstance(tree, dict):
        items = tree.items()
        found = tuple((description(k), description(item, of_array)) for k, item in items)
        return type(tree), found, _own(tree)
    if isinstance(tree, slice):
        return slice, description((tree.start, tree.stop, tree.step))
    if isinstance(tree, float | complex | numpy.inexact):
        return type(tree), repr(tree)  # every NaN has the same text, and zeros have their signs
    if tree is None or isinstance(tree, bool | int | str | bytes | numpy.generic):
        return type(tree), tree
    return _Same(tree)


def outline(tree: Any) -> Hashable:
    """What a tuple, list or dictionary is but for its items: its class, its length or its keys in
    order, and its attributes."""
    keys = tuple(map(description, tree)) if isinstance(tree, dict) else len(tree)
    return type(tree), keys, _own(tree)


def _own(tree: Any) -> Hashable:
    """What a container has besides its items, if its class is derived from a container's."""
    if type(tree) in (tuple, list, dict):
        return None
    factory = getattr(tree, "default_factory", None)
    found: Hashable = description((getattr(tree, "__dict__", None), factory), _Same)
    return found


def attributes_in(tree: Any) -> Iterator[dict[str, Any]]:
    """What containers of derived classes have besides their items, in order."""
    if isinstance(tree, tuple | list | dict):
        own = getattr(tree, "__dict__", None)
        if own:
            yield own
        for item in items_in(tree):
            yield from attributes_in(item)


class _Same:
    """Equal where it holds the same object."""

    __slots__ = ("held",)

    def __init__(self, held: Any):
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)
