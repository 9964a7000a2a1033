"""What a `for` goes over where arrays say how often, or are gone through row by row."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from heterosis import _core, np
from heterosis.ir.types import is_float
from heterosis.ops.array.join import stack
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentTypeError, CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray


class Numbers:
    """What `range` gives whose bounds arrays know."""

    def __init__(self, *bounds: Any):
        for bound in bounds:
            if isinstance(bound, ndarray) and (is_float(bound._dtype_name) or bound.size != 1):
                raise ArgumentTypeError(
                    f"range: got an array {bound._dtype_name}{list(bound.shape)}; expected one "
                    "integer. Convert it with .astype('int64') where it is a whole number."
                )
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if isinstance(step, ndarray) or not step:
            raise _undecided("the step of a range", "Give it as a number of Python's, not 0.")
        self.start, self.stop, self.step = start, stop, step

    def __iter__(self) -> Iterator[Any]:
        raise _undecided(
            "how far a range goes", "Loop over the range alone: for i in range(n), no list of it."
        )

    def __reversed__(self) -> Numbers:
        if abs(self.step) != 1:
            raise _undecided("where a range ends", "Loop over a range with the step 1 or -1.")
        return Numbers(self.stop - self.step, self.start - self.step, -self.step)

    def is_left(self, number: Any) -> Any:
        """Whether a number is one of them, if those before it were."""
        return number < self.stop if self.step > 0 else number > self.stop


def _undecided(what: str, cure: str) -> CaptureError:
    return modes.refusals.note(
        CaptureError(f"{what} at {user_line()} depends on arrays, which are not known yet. {cure}")
    )


class Rows:
    """Rows of arrays, one of each at a time, of which `item` makes what the loop is given. They are
    those of the arrays `over`, or these themselves.

    Python's way is there too, `plain`: for what does not become a loop of the program.
    """

    def __init__(
        self,
        arrays: Callable[[], list[Any]],
        count: int,
        item: Callable[[Iterator[Any]], Any],
        plain: Callable[[], Iterable[Any]],
        numbers: tuple[bool, ...] = (False,),
        over: Sequence[Any] = (),
    ):
        self.arrays, self.count, self.item, self._plain = arrays, count, item, plain
        self.over = over
        self.numbers = numbers  # for each array, whether Python has numbers in its place
        self._begun: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        if self._begun is None:
            self._begun = iter(self._plain())
        return self._begun

    def __next__(self) -> Any:
        return next(iter(self))

    @property
    def is_whole(self) -> bool:
        """Whether nobody has begun to go through them."""
        return self._begun is None


class Sized:
    """An iterator that ends."""

    def __init__(self, items: Iterator[Any]):
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._items)


def rows_of(given: Any) -> Rows | None:
    """The rows that going through `given` gives, one array for each place of an item."""
    if isinstance(given, Rows):
        return given if given.is_whole else None
    if isinstance(given, ndarray) and given.ndim:
        return Rows(lambda: [given], len(given), next, lambda: given, over=[given])
    if isinstance(given, list | tuple | range) and _are_integers(given):
        made = functools.partial(np.array, given, dtype="int64")
        return Rows(lambda: [made()], len(given), next, lambda: given, (True,))
    if isinstance(given, list | tuple) and _are_alike(given):
        stacked = as_users_call(stack)
        return Rows(lambda: [stacked([*given])], len(given), next, lambda: given, over=given)
    return None


def _are_integers(given: Sequence[Any]) -> bool:
    return all(type(one) is int and abs(one) < 1 << 63 for one in given)


def _are_alike(given: Sequence[Any]) -> bool:
    types = {(a._dtype_name, a.shape) if isinstance(a, ndarray) else None for a in given}
    return len(types) == 1 and None not in types


def enumerated(given: Any, start: int = 0) -> Any:
    """What `enumerate` gives, of arrays."""
    rows = rows_of(given)
    if rows is None or type(start) is not int:
        return enumerate(given, start)
    counted = range(start, start + rows.count)
    return _together([counted, rows], lambda: enumerate(given, start))


def backwards(given: Any) -> Any:
    """What `reversed` gives, of arrays."""
    if isinstance(given, Numbers) or not given.ndim:
        return reversed(given)
    turned = functools.partial(operator.getitem, given, slice(None, None, -1))
    return Rows(lambda: [turned()], len(given), next, lambda: reversed(given), over=[given])


def zipped(*given: Any, strict: bool = False) -> Any:
    """What `zip` gives, of arrays."""
    return _together(given, lambda: zip(*given, strict=strict), strict=strict)


def _together(given: Sequence[Any], plain: Callable[[], Any], *, strict: bool = True) -> Any:
    """Items of several at a time; Python's way, if that is not known of them."""
    found = [rows for one in given if (rows := rows_of(one)) is not None]
    counts = {rows.count for rows in found}
    if len(found) != len(given) or (strict and len(counts) > 1):
        return plain()
    count = min(counts)

    def arrays() -> list[Any]:
        whole = (array for rows in found for array in rows.arrays())
        return [array if len(array) == count else array[:count] for array in whole]

    return Rows(
        arrays,
        count,
        lambda line: tuple([rows.item(line) for rows in found]),
        plain,
        tuple(flag for rows in found for flag in rows.numbers),
        [array for rows in found for array in rows.over],
    )
