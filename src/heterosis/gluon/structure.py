"""The names of a model's parts in a JSON file, so that a model made anew gets them back."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from heterosis.io.atomic import written
from heterosis.io.files import opened
from heterosis.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from heterosis.gluon.block import Block

Description = dict[str, Any]


def save(block: Block, filename: str) -> None:
    """Write the description of a model; a crash leaves an older file whole."""
    text = json.dumps(_described(block, itertools.count()))
    with written(filename) as file:
        file.write(text.encode())


def _key(block: Block, number: int) -> str:
    return f"{type(block).__name__.lower()}{number}"


def _described(block: Block, numbers: itertools.count) -> Description:
    """`{kind and number: facts}`; the facts of children stand among those of the block."""
    key = _key(block, next(numbers))
    children = block._children.items()
    facts: Description = {
        "orig_name": block.name,
        "hybridized": False,
        "children": {child.name: name for name, child in children},
    }
    for _, child in children:
        facts |= _described(child, numbers)
    return {key: facts}


def read(block: Block, filename: str) -> list[str]:
    """The saved names of the block and all its parts, in the order of `_parts`."""
    with opened(filename, "the description of a model that Block.save wrote") as source:
        description = source.json()
    names: list[str] = []
    _match(block, description, itertools.count(), names, filename)
    return names


def _match(
    block: Block, description: Any, numbers: itertools.count, names: list[str], filename: str
) -> None:
    key = _key(block, next(numbers))
    facts = description.get(key) if isinstance(description, dict) else None
    name = facts.get("orig_name") if isinstance(facts, dict) else None
    if not isinstance(name, str):
        raise ArgumentError(
            f"{filename}: no block {key!r} where the model has {block.name!r}; make the model in "
            "the same way as the one that was saved."
        )
    names.append(name)
    for child in block._children.values():
        _match(child, facts, numbers, names, filename)


def _parts(block: Block) -> list[Block]:
    return [block, *(part for child in block._children.values() for part in _parts(child))]


def rename(block: Block, names: list[str]) -> None:
    """Give the block and its parts the saved names, and their parameters too."""
    for part, name in zip(_parts(block), names, strict=True):
        part.take_name(name)
