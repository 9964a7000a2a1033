"""The table that `Block.summary` prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heterosis import np
from heterosis.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from heterosis.gluon.block import Block

_WIDTH = 80
_LINE = "{:>20}  {:>42} {:>15}"


@dataclass
class _Row:
    layer: str
    shape: str
    parameters: int = 0
    trainable: int = 0
    shared: int = 0


def print_summary(block: Block, inputs: tuple[Any, ...]) -> None:
    """Run the block on `inputs` and print a line for each layer in the order they finish."""
    rows = [_Row("Input", _shapes(list(inputs)))]
    seen: set[int] = set()

    def note(layer: Block, _: Any, outputs: Any) -> None:
        title = f"{type(layer).__name__}-{len(rows)}"
        rows.append(_counted(_Row(title, _shapes(outputs)), layer.params.values(), seen))

    with ExitStack() as hooks:
        for layer in _layers(block):
            hooks.enter_context(layer.register_forward_hook(note))
        block(*inputs)
    print("\n".join(_lines(rows)))


def _layers(block: Block) -> Iterator[Block]:
    """All blocks inside but sequences, each once, a hybridized one refused."""
    found: list[Block] = []
    block.apply(found.append)
    for layer in dict.fromkeys(found):
        if getattr(layer, "_active", False):
            raise ArgumentError(
                f"summary: block {layer.name!r} is hybridized, and a compiled program has no "
                "layers to tell of. Call hybridize(False) before."
            )
        if not layer.is_sequence:
            yield layer


def _counted(row: _Row, parameters: Any, seen: set[int]) -> _Row:
    for parameter in parameters:
        size = parameter.data().size
        row.parameters += size
        row.trainable += size if parameter.grad_req != "null" else 0
        row.shared += size if id(parameter) in seen else 0
        seen.add(id(parameter))
    return row


def _shapes(values: Any) -> str:
    """Shapes of arrays in the nesting of `values`; a list loses its outer brackets."""
    if isinstance(values, list | tuple):
        shapes = [_nested(v) for v in values]
        return str(shapes)[1:-1]
    return str(_nested(values))


def _nested(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_nested(v) for v in value]
    return value.shape if isinstance(value, np.ndarray) else value


def _lines(rows: list[_Row]) -> Iterator[str]:
    yield "-" * _WIDTH
    yield _LINE.format("Layer (type)", "Output Shape", "Param #")
    yield "=" * _WIDTH
    for row in rows:
        yield _LINE.format(row.layer, row.shape, row.parameters)
    total = sum(row.parameters for row in rows)
    trainable = sum(row.trainable for row in rows)
    shared = sum(row.shared for row in rows)
    yield "=" * _WIDTH
    yield "Parameters that a forward pass uses, shared ones each time"
    yield f"   Total params: {total}"
    yield f"   Trainable params: {trainable}"
    yield f"   Non-trainable params: {total - trainable}"
    yield f"Shared params in forward computation graph: {shared}"
    yield f"Unique parameters in model: {total - shared}"
    yield "-" * _WIDTH
