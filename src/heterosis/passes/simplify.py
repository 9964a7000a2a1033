"""What says the same with less: rows of views, conversions and neutral operands.

All of them are exact, for NaN, infinities and the sign of zero too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign
from typing import Any

from heterosis.ir import views
from heterosis.ir.overlap import are_apart, is_apart
from heterosis.ir.primitives.conversions import COPY, conversion
from heterosis.ir.primitives.elementwise import ADD
from heterosis.ir.primitives.families import Elementwise, View
from heterosis.ir.program import ASSEMBLE, CONSTANT, INPUT, Node, Value, apply, constant
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import DTYPES, is_float
from heterosis.ir.views import BROADCAST, RESHAPE, SLICE, TRANSPOSE
from heterosis.passes.rewrite import Rule


def _operand(node: Node) -> Value:
    return node.inputs[0]


def _twice_removed(node: Node) -> Value:
    """The operand of the operand."""
    return node.inputs[0].node.inputs[0]


def _is_same(node: Node) -> bool:
    return views.are_equal(node.types[0].shape, node.inputs[0].shape)


def uniform(value: Value) -> Value | None:
    """The single number that every element of `value` is, if it is known to be one."""
    while value.node.primitive is BROADCAST:
        value = value.node.inputs[0]
    return value if value.ndim == 0 else None


def the_number(value: Value) -> Value:
    """The number that every element of `value` is, which is known to be one."""
    found = uniform(value)
    assert found is not None
    return found


# -- views ----------------------------------------------------------------------------------------


def _rearranges_one_number(node: Node) -> bool:
    plain = node.primitive is BROADCAST and node.inputs[0].ndim == 0
    return not plain and uniform(node.inputs[0]) is not None


def _transpose_once(node: Node) -> Value:
    first = node.inputs[0].node.attributes["axes"]
    return views.transpose(_twice_removed(node), tuple(first[a] for a in node.attributes["axes"]))


def _slice_once(node: Node) -> Value:
    inner, outer = node.inputs[0].node.attributes, node.attributes
    before = tuple(zip(inner["starts"], inner["steps"], strict=True))
    starts = (first + s * step for (first, step), s in zip(before, outer["starts"], strict=True))
    steps = (step * s for (_, step), s in zip(before, outer["steps"], strict=True))
    return views.slice_(_twice_removed(node), tuple(starts), tuple(steps), node.types[0].shape)


def _is_whole(node: Node) -> bool:
    attributes = node.attributes
    forward = all(step == 1 for step in attributes["steps"])
    return _is_same(node) and forward and not any(attributes["starts"])


def _moves_only_ones(node: Node) -> bool:
    """Whether a transpose leaves the order of all elements as it is."""
    axes = [a for a in node.attributes["axes"] if node.inputs[0].shape[a] != 1]
    return axes == sorted(axes)


def _shows_only_the_last(node: Node) -> bool:
    """Whether the last part lies over all others, forwards or backwards along each axis."""
    last = node.inputs[-1].shape
    axes = zip(*node.attributes["places"][-1], last, strict=True)
    return last == node.types[0].shape and all(_is_all(*axis) for axis in axes)


def _is_all(start: int, step: int, extent: int) -> bool:
    """Whether a part covers an axis of its own extent; of an open one nothing is asked."""
    if step == 1:
        return not start
    return step == -1 and not is_traced(extent) and start == extent - 1


def _the_last(node: Node) -> Value:
    starts, steps = node.attributes["places"][-1]
    return views.slice_(node.inputs[-1], starts, steps, node.types[0].shape)


def _part_seen(node: Node) -> tuple[Value, Sequence[int]] | None:
    """The part of side-by-side operands that a slice shows alone, if it does, and where that part
    begins. Of open sizes nothing is asked, which would make them conditions."""
    joined, shape = node.inputs[0].node, node.types[0].shape
    places = joined.attributes["places"]
    parts = joined.inputs[len(joined.inputs) - len(places) :]
    wanted = (node.attributes["starts"], node.attributes["steps"])
    sizes = [shape, *wanted, *(part.shape for part in parts), *(n for both in places for n in both)]
    if any(is_traced(n) for some in sizes for n in some) or 0 in shape:
        return None
    for part, place in zip(reversed(parts), reversed(places), strict=True):
        if 0 in part.shape or is_apart(wanted, shape, place, part.shape):
            continue
        begin, steps = place
        ends = zip(*wanted, shape, begin, part.shape, strict=True)
        inside = all(
            0 <= first - at < extent and 0 <= first + (n - 1) * step - at < extent
            for first, step, n, at, extent in ends
        )
        return (part, begin) if inside and all(step == 1 for step in steps) else None
    return None


def _slice_part(node: Node) -> Value:
    found = _part_seen(node)
    assert found is not None
    part, begin = found
    starts = tuple(s - b for s, b in zip(node.attributes["starts"], begin, strict=True))
    return views.slice_(part, starts, node.attributes["steps"], node.types[0].shape)


def _are_padded_apart(node: Node) -> bool:
    """Whether two arrays of zeros are added that each hold parts, and no two at one place: what
    slices of one array receive as its gradient. Of open sizes nothing is asked."""
    if any(not _is_padded(value) or value.dtype != node.types[0].dtype for value in node.inputs):
        return False
    places, parts = _all_parts(node)
    sizes = [*(part.shape for part in parts), *(n for both in places for n in both)]
    if any(is_traced(n) for some in sizes for n in some) or any(0 in p.shape for p in parts):
        return False
    return are_apart(places, [part.shape for part in parts])


def _is_padded(value: Value) -> bool:
    node = value.node
    return (
        node.primitive is ASSEMBLE and node.attributes["filled"] and _is_number(node.inputs[0], 0)
    )


def _all_parts(node: Node) -> tuple[list[Any], list[Value]]:
    """The places and the parts of two operands with something around them."""
    assembled = [value.node for value in node.inputs]
    places = [place for one in assembled for place in one.attributes["places"]]
    return places, [part for one in assembled for part in one.inputs[1:]]


def _assemble_once(node: Node) -> Value:
    places, parts = _all_parts(node)
    blank, parts = node.inputs[0].node.inputs[0], [_added_to_zero(part) for part in parts]
    if sum(part.size for part in parts) == node.types[0].size:
        return apply(ASSEMBLE, parts, node.types[0], places=tuple(places), filled=False)
    return apply(ASSEMBLE, (blank, *parts), node.types[0], places=tuple(places), filled=True)


def _added_to_zero(value: Value) -> Value:
    """`value` + 0, which is no longer a negative zero: of what it rearranges, whose kernel may do
    that before it stores."""
    node = value.node
    if node.primitive in (RESHAPE, TRANSPOSE):
        return views.again(node, _added_to_zero(node.inputs[0]))
    has_been = node.primitive is ADD and _is_number(node.inputs[1], 0.0)
    if has_been or not is_float(value.dtype):
        return value
    zero = views.broadcast(constant(0.0, value.dtype), value.shape)
    return apply(ADD, (value, zero), value.type)


# -- conversions and copies -----------------------------------------------------------------------

_HOLDS = {
    "bool": DTYPES,
    "int8": ("int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    "uint8": (
        *("int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64"),
    ),
    "int16": ("int32", "int64", "float32", "float64"),
    "uint16": ("int32", "uint32", "int64", "uint64", "float32", "float64"),
    "int32": ("int64", "float64"),
    "uint32": ("int64", "uint64"),  # float64 too, but what int32 does not hold ends there
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
}


def _converts_to_its_own(node: Node) -> bool:
    dtype = node.types[0].dtype
    return node.primitive is conversion(dtype) and node.inputs[0].dtype == dtype


def _passes_through_a_wider(node: Node) -> bool:
    """Whether a value is converted to a type that holds it exactly, and from there again."""
    between = node.inputs[0]
    conversions = (conversion(node.types[0].dtype), conversion(between.dtype))
    if (node.primitive, between.node.primitive) != conversions:
        return False
    return between.dtype in _HOLDS.get(_twice_removed(node).dtype, ())


def _convert_once(node: Node) -> Value:
    value = _twice_removed(node)
    if value.dtype == node.types[0].dtype:
        return value
    return Value(Node(node.primitive, (value,), {}, node.types))


def is_view_of_input(value: Value) -> bool:
    """Whether elements of an input stand for those of `value`."""
    while isinstance(value.node.primitive, View):
        value = value.node.inputs[0]
    return value.node.primitive is INPUT


# -- neutral operands -----------------------------------------------------------------------------


def _neutral_operand(node: Node) -> int | None:
    """The position of a number that leaves the other operand as it is."""
    neutral = node.primitive.neutral if isinstance(node.primitive, Elementwise) else ()
    for i, wanted in enumerate(neutral):
        same = node.inputs[1 - i].dtype == node.types[0].dtype
        if wanted is not None and same and _is_number(node.inputs[i], wanted):
            return i
    return None


def _other_operand(node: Node) -> Value:
    return node.inputs[0 if _neutral_operand(node) else 1]


def _is_number(value: Value, wanted: float) -> bool:
    found = uniform(value)
    if found is None or found.node.primitive is not CONSTANT:
        return False
    number = found.node.attributes["value"]
    signed = is_float(found.dtype) and wanted == 0
    return number == wanted and (not signed or copysign(1, number) == copysign(1, wanted))


SIMPLIFY = (
    Rule("same shape", RESHAPE, _operand, "reshape(x, x.shape) -> x", _is_same),
    Rule("repeated once", BROADCAST, _operand, "broadcast(x, x.shape) -> x", _is_same),
    Rule("whole slice", SLICE, _operand, "x[:] -> x", _is_whole),
    Rule(
        "one number, rearranged",
        View,
        lambda node: views.broadcast(the_number(node.inputs[0]), node.types[0].shape),
        "transpose(broadcast(number)) -> broadcast(number)",
        _rearranges_one_number,
    ),
    Rule(
        "reshaped twice",
        (RESHAPE, RESHAPE),
        lambda node: views.reshape(_twice_removed(node), node.types[0].shape),
        "reshape(reshape(x)) -> reshape(x)",
    ),
    Rule(
        "repeated twice",
        (BROADCAST, BROADCAST),
        lambda node: views.broadcast(_twice_removed(node), node.types[0].shape),
        "broadcast(broadcast(x)) -> broadcast(x)",
    ),
    Rule(
        "transposed twice",
        (TRANSPOSE, TRANSPOSE),
        _transpose_once,
        "transpose(transpose(x)) -> transpose(x)",
    ),
    Rule(
        "transposed in name only",
        TRANSPOSE,
        lambda node: views.reshape(_operand(node), node.types[0].shape),
        "transpose(x: [3, 1]) -> reshape(x, [1, 3])",
        _moves_only_ones,
    ),
    Rule(
        "written over",
        ASSEMBLE,
        _the_last,
        "assemble(x, y at x[::-1]) -> y[::-1]",
        _shows_only_the_last,
    ),
    Rule(
        "joined and sliced",
        (SLICE, ASSEMBLE),
        _slice_part,
        "assemble(x, y at [len(x):])[len(x):] -> y",
        lambda node: _part_seen(node) is not None,
    ),
    Rule(
        "padded and added",
        (ADD, ASSEMBLE),
        _assemble_once,
        "assemble(0, x at [0:3]) + assemble(0, y at [3:6]) -> assemble(x + 0, y + 0)",
        _are_padded_apart,
    ),
    Rule("sliced twice", (SLICE, SLICE), _slice_once, "x[a:][b:] -> x[a + b:]"),
    Rule(
        "converted to its own type",
        Elementwise,
        _operand,
        "to_float32(x: float32) -> x",
        _converts_to_its_own,
    ),
    Rule(
        "converted there and back",
        (Elementwise, Elementwise),
        _convert_once,
        "to_int8(to_float64(x: float32)) -> to_int8(x)",
        _passes_through_a_wider,
    ),
    Rule(
        "copied though new",
        COPY,
        _operand,
        "copy(exp(x)) -> exp(x)",
        lambda node: not is_view_of_input(node.inputs[0]),
    ),
    Rule(
        "neutral operand",
        Elementwise,
        _other_operand,
        "multiply(x, 1) -> x",
        lambda node: _neutral_operand(node) is not None,
    ),
)


def in_own_memory(before: Value, after: Value) -> Value:
    """A result that was computed stays an array of its own, even if it equals an input."""
    if is_view_of_input(after) and not is_view_of_input(before):
        return apply(COPY, (after,), before.type)
    return after
