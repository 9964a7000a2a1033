"""Indexing by arrays, lists and masks: what the core hands on because it is no plain view.

Every array in a key becomes integer indices of one axis each. Reading gathers, writing scatters;
plain indices and slices beside them first select a view of the array.

Masks are read at once, because the shape of the result depends on them; writing one value through
a mask that stands alone does not wait. Indices that are known when the key is used are checked
at once; those that are still being computed, where the engine runs the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.program import Value
from heterosis.ir.slices import taken
from heterosis.ir.traced_sizes import index as whole
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import is_float
from heterosis.np import convert
from heterosis.ops.array.counting import roomy, true_places
from heterosis.ops.array.indexing import (
    assign_part,
    gather,
    scatter,
    select_part,
    unravel_index,
)
from heterosis.ops.array.join import stack
from heterosis.ops.array.shape import reshape, transpose
from heterosis.ops.math.cast import copy as _copy
from heterosis.ops.math.elementwise import where as _choose
from heterosis.ops.math.reductions import count_nonzero
from heterosis.ops.record import REGISTRY
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError, DTypeError, IndexingError, UnsupportedError

ndarray = _core.ndarray


def getitem(x: ndarray, key: Any) -> ndarray:
    """`x[key]` for keys that select by elements."""
    if modes.follows() and (part := _part(x, key)) is not None:
        return select_part(x, *part)
    selection = _Selection(*_by_one_axis(x, key))
    view = selection.view()
    if not selection.indices:
        return view
    return gather(view, selection.indices, selection.position, selection.subject)


def setitem(x: ndarray, key: Any, value: Any) -> None:
    """`x[key] = value` for keys that select by elements; of equal places the last counts."""
    mask = _lone_mask(x, key)
    if mask is not None and _is_single(value):
        chosen = reshape(mask, mask.shape + (1,) * (x.ndim - mask.ndim))
        _choose(chosen, convert.array(value, x._dtype_name), x, out=x)
        return
    if modes.follows() and (part := _part(x, key)) is not None:
        assign_part(x, _operand(x, value), *part, out=x)
        return
    selection = _Selection(x, key, written=True)
    view = selection.view()
    if selection.indices:
        chosen = _operand(x, value), selection.indices, selection.position, selection.subject
        if modes.follows():
            selection.write(scatter(view, *chosen))
        else:
            scatter(view, *chosen, out=view)
    else:
        view[...] = value


def combined_at(name: str) -> Callable[[ndarray, Any, Any], None]:
    """The function that is `at` of an operation, one of those that scatter knows."""
    step = "add" if name == "subtract" else name

    def at(a: ndarray, indices: Any, b: Any) -> None:
        value, operation = _combinable(name, a, b), REGISTRY[step].operation
        if name == "subtract":
            value = -value
        if modes.follows() and (part := _part(a, indices)) is not None:
            assign_part(a, operation(select_part(a, *part), value), *part, out=a)
            return
        selection = _Selection(a, indices, written=True)
        view = selection.view()
        chosen = value, selection.indices, selection.position, selection.subject
        if not selection.indices:
            view[...] = operation(view, value)
        elif modes.follows():
            # The gradient of an extreme looks at what stood there, which is written over.
            selection.write(scatter(view if step == "add" else _copy(view), *chosen, step))
        else:
            scatter(view, *chosen, step, out=view)

    at.__name__, at.__qualname__ = "at", f"{name}.at"
    at.__doc__ = (
        f"`a[indices] = {name}(a[indices], b)` in place, once for each index: of equal ones all "
        "count."
    )
    return at


def _combinable(name: str, a: Any, b: Any) -> Any:
    """`b` as an array or a number that can be combined with elements of `a` where these stand."""
    if not isinstance(a, ndarray):
        raise ArgumentError(f"{name}.at: a is a {type(a).__name__}; expected an np.ndarray.")
    value = convert.operand(b)
    kind = value._dtype_name if isinstance(value, ndarray) else type(value).__name__
    if a._dtype_name == "bool" and name not in ("maximum", "minimum"):
        raise DTypeError(f"{name}.at: a has elements of bool; expected numbers.")
    if (kind == "float" or is_float(kind)) and not is_float(a._dtype_name):
        raise DTypeError(
            f"{name}.at: b is of {kind}, and a, of {a._dtype_name}, cannot hold the result; "
            "expected integers, or a.astype('float32')."
        )
    return value


for _name in ("add", "subtract", "multiply", "maximum", "minimum"):
    REGISTRY[_name].combine_at = combined_at(_name)


def _operand(x: ndarray, value: Any) -> Any:
    if isinstance(value, ndarray):
        return value.as_in_context(x.ctx)
    if isinstance(value, bool | int | float):
        return value
    return convert.array(value, None if isinstance(value, numpy.ndarray) else x._dtype_name)


Part = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _part(x: ndarray, key: Any) -> Part | None:
    """Where each axis starts, its step and count, and the result's shape, for a key of integers,
    slices, None and an ellipsis; None for other keys. A view says the same but is not recorded."""
    items = [_item(i) for i in (key if isinstance(key, tuple) else (key,))]
    if any(not isinstance(i, int | slice) and i is not None and i is not Ellipsis for i in items):
        return None
    used = sum(map(_axes_used, items))
    if not any(map(is_traced, (*x.shape, *_bounds(items)))) or not _fits(x, items, used):
        x._view(tuple(items))  # a key that does not fit raises
    missing = [slice(None)] * (x.ndim - used)
    if Ellipsis not in items:
        items.append(Ellipsis)
    at = items.index(Ellipsis)
    items[at : at + 1] = missing
    starts, steps, counts, shape = [], [], [], []
    for item in items:
        if item is None:
            shape.append(1)
            continue
        extent = x.shape[len(starts)]
        if isinstance(item, slice):
            start, step, count = taken(item, extent)
            starts.append(start)
            steps.append(step)
            counts.append(count)
            shape.append(count)
        else:
            starts.append(item + extent if item < 0 else item)
            steps.append(1)
            counts.append(1)
    return tuple(starts), tuple(steps), tuple(counts), tuple(shape)


def _bounds(items: list[Any]) -> Iterator[Any]:
    """The integers in a key of these items."""
    for item in items:
        yield from (item.start, item.stop, item.step) if isinstance(item, slice) else (item,)


def _fits(x: ndarray, items: list[Any], used: int) -> bool:
    """Whether a key of integers and slices fits an array some of whose extents are sizes."""
    if used > x.ndim or items.count(Ellipsis) > 1:
        return False
    axis = 0
    for item in items:
        if item is Ellipsis:
            axis += x.ndim - used
        elif item is not None:
            if not isinstance(item, slice) and not -x.shape[axis] <= item < x.shape[axis]:
                return False
            axis += 1
    return True


# -- masks ----------------------------------------------------------------------------------------


def _lone_mask(x: ndarray, key: Any) -> ndarray | None:
    """The mask over leading dimensions of `x` that is the whole key, if it is one."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, numpy.ndarray | list) and numpy.asarray(key).dtype == bool:
        key = convert.from_numpy(numpy.asarray(key))
    if isinstance(key, ndarray) and key._dtype_name == "bool" and key.ndim:
        _check_mask(key.shape, x.shape, 0)
        return key if key.shape == x.shape[: key.ndim] else None
    return None


