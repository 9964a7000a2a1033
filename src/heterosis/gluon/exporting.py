"""A block as MXNet's two files: the symbol of its program, and its parameters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from operator import methodcaller
from typing import TYPE_CHECKING

from heterosis import _core, capture
from heterosis.capture import trees
from heterosis.capture.captured import Argument, Source
from heterosis.gluon.parameter import Parameter
from heterosis.io import params
from heterosis.io.atomic import write_together
from heterosis.mxnet.symbols import files
from heterosis.mxnet.symbols.capturing import graph_of
from heterosis.mxnet.symbols.symbol import Symbol
from heterosis.runtime import modes
from heterosis.runtime.errors import UninitializedError

if TYPE_CHECKING:
    from heterosis.gluon.hybrid_block import HybridBlock

Arrays = dict[str, _core.ndarray]


def export(block: HybridBlock, path: str, epoch: int) -> tuple[str, str]:
    """Write both files, the names of which are returned."""
    symbol, arrays = described(block)
    return save(symbol, arrays, path, epoch)


def save(
    symbol: Symbol, arrays: Mapping[str, _core.ndarray], path: str, epoch: int
) -> tuple[str, str]:
    """Write a symbol and its arrays, each as an argument or a state: both files, or none.

    Both carry a mark of the program, so that one is not taken for part of another export. Arrays
    of the same program, of other epochs for instance, go with either's symbol.
    """
    states = set(symbol.list_auxiliary_states())
    values = {f"{'aux' if name in states else 'arg'}:{name}": a for name, a in arrays.items()}
    names = f"{path}-symbol.json", f"{path}-{epoch:04d}.params"
    mark = _mark(symbol)
    content = files.content_of(symbol.entries, mark)
    write_together(
        {
            names[1]: lambda file: params.write(file, values, mark),
            names[0]: methodcaller("write", content),
        }
    )
    return names


def _mark(symbol: Symbol) -> int:
    """A number that stands for the program, and is not 0."""
    digest = hashlib.blake2b(symbol.tojson().encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


def described(block: HybridBlock) -> tuple[Symbol, Arrays]:
    """The symbol of the block's program in prediction, and the arrays of its variables.

    The program is captured for arguments like those of the last call that was captured.
    """
    compiled = getattr(block, "_compiled", None)
    examples = list(compiled.examples.values()) if compiled else []
    if not examples:
        raise UninitializedError(
            f"{type(block).__name__} {block.name!r} has no program yet: call hybridize() "
            "on it, run it once on an input, and export it then."
        )
    with modes.switched(recording=False, training=False):
        captured = capture.capture(block._captured_forward, *examples[-1])
    naming = _Naming(block, len(list(trees.arrays_in(examples[-1]))))
    symbol = Symbol(graph_of(captured, naming))
    inputs = set(symbol.list_inputs())
    return symbol, {name: array for name, array in naming.arrays.items() if name in inputs}


class _Naming:
    """Names of a program's variables: the inputs', the parameters', and those of other arrays."""

    def __init__(self, block: HybridBlock, inputs: int):
        self._parameters = {
            id(array): parameter
            for parameter in block.collect_params().values()
            for array in parameter.list_data()
        }
        self._prefix, self._inputs = block.prefix, inputs
        self.arrays: Arrays = {}

    def __call__(self, source: Source) -> tuple[str, dict[str, str]]:
        """The name and the attributes of the variable for what a program is fed."""
        if isinstance(source, Argument):
            return f"data{source.position if self._inputs > 1 else ''}", {}
        parameter = self._parameters.get(id(source.array))
        name, facts = self._constant() if parameter is None else _described(parameter)
        self.arrays[name] = source.array
        return name, facts

    def _constant(self) -> tuple[str, dict[str, str]]:
        """An array that is no parameter: it becomes one, that nobody learns."""
        number = sum(bool(re.fullmatch(r".*constant\d+", name)) for name in self.arrays)
        return f"{self._prefix}constant{number}", {"__lr_mult__": "0.0", "__wd_mult__": "0.0"}


def _described(parameter: Parameter) -> tuple[str, dict[str, str]]:
    return parameter.name, {**parameter.var().list_attr(), "__storage_type__": "0"}


__all__ = ["described", "export", "save"]
