"""Which values a node reads, where ONNX does at once what programs do in steps: operators broadcast
by themselves, a reshape of a reshape is one, and floats are sorted without keys."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir.primitives import sort_keys
from heterosis.ir.primitives.elementwise import INVERT
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.primitives.rearranging import BROADCAST, RESHAPE
from heterosis.ir.primitives.sorting import FIRST_PLACES, SORT, SORT_PLACES
from heterosis.ir.primitives.windows import CONVOLVE
from heterosis.ir.program import Node, Value

_SORTING = (SORT, SORT_PLACES, FIRST_PLACES)
_KEYS_OF = (sort_keys.SORT_KEY_FLOAT32, sort_keys.SORT_KEY_FLOAT64)
_FLOATS_OF = (sort_keys.FROM_SORT_KEY_FLOAT32, sort_keys.FROM_SORT_KEY_FLOAT64)


def operands_of(node: Node) -> tuple[Value, ...]:
    """What is read for `node`: elements before they are repeated, reshaped or made keys, where that
    does."""
    floats = sorted_floats(node)
    if floats:
        return floats[:1]
    if isinstance(node.primitive, Elementwise):
        return _before_broadcasting(node)
    if node.primitive in (RESHAPE, CONVOLVE):
        return tuple(map(_before_reshaping, node.inputs))
    return node.inputs


def _before_broadcasting(node: Node) -> tuple[Value, ...]:
    inputs, shape = node.inputs, node.types[0].shape
    bases = tuple(_repeated(value) for value in inputs)
    if _gives(bases, shape):
        return bases
    for i in range(len(inputs)):  # one of them has the whole shape
        some = (*bases[:i], inputs[i], *bases[i + 1 :])
        if _gives(some, shape):
            return some
    return inputs


def _repeated(value: Value) -> Value:
    while value.node.primitive is BROADCAST:
        (value,) = value.node.inputs
    return value


def _gives(values: Sequence[Value], shape: Sequence[int]) -> bool:
    """Whether the values broadcast to `shape`, each extent of which one of them has."""
    found = {len(shape) - axis: extent for axis, extent in enumerate(shape)}
    have = {
        len(value.shape) - axis
        for value in values
        for axis, extent in enumerate(value.shape)
        if extent == found[len(value.shape) - axis]
    }
    return all(extent == 1 or place in have for place, extent in found.items()) and any(
        len(value.shape) == len(shape) for value in values
    )


def _before_reshaping(value: Value) -> Value:
    while value.node.primitive is RESHAPE:
        (value,) = value.node.inputs
    return value


def sorted_floats(node: Node) -> tuple[Value, bool] | None:
    """The floats that a node sorts by their keys, or makes of sorted keys, and whether they
    descend; None if it does not."""
    made, turns = node.primitive in _FLOATS_OF, 0
    if made:
        value, turns = _turned(node.inputs[0])
        node = value.node
        if node.primitive not in (SORT, SORT_PLACES) or value.index:
            return None
    if node.primitive not in _SORTING:
        return None
    key, descending = _turned(node.inputs[0])
    if key.node.primitive not in _KEYS_OF or (made and turns != descending):
        return None
    return key.node.inputs[0], bool(descending)


def _turned(keys: Value) -> tuple[Value, int]:
    """Keys before they were turned over, and whether they were."""
    turns = 0
    while keys.node.primitive is INVERT:
        (keys,), turns = keys.node.inputs, 1 - turns
    return keys, turns
