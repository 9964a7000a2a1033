"""Products of a loop's rows with what all turns share are computed for all rows at once, ahead of
the loop: the weights are read once for many rows, and not once a turn."""

from __future__ import annotations

from collections.abc import Iterator

from heterosis.ir import views
from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.program import INPUT, Node, Program, Value, apply, substituted
from heterosis.ir.types import TensorType
from heterosis.passes.preparation import Fixed

# A turn with more rows makes good use of the weights by itself.
_MOST_ROWS = 16
_MOST_BYTES = 1 << 26  # of what a product gives for all turns


def with_products_ahead(scan: Node) -> Node:
    """A scan whose turns are given products of their rows, where they compute some."""
    body: Program = scan.attributes["body"]
    given = dict(zip(body.inputs, scan.inputs, strict=True))
    first = scan.attributes["carried"]
    end = first + scan.attributes["shared"]
    is_shared, rows = Fixed(body.inputs[first:end]), frozenset(body.inputs[end:])
    found = list(_products(body, is_shared, rows, scan.attributes["length"]))
    if not found:
        return scan
    ahead = [_for_all(node, given, scan.attributes["length"]) for node in found]
    further = {Value(node): apply(INPUT, (), node.types[0]) for node in found}
    outputs = substituted(body.outputs, further)
    made = Program((*body.inputs, *further.values()), outputs, body.name)
    return Node(
        scan.primitive, (*scan.inputs, *ahead), scan.attributes | {"body": made}, scan.types
    )


def _products(
    body: Program, is_shared: Fixed, rows: frozenset[Value], length: int
) -> Iterator[Node]:
    """Those of a part of the rows with a shared matrix."""
    for node in body.nodes():
        if node.primitive is not MATMUL or any(len(v.shape) != 2 for v in node.inputs):
            continue
        row, matrix = node.inputs
        is_small = row.shape[0] <= _MOST_ROWS and length * node.types[0].nbytes <= _MOST_BYTES
        if is_small and _reshaped(row) in rows and is_shared(matrix):
            yield node


def _reshaped(value: Value) -> Value:
    """What a value is a reshape of."""
    while value.node.primitive is views.RESHAPE:
        (value,) = value.node.inputs
    return value


def _for_all(node: Node, given: dict[Value, Value], length: int) -> Value:
    """The product for all turns, as rows."""
    row, matrix = node.inputs
    many, depth = row.shape
    (_, width), dtype = node.types[0].shape, node.types[0].dtype
    whole = views.reshape(given[_reshaped(row)], (length * many, depth))
    (shared,) = substituted((matrix,), given)
    product = apply(MATMUL, (whole, shared), TensorType((length * many, width), dtype))
    return views.reshape(product, (length, many, width))
