"""All primitives as a table to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from heterosis.ir.checking import kind_text
from heterosis.ir.primitives import PRIMITIVES
from heterosis.ir.primitives.families import Primitive

Column = Callable[[Primitive], str]

_COLUMNS: dict[str, Column] = {
    "primitive": lambda primitive: primitive.name,
    "family": lambda primitive: type(primitive).__name__.lower(),
    "attributes": lambda primitive: attributes_text(primitive),
}


def _about(primitive: Primitive) -> str:
    return primitive.about


def attributes_text(primitive: Primitive) -> str:
    """The attributes with their kinds."""
    kinds = primitive.attributes.items()
    return ", ".join(f"{name}: {kind_text(kind)}" for name, kind in kinds)


def listing(further: Mapping[str, Column]) -> Iterator[tuple[str, ...]]:
    """The rows of the table with their heads in front. `further` columns, by their heads, stand
    before the last one, which says what is computed."""
    columns = {**_COLUMNS, **further, "what it computes": _about}
    yield tuple(columns)
    for primitive in PRIMITIVES.values():
        yield tuple(tell(primitive) for tell in columns.values())


def text(further: Mapping[str, Column]) -> str:
    """The table with its columns below each other, and how many primitives there are."""
    rows = list(listing(further))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0
    lines = ["  ".join(map(str.ljust, row, widths)) for row in rows]
    return "\n".join([*lines, "", f"{len(PRIMITIVES)} primitives"])
