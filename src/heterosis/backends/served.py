"""Which sizes an exported library serves, as it says itself where it is asked for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heterosis.backends.heterosis_library import Entry

_TRIED = sorted(
    {*range(1, 1025), *(2**i + k for i in range(10, 21) for k in (-1, 0, 1)), *(2**31, 2**40)}
)
_MOST_SHOWN = 8  # ranges


def served(entry: Entry) -> Iterator[str]:
    """A line for each size of an entry, others being such that it is served."""
    base = next((n for n in (8, 5, *_TRIED) if entry.serves(*[n] * len(entry.sizes))), None)
    for i, size in enumerate(entry.sizes):
        others = [other.name for other in entry.sizes if other is not size]
        where = f", where {' and '.join(others)} = {base}" if others else ""
        if base is None:
            yield f"{size.name}: none was found that is served"
            continue
        given = [base] * len(entry.sizes)
        found = []
        for n in _TRIED:
            given[i] = n
            if entry.serves(*given):
                found.append(n)
        yield f"{size.name}: {_shown(found)}{where}"


def _shown(found: Sequence[int]) -> str:
    """Numbers as ranges, of those that were tried."""
    ranges: list[tuple[int, int]] = []  # positions among those that were tried
    for at in map(_TRIED.index, found):
        if ranges and ranges[-1][1] == at - 1:
            ranges[-1] = ranges[-1][0], at
        else:
            ranges.append((at, at))
    texts = [_range(_TRIED[first], _TRIED[last]) for first, last in ranges]
    if len(texts) > _MOST_SHOWN:
        texts = [*texts[:_MOST_SHOWN], "others"]
    return ", ".join(texts)


def _range(first: int, last: int) -> str:
    if last == _TRIED[-1]:
        return f"from {first} on"
    return f"{first} to {last}" if first < last else f"{first}"