def _by_one_axis(x: ndarray, key: Any) -> tuple[ndarray, Any]:
    """`x` and `key` as they are, or, if that is a large mask over several leading dimensions, with
    one dimension in place of these: one row of places then, not one for each of them."""
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if not _has_many(mask) or mask._dtype_name != "bool" or mask.ndim == 1:
        return x, key
    _check_mask(mask.shape, x.shape, 0)
    return reshape(x, (mask.size, *x.shape[mask.ndim :])), reshape(mask, (mask.size,))


def _is_single(value: Any) -> bool:
    return isinstance(value, bool | int | float) or getattr(value, "size", 0) == 1


def _check_mask(mask: tuple[int, ...], shape: tuple[int, ...], axis: int) -> None:
    """As in NumPy an extent of 0 fits any other: such a mask chooses nothing."""
    found = shape[axis : axis + len(mask)]
    fits = len(mask) == len(found) and all(n in (m, 0) for n, m in zip(mask, found, strict=True))
    if not fits:
        raise IndexingError(
            f"a mask of shape {mask} cannot select from axes {axis} to {axis + len(mask) - 1} of "
            f"an array of shape {shape}: these have extents {found}, which must be equal."
        )


def nonzero(a: Any) -> tuple[ndarray, ...]:
    """The places of the elements that are not zero, one array of indices a dimension. Waits for
    `a`, since their number depends on it."""
    if _has_many(a):
        return tuple(_places_of_many(a))
    return tuple(convert.from_numpy(i) for i in numpy.nonzero(_values("nonzero", a)))


