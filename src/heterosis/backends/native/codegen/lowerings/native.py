"""Primitives of this back end alone: operands packed for a processor, and what takes them.

No program that is captured, differentiated or written down has them: they appear once parameters
are prepared, or before the program is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.recurrent import FORWARD, OF_SUMS
from heterosis.ir.primitives.windows import CONVOLVE
from heterosis.ir.program import INPUT, Node, Value
from heterosis.ir.types import DTYPES, FLOATS, TensorType
from heterosis.runtime.errors import UnsupportedError


def _by_processor(node: Node, *arrays: Any) -> Any:
    raise UnsupportedError(
        f"{node.primitive}: how operands are packed depends on the processor, and only its code "
        "can tell; evaluate the program as it is before parameters are prepared."
    )


def _packed(rank: int) -> Callable[[Node], tuple[TensorType, ...]]:
    """The rule for an operand of so many dimensions; how much is needed is up to the processor."""

    def types(node: Node) -> tuple[TensorType, ...]:
        expected.operands(node, 1)
        expected.ranks(node, rank)
        dtype = expected.element_type(node, 0, FLOATS)
        return (TensorType(expected.result_shape(node, None), dtype),)

    return types


def _transformed(node: Node) -> tuple[TensorType, ...]:
    rows, channels = _filters_of_tiles(node)
    dtype = expected.element_type(node, 0, FLOATS)
    places = (node.attributes["winograd"] + 2) ** 2
    return (TensorType(expected.result_shape(node, places, rows, channels, 1, 1, 1), dtype),)


def _transformed_panels(node: Node) -> tuple[TensorType, ...]:
    _filters_of_tiles(node)
    dtype = expected.element_type(node, 0, ("float32",))
    return (TensorType(expected.result_shape(node, None), dtype),)


def _filters_of_tiles(node: Node) -> tuple[int, int]:
    """How many rows and channels they have."""
    (a,) = expected.operands(node, 1)
    expected.ranks(node, 6)
    groups, rows, channels, *taps = a.shape
    expected.holds(node, (groups, *taps) == (1, 1, 3, 3), "filters of 3 x 3 taps in one group")
    return rows, channels


def _multiplied(node: Node) -> tuple[TensorType, ...]:
    a, _ = expected.operands(node, 2)
    expected.ranks(node, a.ndim, 1)
    dtype = expected.common_element_type(node, DTYPES)
    return (TensorType(expected.result_shape(node, *a.shape[:-1], None), dtype),)


def _convolved(node: Node) -> tuple[TensorType, ...]:
    x, _ = expected.operands(node, 2)
    expected.ranks(node, 6, 1)
    dtype = expected.common_element_type(node, FLOATS)
    return (TensorType(expected.result_shape(node, *x.shape[:2], *(None,) * 4), dtype),)


def _last_convolved(node: Node) -> tuple[TensorType, ...]:
    x, _ = expected.operands(node, 2)
    expected.ranks(node, 4, 1)
    dtype = expected.common_element_type(node, FLOATS)
    out = node.attributes["out"]
    pairs = (node.attributes[name] for name in _LAST)
    expected.holds(node, all(len(n) == 2 for n in pairs), "two numbers each")
    return (TensorType(expected.result_shape(node, x.shape[0], prod(out), None), dtype),)


def _recurrent(layer: Opaque) -> Opaque:
    """A layer whose weights have come packed."""

    def types(node: Node) -> tuple[TensorType, ...]:
        """Those of the layer with weights as they were."""
        _, *operands = node.inputs
        expected.element_type(node, 0, (operands[0].dtype,))
        wide, units = operands[0].shape[-1], operands[1].shape[-1]
        return _types_of(layer, node, [(wide, units)], operands)

    return Opaque(
        f"{layer.name}_packed",
        types=types,
        meaning=_by_processor,
        attributes=layer.attributes,
        about=f"As {layer.name}, with its weights packed as a right operand.",
    )


def _joined(layer: Opaque) -> Opaque:
    """A layer whose inputs' part is a product in it."""

    def types(node: Node) -> tuple[TensorType, ...]:
        """Those of the layer with the inputs' part as it was."""
        _, x, bias, *states = node.inputs
        expected.ranks(node, 1, 2, 1, *(2 for _ in states))
        expected.common_element_type(node, FLOATS)
        (wide,), (rows, units) = bias.shape, states[0].shape
        steps, *_ = expected.result_shape(node, None, rows, units)
        expected.holds(node, x.shape == (steps * rows, units), "inputs as wide as the outputs")
        return _types_of(layer, node, [(wide, units), (steps, rows, wide)], states)

    return Opaque(
        f"{layer.name}_joined",
        types=types,
        meaning=_by_processor,
        attributes=layer.attributes,
        about=f"As {layer.name}, from inputs (steps * rows, units) and the bias in place of the "
        "inputs' part, and weights of the inputs and of the outputs one above the other, packed as "
        "a right operand in one block of depth.",
    )


def _types_of(
    layer: Opaque, node: Node, shapes: Sequence[tuple[int, ...]], operands: Sequence[Value]
) -> tuple[TensorType, ...]:
    """The types of a layer whose first operands have these shapes, with the others of `node`."""
    assert layer.types is not None, f"{layer} has no rule"
    dtype = node.inputs[0].dtype
    first = (Value(Node(INPUT, (), {}, (TensorType(shape, dtype),))) for shape in shapes)
    return layer.types(Node(layer, (*first, *operands), node.attributes, node.types))


def _folded(node: Node) -> tuple[TensorType, ...]:
    (x,) = expected.operands(node, 1)
    expected.ranks(node, 6)
    dtype = expected.element_type(node, 0, ("float32", "float64"))
    taps = node.attributes["kernel"]
    expected.holds(node, len(taps) == 2 and min(taps) > 0, "two numbers of taps")
    images, groups, rows, depth, *places = x.shape
    expected.holds(node, groups == depth == 1 and rows % prod(taps) == 0, "a plane for each tap")
    out = (n + t - 1 for n, t in zip(places, taps, strict=True))
    return (TensorType((images, 1, rows // prod(taps), 1, *out), dtype),)


def _fold(node: Node, x: Any) -> Any:
    """The sums, in the precision of the results."""
    down, across = node.attributes["kernel"]
    images, _, planes, _, height, width = x.shape
    planes = x.reshape(images, planes // (down * across), down, across, height, width)
    total = numpy.zeros(node.types[0].shape, x.dtype)
    for i, j in numpy.ndindex(down, across):
        total[:, 0, :, 0, i : i + height, j : j + width] += planes[:, :, i, j]
    return total


PACK_RIGHT = Opaque(
    "pack_right",
    types=_packed(2),
    meaning=_by_processor,
    attributes={"one_block": bool},
    about="The right operand (depth, columns) of a product as its kernel reads it; that of a "
    "convolution in one block of depth.",
)
MATMUL_PACKED = Opaque(
    "matmul_packed",
    types=_multiplied,
    meaning=_by_processor,
    about="Matrix products of a stack of matrices and one packed right operand.",
)
PACK_FILTERS = Opaque(
    "pack_filters",
    types=_packed(6),
    meaning=_by_processor,
    about="Filters (groups, rows, channels, *taps) as their kernel reads them.",
)
TRANSFORM_FILTERS = Opaque(
    "transform_filters",
    types=_transformed,
    meaning=_by_processor,
    attributes={"winograd": int},
    about="Filters (1, rows, channels, 1, 3, 3) for tiles of `winograd` x `winograd` results: "
    "(places in a tile, rows, channels, 1, 1, 1).",
)
PACK_TRANSFORMED = Opaque(
    "pack_transformed",
    types=_transformed_panels,
    meaning=_by_processor,
    attributes={**TRANSFORM_FILTERS.attributes, "turned": bool},
    about="What `transform_filters` gives, as the kernel of a convolution reads it. If `turned`, "
    "the taps are in reverse order.",
)
CONVOLVE_PACKED = Opaque(
    "convolve_packed",
    types=_convolved,
    meaning=_by_processor,
    attributes={**CONVOLVE.attributes, "packed": bool, "turned": bool, "winograd": int},
    about="Packed filters on the windows of an input: as they are, as the right operand of a "
    "product, or transformed for tiles of so many results.",
)
_LAST = dict.fromkeys(("kernel", "out", "stride", "dilate", "origin"), tuple)
CONVOLVE_LAST = Opaque(
    "convolve_last",
    types=_last_convolved,
    meaning=_by_processor,
    attributes=_LAST,
    about="Filters, packed as the right operand of a product, on the windows of an input (images, "
    "height, width, channels) with its padding: (images, positions, filters).",
)
TILES_LAST = Opaque(
    "tiles_last",
    types=_last_convolved,
    meaning=_by_processor,
    attributes={**_LAST, "winograd": int},
    about="Filters of 3 x 3 taps, transformed for tiles of `winograd` x `winograd` results and "
    "packed as such an operand with rows for places and channels, on the windows of an input "
    "without its padding.",
)
GROUPED_LAST = Opaque(
    "grouped_last",
    types=_last_convolved,
    meaning=_by_processor,
    attributes={**_LAST, "width": int},
    about="Filters, as many as channels, for each group of `width` channels of an input (images, "
    "height, width, channels), packed as such an operand with rows for the heights of taps, the "
    "channels of a group and the widths of taps: (images, positions, channels).",
)
FOLD = Opaque(
    "fold",
    types=_folded,
    meaning=_fold,
    attributes={"kernel": tuple},
    about="Planes for each tap (images, 1, rows * taps, 1, height, width), each moved by where its "
    "tap is and added up: (images, 1, rows, 1, height + taps - 1, width + taps - 1).",
)
RECURRENT_PACKED = {mode: _recurrent(layer) for mode, layer in FORWARD.items()}
RECURRENT_JOINED = {mode: _joined(FORWARD[mode]) for mode in OF_SUMS}