_MANY = 4096  # fewer take no longer through NumPy


def _has_many(a: Any) -> bool:
    """Whether it is an array with so many elements that our kernels find places in it faster."""
    if not isinstance(a, ndarray) or a.size < _MANY or modes.is_capturing():
        return False
    return a._device < _core.first_remote


def _places_of_many(a: ndarray) -> list[ndarray]:
    """Where the elements are not zero, along each dimension."""
    row = reshape(a if a._dtype_name == "bool" else a.astype("bool"), (a.size,))
    count = count_nonzero(row).item()
    # More room than is needed by a group of truths, which are then placed all at once.
    places = true_places(row, roomy(count + 64))[:count]
    return [places] if a.ndim == 1 else [*unravel_index(places, a.shape)]


def flatnonzero(a: Any) -> ndarray:
    """The places of the elements that are not zero, in the flattened array; waits for `a`."""
    if _has_many(a):
        return _places_of_many(a.reshape(-1))[0]
    return convert.from_numpy(numpy.flatnonzero(_values("flatnonzero", a)))


def argwhere(a: Any) -> ndarray:
    """The places of the elements that are not zero, one row each; waits for `a`."""
    if _has_many(a):
        return stack(_places_of_many(a), -1)
    return convert.from_numpy(numpy.argwhere(_values("argwhere", a)))


def _values(name: str, a: Any) -> numpy.ndarray:
    if isinstance(a, Value):
        raise UnsupportedError(
            f"{name}: its result's shape depends on values, which a program that is being captured "
            "does not have yet. Call it outside, or multiply by a mask instead."
        )
    return convert.shared(a) if isinstance(a, ndarray) else numpy.asarray(a)


def where(condition: Any, x: Any = None, y: Any = None, out: ndarray | None = None) -> Any:
    """Elements of `x` where `condition` is true, else of `y`; without both, `nonzero`."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ArgumentError("where: give both x and y, or neither.")
    return _choose(condition, x, y) if out is None else _choose(condition, x, y, out=out)


# -- keys -----------------------------------------------------------------------------------------


@dataclass
class _Selection:
    """A key in parts: slices that select a view of `x`, and indices of some of its axes."""

    x: ndarray
    key: Any
    written: bool = False
    basic: list[Any] = field(default_factory=list)
    indices: list[ndarray] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)  # of the view, one for each of `indices`
    own_axes: list[int] = field(default_factory=list)  # the same axes as `x` counts them
    position: int = 0  # of the new dimensions in the result
    _axis: int = 0  # of `x`: the next one
    _kept: int = 0  # dimensions of the view so far
    _plain: int = 0  # of these, those that no array indexes
    _runs: int = 0  # of arrays and integers next to each other
    _in_run: bool = False

    def __post_init__(self) -> None:
        items = [_item(i) for i in (self.key if isinstance(self.key, tuple) else (self.key,))]
        used = sum(map(_axes_used, items))
        if sum(i is Ellipsis for i in items) > 1:
            raise IndexingError("an index may hold one ellipsis ('...') at most.")
        if used > self.x.ndim:
            raise IndexingError(
                f"too many indices: {used} for an array of {self.x.ndim} dimensions."
            )
        for item in items:
            self._take(item, self.x.ndim - used)
        if self._runs > 1:  # separated arrays: as in NumPy, their dimensions come first
            self.position = 0

    def view(self) -> ndarray:
        """The part of `x` that the indices choose from, their axes in front."""
        found = self.x[tuple(self.basic)]
        if not self.axes:
            return found
        rest = [a for a in range(found.ndim) if a not in self.axes]
        return transpose(found, (*self.axes, *rest))

    def write(self, changed: ndarray) -> None:
        """Put a changed copy of the view in its place: what gradients can follow."""
        rest = [a for a in range(changed.ndim) if a not in self.axes]
        order = (*self.axes, *rest)
        self.x[tuple(self.basic)] = transpose(changed, tuple(map(order.index, range(changed.ndim))))

    @property
    def subject(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What messages speak of."""
        return self.x.shape, tuple(self.own_axes)

    def _take(self, item: Any, skipped: int) -> None:
        if item is None or isinstance(item, slice) or item is Ellipsis:
            self._in_run = False
            self._keep(item, skipped)
        else:
            self._begin_run()
            self._index(item)

    def _keep(self, item: Any, skipped: int) -> None:
        self.basic.append(item)
        count = skipped if item is Ellipsis else 1
        self._axis += 0 if item is None else count
        self._kept += count
        self._plain += count

    def _begin_run(self) -> None:
        if not self._in_run and not self._runs:
            self.position = self._plain
        self._runs += not self._in_run
        self._in_run = True

    def _index(self, item: Any) -> None:
        if isinstance(item, int):
            self.basic.append(item)
            self._axis += 1
        elif isinstance(item, _Mask):
            _check_mask(item.shape, self.x.shape, self._axis)
            for found in item.places():
                self._add(found, None if not item.shape else slice(None))
        else:
            self._add(self._checked(item), slice(None))

    def _add(self, index: ndarray, along: Any) -> None:
        self.basic.append(along)
        self.axes.append(self._kept)
        self.own_axes.append(self._axis)
        self.indices.append(index)
        self._kept += 1
        self._axis += along is not None

    def _checked(self, index: Any) -> ndarray:
        """Indices that are known by now are checked by now: a write that fails in the queue
        would leave the array without a value."""
        if not isinstance(index, ndarray):
            self._check(index)
            return convert.from_numpy(index)
        if self.written and index._ready and index._dtype_name != "bfloat16":
            self._check(numpy.from_dlpack(index).astype("int64"))
        return index

    def _check(self, index: numpy.ndarray) -> None:
        count = self.x.shape[self._axis]
        for number in (int(index.min()), int(index.max())) if index.size else ():
            if not -count <= number < count:
                raise IndexingError(
                    f"index {number} is out of bounds for axis {self._axis} of an array of shape "
                    f"{self.x.shape}; expected {-count} <= index < {count}."
                )


@dataclass
class _Mask:
    """A mask inside a key; one without dimensions chooses all or nothing along a new axis."""

    values: numpy.ndarray
    array: ndarray | None = None  # that has the values

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def places(self) -> list[ndarray]:
        many = convert.from_numpy(self.values) if self.array is None else self.array
        if _has_many(many):
            return _places_of_many(many)
        found = numpy.nonzero(self.values if self.shape else self.values.reshape(1))
        return [convert.from_numpy(i.astype("int64")) for i in found]


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return len(item.shape) if isinstance(item, _Mask) else 1


def _item(item: Any) -> Any:
    """One part of a key: None, Ellipsis, a slice, an int, a mask, or indices."""
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return slice(*map(_bound, (item.start, item.stop, item.step)))
    if isinstance(item, bool | numpy.bool_):
        return _Mask(numpy.asarray(item))
    if isinstance(item, ndarray):
        return _Mask(convert.shared(item), item) if item._dtype_name == "bool" else item
    if isinstance(item, numpy.ndarray | list | tuple | range):
        return _indices(item)
    try:
        return whole(item)
    except TypeError:
        raise IndexingError(
            f"{item!r} cannot index; expected integers, slices, None, '...', or arrays and lists "
            "of integers or bools."
        ) from None


def _bound(number: Any) -> Any:
    return number if number is None else whole(number)


def _indices(given: Any) -> numpy.ndarray | _Mask | ndarray:
    try:
        found = numpy.asarray(given)
    except ValueError:  # rows of different lengths
        raise IndexingError(
            f"{given!r:.60} cannot index: its rows have different lengths. Pass one list for each "
            "axis, with commas between."
        ) from None
    if found.dtype == bool:
        return _Mask(found)
    if found.size == 0 and not isinstance(given, numpy.ndarray):
        return found.astype("int64")
    if found.dtype.kind in "iu":
        return found.astype("int64")
    if found.dtype.kind == "f" and isinstance(given, numpy.ndarray):
        return found.astype("int64")  # as arrays of floats do, which are the default
    raise IndexingError(
        f"arrays of {found.dtype} cannot index; expected integers or bools. Convert with .astype."
    )


__all__ = ["argwhere", "flatnonzero", "nonzero", "where"]
